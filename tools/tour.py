"""A tour of widemargin: every stop trains something, shows what came out and adds to a report.

``make demo`` runs it; the stops are in `stops`.
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
from stops import STOPS

import widemargin


def main(arguments=None):
    """Walk all stops, print them, and write the report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("build/demo"), help="folder to write")
    folder = parser.parse_args(arguments).output
    folder.mkdir(parents=True, exist_ok=True)
    print(f"widemargin {widemargin.__version__} beside scikit-learn {sklearn.__version__}")
    stops = []
    for visit in STOPS:
        stops.append(stop := visit())
        print(f"\n{stop.title}\n{fill(stop.text, 100)}\n")
        if stop.rows:
            print(DataFrame(stop.rows, columns=stop.header).to_string(index=False))
        if stop.figure:
            picture = folder / f"{stop.name}.png"
            stop.figure.savefig(picture, dpi=110)
            print(f"Picture: {picture.resolve()}")
    report = folder / "report.html"
    report.write_text(_report(stops), encoding="utf-8")
    print(f"\nReport:  {report.resolve()}")


def _report(stops):
    """Return one page with everything inside, pictures too."""
    body = "".join(
        f"<section><h2>{html.escape(stop.title)}</h2><p>{html.escape(stop.text)}</p>"
        f"{_html_table(stop)}{_html_picture(stop)}</section>"
        for stop in stops
    )
    return (
        "<!DOCTYPE html><html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width'><title>A tour of widemargin</title>"
        f"<style>{_STYLE}</style></head><body><h1>A tour of widemargin</h1>"
        f"<p>widemargin {widemargin.__version__}, scikit-learn {sklearn.__version__}</p>"
        f"{body}</body></html>\n"
    )


def _html_table(stop):
    if not stop.rows:
        return ""
    lines = [("th", stop.header), *(("td", row) for row in stop.rows)]
    cells = ("".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in line) for tag, line in lines)
    return f"<table>{''.join(f'<tr>{line}</tr>' for line in cells)}</table>"


def _html_picture(stop):
    if stop.figure is None:
        return ""
    buffer = io.BytesIO()
    stop.figure.savefig(buffer, format="png", dpi=110)
    data = base64.b64encode(buffer.getvalue()).decode()
    return f"<img src='data:image/png;base64,{data}' alt='{html.escape(stop.title)}'>"


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
