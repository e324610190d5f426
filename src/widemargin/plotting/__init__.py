"""Displays in scikit-learn's manner."""
