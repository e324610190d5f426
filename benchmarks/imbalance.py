"""Methods for rare classes compared with SVMs, a tuned threshold, SMOTE and balanced forests.

    python benchmarks/imbalance.py --data DIR [--full] [--json FILE] [--help]

On every ``imbalanced_*`` data set in DIR: 5x2 cross-validation on standardized features, with
default parameters for all methods. Ranks (1 is best) are over all methods, averaged over data sets.
"""

from _harness import Bench, Report, answer, loader, machine, options

MEASURES = {
    "balanced_accuracy": "balanced accuracy",
    "g_mean": "G-mean",
    "macro_f1": "macro F1",
    "average_precision": "average precision",
}
PEERS = ("SVC", "SVC, balanced", "SVC, tuned", "SMOTE + SVC", "balanced forest")
OURS = ("SVC, effective", "SVC, ldam", "SVC, ldam + balanced", "SVC, rescaled")
MOST_ROWS = 3_000


def main(arguments=None):
    chosen = options(__doc__.splitlines()[0], PARTS, arguments)
    if chosen.task:
        answer(chosen.task, TASKS)
        return
    facts = machine("widemargin", "numpy", "scikit-learn", "imbalanced-learn", "numba")
    report = Report("imbalance", chosen.json, facts)
    for part in chosen.only:
        PARTS[part](Bench(__file__), report, chosen)
    report.close()


def sets(bench, report, chosen):
    names = (
        sorted(path.stem for path in chosen.data.glob("imbalanced_*.npz")) if chosen.data else []
    )
    if not names:
        raise SystemExit("--data must be a folder with imbalanced_*.npz and a load.py.")
    most = chosen.rows or (None if chosen.full else MOST_ROWS)
    runs = {
        name: bench.run("cross_validate", name=name, data=chosen.data, most=most) for name in names
    }
    methods = [*PEERS, *OURS]
    ranks = {
        measure: {
            method: sum(ranking(run["scores"], measure)[method] for run in runs.values())
            / len(runs)
            for method in methods
        }
        for measure in MEASURES
    }
    for measure in ("balanced_accuracy", "average_precision"):
        report.table(
            MEASURES[measure].capitalize(),
            "Mean of 5x2 cross-validation.",
            ["data", "samples", "rare", *methods],
            [
                [
                    name.removeprefix("imbalanced_"),
                    *(f"{run['rows']:,}", f"{run['rare']:.1%}"),
                    *(f"{run['scores'][method][measure]:.3f}" for method in methods),
                ]
                for name, run in runs.items()
            ],
        )
    report.table(
        "Mean ranks",
        f"Over {len(runs)} data sets, 1 is best. Seconds are those of all fits and predictions. "
        "The first five methods are from scikit-learn and imbalanced-learn; the threshold is tuned "
        "for balanced accuracy by TunedThresholdClassifierCV.",
        ["method", *MEASURES.values(), "s"],
        [
            [
                method,
                *(f"{ranks[measure][method]:.2f}" for measure in MEASURES),
                f"{sum(run['scores'][method]['seconds'] for run in runs.values()):.1f}",
            ]
            for method in methods
        ],
    )
    for measure, title in MEASURES.items():
        best, peer = (min(ranks[measure][method] for method in group) for group in (OURS, PEERS))
        claim = f"{title}: the best mean rank of ours less that of the peers is below 0"
        report.bar(claim, best - peer, best < peer)


PARTS = {"sets": sets}


def ranking(scores, measure):
    """Return the ranks of the methods on one data set; ties get their mean rank."""
    values = {method: score[measure] for method, score in scores.items()}
    return {
        method: 1
        + sum(other > value for other in values.values())
        + 0.5 * (sum(other == value for other in values.values()) - 1)
        for method, value in values.items()
    }


def cross_validate(name, data, most):
    import numpy as np
    from joblib import Parallel, delayed
    from sklearn.model_selection import RepeatedStratifiedKFold, train_test_split

    found = loader(data)(name)
    X, y = np.asarray(found["X"], dtype=float), found["y"]
    if most and len(y) > most:
        X, _, y, _ = train_test_split(X, y, train_size=most, stratify=y, random_state=0)
    splits = list(RepeatedStratifiedKFold(n_splits=2, n_repeats=5, random_state=0).split(X, y))
    work = [(method, train, test) for method in (*PEERS, *OURS) for train, test in splits]
    results = Parallel(n_jobs=2)(
        delayed(evaluate)(method, X[train], y[train], X[test], y[test])
        for method, train, test in work
    )
    scores = {}
    for method in (*PEERS, *OURS):
        results_of_method = [
            result for (m, _, _), result in zip(work, results, strict=True) if m == method
        ]
        scores[method] = {
            key: float(np.mean([r[key] for r in results_of_method])) for key in MEASURES
        }
        scores[method]["seconds"] = sum(result["seconds"] for result in results_of_method)
    rare = float(np.unique(y, return_counts=True)[1].min() / len(y))
    return {"rows": len(y), "rare": rare, "scores": scores}


TASKS = {"cross_validate": cross_validate}


def evaluate(method, X, y, X_test, y_test):
    """Return the metrics of one method on one split, and the time."""
    from time import perf_counter

    from widemargin import imbalance_report

    model = classifiers()[method]
    model.fit(X[:40:2], [0, 1] * 10) if method in OURS else None  # loads compiled code
    start = perf_counter()
    model.fit(X, y)
    ask = model.decision_function if hasattr(model, "decision_function") else model.predict_proba
    scores = ask(X_test)
    if method == "SVC, tuned":
        scores = scores - model[-1].best_threshold_
    seconds = perf_counter() - start
    report = imbalance_report(y_test, scores, classes=sorted(set(y.tolist())))
    return {"seconds": seconds, **{measure: getattr(report, measure) for measure in MEASURES}}


def classifiers():
    from imblearn.ensemble import BalancedRandomForestClassifier
    from imblearn.over_sampling import SMOTE
    from imblearn.pipeline import make_pipeline
    from sklearn import svm
    from sklearn.model_selection import TunedThresholdClassifierCV
    from sklearn.preprocessing import StandardScaler

    from widemargin import SVC, RescaledClassifier

    forest = BalancedRandomForestClassifier(
        sampling_strategy="all", replacement=True, bootstrap=False, random_state=0
    )
    return {
        name: make_pipeline(StandardScaler(), *steps)
        for name, steps in {
            "SVC": [svm.SVC()],
            "SVC, balanced": [svm.SVC(class_weight="balanced")],
            "SVC, tuned": [TunedThresholdClassifierCV(svm.SVC(), scoring="balanced_accuracy")],
            "SMOTE + SVC": [SMOTE(random_state=0), svm.SVC()],
            "balanced forest": [forest],
            "SVC, effective": [SVC(class_weight="effective")],
            "SVC, ldam": [SVC(class_margin="ldam")],
            "SVC, ldam + balanced": [SVC(class_margin="ldam", class_weight="balanced")],
            "SVC, rescaled": [RescaledClassifier(SVC(class_weight="balanced"))],
        }.items()
    }


if __name__ == "__main__":
    main()
