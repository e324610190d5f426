"""One-vs-one, one-vs-rest and output codes with kernel SVMs, compared with sklearn.multiclass.

    python benchmarks/multiclass.py [--data DIR] [--full] [--json FILE] [--help]

Every classifier is trained and evaluated in a separate process, on the same samples, with the same
fixed C and gamma and with two jobs. The workers of the peer's two jobs are started before the time
is measured. Both use the dense code matrix of the peer; our own code matrices are compared over
several seeds.
"""

from statistics import geometric_mean, mean, stdev

from _harness import (
    Bench,
    Report,
    answer,
    loader,
    machine,
    options,
    peak_megabytes,
    repeated,
    timed,
)

SETS = {
    "vowel": {"C": 10.0, "gamma": 1.0},
    "satimage": {"C": 10.0, "gamma": 1.0},
    "letter": {"C": 10.0, "gamma": 2.0},
    "sector": {"C": 1.0, "kernel": "linear"},
}
SHIPPED = ("vowel", "satimage")
# Numbers of training samples, test samples and classes, by default and with --full. More take the
# peer too long.
PART = {"letter": (3_000, 2_000, 26), "sector": (1_000, 500, 20)}
FULL_PART = {"sector": (3_000, 1_000, 50)}
SEEDS = range(5)
LONGEST = 2.0  # seconds to repeat a fit for: there are many
WITH_PEER = ("ovo", "ovr", "dense")
ALONE = ("sparse",)
GOAL = 5.0
CLAIM = "accuracy at least scikit-learn's"


def main(arguments=None):
    chosen = options(__doc__.splitlines()[0], PARTS, arguments)
    if chosen.task:
        answer(chosen.task, TASKS)
        return
    facts = machine("widemargin", "numpy", "scikit-learn", "numba")
    report = Report("multiclass", chosen.json, facts)
    bench = Bench(__file__)
    for part in chosen.only:
        PARTS[part](bench, report, chosen)
    report.close()


def kernels(bench, report, chosen):
    rows, ratios = [], {"training": [], "prediction": [], "both together": []}
    for name in sets(chosen):
        for code in (*WITH_PEER, *ALONE):
            ours, theirs = (
                bench.run(
                    "classify",
                    name=name, code=code, model=model, data=chosen.data, full=chosen.full,
                    rows=chosen.rows, budget=min(chosen.budget, LONGEST),
                )
                if model == "ours" or code in WITH_PEER else None
                for model in ("ours", "scikit-learn")
            )  # fmt: skip
            rows.append(line(name, code, "ours", ours, theirs))
            if theirs:
                rows.append(line(name, code, "scikit-learn", theirs))
                for measured, value in zip(ratios.values(), times(ours, theirs), strict=True):
                    measured.append(value)
                difference = ours["accuracy"] - theirs["accuracy"]
                report.bar(f"{name}, {code}: {CLAIM}", difference, difference >= 0)
    report.table(
        "Many classes with kernels",
        "Seconds of training and of predicting the test samples; 'times' is the time of "
        "scikit-learn divided by ours in training, followed by that in prediction and in both "
        "together. Memory is the increase of the process, without scikit-learn's two workers.",
        [
            *("data", "code", "who", "classifiers", "train s", "predict s"),
            *("times", "predict", "together", "accuracy", "MB"),
        ],
        rows,
    )
    for what, measured in ratios.items():
        ratio = geometric_mean(measured)
        report.bar(f"{what}: at least 5 times as fast, in the mean", ratio, ratio >= GOAL)


def codes(bench, report, chosen):
    rows = []
    for name in sets(chosen):
        found = bench.run("seeds", name=name, data=chosen.data, full=chosen.full, rows=chosen.rows)
        means = {who: mean(found[who]) for who in ("ours", "scikit-learn")}
        difference = means["ours"] - means["scikit-learn"]
        spread = stdev(a - b for a, b in zip(*found.values(), strict=True)) / len(SEEDS) ** 0.5
        rows.append(
            [
                name,
                *(f"{value:.4f}" for value in means.values()),
                f"{difference:+.4f}",
                f"{spread:.4f}",
            ]
        )
        report.bar(f"{name}, dense, own matrices: {CLAIM}", difference, difference >= 0)
    report.table(
        "Own code matrices",
        f"Mean accuracy over {len(SEEDS)} seeds with our dense codes and with those that "
        "scikit-learn draws, all with our classifiers and default decoding (with equal matrices "
        "both predict the same, see above), and the standard error of the difference.",
        ["data", "ours", "scikit-learn's", "difference", "error"],
        rows,
    )


PARTS = {"kernels": kernels, "codes": codes}


def sets(chosen):
    """Return the available data sets."""
    found = [name for name in SETS if name in SHIPPED or chosen.data]
    for name in sorted(SETS.keys() - found):
        print(f"Left out without --data: {name}.")
    return found


def line(name, code, who, run, peer=None):
    ratios = [f"{value:.1f}" for value in times(run, peer)] if peer else ["", "", ""]
    return [
        *(f"{name} {run['rows']:,}", code, who, f"{run['classifiers']}"),
        *(f"{run['train']:.3f}", f"{run['predict']:.3f}", *ratios),
        *(f"{run['accuracy']:.4f}", f"{run['megabytes']:.0f}"),
    ]


def times(run, peer):
    """Return the time of the peer divided by ours in training, prediction and both together."""
    train, predict = (peer[key] / run[key] for key in ("train", "predict"))
    return train, predict, (peer["train"] + peer["predict"]) / (run["train"] + run["predict"])


def classify(name, code, model, data, full, rows, budget):
    X, y, X_test, y_test = read(name, data, full, rows)
    few = [k for c in sorted(set(y.tolist())) for k in (y == c).nonzero()[0][:5]]
    peer = theirs(name, code, len(set(y.tolist())))
    if model != "ours":
        classifier = peer
    elif code == "dense":
        classifier = ours(name, drawn_code(X[few], y[few], 0), loss="linear")
    else:
        classifier = ours(name, code)
    classifier.fit(X[few], y[few]).predict(X_test[:5])
    before = peak_megabytes()
    _, train = repeated(lambda: classifier.fit(X, y), budget)
    predicted = []
    predict = timed(lambda: predicted.append(classifier.predict(X_test)))
    return {
        "rows": X.shape[0],
        "classifiers": len(classifier.estimators_) if model != "ours" else len(classifier.n_iter_),
        "train": train,
        "predict": predict,
        "accuracy": float((predicted[0] == y_test).mean()),
        "megabytes": peak_megabytes() - before,
    }


def seeds(name, data, full, rows):
    from widemargin import code_matrix

    X, y, X_test, y_test = read(name, data, full, rows)
    n_classes = len(set(y.tolist()))
    found = {"ours": [], "scikit-learn": []}
    for seed in SEEDS:
        for who, code in (
            ("ours", code_matrix("dense", n_classes, seed)[0]),
            ("scikit-learn", drawn_code(X, y, seed)),
        ):
            found[who].append(float(ours(name, code).fit(X, y).score(X_test, y_test)))
    return found


TASKS = {"classify": classify, "seeds": seeds}


def ours(name, code, loss="hinge"):
    from widemargin import SVC, CodeMatrixClassifier

    decoding = "hamming" if isinstance(code, str) and code == "ovo" else "loss"
    return CodeMatrixClassifier(
        SVC(**SETS[name]), code=code, decoding=decoding, loss=loss, n_jobs=2
    )


def drawn_code(X, y, seed):
    """Return the matrix that scikit-learn draws, without its constant columns."""
    from sklearn.linear_model import RidgeClassifier
    from sklearn.multiclass import OutputCodeClassifier

    size = code_size(len(set(y.tolist())))
    peer = OutputCodeClassifier(RidgeClassifier(), code_size=size, random_state=seed)
    few = [k for c in sorted(set(y.tolist())) for k in (y == c).nonzero()[0][:2]]
    code = peer.fit(X[few], y[few]).code_book_
    return code[:, code.min(axis=0) < code.max(axis=0)]


def code_size(n_classes):
    """Return the code_size with which scikit-learn has as many columns as our dense codes."""
    from widemargin import code_matrix

    return (code_matrix("dense", n_classes)[0].shape[1] + 0.5) / n_classes


def theirs(name, code, n_classes):
    from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
    from sklearn.svm import SVC

    if code == "ovr":
        return OneVsRestClassifier(SVC(**SETS[name]), n_jobs=2)
    if code == "ovo":
        return OneVsOneClassifier(SVC(**SETS[name]), n_jobs=2)
    size = code_size(n_classes)
    return OutputCodeClassifier(SVC(**SETS[name]), code_size=size, random_state=0, n_jobs=2)


def read(name, data, full, rows):
    """Return training and test samples: all of them, or the part for the default run."""
    import numpy as np

    if name in SHIPPED:
        from widemargin import datasets

        load = getattr(datasets, f"load_{name}")
        parts = (*load(subset="train", return_X_y=True), *load(subset="test", return_X_y=True))
    else:
        found = loader(data)(name)
        parts = (found["X_train"], found["y_train"], found["X_test"], found["y_test"])
    n_train, n_test, n_classes = (FULL_PART if full else PART).get(name, (None,) * 3)
    if n_train is None:
        n_train = n_test = n_classes = len(parts[1]) + len(parts[3])
    if rows:
        n_train, n_test = rows, rows
    frequent = np.argsort(-np.unique(parts[1], return_counts=True)[1], kind="stable")[:n_classes]
    kept = np.unique(parts[1])[np.sort(frequent)]
    random = np.random.default_rng(0)
    drawn = []
    for X, y, n in ((*parts[:2], n_train), (*parts[2:], n_test)):
        some = random.permutation(np.flatnonzero(np.isin(y, kept)))[:n]
        drawn += [X[some], y[some]]
    return drawn


if __name__ == "__main__":
    main()
