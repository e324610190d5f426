"""Reports in a real browser: the slider moves, numbers change, no errors. Skipped without one."""

import json
import re
import shutil
import subprocess

import pytest
from sklearn.datasets import load_iris, make_classification

from widemargin import SVC, PreferenceSVC
from widemargin.report import Report

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
CHROMIUM = next((path for path in map(shutil.which, NAMES) if path), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=f"needs one of {', '.join(NAMES)}")

# Moves the slider, chooses another class, and stores what the page shows each time.
ACT = """<script>
const seen = [], block = document.querySelector(".threshold");
const numbers = () => Object.fromEntries([...block.querySelectorAll("[data-name]")].map(
  cell => [cell.dataset.name, cell.textContent]));
const look = () => seen.push({numbers: numbers(),
  x: block.querySelector(".here").getAttribute("cx"),
  bounds: [...block.querySelectorAll("[data-bound]")].map(item => item.className),
  line: block.querySelector(".line").getAttribute("points")});
const slider = block.querySelector("input"), choice = block.querySelector("select");
const move = value => { slider.value = value; slider.dispatchEvent(new Event("input")); look(); };
look(); move(0); move(slider.max);
if (choice) { choice.value = 1; choice.dispatchEvent(new Event("change")); look(); }
document.body.append(Object.assign(document.createElement("pre"),
  {id: "seen", textContent: JSON.stringify(seen)}));
</script></body>"""


def browse(page, folder, *options):
    """Return the document after its scripts have run, and the messages of the console."""
    (folder / "page.html").write_text(page, encoding="utf-8")
    done = subprocess.run(
        [
            CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--disable-sync",
            "--enable-logging=stderr", f"--user-data-dir={folder / 'profile'}", *options,
            (folder / "page.html").as_uri(),
        ],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def act(report, folder):
    page = report.to_html().replace("</body>", ACT)
    document, messages = browse(page, folder, "--dump-dom")
    assert messages == []
    text = re.search(r'<pre id="seen">(.*?)</pre>', document, re.DOTALL)[1]
    return json.loads(text)


def test_the_slider_changes_the_numbers(tmp_path):
    X, y = make_classification(600, weights=[0.7], class_sep=1.5, random_state=0)
    model = PreferenceSVC(precision=0.9, random_state=0).fit(X[:300], y[:300])
    start, low, high = act(Report.from_estimator(model, X[300:], y[300:]), tmp_path)
    assert start["numbers"]["threshold"] == f"{model.threshold_:#.4g}"
    assert low["numbers"]["recall"] == "1.000"
    assert int(low["numbers"]["false positives"]) == (y[300:] == 0).sum()
    assert int(high["numbers"]["false positives"]) < int(low["numbers"]["false positives"])
    assert low["bounds"] == ["missed"]
    assert float(high["x"]) < float(start["x"]) < float(low["x"])


def test_another_class_has_another_curve(tmp_path):
    X, y = load_iris(return_X_y=True)
    model = SVC().fit(X[::2], y[::2])
    *first, other = act(Report.from_estimator(model, X[1::2], y[1::2]), tmp_path)
    assert other["line"] != first[0]["line"]
    assert int(other["numbers"]["true positives"]) + int(other["numbers"]["false negatives"]) == 25


def test_errors_of_scripts_would_be_seen(tmp_path):
    _, messages = browse("<script>nothing.there()</script>", tmp_path, "--dump-dom")
    assert len(messages) == 1


@pytest.mark.parametrize("scheme", [1, 0], ids=["light", "dark"])
def test_pages_are_drawn_in_both_themes(tmp_path, scheme):
    X, y = load_iris(return_X_y=True)
    page = Report.from_estimator(SVC().fit(X, y), X, y).to_html()
    script = "<script>document.title = getComputedStyle(document.body).backgroundColor</script>"
    document, messages = browse(
        page.replace("</body>", f"{script}</body>"),
        tmp_path,
        "--dump-dom",
        f"--blink-settings=preferredColorScheme={scheme}",
    )
    assert messages == []
    assert ("<title>rgb(255, 255, 255)" in document) == bool(scheme)
