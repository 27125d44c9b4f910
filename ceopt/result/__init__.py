"""What comes back: counterfactuals, solution sets, cohorts, as tables, JSON, pictures and reports."""
