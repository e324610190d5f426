"""Train the main estimators on included data and write a report with tables and figures.

``make demo`` runs this script; its sections are in `sections`.
"""

import argparse
import base64
import html
import io
from pathlib import Path
from textwrap import fill

import matplotlib

matplotlib.use("Agg")

import sklearn
from pandas import DataFrame
from sections import SECTIONS

import widemargin


def main(arguments=None):
    """Run all sections, print them, and write the report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("build/demo"), help="folder to write")
    folder = parser.parse_args(arguments).output
    folder.mkdir(parents=True, exist_ok=True)
    print(f"widemargin {widemargin.__version__}, scikit-learn {sklearn.__version__}")
    sections = []
    for run in SECTIONS:
        sections.append(section := run())
        print(f"\n{section.title}\n{fill(section.text, 100)}\n")
        if section.rows:
            print(DataFrame(section.rows, columns=section.header).to_string(index=False))
        if section.figure:
            picture = folder / f"{section.name}.png"
            section.figure.savefig(picture, dpi=110)
            print(f"Figure: {picture.resolve()}")
    report = folder / "report.html"
    report.write_text(_report(sections), encoding="utf-8")
    print(f"\nReport:  {report.resolve()}")


def _report(sections):
    """Return one HTML page with all tables and figures embedded."""
    body = "".join(
        f"<section><h2>{html.escape(section.title)}</h2><p>{html.escape(section.text)}</p>"
        f"{_html_table(section)}{_html_picture(section)}</section>"
        for section in sections
    )
    return (
        "<!DOCTYPE html><html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width'><title>widemargin demo</title>"
        f"<style>{_STYLE}</style></head><body><h1>widemargin demo</h1>"
        f"<p>widemargin {widemargin.__version__}, scikit-learn {sklearn.__version__}</p>"
        f"{body}</body></html>\n"
    )


def _html_table(section):
    if not section.rows:
        return ""
    lines = [("th", section.header), *(("td", row) for row in section.rows)]
    cells = ("".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in line) for tag, line in lines)
    return f"<table>{''.join(f'<tr>{line}</tr>' for line in cells)}</table>"


def _html_picture(section):
    if section.figure is None:
        return ""
    buffer = io.BytesIO()
    section.figure.savefig(buffer, format="png", dpi=110)
    data = base64.b64encode(buffer.getvalue()).decode()
    return f"<img src='data:image/png;base64,{data}' alt='{html.escape(section.title)}'>"


_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #222;
  max-width: 68rem; margin: 2rem auto; padding: 0 1rem; }
h1, h2 { font-weight: 600; } h2 { margin-top: 2.5rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .35rem .8rem; text-align: right; border-bottom: 1px solid #ddd; }
th { border-bottom: 2px solid #0072b2; font-size: .85rem; }
th:first-child, td:first-child { text-align: left; }
img { max-width: 100%; height: auto; }
"""


if __name__ == "__main__":
    main()
