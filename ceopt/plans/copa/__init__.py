"""COPA plans: several counterfactuals that are near, robust and diverse."""
