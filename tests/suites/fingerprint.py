"""Fingerprints of what estimators learn: equal only if every bit is.

``python -m tests.suites.fingerprint`` prints those of all cases, for comparison between processes.
"""

import hashlib
import json
from operator import itemgetter

import numpy as np
from scipy import sparse
from tests.suites.registry import CASES, answers


def fingerprint(estimator, X):
    """Digest of all fitted arrays and of the answers for rows."""
    digest = _learned(estimator)
    digest.update(np.ascontiguousarray(answers(estimator, X)).tobytes())
    return digest.hexdigest()


def _learned(estimator):
    digest = hashlib.sha256()
    learned = {name: value for name, value in vars(estimator).items() if name.endswith("_")}
    for name, value in sorted(_flat(learned), key=itemgetter(0)):
        digest.update(name.encode())
        if hasattr(value, "fit"):
            digest.update(_learned(value).digest())
            continue
        array = np.ascontiguousarray(value.toarray() if sparse.issparse(value) else value)
        digest.update(repr(value).encode() if array.dtype.hasobject else array.tobytes())
    return digest


def _flat(learned):
    """Names and values, those of dicts in place of the dicts."""
    for name, value in learned.items():
        if isinstance(value, dict):
            yield from ((f"{name}{key}", part) for key, part in _flat(value))
        else:
            yield name, value


def fitted_fingerprint(case, data, **parameters):
    """Digest of a new fit of a case."""
    X, y = data
    return fingerprint(case.new(**parameters).fit(X, y), X)


def data_for(case, size):
    """Return "small" data, or "large" data that take the solvers' ways for many rows."""
    if size == "small":
        return case.data(n_samples=400, n_features=12)
    return case.data(n_samples=3100, n_classes=2, n_features=12)


if __name__ == "__main__":
    cases = [case for case in CASES if not case.pairwise]
    prints = {str(case): fitted_fingerprint(case, data_for(case, "small")) for case in cases}
    # The first case of its class speaks for the class where fits take longer.
    for case in {type(case.estimator): case for case in reversed(cases)}.values():
        prints[f"{case}, large"] = fitted_fingerprint(case, data_for(case, "large"))
    print(json.dumps(prints))
