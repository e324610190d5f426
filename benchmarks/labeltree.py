"""Label trees compared with omikuji, napkinXC and PECOS: P@k, time, memory, size of the model.

    python benchmarks/labeltree.py --data DIR [--pecos PYTHON] [--full] [--json FILE] [--help]
        [--sets NAME ...] [--libraries NAME ...] [--trees N ...] [--update]

debian_depends, bibtex, delicious and sector from DIR, and generated sets. Samples have norm 1. All
libraries run with their default parameters and two threads; PECOS with a leaf size of 100. omikuji
and napkinXC are used where they are installed, PECOS (libpecos) through an interpreter of its own,
since it needs NumPy 1. omikuji reads its training data from a file and predicts one sample after
the other, which is how it works from Python.

The default run takes about twenty minutes. ``--full`` adds generated data of 131,073 labels, which
take another half an hour. ``--sets``, ``--libraries`` and ``--trees`` run a part, and
``--update`` keeps the other results of FILE, if they are from the same machine and versions.
"""

import argparse
import json
import os
import tempfile
from importlib.util import find_spec
from math import log
from pathlib import Path
from time import perf_counter, process_time

from _harness import Bench, Report, answer, loader, machine, options, peak_megabytes

REAL = ("bibtex", "delicious", "sector", "debian_depends")
GENERATED = {
    "generated 1k": {"n_samples": 13_000, "n_labels": 1_000, "n_features": 10_000},
    "generated 10k": {"n_samples": 65_000, "n_labels": 10_000, "n_features": 30_000},
}
LARGEST = {"n_samples": 429_640, "n_labels": 131_073, "n_features": 80_000}
LARGEST_TEST = 134_835
METHODS = {
    "widemargin": (1, 3),
    "omikuji": (1, 3),
    "napkinXC": (1,),
    "PECOS": (1,),
}
GROWTH = (1_000, 4_000, 16_000, 64_000)
K = 5


def main(arguments=None):
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--pecos", help="interpreter in whose environment libpecos is installed")
    parser.add_argument("--sets", nargs="+", help="data sets, all by default")
    parser.add_argument("--libraries", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--trees", nargs="+", type=int, default=[1, 3], choices=[1, 3])
    parser.add_argument("--update", action="store_true", help="keep the other results of --json")
    own, others = parser.parse_known_args(arguments)
    chosen = options(__doc__.splitlines()[0], PARTS, others)
    if chosen.task:
        answer(chosen.task, TASKS)
        return
    chosen.pecos, chosen.libraries, chosen.trees = own.pecos, own.libraries, own.trees
    chosen.sets = [*(REAL if chosen.data else ()), *GENERATED, *(["131k"] if chosen.full else [])]
    chosen.sets = [name for name in chosen.sets if own.sets is None or name in own.sets]
    facts = machine("widemargin", "numpy", "scipy", "numba", "omikuji", "napkinxc")
    report = Report("labeltree", chosen.json, facts)
    if own.update:
        restore(report, chosen.json)
    with tempfile.TemporaryDirectory() as folder:
        chosen.folder = folder
        for part in chosen.only:
            PARTS[part](Bench(__file__), report, chosen)
    for kind, key in (("tables", "title"), ("bars", "bar")):  # the last of each name
        report.kept[kind] = list({entry[key]: entry for entry in report.kept[kind]}.values())
    report.close()


def restore(report, path):
    """Take over the results of an earlier run."""
    stored = json.loads(path.read_text(encoding="utf-8"))
    if stored["machine"] != report.kept["machine"]:
        raise SystemExit(f"{path} has results of another machine or of other versions.")
    report.kept |= stored


def peers(bench, report, chosen):
    """Compare all libraries on all sets."""
    for name in chosen.sets:
        folder = f"{chosen.folder}/{name}"
        sizes = bench.run("prepare", name=name, data=chosen.data, folder=folder, rows=chosen.rows)
        runs = dict(report.kept.get(name, {}))
        for method in chosen.libraries:
            for n_trees in set(METHODS[method]) & set(chosen.trees):
                run = run_method(bench, chosen, method, folder, n_trees)
                if run is not None:
                    runs[f"{method}, {n_trees}"] = run | bench.run("score", folder=folder)
        order = [f"{method}, {n}" for method, trees in METHODS.items() for n in trees]
        runs = {key: runs[key] for key in order if key in runs}
        text = "{train} training and {test} test samples, {features} features, {labels} labels."
        rows = [row_of(*key.split(", "), run) for key, run in runs.items()]
        report.table(name, text.format(**sizes), HEADER, rows)
        report.keep(name, runs)
    judge(report, results(report))


def results(report):
    """Return the figures by set, library and number of trees."""
    found = {}
    for name in [*REAL, *GENERATED, "131k"]:
        for key, run in report.kept.get(name, {}).items():
            method, n_trees = key.split(", ")
            found[name, method, int(n_trees)] = run
    return found


HEADER = [
    "library", "trees", "P@1", "P@3", "P@5", "PSP@5", "fit s", "fit CPU s", "predict s",
    "predict CPU s", "memory MB", "model MB",
]  # fmt: skip


def row_of(method, n_trees, run):
    precision = [f"{100 * run[f'P@{k}']:.2f}" for k in (1, 3, 5)]
    seconds = [f"{run[key]:.2f}" for key in ("fit", "fit_cpu", "predict", "predict_cpu")]
    memory = [f"{run[key]:.1f}" for key in ("memory", "size")]
    return [method, n_trees, *precision, f"{100 * run['PSP@5']:.2f}", *seconds, *memory]


def run_method(bench, chosen, method, folder, n_trees):
    """Return the figures of a library; None where it is not installed."""
    if method == "PECOS":
        if chosen.pecos is None:
            return None
        bench = Bench(__file__, chosen.pecos)
    elif method != "widemargin" and find_spec(method.lower()) is None:
        return None
    return bench.run(method, folder=folder, n_trees=n_trees)


def judge(report, found):
    """Compare the figures with the bars."""
    sets = sorted({name for name, _, _ in found})
    differences = []
    for name in sets:
        for n_trees in (1, 3):
            ours = found.get((name, "widemargin", n_trees))
            theirs = [
                run
                for (n, method, t), run in found.items()
                if (n, t) == (name, n_trees) and method != "widemargin"
            ]
            if not (ours and theirs):
                continue
            for k in (1, 3, 5):
                best = max(run[f"P@{k}"] for run in theirs)
                differences.append(100 * (ours[f"P@{k}"] - best))
                claim = f"{name}, {n_trees} trees: P@{k} at or above the best peer less .3 points"
                report.bar(claim, differences[-1], differences[-1] >= -0.3, " points")
        judge_costs(report, name, found)
    if differences:
        mean = sum(differences) / len(differences)
        report.bar("P@1, 3 and 5 above the best peer on average", mean, mean > 0.0, " points")


def judge_costs(report, name, found):
    ours = found[name, "widemargin", 1]
    theirs = [
        run
        for (n, method, t), run in found.items()
        if (n, t) == (name, 1) and method != "widemargin"
    ]
    if not theirs:
        return
    for key, what in (("fit_cpu", "training"), ("predict_cpu", "prediction")):
        ratio = min(run[key] for run in theirs) / ours[key]
        claim = f"{name}: {what} not slower than the fastest peer (CPU time)"
        report.bar(claim, ratio, ratio >= 1.0, " times as fast")
    for key, what in (("memory", "peak memory"), ("size", "model size")):
        values = sorted(run[key] for run in theirs)
        median = (values[(len(values) - 1) // 2] + values[len(values) // 2]) / 2
        claim = f"{name}: {what} not above the median of the peers"
        report.bar(claim, ours[key] / median, ours[key] <= median, " of the median")


def growth(bench, report, chosen):
    """Measure the time over the number of labels, with as many samples."""
    n_samples = chosen.rows or 50_000
    rows, curve = [], []
    for n_labels in [*GROWTH, *([131_073] if chosen.full else [])]:
        folder = f"{chosen.folder}/growth{n_labels}"
        run = bench.run("grow", folder=folder, n_samples=n_samples, n_labels=n_labels)
        curve.append((n_labels, run["fit_cpu"], run["predict_cpu"]))
        rows.append([f"{n_labels:,}", *(f"{run[key]:.2f}" for key in ("fit_cpu", "predict_cpu"))])
    (few, *first), (many, *last) = curve[0], curve[-1]
    exponents = [log(b / a) / log(many / few) for a, b in zip(first, last, strict=True)]
    rows.append(["exponent", *(f"{exponent:.2f}" for exponent in exponents)])
    text = f"{n_samples:,} generated samples; CPU seconds of fit, and of predictions of as many."
    report.table("Growth over labels", text, ["labels", "fit", "predict"], rows)
    report.keep("growth", curve)
    claim = "training time grows more slowly than the square root of the number of labels"
    report.bar(claim, exponents[0], exponents[0] < 0.5)


SETTINGS = {
    "default": {},
    "3 trees": {"n_trees": 3},
    "joint nodes": {"loss": "crammer_singer"},
    "hinge": {"loss": "hinge"},
    "label features": {"partition": "label_features"},
    "label features and centroids": {"partition": "both"},
    "random": {"partition": "random"},
    "Huffman": {"partition": "huffman"},
    "binary tree": {"branching": 2},
    "branching 256": {"branching": 256},
    "exponent 2": {"score_exponent": 2},
    "exponent 3": {"score_exponent": 3},
}
# Tried on the smaller sets only, to save time.
SMALL = ("bibtex", "delicious", "sector")
TUNING = {
    "C 0.3": {"C": 0.3},
    "C 3": {"C": 3.0},
    "leaves of 400": {"max_leaf_size": 400},
    "prune 0.02": {"prune": 0.02},
    "log, C 3": {"loss": "log", "C": 3.0},
    "beam 20": {"beam_width": 20},
}


def single(bench, report, chosen):
    """Compare the times of predictions of one sample at a time."""
    folder = f"{chosen.folder}/single"
    bench.run("prepare", name="generated 10k", data=chosen.data, folder=folder, rows=chosen.rows)
    names = [n for n in ("widemargin", "omikuji") if n == "widemargin" or find_spec(n)]
    found = {name: bench.run("one by one", folder=folder, name=name) for name in names}
    rows = [
        [name, *(f"{run[key]:.0f}" for key in ("median", "worst"))] for name, run in found.items()
    ]
    text = "Microseconds of CPU time for a sample of generated 10k, median and 99th percentile."
    report.table("One sample at a time", text, ["library", "median", "99 %"], rows)
    report.keep("single", found)


def one_by_one(folder, name):
    """Return the microseconds of CPU time of predictions of single samples."""
    import numpy as np

    X, Y, test = (read(folder, part) for part in ("X_train", "Y_train", "X_test"))
    if name == "omikuji":
        import omikuji

        from widemargin import save_extreme_format

        save_extreme_format(f"{folder}/train.txt", X, Y)
        parameters = omikuji.Model.default_hyper_param()
        parameters.n_trees = 1
        model = omikuji.Model.train_on_data(f"{folder}/train.txt", parameters, 2)

        def predict(i):
            row = slice(test.indptr[i], test.indptr[i + 1])
            pairs = zip(test.indices[row].tolist(), test.data[row].tolist(), strict=True)
            return model.predict(list(pairs), top_k=K)
    else:
        from widemargin import LabelTreeClassifier

        fitted = LabelTreeClassifier().fit(X, Y)

        def predict(i):
            return fitted.predict_topk(test[[i]], K)

    predict(0)
    times = []
    for i in range(1000):
        clock = Clock()
        predict(i)
        times.append(1e6 * clock("one")["one_cpu"])
    return {"median": float(np.median(times)), "worst": float(np.percentile(times, 99))}


def settings(bench, report, chosen):
    """Compare the settings of label trees."""
    stored = report.kept.get("settings", {})
    found: dict = {setting: dict(stored.get(setting, {})) for setting in [*SETTINGS, *TUNING]}
    for name in chosen.sets:
        if name == "131k":
            continue
        folder = f"{chosen.folder}/{name}"
        bench.run("prepare", name=name, data=chosen.data, folder=folder, rows=chosen.rows)
        generated = name in GENERATED
        tried = SETTINGS | TUNING if name in SMALL else SETTINGS
        for setting, parameters in tried.items():
            if "label features" not in setting or generated:
                run = bench.run("widemargin", folder=folder, n_trees=1, parameters=parameters)
                found[setting][name] = run | bench.run("score", folder=folder)
    names = [name for name in [*REAL, *GENERATED] if name in found["default"]]
    for key, title, scale, text in (
        ("P@1", "P@1 by setting", 100, "Percent."),
        ("P@3", "P@3 by setting", 100, "Percent."),
        ("P@5", "P@5 by setting", 100, "Percent."),
        ("fit_cpu", "Training time by setting", 1, "CPU seconds."),
        ("size", "Size of the model by setting", 1, "MB."),
    ):
        rows = [
            [setting, *(f"{scale * runs[n][key]:.2f}" if n in runs else "" for n in names)]
            for setting, runs in found.items()
        ]
        report.table(title, text, ["setting", *names], rows)
    report.keep("settings", found)


def prepare(name, data, folder, rows=None):
    """Write the training and test samples of a set to a folder."""
    import numpy as np
    import scipy.sparse as sp
    from sklearn.preprocessing import normalize

    Path(folder).mkdir(parents=True, exist_ok=True)
    if name in REAL:
        raw = loader(data)(name)
        parts = {part: raw[f"X_{part}"] for part in ("train", "test")}
        if "Y_train" in raw:
            targets = {part: raw[f"Y_{part}"] for part in parts}
        else:
            classes = np.unique(raw["y_train"])
            targets = {part: raw[f"y_{part}"][:, np.newaxis] == classes for part in parts}
    else:
        parts, targets = generate(**(LARGEST if name == "131k" else GENERATED[name]), folder=folder)
    for part in parts:
        X = sp.csr_array(normalize(sp.csr_array(parts[part], dtype=np.float64)))[:rows]
        Y = sp.csr_array(targets[part], dtype=np.float32)[:rows]
        Y.eliminate_zeros()
        sp.save_npz(f"{folder}/X_{part}.npz", sp.csr_matrix(X), compressed=False)
        sp.save_npz(f"{folder}/Y_{part}.npz", sp.csr_matrix(Y), compressed=False)
    sizes = {"train": X_shape(folder, "X_train")[0], "test": X_shape(folder, "X_test")[0]}
    features, labels = X_shape(folder, "X_train")[1], X_shape(folder, "Y_train")[1]
    return {key: f"{n:,}" for key, n in {**sizes, "features": features, "labels": labels}.items()}


def X_shape(folder, name):  # noqa: N802
    return read(folder, name).shape


def generate(n_samples, n_labels, n_features, folder):
    import scipy.sparse as sp

    from widemargin.datasets import make_extreme_labels

    data = make_extreme_labels(
        n_samples, n_labels, n_features=n_features, power=0.75, words_per_sample=12, random_state=0
    )
    test = LARGEST_TEST if n_samples == LARGEST["n_samples"] else n_samples // 5
    sp.save_npz(f"{folder}/label_features.npz", sp.csr_matrix(data.label_features))
    cut = {"train": slice(n_samples - test), "test": slice(n_samples - test, None)}
    return (
        {part: data.X[rows] for part, rows in cut.items()},
        {part: data.Y[rows] for part, rows in cut.items()},
    )


def read(folder, name):
    import scipy.sparse as sp

    return sp.load_npz(f"{folder}/{name}.npz")


class Clock:
    """Wall-clock and CPU seconds since the last call."""

    def __init__(self):
        self.last = perf_counter(), process_time()

    def __call__(self, name):
        now = perf_counter(), process_time()
        wall, processor = (b - a for a, b in zip(self.last, now, strict=True))
        self.last = now
        return {name: wall, f"{name}_cpu": processor}


def train_widemargin(folder, n_trees, parameters=None):
    import joblib
    import numpy as np

    from widemargin import LabelTreeClassifier

    X, Y, test = (read(folder, name) for name in ("X_train", "Y_train", "X_test"))
    arguments = dict(parameters or {})
    extra = {}
    if arguments.get("partition") in ("label_features", "both"):
        extra["label_features"] = read(folder, "label_features")
    model = LabelTreeClassifier(**({"n_trees": n_trees} | arguments))
    few = slice(0, 200)  # load compiled code
    model.fit(X[few], Y[few], **extra).predict_topk(X[few], 1)
    before = peak_megabytes()
    clock = Clock()
    figures = (model.fit(X, Y, **extra), clock("fit"))[1]
    labels, _ = model.predict_topk(test, K)
    figures |= clock("predict")
    np.save(f"{folder}/labels.npy", labels)
    figures["memory"] = peak_megabytes() - before
    joblib.dump(model, f"{folder}/model.joblib")
    return figures | {"size": os.path.getsize(f"{folder}/model.joblib") / 1e6}


def train_pecos(folder, n_trees):
    import numpy as np
    from pecos.xmc import Indexer, LabelEmbeddingFactory
    from pecos.xmc.xlinear.model import XLinearModel

    X, Y, test = (read(folder, n).astype(np.float32) for n in ("X_train", "Y_train", "X_test"))
    before = peak_megabytes()
    clock = Clock()
    features = LabelEmbeddingFactory.create(Y, X, method="pifa")
    clusters = Indexer.gen(
        features, indexer_type="hierarchicalkmeans", nr_splits=16, max_leaf_size=100, threads=2
    )
    model = XLinearModel.train(X, Y, C=clusters, threads=2)
    figures = clock("fit")
    found = model.predict(test, only_topk=K, beam_size=10, threads=2).tocsr()
    figures |= clock("predict")
    labels = np.zeros((test.shape[0], K), np.int64)
    for i in range(test.shape[0]):
        row = slice(found.indptr[i], found.indptr[i + 1])
        best = found.indices[row][np.argsort(-found.data[row], kind="stable")]
        labels[i, : len(best)] = best
    np.save(f"{folder}/labels.npy", labels)
    figures["memory"] = peak_megabytes() - before
    model.save(f"{folder}/pecos")
    return figures | {"size": folder_megabytes(f"{folder}/pecos")}


def train_omikuji(folder, n_trees):
    import numpy as np
    import omikuji

    from widemargin import save_extreme_format

    X, Y, test = (read(folder, name) for name in ("X_train", "Y_train", "X_test"))
    save_extreme_format(f"{folder}/train.txt", X, Y)
    rows = [
        list(zip(test.indices[a:b].tolist(), test.data[a:b].tolist(), strict=True))
        for a, b in zip(test.indptr, test.indptr[1:], strict=False)
    ]
    before = peak_megabytes()
    clock = Clock()
    parameters = omikuji.Model.default_hyper_param()
    parameters.n_trees = n_trees
    model = omikuji.Model.train_on_data(f"{folder}/train.txt", parameters, 2)
    figures = clock("fit")
    found = [model.predict(row, top_k=K) for row in rows]
    figures |= clock("predict")
    figures["memory"] = peak_megabytes() - before
    np.save(f"{folder}/labels.npy", ranking(found))
    model.save(f"{folder}/omikuji{n_trees}")
    return figures | {"size": folder_megabytes(f"{folder}/omikuji{n_trees}")}


def train_napkinxc(folder, n_trees):
    import numpy as np
    from napkinxc.models import PLT

    X, Y, test = (read(folder, name) for name in ("X_train", "Y_train", "X_test"))
    lists = [Y.indices[a:b].tolist() for a, b in zip(Y.indptr, Y.indptr[1:], strict=False)]
    before = peak_megabytes()
    clock = Clock()
    model = PLT(f"{folder}/napkinxc{n_trees}", ensemble=n_trees if n_trees > 1 else 0, threads=2)
    model.fit(X, lists)
    figures = clock("fit")
    found = model.predict(test, top_k=K)
    figures |= clock("predict")
    figures["memory"] = peak_megabytes() - before
    np.save(f"{folder}/labels.npy", ranking([[(label, 0.0) for label in row] for row in found]))
    return figures | {"size": folder_megabytes(f"{folder}/napkinxc{n_trees}")}


def ranking(found):
    """Return labels as an array; where there are fewer than K, the first one fills the rest."""
    import numpy as np

    labels = np.zeros((len(found), K), np.int64)
    for i, row in enumerate(found):
        names = [label for label, _ in row[:K]]
        labels[i] = names + [names[0] if names else 0] * (K - len(names))
    return labels


def folder_megabytes(folder):
    return sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file()) / 1e6


def score(folder):
    """Return the metrics of the labels that a method wrote."""
    import numpy as np

    from widemargin import label_propensities, ndcg_at_k, precision_at_k

    labels, Y = np.load(f"{folder}/labels.npy"), read(folder, "Y_test")
    propensity = label_propensities(read(folder, "Y_train"))
    figures = {f"P@{k}": precision_at_k(Y, labels, k) for k in (1, 3, 5)}
    figures |= {f"nDCG@{k}": ndcg_at_k(Y, labels, k) for k in (3, 5)}
    return figures | {f"PSP@{k}": precision_at_k(Y, labels, k, propensity) for k in (1, 3, 5)}


def grow(folder, n_samples, n_labels):
    import scipy.sparse as sp

    Path(folder).mkdir(parents=True, exist_ok=True)
    parts, targets = generate(2 * n_samples, n_labels, 30_000, folder)
    for part, matrix in parts.items():
        sp.save_npz(f"{folder}/X_{part}.npz", sp.csr_matrix(matrix[:n_samples]))
        sp.save_npz(f"{folder}/Y_{part}.npz", sp.csr_matrix(targets[part][:n_samples]))
    return train_widemargin(folder, 1)


PARTS = {"peers": peers, "growth": growth, "settings": settings, "single": single}
TASKS = {
    "prepare": prepare,
    "widemargin": train_widemargin,
    "PECOS": train_pecos,
    "omikuji": train_omikuji,
    "napkinXC": train_napkinxc,
    "score": score,
    "grow": grow,
    "one by one": one_by_one,
}

if __name__ == "__main__":
    main()
