"""Write the table of other libraries, from the results of ``tools/clients.py``."""

import json
from pathlib import Path

HERE = Path(__file__).parent


def write():
    """Write ``clients_table.inc``, which the page includes."""
    table = json.loads((HERE / "clients.json").read_text(encoding="utf-8"))
    lines = [".. list-table::", "   :header-rows: 1", "   :widths: 20 35 12 33", ""]
    rows = [["library", "tried", "result", "note"]]
    rows += [
        [f"{name} {own['version']}".strip(), own["tried"], own["result"], own["detail"]]
        for name, own in table.items()
    ]
    for row in rows:
        marks = ["   * -", *["     -"] * (len(row) - 1)]
        lines += [f"{mark} {text}".rstrip() for mark, text in zip(marks, row, strict=True)]
    (HERE / "clients_table.inc").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write()
