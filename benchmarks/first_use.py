"""The first fit in a process: every public estimator with an empty and with a full cache.

    python benchmarks/first_use.py [--json FILE] [--only PART ...] [--help]

Every figure is the least of several fresh processes on one thread. Seconds count from the import of
scikit-learn to the end of the first fit and prediction; they include the import of widemargin, and
loading or compilation of code. An empty cache is a new folder for each process; `compile_all`
fills the full one. Modules are read as bytecode, which an installation writes. The peer is the
estimator of scikit-learn that comes nearest.
"""

import warnings
from tempfile import TemporaryDirectory
from time import perf_counter, process_time

from _harness import Bench, Report, answer, machine, options

REPEATS = 3
# Where the bytecode of all packages is, from the first process on.
BYTECODE: dict[str, str] = {"PYTHONDONTWRITEBYTECODE": ""}
LARGE = {
    "SVC": (4000, 20),
    "LinearSVC, hinge": (20000, 50),
    "CrammerSingerSVC": (5000, 20),
    "GatedSVC": (3000, 20),
    "LabelTreeClassifier": (10000, 20),
    "FrankWolfeSSVM": (4000, 20),
}


def main(chosen):
    """Run the parts and print the report."""
    report = Report("first_use", chosen.json, machine("widemargin", "scikit-learn", "numba"))
    with TemporaryDirectory() as folder, TemporaryDirectory() as bytecode:
        BYTECODE["PYTHONPYCACHEPREFIX"] = bytecode
        full = Bench(__file__, NUMBA_CACHE_DIR=folder, **BYTECODE)
        if "small" in chosen.only or "large" in chosen.only:
            report.keep("compile_all", full.run("fill", threads=1))
        for part in chosen.only:
            PARTS[part](full, report)
    report.close()


def small(full, report):
    """Fit every estimator to iris."""
    rows, slowest = [], {"empty": 0.0, "full": 0.0}
    peers = {
        peer: least(lambda peer=peer: full.run("peer", threads=1, name=peer))
        for peer in dict.fromkeys(ESTIMATORS.values())
    }
    for name, peer in ESTIMATORS.items():
        seconds = {
            "empty": least(lambda name=name: in_empty_cache("first", name=name)),
            "full": least(lambda name=name: full.run("first", threads=1, name=name)),
        }
        for cache, found in seconds.items():
            slowest[cache] = max(slowest[cache], found["seconds"])
        rows.append(
            [
                name,
                *(f"{found['seconds']:.2f}" for found in seconds.values()),
                f"{peers[peer]['seconds']:.2f}",
                *(f"{found['processor']:.2f}" for found in seconds.values()),
                str(seconds["empty"]["compiled"]),
            ]
        )
    header = ["estimator", "empty cache", "full cache", "scikit-learn"]
    report.table(
        "First fit and prediction on iris",
        "Seconds beyond the import of scikit-learn; seconds of the processor alone, which other "
        "load changes less; and the number of functions compiled with an empty cache.",
        [*header, "processor, empty", "processor, full", "compiled"],
        rows,
    )
    for cache, seconds in slowest.items():
        claim = f"every estimator's first fit on iris, {cache} cache: at most 0.3 s"
        report.bar(claim, seconds, seconds <= 0.3, " s")


def large(full, report):
    """Fit large problems."""
    rows, compiling, overhead = [], 0.0, 0.0
    for name, (n, d) in LARGE.items():
        empty = in_empty_cache("large", name=name, n=n, d=d)
        cached = least(lambda name=name, n=n, d=d: full.run("large", 1, name=name, n=n, d=d))
        compiling = max(compiling, empty["compilation"])
        overhead = max(overhead, cached["first"] - cached["second"])
        rows.append(
            [
                f"{name}, {n:,} x {d}",
                f"{empty['first']:.2f}",
                f"{empty['compilation']:.2f}",
                str(empty["compiled"]),
                f"{cached['first']:.2f}",
                f"{cached['second']:.2f}",
            ]
        )
    report.table(
        "First fit of large problems",
        "Seconds of the first fit and prediction with an empty cache, of compilation in it, and "
        "the number of functions compiled; seconds of the first and second with a full cache.",
        ["problem", "empty cache", "compilation", "compiled", "full cache", "second fit"],
        rows,
    )
    claim = "first fit of a large problem, empty cache: at most 3 s of compilation"
    report.bar(claim, compiling, compiling <= 3.0, " s")
    claim = "first fit of a large problem, full cache: at most 0.4 s more than the second"
    report.bar(claim, overhead, overhead <= 0.4, " s")


PARTS = {"small": small, "large": large}


def least(run):
    """Return the fastest of several results."""
    return min((run() for _ in range(REPEATS)), key=lambda found: found.get("seconds", 0.0))


def in_empty_cache(task, **arguments):
    with TemporaryDirectory() as folder:
        return Bench(__file__, NUMBA_CACHE_DIR=folder, **BYTECODE).run(task, 1, **arguments)


ESTIMATORS = {
    "SVC": "svm.SVC",
    "SVCCV": "svm.SVC",
    "LinearSVC": "svm.LinearSVC",
    "LinearSVC, hinge": "svm.LinearSVC",
    "LinearSVCCV": "svm.LinearSVC",
    "CrammerSingerSVC": "svm.LinearSVC",
    "CodeMatrixClassifier": "svm.SVC",
    "RescaledClassifier": "svm.SVC",
    "GatedSVC": "svm.SVC",
    "GatedStudents": "svm.SVC",
    "PrivilegedSVC": "svm.SVC",
    "PrivilegedSVC, hinge": "svm.SVC",
    "PrivilegedSVCCV": "svm.SVC",
    "TwoViewSVC": "svm.SVC",
    "PreferenceSVC": "svm.SVC",
    "PreferenceClassifier": "linear_model.LogisticRegression",
    "TransductiveSVC": "svm.SVC",
    "LinearDiscriminantAnalysis": "discriminant_analysis.LinearDiscriminantAnalysis",
    "QuadraticDiscriminantAnalysis": "discriminant_analysis.QuadraticDiscriminantAnalysis",
    "KernelDiscriminantAnalysis": "svm.SVC",
    "LabelTreeClassifier": "svm.LinearSVC",
    "FrankWolfeSSVM": "svm.LinearSVC",
    "OneSlackSSVM": "svm.LinearSVC",
    "SubgradientSSVM": "svm.LinearSVC",
    "StructuredPerceptron": "svm.LinearSVC",
    "PerturbedSSVM": "svm.LinearSVC",
    "CoulombSSVM": "svm.LinearSVC",
    "MultipleChoiceSSVM": "svm.LinearSVC",
    "DiverseMultipleChoiceSSVM": "svm.LinearSVC",
}


def new(name):
    """Return an estimator with default parameters."""
    import widemargin

    name, _, loss = name.partition(", ")
    parameters = {"loss": loss} if loss else {}
    if name.endswith("SSVM") or name == "StructuredPerceptron":
        from widemargin import structured  # only what the estimator needs is imported

        return getattr(structured, name)(structured.ChainCRF())
    if name in ("CodeMatrixClassifier", "RescaledClassifier"):
        return getattr(widemargin, name)(widemargin.SVC())
    if name == "PreferenceClassifier":
        from sklearn.linear_model import LogisticRegression

        return widemargin.PreferenceClassifier(LogisticRegression())
    if name == "GatedSVC":
        parameters["target"] = 1
    return getattr(widemargin, name)(**parameters)


def fit_and_predict(model, X, y):
    """Fit samples in the form that the estimator takes: labels in part, sequences, features."""
    import numpy as np

    name = type(model).__name__
    if name in ("PreferenceSVC", "PreferenceClassifier", "TransductiveSVC"):
        y = np.where(np.random.default_rng(0).random(len(y)) < 0.3, y == 1, -1)
    if name.endswith("SSVM") or name == "StructuredPerceptron":
        parts = [slice(start, start + 5) for start in range(0, len(X), 5)]
        X, y = [X[part] for part in parts], [y[part] for part in parts]
    with_privileged = name in ("PrivilegedSVC", "PrivilegedSVCCV", "TwoViewSVC")
    model.fit(X, y, **({"privileged": X[:, 2:]} if with_privileged else {})).predict(X)


def first_task(name):
    """Return the seconds of the first fit of an estimator."""
    import sklearn.linear_model
    import sklearn.svm  # noqa: F401
    from sklearn.datasets import load_iris

    X, y = load_iris(return_X_y=True)
    warnings.simplefilter("ignore")
    start, before = perf_counter(), process_time()
    fit_and_predict(new(name), X, y)
    seconds, processor = perf_counter() - start, process_time() - before
    return {"seconds": seconds, "processor": processor, "compiled": compiled()}


def peer_task(name):
    """Return the seconds of the first fit of an estimator of scikit-learn."""
    from importlib import import_module

    module, _, name = name.partition(".")
    kind = getattr(import_module(f"sklearn.{module}"), name)
    from sklearn.datasets import load_iris

    X, y = load_iris(return_X_y=True)
    start = perf_counter()
    warnings.simplefilter("ignore")
    kind().fit(X, y).predict(X)
    return {"seconds": perf_counter() - start}


def large_task(name, n, d):
    """Return the seconds of the first and second fit and prediction of a large problem."""
    from sklearn.datasets import make_classification

    X, y = make_classification(n, d, n_informative=d // 2, random_state=0)
    warnings.simplefilter("ignore")
    seconds = []
    for _ in range(2):
        start = perf_counter()
        fit_and_predict(new(name), X, y)
        seconds.append(perf_counter() - start)
    from widemargin._base.jit import clock

    first, second = seconds
    found = {"first": first, "second": second, "seconds": first - second}
    return found | {"compilation": clock.seconds, "compiled": clock.functions}


def fill_task():
    """Fill the cache."""
    import widemargin

    start = perf_counter()
    return {"functions": widemargin.compile_all(), "seconds": perf_counter() - start}


def compiled():
    from widemargin._base.jit import clock

    return clock.functions


TASKS = {"first": first_task, "peer": peer_task, "large": large_task, "fill": fill_task}

if __name__ == "__main__":
    chosen = options(__doc__, PARTS)
    if chosen.task:
        answer(chosen.task, TASKS, cold=TASKS)
    else:
        main(chosen)
