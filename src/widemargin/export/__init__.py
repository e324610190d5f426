"""Model files: save a fitted estimator, load it without running code from the file, inspect it."""

from widemargin.export.files import ModelFile, ModelFileError, inspect, load, save
from widemargin.export.types import trusted_types

__all__ = ["ModelFile", "ModelFileError", "inspect", "load", "save", "trusted_types"]
