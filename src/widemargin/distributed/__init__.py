"""Fits and predictions on Dask collections, on one computer or on a cluster (extra ``dask``)."""

from importlib import import_module

__all__ = ["DaskEstimator"]


def __getattr__(name):
    if name in __all__:
        try:
            return getattr(import_module("widemargin.distributed.estimator"), name)
        except ModuleNotFoundError as error:
            if error.name and error.name.split(".")[0] in ("dask", "distributed"):
                raise ModuleNotFoundError(
                    "widemargin.distributed requires Dask. Install it with "
                    "pip install 'widemargin[dask]'.",
                    name=error.name,
                ) from error
            raise
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
