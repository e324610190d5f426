"""Run one of PyStruct's example scripts as on the Python and Matplotlib of its time.

``python -m tests.adopted.pystruct_scripts FILE``. The source of the script is translated, and
nothing of PyStruct's classes or ours: ``print`` statements are calls, ``/`` of two integers is the
integer division of Python 2, and Matplotlib ignores labels that have no tick.
"""

import ast
import sys
from numbers import Integral
from pathlib import Path

from matplotlib import pyplot


class Divisions(ast.NodeTransformer):
    def visit_BinOp(self, node):
        self.generic_visit(node)
        if not isinstance(node.op, ast.Div):
            return node
        divide = ast.Name("divide_as_python_2", ast.Load())
        return ast.copy_location(ast.Call(divide, [node.left, node.right], []), node)


def divide(dividend, divisor):
    whole = isinstance(dividend, Integral) and isinstance(divisor, Integral)
    return dividend // divisor if whole else dividend / divisor


def with_print_calls(source):
    from lib2to3.refactor import RefactoringTool  # not in Python 3.13

    return str(RefactoringTool(["lib2to3.fixes.fix_print"]).refactor_string(source + "\n", ""))


def without_superfluous_labels(set_ticks):
    def set_as_then(ticks, labels=None):
        return set_ticks(ticks, None if labels is None else list(labels)[: len(ticks)])

    return set_as_then


def run(path):
    source = Path(path).read_text()
    try:
        tree = ast.parse(source)
    except SyntaxError:
        tree = ast.parse(with_print_calls(source))
    tree = ast.fix_missing_locations(Divisions().visit(tree))
    for name in ("xticks", "yticks"):
        setattr(pyplot, name, without_superfluous_labels(getattr(pyplot, name)))
    names = {"__name__": "__main__", "__file__": path, "divide_as_python_2": divide}
    exec(compile(tree, path, "exec"), names)


if __name__ == "__main__":
    run(sys.argv[1])
