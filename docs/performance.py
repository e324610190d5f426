"""Write the tables of the performance page from the results of the benchmarks.

The build of the documentation calls `write` before it reads the pages. Without results the page
explains how to produce them.
"""

import csv
import io
import json
import re
from pathlib import Path

DOCS = Path(__file__).resolve().parent
RESULTS = DOCS.parent / "benchmarks" / "results"
PAGE = DOCS / "performance_tables.inc"


def write(results=RESULTS, page=PAGE):
    """Write the tables of all results, or a note that there are none."""
    kept = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(results.glob("*.json"))]
    text = "\n".join(_section(result) for result in kept) if kept else _NOTHING
    page.write_text(text, encoding="utf-8")
    first = _summary_table(results).split("\n", 2)[2] if summary(results) else ""
    page.with_name("performance_summary.inc").write_text(first, encoding="utf-8")
    for name, excerpt in _EXCERPTS.items():
        page.with_name(f"performance_{name}.inc").write_text(excerpt(results), encoding="utf-8")


def _gains(results):
    """Return the gains over the first baseline by methods and controls that choose C."""
    path = results / "privileged_suite.json"
    if not path.exists():
        return _NOTHING
    [table] = json.loads(path.read_text(encoding="utf-8"))["tables"]
    chosen = [row for row in table["rows"] if row[3] and "C = 1" not in row[1]]
    gains = {(data, method): gain for data, method, _, gain, _ in chosen}
    names, methods = (list(dict.fromkeys(key[k] for key in gains)) for k in (0, 1))
    rows = [[name.replace("_", " "), *(gains[name, m] for m in methods)] for name in names]
    return _csv(["data", *methods], rows)


def _students(results):
    """Return F of distilled students and of their baselines, with a line for each comparison."""
    path = results / "gated_distilled.json"
    if not path.exists():
        return _NOTHING
    title, found = "Distilled students, ", {}
    for table in json.loads(path.read_text(encoding="utf-8"))["tables"]:
        setting = table["title"].removeprefix(title)
        for data, who, f, _, *gains, _ in table["rows"] if table["title"].startswith(title) else ():
            method, _, features = who.partition(", ")
            found[data, setting, features, method] = [f, *gains]
    rows = []
    for (data, setting, features, method), (f, *gains) in found.items():
        if method == "distilled students":
            controls = ("labels alone", "scores alone")
            others = [found[data, setting, features, control][0] for control in controls]
            shuffled = found[data, setting, features, "shuffled"][1]
            rows.append([data.replace("_", " "), setting, features, f, *others, *gains, shuffled])
    header = ["data", "setting", "features", "student", "labels alone", "scores alone"]
    return _csv([*header, "gain in F", "gain in AUC", "shuffled: gain in F"], rows)


def _guarantees(results):
    """Return how often each method gave a guarantee, and how often it held then."""
    rows = {}
    _, found = _part(results, "guarantee", "The guarantee, confidence 0.9")
    for data, who, given, met, *_ in found:
        count, _, problems = given.partition(" of ")
        if who in _GUARANTEED:
            name = f"{data} ({problems} problems)"
            rows.setdefault(name, {})[who] = count if met == "-" else f"{count} ({met})"
    cells = [[name, *(row.get(who, "") for who in _GUARANTEED)] for name, row in rows.items()]
    return _csv(["data", *_GUARANTEED.values()], cells) if cells else _NOTHING


def _margins(results):
    """Return how often constraints were met, and F1, without a guarantee."""
    title = "Constraints without a guarantee, by the margin"
    rows = [row[1:] for row in _part(results, "margin", title)[1] if row[0] == "check"]
    return _csv(["constraint", "threshold", "met", "F1"], rows) if rows else _NOTHING


def _starts(results):
    """Return in how many problems each rule for the start passed."""
    _, found = _part(results, "starts", "Starts of the fixed sequence")
    rows = [[confidence, start, total] for confidence, start, *_, total in found]
    return _csv(["confidence", "start", "problems with a guarantee"], rows) if rows else _NOTHING


def _excerpt(benchmark, title):
    """Return a function that returns a whole table of a part of `benchmarks/preference.py`."""

    def excerpt(results):
        header, rows = _part(results, benchmark, title)
        return _csv(header, rows) if rows else _NOTHING

    return excerpt


def _part(results, part, title):
    """Return header and rows of a table of a part of `benchmarks/preference.py`, or empty ones."""
    path = results / f"preference{part and '_'}{part}.json"
    tables = json.loads(path.read_text(encoding="utf-8"))["tables"] if path.exists() else []
    found = [(table["header"], table["rows"]) for table in tables if table["title"] == title]
    return found[0] if found else ([], [])


def _defaults(results):
    """Return the means over data sets of students with all defaults that were compared."""
    path = results / "gated_defaults.json"
    if not path.exists():
        return _NOTHING
    rows = []
    for table in json.loads(path.read_text(encoding="utf-8"))["tables"]:
        case = table["title"].removeprefix("Defaults of students, ").split(" teacher: ")
        rows += [[*case, *row[1:]] for row in table["rows"] if row[0] == "all"]
    header = ["teacher", "data sets", "students", "F", "AUC"]
    return _csv([*header, "gain in F over C = 1", "over labels alone"], rows)


def summary(results=RESULTS):
    """Return the rows of the summary: task, peer, how many times as fast, in how many seconds."""
    rows = []
    for task, peer, benchmark, title, key, ratio, seconds in _SUMMARY:
        path = results / f"{benchmark}.json"
        tables = json.loads(path.read_text(encoding="utf-8"))["tables"] if path.exists() else []
        found = [
            dict(zip(table["header"], row, strict=True))
            for table in tables
            if table["title"] == title
            for row in table["rows"]
            if row[: len(key)] == list(key)
        ]
        if found and found[0].get(ratio):
            rows.append([task, peer, found[0][ratio], found[0].get(seconds, "")])
    return rows


def update_readme(path=DOCS.parent / "README.md"):
    """Write the summary into the README."""
    text = path.read_text(encoding="utf-8")
    start, end = (text.index(mark) for mark in README_MARKS)
    path.write_text(text[:start] + readme_table() + text[end:], encoding="utf-8")


def readme_table(results=RESULTS):
    """Return the summary as a table of Markdown, from the first mark to the second."""
    lines = ["| task | compared with | times as fast |", "|---|---|---|"]
    lines += [f"| {task} | {peer} | {ratio} |" for task, peer, ratio, _ in summary(results)]
    return "\n".join([README_MARKS[0], *lines, ""])


def _summary_table(results):
    header = ["task", "compared with", "times as fast", "seconds of widemargin"]
    text = (
        "Time of the other library divided by ours, on two cores, for the same model up to the "
        "tolerance. Below 1, the other library is faster. All measurements are in the tables "
        "further down."
    )
    return _table("Summary", text, header, summary(results))


def _section(result):
    title = f"benchmarks/{result['benchmark']}.py"
    machine = ", ".join(f"{name} {value}" for name, value in result["machine"].items())
    known = _causes(result["benchmark"])
    bars = [
        [bar["bar"], bar["figure"], bar["verdict"], _cause(bar, known)] for bar in result["bars"]
    ]
    blocks = [f"{title}\n{'-' * len(title)}\n\nMeasured on: {machine}.\n"]
    if bars:
        header = ["target", "figure", "verdict", "cause"]
        blocks.append(_table("Targets", "", header, bars))
    blocks += [_table(**_with_causes(table, known)) for table in result["tables"]]
    if "growth" in result:
        blocks.append(
            ".. plot:: growth.py\n   :alt: Fit time in seconds over the number of samples\n"
        )
    return "\n".join(blocks)


def _causes(benchmark):
    """Return the known causes of missed targets and of fits in which a peer was faster."""
    text = (RESULTS.parent / "causes.json").read_text(encoding="utf-8")
    return json.loads(text).get(benchmark, {})


def _cause(bar, known):
    return known.get(bar["bar"], "not investigated") if bar["verdict"] == "missed" else ""


def _with_causes(table, known):
    if table["header"][-1] != "cause":
        return table
    rows = [
        [*row[:-1], known.get(f"{row[0]}, {row[table['header'].index('task')]}", row[-1])]
        for row in table["rows"]
    ]
    return {**table, "rows": rows}


def _table(title, text, header, rows):
    return f"{title}\n{'~' * len(title)}\n\n{text}\n\n{_csv(header, rows)}"


def _csv(header, rows):
    cells = io.StringIO()
    # In reStructuredText a word with a final underscore is a link.
    lines = [[re.sub(r"(?<=\w)_(?!\w)", r"\_", str(cell)) for cell in row] for row in rows]
    csv.writer(cells, lineterminator="\n").writerows([header, *lines])
    body = "".join(f"   {line}\n" for line in cells.getvalue().splitlines())
    return f".. csv-table::\n   :header-rows: 1\n\n{body}"


README_MARKS = "<!-- speed: python docs/performance.py -->\n", "<!-- end of speed -->"
_FIT, _PREDICT = "Large problems: time to fit", "Prediction"
_LINEAR, _LDA = "Linear machines: time to fit", "Linear discriminant analysis of tall data"
# Task, peer, benchmark, title of the table, first cells of the row, columns of ratio and seconds.
_SUMMARY = [
    (
        "Kernel SVM, fit, ijcnn1 (49,990 samples)", "scikit-learn",
        "core", _FIT, ["ijcnn1"], "times scikit-learn, 2", "2 threads",
    ),
    (
        "Kernel SVM, fit, ijcnn1", "scikit-learn-intelex",
        "core", _FIT, ["ijcnn1"], "times intelex, 2", "2 threads",
    ),
    (
        "Kernel SVM, predict, ijcnn1", "scikit-learn",
        "core", _PREDICT, ["ijcnn1"], "times scikit-learn", "s",
    ),
    (
        "Kernel SVM, predict, ijcnn1", "scikit-learn-intelex",
        "core", _PREDICT, ["ijcnn1"], "times intelex", "s",
    ),
    (
        "Kernel SVM, fit, iris (150 samples)", "scikit-learn",
        "core", "Small problems", ["iris"], "ratio of least", "",
    ),
    (
        "C and gamma by cross-validation", "scikit-learn's grid search",
        "core", "Tuning", ["GridSearchCV over scikit-learn's SVC"], "ratio", "",
    ),
    (
        "Linear SVM, hinge, a9a (32,561 samples)", "scikit-learn (liblinear)",
        "linear", _LINEAR, ["a9a", "hinge", "0.01"], "ratio", "1 thread",
    ),
    (
        "Linear discriminant, 200,000 x 200", "scikit-learn, its fastest solver",
        "discriminant", _LDA, ["200,000 x 200", "lsqr"], "times", "",
    ),
    (
        "Linear discriminant, 200,000 x 200", "scikit-learn, its default",
        "discriminant", _LDA, ["200,000 x 200", "svd, its default"], "times", "",
    ),
]  # fmt: skip
# Lines of the tables of guarantees, and the columns that they become.
_GUARANTEED = {
    "labels only, confidence": "PreferenceClassifier",
    "fixed sequence": "fixed sequence from the first rank that can pass",
    "MAPIE": "MAPIE",
    "MAPIE, fixed sequence": "MAPIE, fixed sequence",
    "MAPIE, five starts": "MAPIE, five starts",
    "MAPIE, learned sequence": "MAPIE, learned sequence",
}
_EXCERPTS = {
    "gains": _gains,
    "students": _students,
    "defaults": _defaults,
    "guarantees": _guarantees,
    "margins": _margins,
    "starts": _starts,
    "unlabeled": _excerpt("guarantee", "Guarantees by the number of unlabeled samples"),
    "broken": _excerpt("", "What breaks a guarantee"),
    "full_on_adult": _excerpt("gaps", "PSVM, FULL on Adult, by the threshold"),
    "tsvm_on_mnist": _excerpt("gaps", "TSVM on MNIST, by the number of unlabeled samples"),
}
_NOTHING = """\
.. note::

   There are no results yet; the commands above produce them.
"""


if __name__ == "__main__":
    update_readme()
