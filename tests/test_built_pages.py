"""The built documentation in a real browser. Skipped before `make docs`, and without a browser."""

import json
import os
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
CHROMIUM = next((path for path in map(shutil.which, NAMES) if path), None)
BUILT = Path(os.environ.get("WIDEMARGIN_HTML", Path(__file__).parents[1] / "docs/_build/html"))
PAGES = sorted(BUILT.glob("*.html"))
OPENED = ["index", "choose", "start", "preference", "performance", "api/generated/widemargin.SVC"]
pytestmark = pytest.mark.skipif(not PAGES, reason="needs the documentation: make docs")

# A page in a frame of the width of a telephone; writes what is wrong into the title.
LOOK = """<body><iframe width="400" height="800" src="{address}"></iframe><script>
const frame = document.querySelector("iframe");
frame.onload = () => {{
  const inner = frame.contentDocument, root = inner.documentElement;
  document.title = JSON.stringify({{
    wide: root.scrollWidth, formulas: inner.querySelectorAll("math").length,
    drawn: [...inner.querySelectorAll("math")].every(m => m.getBoundingClientRect().width > 0),
    nameless: [...inner.querySelectorAll("img")].filter(i => !i.hasAttribute("alt")).length}});
}};
</script></body>"""


@pytest.mark.skipif(CHROMIUM is None, reason=f"needs one of {', '.join(NAMES)}")
@pytest.mark.parametrize("name", OPENED)
def test_pages_open_without_errors_on_a_narrow_screen(tmp_path, name):
    page = BUILT / f"{name}.html"
    (tmp_path / "look.html").write_text(LOOK.format(address=page.as_uri()))
    done = subprocess.run(
        [
            CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--disable-sync",
            "--allow-file-access-from-files", "--enable-logging=stderr", "--dump-dom",
            f"--user-data-dir={tmp_path / 'profile'}", (tmp_path / "look.html").as_uri(),
        ],
        capture_output=True, text=True, timeout=300, check=True,
    )  # fmt: skip
    messages = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    # The theme reports what it does.
    assert [line for line in messages if "[PST]: " not in line] == []
    seen = json.loads(unescape(re.search(r"<title>(.*?)</title>", done.stdout)[1]))
    assert seen["wide"] <= 400
    assert seen["drawn"]
    assert seen["nameless"] == 0
    assert seen["formulas"] > 0 or name not in ("preference", "api/generated/widemargin.SVC")


def test_pages_need_no_network():
    for page in BUILT.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        loaded = re.findall(
            r"<(?:script|img|link|iframe)[^>]* (?:src|href)=\"(https?:[^\"]+)", text
        )
        assert loaded == [], page


def test_links_between_pages_lead_somewhere():
    anchors = {}
    for page in BUILT.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        for link in set(re.findall(r'<a [^>]*href="([^"]+)"', text)):
            address, anchor = urldefrag(unescape(link))
            if ":" in address:
                continue
            target = (page.parent / unquote(address)).resolve() if address else page
            assert target.exists(), f"{page}: {link}"
            if anchor and target.suffix == ".html":
                if target not in anchors:
                    found = re.findall(r' id="([^"]+)"', target.read_text(encoding="utf-8"))
                    anchors[target] = {unescape(name) for name in found} | {""}
                assert unquote(anchor) in anchors[target], f"{page}: {link}"


def test_pages_have_different_titles():
    titles = {}
    for page in BUILT.rglob("*.html"):
        if "_modules" not in page.parts and "_static" not in page.parts:
            [title] = re.findall(r"<title>(.*?)</title>", page.read_text("utf-8"), re.DOTALL)[:1]
            assert " ".join(title.split()) not in titles, page
            titles[" ".join(title.split())] = page


def test_classes_link_to_their_methods():
    text = (BUILT / "api/generated/widemargin.SVC.html").read_text(encoding="utf-8")
    for method in ("fit", "predict", "decision_function", "score", "get_params", "set_params"):
        assert f'id="widemargin.SVC.{method}"' in text
