"""The stops of the tour, each a function that trains something and returns a `Stop`.

To add one, write it and list it in `STOPS`.
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
from widemargin.datasets import load_letters, load_satimage, load_vowel, make_long_tail
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
class Stop:
    """What one stop of the tour shows."""

    title: str
    text: str
    header: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    figure: Figure | None = None
    name: str = ""


def margins():
    """Show what a machine looks like."""
    figure, axes = pyplot.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
    X, y = make_moons(160, noise=0.2, random_state=0)
    names = np.array(["upper", "lower"])[y]
    machine = widemargin.SVC(C=1, gamma=1).fit(X, names)
    MarginDisplay.from_estimator(machine, X, names, ax=axes[0])
    axes[0].set_title("Two classes")
    iris = load_iris(as_frame=True)
    X, names = iris.data.iloc[:, 2:], iris.target_names[iris.target]
    machine = widemargin.SVC(C=1, gamma=0.5).fit(X, names)
    MarginDisplay.from_estimator(machine, X, names, ax=axes[1])
    axes[1].set_title("Three classes, one against one")
    text = "Only the ringed rows, the support vectors, hold the boundary in its place."
    return Stop("The machine", text, figure=figure, name="margins")


def beside_scikit_learn():
    """Compare accuracy, objective and time with scikit-learn's SVC."""
    header = ["data", "train", "features", "classes", "accuracy", "scikit-learn's"]
    header += ["objective", "scikit-learn's", "gap at most", "times as fast"]
    rows = [_compare(name, *data) for name, data in _samples()]
    text = (
        "RBF kernel, C = 10, tol = 1e-3 for both. The objective is the sum over all pairs of "
        "classes, computed from the fitted attributes in the same way for both: lower is better. "
        "The gap is how far ours is from the best at most, relative to it. Times are the best of "
        "several fits."
    )
    return Stop("SVC beside scikit-learn's", text, header, rows)


def tuning():
    """Choose C and gamma beside scikit-learn's grid search over its SVC."""
    header = ["data", "best C", "gamma", "score of folds", "accuracy"]
    header += ["best C of grid search", "gamma", "score of folds", "accuracy", "times as fast"]
    rows = [_tune(name, *data) for name, data in _samples() if name in TUNED]
    text = (
        f"C in {GRID['C']} and gamma in {GRID['gamma']}, five folds, and a fit of the best on all "
        "training rows, for both. Distances are computed once for all gammas, kernel matrices once "
        "for all folds, and fits start from those of the next smaller C."
    )
    return Stop("SVCCV beside GridSearchCV over scikit-learn's SVC", text, header, rows)


def linear():
    """Compare linear machines with scikit-learn's."""
    ours = {
        "one against the rest": widemargin.LinearSVC(),
        "all classes in one": widemargin.CrammerSingerSVC(),
        "discriminant": widemargin.LinearDiscriminantAnalysis(),
    }
    theirs = {
        "one against the rest": sklearn.svm.LinearSVC(random_state=0),
        "all classes in one": sklearn.svm.LinearSVC(multi_class="crammer_singer", random_state=0),
        "discriminant": sklearn.discriminant_analysis.LinearDiscriminantAnalysis(),
    }
    rows = []
    for name, (X_train, X_test, y_train, y_test) in _samples():
        for kind, machine in ours.items():
            peer = theirs[kind]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # where liblinear stops at its limit
                seconds = _least_seconds((machine, peer), X_train, y_train)
            scores = (f"{one.score(X_test, y_test):.4f}" for one in (machine, peer))
            rows.append([name, kind, *scores, f"{seconds[1] / seconds[0]:.2f}"])
    X, y = load_satimage(subset="train", return_X_y=True)
    figure, ax = pyplot.subplots(figsize=(7.5, 4.6), layout="constrained")
    names = np.array(load_satimage().target_names)[np.unique(y, return_inverse=True)[1]]
    discriminant = widemargin.LinearDiscriminantAnalysis(n_components=2).fit(X, names)
    DiscriminantProjectionDisplay.from_estimator(discriminant, X, names, ax=ax)
    text = (
        "Linear machines with C = 1 and linear discriminants, all with their defaults: accuracy on "
        "test rows, and how many times as fast as scikit-learn's ours are in training. On the "
        "smallest sets ours are slower: a few milliseconds of preparation. The picture shows "
        "satimage along the two directions that tell its classes apart best."
    )
    header = ["data", "machine", "accuracy", "scikit-learn's", "times as fast"]
    return Stop("Linear machines and discriminants", text, header, rows, figure, "discriminant")


def students():
    """Ask a model of many classes for one of them."""
    X, y = load_satimage(subset="train", return_X_y=True)
    X_test, y_test = load_satimage(subset="test", return_X_y=True)
    teacher = widemargin.CrammerSingerSVC().fit(X, y)
    pupils = widemargin.GatedStudents(teacher, C=0.01, margin=0.3).fit(X, y)
    scores = widemargin.compare_students(pupils, X, y, X_test)
    display = StudentsDisplay.from_scores(scores, y_test)
    rows = [
        [who, *(f"{np.mean(values):.3f}" for values in measures.values())]
        for who, measures in display.measures.items()
    ]
    student = pupils.students_[3]
    asked = [_call_seconds(ask, X_test) for ask in (teacher.predict, student.predict)]
    text = (
        "Is this row of that class? A linear teacher of satimage's six classes, its students, "
        "machines trained from labels alone and two controls: means over classes on test rows. "
        f"A student is merged with its teacher into one dot product, and answers {len(X_test):,} "
        f"rows in {1e6 * asked[1]:.0f} microseconds, where the teacher takes "
        f"{1e6 * asked[0]:.0f}."
    )
    header = ["who", *next(iter(display.measures.values()))]
    return Stop("Students of a model", text, header, rows, display.figure_, "students")


def hindsight():
    """Use columns that only training rows have."""
    header = ["privileged columns", "accuracy", "deviation"]
    machine = widemargin.PrivilegedSVC(kernel="linear", privileged_penalty=0.01)
    found: dict[str, list[float]] = {"none": [], "how noisy a row is": [], "the same, shuffled": []}
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((2060, 10))
        truth = X[:, :2].sum(axis=1)
        y = truth + 2.0 * rng.standard_normal(len(X)) * (rng.random(len(X)) < 0.5) > 0
        missing = np.maximum(0.0, 1.0 - np.where(y, truth, -truth))
        late = (missing + 0.3 * rng.standard_normal(len(X)))[:60, None]
        ways = None, late, rng.permutation(late)
        for columns, scores in zip(ways, found.values(), strict=True):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # no columns, or columns that say nothing
                machine.fit(X[:60], y[:60], privileged=columns)
            scores.append(machine.score(X[60:], truth[60:] > 0))
    rows = [[who, f"{np.mean(got):.3f}", f"{np.std(got):.3f}"] for who, got in found.items()]
    text = (
        "Half of the labels are blurred by noise, and a column that new rows do not have says how "
        "much: SVM2+ on 60 generated rows, judged by the rule behind the noise, over 20 draws. "
        "Shuffled columns are the control: what they say must be what helps."
    )
    return Stop("Columns known only in training", text, header, rows)


def demands():
    """Ask for precision or recall, with few labels and many rows without."""
    X, y = load_satimage(subset="train", return_X_y=True)
    X_test, y_test = load_satimage(subset="test", return_X_y=True)
    y, truth = (np.where(labels == 3, 1, 0) for labels in (y, y_test))
    order = np.random.default_rng(0).permutation(len(y))
    some, others = order[:600], order[600:3000]
    machine = widemargin.PreferenceSVC(precision=0.8, C=10.0, random_state=0)
    machine.fit(X[some], y[some], X_unlabeled=X[others])
    figure, ax = pyplot.subplots(figsize=(7.5, 4.2), layout="constrained")
    PreferenceDisplay.from_estimator(machine, X_test, truth, ax=ax)
    alone = labels_only(widemargin.SVC(C=10.0), X[some], y[some])
    rows = [["nothing: labels alone", *_told(alone, X_test, truth)]]
    for asked in ({"precision": 0.8}, {"recall": 0.8}, {}):
        machine.set_demand(**asked)
        words = " ".join(f"{name} {value}" for name, value in asked.items())
        rows.append([words or "the best F1", *_told(machine, X_test, truth)])
    sure = widemargin.PreferenceSVC(recall=0.8, confidence=0.9, C=10.0, random_state=0)
    sure.fit(X[some], y[some], X_unlabeled=X[others])
    rows.append(["recall 0.8 for sure", *_told(sure, X_test, truth)])
    text = (
        "Damp grey soil, a tenth of satimage, is hard to tell: 600 rows with labels, 2,400 "
        "without. The machine is trained once, and asked for something else by set_demand. A "
        "demand that is met on some rows may be missed on new ones; with confidence=0.9 some "
        "labels are kept to make sure, and the last machine says of its recall: "
        f"{'promised' if sure.promise_.kept else 'not to be promised'}."
    )
    header = ["asked for", "precision", "recall", "F1"]
    return Stop("Precision or recall on demand", text, header, rows, figure, "demand")


def rare_classes():
    """Care for classes of few rows."""
    X, y = make_long_tail(
        4000, n_features=10, n_classes=10, imbalance=100, separation=4.0, random_state=0
    )
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0, stratify=y)
    machines = {
        "SVC": widemargin.SVC(),
        "SVC, class_weight='effective'": widemargin.SVC(class_weight="effective"),
        "SVC, class_margin='ldam'": widemargin.SVC(class_margin="ldam"),
        "RescaledClassifier(SVC)": widemargin.RescaledClassifier(widemargin.SVC()),
    }
    rows = []
    for name, machine in machines.items():
        found = widemargin.imbalance_report(y_test, machine.fit(X_train, y_train).predict(X_test))
        measures = (found.balanced_accuracy, found.macro_f1, found.recall[-1])
        rows.append([name, *(f"{value:.3f}" for value in measures)])
    text = "Ten generated classes, the first a hundred times as frequent as the last."
    header = ["machine", "balanced accuracy", "macro F1", "recall of the rarest"]
    return Stop("Rare classes", text, header, rows)


def words():
    """Read words as a whole."""
    X, Y = load_letters(return_X_y=True)
    train, test = slice(0, None, 2), slice(1, None, 2)
    chain = FrankWolfeSSVM(ChainCRF(), C=0.1, tol=0.02).fit(X[train], Y[train])
    alone = FrankWolfeSSVM(MultiClassClf(), C=0.1, tol=0.02)
    alone.fit(np.concatenate(X[train]), np.concatenate(Y[train]))
    proposals = batch_diverse_predictions(chain.model_, chain.w, X[test], 4, 0.3)
    best = [
        max(np.mean(own == y) * len(y) for own in ways)
        for y, ways in zip(Y[test], proposals, strict=True)
    ]
    letters = np.concatenate(Y[test])
    rows = [
        ["letter by letter", f"{alone.score(np.concatenate(X[test]), letters):.3f}"],
        ["as words, a chain", f"{chain.score(X[test], Y[test]):.3f}"],
        ["the best of four proposals", f"{sum(best) / len(letters):.3f}"],
    ]
    shown = [k for k, y in enumerate(Y[test]) if 6 <= len(y) <= 9][5::31][:4]
    found = chain.predict([X[test][k] for k in shown])
    display = WordDisplay.from_predictions(
        [X[test][k] for k in shown], [Y[test][k] for k in shown], found
    )
    text = (
        f"Shipped words in handwriting, half to train and half to test. The chain's objective is "
        f"within {chain.dual_gap_:.0%} of the best."
    )
    return Stop(
        "Outputs with parts", text, ["letters read", "right"], rows, display.figure_, "words"
    )


STOPS = [
    margins,
    beside_scikit_learn,
    tuning,
    linear,
    students,
    hindsight,
    demands,
    rare_classes,
    words,
]
TUNED = ("iris", "breast cancer", "vowel")
GRID = {"C": [0.1, 1.0, 10.0, 100.0], "gamma": [0.01, 0.03, 0.1, 0.3, 1.0]}


def _samples():
    """Yield the name and the train and test parts of every set."""
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
        *(f"{machine.score(X_test, y_test):.4f}" for machine in (ours, theirs)),
        *(f"{_objective(machine, X_train, y_train):.4f}" for machine in (ours, theirs)),
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


def _told(machine, X, y):
    predicted = machine.predict(X)
    return [f"{of(y, predicted):.3f}" for of in (precision_score, recall_score, f1_score)]


def _least_seconds(machines, X, y):
    """Seconds of the fastest fit of each, in turn."""
    seconds: list[list[float]] = []
    while len(seconds) < 3 or np.sum(seconds) < 0.5:
        seconds.append([_fit_seconds(machine, X, y) for machine in machines])
    return np.min(seconds, axis=0)


def _call_seconds(function, X):
    """Seconds of the fastest of some calls."""
    seconds = []
    for _ in range(20):
        start = perf_counter()
        function(X)
        seconds.append(perf_counter() - start)
    return min(seconds)


def _fit_seconds(machine, X, y):
    start = perf_counter()
    machine.fit(X, y)
    return perf_counter() - start


def _objective(machine, X, y):
    """Sum 1/2 ||f||^2 + C sum_i max(0, 1 - y_i f(x_i)) over all pairs of classes."""
    scores = machine.set_params(decision_function_shape="ovo").decision_function(X)
    scores = -scores[:, None] if scores.ndim == 1 else scores
    K = rbf_kernel(machine.support_vectors_, gamma=machine.gamma)
    ends = np.cumsum(machine.n_support_)
    supports = [
        np.arange(end - count, end) for end, count in zip(ends, machine.n_support_, strict=True)
    ]
    total = 0.0
    for column, (i, j) in enumerate(combinations(range(len(machine.classes_)), 2)):
        rows = np.concatenate([supports[i], supports[j]])
        coef = np.concatenate(
            [machine.dual_coef_[j - 1, supports[i]], machine.dual_coef_[i, supports[j]]]
        )
        total += coef @ K[np.ix_(rows, rows)] @ coef / 2
        for k, sign in ((i, 1), (j, -1)):
            own = scores[y == machine.classes_[k], column]
            total += machine.C * np.maximum(0, 1 - sign * own).sum()
    return total
