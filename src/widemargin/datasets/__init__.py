"""Shipped samples, loaded in scikit-learn's manner."""

from widemargin.datasets.samples import load_satimage, load_vowel, load_yeast

__all__ = ["load_satimage", "load_vowel", "load_yeast"]
