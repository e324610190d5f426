"""What the benchmarks share: fresh processes to measure in, and a report to print and to keep.

This file imports nothing outside the standard library: a process inherits the memory mark of the
one that started it, so the one that starts all others must stay small.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from importlib import metadata
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from textwrap import fill
from time import perf_counter

LONGEST_REPEATED = 15.0
"""Seconds; what takes longer is measured once."""


def options(description: str, parts, arguments=None) -> argparse.Namespace:
    """What the command line says, in the words that all benchmarks know."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--data", type=Path, help="folder of the real sets, with its load.py")
    parser.add_argument("--full", action="store_true", help="the largest sets too")
    parser.add_argument("--json", type=Path, help="file to write the results to")
    parser.add_argument("--rows", type=int, help="at most so many rows of every set: a quick look")
    parser.add_argument("--budget", type=float, default=5, help="seconds to repeat a short fit for")
    parser.add_argument("--only", nargs="+", choices=parts, default=list(parts), metavar="PART")
    parser.add_argument("--task", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


class Bench:
    """Runs tasks of a script in fresh processes.

    Parameters
    ----------
    script : str
        The file that hands ``--task`` to `answer`.
    environment : dict
        Variables that every process gets.
    """

    def __init__(self, script: str, **environment: str):
        self.script = script
        self.environment = environment

    def run(self, task: str, threads: int = 2, **arguments) -> dict:
        """What the task returned, in a process of its own with so many threads."""
        order = json.dumps({"task": task, "threads": threads, "arguments": arguments}, default=str)
        return json.loads(self.python([self.script, "--task", order], threads).splitlines()[-1])

    def python(self, arguments: list[str], threads: int = 2) -> str:
        """What a fresh interpreter prints."""
        limits = dict.fromkeys(
            ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), str(threads)
        )
        done = subprocess.run(
            [sys.executable, *arguments],
            env={**os.environ, **self.environment, **limits},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise SystemExit(f"{' '.join(arguments)}\n{done.stderr}")
        return done.stdout


def answer(order: str, tasks: dict[str, Callable[..., dict]]) -> None:
    """Do in this process what `Bench.run` asked for, and print what comes out."""
    order = json.loads(order)
    # Not every library reads the variables above; all of them see how many processors there are.
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: order["threads"]])
    print(json.dumps(tasks[order["task"]](**order["arguments"])))


def repeated(function: Callable[[], object], budget: float) -> tuple[float, float]:
    """Seconds of the first call, and of the fastest of the calls that fit into the budget.

    The first call, which may have to load or compile code, counts only if it is too long for a
    second one.
    """
    seconds = [timed(function)]
    while seconds[0] < LONGEST_REPEATED and (len(seconds) < 2 or sum(seconds) < budget):
        seconds.append(timed(function))
    return seconds[0], min(seconds[1:] or seconds)


def timed(function: Callable[[], object]) -> float:
    start = perf_counter()
    function()
    return perf_counter() - start


def peak_megabytes() -> float:
    """The most memory this process has held so far."""
    import resource  # not on Windows

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 2**10


def loader(folder: Path | str) -> Callable[[str], dict]:
    """The function of the folder's load.py that reads a set by its name."""
    spec = spec_from_file_location("load", Path(folder) / "load.py")
    if spec is None or spec.loader is None:
        raise SystemExit(f"--data must be a folder with a load.py, got {folder}.")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.load


def machine(*packages: str) -> dict[str, str]:
    """Processor and versions, as far as they can be told."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(": ")[1] for line in lines if line.startswith("model name")]
    facts = {
        "processor": f"{names[0] if names else platform.machine()}, {os.cpu_count()} cores",
        "system": platform.system(),
        "Python": platform.python_version(),
    }
    return facts | {package: version(package) for package in packages}


def version(package: str) -> str:
    """Its version, or that it is missing."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


NO_CAUSE = "not looked into"


def causes(benchmark: str) -> dict[str, str]:
    """Why bars of a benchmark were missed and rows of it were lost, as far as that is known."""
    text = Path(__file__).with_name("causes.json").read_text(encoding="utf-8")
    return json.loads(text).get(benchmark, {})


class Report:
    """Tables that are printed as they come and kept for the documentation."""

    def __init__(self, name: str, path: Path | None, facts: dict[str, str]):
        self.path = path
        self.kept: dict = {"benchmark": name, "machine": facts, "tables": [], "bars": []}
        print(", ".join(f"{key} {value}" for key, value in facts.items()))

    def table(self, title: str, text: str, header: list[str], rows: list[list[str]]) -> None:
        """Show and keep one table."""
        self.kept["tables"].append({"title": title, "text": text, "header": header, "rows": rows})
        print(f"\n{title}\n{fill(text, 100)}\n\n{plain_table(header, rows)}", flush=True)
        self.write()

    def bar(self, claim: str, figure: float | None, met: bool | None, unit: str = "") -> None:
        """Keep whether what is claimed was met; no figure means that it was not measured."""
        shown = "not measured" if figure is None else f"{figure:.3g}{unit}"
        verdict = "skipped" if figure is None else "met" if met else "missed"
        self.kept["bars"].append({"bar": claim, "figure": shown, "verdict": verdict})

    def keep(self, name: str, value) -> None:
        """Keep numbers that a picture is drawn from."""
        self.kept[name] = value

    def close(self) -> None:
        """Show the bars, and below them what is known of why some were missed."""
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
    """Columns of equal width, the first to the left."""
    lines = [header, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if k else cell.ljust(width)
            for k, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )
