"""Write the changelog as a page of the documentation, with names that link to the reference."""

import re
from pathlib import Path

import widemargin
from widemargin import structured

DOCS = Path(__file__).resolve().parent
# Code in backticks, links, and characters that reStructuredText would take for markup.
TOKEN = re.compile(
    r"(?P<code>``.+?``|`[^`]+`)|\[(?P<text>[^]]+)\]\((?P<url>[^)]+)\)|(?P<mark>[*|_])"
)


def write(changelog=DOCS.parent / "CHANGELOG.md", page=DOCS / "changes.inc"):
    """Write the changelog in reStructuredText."""
    page.write_text(converted(changelog.read_text(encoding="utf-8")), encoding="utf-8")


def converted(text):
    """Return Markdown with headings, lists, code and links as reStructuredText."""
    lines = []
    for line in text.split("\n", 2)[2].splitlines():
        heading = re.fullmatch("(##+) (.+)", line)
        if heading:
            underline = "-" if len(heading[1]) == 2 else "~"
            lines += [heading[2], underline * len(heading[2])]
        else:
            lines.append(line)
    return TOKEN.sub(_converted, "\n".join(lines)) + "\n"


def _converted(token):
    if token["url"]:
        return f"`{token['text']} <{token['url']}>`__"
    if token["mark"]:
        return f"\\{token['mark']}"
    code = token["code"].strip("`")
    name = re.match(r"[A-Za-z_.]+", code)
    target = _documented(name[0]) if name else None
    return f":obj:`{code} <{target}>`" if target and "<" not in code else f"``{code}``"


def _documented(name):
    """Return the full name of a class or function of the reference, or None."""
    home, _, last = name.removeprefix("widemargin.").rpartition(".")
    for module, prefix in ((widemargin, "widemargin"), (structured, "widemargin.structured")):
        if not home and last in module.__all__ and last not in widemargin._SUBPACKAGES:
            return f"{prefix}.{last}"
    if home in widemargin._SUBPACKAGES and last in getattr(widemargin, home).__all__:
        return f"widemargin.{home}.{last}"
    return None
