"""Shipped samples, in scikit-learn's manner."""
