"""Figures of a paper and of ours, and how they compare."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from widemargin.report.markup import Markup, escape, note, paragraph

SIMILAR, BETTER, WORSE, DIFFERENT = "similar", "better", "worse", "different"
OURS, NOT_RUN = "ours only", "not run"


@dataclass(frozen=True)
class Figure:
    """One cell of a table.

    Attributes
    ----------
    row, column : str
        Where it is.
    published, measured : float or None
        The figure of the paper, and ours.
    tolerance : float
        Difference up to which the two are called similar.
    larger_is_better : bool or None
        None if neither is better.
    """

    row: str
    column: str
    published: float | None
    measured: float | None
    tolerance: float = 0.0
    larger_is_better: bool | None = True

    @property
    def verdict(self) -> str:
        """How ours compares with the figure of the paper."""
        if self.measured is None:
            return NOT_RUN
        if self.published is None:
            return OURS
        gain = self.measured - self.published
        if abs(gain) <= self.tolerance:
            return SIMILAR
        if self.larger_is_better is None:
            return DIFFERENT
        return BETTER if (gain > 0) == self.larger_is_better else WORSE


@dataclass(frozen=True)
class Claim:
    """A statement of a paper, and whether it holds here.

    Attributes
    ----------
    statement : str
    holds : bool or None
        None if it was not tried.
    evidence : str
        What was measured.
    """

    statement: str
    holds: bool | None
    evidence: str


@dataclass(frozen=True)
class Comparison:
    """A table or the statements of a paper, beside ours.

    Attributes
    ----------
    title, protocol : str
        What is compared, and how ours was measured.
    explanation : str
        Why figures differ.
    figures : sequence of Figure
    claims : sequence of Claim
    digits : int
        Decimal places.
    """

    title: str
    protocol: str
    explanation: str
    figures: Sequence[Figure] = ()
    claims: Sequence[Claim] = ()
    digits: int = 2

    def to_dict(self) -> dict[str, Any]:
        """Return the content as JSON data."""
        content = asdict(self)
        content["figures"] = [{**asdict(f), "verdict": f.verdict} for f in self.figures]
        return content

    def counts(self) -> dict[str, int]:
        """Return the number of figures with each verdict."""
        verdicts = [figure.verdict for figure in self.figures]
        return {verdict: verdicts.count(verdict) for verdict in dict.fromkeys(verdicts)}

    def to_html(self) -> Markup:
        """Return the table and the statements."""
        elements = [Markup(f"<h3>{escape(self.title)}</h3>"), paragraph(self.protocol)]
        if self.figures:
            elements.append(_table(self.figures, self.digits))
        if self.claims:
            elements.append(_claims(self.claims))
        elements.append(note(self.explanation))
        return Markup("".join(elements))


@dataclass
class Paper:
    """What was reproduced of a paper.

    Attributes
    ----------
    name, title, reference : str
    comparisons : list of Comparison
    seconds : float
    """

    name: str
    title: str
    reference: str
    comparisons: list[Comparison] = field(default_factory=list)
    seconds: float = 0.0


def _table(figures: Sequence[Figure], digits: int) -> Markup:
    """Return a table with the published figure and ours in each cell."""
    rows = [*dict.fromkeys(figure.row for figure in figures)]
    columns = [*dict.fromkeys(figure.column for figure in figures)]
    cells = {(f.row, f.column): f for f in figures}
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in ["", *columns])
    body = ""
    for row in rows:
        line = "".join(_cell(cells.get((row, column)), digits) for column in columns)
        body += f'<tr><th scope="row">{escape(row)}</th>{line}</tr>'
    return Markup(
        '<div class="wide"><table class="compared"><thead><tr>'
        f"{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _cell(figure: Figure | None, digits: int) -> str:
    if figure is None:
        return "<td></td>"
    ours, theirs = (
        "–" if value is None else f"{value:,.{digits}f}"
        for value in (figure.measured, figure.published)
    )
    return (
        f'<td class="{_CLASSES[figure.verdict]}" title="{escape(figure.verdict)}"><b>{ours}</b>'
        f"<br><span>{theirs}</span></td>"
    )


def _claims(claims: Sequence[Claim]) -> Markup:
    words = {True: ("holds", "good"), False: ("does not hold", "bad"), None: ("not tried", "none")}
    rows = "".join(
        f'<tr><th scope="row">{escape(claim.statement)}</th>'
        f'<td class="{words[claim.holds][1]}">{words[claim.holds][0]}</td>'
        f"<td>{escape(claim.evidence)}</td></tr>"
        for claim in claims
    )
    head = "".join(f'<th scope="col">{name}</th>' for name in ("statement", "here", "measured"))
    return Markup(
        '<div class="wide"><table class="compared statements"><thead><tr>'
        f"{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


_CLASSES = {
    SIMILAR: "same", BETTER: "good", WORSE: "bad", DIFFERENT: "other", OURS: "none",
    NOT_RUN: "none",
}  # fmt: skip
