"""Fits whose answers must stay the same while the code is restructured.

``record`` runs a fixed list of fits and stores their public fitted attributes, answers on held-out
samples and the categories of warnings. ``compare`` runs the same fits on the code at hand and
reports what is not equal::

    python tools/frozen_fits.py record FILE.npz [--old-names]
    python tools/frozen_fits.py compare FILE.npz [--old-names] [--json OUT]

Fits are written in the names used before the restructuring; `RENAMED` translates them. With
``--old-names`` nothing is translated: the code at hand is the old one. The exit code is 1 if a
floating-point value differs by more than 1e-12 relative to the largest of its array, or anything
else differs at all, unless `EXCEPTIONS` allows it. What new code has beyond the file is counted,
not judged.
"""

import argparse
import json
import platform
import re
import sys
import time
import warnings
from collections import Counter
from dataclasses import fields, is_dataclass
from fnmatch import fnmatchcase
from functools import cache, partial

import numba
import numpy as np
import scipy
import sklearn
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.datasets import make_classification, make_moons
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state

import widemargin as wm
from widemargin import datasets, structured

# Old names and the new ones; not applied with --old-names. Values are keyed by the OLD name of
# their parameter, attributes by "fit pattern/attribute", dotted where only a nested one is meant.
RENAMED = {
    "parameters": {},
    "values": {
        ("update", "inc"): "incremental",
        ("update", "rec"): "recompute",
        ("split", "part"): "holdout",
        ("split", "full"): "resubstitution",
        ("threshold", "refined"): "tuned",
        ("solver", "mm"): "majorize-minimize",
        ("difficulty", "source"): "relative-margin",
    },
    "methods": {"set_demand": "set_constraints"},
    "attributes": {
        "*/promise_.kept": "guarantee_.guaranteed",
        "*/promise_.possible": "guarantee_.achievable",
        "*/promise_": "guarantee_",
        "*/soft_labels_": "pseudo_labels_",
        "Preference*/history_.used_at": "history_.threshold",
        "Preference*/history_.value": "history_.objective",
        "Preference*/history_.kept": "history_.best",
        **{
            f"*/machine_.{name}": name
            for name in ("support_", "support_vectors_", "dual_coef_", "intercept_")
        },
    },
}

# Parameters whose defaults have changed, with the old default by its new name.
OLD_DEFAULTS = {
    "GatedSVC": {"difficulty": "relative-margin"},
    "GatedStudents": {"difficulty": "relative-margin"},
    "PrivilegedSVC": {"slack_ridge": 0.0},
    "PrivilegedSVCCV": {"slack_ridges": [0.0]},
    **{
        kind: {"split": "holdout", "margin": None, "patience": None}
        for kind in ("PreferenceSVC", "PreferenceClassifier")
    },
}

# {"fit pattern/attribute pattern" (new names): (largest relative difference, reason)}; a bound of
# infinity lets discrete values differ too.
EXCEPTIONS = {
    "SVC ill-conditioned/*": (np.inf, "did not converge; an interior-point method ends it now"),
    "LinearSVC hinge large/*": (np.inf, "did not converge; an interior-point method ends it now"),
    "CrammerSingerSVC */support_*": (
        np.inf,
        "samples with a rounding error are no support vectors",
    ),
    "CrammerSingerSVC */dual_coef_": (np.inf, "samples with a rounding error are left out"),
    "TransductiveSVC*/objective_": (np.inf, "one entry for each binary subproblem"),
    "GatedStudents large linear/*n_iter_": (np.inf, "one coordinate descent: other pass counts"),
    "CodeMatrixClassifier */estimators_.*.class_*_": (
        np.inf,
        "the weights and margins of the two sides of a column; they were ones for every class",
    ),
    "PrivilegedSVC* hinge */*n_iter_": (np.inf, "interior point first on low-rank kernels"),
    "PrivilegedSVC hinge linear/*": (np.inf, "the function is zero up to rounding in both"),
    "PrivilegedSVC hinge small penalty/*": (np.inf, "the function is zero up to rounding in both"),
    "PrivilegedSVC hinge rbf/*": (1e-11, "another path to the same optimum"),
    "PrivilegedSVC hinge 600 rows/*": (1e-7, "another path to the same optimum"),
    "TwoViewSVC */n_iter_": (np.inf, "interior point first on low-rank kernels"),
    "TwoViewSVC * (100, 3)/*dual_coef_": (np.inf, "duals are not unique; scores agree to 1e-12"),
    "TwoViewSVC * (100, 3)/*support_*": (np.inf, "duals are not unique; scores agree to 1e-12"),
    "TwoViewSVC agreeing (100, 2)/intercept_": (2e-12, "another path to the same optimum"),
    "TwoViewSVC apart (100, 3)/decision_function": (2e-12, "another path to the same optimum"),
    "SVC large ovo/dual_coef_": (1e-11, "kernel values of small problems are computed by rows"),
    "CrammerSingerSVC */intercept_": (2e-12, "Newton steps make small dual variables exactly 0"),
    **{
        f"Preference* sure of */{name}": (
            np.inf,
            "with a confidence, a round replaces an earlier one only for a clearly better chance",
        )
        for name in ("history_.best", "dual_coef_", "intercept_", "support_*", "estimator_.*")
    },
    **{
        f"CrammerSingerSVC */{name}": (np.inf, "Newton steps make small dual variables exactly 0")
        for name in ("dual_coef_", "n_iter_", "support_", "support_vectors_")
    },
    "GatedSVC mm/*": (1e-7, "the teacher differs in the last bits, the student stops at tol"),
    "GatedStudents mm/*": (1e-7, "the teacher differs in the last bits, the student stops at tol"),
    "GatedStudents plain/students_.cat.coef_": (2.0, "zero up to rounding, 1e-15, in both"),
    "GatedStudents large*": (1e-10, "the teacher differs in the last bits"),
    "LinearSVC dual large/*": (np.inf, "did not converge; an interior-point method ends it now"),
    "LinearSVC crammer large/*": (np.inf, "did not converge; an interior-point method ends it now"),
    **{
        f"PrivilegedSVC {name}/*": (np.inf, "the function is zero up to rounding in both")
        for name in ("squared_hinge linear", "squared_hinge small penalty", "large linear")
    },
    "PrivilegedSVC* squared_hinge *": (1e-10, "the solver's kernel values differ in the last bits"),
    "PrivilegedSVC* squared_hinge */*n_iter_": (np.inf, "the last bits decide the last step"),
    "PrivilegedSVCCV */scores_": (np.inf, "the plain SVM and mixed slack are candidates too"),
    **{
        f"CoulombSSVM * {name}/*": (np.inf, "iterates are scored by the samples of each member")
        for name in ("best", "sampled", "stochastic")
    },
    "LinearSVC*/*n_iter_": (np.inf, "a pass over some of the samples counts by their share"),
    "LinearSVC dual wide/*": (1e-4, "conjugate gradients between passes; within tol"),
    "LinearSVC hinge wide/*": (1e-4, "conjugate gradients between passes; within tol"),
    "LinearSVC ill-conditioned/*": (np.inf, "did not converge; gradient steps end it now"),
    "compare_students/SVM*": (np.inf, "C of the baselines is chosen in folds"),
    "PrivilegedSVC hinge wide/*": (1e-10, "continues until the duality gap is small"),
    **{
        f"PrivilegedSVC hinge wide/{name}": (np.inf, "zero up to rounding, 1e-13, in both")
        for name in ("privileged_*", "slack*")
    },
    "TwoViewSVC rbf */*": (1e-10, "continues until the duality gap is small"),
    "SubgradientSSVM letters/*": (
        np.inf,
        "binary images tie; compiled passes break ties otherwise",
    ),
    **{
        f"Preference* sure*/{name}": (np.inf, "guarantees are fixed-sequence tests")
        for name in ("guarantee_.*", "threshold_", "decision_function", "predict", "warnings")
    },
    "Preference* new constraints/warnings": (np.inf, "warns that the guarantee does not hold"),
    "OneSlackSSVM letters/objective_": (
        0.2,
        "8 rounds are far from the optimum; rounds that use the cache are not counted any more",
    ),
    # Objectives are bounded: these learners stop at a duality gap, not at the optimum.
    "OneSlackSSVM */*objective*": (
        1e-2,
        "planes are combined as exactly as tol requires; within tol",
    ),
    "FrankWolfeSSVM */objective_": (5e-2, "small problems end with cutting planes; within tol"),
    **{
        f"{learner} */{name}": (np.inf, reason)
        for learner, reason in (
            ("OneSlackSSVM", "planes are combined as exactly as tol requires; within tol"),
            ("FrankWolfeSSVM", "small problems end with cutting planes; within tol"),
        )
        for name in (
            "dual_gap_",
            "gap_curve_",
            "history_.*",
            "*_curve_",
            "n_iter_",
            "w",
            "predict",
            "joint.augmented",
            "warnings",
        )
    },
    "diverse predictions/several": (np.inf, "the weights of the learner differ within its tol"),
}

# Attributes that are gone, by "fit pattern/attribute pattern" (new names), with the reason.
REMOVED = {
    "PrivilegedSVCCV */raised": "the search raised a TypeError for this call; it fits now",
    "Preference*/machine_.*": "no SVC inside: its support vectors are attributes of the estimator",
    "Transductive*/machine_.*": "no SVC inside: its support vectors are attributes",
}

RTOL = 1e-12
ANSWERS = ("decision_function", "predict", "predict_proba", "transform", "predict_all")
WITHOUT_UNDERSCORE = ("w", "W")  # weights of structured learners
MODEL = ("size_joint_feature", "n_states", "n_features", "edges_")  # what a fit sets of it
CLOCKS = re.compile(r"(^|[._])(time|times|timestamps?|seconds)(_|\.|$)")
_state = {"old_names": False}


def _restore_split():
    """Split labeled samples as before guarantees were fixed-sequence tests."""
    from widemargin.semisupervised import base  # the old code has no such modules
    from widemargin.semisupervised.split import LabelSplit

    def split_labels(estimator, data, groups=None):
        every = np.arange(len(data.y))
        if estimator.split == "resubstitution":
            return LabelSplit(every, every, every[:0])
        single = estimator.max_rounds == 1 or data.n_unlabeled == 0
        n_parts = 2 if estimator.confidence is None or single else 3
        rng = check_random_state(estimator.random_state)
        samples = [rng.permutation(np.flatnonzero(data.y == label)) for label in data.labels]
        by_class = [np.array_split(part, n_parts) for part in samples]
        parts = [np.sort(np.concatenate(part)) for part in zip(*by_class, strict=True)]
        return LabelSplit(*parts[:2], every[:0] if estimator.confidence is None else parts[-1])

    base.PreferenceBase._split_labels = split_labels


def _new(kind, /, **parameters):
    home = structured if kind in structured.__all__ else wm
    defaults = {} if _state["old_names"] else OLD_DEFAULTS.get(kind, {})
    return getattr(home, kind)(**{**defaults, **_translated(parameters)})


def _translated(parameters):
    if _state["old_names"]:
        return parameters
    names, values = RENAMED["parameters"], RENAMED["values"]
    return {
        names.get(name, name): values.get((name, value), value) if type(value) is str else value
        for name, value in parameters.items()
    }


def _call(method, *arguments, **named):
    """A function that calls a method of an estimator."""
    name = method if _state["old_names"] else RENAMED["methods"].get(method, method)
    return lambda estimator: getattr(estimator, name)(*arguments, **_translated(named))


def _refit(data, **parameters):
    return lambda estimator: estimator.set_params(**_translated(parameters)).fit(*data[:2])


def _fit(kind, data, *, given=None, then=None, more=None, passed=None, **parameters):
    """A function that fits, and returns everything that is to be the same.

    ``given`` are more arguments of fit; ``then`` changes the fitted estimator; ``more`` returns
    more answers by name; ``passed`` are more arguments of methods that answer.
    """

    def run():
        X, y, X_test = data
        estimator = _new(kind, **parameters).fit(X, y, **_translated(given or {}))
        if then:
            then(estimator)
        found = {"": estimator}
        if "model" in parameters:
            model = estimator.model if _state["old_names"] else estimator.model_
            found["joint"] = {name: getattr(model, name, None) for name in MODEL}
            found["joint"]["features"] = model.joint_feature(X[0], y[0])
            w = estimator.w if hasattr(estimator, "w") else estimator.W[0]
            found["joint"]["augmented"] = model.loss_augmented_inference(X[0], y[0], w)
        for method in filter(partial(hasattr, estimator), ANSWERS):
            try:
                found[method] = getattr(estimator, method)(X_test, **_translated(passed or {}))
            except NotImplementedError as error:
                found[method] = type(error).__name__
        return found | (more(estimator) if more else {})

    return run


def _each(kind, data, ways, **shared):
    """One fit for each of the named ways, which are parameters."""
    for name, way in ways.items():
        yield f"{kind} {name}", _fit(kind, data, **{**shared, **way})


# Data: training samples, their labels, and samples to predict.


_rng = np.random.default_rng


@cache
def _rows(n=90, n_classes=3, n_features=6, *, form="dense", seed=0, sep=0.8, stretch=0.0):
    X, y = make_classification(
        n + 40, n_features, n_informative=n_features - 1, n_redundant=0, n_classes=n_classes,
        class_sep=sep, flip_y=0.05 if sep < 5 else 0.0, random_state=seed,
    )  # fmt: skip
    X = (X - X.mean(axis=0)) / X.std(axis=0) * np.logspace(0.0, stretch, n_features)
    if form == "sparse":
        X = sparse.csr_array(np.where(np.abs(X) > 0.5, X, 0.0))
    if form == "kernel":
        K = rbf_kernel(X, gamma=0.2)
        return K[:n, :n], y[:n], K[n:, :n]
    if form == "names":
        y = np.array(["ant", "bee", "cat"])[y]
    return X[:n], y[:n], X[n:]


@cache
def _wide_rows(n=1200, n_features=1500):
    rng = _rng(1)
    X = sparse.random_array((n + 40, n_features), density=0.02, format="csr", rng=rng)
    y = (X @ rng.standard_normal(n_features) + 0.3 * rng.standard_normal(n + 40) > 0).astype(int)
    return X[:n], y[:n], X[n:]


@cache
def _views(n=90, n_classes=2, columns=3, privileged=2):
    rng = _rng(0)
    X, Z = rng.standard_normal((n, columns)), rng.standard_normal((n, privileged))
    score = X[:, 0] + Z[:, 0] + 0.5 * rng.standard_normal(n)
    y, test = np.argsort(np.argsort(score)) * n_classes // n, rng.standard_normal((30, columns))
    return (X, y, test), Z, rng.standard_normal((30, privileged))


@cache
def _marked(n=500, labels=150):
    X, y = make_classification(n + 40, weights=[0.7], flip_y=0.1, random_state=0)
    return X[:n], np.where(np.arange(n) < labels, y[:n], -1), X[n:]


@cache
def _outputs(model, n=24, size=6):
    """Samples of a structured model: the first features give the labels, with noise."""
    rng = _rng(5)
    X, Y = [], []
    for _ in range(n + 8):
        if model in ("MultiClassClf", "BinaryClf", "MultiLabelClf"):
            x = rng.standard_normal(4)
            noisy = x[:3] + 0.7 * rng.standard_normal(3)
            label = {"MultiClassClf": int(noisy.argmax()), "MultiLabelClf": (noisy > 0).astype(int)}
            y = label.get(model, 1 if noisy[0] > 0 else -1)
        else:
            shape = (4, 3) if "Grid" in model else (int(rng.integers(3, size)),)
            x = rng.standard_normal((*shape, 4))
            y = (x[..., :3] + 0.7 * rng.standard_normal((*shape, 3))).argmax(axis=-1)
            if "Graph" in model:
                pairs = [(u, v) for u in range(len(y)) for v in range(u) if rng.random() < 0.6]
                edges = np.array(pairs, dtype=int).reshape(-1, 2)
                x = (x, edges)
                if "Edge" in model:
                    x = (*x, rng.standard_normal((len(edges), 3)))
        X.append(x)
        Y.append(y)
    return X[:n], Y[:n], X[n:]


@cache
def _letters(n=50):
    X, Y = datasets.load_letters(return_X_y=True)
    return X[:n], Y[:n], X[n : n + 20]


def _weights(n):
    return _rng(7).integers(0, 4, n).astype(float)


def _cosine(A, B):
    return A @ B.T / np.sqrt(np.outer((A * A).sum(axis=1) + 1.0, (B * B).sum(axis=1) + 1.0))


class _Own(structured.StructuredModel):
    """A user's model: two methods."""

    n_states = 3

    def joint_feature(self, x, y):
        return np.outer(np.arange(3) == y, x).ravel()

    def inference(self, x, w, extra=None):
        scores = w.reshape(3, -1) @ x
        return int(np.argmax(scores if extra is None else scores + extra[0]))


# The fits, by name. Every family yields names and functions.


# fmt: off
def _plain():
    rows, thin, w = _rows(), _rows(form="sparse"), {"sample_weight": _weights(90)}
    kernels = {"linear": {}, "poly": {"degree": 2, "coef0": 1.0}, "rbf": {}, _cosine: {},
               "laplacian": {"gamma": 0.3}, "sigmoid": {"gamma": 0.05}}
    for kernel, more in kernels.items():
        name = getattr(kernel, "__name__", kernel)
        ways = {f"{name} ovo": {}, f"{name} weights": {"given": w, "class_weight": "balanced"},
                f"{name} ovr": {"multi_class": "ovr"}}
        yield from _each("SVC", rows, ways, kernel=kernel, **more)
        for kind in ("CrammerSingerSVC", "SVC") if kernel is not _cosine else ():
            yield from _each(kind, thin, {f"{name} sparse": more}, kernel=kernel, C=3.0, given=w)
        yield from _each("CrammerSingerSVC", rows, {name: more}, kernel=kernel, C=0.5)
    for kind in ("SVC", "CrammerSingerSVC"):
        yield from _each(kind, _rows(form="kernel"), {"precomputed": {"kernel": "precomputed"}})
        margins = {"kernel": "rbf", "class_weight": "effective", "class_margin": "ldam"}
        yield from _each(kind, _rows(form="names"), {"margins": margins})
        yield from _each(kind, _rows(150), {"gap": {"kernel": "rbf", "gap_tol": 1e-6}})
    two, linear, hard = _rows(120, 2), {"kernel": "linear"}, {"C": np.inf}
    yield from _each("SVC", rows, {
        "ties": {"break_ties": True, "tol": 1e-8}, "early": {"C": 100.0, "max_iter": 20},
        "pairs": {"decision_function_shape": "ovo", "n_jobs": 2}})
    yield from _each("SVC", two, {"not separable": linear, "hard rbf": {"gamma": 2.0}}, **hard)
    yield from _each("SVC", _rows(120, 2, sep=6.0, seed=2), {"hard": linear}, **hard)
    ill = {**linear, "C": 1e3, "max_iter": 10**6}
    yield from _each("SVC", _rows(300, 2, 8, stretch=4.0), {"ill-conditioned": ill})
    yield from _each("SVC", _rows(3000, 2, 12), {
        "large": {}, "large, small cache": {"cache_size": 4, "C": 10.0},
        "large, no shrinking": {"shrinking": False}, "large, precise": {"tol": 1e-6, "C": 5.0},
        "large, early": {"C": 100.0, "max_iter": 3000}})
    large = {"sample_weight": _weights(2500)}
    thin_large = _rows(2500, 2, 12, form="sparse")
    yield from _each("SVC", thin_large, {"large sparse": {"given": large}})
    yield from _each("SVC", _rows(2500, 2, 6), {
        "large poly": {"kernel": "poly", "degree": 2, "coef0": 1.0},
        "large laplacian": {"kernel": "laplacian", "gap_tol": 1e-3},
        "large hard": {"gamma": 20.0, **hard}})
    yield from _each("SVC", _rows(4000, 4, 8), {"large ovo": {"n_jobs": 2}})
    yield from _each("SVC", _rows(6500, 2, 12), {"huge": {"cache_size": 60}})
    yield from _each("SVC", _rows(1000, 4, 8), {"blocks": {"cache_size": 1}})
    yield from _each("SVC", _rows(2200, 2, form="kernel"), {"given": {"kernel": "precomputed"}})
    yield from _each("SVC", _rows(2500, 3, 8), {"large ovr": {"multi_class": "ovr"}})
    stretched = _rows(2500, 2, 8, stretch=2.0)
    yield from _each("SVC", stretched, {"large ill-conditioned": linear}, max_iter=100_000)
    yield from _each("CrammerSingerSVC", _rows(3000, 4, 10), {"large": {}})
    yield from _each("CrammerSingerSVC", _rows(2500), {"large rbf": {"kernel": "rbf"}})
    again = {"then": _refit(rows, C=2.0), "warm_start": True}
    ways = {"warm": again, "early": {"C": 100.0, "max_iter": 2}}
    yield from _each("CrammerSingerSVC", rows, ways)
    yield from _each("LinearSVC", rows, ways, loss="hinge")
    yield from _each("SVCCV", rows, {"rbf": {"gammas": ["scale", 0.5]}}, Cs=[0.1, 1.0], cv=3)
    yield from _each("SVCCV", thin, {"sparse": linear}, Cs=[0.1, 1.0], cv=3)
    yield from _each("SVCCV", _rows(2200, 2), {"large": {"Cs": [0.5, 2.0], "cv": 2}})
    small = {"cache_size": 1, "Cs": [0.5, 2.0], "cv": 2}
    yield from _each("SVCCV", _rows(600), {"small cache": small})
    yield from _each("CrammerSingerSVC", rows, {"top two": {}}, more=lambda e: dict(
        zip(("labels", "scores"), e.top_two(thin[0].toarray()), strict=True)))


def _linear():
    ways = {"primal": {"dual": False}, "dual": {"dual": True}, "hinge": {"loss": "hinge"},
            "crammer": {"multi_class": "crammer_singer"}}
    long, seed, w = {"max_iter": 100_000}, {"random_state": 0}, {"sample_weight": _weights(90)}
    free = {"fit_intercept": False, "class_weight": "balanced", "tol": 1e-8}
    for name, way in ways.items():
        for data, size, more in (
            (_rows(), "", long), (_rows(form="sparse"), " sparse", {"given": w, **long}),
            (_rows(120, 2), " free", {**free, **long}), (_rows(4000, 3, 20), " large", seed),
            (_wide_rows(), " wide", seed),
        ):
            yield from _each("LinearSVC", data, {name + size: way}, **more)
    yield from _each("LinearSVCCV", _rows(), ways, Cs=[0.01, 0.1, 1.0], cv=3, **long)
    yield from _each("LinearSVCCV", _rows(4000, 3, 20), {"large": {}}, Cs=[0.1, 1.0], cv=2)
    margins = {"class_margin": "ldam", "intercept_scaling": 5.0, "n_jobs": 2}
    yield from _each("LinearSVC", _rows(form="names"), {"margins": margins})
    ill = {"ill-conditioned": {"loss": "hinge", "max_iter": 300}}
    yield from _each("LinearSVC", _rows(2500, 2, 15, stretch=3.0), ill)


def _codes_and_discriminants():
    codes, svc, linear = {}, _new("SVC"), _new("LinearSVC", tol=1e-8)
    for code in ("ovr", "ovo", "dense", "sparse", "exhaustive"):
        yield f"code_matrix {code}", partial(wm.code_matrix, code, 6, random_state=0)
        codes[code] = {"code": code, "estimator": svc}
        codes[f"{code} hamming"] = {"code": code, "estimator": linear, "decoding": "hamming"}
    codes["probabilities"] = {"code": "dense", "estimator": _new("LinearDiscriminantAnalysis")}
    yield from _each("CodeMatrixClassifier", _rows(120, 4), codes, random_state=0)
    lda, qda, kda = (f"{k}DiscriminantAnalysis" for k in ("Linear", "Quadratic", "Kernel"))
    shared = {
        "auto": {}, "svd": {"solver": "svd"}, "oas": {"shrinkage": "oas"}, "parts": {
            "then": _call("partial_fit", *_rows(150, seed=4)[:2])},
        "weights": {"given": {"sample_weight": _weights(90)}, "priors": [0.2, 0.3, 0.5]},
        "eigen": {"solver": "eigen", "shrinkage": "auto", "covariance_divisor": "unbiased"}}
    for kind in (lda, qda):
        yield from _each(kind, _rows(), shared, store_covariance=True)
        yield from _each(kind, _rows(4000, 4, 30), {"large": {"shrinkage": "auto"}})
        other = _new(kind).fit(*_rows(150, 4, seed=5)[:2])
        yield from _each(kind, _rows(), {"merged": {"then": _call("merge", other)}})
        yield from _each(kind, _rows(stretch=7.0), {"ill-conditioned": {}})
    yield from _each(qda, _rows(), {"regular": {"reg_param": 0.1}})
    yield from _each(lda, _rows(), {
        "lsqr": {"solver": "lsqr"}, "trace": {"objective": "trace_ratio", "n_components": 1}})
    kernels = {k: {"kernel": k} for k in ("rbf", "linear", "poly", "laplacian")}
    yield from _each(kda, _rows(), kernels)
    yield from _each(kda, _rows(form="sparse"), {f"{k} sparse": w for k, w in kernels.items()})
    yield from _each(kda, _rows(form="kernel"), {"precomputed": {"kernel": "precomputed"}})
    yield from _each(kda, _rows(1500), {"large": {"n_components": 1}})


def _imbalance():
    X, y = datasets.make_long_tail(600, 4, imbalance=30.0, separation=2.0, random_state=0)
    data, lda = (X[:500], y[:500], X[500:]), _new("LinearDiscriminantAnalysis")
    costs = (1.0 - np.eye(4)) * np.arange(1.0, 5.0)[:, np.newaxis]
    yield from _each("RescaledClassifier", data, {
        "probabilities": {"estimator": lda}, "sigmoid": {"estimator": _new("SVC")},
        "isotonic": {"estimator": _new("LinearSVC"), "method": "isotonic"},
        "costs": {"estimator": lda, "priors": [0.1, 0.2, 0.3, 0.4], "costs": costs}}, cv=3)
    scores = _new("LinearDiscriminantAnalysis").fit(X, y).predict_proba(X)
    yield "imbalance_report", partial(wm.imbalance_report, y, scores, sample_weight=X[:, 0] ** 2)
    yield "effective_class_weight", partial(wm.effective_class_weight, y, beta=0.99)
    yield "ldam_class_margin", partial(wm.ldam_class_margin, y, largest=2.0)
    for loader in ("load_satimage", "load_vowel", "load_yeast", "load_letters"):
        yield f"datasets {loader}", partial(getattr(datasets, loader), return_X_y=True)
    yield "datasets make_long_tail", lambda: {"X": X, "y": y}


def _gated():
    data = X, y, X_test = _rows(240, form="names")
    linear = _new("CrammerSingerSVC", C=0.1).fit(X, y)
    kernel = _new("CrammerSingerSVC", kernel="rbf").fit(X, y)
    pipe, scaler = make_pipeline(StandardScaler(), _new("LinearSVC")).fit(X, y), StandardScaler()
    scores, w = kernel.decision_function(X), {"sample_weight": _weights(240)}
    ways = {"linear": {}, "plain": {"difficulty": None, "C": 0.5}, "mm": {"solver": "mm"},
            "rbf": {"kernel": "rbf"}, "mm rbf": {"kernel": "rbf", "solver": "mm", "gamma": 0.2},
            "source": {"difficulty": "source", "decay": 0.5, "margin": 0.5}, "folds": {"cv": 3},
            "constant": {"features": "constant"}, "scaled": {"features": scaler},
            "free": {"fit_intercept": False, "kernel": "poly"}}
    yield from _each("GatedSVC", data, ways, target="bee", teacher=kernel)
    yield from _each("GatedStudents", data, ways, teacher=linear, given=w)
    exported = {"exported": {"target": "cat", "teacher": linear, "given": w}}
    yield from _each("GatedSVC", data, exported, more=lambda e: {"export": e.export()})
    given, passed = {"teacher_scores": scores}, {"teacher_scores": kernel.decision_function(X_test)}
    yield from _each("GatedStudents", data, {
        "scores": {"given": given, "passed": passed},
        "pipeline": {"teacher": pipe, "features": "teacher"}})
    thin = {"sparse": {"targets": [2, 0], "n_jobs": 2}}
    yield from _each("GatedStudents", _rows(240, form="sparse"), thin)
    yield from _each("GatedStudents", _rows(2500), {"large": {"kernel": "rbf", "tol": 1e-3}})
    yield from _each("GatedStudents", _rows(3000, 3, 15), {"large linear": {"max_iter": 100_000}})
    students = partial(_new, "GatedStudents", teacher=kernel, C=0.5)
    yield "compare_students", lambda: wm.compare_students(students(), X, y, X_test)
    yield "difficulty_degrees", partial(wm.difficulty_degrees, scores, y, "bee", decay=0.4)
    for name, own in {"linear": linear, "kernel": kernel, "pipeline": pipe}.items():
        early = partial(wm.early_exit_predict, own, X_test, "cat", return_counts=True)
        yield f"early_exit_predict {name}", early


def _privileged():
    sizes = {
        (90, 2): {
            "linear": {"kernel": "linear"}, "early": {"privileged_kernel": "rbf", "max_iter": 5},
            "rbf": {"privileged_kernel": "rbf", "privileged_penalty": 0.01}},
        (150, 2): {"small penalty": {"kernel": "linear", "privileged_penalty": 1e-8, "C": 100.0}},
        (90, 3): {
            "laplacian": {"kernel": "laplacian", "privileged_kernel": "poly"},
            "scaled": {"privileged_transformer": StandardScaler(), "n_jobs": 2}},
        (60, 2, 70, 65): {"wide": {"kernel": "linear", "class_weight": "balanced"}},
        (600, 2): {"600 rows": {"privileged_kernel": "rbf", "privileged_penalty": 0.1}}}
    grid = {"Cs": [0.1, 1.0], "privileged_penalties": [0.01, 0.1], "cv": 3}
    searches = {"linear": {}, "rbf": {"privileged_kernel": "rbf"}}
    for loss in ("squared_hinge", "hinge"):
        for size, ways in sizes.items():
            data, Z, Z_test = _views(*size)
            ways = {f"{loss} {name}": way for name, way in ways.items()}
            given = {"privileged": Z, "sample_weight": 1.0 + _weights(len(Z))}
            slack = partial(lambda Z, e: {"slack": e.slack(Z)}, Z_test)
            yield from _each("PrivilegedSVC", data, ways, loss=loss, given=given, more=slack)
        yield from _each("PrivilegedSVC", _rows(), {f"{loss} not given": {"loss": loss}})
        data, Z, _ = _views(90, 3)
        ways = {f"{loss} {name}": way for name, way in searches.items()}
        yield from _each("PrivilegedSVCCV", data, ways, loss=loss, given={"privileged": Z}, **grid)
    data, Z, _ = _views(2500)
    ways = {"large": {}, "large linear": {"kernel": "linear"}}
    yield from _each("PrivilegedSVC", data, ways, given={"privileged": sparse.csr_array(Z)})
    data, Z, _ = _views(2050)
    ways = {"large rbf": {"privileged_kernel": "rbf"}}
    yield from _each("PrivilegedSVC", data, ways, given={"privileged": Z})
    yield from _each("TwoViewSVC", _rows(), {"not given": {}})
    ways = {"linear": {"kernel": "linear"}, "rbf": {"privileged_kernel": "rbf", "D": 0.1},
            "apart": {"D": 0.0, "C_privileged": 0.5},
            "agreeing": {"D": 5.0, "epsilon": 0.01, "C": 50.0}}
    for size in ((100, 2), (100, 3), (700, 2)):
        data, Z, Z_test = _views(*size)
        both = partial(lambda X, Z, e: {"both": e.decision_function(X, Z)}, data[2], Z_test)
        given = {"privileged": Z, "sample_weight": _weights(len(Z))}
        own = {f"{name} {size}": ways[name] for name in (ways if size[0] < 700 else ["rbf"])}
        yield from _each("TwoViewSVC", data, own, given=given, more=both)


def _preference():
    kinds = {"SVC": {"gamma": 0.05}, "Classifier": {"estimator": _new("SVC", gamma=0.05)}}
    X, y, _ = _rows(300, 2, 20, seed=9)
    ways = {
        "plain": {}, "precision": {"precision": 0.7}, "full": {"split": "full", "recall": 0.8},
        "rec": {"update": "rec", "recall": 0.9}, "rate": {"false_positive_rate": 0.1, "beta": 2.0},
        "rec full": {"update": "rec", "split": "full", "cost_ratio": 2.0, "pos_label": 0},
        "sure": {"recall": 0.6, "confidence": 0.8, "max_rounds": 1},
        "sure of precision": {"precision": 0.5, "confidence": 0.8},
        "sure of rate": {"false_positive_rate": 0.3, "confidence": 0.8},
        "rounds": {"split": "part", "update": "inc", "max_rounds": 2, "min_new": 5},
        "new constraints": {"then": _call("set_demand", precision=0.8, recall=0.2)},
        "recalibrated": {"then": _call("recalibrate", X, y)}}
    for name, more in kinds.items():
        yield from _each(f"Preference{name}", _marked(), ways, random_state=0, **more)
    apart = {"X_unlabeled": sparse.csr_array(X), "sample_weight": 1.0 + _weights(200)}
    thin = {"sparse": {"given": apart, "random_state": 0}}
    yield from _each("PreferenceSVC", _rows(200, 2, 20, form="sparse"), thin)
    yield from _each("PreferenceSVC", _marked(2600, 900), {"large": {"random_state": 0}})
    moons, truth = make_moons(200, noise=0.1, random_state=0)
    few = moons, np.where(np.arange(200) < 12, truth, -1), moons[::7] + 0.05
    yield from _each("TransductiveSVC", few, {
        "multi": {"gamma": 2.0}, "single": {"switch": "single"}, "linear": {"kernel": "linear"},
        "share": {"positive_share": 0.3, "C_unlabeled": 0.5, "C": 5.0}})
    yield from _each("TransductiveSVC", _marked(2300, 2100), {"large": {}})


def _structured():
    models = {"MultiClassClf": {}, "BinaryClf": {}, "MultiLabelClf": {"edges": "full"},
              "ChainCRF": {}, "GraphCRF": {}, "EdgeFeatureGraphCRF": {
                  "symmetric_edge_features": [0]}, "GridCRF": {},
              "DirectionalGridCRF": {"neighborhood": 8}}
    learners = {"FrankWolfeSSVM": {"random_state": 3, "max_iter": 30},
                "OneSlackSSVM": {"inference_cache": 3, "max_iter": 200},
                "SubgradientSSVM": {"random_state": 3, "max_iter": 20, "averaging": "linear",
                                    "shuffle": True}}
    few = {"n_estimators": 3, "C": 0.5, "tol": 0.1, "random_state": 0}
    ensembles = {
        "CoulombSSVM": {"": {"n_steps": 6}, " reranked": {"n_steps": 4}, **{
            f" {name}": {"assignment": name, "n_steps": 6}
            for name in ("best", "sampled", "stochastic")},
            " anchored": {"solver": "anchored", "n_steps": 2, "keep_single": True}},
        "PerturbedSSVM": {"": {}, " outputs": {"directions": "outputs"}},
        "MultipleChoiceSSVM": {"": {"n_rounds": 2}},
        "DiverseMultipleChoiceSSVM": {"": {"n_rounds": 2}}}
    for model, own in models.items():
        data = _outputs(model)
        for kind, more in learners.items():
            yield from _each(kind, data, {model: {"model": _new(model, **own)}}, C=0.5, **more)
        for kind, ways in ensembles.items():
            for name, way in ways.items():
                if name and model not in ("ChainCRF", "GridCRF"):
                    continue
                then = _call("fit_reranker", *data[:2]) if name == " reranked" else None
                shared = {"model": _new(model, **own), "then": then, **few}
                shared["more"] = lambda e, own=data: {
                    "losses": e.member_losses(*own[:2]), "disagreement": e.disagreement(own[0])}
                yield from _each(kind, data, {model + name: way}, **shared)
    chain, w = _outputs("ChainCRF"), {"sample_weight": 1.0 + _weights(24)}
    for kind, more in learners.items():
        costly = _new("ChainCRF", class_weight=[1.0, 2.0, 0.5], directed=False)
        warm = {"model": _new("ChainCRF"), "warm_start": True, "then": _refit(chain, C=1.0)}
        ways = {"weights": {"model": costly, "given": w}, "warm": warm}
        yield from _each(kind, chain, ways, **more)
        words = {"model": _new("ChainCRF"), **more, "max_iter": 8}
        yield from _each(kind, _letters(), {"letters": words})
        yield from _each(kind, _outputs("MultiClassClf"), {"own": {"model": _Own()}}, **more)
    sets = {str(e): {"model": _new("MultiLabelClf", edges=e)} for e in ("chow_liu", [[2, 1]], None)}
    yield from _each("FrankWolfeSSVM", _outputs("MultiLabelClf"), sets)
    nodes = {"transformer": StandardScaler()}
    for model in ("ChainCRF", "GraphCRF"):
        yield from _each("NodeTransformer", _outputs(model), {model: nodes})
    edges, rng = structured.make_grid_edges(np.zeros((4, 4)), neighborhood=8), _rng(0)
    yield "make_grid_edges", lambda: edges
    for states, pairs in {3: edges, 2: edges, 4: edges[:0]}.items():
        pairwise = np.eye(2) if states == 2 else rng.standard_normal((states, states))
        infer = partial(structured.inference_dispatch, rng.standard_normal((16, states)), pairwise)
        for method in ("auto", "alpha-expansion", "trws", "lp", "icm", "unary", "graph-cut"):
            named = {"inference_method": method, "return_energy": True}
            yield f"inference {method} {states}", partial(infer, pairs, **named)
    yield "diverse predictions", partial(_diverse, chain)
# fmt: on


def _diverse(data):
    learner = _new("FrankWolfeSSVM", model=_new("ChainCRF"), random_state=0).fit(*data[:2])
    model = learner.model if _state["old_names"] else learner.model_
    several = structured.batch_diverse_predictions(model, learner.w, data[2], 3, diversity=0.5)
    one = structured.diverse_predictions(model, learner.w, data[2][0], 3, diversity=0.5)
    return {"several": [np.ravel(own) for own in several], "one": one}


FAMILIES = (
    _plain, _linear, _codes_and_discriminants, _imbalance, _gated, _privileged, _preference,
    _structured,
)  # fmt: skip


# Recording and comparing.


def _flatten(name, value, found):
    """Store a value under its name, in as many arrays as it takes; clocks are left out."""
    if CLOCKS.search(name):
        return
    if isinstance(value, BaseEstimator):
        for attribute in _public_attributes(value):
            _flatten(f"{name}.{attribute}".lstrip("."), getattr(value, attribute), found)
    elif isinstance(value, dict):
        for key, own in value.items():
            _flatten(f"{name}.{key}".lstrip("."), own, found)
    elif is_dataclass(value):
        _flatten(name, {field.name: getattr(value, field.name) for field in fields(value)}, found)
    elif isinstance(value, list | tuple):
        parts = [np.asarray(own) for own in _leaves(value)]
        if not all(map(_is_plain, _leaves(value))) or len({part.dtype.kind for part in parts}) > 1:
            _flatten(name, dict(enumerate(value)), found)
        else:
            _flatten(name, np.concatenate([np.ravel(part) for part in (parts or [[]])]), found)
            found[f"{name}.sizes"] = np.array([part.size for part in parts])
    elif _is_plain(value) or sparse.issparse(value):
        array = value.toarray() if sparse.issparse(value) else np.ma.getdata(np.asarray(value))
        found[name] = array if array.dtype.kind in "biufcU" else array.astype(str)
    elif type(value).__module__.startswith("widemargin") and hasattr(value, "__dict__"):
        public = {key: own for key, own in vars(value).items() if key[0] != "_"}
        _flatten(name, {k: v for k, v in public.items() if k not in ("model", "model_")}, found)
    elif not callable(value) and not type(value).__module__.startswith("sklearn"):
        raise TypeError(f"{name}: cannot store a {type(value).__name__}.")


def _leaves(value):
    if isinstance(value, list | tuple):
        return [leaf for own in value for leaf in _leaves(own)]
    return [value]


def _is_plain(value):
    return value is None or isinstance(value, bool | int | float | str | np.generic | np.ndarray)


def _public_attributes(estimator):
    """Names of fitted attributes, properties that can be had included."""
    for name in sorted({*dir(type(estimator)), *vars(estimator)}):
        fitted = name.endswith("_") or name in WITHOUT_UNDERSCORE
        if fitted and name[0] != "_" and hasattr(estimator, name):
            yield name


def _run_all(pattern):
    """Run the fits whose name matches; all arrays by "fit/attribute", and seconds by fit."""
    found, seconds = {}, {}
    for family in FAMILIES:
        for name, run in family():
            if name in seconds:
                raise ValueError(f"Two fits are called {name!r}.")
            if not fnmatchcase(name, pattern):
                continue
            started, own = time.perf_counter(), {}
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                try:
                    answer = run()
                    _flatten("", answer if isinstance(answer, dict) else {"answer": answer}, own)
                except Exception as error:
                    own = {"raised": np.array(type(error).__name__)}
                    print(f"{name}: {type(error).__name__}: {str(error)[:150]}", file=sys.stderr)
            categories = [
                w.category for w in caught if not issubclass(w.category, DeprecationWarning)
            ]
            categories = sorted(
                c.__name__ for c in categories if not c.__module__.startswith("numba")
            )
            own["warnings"] = np.array(categories, dtype=str)
            found.update({f"{name}/{attribute}": array for attribute, array in own.items()})
            seconds[name] = time.perf_counter() - started
    return found, seconds


def _about():
    modules = {"numpy": np, "scipy": scipy, "scikit-learn": sklearn, "numba": numba}
    known = {name: module.__version__ for name, module in modules.items()}
    return {"python": platform.python_version(), **known, **_state}


def _renamed(key):
    name, attribute = key.split("/", 1)
    for pattern, new_name in RENAMED["attributes"].items():
        fits, old = pattern.rsplit("/", 1)
        if fnmatchcase(name, fits):
            attribute = re.sub(rf"(?<![^.]){re.escape(old)}(?![^.])", new_name, attribute)
    return f"{name}/{attribute}"


def _difference(before, after, unit=0.0):
    """0 for equal bits, else the difference relative to the largest value, or ``unit`` if larger.

    It is infinite where it is not one of rounding.
    """
    if before.shape != after.shape or before.dtype.kind != after.dtype.kind:
        return np.inf
    if before.dtype.kind not in "fc":
        return 0.0 if np.array_equal(before, after) else np.inf
    if before.dtype != after.dtype:
        return np.inf
    if before.tobytes() == after.tobytes():
        return 0.0
    rough = ~np.isfinite(before) | ~np.isfinite(after)
    if not np.array_equal(before[rough], after[rough], equal_nan=True):
        return np.inf
    far = np.abs(before - after)[~rough].max(initial=0.0)
    size = np.abs(before[~rough]).max(initial=unit)
    # Zeros of another sign are not the same bits.
    return max(float(far / size), np.finfo(float).tiny) if size else (np.inf if far else 5e-324)


def _judge(key, apart):
    """One of the verdicts, and the reason of an exception."""
    if apart == 0.0:
        return "equal bits", ""
    if apart <= RTOL:
        return f"equal to {apart:.1e}", ""
    for pattern, (bound, reason) in EXCEPTIONS.items():
        if fnmatchcase(key, pattern) and apart <= bound:
            return f"exception, {apart:.1e}", reason
    return f"differs, {apart:.1e}", ""


def _gone(key):
    reasons = [reason for pattern, reason in REMOVED.items() if fnmatchcase(key, pattern)]
    return ("removed", reasons[0]) if reasons else ("missing", "")


def _compare(stored, found):
    """Verdicts by "fit/attribute", printed where bits are not equal."""
    verdicts = {}
    for key, before in stored.items():
        unit = float(key.endswith("dual_gap_"))  # relative to the objective already
        verdict = _judge(key, _difference(before, found[key], unit)) if key in found else _gone(key)
        verdicts[key] = verdict
        if verdict[0] not in ("equal bits", "removed"):
            print(key, *filter(None, verdict), sep=": ")
    return verdicts


def main():
    """Record or compare; the exit code is 1 for a failure."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("mode", choices=["record", "compare"])
    parser.add_argument("file")
    parser.add_argument("--old-names", action="store_true", help="the code at hand is the old one")
    parser.add_argument("--json", help="where to write all verdicts")
    parser.add_argument("--only", default="*", help="pattern of the names of fits to run")
    options = parser.parse_args()
    _state["old_names"] = options.old_names
    if not options.old_names:
        _restore_split()
    found, seconds = _run_all(options.only)
    slowest = sorted(seconds, key=seconds.get)[:-9:-1]
    print(f"{len(seconds)} fits, {len(found)} attributes, {sum(seconds.values()):.0f} s; slowest:")
    print("\n".join(f"  {seconds[name]:6.1f} s  {name}" for name in slowest))
    if options.mode == "record":
        np.savez_compressed(options.file, **found, about=json.dumps(_about()))
        return 0
    with np.load(options.file) as file:
        stored = {key: file[key] for key in file.files}
    before, now = json.loads(str(stored.pop("about"))), _about()
    stored = {key: a for key, a in stored.items() if fnmatchcase(key.split("/")[0], options.only)}
    if now["old_names"] and not before["old_names"]:
        parser.error("the file has new names: leave out --old-names")
    if before["old_names"] and not now["old_names"]:
        stored = {_renamed(key): array for key, array in stored.items()}
    for name in before.keys() - {"old_names"}:
        if before[name] != now[name]:
            print(f"Recorded with {name} {before[name]}, this is {now[name]}.")
    verdicts = _compare(stored, found)
    counts = Counter(verdict.split(",")[0].split(" to ")[0] for verdict, _ in verdicts.values())
    table = {
        "fits": len({key.split("/")[0] for key in stored}),
        "attributes": len(stored),
        "equal bits": counts["equal bits"],
        "within 1e-12": counts["equal"],
        "listed exceptions": counts["exception"],
        "listed as removed": counts["removed"],
        "failures": counts["differs"] + counts["missing"],
        "new, not judged": len(found.keys() - stored.keys()),
    }
    print("\n".join(f"{name:<18}{number:>7}" for name, number in table.items()))
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"table": table, "verdicts": verdicts}, file, indent=1)
    return int(table["failures"] > 0)


if __name__ == "__main__":
    sys.exit(main())
