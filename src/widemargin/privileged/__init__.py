"""Estimators with privileged features, which are known for the training samples only."""
