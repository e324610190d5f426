"""Gated students: a fast yes or no for every class of an existing model."""
