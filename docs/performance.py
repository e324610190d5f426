"""Write the tables of the performance page from the results of the benchmarks.

The build of the documentation calls `write` before it reads the pages. Without results the page
explains how to produce them.
"""

import csv
import io
import json
from pathlib import Path

DOCS = Path(__file__).resolve().parent
RESULTS = DOCS.parent / "benchmarks" / "results"
PAGE = DOCS / "performance_tables.inc"


def write(results=RESULTS, page=PAGE):
    """Write the tables of all results, or a note that there are none."""
    kept = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(results.glob("*.json"))]
    text = "\n".join(_section(result) for result in kept) if kept else _NOTHING
    page.write_text(text, encoding="utf-8")


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
    cells = io.StringIO()
    csv.writer(cells, lineterminator="\n").writerows([header, *rows])
    body = "".join(f"   {line}\n" for line in cells.getvalue().splitlines())
    heading = f"{title}\n{'~' * len(title)}\n\n{text}\n"
    return f"{heading}\n.. csv-table::\n   :header-rows: 1\n\n{body}"


_NOTHING = """\
.. note::

   There are no results yet; the commands above produce them.
"""
