"""Fits on Dask collections: gaps by partitions, bytes moved, and times beside local fits.

    python benchmarks/scale.py --data FOLDER --json benchmarks/results/scale.json

The problems of a9a, sector and a generated set (``--rows``, 2,000,000 with ``--full``) are solved
by LinearSVC on 2 to 64 partitions, and the objectives are compared with that of the local solver.
On a cluster of two processes, the bytes that workers send and the times of the fits are measured,
beside local fits and dask-ml where it is installed. Times are those of the clock.
The cost model takes CPU times of the work on one partition, on one core, and counts the rest.
"""

import sys
from time import perf_counter, process_time

import _harness as harness
import numpy as np

PARTS = ("curves", "cluster", "cost")
PARTITIONS = (2, 8, 64)
ROWS, FULL_ROWS, FEATURES = 100_000, 2_000_000, 200
BAR = 1e-4


def main() -> None:
    arguments = harness.options(__doc__, PARTS)
    facts = harness.machine("numpy", "scikit-learn", "dask", "distributed", "dask-ml")
    report = harness.Report("scale", arguments.json, facts)
    rows = arguments.rows or (FULL_ROWS if arguments.full else ROWS)
    if "curves" in arguments.only:
        curves(report, arguments.data, rows)
    if "cluster" in arguments.only:
        clusters(report, rows)
    if "cost" in arguments.only:
        costs(report)
    report.close()


def problems(folder, rows):
    """Yield the name, samples and labels of each problem."""
    if folder is not None:
        load = harness.loader(folder)
        for name in ("a9a", "sector"):
            try:
                data = load(name)
            except FileNotFoundError:
                print(f"{name} is not in {folder} and left out.")
                continue
            y = np.unique(data["y_train"], return_inverse=True)[1]
            # One binary problem of sector: classes of even against those of odd number.
            yield name, data["X_train"].tocsr(), y % 2
    yield f"generated {rows:,} x {FEATURES}", *generated(rows)


def generated(rows):
    random = np.random.default_rng(0)
    X = random.standard_normal((rows, FEATURES), dtype=np.float32).astype(np.float64)
    y = X @ random.normal(size=FEATURES) + 10.0 * random.normal(size=rows) > 0.0
    return X, y.astype(int)


def curves(report, folder, rows) -> None:
    """Compare objectives with those of the local solver, and keep the gaps of all rounds."""
    kept = {}
    for name, X, y in problems(folder, rows):
        C = 1.0 if X.shape[1] != FEATURES else 0.01
        lines, worst = [], 0.0
        for loss in ("hinge", "squared_hinge"):
            for line, excess, curve in gaps(X, y, loss, C):
                lines.append(line)
                worst = max(worst, excess)
                kept[f"{name}, {line[0]}, {line[1]}"] = curve
        claim = f"{name}: objective of the local solver to 1e-4 on 2 to 64 partitions"
        report.bar(claim, worst, worst <= BAR)
        report.keep("curves", kept)
        report.table(
            f"Rounds on {name}",
            "LinearSVC on partitions of the samples, until the gap is 1e-5. Excess is the relative "
            "difference of the objective from the lower bound of the local solver.",
            ["loss", "partitions", "rounds", "to gap 1e-4", "gap", "excess", "seconds"],
            lines,
        )


def gaps(X, y, loss, C):
    """Yield the line of the table, the excess and the gaps for each number of partitions."""
    import dask

    from widemargin import LinearSVC
    from widemargin.distributed import DaskEstimator

    local = LinearSVC(loss=loss, C=C, tol=1e-6, max_iter=100_000).fit(X, y)
    best = local.objective_[0] * (1.0 - local.dual_gap_[0])
    for n_partitions in PARTITIONS:
        with dask.config.set(scheduler="threads", num_workers=2):
            start = perf_counter()
            model = DaskEstimator(LinearSVC(loss=loss, C=C)).fit(*split(X, y, n_partitions))
            seconds = perf_counter() - start
        excess = model.objective_[0] / best - 1.0
        rounds, values = model.history_["round"], model.history_["gap"][:, 0]
        line = [
            loss, str(n_partitions), str(rounds[-1]), str(rounds[np.argmax(values <= BAR)]),
            f"{model.dual_gap_[0]:.1e}", f"{excess:.1e}", f"{seconds:.1f}",
        ]  # fmt: skip
        print(*line, file=sys.stderr, flush=True)
        yield line, excess, {"round": rounds.tolist(), "gap": values.tolist()}


def split(X, y, n_partitions):
    """Return Dask arrays of the samples in random order, and of the labels."""
    import dask.array as da

    order = np.random.default_rng(0).permutation(len(y))
    groups = np.array_split(order, n_partitions)
    blocks = [da.from_array(X[np.sort(g)], chunks=-1, asarray=False) for g in groups]
    return da.concatenate(blocks), da.concatenate([da.from_array(y[np.sort(g)]) for g in groups])


def clusters(report, rows) -> None:
    """Measure times and bytes on a cluster of two processes."""
    import dask.array as da
    from distributed import Client, LocalCluster, wait

    from widemargin import LinearDiscriminantAnalysis, LinearSVC, QuadraticDiscriminantAnalysis
    from widemargin.distributed import DaskEstimator

    estimators = {
        "LDA": LinearDiscriminantAnalysis(),
        "QDA": QuadraticDiscriminantAnalysis(),
        "LinearSVC, hinge": LinearSVC(loss="hinge", C=0.01),
        "LinearSVC, squared hinge": LinearSVC(C=0.01),
    }
    X, y = generated(rows)
    lines, largest = [], 0.0
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", memory_limit=0
        ) as cluster,
        Client(cluster) as client,
    ):
        parts = client.persist([da.from_array(X, chunks=(rows // 8, -1)),
                                da.from_array(y, chunks=rows // 8)])  # fmt: skip
        wait(parts)
        for name, estimator in estimators.items():
            DaskEstimator(estimator).fit(*(part[: rows // 8] for part in parts))  # compile
            before, start = traffic(client), perf_counter()
            model = DaskEstimator(estimator).fit(*parts)
            seconds = perf_counter() - start
            moved, tasks = (a - b for a, b in zip(traffic(client), before, strict=True))
            start = perf_counter()
            estimator.fit(X, y)
            local = perf_counter() - start
            rounds = model.history_["round"][-1] if hasattr(model, "history_") else 1
            largest = max(largest, moved / X.nbytes)
            lines.append([
                name, str(rounds), str(tasks), f"{moved / 2**20:.1f}", f"{seconds:.2f}",
                f"{local:.2f}", f"{seconds / local:.2f}",
            ])  # fmt: skip
        lines += peer(parts, X, y)
    report.table(
        "On a cluster of two processes",
        f"{rows:,} samples of {FEATURES} features ({X.nbytes / 2**20:.0f} MB) in 8 partitions. MB "
        "moved is what workers send to each other, to the scheduler and to the client. The ratio "
        "is that to a fit in threads of one process.",
        ["estimator", "rounds", "tasks", "MB moved", "seconds", "local seconds", "ratio"],
        lines,
    )
    report.bar("largest share of the data that is moved", largest, largest < 0.05)


NETWORK = 1e9
ROUND = 0.05
CORES = 16
"""Assumptions of the cost model: bytes per second between two computers, seconds that the scheduler
and messages take in each round, and cores of a computer."""


def costs(report) -> None:
    """Fit the cost model to the work on one partition, and print what it predicts."""
    scatter, product, descent = unit_costs()
    header = ["fit", "1 computer", "10 computers", "100 computers"]
    n, d = 1e9, 100
    lda = [scatter * n * d * d, 1, 8 * d * d]
    lines = [["LDA, 1,000,000,000 samples, 100 features", *predicted(*lda)]]
    n, d, steps = 1e7, 200, 20
    # As if a third of the samples were on the curved part of the loss.
    linear = [steps * product * n / 3 * d * d + 30 * descent * n * d, 6 + 2 * steps, 8 * d * d]
    lines.append(["LinearSVC, 10,000,000 samples, 200 features, two classes", *predicted(*linear)])
    report.table(
        "What the cost model predicts",
        f"Not measured: CPU seconds of one core ({scatter:.1e} for a product of a scatter matrix, "
        f"{product:.1e} for one of a second derivative, {descent:.1e} for an entry in a pass of "
        f"coordinate descent), {CORES} cores for each computer, {NETWORK / 1e9:.0f} GB/s, "
        f"{ROUND} seconds for the messages of a round, data in memory; 20 Newton steps with a "
        "third of the samples on the curved part of the loss.",
        header,
        lines,
    )


def predicted(seconds, rounds, size):
    """Return the predicted times: work, sums over a tree of computers, and rounds."""
    times = [
        seconds / (CORES * computers)
        + rounds * (ROUND + np.ceil(np.log2(computers)) * size / NETWORK)
        for computers in (1, 10, 100)
    ]
    return [f"{time:.0f} s" if time >= 10.0 else f"{time:.1f} s" for time in times]


def unit_costs():
    """Return the CPU seconds of one product or update, in the work on a partition."""
    from threadpoolctl import threadpool_limits

    from widemargin.discriminant.statistics import ClassStatistics
    from widemargin.distributed import cocoa, newton
    from widemargin.distributed.samples import LinearSamples
    from widemargin.solvers.hinge.losses import LOSSES

    X, y = generated(20_000)
    n, d = X.shape
    ones = np.ones(n)
    samples = LinearSamples.of(X, y[np.newaxis] == 1, ones, ones, LOSSES["squared_hinge"], 1.0)
    point, joint = cocoa.start_point(samples), cocoa.Joint.start(1, d, 8)
    iterate = newton.Iterate.start(joint)
    with threadpool_limits(1):
        scatter = cpu_seconds(lambda: ClassStatistics(2, d).update(X, y)) / (n * d * d)
        # At weights of zero, all samples are on the curved part.
        product = cpu_seconds(lambda: newton.derivatives(samples, point.dual, iterate, True))
        descent = cpu_seconds(lambda: cocoa.propose(samples, point, 0, joint, 5))
    return scatter, product / (n * d * d), descent / (5 * n * d)


def cpu_seconds(function):
    """Return the smallest CPU time of three calls after the first."""
    function()
    seconds = []
    for _ in range(3):
        start = process_time()
        function()
        seconds.append(process_time() - start)
    return min(seconds)


def traffic(client):
    """Return the bytes that all workers have sent, and the tasks they have run."""
    logs = client.run(
        lambda dask_worker: sum(each["total"] for each in dask_worker.transfer_outgoing_log)
    )
    return sum(logs.values()), int(client.run_on_scheduler(computed_tasks))


def computed_tasks(dask_scheduler):
    """Return how often a task has begun, as far as the log of the scheduler goes back."""
    return sum(entry[2] == "processing" for entry in dask_scheduler.transition_log)


def peer(parts, X, y):
    """Return the line of dask-ml's logistic regression, if that is installed and runs."""
    try:
        from dask_ml.linear_model import LogisticRegression

        start = perf_counter()
        LogisticRegression(C=0.01, solver="admm").fit(*parts)
        seconds = perf_counter() - start
    except Exception as error:  # its releases lag behind those of Dask and scikit-learn
        print(f"dask-ml: {type(error).__name__}: {error}", file=sys.stderr)
        return [["dask-ml LogisticRegression, ADMM", "does not run"] + [""] * 5]
    return [["dask-ml LogisticRegression, ADMM", "", "", "", f"{seconds:.2f}", "", ""]]


if __name__ == "__main__":
    main()
