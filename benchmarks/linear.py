"""LinearSVC and CrammerSingerSVC beside scikit-learn's LinearSVC, at equal objective.

``python benchmarks/linear.py --data DIR`` runs the peer to its tolerance, then ours at the largest
tolerance of a fixed ladder whose objective is no worse, both several times in turn, and prints the
ratio of the best times (above 1: ours is faster), both objectives, and all of it as JSON at the
end. Time of compilation and peak memory are reported apart. DIR holds ``sector.npz``,
``a9a.npz``, ``letter.npz`` and ``satimage.npz`` (arrays X_train, y_train, X_test, y_test; a sparse
X as its parts data, indices, indptr, shape behind two underscores); sets that are missing are
left out.
"""

import argparse
import json
import resource
import time
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn import svm
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler, normalize

from widemargin import SVC, CrammerSingerSVC, LinearSVC

LADDER = [10.0**-k for k in np.arange(0, 7, 0.5)]
LOSSES = {
    "hinge": {"loss": "hinge"},
    "squared hinge": {"loss": "squared_hinge"},
    "crammer singer": {"multi_class": "crammer_singer"},
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder of the benchmark sets")
    parser.add_argument("--only", help="run only cases whose name contains this")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--tol", type=float, default=1e-2, help="the peer's tolerance")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    report = {"compilation": compilation(), "linear": [], "kernel": []}
    print(f"compilation: {report['compilation']}")
    for name, load in linear_sets(options.data).items():
        for loss, parameters in LOSSES.items():
            if wanted(f"{name}, {loss}", options.only):
                X, y = load()
                if loss == "crammer singer" and len(np.unique(y)) == 2:
                    continue
                for jobs in (1, 2) if len(np.unique(y)) > 2 and loss != "crammer singer" else (1,):
                    row = compare(X, y, parameters, jobs, options)
                    report["linear"].append({"set": name, "loss": loss, "jobs": jobs, **row})
                    print(f"{name}, {loss}, {jobs} thread(s): {row}", flush=True)
    for name in ("satimage", "letter"):
        if options.data is not None and (options.data / f"{name}.npz").exists():
            for row in kernel_machines(name, options.data):
                if wanted(f"{name}, {row['machine']}", options.only):
                    report["kernel"].append(row)
                    print(row, flush=True)
    report["peak memory, MB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(json.dumps(report))


def wanted(name, only):
    return only is None or only in name


def compilation():
    """Time of the first small fits less that of the second ones."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 5)), np.arange(60) % 3
    times = {}
    for rows in (X, sp.csr_array(X)):
        for model in (
            LinearSVC(loss="hinge"),
            LinearSVC(),
            CrammerSingerSVC(),
            CrammerSingerSVC(kernel="rbf"),
        ):
            seconds = [timed(lambda m=model, r=rows: m.fit(r, y))[0] for _ in range(2)]
            kind = "sparse" if sp.issparse(rows) else "dense"
            times[f"{model}, {kind}"] = round(seconds[0] - seconds[1], 2)
    return times


def linear_sets(folder):
    sets = {
        "20,000 x 100,000 sparse": sparse_text,
        "10,000 x 200, 20 classes": twenty_classes,
    }
    for name in ("a9a", "sector"):
        if folder is not None and (folder / f"{name}.npz").exists():
            sets[name] = lambda name=name: read(folder, name)[:2]
    return sets


def sparse_text():
    """Rows of 80 words each, with a linear rule and some noise."""
    rng = np.random.default_rng(0)
    n, d, words = 20_000, 100_000, 80
    index = (
        np.repeat(np.arange(n, dtype=np.int32), words),
        (rng.zipf(1.3, n * words) % d).astype(np.int32),
    )
    X = sp.csr_array((np.ones(n * words), index), shape=(n, d))
    X.sum_duplicates()
    X = sp.csr_array(normalize(X))
    height = X @ rng.standard_normal(d) + 0.1 * rng.standard_normal(n)
    return X, (height > np.median(height)).astype(int)


def twenty_classes():
    X, y = make_classification(
        n_samples=10_000, n_features=200, n_informative=60, n_classes=20, class_sep=2.0,
        random_state=0,
    )  # fmt: skip
    return StandardScaler().fit_transform(X), y


def read(folder, name):
    with np.load(folder / f"{name}.npz") as file:
        parts = []
        for key in ("X_train", "y_train", "X_test", "y_test"):
            if key in file:
                parts.append(file[key])
            else:
                data, indices, indptr, shape = (
                    file[f"{key}__{part}"] for part in ("data", "indices", "indptr", "shape")
                )
                parts.append(sp.csr_array((data.astype(float), indices, indptr), shape=shape))
    return parts


def compare(X, y, parameters, jobs, options):
    """Best times of the peer and of ours, no worse in objective, and their ratio."""
    peer = svm.LinearSVC(**parameters, tol=options.tol, random_state=0)
    peer.fit(X, y)
    target = objective(peer, X, y, parameters)
    for tol in LADDER:
        ours = LinearSVC(**parameters, tol=tol, n_jobs=jobs)
        ours.fit(X, y)
        if ours.objective_.sum() <= target:
            break
    theirs, own = [], []
    for _ in range(options.repeats):
        theirs.append(timed(lambda: peer.fit(X, y))[0])
        own.append(timed(lambda: ours.fit(X, y))[0])
    return {
        "peer s": round(min(theirs), 3),
        "ours s": round(min(own), 3),
        "ratio": round(min(theirs) / min(own), 2),
        "peer objective": target,
        "our objective": float(ours.objective_.sum()),
        "our tol": tol,
        "largest gap": float(ours.dual_gap_.max()),
    }


def objective(model, X, y, parameters):
    """The sum of what the machines minimise."""
    scores = X @ model.coef_.T + model.intercept_
    norm = np.sum(model.coef_**2) + np.sum(model.intercept_**2)
    codes = np.searchsorted(model.classes_, y)
    if "multi_class" in parameters:
        own = scores[np.arange(len(y)), codes]
        rivals = (np.arange(scores.shape[1]) != codes[:, None]) + scores
        return 0.5 * norm + np.sum(rivals.max(axis=1) - own)
    sign = np.where(codes[:, None] == np.arange(len(model.classes_)), 1.0, -1.0)
    sign = sign[:, 1:] if len(model.classes_) == 2 else sign
    slack = np.maximum(0.0, 1.0 - sign * scores)
    return 0.5 * norm + np.sum(slack if parameters["loss"] == "hinge" else slack**2)


def kernel_machines(name, folder):
    """The joint problem with a kernel beside pairs of classes and one class against the rest."""
    X, y, X_test, y_test = read(folder, name)
    X, X_test = np.asarray(X, dtype=float), np.asarray(X_test, dtype=float)
    machines = {
        "CrammerSingerSVC": CrammerSingerSVC(kernel="rbf", C=10.0, tol=1e-2),
        "SVC, ovo": SVC(C=10.0),
        "SVC, ovr": SVC(C=10.0, multi_class="ovr"),
        "scikit-learn's SVC": svm.SVC(C=10.0),
    }
    for machine, model in machines.items():
        seconds, model = timed(lambda m=model: m.fit(X, y))
        yield {
            "set": name,
            "machine": machine,
            "fit s": round(seconds, 2),
            "accuracy": round(float(model.score(X_test, y_test)), 4),
            "largest gap": float(np.max(getattr(model, "dual_gap_", np.nan))),
        }


def timed(function):
    start = time.perf_counter()
    result = function()
    return time.perf_counter() - start, result


if __name__ == "__main__":
    main()
