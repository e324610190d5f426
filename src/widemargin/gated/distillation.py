"""Distilled gates: the teacher's scores replaced by a linear approximation over phi.

The gate of a teacher that is not linear costs a whole teacher. A distilled gate

    g^y(x) = <a_y, phi(x)> + b_y

is fitted to the teacher's scores S^y by ridge regression. It needs no labels, so that unlabeled
samples count as much as labeled ones. The gated problem then has g in place of S, and gate and
student are merged: one vector over phi, at a cost that does not depend on the teacher. The
scores are clipped first: a student needs to know where a score changes its sign, and not how
certain the teacher is far from there.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import Ridge

from widemargin._base.numeric import TINY
from widemargin._base.options import gated_options as options
from widemargin._base.sklearn_compat import num_samples
from widemargin._base.threads import single_threaded_blas
from widemargin.gated.teacher import Coefficients, validated_array
from widemargin.kernels.parameters import effective_gamma


def distill_scores(phi: Any, scores: np.ndarray, weight: np.ndarray | None) -> Coefficients:
    """Return linear functions of phi that approximate the scores of all classes.

    Parameters
    ----------
    phi : ndarray or CSR matrix of shape (n_samples, n_phi)
        Features of the samples.
    scores : ndarray of shape (n_samples, n_classes)
        Scores of the teacher.
    weight : ndarray of shape (n_samples,) or None
        Weights of the samples.

    Returns
    -------
    functions : Coefficients
    """
    targets = np.clip(scores, -options.distilled_score, options.distilled_score)
    squares = phi.multiply(phi).sum(axis=1) if sp.issparse(phi) else (phi * phi).sum(axis=1)
    total = np.sum(squares if weight is None else weight * np.ravel(squares))
    # Without any variation the penalty must not vanish too.
    penalty = max(options.distilled_ridge * float(total) / phi.shape[1], TINY)
    ridge = Ridge(alpha=penalty)
    with single_threaded_blas():
        ridge.fit(phi, targets, sample_weight=weight)
    return Coefficients(np.atleast_2d(ridge.coef_), np.ravel(ridge.intercept_))


def landmark_map(n_landmarks: int, X: Any) -> Nystroem:
    """Return the fitted map to the kernel values at some of the samples."""
    values = validated_array(X)
    n_landmarks = min(n_landmarks, num_samples(values))
    gamma = effective_gamma("scale", values, None)
    landmarks = Nystroem(gamma=gamma, n_components=n_landmarks, random_state=0)
    # The names of a DataFrame are checked when it is transformed.
    return landmarks.fit(X if hasattr(X, "columns") else values)
