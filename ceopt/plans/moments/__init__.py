"""Mean and covariance of uncertain parameters."""
