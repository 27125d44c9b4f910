"""Coverage-validity-aware recourse by covariance-robust minimax probability machines, its experiments done again."""
