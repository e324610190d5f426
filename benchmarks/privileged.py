"""SVM2+ compared with SVM1+, its QP, SVM-2K and SVC: training time, and gain in accuracy.

    python benchmarks/privileged.py [--data DIR] [--full] [--json FILE] [--help]
    python benchmarks/privileged.py --only methods

Speed is measured on generated data in the two shapes of the method's paper and over growing numbers
of samples, with linear kernels on both sides and C = penalty = 1. The QP of SVM1+ is its dual,
passed to Clarabel as it stands, for some of the classes; its time for all of them is their mean
times the number of classes, without the time to compute its matrices. The part "methods" compares
the two methods that SVM1+ and SVM-2K may start with, and takes a few minutes: a fit that takes
longer than 5 seconds is stopped, and reported as stopped. The part "exact" compares objectives of
SVM1+ with those of its QP. Accuracy is measured over random splits;
parameters are chosen on validation samples, neither trained nor tested on, from equally many
candidates for all classifiers. The part "suite" compares the defaults, which choose their
parameters in folds of few training samples, with an SVC on seventeen data sets, with controls.
"""

import warnings
from functools import partial
from importlib.util import find_spec
from itertools import product
from statistics import geometric_mean, mean, stdev
from time import perf_counter, process_time
from unittest.mock import patch

from _harness import Bench, Report, answer, loader, machine, options, repeated

SHAPES = {
    "1,020 x 4,096, 102 classes": {"classes": 102, "privileged": "one text for each class"},
    "760 x 4,096, 76 classes": {"classes": 76, "privileged": "2,000 tags for each row"},
}
GROWTH = (500, 1000, 2000, 5000, 10_000, 20_000)
LARGEST = {"QP of SVM1+": 2000, "SVM1+": 5000, "SVM-2K": 5000}
QP_CLASSES = 3
TO_TOL = "SVC that stops at tol"
SPLITS = 20
GRID = [0.01, 0.1, 1.0, 10.0, 100.0]
WIDTHS = [1 / 16, 1 / 4, 1.0, 4.0, 16.0]
TRAINED = (40, 60, 80, 100)
SUITE = (
    "breast_cancer", "wine", "iris", "diabetes", "generated, difficulty",
    "generated, noise of the label", "generated, unrelated", "satimage", "yeast",
    "satimage, cover of the class", "vowel", "vowel, articulation of the class",
    "digits, coarse pixels", "digits, tags", "digits, segments of the class",
)  # fmt: skip
# Need --data.
TEXTS_OF_SUITE = ("texts, rare words", "texts, description of the class")
TEXT_CLASSES = 10
TEXT_WORDS = 500
BASELINES = {"SVC, one-vs-rest": "ovr", "SVC, one-vs-one": "ovo"}
SUITE_ROWS = 80
SUITE_SPLITS = 10
# Class-level vectors: the segments of a display that show a digit; lips, height and position of
# the tongue of a vowel; red, grey, damp or grown over, the ground of a satellite image.
SEGMENTS = (
    "1110111", "0010010", "1011101", "1011011", "0111010", "1101011", "1101111", "1010010",
    "1111111", "1111011",
)  # fmt: skip
ARTICULATION = (
    (0, 3, 0), (0, 3, 0), (0, 2, 0), (0, 1, 0), (0, 1, 1), (0, 0, 2), (1, 0, 2), (1, 1, 2),
    (1, 3, 2), (1, 3, 2), (0, 2, 1),
)  # fmt: skip
COVER = (
    (1, 0, 0, 0), (0, 0, 0, 2), (0, 1, 0, 0), (0, 1, 1, 0), (1, 0, 0, 1), (0, 1, 2, 0),
)  # fmt: skip
CLASS_LEVEL = {
    "digits, segments of the class": "digits, coarse pixels",
    "vowel, articulation of the class": "vowel",
    "satimage, cover of the class": "satimage",
}
BURSI = {"n": 200, "held_out": 1000}
PIXELS, TEXTS = 4096, 29_535
SIZES = (50, 200, 500)
LARGE = (1000, 2000)
KERNELS = ("linear, linear", "rbf, linear", "rbf, rbf", "linear, linear on texts")
LOW_RANK = ("linear, linear", "rbf, linear")
LONGEST = 5.0
EXACT_SIZES = (40, 150)
# C / penalty beyond which rounding errors limit the solver.
EXTREME = 1e8
# What the part "methods" compares: whether the interior-point method comes first, and tol.
METHODS = {
    "pairs": (False, 1e-3),
    "pairs, tol=1e-6": (False, 1e-6),
    "interior point": (True, 1e-3),
}


def main(arguments=None):
    chosen = options(__doc__.splitlines()[0], PARTS, arguments)
    if chosen.task:
        answer(chosen.task, TASKS)
        return
    facts = machine("widemargin", "numpy", "scipy", "scikit-learn", "numba", "clarabel")
    report = Report("privileged", chosen.json, facts)
    bench = Bench(__file__)
    bench.run("warm", qp=chosen.only != ["methods"])
    for part in chosen.only:
        PARTS[part](bench, report, chosen)
    report.close()


def shapes(bench, report, chosen):
    rows = []
    for name, shape in SHAPES.items():
        per_class = 2 if chosen.rows else 10
        task = {"per_class": per_class, "budget": chosen.budget, "threads": 1}
        found = bench.run("shape", **task, **shape)
        seconds = found["seconds"]
        own = seconds["SVM2+"]
        gaps = found["gaps"]
        rows += [
            [name, method, f"{value:.3f}", f"{value / own:.1f}", gaps.get(method, "-")]
            for method, value in seconds.items()
        ]
        ratio = seconds["QP of SVM1+"] / own
        report.bar(f"{name}: SVM2+ at least 100 times the QP of SVM1+", ratio, ratio >= 100)
        ratio = seconds["SVC"] / own
        report.bar(f"{name}: SVM2+ not slower than SVC", ratio, ratio >= 1.0)
        ratio = seconds[TO_TOL] / own
        report.bar(f"{name}: SVM2+ not slower than {TO_TOL}", ratio, ratio >= 1.0)
        for method in seconds:
            if "QP of SVM1+" in method:
                ratio = seconds[method] / seconds["SVM1+"]
                report.bar(f"{name}: SVM1+ at least 10 times the {method}", ratio, ratio >= 10.0)
        excess = found["excess"]
        report.bar(f"{name}: SVM1+ at most 2e-6 above its optimum", excess, excess <= 2e-6)
    report.table(
        "Time to train in the shapes of the paper",
        "Seconds of processor time for all classes, one-vs-rest, on one core. The QP is that of "
        f"{QP_CLASSES} classes times the number of all: the time within the solver. It is the dual "
        "one, by Clarabel; "
        "the primal one has Cholesky factors of both kernel matrices as features, by Clarabel and, "
        "if it is installed, PIQP. The privileged features are sparse: "
        "one vector of 29,535 features for each class, and 2,000 features for each sample. The "
        "ratio is to SVM2+. All stop at the same tol; with few free samples SVC and SVM-2K then "
        "continue to machine precision, which SVM2+ does not: one row is SVC without it. The gap "
        "is the largest relative duality gap of a class. The paper's ratio of SVM1+ to SVM2+ is "
        "110.6 and 92.5.",
        ["data", "method", "s", "times SVM2+", "gap"],
        rows,
    )


def growth(bench, report, chosen):
    sizes = [chosen.rows // 2, chosen.rows] if chosen.rows else GROWTH
    methods = ("SVM2+", "SVC", "SVM1+", "SVM-2K", "QP of SVM1+")
    seconds = {method: [] for method in methods}
    for n in sizes:
        wanted = [m for m in methods if n <= LARGEST.get(m, 10**9)]
        found = bench.run("grow", n=n, methods=wanted, budget=chosen.budget / 2, threads=1)
        for method in methods:
            seconds[method].append(found.get(method))
    shown = [
        [f"{n:,}", *("" if v is None else f"{v:.3f}" for v in values)]
        for n, *values in zip(sizes, *seconds.values(), strict=True)
    ]
    report.table(
        "Growth over samples",
        "Seconds of processor time to train, on one core: two overlapping classes, 50 features and "
        "100 privileged ones, one of which indicates how difficult a sample is, linear kernels. "
        "SVM1+ and SVM-2K hold two matrices of all samples; they were not run where the column is "
        "empty.",
        ["samples", *methods],
        shown,
    )
    report.keep("growth_of_methods", {"rows": list(sizes), "seconds": seconds})
    ratio = None
    if 1000 in sizes:
        place = list(sizes).index(1000)
        ratio = seconds["QP of SVM1+"][place] / seconds["SVM1+"][place]
    report.bar("SVM1+ at least 10 times its QP at 1,000 rows", ratio, ratio and ratio >= 10)


def methods(bench, report, chosen):
    rows, ratios = [], {}
    sizes = [chosen.rows] if chosen.rows else (*SIZES, *(LARGE if chosen.full else ()))
    for kernels, n in product(KERNELS, sizes):
        found = bench.run("compare", kernels=kernels, n=n)
        for solver, problems in found.items():
            seconds = {m: geometric_mean(p["seconds"][m] for p in problems) for m in METHODS}
            shown = []
            for method, value in seconds.items():
                stopped = sum(p["stopped"][method] for p in problems)
                gap = max(p["gaps"][method] for p in problems)
                shown += [f"{value:.4f}" + f" ({stopped} stopped)" * (stopped > 0), f"{gap:.0e}"]
                ratio = seconds["interior point"] / value
                ratios.setdefault((kernels, method), []).append(ratio)
            rows.append([kernels, f"{n:,}", solver, *shown])
        report.keep(f"methods, {kernels}, {n}", found)
    report.table(
        "Methods for SVM1+ and SVM-2K",
        "Seconds to solve a binary problem, geometric mean over features of one scale and of "
        "scales from 0.01 to 100, and C = 0.1, 1, 100: pair updates first, which give way to the "
        "interior-point method as soon as they have taken as long as it will, and the "
        "interior-point method at once. Both end with the active-set method where the problem is "
        "small enough. The kernels are those of X (50 features) and of the privileged features "
        "(20; texts have more features than samples). The gap is the largest relative duality gap "
        "of these problems. Pair updates stop at tol, which at C = 100 permits a large gap; the "
        "interior-point method ends close to machine precision, or with pair updates to tol where "
        f"rounding prevents that. Fits of more than {LONGEST:g} seconds are stopped; their time "
        "until then counts, so that the method is slower than shown.",
        ["kernels", "samples", "problem", *(name for m in METHODS for name in (m, "gap"))],
        rows,
    )
    for (kernels, method), values in ratios.items():
        ratio = geometric_mean(values)
        if kernels in LOW_RANK and method == "pairs":
            claim = f"{kernels}: the interior-point method is not slower than {method}"
            report.bar(claim, 1.0 / ratio, ratio <= 1.0)
        elif kernels not in LOW_RANK and method != "interior point":
            report.bar(f"{kernels}: {method} at least 2 times as fast", ratio, ratio >= 2.0)


def exact(bench, report, chosen):
    sizes = [chosen.rows] if chosen.rows else EXACT_SIZES
    rows, largest = [], {False: 0.0, True: 0.0}
    for kernels, n in product(KERNELS[:3], sizes):
        found = bench.run("excess", threads=1, kernels=kernels, n=n)["problems"]
        line = [kernels, f"{n:,}", str(len(found))]
        for extreme in largest:
            some = [p for p in found if (p["C"] / p["penalty"] > EXTREME) == extreme]
            farthest = max(some, key=lambda p: abs(p["excess"]))
            line += [f"{abs(farthest['excess']):.0e}", f"{farthest['gap']:.0e}"]
            largest[extreme] = max(largest[extreme], abs(farthest["excess"]))
        rows.append(line)
    report.table(
        "SVM1+ at its defaults and exact QPs",
        "Relative difference of the objective from that of the primal QP, by Clarabel, and the "
        "duality gap that the fit reports: the largest over features of one scale and of scales "
        "from 0.01 to 100, C = 0.1, 1, 100 and penalties of 1, 1e-4 and 1e-8, with C / penalty up "
        f"to {EXTREME:.0e} and beyond. X has 50 features, the privileged ones are 20.",
        ["kernels", "samples", "problems", "up to 1e8", "its gap", "beyond", "its gap"],
        rows,
    )
    for extreme, value in largest.items():
        claim = f"SVM1+ within 1e-6 of exact QPs, C / penalty {'above' if extreme else 'up to'} 1e8"
        report.bar(claim, value, value <= 1e-6)


def accuracy(bench, report, chosen):
    if chosen.data is None:
        print("Skipped without --data: mnist_plus, bursi.")
        return
    splits = 2 if chosen.rows else SPLITS
    tasks = [
        (f"MNIST+, {text}, {n} rows", {"name": "mnist_plus", "key": key, "n": n})
        for key, text in (("PF", "poetic"), ("YY", "yin-yang"))
        for n in (TRAINED if chosen.full else (TRAINED[0], TRAINED[2], TRAINED[3]))
    ]
    sizes = {"n": 40, "held_out": 30} if chosen.rows else BURSI
    tasks.append((f"Bursi, {sizes['n']} rows", {"name": "bursi", "key": None, **sizes}))
    rows, gains = [], []
    for title, task in tasks:
        found = bench.run("judge", data=chosen.data, splits=splits, threads=2, **task)
        plain = found["SVM"]
        for method, scores in found.items():
            gain = [a - b for a, b in zip(scores, plain, strict=True)]
            error = stdev(gain) / len(gain) ** 0.5
            rows.append(
                [title, method, f"{mean(scores):.4f}", f"{stdev(scores):.4f}",
                 "" if method == "SVM" else f"{mean(gain):+.4f} ± {error:.4f}"]
            )  # fmt: skip
        gains.append([title, mean(a - b for a, b in zip(found["SVM2+"], plain, strict=True))])
    report.table(
        "Accuracy on test samples",
        f"Mean and standard deviation over {splits} random choices of training samples, and the "
        "mean gain over the SVM on the same samples with its standard error. MNIST+ has 100 "
        "samples with descriptions: 100 of them are all, and there is one choice. Shuffled and "
        "constant features are controls, and so is the SVM with the privileged features appended "
        "to X, at test time too (Bursi; MNIST+ has none for test samples). All choose their "
        "parameters (C and penalty of SVM2+ and SVM1+; C and D of SVM-2K; C and gamma of an SVM) "
        "among 25 pairs on validation samples: those that come with MNIST+, "
        f"{BURSI['held_out']:,} of Bursi. All but gamma go from 0.01 to 100 by decades. Kernels "
        "are rbf with gamma='scale', for an SVM 1/16 to 16 times that; privileged ones are linear "
        "on scaled features.",
        ["data", "method", "mean", "deviation", "gain over SVM"],
        rows,
    )
    report.keep("gains", gains)


def suite(bench, report, chosen):
    splits = 2 if chosen.rows else SUITE_SPLITS
    rows, losses = [], {baseline: [] for baseline in BASELINES}
    names = SUITE if chosen.data is None else (*SUITE, *TEXTS_OF_SUITE)
    for name in names:
        task = {"name": name, "splits": splits, "full": chosen.full, "data": chosen.data}
        found = bench.run("suite", threads=2, **task)
        for method, scores in found.items():
            shown = []
            for baseline in BASELINES:
                gain = [100.0 * (a - b) for a, b in zip(scores, found[baseline], strict=True)]
                error = stdev(gain) / len(gain) ** 0.5
                shown.append("" if method == baseline else f"{mean(gain):+.2f} ± {error:.2f}")
                if method == "PrivilegedSVCCV" and mean(gain) < -2.0 * error:
                    losses[baseline].append(name)
            rows.append([name, method, f"{100.0 * mean(scores):.2f}", *shown])
    report.table(
        "Privileged features at the defaults",
        f"Accuracy in percent over {splits} random choices of {SUITE_ROWS} training samples, and "
        "the mean gains over two plain SVMs on the same samples with their standard errors: the "
        "SVC one-vs-rest, as PrivilegedSVCCV decides, and one-vs-one, as is its default. All are "
        "rbf with gamma='scale' on standardized features and choose their parameters in 5 folds of "
        "the training samples: C from 0.01 to 100 by decades. The controls have the "
        "privileged features of other samples ('shuffled') or none that vary ('constant'). 'always "
        "used' has no SVM among its candidates (slack_ridges=[0, 1]); 'without mixed slack', with "
        "--full, is SVM2+ alone (slack_ridges=[0]). Rows with C = 1 have no search; mixed slack is "
        "slack_ridge=1. Privileged features are features of the same kind, or as named: "
        "class-level vectors that are the same for all samples of a class, and sample-level tags. "
        f"The texts are of {TEXT_CLASSES} sectors of industry; X has the {TEXT_WORDS} most "
        "frequent words, the privileged features are the next ones of the text itself, or their "
        "means over a class.",
        ["data", "method", "accuracy", *(f"gain over {baseline}" for baseline in BASELINES)],
        rows,
    )
    for baseline, lost in losses.items():
        claim = f"data sets with a significant loss to {baseline} at the defaults"
        report.bar(claim, len(lost), not lost)
    report.keep("losses", losses)


def warm(qp):
    """Compile everything once; solve the QP too, to see that Clarabel is installed."""
    import numpy as np

    X, Z, y = two_classes(120)
    for method, train in estimators().items():
        if qp or method != "QP of SVM1+":
            train(X, Z, y)
    judge_split((X, y), Z, (X, y), (X, y), (Z, Z), np.random.default_rng(0), [1.0])
    return {}


def shape(classes, privileged, per_class, budget):
    X, Z, y = classes_of_texts(classes, privileged, per_class)
    seconds, gaps = {}, {}
    for method, train in estimators().items():
        if method != "QP of SVM1+":
            seconds[method] = repeated(lambda train=train: train(X, Z, y), budget, process_time)[1]
            gaps[method] = f"{max(train(X, Z, y).dual_gap_):.0e}"
        if method == "SVC":
            # Small problems have a solver of their own, which always continues.
            stops = patch("widemargin.solvers.hinge.smo._newton_applies", lambda state: False)
            with (
                stops,
                patch("widemargin.solvers.hinge.small.SmallSolver.applies", lambda gram: False),
            ):
                fit = partial(train, X, Z, y)
                seconds[TO_TOL] = repeated(fit, budget, process_time)[1]
                gaps[TO_TOL] = f"{max(train(X, Z, y).dual_gap_):.0e}"
    K, M = (matrix(A) for A in (X, Z))
    labels = range(0, classes, classes // QP_CLASSES)[:QP_CLASSES]
    solvers = {"QP of SVM1+": solved_qp, "primal QP of SVM1+": solved_primal}
    if find_spec("piqp"):
        solvers["primal QP of SVM1+, PIQP"] = partial(solved_primal, solver=piqp_primal)
    optima = []
    for name, solve in solvers.items():
        found = [solve(K, M, y == label) for label in labels]
        seconds[name] = mean(sample for sample, _ in found) * classes
        optima.append([value for _, value in found])
    both = {"kernel": "linear", "loss": "hinge"}
    ours = [train_one(X, Z, y == label, **both).objective_[0] for label in labels]
    # The lowest of the values that the QP solvers reach is closest to the optimum.
    excess = [a / min(values) - 1.0 for a, *values in zip(ours, *optima, strict=True)]
    return {"seconds": seconds, "gaps": gaps, "excess": max(excess)}


def train_one(X, Z, positive, **parameters):
    from widemargin import PrivilegedSVC

    return PrivilegedSVC(**parameters).fit(X, positive, privileged=Z)


def grow(n, methods, budget):
    X, Z, y = two_classes(n)
    found = {}
    for method in methods:
        if method == "QP of SVM1+":
            found[method] = timed_qp(matrix(X), matrix(Z), y == 1)
        else:
            train = estimators()[method]
            found[method] = repeated(lambda train=train: train(X, Z, y), budget, process_time)[1]
    return found


def compare(kernels, n):
    """Gaps and seconds of all methods, and whether they were stopped, by problem."""
    found = {"SVM1+": [], "SVM-2K": []}
    for name in found:  # compile
        solve_binary(name, *two_grams("rbf, rbf", 20, True), 1.0, False, 1e-3)
    for uniform in (True, False):
        grams = two_grams(kernels, n, uniform)
        for name, C in product(found, (0.1, 1.0, 100.0)):
            measured = {"gaps": {}, "seconds": {}, "stopped": {}}
            for method, how in METHODS.items():
                values = timed_gap(partial(solve_binary, name, *grams, C, *how))
                for column, value in zip(measured.values(), values, strict=True):
                    column[method] = value
            found[name].append({"C": C, "uniform": uniform, **measured})
    return found


def excess(kernels, n):
    """Relative differences of SVM1+ from its QP, and the gaps that it reports."""
    from widemargin import PrivilegedSVC

    warnings.simplefilter("ignore")
    kernel, second = kernels.split(", ")
    found = []
    for uniform, C, penalty in product((True, False), (0.1, 1.0, 100.0), (1.0, 1e-4, 1e-8)):
        X, Z, y = two_views(n, uniform)
        model = PrivilegedSVC(
            loss="hinge", C=C, privileged_penalty=penalty, kernel=kernel, privileged_kernel=second
        ).fit(X, y, privileged=Z)
        value = solved_primal(*grams(kernels, X, Z), y == 1, C, penalty)[1]
        found.append(
            {
                "C": C,
                "penalty": penalty,
                "excess": model.objective_[0] / value - 1.0,
                "gap": model.dual_gap_[0],
            }
        )
    return {"problems": found}


def timed_gap(solve):
    """The duality gap of a solution, its seconds, and whether it was stopped.

    Short ones are repeated.
    """
    seconds = []
    while not seconds or (sum(seconds) < 0.05 and len(seconds) < 5):
        start = perf_counter()
        found = solve(report=lambda _, start=start: perf_counter() - start > LONGEST)
        seconds.append(perf_counter() - start)
    return found.gap, min(seconds), not found.converged and min(seconds) > LONGEST


def solve_binary(name, K, M, sign, C, low_rank, tol, report=None):
    """The solution of SVM1+ or SVM-2K; the interior-point method comes first with low_rank."""
    import numpy as np

    from widemargin.solvers.coupled.problem import svm1plus_problem, svm2k_problem
    from widemargin.solvers.coupled.solver import solve_coupled

    ones = np.ones(len(sign))
    if name == "SVM1+":
        problem = svm1plus_problem(K, M, sign, C * ones, 1.0, low_rank=low_rank)
    else:
        costs = np.vstack([C * ones] * 2)
        problem = svm2k_problem(K, M, sign, costs, ones, 0.1, low_rank=low_rank)
    return solve_coupled(problem, tol=tol, report=report)


def judge(data, splits, name, key, n, held_out=None):
    from joblib import Parallel, delayed

    done = Parallel(n_jobs=2)(
        delayed(one_split)(data, k, name, key, n, held_out) for k in range(splits)
    )
    return {method: [scores[method] for scores in done] for method in done[0]}


def one_split(data, split, name, key, n, held_out):
    import numpy as np

    sets, rng = loader(data)(name), np.random.default_rng(split)
    if name == "mnist_plus":
        rows = stratified(rng, sets["train_labels"], n)
        train, *others = (
            (sets[f"{part}_features"] / 255.0, sets[f"{part}_labels"])
            for part in ("train", "val", "test")
        )
        Z = sets[f"train_{key}features"][rows]
        return judge_split((train[0][rows], train[1][rows]), Z, *others, None, rng)
    X, y, Z = sets["X"].toarray(), sets["y"], sets["privileged"]
    train, validation, test = np.split(rng.permutation(len(y)), [n, n + held_out])
    parts = [(X[rows], y[rows]) for rows in (train, validation, test)]
    return judge_split(parts[0], Z[train], *parts[1:], (Z[validation], Z[test]), rng)


def judge_split(train, Z, validation, test, others, rng, grid=None):
    """Accuracy of every method and control on one split."""
    import numpy as np

    from widemargin import SVC, PrivilegedSVC, TwoViewSVC

    warnings.simplefilter("ignore")
    grid = GRID if grid is None else grid
    pairs = [(a, b) for a in grid for b in grid]
    scale = {"privileged_transformer": scaling()}
    columns = {"SVM2+": Z, "SVM2+, shuffled": rng.permutation(Z), "SVM2+, constant": Z[:, :1] * 0}

    def best(models, validation=validation, test=test):
        """Test accuracy of the model with the best validation accuracy."""
        fitted = list(models)
        chosen = np.argmax([model.score(*validation) for model in fitted])
        return float(fitted[chosen].score(*test))

    def plain(estimator, train, **parts):
        """As many candidates as the others have: C and widths about gamma='scale'."""
        scale = 1.0 / (train[0].shape[1] * train[0].var())
        widths = WIDTHS[: len(grid)]
        models = (estimator(C=C, gamma=scale * w).fit(*train) for C in grid for w in widths)
        return best(models, **parts)

    def privileged(loss, Z):
        return best(
            PrivilegedSVC(loss=loss, C=C, privileged_penalty=penalty, slack_ridge=0.0, **scale).fit(
                *train, privileged=Z
            )
            for C, penalty in pairs
        )

    scores = {
        "SVM": plain(SVC, train),
        "SVM, squared": plain(PrivilegedSVC, train),
        "SVM1+": privileged("hinge", Z),
        "SVM-2K": best(TwoViewSVC(C=C, D=D, **scale).fit(*train, privileged=Z) for C, D in pairs),
        **{name: privileged("squared_hinge", values) for name, values in columns.items()},
    }
    if others is not None:
        scaler = scaling().fit(Z)
        appended = [
            (np.hstack([rows, scaler.transform(values)]), labels)
            for (rows, labels), values in zip((train, validation, test), (Z, *others), strict=True)
        ]
        scores["SVM, appended"] = plain(SVC, appended[0], validation=appended[1], test=appended[2])
    return scores


def scaling():
    """Standard units, robust to single extreme values."""
    import numpy as np
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, RobustScaler, StandardScaler

    cut = FunctionTransformer(np.clip, kw_args={"a_min": -10.0, "a_max": 10.0})
    return make_pipeline(RobustScaler(), cut, StandardScaler())


def estimators():
    """Functions of X, Z, y that fit every method."""
    from widemargin import SVC, PrivilegedSVC, TwoViewSVC

    both = {"kernel": "linear", "privileged_kernel": "linear", "n_jobs": 2}
    warnings.simplefilter("ignore")
    return {
        "SVM2+": lambda X, Z, y: PrivilegedSVC(**both, slack_ridge=0.0).fit(X, y, privileged=Z),
        "SVC": lambda X, Z, y: SVC(kernel="linear", multi_class="ovr", n_jobs=2).fit(X, y),
        "SVM1+": lambda X, Z, y: PrivilegedSVC(loss="hinge", **both).fit(X, y, privileged=Z),
        "SVM-2K": lambda X, Z, y: TwoViewSVC(**both).fit(X, y, privileged=Z),
        "QP of SVM1+": lambda X, Z, y: timed_qp(matrix(X), matrix(Z), y == y[0]),
    }


def timed_qp(K, M, positive):
    """Seconds that Clarabel takes for the dual of SVM1+, given its matrices."""
    return solved_qp(K, M, positive)[0]


def solved_qp(K, M, positive, C=1.0, penalty=1.0):
    """Seconds that Clarabel takes for the dual of SVM1+, and its value."""
    import clarabel
    import numpy as np
    from scipy import sparse

    n = len(positive)
    sign = np.where(positive, 1.0, -1.0)
    H = np.empty((2 * n, 2 * n))
    H[:n, n:] = H[n:, :n] = H[n:, n:] = M / penalty
    H[:n, :n] = sign[:, None] * K * sign + M / penalty
    pull = C * M.sum(axis=1) / penalty
    linear = np.concatenate([-1.0 - pull, -pull])
    equalities = np.vstack([np.ones(2 * n), np.concatenate([sign, np.zeros(n)])])
    upper = sparse.csc_array(np.triu(H))
    constraints = sparse.vstack(
        [sparse.csc_array(equalities), -sparse.eye_array(2 * n)], format="csc"
    )
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    start = process_time()
    solution = clarabel.DefaultSolver(
        upper,
        linear,
        constraints,
        np.concatenate([[C * n, 0.0], np.zeros(2 * n)]),
        [clarabel.ZeroConeT(2), clarabel.NonnegativeConeT(2 * n)],
        settings,
    ).solve()
    seconds = process_time() - start
    constant = 0.5 * C**2 * M.sum() / penalty
    return seconds, -(solution.obj_val + constant)


def solved_primal(K, M, positive, C=1.0, penalty=1.0, solver=None):
    """Seconds for the primal problem of SVM1+ over factors of both matrices, and its value.

    Variables: weights a and t of the factors L L' = K and R R' = M, intercepts b and rho.
    """
    import numpy as np

    n = len(positive)
    sign = np.where(positive, 1.0, -1.0)
    L, R = factor(K), factor(M)
    ones = np.ones((n, 1))
    slack = np.hstack([np.zeros((n, L.shape[1] + 1)), R, ones])
    margins = slack + np.hstack([sign[:, None] * L, sign[:, None], 0.0 * R, 0.0 * ones])
    weights = np.concatenate([np.ones(L.shape[1]), [0.0], np.full(R.shape[1], penalty), [0.0]])
    linear = C * slack.sum(axis=0)
    least = np.concatenate([np.ones(n), np.zeros(n)])
    return (solver or clarabel_primal)(weights, linear, np.vstack([margins, slack]), least)


def factor(matrix):
    """A factor of a positive semidefinite matrix with as many columns as its rank."""
    import numpy as np

    values, vectors = np.linalg.eigh(matrix)
    kept = values > 1e-12 * values[-1]
    return vectors[:, kept] * np.sqrt(values[kept])


def clarabel_primal(weights, linear, rows, least):
    """Seconds and value of min 1/2 x' diag(weights) x + linear' x with rows x >= least."""
    import clarabel
    from scipy import sparse

    settings = clarabel.DefaultSettings()
    settings.verbose = False
    P, A = sparse.diags_array(weights, format="csc"), sparse.csc_array(-rows)
    cones = [clarabel.NonnegativeConeT(len(least))]
    start = process_time()
    solution = clarabel.DefaultSolver(P, linear, A, -least, cones, settings).solve()
    return process_time() - start, solution.obj_val


def piqp_primal(weights, linear, rows, least):
    """The same by PIQP with dense matrices."""
    import numpy as np
    import piqp

    solver = piqp.DenseSolver()
    start = process_time()
    solver.setup(np.diag(weights), linear, None, None, rows, least, None)
    solver.solve()
    return process_time() - start, solver.result.info.primal_obj


def classes_of_texts(classes, privileged, per_class):
    """Images scattered about those of their class, with sparse texts as privileged features."""
    import numpy as np
    from scipy import sparse
    from sklearn.preprocessing import normalize

    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(classes), per_class)
    centers = np.abs(rng.standard_normal((classes, PIXELS)))
    X = normalize(np.abs(centers[y] + 1.5 * rng.standard_normal((len(y), PIXELS))))
    if privileged.startswith("one text"):
        texts = sparse.random_array((classes, TEXTS), density=0.02, rng=rng, format="csr")
        Z = sparse.csr_array(normalize(texts))[y]
    else:
        tags = sparse.random_array((classes, 2000), density=0.02, rng=rng, format="csr")
        own = sparse.random_array((len(y), 2000), density=0.01, rng=rng, format="csr")
        Z = sparse.csr_array(normalize(sparse.csr_array(tags[y] + own)))
    return X, Z, y


def two_classes(n, columns=50, privileged=100):
    """Two overlapping classes; one privileged feature is the distance from the margin."""
    import numpy as np

    rng = np.random.default_rng(0)
    X, Z = rng.standard_normal((n, columns)), rng.standard_normal((n, privileged))
    score = X[:, :5].sum(axis=1) / 5**0.5
    y = score + 0.5 * rng.standard_normal(n) > 0
    Z[:, 0] = np.maximum(0.0, 1.0 - np.where(y, 2.0, -2.0) * score) + 0.1 * Z[:, 0]
    return X / columns**0.5, Z / privileged**0.5, y.astype(int)


def two_views(n, uniform):
    """X and 20 privileged features of one scale, or of scales from 0.01 to 100, and labels."""
    X, Z, y = two_classes(n, privileged=20)
    return *scaled(X * 50**0.5, Z * 20**0.5, uniform), y


def scaled(X, Z, uniform):
    """Both views as they are, or their features times scales from 0.01 to 100."""
    import numpy as np

    if uniform:
        return X, Z
    rng = np.random.default_rng(1)
    return [A * 10.0 ** rng.uniform(-2, 2, A.shape[1]) for A in (X, Z)]


def grams(kernels, X, Z):
    """Gram matrices of both views; gamma is that of 'scale'."""
    from sklearn.metrics.pairwise import rbf_kernel

    return [
        A @ A.T if kernel == "linear" else rbf_kernel(A, gamma=1.0 / (A.shape[1] * A.var()))
        for A, kernel in zip((X, Z), kernels.split(", "), strict=True)
    ]


def two_grams(kernels, n, uniform):
    """Gram matrices of X and of the privileged features, and signs."""
    import numpy as np

    if kernels.endswith("texts"):
        X, Z, y = classes_of_texts(max(2, n // 10), "2,000 tags for each row", n // max(2, n // 10))
        X, Z, y = *scaled(X * 50**0.5, Z.toarray() * 10.0, uniform), y == 0
    else:
        X, Z, y = two_views(n, uniform)
    return *grams(kernels.removesuffix(" on texts"), X, Z), np.where(y, 1.0, -1.0)


def matrix(A):
    product = A @ A.T
    return product.toarray() if hasattr(product, "toarray") else product


def judge_suite(name, splits, full=False, data=None):
    from joblib import Parallel, delayed

    done = Parallel(n_jobs=2)(delayed(suite_split)(name, k, full, data) for k in range(splits))
    return {method: [scores[method] for scores in done] for method in done[0]}


def suite_split(name, split, full, data=None):
    """Accuracy of the search with and without mixed slack, and of an SVC, on one split."""
    import numpy as np
    from sklearn.model_selection import train_test_split
    from sklearn.preprocessing import StandardScaler

    from widemargin import SVC, SVCCV, PrivilegedSVC, PrivilegedSVCCV

    warnings.simplefilter("ignore")
    X, Z, y = suite_texts(name, data) if name in TEXTS_OF_SUITE else suite_data(name, split)
    train, test = train_test_split(
        np.arange(len(y)), train_size=SUITE_ROWS, stratify=y, random_state=split
    )
    scaler = StandardScaler().fit(X[train])
    X, X_test = scaler.transform(X[train]), scaler.transform(X[test])
    Z, y, y_test = StandardScaler().fit_transform(Z[train]), y[train], y[test]
    shuffled = np.random.default_rng(split).permutation(Z)

    def search(Z, **parameters):
        model = PrivilegedSVCCV(**parameters).fit(X, y, privileged=Z)
        return float(model.score(X_test, y_test))

    def single(**parameters):
        model = PrivilegedSVC(**parameters).fit(X, y, privileged=Z)
        return float(model.score(X_test, y_test))

    return {
        **{
            baseline: float(
                SVCCV(Cs=GRID, gammas=["scale"], multi_class=shape).fit(X, y).score(X_test, y_test)
            )
            for baseline, shape in BASELINES.items()
        },
        "PrivilegedSVCCV": search(Z),
        "PrivilegedSVCCV, shuffled": search(shuffled),
        "PrivilegedSVCCV, constant": search(np.zeros((len(y), 1))),
        "always used": search(Z, slack_ridges=[0.0, 1.0]),
        "always used, shuffled": search(shuffled, slack_ridges=[0.0, 1.0]),
        "SVC, C = 1": float(SVC(multi_class="ovr").fit(X, y).score(X_test, y_test)),
        "PrivilegedSVC, C = 1": single(slack_ridge=0.0),
        "PrivilegedSVC, C = 1, mixed slack": single(slack_ridge=1.0),
        **({"without mixed slack": search(Z, slack_ridges=[0.0])} if full else {}),
    }


def suite_data(name, seed):
    """Features, privileged features and labels; generated ones have a known truth."""
    import numpy as np
    from sklearn import datasets as public

    from widemargin import datasets

    if name.startswith("generated"):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((1000, 20))
        score = X[:, :2].sum(axis=1)
        noise = rng.standard_normal(1000)
        y = (score + noise > 0).astype(int)
        missed = np.maximum(0.0, 1.0 - np.where(y == 1, 1.0, -1.0) * score)
        if name == "generated, difficulty":
            return X, missed[:, np.newaxis], y
        if name == "generated, noise of the label":
            return X, noise[:, np.newaxis], y
        return X, rng.standard_normal((1000, 3)), y
    if name.endswith("of the class"):
        own, _, y = suite_data(CLASS_LEVEL[name], seed)
        codes = {"digits": SEGMENTS, "vowel": ARTICULATION, "satimage": COVER}[name.split(",")[0]]
        return own, np.array([[float(v) for v in codes[label]] for label in y.tolist()]), y
    if name in ("satimage", "vowel"):
        read = getattr(datasets, f"load_{name}")
        X, y = read(subset="train", return_X_y=True)
        # Satimage: the central pixel of nine. Vowel: half of the coefficients.
        own = np.arange(16, 20) if name == "satimage" else np.arange(5)
    elif name == "yeast":
        X, y = datasets.load_yeast(return_X_y=True)
        common = np.isin(y, [label for label in np.unique(y) if np.sum(y == label) >= 100])
        X, y, own = X[common], y[common], np.arange(4)
    elif name in ("digits, coarse pixels", "digits, tags"):
        images, y = public.load_digits(return_X_y=True)
        pixels = images.reshape(-1, 4, 2, 4, 2).mean(axis=(2, 4)).reshape(len(y), 16)
        return pixels, (images > 8.0).astype(float) if name == "digits, tags" else images, y
    else:
        X, y = getattr(public, f"load_{name}")(return_X_y=True)
        # Breast cancer: 7 of the 10 means. Wine: 4 of 13. Iris: sepals. Diabetes: no blood serum.
        own = np.arange({"breast_cancer": 7, "wine": 4, "iris": 2, "diabetes": 4}[name])
        X = X[:, :10] if name == "breast_cancer" else X
        y = (y > np.median(y)).astype(int) if name == "diabetes" else y
    return X[:, own], np.delete(X, own, axis=1), y


def suite_texts(name, data):
    """Frequent words of texts, and rarer ones: of each text, or of all texts of its class."""
    import numpy as np

    found = loader(data)("sector")
    y, X = found["y_train"], found["X_train"]
    classes = np.argsort(-np.bincount(y), kind="stable")[:TEXT_CLASSES]
    kept = np.isin(y, classes)
    y, X = y[kept], X[kept].tocsc()
    words = np.argsort(-np.diff(X.indptr), kind="stable")[: 2 * TEXT_WORDS]
    own, rare = np.split(X[:, words].toarray(), 2, axis=1)
    if name == "texts, description of the class":
        for label in classes:
            rare[y == label] = rare[y == label].mean(axis=0)
    return own, rare, y


def stratified(rng, labels, n):
    """n samples, half of each of two classes."""
    import numpy as np

    return np.concatenate(
        [rng.permutation(np.flatnonzero(labels == c))[: n // 2] for c in np.unique(labels)]
    )


PARTS = {
    "shapes": shapes,
    "growth": growth,
    "methods": methods,
    "exact": exact,
    "accuracy": accuracy,
    "suite": suite,
}
TASKS = {
    "warm": warm,
    "shape": shape,
    "grow": grow,
    "compare": compare,
    "excess": excess,
    "judge": judge,
    "suite": judge_suite,
}

if __name__ == "__main__":
    main()
