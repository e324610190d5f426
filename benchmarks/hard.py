"""Ill-conditioned and unscaled problems: time and certificate beside scikit-learn.

    python benchmarks/hard.py [--json FILE] [--rows N] [--only PART ...] [--help]

Every fit runs in a process of its own on one thread, and is ended after 30 seconds of the
processor, which are what is reported: other work on the machine does not count. Gaps are relative
duality gaps. That of a kernel classifier is computed by this script from `dual_coef_` and
`intercept_`, in the same way for both libraries: in rational numbers for linear and polynomial
kernels, in extended precision for the rbf kernel; `dual_gap_` must not be below it. (Extended
precision has 11 bits more than float64: with a polynomial kernel and C = 1e6 it was wrong by 3e-6.)
Linear classifiers of scikit-learn return no dual variables: their objective is compared.
"""

import json
import os
import signal
import warnings
from fractions import Fraction
from importlib import import_module
from math import fsum, isnan
from tempfile import TemporaryDirectory
from time import process_time

from _harness import Bench, Report, answer, machine, options

LIMIT = 30.0
NOT_ENDED = dict.fromkeys(("gap", "true gap", "objective"), float("nan"))
NOT_ENDED |= {"seconds": LIMIT, "warning": ""}
SCALES = [1e-4, 1e-2, 1.0, 1e2, 1e4]
LINEAR, RBF = {"kernel": "linear"}, {"kernel": "rbf"}
QUINTIC = {"kernel": "poly", "degree": 5, "gamma": 1.0, "coef0": 1.0}
HINGE = {"loss": "hinge", "max_iter": 1_000_000}
SQUARED = {"loss": "squared_hinge", "max_iter": 1_000_000}
JOINT = {"max_iter": 1_000_000}

# Name: samples (see `samples`), parameters of the classifier.
KERNEL = {
    "800 x 5, scale 1e4": ({"n": 800, "scale": 1e4}, LINEAR),
    "800 x 5, scale 1e8": ({"n": 800, "scale": 1e8}, LINEAR),
    "800 x 5, scale 1e-8": ({"n": 800, "scale": 1e-8}, LINEAR),
    "800 x 5, scale 1e-8, C = 1e8": ({"n": 800, "scale": 1e-8}, LINEAR | {"C": 1e8}),
    "2,500 x 5, scales 1e-4 to 1e4": ({"n": 2500, "scale": SCALES}, LINEAR),
    "5,000 x 5, scales 1e-4 to 1e4, C = 100": ({"n": 5000, "scale": SCALES}, LINEAR | {"C": 100.0}),
    "800 x 5, offset 1e7": ({"n": 800, "offset": 1e7}, LINEAR),
    "800 x 5, offset 1e7, C = 100": ({"n": 800, "offset": 1e7}, LINEAR | {"C": 100.0}),
    "800 x 5, C = 1e8": ({"n": 800}, LINEAR | {"C": 1e8}),
    "800 x 5, C = 1e-8": ({"n": 800}, LINEAR | {"C": 1e-8}),
    "2,500 x 50, scale 1e4, C = 1e4": ({"n": 2500, "d": 50, "scale": 1e4}, LINEAR | {"C": 1e4}),
    "breast cancer, unscaled": ({"name": "breast_cancer"}, LINEAR),
    "breast cancer, unscaled, C = 1e6": ({"name": "breast_cancer"}, LINEAR | {"C": 1e6}),
    "wine 0, unscaled, C = 1e4": ({"name": "wine"}, LINEAR | {"C": 1e4}),
    "digits 8, rbf, C = 1e8": ({"name": "digits"}, RBF | {"C": 1e8}),
    "1,500 x 5, 40 % noise, rbf, C = 1e6": ({"n": 1500, "noise": 0.4}, RBF | {"C": 1e6}),
    "1,500 x 5, 40 % noise, rbf, C = 1e8": ({"n": 1500, "noise": 0.4}, RBF | {"C": 1e8}),
    "4,000 x 5, 30 % noise, rbf, C = 1e4": ({"n": 4000, "noise": 0.3}, RBF | {"C": 1e4}),
    "5,000 x 20, 40 % noise, rbf, C = 1e6": (
        {"n": 5000, "d": 20, "noise": 0.4},
        RBF | {"C": 1e6},
    ),
    "1,500 x 5, rbf, gamma 1e-6, C = 1e6": (
        {"n": 1500, "noise": 0.1},
        RBF | {"C": 1e6, "gamma": 1e-6},
    ),
    "1,000 x 5, rbf, scale 1e8, gamma 1": ({"n": 1000, "scale": 1e8}, RBF | {"gamma": 1.0}),
    "1,200 x 4, poly of degree 5": ({"n": 1200, "d": 4, "scale": 10.0}, QUINTIC),
    "1,200 x 4, poly of degree 5, scale 1e3": ({"n": 1200, "d": 4, "scale": 1e3}, QUINTIC),
    "3,000 x 4, poly of degree 3, C = 1e6": (
        {"n": 3000, "d": 4, "scale": 10.0},
        QUINTIC | {"degree": 3, "C": 1e6},
    ),
    "3,000 x 10, rbf, scales, C = 1e4": ({"n": 3000, "d": 10, "scale": SCALES}, RBF | {"C": 1e4}),
}
BINARY = {
    "breast cancer, hinge": ({"name": "breast_cancer"}, HINGE),
    "breast cancer, squared hinge": ({"name": "breast_cancer"}, SQUARED),
    "breast cancer, hinge, C = 1e6": ({"name": "breast_cancer"}, HINGE | {"C": 1e6}),
    "wine 0, hinge, C = 100": ({"name": "wine"}, HINGE | {"C": 100.0}),
    "2,500 x 5, scales 1e-4 to 1e4, hinge": ({"n": 2500, "scale": SCALES}, HINGE),
    "800 x 5, scale 1e8, hinge": ({"n": 800, "scale": 1e8}, HINGE),
    "800 x 5, scale 1e8, squared hinge": ({"n": 800, "scale": 1e8}, SQUARED),
    "800 x 5, scale 1e-8, C = 1e8, hinge": ({"n": 800, "scale": 1e-8}, HINGE | {"C": 1e8}),
    "800 x 5, offset 1e7, hinge": ({"n": 800, "offset": 1e7}, HINGE),
    "800 x 5, offset 1e7, squared hinge": ({"n": 800, "offset": 1e7}, SQUARED),
    "5,000 x 200, scales, hinge": ({"n": 5000, "d": 200, "scale": SCALES}, HINGE),
    "2,000 x 1,000, scales, squared hinge": ({"n": 2000, "d": 1000, "scale": SCALES}, SQUARED),
}
JOINTLY = {
    "iris, column of 1e6": ({"name": "iris", "constant": 1e6}, JOINT),
    "wine, unscaled": ({"name": "wine", "classes": 3}, JOINT),
    "600 x 5 in 3 classes, scale 1e4": ({"n": 600, "classes": 3, "scale": 1e4}, JOINT),
}


def main(arguments=None):
    chosen = options(__doc__.splitlines()[0], PARTS, arguments)
    if chosen.task:
        answer(chosen.task, {"fit": fit})
        return
    report = Report("hard", chosen.json, machine("widemargin", "numpy", "scikit-learn", "numba"))
    with TemporaryDirectory() as cache:
        bench, fits = Bench(__file__, NUMBA_CACHE_DIR=cache), []
        for part in chosen.only:
            fits += compare(bench, report, part, chosen.rows)
    seconds = max(found["seconds"] for found in fits)
    # A fit that did not end has neither gap nor warning.
    silent = [found["gap"] for found in fits if not found["warning"]]
    silent = max([1.0 if isnan(gap) else gap for gap in silent], default=0.0)
    optimism = [found["true gap"] - found["gap"] for found in fits]
    optimism = max([excess for excess in optimism if not isnan(excess)], default=0.0)
    report.bar("every fit ends in 20 s on one core", seconds, seconds <= 20.0, " s")
    report.bar("a relative gap of at most 1e-3, or a warning", silent, silent <= 1e-3)
    report.bar("no true gap above dual_gap_", optimism, optimism <= 1e-9)
    report.close()


def compare(bench, report, part, rows):
    """Fit the problems of a part with both libraries; return what ours found."""
    # Compiles what the part needs.
    bench.run("fit", 1, library="widemargin", part=part, data={"name": "iris"}, parameters={})
    lines, fits = [], []
    for name, (data, parameters) in PARTS[part].items():
        task = {"part": part, "data": data, "parameters": parameters, "rows": rows}
        ours, theirs = (
            bench.run("fit", 1, library=library, **task)
            for library in ("widemargin", "sklearn.svm")
        )
        higher = f"{theirs['objective'] / ours['objective'] - 1.0:.1e}"
        lines.append([name, *described(ours, "gap"), *described(theirs), higher])
        fits.append(ours)
        print("  ".join(lines[-1]), flush=True)
    report.table(
        f"{part} beside scikit-learn",
        "Seconds of a fit, the relative duality gap that it reports, the one that this script "
        "computes with more digits, and whether there was a warning; the same for "
        "scikit-learn, and by how much its objective is higher, relative to ours.",
        [
            *("problem", "s", "dual_gap_", "true gap", "warning"),
            *("scikit-learn s", "true gap", "warning", "objective"),
        ],
        lines,
    )
    return fits


def described(found, *gaps):
    took = f"{found['seconds']:.2f}" if found["seconds"] < LIMIT else f"> {LIMIT:.0f}"
    warned = "yes" if found["warning"] else "no"
    return [took, *(f"{found[gap]:.1e}" for gap in (*gaps, "true gap")), warned]


def fit(**task):
    """Fit a classifier in a child process, which the system ends after the limit."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        found = fitted(**task)
        os.write(writer, json.dumps(found).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as result:
        found = result.read()
    _, status = os.wait()
    if not found and not os.WIFSIGNALED(status):
        raise SystemExit(f"the fit has failed: {task}")
    return json.loads(found) if found else NOT_ENDED


def fitted(library, part, data, parameters, rows=None):
    """Fit a classifier within the limit, and compute its certificate."""
    import numpy as np

    X, y = samples(**data)
    X, y = X[:rows], y[:rows]
    if part == "CrammerSingerSVC" and library == "sklearn.svm":
        part, parameters = "LinearSVC", parameters | {"multi_class": "crammer_singer"}
    model = getattr(import_module(library), part)(**parameters)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        signal.setitimer(signal.ITIMER_VIRTUAL, LIMIT)
        start = process_time()
        model.fit(X, y)
        took = process_time() - start
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
    found = {"seconds": took, "warning": " ".join(str(warning.message) for warning in caught)}
    found["gap"] = float(np.max(getattr(model, "dual_gap_", np.nan)))
    if part != "SVC":
        certificate = linear_certificate
    else:
        certificate = rbf_certificate if model.kernel == "rbf" else exact_certificate
    objective, gap = np.nan, np.nan
    if part != "SVC" or len(model.classes_) == 2:
        objective, gap = certificate(model, X, y)
    return found | {"objective": float(objective), "true gap": float(gap)}


def exact_certificate(model, X, y):
    """Return the objective and the relative gap of a linear or polynomial SVC, in rational numbers.

    float64 are integers of some power of two: kernel values are integers too, of another unit.
    """
    samples, unit = integers(X)
    dual, dual_unit = integers(model.dual_coef_[0])
    support = samples[model.support_]
    if model.kernel == "linear":
        scores, unit = samples @ (support.T @ dual), unit**2
    else:
        (gamma, constant), other = integers([model._gamma, model.coef0])
        constant, unit = constant * unit**2, other * unit**2
        scores = [(gamma * (support @ x) + constant) ** model.degree @ dual for x in samples]
        unit = unit**model.degree
    f = [Fraction(int(score), unit * dual_unit) for score in scores]
    alpha, intercept = [Fraction(int(a), dual_unit) for a in dual], Fraction(model.intercept_[0])
    norm = sum(a * f[i] for a, i in zip(alpha, model.support_, strict=True))
    signs = [1 if label == model.classes_[1] else -1 for label in y]
    margins = [sign * (score + intercept) for sign, score in zip(signs, f, strict=True)]
    objective = norm / 2 + Fraction(model.C) * sum(max(0, 1 - margin) for margin in margins)
    bound = sum(map(abs, alpha)) - norm / 2 - abs(intercept * sum(alpha))
    return objective, (objective - bound) / objective


def integers(values):
    """Return float64 as an array of integers, and the number that stands for 1."""
    import numpy as np

    values = np.asarray(values)
    ratios = [float(value).as_integer_ratio() for value in values.flat]
    unit = max(denominator for _, denominator in ratios)
    whole = np.empty(len(ratios), dtype=object)
    whole[:] = [numerator * (unit // denominator) for numerator, denominator in ratios]
    return whole.reshape(values.shape), unit


def rbf_certificate(model, X, y):
    """Return the objective and the relative gap of an SVC with an rbf kernel."""
    import numpy as np

    sign, X = np.where(y == model.classes_[1], 1, -1), X.astype(np.longdouble)
    dual, support = model.dual_coef_[0].astype(np.longdouble), X[model.support_]
    distances = sum((X[:, [k]] - support[:, k]) ** 2 for k in range(X.shape[1]))
    f = np.exp(-np.longdouble(model._gamma) * distances) @ dual
    norm = f[model.support_] @ dual
    slack = np.maximum(0, 1 - sign * (f + model.intercept_[0]))
    objective = norm / 2 + model.C * slack.sum()
    bound = np.abs(dual).sum() - norm / 2 - abs(model.intercept_[0] * fsum(model.dual_coef_[0]))
    return objective, (objective - bound) / objective


def linear_certificate(model, X, y):
    """Return the objective of a linear classifier in extended precision, and no gap."""
    import numpy as np

    X = X.astype(np.longdouble)
    coef, intercept = model.coef_.astype(np.longdouble), model.intercept_.astype(np.longdouble)
    scores = X @ coef.T + intercept
    rows, label = np.arange(len(X)), np.searchsorted(model.classes_, y)
    norm = (coef**2).sum() + (intercept**2).sum()
    if len(model.classes_) > 2:
        margins = 1 + scores - scores[rows, label, np.newaxis]
        margins[rows, label] = 0
        loss = margins.max(axis=1)
    else:
        loss = np.maximum(0, 1 - np.where(label == 1, 1, -1) * scores[:, 0])
        loss = loss if model.loss == "hinge" else loss**2
    return norm / 2 + model.C * loss.sum(), np.nan


def samples(name=None, n=0, d=5, classes=2, noise=0.05, scale=1.0, offset=0.0, constant=None):
    """Return generated or known samples and their labels.

    Generated features have one scale, or several in turn. ``constant`` adds a constant feature.
    """
    import numpy as np
    from sklearn import datasets

    if name is None:
        random = np.random.default_rng(0)
        X = random.standard_normal((n, d))
        y = (X @ random.standard_normal((d, classes))).argmax(axis=1)
        y = np.where(random.random(n) < noise, random.integers(classes, size=n), y)
        X = X * np.resize(scale, d) + offset
    else:
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    if classes == 2 and constant is None and name in ("wine", "digits"):
        y = (y == {"wine": 0, "digits": 8}[name]).astype(int)
    if constant is not None:
        X = np.hstack([X, np.full((len(X), 1), constant)])
    return X, y


PARTS = {"SVC": KERNEL, "LinearSVC": BINARY, "CrammerSingerSVC": JOINTLY}

if __name__ == "__main__":
    main()
