"""Read CSV, Parquet, ARFF, svmlight and Extreme Classification files, whole or in chunks."""

import difflib
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import vstack
from sklearn.datasets import load_svmlight_file

from widemargin._base.options import cli_options as options
from widemargin.cli.main import CommandError
from widemargin.labeltree.io import is_extreme_format, load_extreme_format, read_extreme_chunks

NUMBER, CATEGORY, TEXT = "number", "category", "text"
TABLE, SVMLIGHT, EXTREME = "table", "svmlight", "extreme"
_NAMES = {
    TABLE: "a table",
    SVMLIGHT: "an svmlight file",
    EXTREME: "an Extreme Classification file",
}
_WHOLE = re.compile(r"-?(0|[1-9][0-9]*)\.0+")
_SVMLIGHT = (".svm", ".svmlight", ".libsvm")


@dataclass(frozen=True)
class Samples:
    """Features and labels of a file.

    Attributes
    ----------
    X : DataFrame or CSR matrix
    labels : ndarray of str or of int, CSR matrix, or None
        Empty strings mark unlabeled samples. A matrix has an entry for each label of a sample.
    """

    X: Any
    labels: Any

    def __len__(self) -> int:
        return self.X.shape[0]


def file_type(path: Path) -> str:
    """Return `SVMLIGHT`, `EXTREME` or `TABLE`, by the extension and the first line."""
    if path.suffix in _SVMLIGHT:
        return SVMLIGHT
    return EXTREME if path.suffix == ".txt" and is_extreme_format(path) else TABLE


def read_training(path: Path, target: str | None, strings: Sequence[str] = ()) -> Samples:
    """Read a whole file of samples with labels.

    Parameters
    ----------
    path : Path
        CSV file with a header, Parquet, ARFF, svmlight or Extreme Classification file.
    target : str or None
        Column with the labels. Other files than tables contain their labels; None is needed there.
    strings : sequence of str
        Columns to read as strings, even if they contain numbers.

    Returns
    -------
    samples : Samples
        All columns but the target. Labels are strings; svmlight labels are integers, those of
        Extreme Classification files a matrix.
    """
    kind = file_type(path)
    if kind != TABLE and target is not None:
        raise CommandError(f"--target is for tables: {_NAMES[kind]} contains its labels.")
    if kind == EXTREME:
        return Samples(*load_extreme_format(path))
    if kind == SVMLIGHT:
        X, labels = _read_svmlight(path)
        return Samples(X, _whole_numbers(labels))
    if target is None:
        raise CommandError(
            "--target is missing.", f"Pass the name of the column with the labels of {path.name}."
        )
    _check_columns(path, [target])
    table = _read_table(path, target, strings)
    if not len(table):
        raise CommandError(f"{path} has a header and no samples.")
    return Samples(table.drop(columns=target), to_labels(table[target]))


def column_kinds(table: pd.DataFrame, texts: list[str], categories: list[str]) -> dict[str, str]:
    """Return which columns are numbers, categories or text.

    Columns of strings with few distinct values are categories, others are text.

    Parameters
    ----------
    table : DataFrame
    texts, categories : list of str
        Columns of which the user has decided.

    Returns
    -------
    kinds : dict of str
        Kind of each column, by name.
    """
    for name in [*texts, *categories]:
        if name not in table:
            raise _unknown_column(name, list(table), "the table")
    kinds = {}
    for name, column in table.items():
        if name in texts:
            kinds[str(name)] = TEXT
        elif name in categories or pd.api.types.is_bool_dtype(column):
            kinds[str(name)] = CATEGORY
        elif pd.api.types.is_numeric_dtype(column):
            kinds[str(name)] = NUMBER
        else:
            kinds[str(name)] = _kind_of_strings(str(name), column)
    return kinds


def _kind_of_strings(name: str, column: pd.Series) -> str:
    """Return whether a column is a category or text; warn if most of it is numbers."""
    try:
        kind = CATEGORY if column.nunique() <= options.most_categories else TEXT
    except TypeError as error:
        raise CommandError(
            f"Column {name!r} contains neither numbers nor strings, but {column.dropna().iloc[0]}.",
            "Remove it, or write each of its numbers to a column.",
        ) from error
    present = column.dropna()
    others = present[pd.to_numeric(present.astype(str), errors="coerce").isna()]
    if 0 < len(others) <= (1 - options.mostly_numbers) * len(present):
        warnings.warn(
            f"Column {name!r} is used as {kind}, because {len(others)} of its {len(present)} "
            f"values are not numbers, such as {others.iloc[0]!r}. If these mark missing values, "
            "leave them empty.",
            stacklevel=2,
        )
    return kind


def with_kinds(table: pd.DataFrame, kinds: dict[str, str]) -> pd.DataFrame:
    """Return the columns of a table as float64, or as strings with "" for missing values."""
    columns = {
        name: _numbers(name, table[name])
        if kind == NUMBER
        else pd.Series(to_labels(table[name]), table.index, dtype=object)
        for name, kind in kinds.items()
    }
    return pd.DataFrame(columns, index=table.index)


def _numbers(name: str, column: pd.Series) -> pd.Series:
    """Return a column as float64, without infinite numbers and those whose square is infinite."""
    numbers = column.astype(np.float64)
    large = numbers[numbers.abs() > options.largest_number]
    if len(large):
        raise CommandError(
            f"Column {name!r} contains {large.iloc[0]}, and {options.largest_number} is the "
            "largest number that can be used.",
            "Leave the field empty if the value is missing.",
        )
    return numbers


def read_chunks(
    path: Path, kinds: dict[str, str] | None, n_features: int, target: str | None = None
) -> Iterator[Samples]:
    """Read the columns that a model needs, in chunks of bounded size.

    Parameters
    ----------
    path : Path
        CSV, Parquet, ARFF, svmlight or Extreme Classification file. An ARFF file is read whole.
    kinds : dict of str or None
        Kinds of the columns of the model, by name; None for files that are no tables.
    n_features : int
        Number of features of the model, for svmlight files.
    target : str, optional
        Column with labels to return too.

    Yields
    ------
    samples : Samples
    """
    if kinds is None:
        yield from _sparse_chunks(path, n_features)
        return
    needed = [*kinds, *([] if target is None else [target])]
    _check_columns(path, needed)
    types = {name: np.float64 if kinds.get(name) == NUMBER else str for name in needed}
    count = 0
    for table in _table_chunks(path, types, kinds, target):
        if not len(table):
            continue
        count += len(table)
        labels = None if target is None else to_labels(table[target])
        yield Samples(with_kinds(table, kinds), labels)
    if not count:
        raise CommandError(f"{path} has a header and no samples.")


def check_file_type(path: Path, trained: str) -> None:
    """Raise a CommandError if a file has another type than that a model was trained on."""
    actual = file_type(path)
    if actual != trained:
        raise CommandError(
            f"The model was trained on {_NAMES[trained]}, and {path.name} is {_NAMES[actual]}."
        )


def _sparse_chunks(path: Path, n_features: int) -> Iterator[Samples]:
    if file_type(path) == SVMLIGHT:
        yield from _svmlight_chunks(path, n_features)
        return
    for X, labels in read_extreme_chunks(path):
        if X.shape[1] != n_features:
            raise CommandError(
                f"{path} has {X.shape[1]} features, and the model was trained on {n_features}.",
                "Was the model trained on other data?",
            )
        yield Samples(X, labels)


def stack(blocks: list) -> Any:
    """Return tables, arrays or CSR matrices of several chunks as one."""
    if len(blocks) == 1:
        return blocks[0]
    if isinstance(blocks[0], pd.DataFrame):
        return pd.concat(blocks)
    return vstack(blocks).tocsr() if hasattr(blocks[0], "tocsr") else np.concatenate(blocks)


def to_labels(column: pd.Series) -> np.ndarray:
    """Return values as strings, whole numbers without decimal places, "" for missing values."""
    if pd.api.types.is_float_dtype(column):
        texts = ["" if pd.isna(v) else np.format_float_positional(v, trim="-") for v in column]
        return np.array(texts, dtype=object)
    return np.array(["" if pd.isna(v) else str(v) for v in column], dtype=object)


def plain_number(label: str) -> str:
    """Return a whole number without its decimal places, which tables with missing values have."""
    return label.partition(".")[0] if _WHOLE.fullmatch(label) else label


def class_of(label: str, classes: np.ndarray) -> Any:
    """Return the class that is written as ``label``, such as 1 or 1.0; None if there is none."""
    for write in (str, plain_number):
        for known in classes.tolist():
            if write(str(known)) == write(label):
                return known
    return None


def _read_table(path: Path, target: str, strings: Sequence[str]) -> pd.DataFrame:
    if path.suffix == ".parquet":
        with _parquet_errors(path):
            return pd.read_parquet(path)
    if path.suffix == ".arff":
        return _read_arff(path)
    read = partial(pd.read_csv, path, converters={target: _marked}, low_memory=False)
    types: dict[Any, Any] = {name: str for name in strings if name != target}
    with _csv_errors(path):
        table = read(dtype=types)
        # As they are written, such as "true": predictions read strings.
        truths = [name for name in table if pd.api.types.infer_dtype(table[name]) == "boolean"]
        if truths:
            table = read(dtype={**types, **dict.fromkeys(truths, str)})
    return _with_labels(table, target) if len(table) else table


def _marked(label: str) -> str:
    """Return a label that pandas does not take for a missing value, as it does NA and None."""
    return f"={label}"


def _with_labels(table: pd.DataFrame, target: str) -> pd.DataFrame:
    """Return a table whose labels are no longer marked."""
    return table.assign(**{target: table[target].str[1:]})


def _table_chunks(
    path: Path, types: dict[str, Any], kinds: dict[str, str], target: str | None
) -> Iterator[Any]:
    if path.suffix == ".parquet":
        from pyarrow.parquet import ParquetFile

        with _parquet_errors(path):
            for batch in ParquetFile(path).iter_batches(options.read_samples, columns=list(types)):
                yield batch.to_pandas()
        return
    if path.suffix == ".arff":
        table = _read_arff(path)
        for start in range(0, len(table), options.read_samples):
            yield table.iloc[start : start + options.read_samples]
        return
    converters = {} if target is None else {target: _marked}
    # With usecols, lines of too many fields would be no error.
    read = {name: types.get(name, str) for name in _csv_header(path) if name != target}
    try:
        with (
            _csv_errors(path),
            pd.read_csv(
                path, dtype=read, converters=converters, chunksize=options.read_samples
            ) as tables,
        ):
            for table in tables:
                yield table if target is None or not len(table) else _with_labels(table, target)
    except ValueError as error:
        numbers = ", ".join(name for name, kind in kinds.items() if kind == NUMBER)
        raise CommandError(
            f"{path} does not contain the types of the training data: {error}.",
            f"These columns must contain numbers: {numbers}.",
        ) from error


@contextmanager
def _csv_errors(path: Path) -> Iterator[None]:
    """Turn what reading a file that is no CSV file raises into a CommandError."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise CommandError(
            f"{path} cannot be read as CSV: it is not UTF-8 text ({error.reason}).",
            "Save it as UTF-8.",
        ) from error
    except (pd.errors.EmptyDataError, pd.errors.ParserError) as error:
        reason = str(error).removeprefix("Error tokenizing data. C error: ").strip()
        raise CommandError(
            f"{path} cannot be read as CSV: {reason}.",
            "Quote fields that contain commas, quotes or line breaks.",
        ) from error


@contextmanager
def _parquet_errors(path: Path) -> Iterator[None]:
    """Turn what reading a damaged file raises into a CommandError."""
    try:
        yield
    except (KeyError, TypeError, ValueError, OSError) as error:
        raise CommandError(
            f"{path} cannot be read as Parquet ({error}).", "Is it damaged?"
        ) from error


def _read_arff(path: Path) -> pd.DataFrame:
    """Read numbers and nominal attributes; ? are missing values."""
    from scipy.io.arff import loadarff

    try:
        values, _ = loadarff(path)
    except (NotImplementedError, ValueError, OSError, StopIteration, IndexError) as error:
        reason = " ".join(str(error).split()) or "it has no header"
        raise CommandError(
            f"{path} cannot be read as ARFF ({reason}).", "Text columns need a CSV file."
        ) from error
    table = pd.DataFrame({name: values[name] for name in values.dtype.names})
    strings = {
        name: table[name].str.decode("utf-8") for name in table if table[name].dtype == object
    }
    return table.assign(**{name: column.where(column != "?") for name, column in strings.items()})


def _check_columns(path: Path, needed: list[str]) -> None:
    try:
        if path.suffix == ".parquet":
            from pyarrow.parquet import read_schema

            present = read_schema(path).names
        elif path.suffix == ".arff":
            present = list(_read_arff(path).columns)
        else:
            present = _csv_header(path)
    except ValueError as error:
        raise CommandError(f"{path} cannot be read: {error}") from error
    separators = [mark for mark in ";\t|" if len(present) == 1 and mark in str(present[0])]
    if separators and present[0] not in needed:
        raise CommandError(
            f"The columns of {path} are separated by {separators[0]!r}.",
            "Separate them by commas, with points in decimal numbers.",
        )
    for name in needed:
        if name not in present:
            raise _unknown_column(name, present, str(path))


def _csv_header(path: Path) -> list[str]:
    """Return the names of the columns, all of which are different."""
    if path.stat().st_size == 0:
        raise CommandError(f"{path} is empty.", "A table with a header is needed.")
    with _csv_errors(path):
        names = pd.read_csv(path, nrows=1, header=None, dtype=str).iloc[0].dropna()
        repeated = names[names.duplicated()]
        if len(repeated):
            raise CommandError(
                f"{path} has more than one column {repeated.iloc[0]!r}.", "Rename or remove it."
            )
        return list(pd.read_csv(path, nrows=0).columns)


def _unknown_column(name: str, present: list, where: str) -> CommandError:
    near = difflib.get_close_matches(name, [str(column) for column in present], n=1)
    hint = f"Did you mean {near[0]!r}?" if near else f"It has: {', '.join(map(str, present[:20]))}."
    return CommandError(f"{where} has no column {name!r}.", hint)


def _read_svmlight(path: Path, **options: Any) -> tuple[Any, np.ndarray]:
    if path.stat().st_size == 0:
        raise CommandError(f"{path} is empty.")
    try:
        # Indices from 1 on leave feature 0 empty; guessing would differ between chunks.
        return load_svmlight_file(str(path), zero_based=True, **options)
    except ValueError as error:
        raise CommandError(f"{path} cannot be read as svmlight: {error}") from error


def _svmlight_chunks(path: Path, n_features: int) -> Iterator[Samples]:
    size = path.stat().st_size
    for offset in range(0, max(size, 1), options.chunk_bytes):
        X, labels = _read_svmlight(
            path, n_features=n_features, offset=offset, length=options.chunk_bytes
        )
        if X.shape[0]:
            yield Samples(X, _whole_numbers(labels))


def _whole_numbers(labels: np.ndarray) -> np.ndarray:
    whole = labels.astype(np.int64)
    return whole if (whole == labels).all() else labels
