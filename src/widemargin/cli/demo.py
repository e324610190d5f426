"""The demo: real fits on generated and included data, and one HTML page about them."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import getdoc
from pathlib import Path
from textwrap import fill, indent
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
import sklearn.svm
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.metrics import f1_score, precision_score, recall_score
from sklearn.preprocessing import StandardScaler

import widemargin
from widemargin._base import jit
from widemargin.cli import methods
from widemargin.cli.prediction import report_on
from widemargin.cli.samples import make_tickets
from widemargin.cli.tables import read_training
from widemargin.datasets import (
    load_letters,
    load_satimage,
    make_extreme_labels,
    make_privileged,
)
from widemargin.export import save
from widemargin.report import Report, Section
from widemargin.report.markup import Markup, paragraph, preformatted, table
from widemargin.structured import ChainCRF, FrankWolfeSSVM, MultiClassClf


@dataclass(frozen=True)
class Shown:
    """What a part of the demo has found.

    Attributes
    ----------
    title, text : str
    header : sequence of str
    rows : sequence of sequence
        A table; all cells are strings.
    commands : str
        The same for a shell.
    more : str
        Further content of the page, as HTML.
    """

    title: str
    text: str
    header: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    commands: str = ""
    more: str = ""


def run_demo(folder: Path) -> Path:
    """Run all parts, print what they find, and write the page.

    Parameters
    ----------
    folder : Path
        Where to write files; created if needed.

    Returns
    -------
    page : Path
    """
    folder.mkdir(parents=True, exist_ok=True)
    start = perf_counter()
    versions = f"widemargin {widemargin.__version__}, scikit-learn {sklearn.__version__}"
    print(f"{versions}: {1 + len(_DEMOS)} parts, one to two minutes")
    with step("Compile the inner loops, once for this computer"):
        compile_needed()
    report = Report("widemargin demo")
    with warnings.catch_warnings():
        # Peers that stop at their limit, and privileged features that are of no use (the control).
        warnings.simplefilter("ignore")
        _announce(1, job)
        shown, sections = job(folder)
        _add(report, shown)
        report.sections += [Section(f"Job: {s.title.lower()}", s.body) for s in sections]
        for number, demo in enumerate(_DEMOS, start=2):
            _announce(number, demo)
            _add(report, demo())
    page = folder / "report.html"
    report.save(page)
    print(f"\n{perf_counter() - start:.0f} seconds. Report: {page.resolve()}")
    return page


@contextmanager
def step(text: str) -> Iterator[None]:
    """Print what is going on, and how long it took."""
    start = perf_counter()
    print(f"  {text} ...", end="", flush=True)
    yield
    print(f" {perf_counter() - start:.1f} s", flush=True)


def _announce(number: int, demo: Callable[..., Any]) -> None:
    """Print what comes next, in the words of its docstring."""
    print(f"[{number} of {1 + len(_DEMOS)}] {getdoc(demo)}", flush=True)


def _add(report: Report, shown: Shown) -> None:
    """Print a part and add it to the page."""
    print(f"\n{shown.title}\n{fill(shown.text, 100)}\n")
    if shown.rows:
        print(pd.DataFrame(shown.rows, columns=shown.header).to_string(index=False))
    code = ""
    if shown.commands:
        print(f"\nThe same as commands:\n\n{indent(shown.commands, '    ')}")
        code = paragraph("The same as commands:") + preformatted(shown.commands)
    print(flush=True)
    cells = table(shown.header, shown.rows) if shown.rows else ""
    body = f"{paragraph(shown.text)}{cells}{code}{shown.more}"
    report.sections.append(Section(shown.title, body))


def compile_needed() -> None:
    """Compile what the demo needs, by small fits."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 5))
    y = np.argmax(X[:, :3], axis=1)
    text = make_extreme_labels(60, 8, n_features=100, random_state=0)
    words = [X[k : k + 5] for k in range(0, 90, 5)], [y[k : k + 5] for k in range(0, 90, 5)]
    many = rng.normal(size=(6000, 5))
    with jit.eager(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sparse = text.X.tocsr(), np.arange(60) % 2
        widemargin.PreferenceSVC(precision=0.5, confidence=0.5).fit(*sparse).predict(text.X)
        widemargin.PreferenceSVC(recall=0.5).fit(X, y == 0).predict(X)
        widemargin.SVC().fit(many, many[:, 0] > 0).predict(many)
        teacher = widemargin.SVC().fit(X, y)
        widemargin.GatedStudents(teacher, gate="distilled", features=20).fit(X, y).predict(X)
        widemargin.LinearSVC().fit(X, y)
        widemargin.PrivilegedSVC(kernel="linear").fit(X, y == 0, privileged=X[:, :1]).predict(X)
        widemargin.LabelTreeClassifier().fit(text.X, text.Y).predict_topk(text.X, 2)
        FrankWolfeSSVM(ChainCRF(), max_iter=2).fit(*words).predict(words[0])
        FrankWolfeSSVM(MultiClassClf(), max_iter=2).fit(X, y).predict(X)


def job(folder: Path) -> tuple[Shown, list[Section]]:
    """From a table with text, categories and missing values to a model with a guarantee."""
    paths = folder / "tickets.csv", folder / "new_tickets.csv"
    with step("Generate support tickets: text, categories, numbers, missing values"):
        for seed, path in enumerate(paths):
            make_tickets(4000, seed).to_csv(path, index=False)
    wanted = {"precision": 0.9, "confidence": 0.95}
    chosen = methods.FitOptions(constraints=wanted, positive="escalated", seed=0)
    with step("Fit a classifier whose precision is guaranteed"):
        fitted = methods.fit(read_training(paths[0], "outcome"), None, chosen)
    model_file = folder / "tickets.skops"
    notes = {
        "trained_on": paths[0].name,
        "labeled_samples": fitted.n_labeled,
        "because": fitted.reason,
    }
    metadata = {"kinds": fitted.kinds, "target": "outcome", "notes": notes}
    save(fitted.model, model_file, metadata=metadata)
    with step("Evaluate it on new tickets"):
        report = report_on(model_file, paths[1])
    guarantee = fitted.model[-1].guarantee_
    new = pd.read_csv(paths[1])
    strings = new.assign(**{name: new[name].fillna("") for name in ("product", "channel")})
    accepted = fitted.model.predict(strings) == "escalated"
    true = (new["outcome"] == "escalated").to_numpy()
    text = (
        "4,000 generated support tickets with text, categories and missing values. Which will "
        "escalate? Nine of ten alarms shall be right (precision 0.9), with confidence 0.95. The "
        f"guarantee {'is given' if guarantee.guaranteed else 'cannot be given'}; on 4,000 new "
        "tickets precision and recall are those below."
    )
    commands = (
        "widemargin fit tickets.csv --target outcome --positive escalated --precision 0.9 "
        "--confidence 0.95 --seed 0 -o tickets.skops\n"
        "widemargin evaluate tickets.skops new_tickets.csv\n"
        "widemargin report tickets.skops new_tickets.csv -o tickets.html"
    )
    metrics = precision_score(true, accepted), recall_score(true, accepted)
    rows = [[str(int(accepted.sum())), *(f"{value:.3f}" for value in metrics)]]
    shown = Shown(
        "A job from the table to the guarantee",
        text,
        ["alarms", "precision on new tickets", "recall"],
        rows,
        commands,
    )
    wanted_sections = ("Constraint and guarantee", "Decision threshold", "Classes")
    return shown, [s for s in report.sections if s.title in wanted_sections]


def speed() -> Shown:
    """A kernel SVM beside scikit-learn's, on as many samples and features as ijcnn1 has."""
    X, y = make_classification(
        62_487, 22, n_informative=10, n_clusters_per_class=4, weights=[0.9], flip_y=0.0,
        class_sep=2.0, random_state=0,
    )  # fmt: skip
    X_train, X_test = X[:49_990], X[49_990:]
    scaler = StandardScaler().fit(X_train)
    X_train, X_test = scaler.transform(X_train), scaler.transform(X_test)
    rows = []
    for name, kind in (("widemargin", widemargin.SVC), ("scikit-learn", sklearn.svm.SVC)):
        model = kind()
        with step(f"Fit the SVC of {name} to 49,990 samples"):
            seconds = _seconds(lambda model=model: model.fit(X_train, y[:49_990]))
        accuracy = np.mean(model.predict(X_test) == y[49_990:])
        gap = getattr(model, "dual_gap_", None)
        proof = "not reported" if gap is None else f"{gap.max():.0e}"
        rows.append([name, f"{seconds:.1f}", f"{accuracy:.4f}", proof, str(len(model.support_))])
    factor = float(rows[1][1]) / max(float(rows[0][1]), 0.1)
    text = (
        "Generated samples in the shape of ijcnn1: 49,990 with 22 features, a tenth positive; RBF "
        "kernel, default parameters for both. The same problem is solved "
        f"{factor:.1f} times as fast as by scikit-learn, with a bound on the distance from the "
        "optimum."
    )
    header = ["", "fit, s", "test accuracy", "relative duality gap", "support vectors"]
    return Shown("Speed", text, header, rows)


def constraint() -> Shown:
    """How often a constraint is met on new samples, with and without a guarantee."""
    X, y = make_classification(36_000, 20, weights=[0.8], flip_y=0.05, random_state=0)
    results: dict[str, list] = {"tuned, no margin": [], "guaranteed at confidence 0.9": []}
    settings: list[dict[str, Any]] = [{"margin": None}, {"confidence": 0.9}]
    with step("Fit a constrained classifier, then calibrate it on 50 draws of 400 samples"):
        for name, setting in zip(results, settings, strict=True):
            model = widemargin.PreferenceSVC(precision=0.8, random_state=0, **setting)
            model.fit(X[:1000], y[:1000])
            scores, new = model.score_samples(X[21_000:]), y[21_000:]
            for draw in range(50):
                some = slice(1000 + 400 * draw, 1400 + 400 * draw)
                model.recalibrate(X[some], y[some])
                accepted = scores > model.threshold_
                both = precision_score(new, accepted), recall_score(new, accepted)
                results[name].append(both)
    rows, met = [], []
    for name, measured in results.items():
        precision, recall = np.transpose(measured)
        met.append((precision >= 0.8).sum())
        means = f"{precision.mean():.3f}", f"{recall.mean():.3f}"
        rows.append([name, f"{met[-1]} of 50", *means])
    text = (
        "Precision shall be at least 0.8. The threshold is chosen on 400 labeled samples, and the "
        "constraint is checked on 15,000 new ones; 50 times with other samples. A threshold that "
        f"just meets the constraint on its samples meets it on new ones {met[0]} times of 50. With "
        f"a confidence of 0.9, it is met {met[1]} times, at the price of some recall."
    )
    header = ["threshold", "constraint met", "mean precision", "mean recall"]
    return Shown("A constraint that is met", text, header, rows)


def students() -> Shown:
    """Distill a kernel SVM into one detector for each class."""
    X, y = load_satimage(subset="train", return_X_y=True)
    X_test, y_test = load_satimage(subset="test", return_X_y=True)
    with step("Fit a teacher with an RBF kernel, its students, and linear SVMs"):
        teacher = widemargin.SVC(C=10.0, gamma=1.0).fit(X, y)
        students = widemargin.GatedStudents(
            widemargin.SVC(C=10.0, gamma=1.0), cv=3, gate="distilled", features=100
        )
        distilled = students.fit(X, y)
        labels_alone = clone(students).set_params(gate_strength=0.0).fit(X, y)
        alone = widemargin.LinearSVC(dual=False).fit(X, y)
    one, other = distilled.students_[y[0]], labels_alone.students_[y[0]]
    detectors = {
        "teacher, RBF kernel": (_indicators(teacher.predict(X_test)), teacher.predict),
        "student, 100 landmarks": (distilled.decision_function(X_test) >= 0.0, one.predict),
        "100 landmarks, labels alone": (
            labels_alone.decision_function(X_test) >= 0.0,
            other.predict,
        ),
        "linear SVM on the labels": (alone.decision_function(X_test) > 0.0, alone.predict),
    }
    rows = []
    for name, (accepted, call) in detectors.items():
        seconds = min(_seconds(lambda call=call: call(X_test)) for _ in range(5))
        score = f1_score(_indicators(y_test), accepted, average="macro")
        rows.append([name, f"{score:.3f}", f"{1e6 * seconds / len(X_test):.2f}"])
    gain = float(rows[1][1]) - float(rows[2][1])
    text = (
        "Detectors of the six classes of satimage. A student replaces a multi-class SVM with "
        f"{len(teacher.support_):,} support vectors by a linear function of 100 kernel values, and "
        "needs neither the teacher nor the other classes. The same landmarks trained on the labels "
        f"alone cost the same; the teacher changes their F1 by {gain:+.3f}. The times of both are "
        "those of one class; the other two compute all six."
    )
    header = ["model", "mean F1 of the classes, test set", "microseconds per sample"]
    return Shown("Students that are cheaper than their teacher", text, header, rows)


def _indicators(labels: np.ndarray) -> np.ndarray:
    return labels[:, None] == np.unique(labels)


def privileged() -> Shown:
    """Use features that only the training samples have, beside a control."""
    grid = {"Cs": (0.1, 1.0, 10.0), "privileged_penalties": (0.1, 1.0, 10.0)}
    models: dict[str, Any] = {
        "PrivilegedSVC": widemargin.PrivilegedSVC(kernel="linear"),
        "PrivilegedSVCCV": widemargin.PrivilegedSVCCV(kernel="linear", **grid),
    }
    plain = widemargin.SVC(kernel="linear")
    accuracies: dict[str, list[float]] = {"none (SVC)": []}
    with step("Fit with and without privileged features, 10 draws"), warnings.catch_warnings():
        # That permuted features are of no use is what the control shows.
        warnings.simplefilter("ignore", UserWarning)
        for seed in range(10):
            X, y, late, truth = make_privileged(2060, random_state=seed)
            late = late[:60]
            permuted = np.random.default_rng(seed).permutation(late)
            accuracies["none (SVC)"].append(plain.fit(X[:60], y[:60]).score(X[60:], truth[60:]))
            for kind, columns in {"informative": late, "permuted (control)": permuted}.items():
                for name, model in models.items():
                    model.fit(X[:60], y[:60], privileged=columns)
                    score = model.score(X[60:], truth[60:])
                    accuracies.setdefault(f"{kind}, {name}", []).append(score)
    rows = [[who, f"{np.mean(got):.3f}", f"{np.std(got):.3f}"] for who, got in accuracies.items()]
    text = (
        "Half of the labels are noisy, and a feature that is known only at training time measures "
        "the noise: 60 generated training samples, evaluated against the noise-free rule. Permuted "
        "features are the control. They cost little, because each sample also has slack that is no "
        "function of them (slack_ridge). PrivilegedSVCCV selects how much, and C, in folds."
    )
    header = ["privileged features", "mean accuracy", "standard deviation"]
    return Shown("Privileged features", text, header, rows)


def words() -> Shown:
    """Read handwritten words with a chain."""
    letters = load_letters()
    X, Y = letters.data, letters.target
    train, test = slice(0, None, 2), slice(1, None, 2)
    with step("Train a classifier of letters and a chain of letters on 352 words"):
        chain = FrankWolfeSSVM(ChainCRF(), C=0.1, tol=0.05).fit(X[train], Y[train])
        alone: Any = FrankWolfeSSVM(MultiClassClf(), C=0.1, tol=0.05)
        alone.fit(np.concatenate(X[train]), np.concatenate(Y[train]))
    single = alone.score(np.concatenate(X[test]), np.concatenate(Y[test]))
    predicted = chain.predict(X[test])
    whole = np.mean([np.array_equal(y, p) for y, p in zip(Y[test], predicted, strict=True)])
    rows = [
        ["letter by letter", f"{single:.3f}"],
        ["chain", f"{chain.score(X[test], Y[test]):.3f}"],
    ]
    shown = [k for k, y in enumerate(Y[test]) if 6 <= len(y) <= 9][::40][:4]
    pictures = "".join(
        draw_word(X[test][k], "".join(letters.target_names[predicted[k]])) for k in shown
    )
    text = (
        "Handwritten words, half for training and half for testing. The chain learns which letters "
        f"follow each other; its objective is within {chain.dual_gap_:.1%} of the optimum, and it "
        f"reads {whole:.0%} of the words without any error. Some test words and what it reads:"
    )
    return Shown("Words", text, ["model", "letters correct"], rows, more=pictures)


def draw_word(images: np.ndarray, reading: str) -> Markup:
    """Return an inline SVG of a handwritten word above what was read.

    Parameters
    ----------
    images : ndarray of shape (n_letters, 128)
    reading : str

    Returns
    -------
    html : Markup
    """
    ink = np.concatenate([image.reshape(16, 8) for image in images], axis=1)
    path = "".join(f"M{x},{y}h1v1h-1z" for y, x in np.argwhere(ink > 0).tolist())
    width = ink.shape[1]
    letters = "".join(
        f'<text x="{8 * k + 4}" y="26" text-anchor="middle" style="font-size:8px">{c}</text>'
        for k, c in enumerate(reading)
    )
    return Markup(
        f'<svg viewBox="0 0 {width} 29" style="width:{4 * width}px" role="img" '
        f'aria-label="{reading}"><path class="ink" d="{path}"/>{letters}</svg>'
    )


def labels() -> Shown:
    """Tag documents with thousands of labels."""
    data = make_extreme_labels(12_000, 2_000, n_features=5_000, random_state=0)
    train, test = slice(0, 10_000), slice(10_000, None)
    model = widemargin.LabelTreeClassifier(n_trees=3)
    with step("Fit three label trees to 10,000 documents with 2,000 labels"):
        seconds = _seconds(lambda: model.fit(data.X[train], data.Y[train]))
    start = perf_counter()
    ranked, _ = model.predict_topk(data.X[test])
    each = 1e3 * (perf_counter() - start) / len(ranked)
    frequent = np.argsort(-np.asarray(data.Y[train].sum(axis=0)).ravel())[:5]
    guess = np.tile(frequent, (len(ranked), 1))
    rows = [
        [name, *(f"{widemargin.precision_at_k(data.Y[test], got, k):.3f}" for k in (1, 3, 5))]
        for name, got in (("label tree", ranked), ("most frequent labels", guess))
    ]
    text = (
        "12,000 generated documents with 2,000 labels that follow a power law. The tree is fitted "
        f"in {seconds:.1f} s; a prediction takes {each:.2f} ms, in a time that grows with the "
        "logarithm of the number of labels."
    )
    return Shown("Very many labels", text, ["", "P@1", "P@3", "P@5"], rows)


_DEMOS = (speed, constraint, students, privileged, words, labels)


def _seconds(call: Any) -> float:
    start = perf_counter()
    call()
    return perf_counter() - start
