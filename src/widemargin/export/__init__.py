"""Model files: save a fitted estimator, load it without running code from the file, inspect it.

`to_sklearn` converts models for tools that know scikit-learn's classes;
`register_onnx_converters` is for the conversion to ONNX.
"""

from widemargin.export.conversion import to_sklearn
from widemargin.export.files import ModelFile, ModelFileError, inspect, load, save
from widemargin.export.onnx_graphs import register_onnx_converters
from widemargin.export.types import trusted_types

__all__ = [
    "ModelFile",
    "ModelFileError",
    "inspect",
    "load",
    "register_onnx_converters",
    "save",
    "to_sklearn",
    "trusted_types",
]
