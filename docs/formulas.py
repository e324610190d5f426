"""Formulas as MathML, which browsers draw themselves: pages are readable without a network."""

import re
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError, latex2mathml
from sphinx.errors import ExtensionError


def mathml(formula: str, block: bool = False) -> str:
    """Return a formula in LaTeX as MathML.

    Parameters
    ----------
    formula : str
    block : bool, default=False
        Whether it stands in a line of its own.

    Returns
    -------
    text : str
    """
    # docutils takes the digits of \tfrac12, which TeX reads as two arguments, for one number.
    formula = re.sub(r"(\\[td]?frac)(\d)(\w)", r"\1{\2}{\3}", formula)
    try:
        return latex2mathml.tex2mathml(formula, as_block=block)
    except MathError as error:
        raise ExtensionError(f"The formula {formula!r} cannot be drawn: {error}") from error


def setup(app: Any) -> None:
    """Register the renderer, under the name that ``html_math_renderer`` takes."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))


def _inline(translator: Any, node: nodes.math) -> None:
    translator.body.append(mathml(node.astext()))
    raise nodes.SkipNode


def _block(translator: Any, node: nodes.math_block) -> None:
    translator.body.append(f'<div class="formula">{mathml(node.astext(), block=True)}</div>')
    raise nodes.SkipNode
