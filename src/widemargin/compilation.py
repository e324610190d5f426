"""Compile ahead of time: fill the cache of compiled code by fits of all estimators."""

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression

import widemargin
from widemargin._base import code_cache, jit
from widemargin._base.options import smo_options


def compile_all() -> int:
    """Compile the code of all estimators and store it in the cache.

    Small problems are solved without a compiler. Large ones need compiled code: a function is
    compiled when it is first needed, which takes a second or more, and stored on disk for later
    processes. Call this function to do so ahead of time, for example in the build of a container
    image or before tests:

    .. code-block:: bash

        python -c "import widemargin; widemargin.compile_all()"

    Code is stored in the folder of the package or, where that is read-only, in the cache folder of
    the user; the environment variable ``NUMBA_CACHE_DIR`` selects another one. It is compiled for
    the processor that it runs on: other processors compile again. Inputs of other types than
    float64, such as read-only arrays, may need further compilation.

    Returns
    -------
    n_compiled : int
        Number of functions compiled; 0 if all code was in the cache.

    Raises
    ------
    OSError
        If no folder of the cache is writable.

    Examples
    --------
    >>> import widemargin
    >>> widemargin.compile_all()  # doctest: +SKIP
    123
    """
    code_cache.check_writable()
    before = jit.clock.functions
    with jit.eager(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of fits to very little data
        for fit in _fits():
            fit()
    return jit.clock.functions - before


def _fits() -> Iterator[Callable[[], object]]:
    """Yield fits and predictions that together call all compiled functions."""
    generator = np.random.default_rng(0)
    X = generator.normal(size=(90, 5))
    y = np.argmax(X[:, :3] + 0.5 * generator.normal(size=(90, 3)), axis=1)
    for samples in (X, sp.csr_matrix(X)):
        for model in _classifiers():
            yield partial(_fit_and_predict, model, samples, y)
    for model in _privileged():
        yield partial(_fit_and_predict, model, X, y, privileged=X[:, :2])
    partly = np.where(generator.random(90) < 0.5, y == 0, -1)
    for model in _semisupervised():
        yield partial(_fit_and_predict, model, X, partly)
    yield from _structured(X, y)
    # Above the size of dense problems, working sets of float32 kernel values are used.
    many = generator.normal(size=(smo_options.dense_size + 100, 5))
    side = many[:, 0] + 0.1 * generator.normal(size=len(many)) > 0
    for model in (widemargin.SVC(), widemargin.GatedSVC(target=True, kernel="rbf")):
        yield partial(_fit_and_predict, model, many, side)


def _classifiers() -> list:
    w = widemargin
    return [
        *(w.SVC(kernel=kernel) for kernel in ("rbf", "linear", "poly", "laplacian")),
        w.SVC(multi_class="ovr"),
        w.SVCCV(Cs=[0.1, 1.0], cv=3),
        *(w.LinearSVC(loss=loss, dual=True) for loss in ("hinge", "squared_hinge")),
        w.LinearSVC(dual=False),
        w.LinearSVC(multi_class="crammer_singer"),
        w.LinearSVCCV(Cs=[0.1, 1.0], cv=3),
        *(w.CrammerSingerSVC(kernel=kernel) for kernel in ("linear", "rbf")),
        *(w.GatedStudents(kernel=kernel) for kernel in ("linear", "rbf")),
        w.GatedSVC(target=1, solver="majorize-minimize"),
        w.KernelDiscriminantAnalysis(),
        *(w.LabelTreeClassifier(loss=loss) for loss in ("squared_hinge", "log")),
        w.CodeMatrixClassifier(w.SVC()),
    ]


def _privileged() -> list:
    w = widemargin
    return [
        *(
            w.PrivilegedSVC(loss=loss, privileged_kernel=kernel)
            for loss in ("hinge", "squared_hinge")
            for kernel in ("linear", "rbf")
        ),
        w.PrivilegedSVC(slack_ridge=0.0),
        w.PrivilegedSVCCV(Cs=[0.1, 1.0], privileged_penalties=[0.1], cv=3),
        w.TwoViewSVC(),
        w.TwoViewSVC(privileged_kernel="rbf"),
    ]


def _semisupervised() -> list:
    w = widemargin
    return [
        w.PreferenceSVC(),
        w.PreferenceSVC(update="recompute"),
        w.PreferenceClassifier(LogisticRegression()),
        w.TransductiveSVC(),
    ]


def _structured(X: np.ndarray, y: np.ndarray) -> Iterator[Callable[[], object]]:
    s = widemargin.structured
    sequences = [slice(start, start + 6) for start in range(0, len(X), 6)]
    nodes, labels = [X[rows] for rows in sequences], [y[rows] for rows in sequences]
    chain, ring = np.array([[0, 1], [1, 2], [2, 3]]), np.array([[0, 1], [1, 2], [2, 3], [3, 0]])
    learners = [s.FrankWolfeSSVM, s.OneSlackSSVM, s.NSlackSSVM, s.SubgradientSSVM]
    ensembles = [s.CoulombSSVM, s.PerturbedSSVM, s.MultipleChoiceSSVM, s.DiverseMultipleChoiceSSVM]
    for kind in [*learners, s.StructuredPerceptron, *ensembles]:
        yield partial(_fit_and_predict, kind(s.ChainCRF(), max_iter=3), nodes, labels)
    for edges in (chain, ring):
        graphs, truth = [(x[:4], edges) for x in nodes], [z[:4] for z in labels]
        model = s.OneSlackSSVM(s.GraphCRF(), max_iter=3)
        yield partial(_fit_and_predict, model, graphs, truth)
    featured = [(x[:4], chain, x[:3, :2]) for x in nodes]
    with_features = s.FrankWolfeSSVM(s.EdgeFeatureGraphCRF(), max_iter=3)
    yield partial(_fit_and_predict, with_features, featured, [z[:4] for z in labels])
    grids, states = [x[:6].reshape(2, 3, -1) for x in nodes], [z.reshape(2, 3) for z in labels]
    yield partial(_fit_and_predict, s.OneSlackSSVM(s.GridCRF(), max_iter=3), grids, states)
    for method in ("enumerate", "graph-cut", "alpha-expansion", "trws", "icm"):
        yield partial(s.inference_dispatch, np.eye(4, 2), np.eye(2), ring, method)
    for edges in (chain, ring):
        yield partial(s.inference_dispatch, np.eye(4, 2), np.eye(2), edges, "max-product")


def _fit_and_predict(model: Any, X: Any, y: Any, **parameters: Any) -> None:
    model.fit(X, y, **parameters).predict(X)
