"""Count the lines of code of the package: no blank lines, comments, docstrings or texts.

Texts are strings of several lines, such as the descriptions that docstrings share.

    python tools/count_code.py [FOLDER]
"""

import ast
import io
import sys
import tokenize
from collections import Counter
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "widemargin"
LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def code_lines(text):
    """Return the numbers of the lines that hold code."""
    docstrings = {
        node.lineno
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    return {
        token.start[0]
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type not in LAYOUT
        and not (token.type == tokenize.STRING and token.start[0] < token.end[0])
        and token.start[0] not in docstrings
    }


def main(folder=SOURCE):
    """Print the lines of code of each package below the folder, and of all."""
    counts = Counter()
    for path in sorted(Path(folder).rglob("*.py")):
        package = path.relative_to(folder).parts[0]
        counts[package] += len(code_lines(path.read_text(encoding="utf-8")))
    for package, lines in sorted(counts.items()):
        print(f"{package:<24}{lines:>8,}")
    print(f"{'all':<24}{sum(counts.values()):>8,}")


if __name__ == "__main__":
    main(*sys.argv[1:])
