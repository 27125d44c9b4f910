"""Steps in front of an estimator: pipelines, encoders and scalers of scikit-learn."""
