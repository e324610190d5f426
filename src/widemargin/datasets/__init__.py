"""Data sets that are part of the package or downloaded, and generators."""

from widemargin.datasets.downloads import DatasetError, fetch_dataset
from widemargin.datasets.extreme import make_extreme_labels
from widemargin.datasets.longtail import make_long_tail
from widemargin.datasets.privileged import make_privileged
from widemargin.datasets.samples import load_letters, load_satimage, load_vowel, load_yeast

__all__ = [
    "DatasetError",
    "fetch_dataset",
    "load_letters",
    "load_satimage",
    "load_vowel",
    "load_yeast",
    "make_extreme_labels",
    "make_long_tail",
    "make_privileged",
]
