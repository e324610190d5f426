"""Kernel SVMs compared with scikit-learn and scikit-learn-intelex.

    python benchmarks/core.py [--data DIR] [--full] [--json FILE] [--help]

Every fit is measured in a separate process, on the same data, with the same parameters and the same
tol. Ratios are the time of the peer divided by ours. The dual objective (lower is better) is
computed by this script in float64 from `dual_coef_` and the support vectors, in the same way for
all estimators.
"""

import os
from importlib import import_module
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from itertools import combinations_with_replacement, pairwise
from math import log
from pathlib import Path
from statistics import geometric_mean, linear_regression, median
from tempfile import TemporaryDirectory
from time import process_time

from _harness import (
    NO_CAUSE,
    Bench,
    Report,
    answer,
    causes,
    machine,
    options,
    peak_megabytes,
    repeated,
    timed,
)

MODELS = {"ours": "widemargin", "scikit-learn": "sklearn.svm", "intelex": "sklearnex.svm"}
BUNDLED = ("iris", "wine", "breast cancer", "digits")
SHIPPED = ("vowel", "satimage")
SMALL = (*BUNDLED, *SHIPPED, "3,000 x 20")
# The parameters of ijcnn1 are those of Hsieh, Si and Dhillon (2014).
LARGE = {
    "20,000 x 100": {"C": 1.0, "gamma": 1 / 100},
    "5,000 x 780": {"C": 10.0, "gamma": 1 / 780},
    "a9a": {"C": 8.0, "gamma": 1 / 32},
    "ijcnn1": {"C": 32.0, "gamma": 2.0},
    "mnist 20,000": {"C": 10.0, "gamma": 0.02},
}
LARGEST = {"mnist 60,000": {"C": 10.0, "gamma": 0.02}}
LETTER = {"letter": {"C": 10.0, "gamma": 2.0}}
GENERATED = (
    *(*SMALL, "20,000 x 100", "5,000 x 780", "3,000 x 30", "4,000 x 25"),
    *("10,000 x 100", "15,000 x 20 noisy", "4,000 x 25 noisy"),
)
# How close fits are to the least work: to compute the kernel values of the support vectors once.
NEAR_LIMIT = {
    "10,000 x 100": {"C": 1.0, "gamma": 1 / 100},
    "15,000 x 20 noisy": {"C": 1.0, "gamma": 1 / 20},
    "mnist 10,000": {"C": 10.0, "gamma": 0.02},
    "letter halves": {"C": 10.0, "gamma": 2.0},
}
GROWTH = (5_000, 10_000, 20_000, 35_000, 49_990)
GRID = {"C": [0.5, 2.0, 8.0, 32.0, 128.0], "gamma": [0.125, 0.5, 1.0, 2.0, 8.0]}
# Searches on one thread: small ones, those that SVCCV was developed on, and others to check it.
SMALL_SEARCHES = {
    "iris": {"C": [0.1, 1.0, 10.0, 100.0], "gamma": [0.01, 0.1, 1.0]},
    "vowel": {"C": [0.1, 1.0, 10.0, 100.0], "gamma": [0.03, 0.1, 0.3]},
}
DEVELOPED_ON = {
    "satimage": GRID,
    "digits": {"C": [0.1, 1.0, 10.0, 100.0], "gamma": [0.001, 0.005, 0.02, 0.05]},
    "3,000 x 30": {"C": [0.1, 1.0, 10.0, 100.0], "gamma": [0.003, 0.03, 0.3]},
}
CHECKED_ON = {
    "4,000 x 25": {"C": [0.1, 1.0, 10.0, 100.0], "gamma": [0.003, 0.03, 0.3]},
    "ijcnn1 4,000": {"C": [1.0, 8.0, 32.0, 128.0], "gamma": [0.1, 0.5, 2.0, 8.0]},
    "mnist 2,000": {"C": [0.1, 1.0, 10.0, 100.0], "gamma": [0.003, 0.01, 0.03]},
    "letter 4,000": {"C": [1.0, 4.0, 16.0, 64.0], "gamma": [0.25, 1.0, 4.0]},
}
# Probabilities: sets on which the calibration was chosen, and others to check it.
CALIBRATED = {
    "chosen on": ("iris", "breast cancer", "digits", "3,000 x 20"),
    "checked on": ("wine", "vowel", "satimage", "4,000 x 25", "4,000 x 25 noisy", "letter 4,000"),
}
# How much larger a loss on new samples may be than scikit-learn's.
SAME_LOSS = 1.05
PREDICTED_ROWS = 4_000
BLOCK = 1_000
SAME_OBJECTIVE = 1e-4


def main(arguments=None):
    chosen = options(__doc__.splitlines()[0], PARTS, arguments)
    if chosen.task:
        answer(chosen.task, TASKS, cold=["compile"])
        return
    facts = machine("widemargin", "numpy", "scikit-learn", "numba", "scikit-learn-intelex")
    report = Report("core", chosen.json, facts)
    if "intelex" not in models():
        print(
            "scikit-learn-intelex is not installed and left out: pip install 'widemargin[bench]'."
        )
    with TemporaryDirectory() as cache:
        bench = Bench(__file__, NUMBA_CACHE_DIR=cache)
        # First, with an empty cache: all later fits load the compiled code.
        compilation(bench, report, chosen)
        for part in chosen.only:
            PARTS[part](bench, report, chosen)
    report.close()


def compilation(bench, report, chosen):
    rows = []
    for name in ("iris", "5,000 x 780"):
        cold, cached = (bench.run("compile", name=name, rows=chosen.rows) for _ in range(2))
        seconds = cold["first"], cached["first"], cached["warm"]
        rows.append([name, *(f"{value:.3f}" for value in seconds)])
    report.table(
        "Compilation",
        "Seconds of the first fit with an empty cache, in which the code is compiled; of the first "
        "fit of a later process, in which it is loaded; and of every other fit, as in the other "
        "tables.",
        ["data", "cold", "cached", "warm"],
        rows,
    )


def imports(bench, report, chosen):
    statements = ("import widemargin", "from widemargin import SVC", "from sklearn.svm import SVC")
    clock = "from time import perf_counter as now; start = now(); {}; print(now() - start)"
    seconds = {statement: [] for statement in statements}
    for _ in range(2 if chosen.rows else 7):
        for statement in statements:
            seconds[statement].append(float(bench.python(["-c", clock.format(statement)])))
    report.table(
        "Import",
        "Seconds in fresh interpreters, in alternation.",
        ["statement", "least s", "median s"],
        [[name, f"{min(values):.3f}", f"{median(values):.3f}"] for name, values in seconds.items()],
    )
    alone, ours, theirs = (min(seconds[statement]) for statement in statements)
    report.bar("import widemargin takes at most 0.1 s", alone, alone <= 0.1, " s")
    report.bar(
        "from widemargin import SVC takes at most 1.25 times sklearn.svm's",
        ours / theirs,
        ours <= 1.25 * theirs,
    )


def small(bench, report, chosen):
    rows = []
    for name in SMALL:
        task = {"name": name, "rows": chosen.rows, "budget": chosen.budget}
        found = bench.run("beside", threads=1, **task)
        ours, theirs = found["ours"], found["scikit-learn"]
        least, middle = (theirs[key] / ours[key] for key in ("least", "median"))
        rows.append(
            [
                name,
                *(f"{1000 * who['least']:.2f}" for who in (ours, theirs)),
                *(f"{least:.2f}", f"{middle:.2f}"),
                *(f"{who['objective']:.6f}" for who in (ours, theirs)),
            ]
        )
        report.bar(f"{name}: at least as fast as scikit-learn", middle, middle >= 1)
        compare_objectives(report, name, ours, theirs)
    report.table(
        "Small problems",
        "Default parameters, on one thread. Both are fitted alternately, many times, in one "
        "process; milliseconds of its CPU time.",
        [
            *("data", "least ms", "scikit-learn's", "ratio of least", "of medians"),
            *("objective", "scikit-learn's"),
        ],
        rows,
    )


def large(bench, report, chosen):
    sets = available(LARGE | (LARGEST if chosen.full else {}), chosen)
    runs = {name: fits(bench, name, settings, chosen) for name, settings in sets.items()}
    show_fits(report, "Large problems", runs)
    show_predictions(report, runs)
    show_losses(report, "Large problems", runs)
    for claim, peer, what, goal in (
        ("fit at least 8 times as fast as scikit-learn", "scikit-learn", "seconds", 8),
        ("fit faster than intelex", "intelex", "seconds", 1),
        ("predict at least 5 times as fast as scikit-learn", "scikit-learn", "predict seconds", 5),
    ):
        ratio = mean_ratio(runs, peer, what, 2)
        report.bar(f"large problems: {claim}, in the mean", ratio, ratio and ratio >= goal)


def limit(bench, report, chosen):
    """Compare fits with the least work, and with intelex, on one thread and on two."""
    rows = []
    for name, settings in available(NEAR_LIMIT, chosen).items():
        task = {"name": name, "settings": settings, "data": chosen.data, "rows": chosen.rows}
        for threads in (1, 2):
            found = bench.run("limit", threads=threads, budget=chosen.budget, **task)
            ours, least, peer = (found[key] for key in ("ours", "least", "intelex"))
            times, faster = ours / least, None if peer is None else peer / ours
            rows.append(
                [
                    *(name, str(threads), f"{found['support']:,}", f"{found['computed']:.2f}"),
                    *(f"{least:.3f}", f"{ours:.3f}", shown(times)),
                    *("" if peer is None else f"{peer:.3f}", "" if peer is None else shown(faster)),
                ]
            )
            where = f"{name}, threads {threads}"
            report.bar(f"{where}: at most 4 times the least work", times, times <= 4)
            claim = f"{where}: at least 1.5 times as fast as intelex"
            report.bar(claim, faster, faster and faster >= 1.5)
    report.table(
        "Near the limit",
        "Support vectors; kernel values that the fit computes, in units of those of the support "
        "vectors; seconds to compute the latter once in float32, seconds of our fit, and their "
        "ratio; seconds of intelex, and how many times as fast ours is. Least of several "
        "measurements of CPU time with one thread, of wall time with two.",
        [
            *("data", "threads", "support vectors", "values", "least s", "ours", "ratio"),
            *("intelex's", "ratio to it"),
        ],
        rows,
    )


def memory(bench, report, chosen):
    """Measure our estimator on the largest data set; --full compares it with the peers."""
    rows = []
    for name, settings in available(LARGEST, chosen).items():
        task = {"name": name, "settings": settings, "data": chosen.data, "rows": chosen.rows}
        found = bench.run("fit", model="ours", budget=0.0, judged=False, **task)
        used = found["megabytes"] / 1024
        rows.append([name, described(settings), f"{found['seconds']:.1f}", f"{used:.2f}"])
        report.bar(f"{name} samples: at most 4 GB", used, used <= 4, " GB")
    if rows:
        report.table(
            "Memory",
            "Our SVC only, two threads. The peak memory is that of the whole process.",
            ["data", "parameters", "s", "peak GB"],
            rows,
        )


def letter(bench, report, chosen):
    sets = available(LETTER, chosen)
    runs = {name: fits(bench, name, settings, chosen) for name, settings in sets.items()}
    if runs:
        show_fits(report, "325 small problems", runs)
        show_losses(report, "325 small problems", runs)
    ratio = mean_ratio(runs, "scikit-learn", "seconds", 2)
    report.bar("letter: at least 2 times as fast as scikit-learn", ratio, ratio and ratio >= 2)


def growth(bench, report, chosen):
    sets = available({"ijcnn1": LARGE["ijcnn1"]}, chosen)
    sizes = [chosen.rows // 4, chosen.rows // 2, chosen.rows] if chosen.rows else list(GROWTH)
    for name, settings in sets.items():
        task = {"name": name, "settings": settings, "data": chosen.data, "budget": chosen.budget}
        seconds = {"ours": [], "scikit-learn": []}
        for rows in sizes:
            for model, values in seconds.items():
                values.append(
                    bench.run("fit", model=model, rows=rows, judged=False, **task)["seconds"]
                )
        exponents = {model: exponent(sizes, values) for model, values in seconds.items()}
        lines = zip(sizes, *seconds.values(), strict=True)
        rows = [[f"{n:,}", f"{a:.2f}", f"{b:.2f}", f"{b / a:.1f}"] for n, a, b in lines]
        report.table(
            "Growth with the number of samples",
            f"{name}, {described(settings)}, two threads: seconds of a fit. The time grows "
            "like the number of samples to the power of the exponent.",
            ["samples", "ours", "scikit-learn", "ratio"],
            [*rows, ["exponent", *(f"{value:.2f}" for value in exponents.values()), ""]],
        )
        report.keep("growth", {"data": name, "rows": sizes, "seconds": seconds})


def tuning(bench, report, chosen):
    searches = {"SVCCV": "ours", "GridSearchCV over scikit-learn's SVC": "scikit-learn"}
    found = {
        name: bench.run("search", model=model, rows=chosen.rows, budget=chosen.budget)
        for name, model in searches.items()
    }
    ours, theirs = found.values()
    report.table(
        "Tuning",
        f"satimage, C in {GRID['C']}, gamma in {GRID['gamma']}, five folds, n_jobs=2, and a "
        "final fit on all samples. Memory is that of the calling process, without the workers of "
        "GridSearchCV.",
        ["search", "s", "ratio", "best C", "best gamma", "score", "peak MB"],
        [
            [
                name,
                *(f"{run['seconds']:.2f}", shown(run["seconds"] / ours["seconds"])),
                *(f"{run['C']:g}", f"{run['gamma']:g}", f"{run['score']:.4f}"),
                f"{run['megabytes']:.0f}",
            ]
            for name, run in found.items()
        ],
    )
    ratio = theirs["seconds"] / ours["seconds"]
    claim = "SVCCV: at least 10 times as fast as GridSearchCV over scikit-learn's SVC"
    report.bar(claim, ratio, ratio >= 10)


def searches(bench, report, chosen):
    """Compare SVCCV with GridSearchCV on one thread."""
    rows = []
    goals = ((SMALL_SEARCHES, 1, "small"), (DEVELOPED_ON, 8, "developed on"))
    for sets, goal, kind in (*goals, (CHECKED_ON, 8, "checked on")):
        for name, grid in available(sets, chosen).items():
            task = {"name": name, "grid": grid, "data": chosen.data, "rows": chosen.rows}
            found = bench.run("turns", threads=1, budget=chosen.budget, **task)
            ours, theirs = found["ours"], found["scikit-learn"]
            faster = theirs["seconds"] / ours["seconds"]
            best = [", ".join(f"{who[key]:g}" for key in ("C", "gamma")) for who in (ours, theirs)]
            times = f"{ours['seconds']:.3f}", f"{theirs['seconds']:.3f}", shown(faster)
            rows.append([name, kind, *times, *best, f"{found['difference']:g}"])
            few = "once" if goal == 1 else f"{goal} times"
            report.bar(
                f"{name}: SVCCV at least {few} as fast as GridSearchCV", faster, faster >= goal
            )
            regret = theirs["score"] - found["score of our choice"]
            report.bar(f"{name}: SVCCV chooses a point of the best score", regret, regret <= 0, "")
    report.table(
        "Searches on one thread",
        "Seconds of CPU time of SVCCV and of GridSearchCV over scikit-learn's SVC in one process, "
        "five folds and a final fit; best C and gamma; largest difference of a mean score, in "
        "samples.",
        ["data", "set", "s", "GridSearchCV's", "ratio", "best", "GridSearchCV's", "difference"],
        rows,
    )


def probabilities(bench, report, chosen):
    sets = {name: kind for kind, names in CALIBRATED.items() for name in names}
    runs = {
        name: bench.run(
            "probabilities", threads=1, name=name, data=chosen.data, rows=chosen.rows,
            budget=chosen.budget,
        )
        for name in available(sets, chosen)
    }  # fmt: skip
    if not runs:
        return
    peers = [model for model in next(iter(runs.values())) if model != "ours"]
    every = ["ours", *peers]
    report.table(
        "Probabilities",
        "SVC(probability=True) with C=1 beside scikit-learn's CalibratedClassifierCV over its SVC, "
        "with one model (ensemble=False) and with one for each of five folds, and its "
        "SVC(probability=True). Log loss and Brier score on new samples; the share of new samples "
        "whose most probable class is not the predicted one (of CalibratedClassifierCV, that "
        "predict of an SVC on the same samples returns); seconds of processor time on one thread, "
        "in one process, in turns.",
        [
            *("data", "used", *(f"log loss {model}" for model in every)),
            *(f"Brier {model}" for model in every),
            *(f"disagree {model}" for model in every),
            *("s", *(f"times {model}" for model in peers)),
        ],
        [
            [
                *(name, sets[name]),
                *(f"{run[model]['log loss']:.4f}" for model in every),
                *(f"{run[model]['brier']:.4f}" for model in every),
                *(f"{run[model]['disagree']:.2%}" for model in every),
                f"{run['ours']['seconds']:.3f}",
                *(shown(run[model]["seconds"] / run["ours"]["seconds"]) for model in peers),
            ]
            for name, run in runs.items()
        ],
    )
    for name, run in runs.items():
        ours = run["ours"]["log loss"]
        for model in ("calibrated", "SVC"):
            factor = ours / run[model]["log loss"]
            claim = f"{name}: log loss at most {SAME_LOSS} times that of {model}"
            report.bar(claim, factor, factor <= SAME_LOSS)
    for model in peers:
        mean = geometric_mean(
            run[model]["seconds"] / run["ours"]["seconds"] for run in runs.values()
        )
        report.bar(f"probabilities take less time than {model}", mean, mean >= 1.0, " times")


PARTS = {
    "imports": imports,
    "small": small,
    "large": large,
    "limit": limit,
    "memory": memory,
    "letter": letter,
    "growth": growth,
    "tuning": tuning,
    "searches": searches,
    "probabilities": probabilities,
}


def models():
    return [model for model, module in MODELS.items() if find_spec(module.split(".")[0])]


def available(sets, chosen):
    """Return the available data sets; print the names of the others."""
    missing = [] if chosen.data else [name for name in sets if name not in GENERATED]
    if missing:
        print(f"\nLeft out without --data: {'; '.join(missing)}.")
    return {name: settings for name, settings in sets.items() if name not in missing}


def fits(bench, name, settings, chosen):
    """Measure all estimators on one data set; return results by number of threads."""
    task = {"name": name, "settings": settings, "data": chosen.data, "rows": chosen.rows}
    task["budget"] = chosen.budget
    two = {model: bench.run("fit", model=model, **task) for model in models()}
    one = {
        # scikit-learn's SVC always uses one thread.
        model: two[model]
        if model == "scikit-learn"
        else bench.run("fit", threads=1, model=model, judged=False, **task)
        for model in two
    }
    run = {1: one, 2: two}
    for threads, found in run.items():
        seconds = ", ".join(f"{model} {what['seconds']:.2f} s" for model, what in found.items())
        print(f"{name}, {described(settings)}, threads {threads}: {seconds}", flush=True)
    return run


def show_fits(report, title, runs):
    peers = models()[1:]
    pairs = [(threads, peer) for threads in (2, 1) for peer in peers]
    rows = [
        [
            name,
            *(f"{run[threads]['ours']['seconds']:.2f}" for threads in (2, 1)),
            *(shown(ratio(run, peer, "seconds", threads)) for threads, peer in pairs),
        ]
        for name, run in runs.items()
    ]
    means = [shown(mean_ratio(runs, peer, "seconds", threads)) for threads, peer in pairs]
    report.table(
        f"{title}: time to fit",
        "Seconds with two threads and with one, and the time of each peer with as many threads "
        "divided by ours (scikit-learn's SVC uses one).",
        [
            *("data", "2 threads", "1 thread"),
            *(f"times {peer}, {threads}" for threads, peer in pairs),
        ],
        [*rows, ["geometric mean", "", "", *means]],
    )
    report.table(
        f"{title}: objectives and memory",
        "Dual objectives (lower is better), and the peak memory of the whole process, including "
        "data and libraries.",
        [
            *("data", "parameters", "support vectors", "objective", *(f"{p}'s" for p in peers)),
            *("peak MB", *(f"{peer}'s" for peer in peers)),
        ],
        [
            [
                name,
                described(run[2]["ours"]["settings"]),
                f"{run[2]['ours']['support']:,}",
                *(f"{found['objective']:.4f}" for found in run[2].values()),
                *(f"{found['megabytes']:.0f}" for found in run[2].values()),
            ]
            for name, run in runs.items()
        ],
    )
    for name, run in runs.items():
        compare_objectives(report, name, run[2]["ours"], run[2]["scikit-learn"])


def show_predictions(report, runs):
    peers = models()[1:]
    rows = [
        [
            name,
            f"{run[2]['ours']['predicted']:,}",
            f"{run[2]['ours']['predict seconds']:.3f}",
            *(shown(ratio(run, peer, "predict seconds", 2)) for peer in peers),
            *(f"{found['accuracy']:.4f}" for found in run[2].values()),
        ]
        for name, run in runs.items()
    ]
    means = [shown(mean_ratio(runs, peer, "predict seconds", 2)) for peer in peers]
    blank = [""] * (1 + len(peers))
    report.table(
        "Prediction",
        "Seconds with two threads, and the time of each peer divided by ours.",
        [
            *("data", "samples", "s", *(f"times {peer}" for peer in peers)),
            *("accuracy", *(f"{peer}'s" for peer in peers)),
        ],
        [*rows, ["geometric mean", "", "", *means, *blank]],
    )


def show_losses(report, title, runs):
    tasks = {"fit": "seconds", "predict": "predict seconds"}
    rows = [
        [
            name,
            peer,
            str(threads),
            task,
            shown(value),
            causes("core").get(f"{name}, {task}", NO_CAUSE),
        ]
        for name, run in runs.items()
        for threads, task in ((2, "fit"), (1, "fit"), (2, "predict"))
        for peer in models()[1:]
        if (value := ratio(run, peer, tasks[task], threads)) < 1
    ]
    if rows:
        header = ["data", "peer", "threads", "task", "ratio", "cause"]
        report.table(
            f"{title}: slower than a peer",
            "Fits and predictions in which a peer was faster, with the cause.",
            header,
            rows,
        )


def compare_objectives(report, name, ours, theirs):
    """Report whether our dual objective is at most that of scikit-learn."""
    excess = (ours["objective"] - theirs["objective"]) / abs(theirs["objective"])
    claim = f"{name}: dual objective at most {SAME_OBJECTIVE:g} above scikit-learn's"
    report.bar(claim, excess, excess <= SAME_OBJECTIVE)


def ratio(run, peer, what, threads):
    return run[threads][peer][what] / run[threads]["ours"][what]


def mean_ratio(runs, peer, what, threads):
    if not runs or peer not in models():
        return None
    return geometric_mean(ratio(run, peer, what, threads) for run in runs.values())


def exponent(sizes, seconds):
    """Return the exponent of the growth of the time with the size."""
    return linear_regression([log(n) for n in sizes], [log(s) for s in seconds]).slope


def shown(value):
    return f"{value:.2f}" if value < 10 else f"{value:.1f}"


def described(settings):
    return ", ".join(f"{name}={value:.4g}" for name, value in settings.items())


# The tasks below run in the measured processes.


def compile_task(name, rows):
    X, y, *_ = load(name, None, rows)
    ours = make_estimator("ours")
    first, warm = repeated(lambda: ours.fit(X, y), 0.5)
    return {"first": first, "warm": warm}


def beside_task(name, rows, budget):
    X, y, *_ = load(name, None, rows)
    estimators = {model: make_estimator(model).fit(X, y) for model in ("ours", "scikit-learn")}
    seconds = {model: [] for model in estimators}
    # Several fits at a time, since reading the clock takes long beside a short one.
    once = timed(lambda: estimators["ours"].fit(X, y))
    times = max(1, int(0.02 / once))
    while len(seconds["ours"]) < 5 or times * sum(map(sum, seconds.values())) < budget:
        for model, fitted in estimators.items():
            start = process_time()
            for _ in range(times):
                fitted.fit(X, y)
            seconds[model].append((process_time() - start) / times)
    gamma = 1 / (X.shape[1] * X.var())
    return {
        model: {
            "least": min(seconds[model]),
            "median": median(seconds[model]),
            "objective": dual_objective(fitted, gamma),
        }
        for model, fitted in estimators.items()
    }


def fit_task(name, model, settings, data, rows, budget, judged=True):
    X, y, X_test, y_test = load(name, data, rows)
    fitted = make_estimator(model, **settings)
    if model == "ours":
        # The peers have no such parameter; it matters for many small subproblems.
        fitted.set_params(n_jobs=int(os.environ["OMP_NUM_THREADS"]))
    _, seconds = repeated(lambda: fitted.fit(X, y), budget)
    found = {
        "settings": settings,
        "seconds": seconds,
        "megabytes": peak_megabytes(),
        "support": len(fitted.support_),
    }
    if judged:
        _, found["predict seconds"] = repeated(lambda: fitted.predict(X_test), budget / 2)
        found["predicted"] = X_test.shape[0]
        found["accuracy"] = float(fitted.score(X_test, y_test))
        found["objective"] = dual_objective(fitted, settings["gamma"])
    return found


def limit_task(name, settings, data, rows, budget):
    """Measure both fits and the least work in turns, so that load meets all of them."""
    from time import perf_counter

    from widemargin.kernels import KernelGram, kernel_function

    X, y, *_ = load(name, data, rows)
    clock = process_time if os.environ["OMP_NUM_THREADS"] == "1" else perf_counter
    fitted = {
        model: make_estimator(model, **settings) for model in models() if model != "scikit-learn"
    }
    computed = count_values(KernelGram, lambda: fitted["ours"].fit(X, y))
    gram = KernelGram(kernel_function("rbf", gamma=settings["gamma"]), X).as_float32(0)
    support = fitted["ours"].support_

    def least():
        out = gram.block(support[:BLOCK])
        for start in range(BLOCK, len(support), BLOCK):
            part = support[start : start + BLOCK]
            gram.block(part, slice(None), out[: len(part)])

    tasks = {model: lambda own=own: own.fit(X, y) for model, own in fitted.items()}
    tasks["least"] = least
    seconds = {task: [] for task in tasks}
    while len(seconds["least"]) < 3 or sum(map(sum, seconds.values())) < budget:
        for task, run in tasks.items():
            start = clock()
            run()
            seconds[task].append(clock() - start)
    found = {task: min(values) for task, values in seconds.items()}
    return {
        "intelex": None,
        **found,
        "support": len(support),
        "computed": computed / (len(support) * len(y)),
    }


def count_values(gram, fit):
    """Return how many kernel values a fit writes to caches."""
    original, count = gram.block, 0

    def block(self, rows, columns=slice(None), out=None):
        nonlocal count
        count += 0 if out is None else out.size
        return original(self, rows, columns, out)

    gram.block = block
    fit()
    gram.block = original
    return count


def search_task(model, rows, budget):
    from sklearn.model_selection import GridSearchCV

    X, y, *_ = load("satimage", None, rows)
    if model == "ours":
        from widemargin import SVCCV

        search = SVCCV(Cs=GRID["C"], gammas=GRID["gamma"], cv=5, n_jobs=2)
    else:
        search = GridSearchCV(make_estimator(model), GRID, cv=5, n_jobs=2)
    _, seconds = repeated(lambda: search.fit(X, y), budget)
    best = {"C": search.C_, "gamma": search.gamma_} if model == "ours" else search.best_params_
    score = float(search.best_score_)
    return {**best, "seconds": seconds, "score": score, "megabytes": peak_megabytes()}


def turns_task(name, grid, data, rows, budget):
    """Run both searches in one process; ours twice, since the first one loads its code."""
    import numpy as np
    from sklearn.model_selection import GridSearchCV

    from widemargin import SVCCV

    X, y, *_ = load(name, data, rows)
    ours = SVCCV(Cs=grid["C"], gammas=grid["gamma"], cv=5)
    peer = GridSearchCV(make_estimator("scikit-learn"), grid, cv=5)
    seconds = {"ours": [], "scikit-learn": []}
    ours.fit(X, y)
    while not seconds["ours"] or sum(map(sum, seconds.values())) < budget:
        for model, search in (("ours", ours), ("scikit-learn", peer)):
            start = process_time()
            search.fit(X, y)
            seconds[model].append(process_time() - start)
    means = [np.asarray(search.cv_results_["mean_test_score"]) for search in (ours, peer)]
    best = {"ours": ours, "scikit-learn": peer}
    return {
        **{
            model: {**search.best_params_, "seconds": min(seconds[model])}
            | {"score": float(search.best_score_)}
            for model, search in best.items()
        },
        "score of our choice": float(means[1][means[0].argmax()]),
        "difference": float(np.abs(means[0] - means[1]).max() * len(y)),
    }


def probabilities_task(name, data, rows, budget):
    """Fit all estimators with probabilities in turns; ours first once, to load its code."""
    import warnings

    import numpy as np
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.metrics import log_loss
    from sklearn.model_selection import train_test_split
    from sklearn.svm import SVC

    warnings.simplefilter("ignore", FutureWarning)  # scikit-learn deprecates its probabilities
    X, y, X_test, y_test = load(name, data, rows)
    if name in BUNDLED:
        X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
    estimators = {
        "ours": make_estimator("ours", probability=True),
        "calibrated": CalibratedClassifierCV(SVC(), ensemble=False),
        "calibrated, 5 models": CalibratedClassifierCV(SVC()),
        "SVC": SVC(probability=True, random_state=0),
    }
    predicted = estimators["ours"].fit(X, y).predict(X_test)
    seconds = {model: [] for model in estimators}
    while not seconds["SVC"] or sum(map(sum, seconds.values())) < budget:
        for model, estimator in estimators.items():
            start = process_time()
            estimator.fit(X, y)
            seconds[model].append(process_time() - start)
    found = {}
    for model, estimator in estimators.items():
        p = estimator.predict_proba(X_test)
        truth = y_test[:, np.newaxis] == estimator.classes_
        labels = estimator.predict(X_test) if hasattr(estimator, "support_") else predicted
        found[model] = {
            "seconds": min(seconds[model]),
            "log loss": float(log_loss(y_test, p, labels=estimator.classes_)),
            "brier": float(((p - truth) ** 2).sum(axis=1).mean()),
            "disagree": float((estimator.classes_[p.argmax(axis=1)] != labels).mean()),
        }
    return found


TASKS = {
    "compile": compile_task,
    "beside": beside_task,
    "fit": fit_task,
    "limit": limit_task,
    "search": search_task,
    "turns": turns_task,
    "probabilities": probabilities_task,
}


def make_estimator(model, **settings):
    return import_module(MODELS[model]).SVC(**settings)


def load(name, data, rows):
    """Return training and test samples and their labels: fixed draws of at most `rows`."""
    own = PREPARED.get(name)
    if " x " in name:
        shape = name.removesuffix(" noisy")
        size, features = (int(number.replace(",", "")) for number in shape.split(" x "))
        parts = generated(min(rows or size, size), features, 0.01 if shape == name else 0.3)
    elif name in BUNDLED:
        parts = bundled(name)
    elif name in SHIPPED:
        parts = shipped(name)
    else:
        name, _, most = name.removesuffix(" halves").partition(" ")
        limits = [number for number in (rows, int(most.replace(",", "") or 0)) if number]
        rows = min(limits, default=None)
        parts = stored(name, Path(data))
    prepare = own or PREPARED.get(name, lambda X, y: (X, y))
    train = some(*parts[:2], rows)
    test = some(*parts[2:], min(rows or PREDICTED_ROWS, PREDICTED_ROWS))
    return *prepare(*train), *prepare(*test)


def generated(rows, features, noise):
    """Return generated samples, a share ``noise`` of which has labels at random."""
    from sklearn.datasets import make_classification
    from sklearn.preprocessing import StandardScaler

    X, y = make_classification(
        rows + PREDICTED_ROWS,
        features,
        n_informative=min(100, 2 * features // 5),
        n_redundant=0,
        flip_y=noise,
        random_state=0,
    )
    X = StandardScaler().fit(X[:rows]).transform(X)
    return X[:rows], y[:rows], X[rows:], y[rows:]


def bundled(name):
    from sklearn import datasets
    from sklearn.preprocessing import StandardScaler

    X, y = getattr(datasets, f"load_{name.replace(' ', '_')}")(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    return X, y, X, y


def shipped(name):
    read = getattr(import_module("widemargin.datasets"), f"load_{name}")
    return *read(subset="train", return_X_y=True), *read(subset="test", return_X_y=True)


def stored(name, folder):
    spec = spec_from_file_location("load", folder / "load.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    data = module.load(name)
    return [data[key] for key in ("X_train", "y_train", "X_test", "y_test")]


def as_sparse_matrix(X, y):
    from scipy.sparse import csr_matrix

    return csr_matrix(X), y


PREPARED = {
    "a9a": as_sparse_matrix,  # not every peer takes sparse arrays
    "ijcnn1": lambda X, y: (X.toarray(), y),  # more than half of its values are not zero
    "mnist": lambda X, y: (X / 255, y % 2),
    "letter halves": lambda X, y: (X, 2 * y > y.max()),
}


def some(X, y, rows):
    """Return a fixed draw of this number of samples, or all in their order."""
    import numpy as np

    if rows is None or rows >= X.shape[0]:
        return X, y
    chosen = np.random.default_rng(0).permutation(X.shape[0])[:rows]
    return X[chosen], y[chosen]


def dual_objective(fitted, gamma):
    """1/2 beta' K beta - sum |beta| over all pairs of classes, K in float64, class by class.

    The column of a support vector of class c contains its coefficients in the binary subproblems of
    c and each other class, in order.
    """
    import numpy as np
    from sklearn.metrics.pairwise import rbf_kernel

    coef = fitted.dual_coef_
    coef = coef.toarray() if hasattr(coef, "toarray") else np.asarray(coef)
    ends = np.cumsum([0, *fitted.n_support_])
    classes = [slice(start, stop) for start, stop in pairwise(ends)]
    total = -np.abs(coef).sum()
    for (i, first), (j, second) in combinations_with_replacement(enumerate(classes), 2):
        for start in range(first.start, first.stop, BLOCK):
            rows = slice(start, min(start + BLOCK, first.stop))
            vectors = fitted.support_vectors_
            K = rbf_kernel(vectors[rows], vectors[second], gamma=gamma)
            if i == j:
                total += ((coef[:, rows] @ K) * coef[:, second]).sum() / 2
            else:
                total += coef[j - 1, rows] @ K @ coef[i, second]
    return float(total)


if __name__ == "__main__":
    main()
