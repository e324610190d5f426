"""Discriminant analysis compared with scikit-learn: time, memory, probabilities, and a large file.

    python benchmarks/discriminant.py [--data DIR] [--full] [--json FILE] [--help]

Every fit is measured in a separate process, on the same generated Gaussian classes. Ratios are the
time of the peer divided by ours. Memory is the peak memory of the process minus that of the input.
"""

import os
from pathlib import Path
from tempfile import TemporaryDirectory

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

# samples, features, classes
TALL = [(200_000, 200, 20), (1_000_000, 50, 10)]
TALLEST = [(1_000_000, 200, 20), (50_000, 1_000, 10)]
PEERS = {
    "lsqr": {"solver": "lsqr"},
    "eigen": {"solver": "eigen"},
    "svd, its default": {"solver": "svd"},
}
SMALL = ("iris", "wine", "breast cancer", "digits")
BUDGET = 150  # MB
FILE = (1_250_000, 200, 20)  # 2,000 MB
STEP = 20_000
SAME = 1e-8
LONG = 4.0  # seconds; what takes longer is fitted once


def main(arguments=None):
    chosen = options(__doc__.splitlines()[0], PARTS, arguments)
    if chosen.task:
        answer(chosen.task, TASKS)
        return
    report = Report(
        "discriminant", chosen.json, machine("widemargin", "numpy", "scipy", "scikit-learn")
    )
    bench = Bench(__file__)
    for part in chosen.only:
        PARTS[part](bench, report, chosen)
    report.close()


def sizes(chosen):
    found = TALL + (TALLEST if chosen.full else [])
    if chosen.rows is not None:
        found = [(min(n, chosen.rows), min(d, chosen.rows // 4), k) for n, d, k in found]
    return {f"{n:,} x {d:,}": (n, d, k) for n, d, k in found}


def tall(bench, report, chosen):
    rows = []
    for name, size in sizes(chosen).items():
        ours = bench.run("fit", who="ours", size=size, budget=chosen.budget)
        peers = {
            peer: bench.run("fit", who="scikit-learn", size=size, parameters=parameters)
            for peer, parameters in PEERS.items()
        }
        rows.append([name, "ours", f"{ours['least']:.3f}", "", f"{ours['extra']:.0f}"])
        for peer, found in peers.items():
            ratio = found["least"] / ours["least"]
            rows.append(
                [name, peer, f"{found['least']:.3f}", f"{ratio:.1f}", f"{found['extra']:.0f}"]
            )
        fastest = min(found["least"] for found in peers.values()) / ours["least"]
        default = peers["svd, its default"]["least"] / ours["least"]
        report.bar(f"{name}: at least 2 times its fastest solver", fastest, fastest >= 2)
        report.bar(f"{name}: at least 10 times its default", default, default >= 10)
        n, d, _ = size
        most = 8 * (10 * d * d + 10 * 2**19) / 2**20  # ten scatters and ten chunks
        report.bar(
            f"{name}: at most {most:.0f} MB beyond the {8 * n * d / 2**20:.0f} MB of samples",
            ours["extra"],
            ours["extra"] <= most,
            " MB",
        )
    report.table(
        "Linear discriminant analysis of tall data",
        "Fits with default parameters but for the solver named, two threads. Memory is in MB, "
        "beyond the samples.",
        ["samples x features", "solver", "seconds", "times", "memory"],
        rows,
    )


def shrunk(bench, report, chosen):
    rows = []
    for name, size in list(sizes(chosen).items())[:1]:
        for shrinkage in ("auto", 0.1):
            parameters = {"shrinkage": shrinkage}
            ours = bench.run(
                "fit", who="ours", size=size, parameters=parameters, budget=chosen.budget
            )
            for solver in ("lsqr", "eigen"):
                theirs = bench.run(
                    "fit",
                    who="scikit-learn",
                    size=size,
                    parameters=parameters | {"solver": solver},
                )
                rows.append(
                    [
                        f"{name}, {shrinkage}",
                        solver,
                        *(f"{who['least']:.3f}" for who in (ours, theirs)),
                        f"{theirs['least'] / ours['least']:.1f}",
                        *(f"{who['extra']:.0f}" for who in (ours, theirs)),
                    ]
                )
    report.table(
        "With shrinkage",
        "'auto' is the formula of Ledoit and Wolf for each class. Ours keeps fourth moments for "
        "it, so that it can be computed in batches, which the peer cannot.",
        ["data", "its solver", "seconds", "its", "times", "MB", "its"],
        rows,
    )


def quadratic(bench, report, chosen):
    rows = []
    for n, d, k in sizes(chosen).values():
        size = (n // 2, max(1, min(d, 100, n // (16 * k))), k)
        ours = bench.run(
            "fit", who="ours", kind="Quadratic", size=size, budget=chosen.budget, predict=20_000
        )
        theirs = bench.run("fit", who="scikit-learn", kind="Quadratic", size=size, predict=20_000)
        rows.append(
            [
                f"{size[0]:,} x {size[1]}, {k} classes",
                *(f"{who['least']:.3f}" for who in (ours, theirs)),
                f"{theirs['least'] / ours['least']:.1f}",
                *(f"{who['predict']:.3f}" for who in (ours, theirs)),
                f"{theirs['predict'] / ours['predict']:.1f}",
                *(f"{who['extra']:.0f}" for who in (ours, theirs)),
            ]
        )
    report.table(
        "Quadratic discriminant analysis",
        "Default parameters; prediction is of 20,000 samples.",
        ["data", "fit s", "its", "times", "predict s", "its", "times", "MB", "its"],
        rows,
    )


def small(bench, report, chosen):
    rows = []
    for name in SMALL:
        found = bench.run("small", name=name, budget=chosen.budget)
        rows.append(
            [
                name,
                *(f"{1000 * found[who]:.2f}" for who in ("ours", "scikit-learn")),
                f"{found['scikit-learn'] / found['ours']:.2f}",
                f"{found['difference']:.0e}",
            ]
        )
        report.bar(
            f"{name}: probabilities equal to {SAME:g}",
            found["difference"],
            found["difference"] <= SAME,
        )
    report.table(
        "Small data",
        "Milliseconds of a fit with default parameters of both, and the largest difference between "
        "their probabilities of the training samples.",
        ["data", "ms", "its", "times", "difference"],
        rows,
    )


def agreement(bench, report, chosen):
    rows = []
    for name, size in sizes(chosen).items():
        for offset in (0.0, 1e6):
            found = bench.run("agree", size=size, offset=offset)
            proba, pieces, peer = (found[key] for key in ("proba", "pieces", "peer"))
            rows.append([name, f"{offset:g}", f"{proba:.0e}", f"{pieces:.0e}", f"{peer:.0e}"])
            where = f"{name}, offset {offset:g}"
            report.bar(f"{where}: probabilities equal to {SAME:g}", proba, proba <= SAME)
            report.bar(f"{where}: pieces equal the whole to 1e-9", pieces, pieces <= 1e-9)
    report.table(
        "Agreement",
        "An offset is added to all features. Largest difference between our probabilities and "
        "those of the peer's default for the samples minus the offset (which can be subtracted "
        "without rounding: both get the same samples), and between ours after fit and after "
        "partial_fit in batches of 7,919; last, between those of the peer with and without the "
        "offset.",
        ["samples x features", "offset", "to the peer", "to pieces", "the peer's own"],
        rows,
    )


def stream(bench, report, chosen):
    size = (min(FILE[0], 40 * chosen.rows), 40, 5) if chosen.rows else FILE
    with TemporaryDirectory() as folder:
        path = os.path.join(folder, "rows.npy")
        bench.run("write", path=path, size=size)
        megabytes = os.path.getsize(path) / 2**20
        budget = 64 if chosen.rows else BUDGET
        pieces = bench.run("stream", path=path, size=size, budget=budget)
        whole = bench.run("whole", path=path, size=size)
    differ = max(abs(a - b) for a, b in zip(pieces["coef"], whole["coef"], strict=True)) / max(
        map(abs, whole["coef"])
    )
    report.table(
        "A file larger than memory",
        f"{size[0]:,} samples with {size[1]} features and {size[2]} classes. partial_fit reads "
        f"batches of {STEP:,} samples in a process whose additional memory is limited to the "
        "budget once the code is loaded; fit reads the whole file into memory.",
        ["", "file MB", "budget MB", "peak MB", "seconds", "of which reading"],
        [
            [
                "pieces",
                f"{megabytes:.0f}",
                f"{budget:.0f}",
                f"{pieces['extra']:.0f}",
                f"{pieces['seconds']:.2f}",
                f"{pieces['reading']:.2f}",
            ],
            [
                "whole",
                f"{megabytes:.0f}",
                "",
                f"{whole['extra']:.0f}",
                f"{whole['seconds']:.2f}",
                f"{whole['reading']:.2f}",
            ],
        ],
    )
    report.bar(
        f"a file of {megabytes / budget:.1f} times the budget goes through it",
        pieces["extra"] / budget,
        pieces["extra"] <= budget,
        " of the budget",
    )
    report.bar("and gives the coefficients of the whole to 1e-9", differ, differ <= 1e-9)


def accuracy(bench, report, chosen):
    if chosen.data is None:
        print("accuracy is left out: it needs --data DIR.")
        return
    rows = []
    for name in ("vowel", "satimage", "letter"):
        found = bench.run("accuracy", name=name, data=chosen.data.resolve(), rows=chosen.rows)
        rows.append([name, *(f"{found[model]:.3f}" for model in MODELS)])
    report.table(
        "Accuracy on test samples",
        "Standardized features and default parameters, except for shrinkage='oas' in the quadratic "
        "one and a kernel width selected by cross-validation on training samples. On letter the "
        "kernel classifier is the linear one with 1,000 Nyström features.",
        ["data", *MODELS],
        rows,
    )


PARTS = {
    "tall": tall,
    "agreement": agreement,
    "stream": stream,
    "shrunk": shrunk,
    "quadratic": quadratic,
    "small": small,
    "accuracy": accuracy,
}
MODELS = ("linear", "linear, scikit-learn", "quadratic, shrunk", "kernel")


def generated(size, offset=0.0):
    """Return samples of Gaussian classes with one covariance, without a second copy."""
    import numpy as np

    n, d, k = size
    rng = np.random.default_rng(0)
    mixing = 0.3 * rng.standard_normal((d, d)) / np.sqrt(d) + np.eye(d)
    means = rng.standard_normal((k, d)) @ mixing * (1.5 / np.sqrt(d))  # classes overlap
    y = rng.integers(k, size=n)
    X = np.empty((n, d))
    for start in range(0, n, STEP):
        rows = slice(start, start + STEP)
        X[rows] = rng.standard_normal(X[rows].shape) @ mixing + means[y[rows]] + offset
    return X, y


def model(who, kind="Linear", parameters=None):
    if who == "ours":
        import widemargin as home
    else:
        from sklearn import discriminant_analysis as home
    return getattr(home, f"{kind}DiscriminantAnalysis")(**(parameters or {}))


def task_fit(who, size, kind="Linear", parameters=None, budget=0.0, predict=0):
    X, y = generated(size)
    estimator = model(who, kind, parameters)
    before = peak_megabytes()
    first = timed(lambda: estimator.fit(X, y))
    extra = peak_megabytes() - before
    if first < LONG:
        first = min(first, repeated(lambda: estimator.fit(X, y), budget)[1])
    found = {"least": first, "extra": extra}
    if predict:
        _, found["predict"] = repeated(lambda: estimator.predict_proba(X[:predict]), 2)
    return found


def task_small(name, budget):
    import numpy as np
    from sklearn import datasets

    X, y = getattr(datasets, f"load_{name.replace(' ', '_')}")(return_X_y=True)
    models = {who: model(who) for who in ("ours", "scikit-learn")}
    found = {}
    for _ in range(2):
        for who, one in models.items():
            _, least = repeated(lambda one=one: one.fit(X, y), budget / 8)
            found[who] = min(least, found.get(who, least))
    ours, theirs = (one.predict_proba(X) for one in models.values())
    return found | {"difference": float(np.abs(ours - theirs).max())}


def task_agree(size, offset):
    import numpy as np

    X, y = generated(size, offset)
    ours, pieces = model("ours").fit(X, y), model("ours")
    for start in range(0, len(X), 7_919):
        pieces.partial_fit(X[start : start + 7_919], y[start : start + 7_919])
    rows = X[:10_000].copy()
    far = model("scikit-learn").fit(X, y).predict_proba(rows) if offset else None
    X -= offset
    theirs = model("scikit-learn").fit(X, y).predict_proba(X[:10_000])
    probabilities = ours.predict_proba(rows)
    return {
        "proba": float(np.abs(probabilities - theirs).max()),
        "pieces": float(np.abs(probabilities - pieces.predict_proba(rows)).max()),
        "peer": 0.0 if far is None else float(np.abs(far - theirs).max()),
    }


def task_write(path, size):
    import numpy as np

    X, _ = generated(size)
    np.save(path, X)
    return {}


def task_stream(path, size, budget):
    import resource

    import numpy as np

    y = labels(size)
    estimator = model("ours")
    model("ours").fit(*generated((2_000, *size[1:])))  # loads code and buffers
    resident = resident_megabytes()
    if os.path.exists("/proc/self/status"):
        limit = int((virtual_data_megabytes() + budget) * 2**20)
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    peak, reading = resident, 0.0
    n, d, _ = size

    def all_pieces():
        nonlocal peak, reading
        with open(path, "rb") as file:
            np.lib.format.read_magic(file)
            np.lib.format.read_array_header_1_0(file)
            for start in range(0, n, STEP):
                count = min(STEP, n - start)
                piece = None

                def read(count=count):
                    nonlocal piece
                    piece = np.fromfile(file, count=count * d).reshape(count, d)

                reading += timed(read)
                estimator.partial_fit(piece, y[start : start + count])
                peak = max(peak, resident_megabytes())

    seconds = timed(all_pieces)
    return {
        "coef": estimator.coef_.ravel().tolist(),
        "seconds": seconds,
        "reading": reading,
        "extra": max(peak, peak_megabytes()) - resident,
    }


def task_whole(path, size):
    import numpy as np

    y = labels(size)
    estimator = model("ours")
    model("ours").fit(*generated((2_000, *size[1:])))
    before = resident_megabytes()
    X = None

    def read():
        nonlocal X
        X = np.load(path)

    reading = timed(read)
    seconds = reading + timed(lambda: estimator.fit(X, y))
    return {
        "coef": estimator.coef_.ravel().tolist(),
        "seconds": seconds,
        "reading": reading,
        "extra": peak_megabytes() - before,
    }


def labels(size):
    """Return the labels of `generated`, which draws them after its parameters."""
    import numpy as np

    n, d, k = size
    rng = np.random.default_rng(0)
    rng.standard_normal((d, d))
    rng.standard_normal((k, d))
    return rng.integers(k, size=n)


def resident_megabytes():
    """Return the memory of this process."""
    if not os.path.exists("/proc/self/statm"):
        return peak_megabytes()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") / 2**20


def virtual_data_megabytes():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmData")) / 2**10


def task_accuracy(name, data, rows):
    import numpy as np
    from sklearn.kernel_approximation import Nystroem
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    sets = loader(data)(name)
    scaler = StandardScaler().fit(np.asarray(sets["X_train"], dtype=float)[:rows])
    train, test = (
        (
            scaler.transform(np.asarray(sets[f"X_{part}"], dtype=float)[:rows]),
            sets[f"y_{part}"][:rows],
        )
        for part in ("train", "test")
    )
    d = train[0].shape[1]
    grid = {"gamma": [0.1 / d, 0.3 / d, 1 / d, 3 / d]}
    kernel = GridSearchCV(model("ours", "Kernel"), grid, cv=3)
    if len(train[0]) > 6_000:
        features = Nystroem(n_components=1_000, random_state=0)
        linear = make_pipeline(features, model("ours", parameters={"shrinkage": 1e-4}))
        kernel = GridSearchCV(linear, {f"nystroem__{key}": value for key, value in grid.items()})
    models = {
        "linear": model("ours"),
        "linear, scikit-learn": model("scikit-learn"),
        "quadratic, shrunk": model("ours", "Quadratic", {"shrinkage": "oas"}),
        "kernel": kernel,
    }
    return {key: float(one.fit(*train).score(*test)) for key, one in models.items()}


TASKS = {
    "fit": task_fit,
    "small": task_small,
    "agree": task_agree,
    "write": task_write,
    "stream": task_stream,
    "whole": task_whole,
    "accuracy": task_accuracy,
}

if __name__ == "__main__":
    main()
