"""Metadata of `fit` that a meta-estimator passes on to its estimator."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing

from widemargin._base.sklearn_compat import num_samples, safe_indexing


class RoutesFitMetadata:
    """Mixin: ``fit`` passes metadata on to what the inner estimator requests.

    The meta-estimator itself consumes sample weights, which it passes on in any case.
    ``_routes_to`` is the name of the parameter that holds the inner estimator.
    """

    _routes_to = "estimator"

    def get_metadata_routing(self) -> MetadataRouter:
        """Get the metadata routing of this object.

        Returns
        -------
        routing : MetadataRouter
            The requests of this object, and those of its estimator.
        """
        mapping = MethodMapping().add(caller="fit", callee="fit")
        router = MetadataRouter(owner=self).add_self_request(self)
        inner = getattr(self, self._routes_to)
        return router.add(**{self._routes_to: inner}, method_mapping=mapping)

    def _routed(self, metadata: dict[str, Any]) -> dict[str, Any]:
        """Return the metadata that the estimator requests."""
        if not metadata:
            return {}
        if not get_config()["enable_metadata_routing"]:
            raise TypeError(
                f"fit got unexpected arguments: {', '.join(metadata)}. To pass them on to "
                f"{getattr(self, self._routes_to)!r}, call "
                "sklearn.set_config(enable_metadata_routing=True) and its set_fit_request."
            )
        return dict(process_routing(self, "fit", **metadata)[self._routes_to].fit)


def select_metadata(
    metadata: dict[str, Any], samples: Iterable[int] | np.ndarray, n_samples: int
) -> dict[str, Any]:
    """Return metadata of some of the samples; what has another length belongs to no sample."""
    return {
        name: safe_indexing(value, samples) if _length(value) == n_samples else value
        for name, value in metadata.items()
    }


def _length(value: Any) -> int | None:
    try:
        return num_samples(value)
    except TypeError:
        return None
