"""Gated SVMs: binary detectors distilled from a multi-class model."""
