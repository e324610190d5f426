"""The page of a report: sections, and the HTML around them."""

from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Self

from widemargin._base.checkpoint import PathLike, atomic_write
from widemargin._base.sklearn_compat import __version__
from widemargin.report.markup import escape
from widemargin.report.sections import describe
from widemargin.report.subject import Subject


@dataclass(frozen=True)
class Section:
    """A section of a report.

    Parameters
    ----------
    title : str
        Heading, as plain text.
    body : str
        Content, as HTML.
    """

    title: str
    body: str


class Report:
    """Self-contained HTML page about a fitted model.

    Create it with :meth:`from_estimator`. The sections depend on the model and on what is passed:
    data, method, certificate, guarantee, confusion matrix, precision-recall curve with a slider for
    the threshold, classes, rounds, teacher and students, slack, projection, proposals of structured
    models, label tree. The page needs no network and no other file; it follows the light or dark
    theme of the browser, and can be printed.

    Parameters
    ----------
    title : str
        Heading, as plain text.
    sections : iterable of Section
        Content.

    Attributes
    ----------
    title : str
        Heading.
    sections : list of Section
        Content, to which other sections may be added.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from widemargin import LinearDiscriminantAnalysis
    >>> from widemargin.report import Report
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LinearDiscriminantAnalysis().fit(X[:400], y[:400])
    >>> report = Report.from_estimator(model, X[400:], y[400:])
    >>> [section.title for section in report.sections][:3]
    ['Summary', 'Data', 'Method']
    >>> report.save("report.html")  # doctest: +SKIP
    """

    def __init__(self, title: str, sections: Iterable[Section] = ()) -> None:
        self.title = title
        self.sections = list(sections)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: Any = None,
        *,
        title: str | None = None,
        notes: dict[str, Any] | None = None,
        class_names: Any = None,
    ) -> Self:
        """Describe a fitted model and, if samples are passed, its predictions.

        Parameters
        ----------
        estimator : fitted estimator
            A model of widemargin or scikit-learn, or a pipeline or search that ends in one.
        X : array-like, sparse matrix or sequence, default=None
            Samples that were not used for training.
        y : array-like or sequence, default=None
            Their labels or outputs. Pass both X and y, or neither.
        title : str, default=None
            Heading. If None, the name of the model.
        notes : dict, default=None
            What else is known about the data and the choice of the method, by name; shown in the
            sections 'Data' (the key 'because' in 'Method').
        class_names : array-like of shape (n_classes,), default=None
            Names of the states of structured outputs, such as letters.

        Returns
        -------
        Report
            Report on the model.
        """
        subject = Subject(estimator, X, y, notes, class_names)
        sections = [Section(name, body) for name, body in describe(subject)]
        return cls(subject.name if title is None else title, sections)

    def to_html(self) -> str:
        """Return the page.

        Returns
        -------
        html : str
            A complete document.
        """
        style, script = (_resource(name) for name in ("report.css", "report.js"))
        links = "".join(
            f'<a href="#s{k}">{escape(section.title)}</a>'
            for k, section in enumerate(self.sections)
        )
        sections = "".join(
            f'<section id="s{k}"><h2>{escape(section.title)}</h2>{section.body}</section>'
            for k, section in enumerate(self.sections)
        )
        return (
            '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>{escape(self.title)}</title><style>{style}</style></head><body>"
            f"<header><h1>{escape(self.title)}</h1><nav>{links}</nav></header>"
            f"<main>{sections}</main><footer>widemargin {escape(__version__)}</footer>"
            f"<script>{script}</script></body></html>\n"
        )

    def save(self, path: PathLike) -> None:
        """Write the page to a file, completely or not at all.

        Parameters
        ----------
        path : str or path-like
            File to write.
        """
        with atomic_write(path) as file:
            file.write(self.to_html().encode())


def _resource(name: str) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8")
