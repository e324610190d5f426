"""The sections of the demo, each a function that trains something and returns a `Section`.

To add one, write it and list it in `SECTIONS`.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from time import perf_counter

import numpy as np
import sklearn.discriminant_analysis
import sklearn.svm
from matplotlib import pyplot
from matplotlib.figure import Figure
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine, make_moons
from sklearn.metrics import f1_score, precision_score, recall_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.preprocessing import StandardScaler

import widemargin
from widemargin.datasets import (
    load_letters,
    load_satimage,
    load_vowel,
    make_extreme_labels,
    make_long_tail,
)
from widemargin.plotting import (
    DiscriminantProjectionDisplay,
    MarginDisplay,
    PreferenceDisplay,
    StudentsDisplay,
    WordDisplay,
)
from widemargin.semisupervised.thresholds import labels_only
from widemargin.structured import (
    ChainCRF,
    FrankWolfeSSVM,
    MultiClassClf,
    batch_diverse_predictions,
)


@dataclass
class Section:
    """One section of the demo: a text, a table and a figure."""

    title: str
    text: str
    header: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    figure: Figure | None = None
    name: str = ""


def margins():
    """Plot decision boundaries and margins."""
    figure, axes = pyplot.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
    X, y = make_moons(160, noise=0.2, random_state=0)
    names = np.array(["upper", "lower"])[y]
    model = widemargin.SVC(C=1, gamma=1).fit(X, names)
    MarginDisplay.from_estimator(model, X, names, ax=axes[0])
    axes[0].set_title("Two classes")
    iris = load_iris(as_frame=True)
    X, names = iris.data.iloc[:, 2:], iris.target_names[iris.target]
    model = widemargin.SVC(C=1, gamma=0.5).fit(X, names)
    MarginDisplay.from_estimator(model, X, names, ax=axes[1])
    axes[1].set_title("Three classes, one-vs-one")
    text = "The support vectors, circled, determine the decision boundary."
    return Section("Decision boundaries and margins", text, figure=figure, name="margins")


def beside_scikit_learn():
    """Compare accuracy, objective and time with scikit-learn's SVC."""
    header = ["data", "train", "features", "classes", "accuracy", "scikit-learn's"]
    header += ["objective", "scikit-learn's", "duality gap", "speed-up"]
    rows = [_compare(name, *data) for name, data in _samples()]
    text = (
        "RBF kernel, C = 10, tol = 1e-3 for both. The objective is the sum over all pairs of "
        "classes, computed from the fitted attributes in the same way for both: lower is better. "
        "The duality gap bounds the relative distance of our objective from the optimum. Times are "
        "the best of several fits."
    )
    return Section("SVC beside scikit-learn's", text, header, rows)


def tuning():
    """Select C and gamma, compared with scikit-learn's grid search over its SVC."""
    header = ["data", "best C", "gamma", "CV score", "accuracy"]
    header += ["best C of grid search", "gamma", "CV score", "accuracy", "speed-up"]
    rows = [_tune(name, *data) for name, data in _samples() if name in TUNED]
    text = (
        f"C in {GRID['C']} and gamma in {GRID['gamma']}, five folds, then a fit of the best "
        "parameters on all training samples, for both. SVCCV computes distances once for all "
        "gammas and kernel matrices once for all folds, and starts each fit from the solution of "
        "the next smaller C."
    )
    return Section("SVCCV beside GridSearchCV over scikit-learn's SVC", text, header, rows)


def linear():
    """Compare linear classifiers with scikit-learn's."""
    ours = {
        "LinearSVC": widemargin.LinearSVC(),
        "CrammerSingerSVC": widemargin.CrammerSingerSVC(),
        "LinearDiscriminantAnalysis": widemargin.LinearDiscriminantAnalysis(),
    }
    theirs = {
        "LinearSVC": sklearn.svm.LinearSVC(random_state=0),
        "CrammerSingerSVC": sklearn.svm.LinearSVC(multi_class="crammer_singer", random_state=0),
        "LinearDiscriminantAnalysis": sklearn.discriminant_analysis.LinearDiscriminantAnalysis(),
    }
    rows = []
    for name, (X_train, X_test, y_train, y_test) in _samples():
        for kind, model in ours.items():
            peer = theirs[kind]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # where liblinear stops at its limit
                seconds = _least_seconds((model, peer), X_train, y_train)
            scores = (f"{one.score(X_test, y_test):.4f}" for one in (model, peer))
            rows.append([name, kind, *scores, f"{seconds[1] / seconds[0]:.2f}"])
    X, y = load_satimage(subset="train", return_X_y=True)
    figure, ax = pyplot.subplots(figsize=(7.5, 4.6), layout="constrained")
    names = np.array(load_satimage().target_names)[np.unique(y, return_inverse=True)[1]]
    discriminant = widemargin.LinearDiscriminantAnalysis(n_components=2).fit(X, names)
    DiscriminantProjectionDisplay.from_estimator(discriminant, X, names, ax=ax)
    text = (
        "Linear SVMs with C = 1 and linear discriminant analysis, all with default parameters: "
        "accuracy on the test set and the speed-up of training over scikit-learn. On the smallest "
        "datasets ours are slower by a few milliseconds. The figure shows satimage projected onto "
        "its two most discriminative directions."
    )
    header = ["data", "classifier", "accuracy", "scikit-learn's", "speed-up"]
    return Section("Linear classifiers", text, header, rows, figure, "discriminant")


def students():
    """Distill a multi-class model into binary detectors."""
    X, y = load_satimage(subset="train", return_X_y=True)
    X_test, y_test = load_satimage(subset="test", return_X_y=True)
    teacher = widemargin.CrammerSingerSVC().fit(X, y)
    detectors = widemargin.GatedStudents(teacher, C=0.01, margin=0.3).fit(X, y)
    scores = widemargin.compare_students(detectors, X, y, X_test)
    display = StudentsDisplay.from_scores(scores, y_test)
    rows = [
        [who, *(f"{np.mean(values):.3f}" for values in measures.values())]
        for who, measures in display.metrics.items()
    ]
    student = detectors.students_[3]
    seconds = [_call_seconds(call, X_test) for call in (teacher.predict, student.predict)]
    text = (
        "One binary detector for each class of a linear teacher on satimage (six classes), "
        "compared with SVMs trained on the labels alone and two controls: means over classes on "
        "the test set. A student is merged with its teacher into one dot product: it predicts "
        f"{len(X_test):,} samples in {1e6 * seconds[1]:.0f} microseconds; the teacher takes "
        f"{1e6 * seconds[0]:.0f}."
    )
    header = ["model", *next(iter(display.metrics.values()))]
    return Section(
        "Distilling a multi-class model into binary detectors",
        text,
        header,
        rows,
        display.figure_,
        "students",
    )


def privileged():
    """Use features that only the training samples have."""
    header = ["privileged features", "accuracy", "standard deviation"]
    model = widemargin.PrivilegedSVC(kernel="linear", privileged_penalty=0.01)
    found: dict[str, list[float]] = {
        "none": [],
        "noise of the sample": [],
        "permuted (control)": [],
    }
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((2060, 10))
        truth = X[:, :2].sum(axis=1)
        y = truth + 2.0 * rng.standard_normal(len(X)) * (rng.random(len(X)) < 0.5) > 0
        missing = np.maximum(0.0, 1.0 - np.where(y, truth, -truth))
        late = (missing + 0.3 * rng.standard_normal(len(X)))[:60, None]
        inputs = None, late, rng.permutation(late)
        for columns, scores in zip(inputs, found.values(), strict=True):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # no features, or uninformative ones
                model.fit(X[:60], y[:60], privileged=columns)
            scores.append(model.score(X[60:], truth[60:] > 0))
    rows = [[who, f"{np.mean(got):.3f}", f"{np.std(got):.3f}"] for who, got in found.items()]
    text = (
        "Half of the labels are noisy, and a feature that is known only at training time measures "
        "the noise: SVM2+ on 60 generated samples, evaluated against the noise-free rule, over 20 "
        "draws. Permuted features are the control."
    )
    return Section("Learning with privileged information", text, header, rows)


def constraints():
    """Constrain precision or recall, with few labeled and many unlabeled samples."""
    X, y = load_satimage(subset="train", return_X_y=True)
    X_test, y_test = load_satimage(subset="test", return_X_y=True)
    y, truth = (np.where(labels == 3, 1, 0) for labels in (y, y_test))
    order = np.random.default_rng(0).permutation(len(y))
    some, others = order[:600], order[600:3000]
    model = widemargin.PreferenceSVC(precision=0.8, C=10.0, random_state=0)
    model.fit(X[some], y[some], X_unlabeled=X[others])
    figure, ax = pyplot.subplots(figsize=(7.5, 4.2), layout="constrained")
    PreferenceDisplay.from_estimator(model, X_test, truth, ax=ax)
    alone = labels_only(widemargin.SVC(C=10.0), X[some], y[some])
    rows = [["none, labeled samples only", *_measures(alone, X_test, truth)]]
    for constraint in ({"precision": 0.8}, {"recall": 0.8}, {}):
        model.set_constraints(**constraint)
        words = " ".join(f"{name} {value}" for name, value in constraint.items())
        rows.append([words or "none, best F1", *_measures(model, X_test, truth)])
    certified = widemargin.PreferenceSVC(recall=0.8, confidence=0.9, C=10.0, random_state=0)
    certified.fit(X[some], y[some], X_unlabeled=X[others])
    rows.append(["recall 0.8, confidence 0.9", *_measures(certified, X_test, truth)])
    text = (
        "Damp grey soil, a tenth of satimage, is hard to recognize: 600 labeled and 2,400 "
        "unlabeled samples. The model is trained once; set_constraints changes the constraint. A "
        "constraint that is met on the labeled samples may be missed on new ones. With "
        "confidence=0.9, part of the labels is used for calibration; recall of the last model is "
        f"{'guaranteed' if certified.guarantee_.guaranteed else 'not guaranteed'}."
    )
    header = ["constraint", "precision", "recall", "F1"]
    return Section("Precision and recall constraints", text, header, rows, figure, "constraints")


def rare_classes():
    """Compare methods for rare classes."""
    X, y = make_long_tail(
        4000, n_features=10, n_classes=10, imbalance=100, separation=4.0, random_state=0
    )
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0, stratify=y)
    classifiers = {
        "SVC": widemargin.SVC(),
        "SVC, class_weight='effective'": widemargin.SVC(class_weight="effective"),
        "SVC, class_margin='ldam'": widemargin.SVC(class_margin="ldam"),
        "RescaledClassifier(SVC)": widemargin.RescaledClassifier(widemargin.SVC()),
    }
    rows = []
    for name, model in classifiers.items():
        found = widemargin.imbalance_report(y_test, model.fit(X_train, y_train).predict(X_test))
        measures = (found.balanced_accuracy, found.macro_f1, found.recall[-1])
        rows.append([name, *(f"{value:.3f}" for value in measures)])
    text = "Ten generated classes, the first a hundred times as frequent as the last."
    header = ["classifier", "balanced accuracy", "macro F1", "recall of the rarest class"]
    return Section("Rare classes", text, header, rows)


def many_labels():
    """Tag documents with thousands of labels."""
    data = make_extreme_labels(12_000, 2_000, n_features=5_000, random_state=0)
    train, test = slice(0, 10_000), slice(10_000, None)
    rows = []
    for n_trees in (1, 3):
        model = widemargin.LabelTreeClassifier(n_trees=n_trees)
        seconds = _fit_seconds(model, data.X[train], data.Y[train])
        labels, _ = model.predict_topk(data.X[test])
        precision = [widemargin.precision_at_k(data.Y[test], labels, k) for k in (1, 3, 5)]
        rows.append([str(n_trees), *(f"{value:.3f}" for value in precision), f"{seconds:.2f}"])
    text = "12,000 generated documents with 2,000 labels that follow a power law."
    return Section("Many labels", text, ["trees", "P@1", "P@3", "P@5", "fit, s"], rows)


def words():
    """Recognize handwritten words with a chain CRF."""
    X, Y = load_letters(return_X_y=True)
    train, test = slice(0, None, 2), slice(1, None, 2)
    chain = FrankWolfeSSVM(ChainCRF(), C=0.1, tol=0.02).fit(X[train], Y[train])
    alone = FrankWolfeSSVM(MultiClassClf(), C=0.1, tol=0.02)
    alone.fit(np.concatenate(X[train]), np.concatenate(Y[train]))
    proposals = batch_diverse_predictions(chain.model_, chain.w, X[test], 4, 0.3)
    best = [
        max(np.mean(own == y) * len(y) for own in several)
        for y, several in zip(Y[test], proposals, strict=True)
    ]
    letters = np.concatenate(Y[test])
    rows = [
        ["MultiClassClf, letter by letter", f"{alone.score(np.concatenate(X[test]), letters):.3f}"],
        ["ChainCRF, words", f"{chain.score(X[test], Y[test]):.3f}"],
        ["best of four diverse predictions", f"{sum(best) / len(letters):.3f}"],
    ]
    shown = [k for k, y in enumerate(Y[test]) if 6 <= len(y) <= 9][5::31][:4]
    found = chain.predict([X[test][k] for k in shown])
    display = WordDisplay.from_predictions(
        [X[test][k] for k in shown], [Y[test][k] for k in shown], found
    )
    text = (
        "Handwritten words, half for training and half for testing. The objective of the chain is "
        f"within {chain.dual_gap_:.0%} of the optimum."
    )
    return Section(
        "Structured prediction", text, ["model", "letters correct"], rows, display.figure_, "words"
    )


SECTIONS = [
    margins,
    beside_scikit_learn,
    tuning,
    linear,
    students,
    privileged,
    constraints,
    rare_classes,
    many_labels,
    words,
]
TUNED = ("iris", "breast cancer", "vowel")
GRID = {"C": [0.1, 1.0, 10.0, 100.0], "gamma": [0.01, 0.03, 0.1, 0.3, 1.0]}


def _samples():
    """Yield the name and the training and test set of each dataset."""
    for load in (load_iris, load_wine, load_breast_cancer, load_digits):
        X, y = load(return_X_y=True)
        X_train, X_test, y_train, y_test = train_test_split(
            X, y, test_size=0.3, random_state=0, stratify=y
        )
        scaler = StandardScaler().fit(X_train)
        name = load.__name__.removeprefix("load_").replace("_", " ")
        yield name, (scaler.transform(X_train), scaler.transform(X_test), y_train, y_test)
    for load in (load_vowel, load_satimage):
        X_train, y_train = load(subset="train", return_X_y=True)
        X_test, y_test = load(subset="test", return_X_y=True)
        yield load.__name__.removeprefix("load_"), (X_train, X_test, y_train, y_test)


def _compare(name, X_train, X_test, y_train, y_test):
    settings = {"C": 10.0, "gamma": 1 / (X_train.shape[1] * X_train.var())}
    ours, theirs = widemargin.SVC(**settings), sklearn.svm.SVC(**settings)
    our_seconds, their_seconds = _least_seconds((ours, theirs), X_train, y_train)
    return [
        name,
        *(f"{number:,}" for number in (*X_train.shape, len(ours.classes_))),
        *(f"{model.score(X_test, y_test):.4f}" for model in (ours, theirs)),
        *(f"{_objective(model, X_train, y_train):.4f}" for model in (ours, theirs)),
        f"{np.max(ours.dual_gap_):.0e}",
        f"{their_seconds / our_seconds:.2f}",
    ]


def _tune(name, X_train, X_test, y_train, y_test):
    ours = widemargin.SVCCV(Cs=GRID["C"], gammas=GRID["gamma"])
    theirs = GridSearchCV(sklearn.svm.SVC(), GRID)
    our_seconds, their_seconds = (_fit_seconds(s, X_train, y_train) for s in (ours, theirs))
    found = [
        [
            *(f"{value:g}" for value in search.best_params_.values()),
            *(f"{value:.4f}" for value in (search.best_score_, search.score(X_test, y_test))),
        ]
        for search in (ours, theirs)
    ]
    return [name, *found[0], *found[1], f"{their_seconds / our_seconds:.1f}"]


def _measures(model, X, y):
    predicted = model.predict(X)
    return [f"{of(y, predicted):.3f}" for of in (precision_score, recall_score, f1_score)]


def _least_seconds(models, X, y):
    """Return the time of the fastest fit of each model, fitted in turn."""
    seconds: list[list[float]] = []
    while len(seconds) < 3 or np.sum(seconds) < 0.5:
        seconds.append([_fit_seconds(model, X, y) for model in models])
    return np.min(seconds, axis=0)


def _call_seconds(function, X):
    """Return the time of the fastest of several calls."""
    seconds = []
    for _ in range(20):
        start = perf_counter()
        function(X)
        seconds.append(perf_counter() - start)
    return min(seconds)


def _fit_seconds(model, X, y):
    start = perf_counter()
    model.fit(X, y)
    return perf_counter() - start


def _objective(model, X, y):
    """Sum 1/2 ||f||^2 + C sum_i max(0, 1 - y_i f(x_i)) over all pairs of classes."""
    scores = model.set_params(decision_function_shape="ovo").decision_function(X)
    scores = -scores[:, None] if scores.ndim == 1 else scores
    K = rbf_kernel(model.support_vectors_, gamma=model.gamma)
    ends = np.cumsum(model.n_support_)
    supports = [
        np.arange(end - count, end) for end, count in zip(ends, model.n_support_, strict=True)
    ]
    total = 0.0
    for column, (i, j) in enumerate(combinations(range(len(model.classes_)), 2)):
        rows = np.concatenate([supports[i], supports[j]])
        coef = np.concatenate(
            [model.dual_coef_[j - 1, supports[i]], model.dual_coef_[i, supports[j]]]
        )
        total += coef @ K[np.ix_(rows, rows)] @ coef / 2
        for k, sign in ((i, 1), (j, -1)):
            own = scores[y == model.classes_[k], column]
            total += model.C * np.maximum(0, 1 - sign * own).sum()
    return total
