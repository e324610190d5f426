"""Parameters of a model that are read from the training data unless they are given."""

import warnings
from typing import Any, Self

from widemargin._base.sklearn_compat import BaseEstimator


class InferredSizes(BaseEstimator):
    """Mixin of models whose sizes can be inferred: a clone infers them from its own data."""

    # Names of the parameters without which a model has no weights.
    _sizes: tuple[str, ...] = ()

    # Parameters that were inferred, with their values.
    _inferred: dict[str, Any] = {}

    def __sklearn_clone__(self) -> Any:
        inferred = {name: None for name in self._inferred if self.is_inferred(name)}
        return type(self)(**{**self.get_params(deep=False), **inferred})

    def set_params(self, **params: Any) -> Self:
        """Set parameters; those that are set are not inferred from the data.

        Parameters
        ----------
        **params : dict
            Values by name. None infers the value from the data.

        Returns
        -------
        self : object
            The model.
        """
        super().set_params(**params)
        remaining = [name for name in self._inferred if name not in params]
        self._inferred = {name: self._inferred[name] for name in remaining}
        return self

    def unknown_sizes(self) -> list[str]:
        """Return the names of the sizes that are neither given nor inferred.

        Returns
        -------
        names : list of str
            Empty once the model is initialized.
        """
        return [name for name in self._sizes if getattr(self, name) is None]

    def check_sizes(self) -> None:
        """Raise a ValueError unless all sizes are known."""
        unknown = self.unknown_sizes()
        if unknown:
            raise ValueError(
                f"{type(self).__name__} does not have {' and '.join(unknown)} yet: pass them to "
                "the constructor, or call initialize(X, Y)."
            )

    def is_inferred(self, name: str) -> bool:
        """Return whether a parameter has the value that was inferred from the data.

        Parameters
        ----------
        name : str
            Name of the parameter.

        Returns
        -------
        inferred : bool
            Whether `initialize` may set it again.
        """
        return name in self._inferred and getattr(self, name) == self._inferred[name]

    def infer_size(self, name: str, seen: int, at_least: bool = False) -> None:
        """Set a parameter to its value in the data, or check the value that was given.

        Parameters
        ----------
        name : str
            Name of the parameter.
        seen : int
            Its value in the data.
        at_least : bool, default=False
            Whether a given value may be larger than that in the data.
        """
        value = getattr(self, name)
        if value is None or self.is_inferred(name):
            if at_least and seen == 1:
                warnings.warn(
                    f"The outputs contain a single state, so that {name}=1 is inferred and every "
                    f"prediction will be the same. Set {name} if there are more states.",
                    stacklevel=4,
                )
            setattr(self, name, seen)
            self._inferred = {**self._inferred, name: seen}
        elif value != seen and not (at_least and seen < value):
            raise ValueError(f"{name} must fit the data, got {name}={value}; the data have {seen}.")
