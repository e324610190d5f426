"""Shared by all benchmarks: tasks in fresh processes, and a report that is printed and stored.

This file imports nothing outside the standard library. A process inherits the peak memory of the
one that started it, so the process that starts all others must stay small.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from importlib import metadata
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from textwrap import fill
from time import perf_counter

LONGEST_REPEATED = 15.0
"""Seconds. A longer fit is measured once."""


def options(description: str, parts, arguments=None, sets=None) -> argparse.Namespace:
    """Parse the command line; all benchmarks have the same options.

    Those that can run on some of their data sets, ``sets``, have one more.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--data", type=Path, help="folder with the real data sets and a load.py")
    parser.add_argument("--full", action="store_true", help="include the largest data sets")
    parser.add_argument("--json", type=Path, help="file to write the results to")
    parser.add_argument("--rows", type=int, help="largest number of samples of a data set")
    parser.add_argument(
        "--budget", type=float, default=5, help="seconds for which a short fit is repeated"
    )
    parser.add_argument("--only", nargs="+", choices=parts, default=list(parts), metavar="PART")
    if sets is not None:
        parser.add_argument("--sets", nargs="+", choices=sets, default=list(sets), metavar="SET")
    parser.add_argument("--task", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


class Bench:
    """Run tasks of a script in fresh processes.

    Parameters
    ----------
    script : str
        The file that passes ``--task`` to `answer`.
    interpreter : str
        The Python that runs it.
    environment : dict
        Environment variables of every process.
    """

    def __init__(self, script: str, interpreter: str = sys.executable, **environment: str):
        self.script = script
        self.interpreter = interpreter
        self.environment = environment

    def run(
        self, task: str, threads: int = 2, limit: float | None = None, **arguments
    ) -> dict | None:
        """Return the result of a task, run in a fresh process with this number of threads.

        None if the process has not ended within ``limit`` seconds, in which case it is killed.
        """
        order = json.dumps({"task": task, "threads": threads, "arguments": arguments}, default=str)
        try:
            output = self.python([self.script, "--task", order], threads, limit)
        except subprocess.TimeoutExpired:
            return None
        return json.loads(output.splitlines()[-1])

    def python(self, arguments: list[str], threads: int = 2, limit: float | None = None) -> str:
        """Return the output of a fresh interpreter."""
        limits = dict.fromkeys(
            ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), str(threads)
        )
        done = subprocess.run(
            [self.interpreter, *arguments],
            env={**os.environ, **self.environment, **limits},
            capture_output=True,
            text=True,
            check=False,
            timeout=limit,
        )
        if done.returncode:
            raise SystemExit(f"{' '.join(arguments)}\n{done.stderr}")
        return done.stdout


def answer(order: str, tasks: dict[str, Callable[..., dict]], cold: Iterable[str] = ()) -> None:
    """Run the task that `Bench.run` requested in this process, and print its result.

    Even small fits run compiled, as they do in any process after a while, except in ``cold`` tasks,
    which leave it to the library.
    """
    order = json.loads(order)
    # Some libraries ignore the environment variables; all respect the number of processors.
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: order["threads"]])
    installed = find_spec("widemargin") is not None  # not in environments of other libraries
    with nullcontext() if order["task"] in cold or not installed else _compiled():
        result = tasks[order["task"]](**order["arguments"])
    print(json.dumps(result))


def _compiled() -> AbstractContextManager:
    from widemargin._base.jit import eager

    return eager()


def repeated(
    function: Callable[[], object], budget: float, clock: Callable[[], float] = perf_counter
) -> tuple[float, float]:
    """Return the seconds of the first call, and of the fastest call within the budget.

    The first call, which may load or compile code, counts only if it is too long to be repeated.
    """
    seconds = [timed(function, clock)]
    while seconds[0] < LONGEST_REPEATED and (len(seconds) < 2 or sum(seconds) < budget):
        seconds.append(timed(function, clock))
    return seconds[0], min(seconds[1:] or seconds)


def timed(function: Callable[[], object], clock: Callable[[], float] = perf_counter) -> float:
    """Return the seconds of a call, by default of the clock on the wall."""
    start = clock()
    function()
    return clock() - start


def peak_megabytes() -> float:
    """Return the peak memory of this process so far."""
    import resource  # not on Windows

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 2**10


def loader(folder: Path | str) -> Callable[[str], dict]:
    """Return the function of the folder's load.py that reads a data set by its name."""
    spec = spec_from_file_location("load", Path(folder) / "load.py")
    if spec is None or spec.loader is None:
        raise SystemExit(f"--data must be a folder with a load.py, got {folder}.")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.load


def machine(*packages: str) -> dict[str, str]:
    """Return the processor of this computer and the versions of the packages."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(": ")[1] for line in lines if line.startswith("model name")]
    cores = f"{os.cpu_count()} cores"
    if processors() < (os.cpu_count() or 1):
        cores += f", {processors()} used"
    facts = {
        "processor": f"{names[0] if names else platform.machine()}, {cores}",
        "system": platform.system(),
        "Python": platform.python_version(),
    }
    return facts | {package: version(package) for package in packages}


def processors() -> int:
    """Return the number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def version(package: str) -> str:
    """Return the version of a package, or "not installed"."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


NO_CAUSE = "not investigated"


def causes(benchmark: str) -> dict[str, str]:
    """Return the known causes of missed bars and of fits in which a peer was faster."""
    text = Path(__file__).with_name("causes.json").read_text(encoding="utf-8")
    return json.loads(text).get(benchmark, {})


class Report:
    """Tables that are printed at once and stored for the documentation."""

    def __init__(self, name: str, path: Path | None, facts: dict[str, str]):
        self.path = path
        self.kept: dict = {"benchmark": name, "machine": facts, "tables": [], "bars": []}
        print(", ".join(f"{key} {value}" for key, value in facts.items()))

    def table(self, title: str, text: str, header: list[str], rows: list[list[str]]) -> None:
        """Print and store one table."""
        self.kept["tables"].append({"title": title, "text": text, "header": header, "rows": rows})
        print(f"\n{title}\n{fill(text, 100)}\n\n{plain_table(header, rows)}", flush=True)
        self.write()

    def bar(self, claim: str, figure: float | None, met: bool | None, unit: str = "") -> None:
        """Store whether a bar was met; without a figure it was not measured."""
        shown = "not measured" if figure is None else f"{figure:.3g}{unit}"
        verdict = "skipped" if figure is None else "met" if met else "missed"
        self.kept["bars"].append({"bar": claim, "figure": shown, "verdict": verdict})

    def keep(self, name: str, value) -> None:
        """Store numbers for a figure."""
        self.kept[name] = value

    def close(self) -> None:
        """Print the bars, and the known causes of those that were missed."""
        bars, known = self.kept["bars"], causes(self.kept["benchmark"])
        rows = [[bar["bar"], bar["figure"], bar["verdict"]] for bar in bars]
        print(f"\nBars\n\n{plain_table(['bar', 'figure', 'verdict'], rows)}")
        for claim in (bar["bar"] for bar in bars if bar["verdict"] == "missed"):
            print(f"\nMissed: {claim}\n  {known.get(claim, NO_CAUSE)}")
        self.write()

    def write(self) -> None:
        if self.path:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            text = json.dumps(self.kept, indent=1, ensure_ascii=False)
            self.path.write_text(text + "\n", encoding="utf-8")


def plain_table(header: list[str], rows: list[list[str]]) -> str:
    """Return the table as text, with the first column aligned to the left."""
    lines = [header, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if k else cell.ljust(width)
            for k, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )
