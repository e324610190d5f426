"""Linear SVMs and the Crammer-Singer SVM compared with scikit-learn's LinearSVC.

    python benchmarks/linear.py [--data DIR] [--full] [--json FILE] [--help]

The peer, liblinear, stops at its tolerance. Ours uses the largest tolerance of a list for which its
objective is not higher. Every fit is measured in a separate process. Ratios are the time of the
peer divided by ours. Objectives (lower is better) are computed by this script from the weights, in
the same way for both.
"""

import os
import warnings
from itertools import product
from pathlib import Path
from statistics import geometric_mean
from tempfile import TemporaryDirectory
from time import process_time

from _harness import (
    Bench,
    Report,
    answer,
    machine,
    options,
    peak_megabytes,
    repeated,
    timed,
)
from core import bundled, shipped, shown, some, stored

LOSSES = {
    "hinge": {"loss": "hinge"},
    "squared hinge": {"loss": "squared_hinge"},
    "joint": {"multi_class": "crammer_singer"},
}
SPARSE, DENSE = "20,000 x 100,000", "10,000 x 200"
GENERATED = (SPARSE, DENSE)
TWO_CLASSES = (SPARSE, "a9a")
SEVERAL_CLASSES = (DENSE, "sector")
REAL = ("a9a", "sector")
KERNEL = ("satimage", "letter")
# Tolerances of the peer: a large one, and its default.
TOLERANCES = (1e-2, 1e-4)
# These take minutes: only with --full.
LONG = {("sector", "joint", 1e-4)}
# Here the optima are compared on this number of samples, with --full on all.
LONG_EXACT = {("sector", "hinge"), ("sector", "joint")}
EXACT_ROWS = 1_000
# Our tolerances in units of the peer's, in descending order.
LADDER = (30, 10, 5, 3, 2, 1.5, 1.2, 1, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.03, 0.01)
TIGHT = {"tol": 1e-6, "max_iter": 20_000}
SAME_OBJECTIVE = 1e-6
GRID = {"Cs": [1.0, 4.0, 16.0], "gammas": [0.25, 1.0, 4.0]}
SEARCHED_ROWS = 4_000
# C and tolerances over which two-class fits are compared, classes being joined to two halves, and
# the limit on passes or steps of both.
HALVES = (*TWO_CLASSES, *SEVERAL_CLASSES)
COSTS = (0.01, 0.1, 1.0, 10.0)
MOST_PASSES = 10_000
SMALL = {"iris": ("squared hinge", "joint"), "wine": ("squared hinge", "joint")}


def main(arguments=None):
    chosen = options(__doc__.splitlines()[0], PARTS, arguments)
    if chosen.task:
        answer(chosen.task, TASKS)
        return
    facts = machine("widemargin", "numpy", "scipy", "scikit-learn", "numba")
    report = Report("linear", chosen.json, facts)
    with TemporaryDirectory() as cache:
        bench = Bench(__file__, NUMBA_CACHE_DIR=cache)
        # First, with an empty cache: all later fits load the compiled code.
        compilation(bench, report)
        for part in chosen.only:
            PARTS[part](bench, report, chosen)
    report.close()


def compilation(bench, report):
    rows = []
    for loss, sparse in (("hinge", False), ("hinge", True), ("squared hinge", False),
                         ("joint", False), ("joint", True), ("kernel", False)):  # fmt: skip
        cold, cached = (bench.run("compile", loss=loss, sparse=sparse) for _ in range(2))
        seconds = cold["first"], cached["first"], cached["warm"]
        what = f"{loss}, {'sparse' if sparse else 'dense'}"
        rows.append([what, *(f"{value:.3f}" for value in seconds)])
    report.table(
        "Compilation",
        "Seconds of the first small fit with an empty cache, in which the code is compiled; of the "
        "first fit of a later process, in which it is loaded; and of every other fit, as in the "
        "other tables.",
        ["fit", "cold", "cached", "warm"],
        rows,
    )


def fits(bench, report, chosen):
    """Fit every data set with every loss, with one thread and with two."""
    rows, losses = [], []
    sets = available((*TWO_CLASSES, *SEVERAL_CLASSES), chosen)
    for tol, name in product(TOLERANCES, sets):
        for loss in losses_of(name):
            if chosen.full or (name, loss, tol) not in LONG:
                found = measured(bench, name, loss, tol, chosen)
                rows.append([name, loss, f"{tol:g}", *cells(found)])
                losses += judge(report, f"{name}, {loss}, tol={tol:g}", found)
    report.table(
        "Linear SVMs: time to fit",
        "Tolerance and seconds of the peer, our seconds with one thread and with two (n_jobs=2; "
        "the joint problem over all classes uses one), and the time of the peer divided by ours.",
        ["data", "loss", "tol", "peer s", "1 thread", "ratio", "2 threads", "ratio, 2"],
        [row[:8] for row in rows],
    )
    report.table(
        "Linear SVMs: objectives, iterations and memory",
        "Sums of the objectives of all binary subproblems, our largest relative duality gap, our "
        "tolerance, the largest number of passes or Newton steps of a subproblem (at most 1000 for "
        "both, except in the joint problem), and the peak memory of the process, including data "
        "and libraries.",
        [
            *("data", "loss", "tol", "objective", "peer's", "gap", "our tol", "steps", "peer's"),
            *("peak MB", "peer's"),
        ],
        [[*row[:3], *row[8:]] for row in rows],
    )
    if losses:
        report.table(
            "Linear SVMs: slower than the peer",
            "Fits in which the peer was faster.",
            ["fit", "threads", "ratio"],
            losses,
        )


def losses_of(name):
    return list(LOSSES) if name in SEVERAL_CLASSES else ["hinge", "squared hinge"]


def measured(bench, name, loss, tol, chosen):
    """Measure one row of the tables."""
    task = {"name": name, "loss": loss, "tol": tol, "data": chosen.data, "rows": chosen.rows}
    task["budget"] = chosen.budget
    peer = bench.run("peer", threads=1, **task)
    one = bench.run("ours", threads=1, target=peer["objective"], **task)
    # Alternately in one process: other load on the computer then slows both down.
    turns = bench.run("turns", threads=1, our_tol=one["tol"], **task)
    peer["seconds"], one["seconds"] = turns["peer"], turns["ours"]
    two = None
    if name in SEVERAL_CLASSES:
        two = bench.run("ours", threads=2, our_tol=one["tol"], **task)
    found = {"peer": peer, 1: one, 2: two}
    shown_runs = (f"{who} {run['seconds']:.3f} s" for who, run in found.items() if run)
    print(f"{name}, {loss}, tol={tol:g}: {', '.join(shown_runs)}", flush=True)
    return found


def cells(found):
    peer, one, two = found["peer"], found[1], found[2]
    return [
        *(f"{peer['seconds']:.3f}", f"{one['seconds']:.3f}", shown(ratio(found, 1))),
        *((f"{two['seconds']:.3f}", shown(ratio(found, 2))) if two else ("", "")),
        *(f"{one['objective']:.4f}", f"{peer['objective']:.4f}", f"{one['gap']:.0e}"),
        *(f"{one['tol']:.2g}", f"{one['steps']}", f"{peer['steps']}"),
        *(f"{run['megabytes']:.0f}" for run in (one, peer)),
    ]


def judge(report, what, found):
    """Report whether the bars were met; return the rows in which the peer was faster."""
    one = ratio(found, 1)
    report.bar(f"{what}: at least 0.9 times as fast with one thread", one, one >= 0.9)
    if found[2]:
        two = ratio(found, 2)
        report.bar(f"{what}: faster with two threads", two, two > 1)
    excess = found[1]["objective"] / found["peer"]["objective"] - 1
    report.bar(f"{what}: objective no higher than the peer's", excess, excess <= 0)
    threads = [1, 2] if found[2] else [1]
    return [[what, f"{t}", shown(ratio(found, t))] for t in threads if ratio(found, t) < 1]


def ratio(found, threads):
    return found["peer"]["seconds"] / found[threads]["seconds"]


def grid(bench, report, chosen):
    """Fit two classes over a grid of C and tol, on one thread."""
    rows, ratios = [], []
    for name, loss in product(available(HALVES, chosen), ("hinge", "squared hinge")):
        for C, tol in product(COSTS, TOLERANCES):
            task = {"name": name, "loss": loss, "C": C, "tol": tol, "data": chosen.data}
            task |= {"rows": chosen.rows, "budget": chosen.budget}
            found = bench.run("grid", threads=1, **task)
            ours, peer = found["ours"], found["peer"]
            ratios.append(peer["seconds"] / ours["seconds"])
            excess = ours["objective"] / peer["objective"] - 1
            rows.append(
                [
                    *(name, loss, f"{C:g}", f"{tol:g}", f"{ours['tol']:.2g}"),
                    *(f"{who['seconds']:.3f}" for who in (ours, peer)),
                    *(shown(ratios[-1]), f"{ours['steps']}", f"{peer['steps']}", f"{excess:.0e}"),
                ]
            )
            what = f"{name} in halves, {loss}, C={C:g}, tol={tol:g}"
            print(f"{what}: {shown(ratios[-1])}", flush=True)
            report.bar(f"{what}: objective no higher than the peer's", excess, excess <= 0)
    report.table(
        "Linear SVMs: a grid of C and tol",
        f"Two classes, one thread, at most {MOST_PASSES:,} passes or steps for both: tolerance of "
        "the peer and ours, processor seconds of both, fitted alternately, the time of the peer "
        "divided by ours, passes or steps (ours count passes over some of the samples by their "
        "share), and by how much our objective is higher.",
        [
            *("data", "loss", "C", "tol", "our tol", "s", "peer's", "ratio", "steps", "peer's"),
            "objective",
        ],
        rows,
    )
    worst, mean = min(ratios), geometric_mean(ratios)
    report.bar("grid of C and tol: at least 0.8 times as fast everywhere", worst, worst >= 0.8)
    report.bar("grid of C and tol: 1.3 times as fast on average", mean, mean >= 1.3)


def exact(bench, report, chosen):
    """Compare the optima of both at a small tolerance on real data."""
    rows = []
    for name in available(REAL, chosen):
        for loss in losses_of(name):
            some_rows = None if chosen.full or (name, loss) not in LONG_EXACT else EXACT_ROWS
            task = {"name": name, "loss": loss, "data": chosen.data}
            found = bench.run("exact", rows=chosen.rows or some_rows, **task)
            apart = found["peer objective"] / found["objective"] - 1
            rows.append(
                [
                    *(
                        name,
                        f"{found['rows']:,}",
                        loss,
                        f"{found['objective']:.6f}",
                        f"{found['peer objective']:.6f}",
                    ),
                    *(f"{apart:.1e}", f"{found['gap']:.0e}", f"{found['ours']:.2f}"),
                    f"{found['peer']:.2f}",
                ]
            )
            met = apart >= -SAME_OBJECTIVE
            what = f"{name}, {found['rows']:,} samples, {loss}"
            claim = f"{what}: objective within {SAME_OBJECTIVE:g} of liblinear's, or lower"
            report.bar(claim, apart, met)
    if rows:
        report.table(
            "Equality of the optima",
            f"Both with {', '.join(f'{key}={value:g}' for key, value in TIGHT.items())}.",
            [
                *("data", "samples", "loss", "objective", "peer's", "difference"),
                *("gap", "s", "peer's s"),
            ],
            rows,
        )


def kernels(bench, report, chosen):
    """Compare the Crammer-Singer SVM with a kernel with one-vs-one and one-vs-rest."""
    rows = []
    for name in available(KERNEL, chosen):
        task = {"name": name, "data": chosen.data, "rows": chosen.rows}
        settings = bench.run("select", **task)
        for who in MACHINES:
            found = bench.run("kernel", who=who, settings=settings, **task)
            print(f"{name}, {who}: {found['seconds']:.2f} s, {found['accuracy']:.4f}", flush=True)
            rows.append(
                [
                    *(name, f"{settings['C']:g}", f"{settings['gamma']:g}", who),
                    *(f"{found['seconds']:.2f}", f"{found['predict seconds']:.2f}"),
                    *(f"{found['accuracy']:.4f}", f"{found['support']:,}"),
                    *(found["gap"], f"{found['megabytes']:.0f}"),
                ]
            )
    if rows:
        report.table(
            "Several classes with a kernel",
            "C and gamma are chosen by SVCCV, one-vs-one, on the training samples (at most "
            f"{SEARCHED_ROWS:,} of them), and are the same for all. Accuracy on the test samples.",
            [
                *("data", "C", "gamma", "estimator", "fit s", "predict s", "accuracy"),
                *("support vectors", "gap", "peak MB"),
            ],
            rows,
        )


def small(bench, report, chosen):
    """Compare fits of less than a few milliseconds, on one thread."""
    rows = []
    for name, losses in SMALL.items():
        for loss in losses:
            task = {"name": name, "loss": loss, "budget": chosen.budget}
            found = bench.run("small", threads=1, **task)
            ours, theirs = found["ours"], found["liblinear"]
            faster = theirs["median"] / ours["median"]
            milliseconds = [f"{1000 * who['median']:.2f}" for who in (ours, theirs)]
            excess = ours["objective"] / theirs["objective"] - 1
            rows.append([name, loss, *milliseconds, shown(faster), f"{excess:.1e}"])
            claim = f"{name}, {loss}: at least as fast as liblinear"
            report.bar(claim, faster, faster >= 1)
            claim = f"{name}, {loss}: objective not above liblinear's"
            report.bar(claim, excess, excess <= SAME_OBJECTIVE)
    report.table(
        "Small problems",
        "Default parameters on standardized features, fitted alternately in one process on one "
        "thread: medians of its CPU time in milliseconds, and by how much our objective is higher.",
        ["data", "loss", "ms", "liblinear's", "ratio", "objective"],
        rows,
    )


PARTS = {"fits": fits, "grid": grid, "exact": exact, "kernels": kernels, "small": small}


def available(names, chosen):
    """Return the available data sets; print the names of the others."""
    kept = [name for name in names if chosen.data or name in (*GENERATED, "satimage")]
    if len(kept) < len(names):
        missing = "; ".join(name for name in names if name not in kept)
        print(f"\nLeft out without --data: {missing}.")
    return kept


# The tasks below run in the measured processes.


def compile_task(loss, sparse):
    import numpy as np
    from scipy.sparse import csr_array

    X, y = np.random.default_rng(0).standard_normal((60, 5)), np.arange(60) % 3
    model = ours_of(loss) if loss in LOSSES else joint_of(C=1.0, gamma=0.2)
    X = csr_array(X) if sparse else X
    first, warm = repeated(lambda: quietly(model, X, y), 0.2)
    return {"first": first, "warm": warm}


def peer_task(name, loss, tol, data, rows, budget):
    X, y = load(name, data, rows)[:2]
    model = quietly(peer_of(loss, tol=tol), X, y)
    return {
        "megabytes": peak_megabytes(),
        "objective": objective(model, loss, X, y),
        "steps": int(model.n_iter_),
    }


def ours_task(name, loss, tol, data, rows, budget, target=None, our_tol=None):
    X, y = load(name, data, rows)[:2]
    jobs = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    quietly(ours_of(loss), *some(X, y, 200))  # loads the compiled code
    if our_tol is None:
        our_tol = largest_tolerance(loss, X, y, tol, target)
    model = ours_of(loss, tol=our_tol, n_jobs=jobs)
    seconds = fastest(lambda: quietly(model, X, y), budget)
    return {
        "seconds": seconds,
        "megabytes": peak_megabytes(),
        "tol": our_tol,
        "objective": objective(model, loss, X, y),
        "gap": float(model.dual_gap_.max()),
        "steps": int(model.n_iter_),
    }


def turns_task(name, loss, tol, our_tol, data, rows, budget):
    X, y = load(name, data, rows)[:2]
    ours, peer = ours_of(loss, tol=our_tol), peer_of(loss, tol=tol)
    quietly(ours_of(loss), *some(X, y, 200))  # loads the compiled code
    first, second = [], []
    while len(first) < 2 or sum(first + second) + first[-1] + second[-1] < 2 * budget:
        first.append(timed(lambda: quietly(ours, X, y)))
        second.append(timed(lambda: quietly(peer, X, y)))
    return {"ours": min(first), "peer": min(second)}


def grid_task(name, loss, C, tol, data, rows, budget):
    X, y = in_halves(*load(name, data, rows)[:2])
    settings = {"C": C, "max_iter": MOST_PASSES}
    peer = quietly(peer_of(loss, tol=tol, **settings), X, y)
    quietly(ours_of(loss), *some(X, y, 200))  # loads the compiled code
    target = objective(peer, loss, X, y, C)
    our_tol = largest_tolerance(loss, X, y, tol, target, **settings)
    models = {"ours": ours_of(loss, tol=our_tol, **settings), "peer": peer}
    seconds = {who: [] for who in models}
    while not seconds["peer"] or sum(map(sum, seconds.values())) < budget:
        for who, model in models.items():
            start = process_time()
            quietly(model, X, y)
            seconds[who].append(process_time() - start)
    return {
        who: {
            "seconds": min(seconds[who]),
            "objective": objective(model, loss, X, y, C),
            "steps": int(model.n_iter_),
            "tol": model.tol,
        }
        for who, model in models.items()
    }


def in_halves(X, y):
    """Return the samples with two labels: whether the class is one of the first half."""
    import numpy as np

    classes = np.unique(y)
    return X, np.isin(y, classes[: len(classes) // 2]).astype(int)


def largest_tolerance(loss, X, y, tol, target, **settings):
    """Return the largest tolerance for which our objective is not higher than the target."""

    def enough(rung):
        model = quietly(ours_of(loss, tol=tol * LADDER[rung], **settings), X, y)
        return objective(model, loss, X, y, model.C) <= target

    rung = LADDER.index(1)
    if enough(rung):
        while rung > 0 and enough(rung - 1):
            rung -= 1
    else:
        rung += 1
        while rung < len(LADDER) - 1 and not enough(rung):
            rung += 1
    return tol * LADDER[rung]


def fastest(function, budget):
    """Return the seconds of the fastest call within the budget."""
    seconds = [timed(function)]
    while sum(seconds) + seconds[-1] < budget:
        seconds.append(timed(function))
    return min(seconds)


def exact_task(name, loss, data, rows):
    X, y = load(name, data, rows)[:2]
    ours, peer = ours_of(loss, **TIGHT), peer_of(loss, **TIGHT)
    quietly(ours_of(loss), *some(X, y, 200))  # loads the compiled code
    return {
        "rows": X.shape[0],
        "ours": timed(lambda: quietly(ours, X, y)),
        "peer": timed(lambda: quietly(peer, X, y)),
        "objective": objective(ours, loss, X, y),
        "peer objective": objective(peer, loss, X, y),
        "gap": float(ours.dual_gap_.max()),
    }


def select_task(name, data, rows):
    from widemargin import SVCCV

    X, y = some(*load(name, data, rows)[:2], SEARCHED_ROWS)
    search = SVCCV(**GRID, cv=3, refit=False, n_jobs=2).fit(X, y)
    return {"C": search.C_, "gamma": search.gamma_}


def kernel_task(name, who, settings, data, rows):
    X, y, X_test, y_test = load(name, data, rows)
    model = MACHINES[who](**settings)
    _, seconds = repeated(lambda: quietly(model, X, y), 0)
    megabytes = peak_megabytes()
    predict_seconds = timed(lambda: model.predict(X_test))
    gap = getattr(model, "dual_gap_", None)
    return {
        "seconds": seconds,
        "predict seconds": predict_seconds,
        "accuracy": float(model.score(X_test, y_test)),
        "support": len(model.support_),
        "gap": ""
        if gap is None
        else f"{max(map(float, [gap] if isinstance(gap, float) else gap)):.0e}",
        "megabytes": megabytes,
    }


def small_task(name, loss, budget):
    from statistics import median

    X, y, *_ = bundled(name)
    models = {"ours": ours_of(loss), "liblinear": peer_of(loss)}
    seconds = {who: [] for who in models}
    once = timed(lambda: quietly(quietly(models["ours"], X, y), X, y))
    times = max(1, int(0.02 / once))
    while len(seconds["ours"]) < 5 or times * sum(map(sum, seconds.values())) < budget:
        for who, model in models.items():
            start = process_time()
            for _ in range(times):
                quietly(model, X, y)
            seconds[who].append((process_time() - start) / times)
    return {
        who: {"median": median(seconds[who]), "objective": objective(model, loss, X, y)}
        for who, model in models.items()
    }


TASKS = {
    "compile": compile_task,
    "peer": peer_task,
    "ours": ours_task,
    "turns": turns_task,
    "grid": grid_task,
    "exact": exact_task,
    "select": select_task,
    "kernel": kernel_task,
    "small": small_task,
}


def ours_of(loss, **settings):
    from widemargin import LinearSVC

    # Both stop after 1,000 passes by default; the peer has no limit in the joint problem.
    limit = {"max_iter": 100_000} if loss == "joint" else {}
    return LinearSVC(**LOSSES[loss], **{**limit, **settings})


def peer_of(loss, **settings):
    from sklearn.svm import LinearSVC

    return LinearSVC(**LOSSES[loss], random_state=0, **settings)


def joint_of(**settings):
    from widemargin import CrammerSingerSVC

    return CrammerSingerSVC(kernel="rbf", **settings)


def pairs_of(**settings):
    from widemargin import SVC

    return SVC(n_jobs=2, **settings)


def rest_of(**settings):
    from widemargin import SVC

    return SVC(multi_class="ovr", n_jobs=2, **settings)


def peer_pairs_of(**settings):
    from sklearn.svm import SVC

    return SVC(**settings)


MACHINES = {
    "CrammerSingerSVC": joint_of,
    "SVC, pairs": pairs_of,
    "SVC, one against the rest": rest_of,
    "scikit-learn's SVC, pairs": peer_pairs_of,
}


def quietly(model, X, y):
    """Fit without the warning that max_iter was reached: the tables report it."""
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y)


def objective(model, loss, X, y, C=1.0):
    """Return the sum of the objectives of all binary subproblems."""
    import numpy as np

    scores = X @ model.coef_.T + model.intercept_
    codes = np.searchsorted(model.classes_, y)
    two = len(model.classes_) == 2
    norm = np.sum(model.coef_**2) + np.sum(model.intercept_**2)
    if loss == "joint":
        if two:  # the one function is the difference of two, each other's negatives
            norm, scores = norm / 2, np.hstack([-scores, scores]) / 2
        own = scores[np.arange(len(codes)), codes]
        rivals = scores + (np.arange(scores.shape[1]) != codes[:, np.newaxis])
        return float(norm / 2 + C * np.sum(rivals.max(axis=1) - own))
    sign = np.where(codes[:, np.newaxis] == np.arange(len(model.classes_)), 1.0, -1.0)
    slack = np.maximum(0.0, 1.0 - (sign[:, 1:] if two else sign) * scores)
    return float(norm / 2 + C * np.sum(slack if loss == "hinge" else slack**2))


def load(name, data, rows):
    """Return training and test samples and their labels."""
    if name == SPARSE:
        parts = sparse_text(rows or 20_000)
    elif name == DENSE:
        parts = many_classes(rows or 10_000)
    else:
        parts = shipped(name) if name == "satimage" else stored(name, Path(data))
    return *some(*parts[:2], rows), *some(*parts[2:], rows)


def sparse_text(n, d=100_000, words=80):
    """Return samples of 80 words, some of them repeated, with noisy linear labels."""
    import numpy as np
    from scipy.sparse import csr_array
    from sklearn.preprocessing import normalize

    rng = np.random.default_rng(0)
    rows = np.repeat(np.arange(n, dtype=np.int32), words)
    columns = (rng.zipf(1.3, n * words) % d).astype(np.int32)
    X = csr_array((np.ones(n * words), (rows, columns)), shape=(n, d))
    X.sum_duplicates()
    X = csr_array(normalize(X))
    height = X @ rng.standard_normal(d) + 0.1 * rng.standard_normal(n)
    y = (height > np.median(height)).astype(int)
    return X, y, X, y


def many_classes(n):
    """Return samples of norm 1 in 20 classes that overlap."""
    from sklearn.datasets import make_classification
    from sklearn.preprocessing import StandardScaler, normalize

    X, y = make_classification(
        n_samples=n, n_features=200, n_informative=60, n_classes=20, class_sep=2.0, random_state=0
    )
    X = normalize(StandardScaler().fit_transform(X))
    return X, y, X, y


if __name__ == "__main__":
    main()
