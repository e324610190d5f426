"""The commands. Libraries are imported when a command needs them, so that --help is fast."""

from pathlib import Path
from pkgutil import resolve_name
from typing import Annotated, Any

import typer

import widemargin
from widemargin.cli.main import CommandError

app = typer.Typer(
    help="Fit, evaluate and use support vector classifiers on tables.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Data = Annotated[
    Path,
    typer.Argument(
        exists=True,
        dir_okay=False,
        help="CSV, Parquet, ARFF, svmlight or Extreme Classification file.",
    ),
]
Model = Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="Model file.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


@app.callback(invoke_without_command=True)
def describe(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks of errors.")] = False,
) -> None:
    """Print the version if that is all."""
    if version:
        print(widemargin.__version__)
        raise typer.Exit


@app.command()
def fit(
    data: Data,
    output: Annotated[Path, typer.Option("--output", "-o", help="Model file to write.")],
    target: Annotated[str | None, typer.Option(help="Column with the labels.")] = None,
    unlabeled: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="File with more samples, unlabeled."),
    ] = None,
    privileged: Annotated[
        list[str] | None,
        typer.Option(help="Column that only training samples have. May be repeated."),
    ] = None,
    teacher: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            dir_okay=False,
            help="Model of several classes to distill into one fast detector for each class.",
        ),
    ] = None,
    text: Annotated[list[str] | None, typer.Option(help="Column to treat as text.")] = None,
    category: Annotated[
        list[str] | None, typer.Option(help="Column to treat as a category.")
    ] = None,
    precision: Annotated[
        float | None, typer.Option(min=0, max=1, help="Required precision of the positive class.")
    ] = None,
    recall: Annotated[
        float | None, typer.Option(min=0, max=1, help="Required recall of the positive class.")
    ] = None,
    confidence: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Probability with which they hold on new samples."),
    ] = None,
    positive: Annotated[str | None, typer.Option(help="Label of the positive class.")] = None,
    method: Annotated[
        str,
        typer.Option(help="auto, svc, linear, lda, preference, privileged or labeltree."),
    ] = "auto",
    tune: Annotated[bool, typer.Option("--tune", help="Select C by cross-validation.")] = False,
    seed: Annotated[
        int | None, typer.Option(min=0, max=2**32 - 1, help="Seed of random choices.")
    ] = None,
    jobs: Annotated[int | None, typer.Option(help="Number of parallel jobs.")] = None,
    cluster: Annotated[
        str | None,
        typer.Option(help="Address of a Dask scheduler, or local for processes of their own."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Fit a classifier to a table and save it.

    Numbers are imputed and scaled, categories one-hot encoded, text becomes tf-idf features.
    Samples with an empty target are unlabeled.
    """
    from widemargin.cli import methods, tables
    from widemargin.cli.cluster import use_cluster
    from widemargin.cli.output import print_result, progress

    if method not in methods.METHODS:
        raise CommandError(f"There is no --method {method}.", f"Use {', '.join(methods.METHODS)}.")
    if jobs == 0:
        raise CommandError("--jobs must not be 0.", "Pass a number, or -1 for all processors.")
    _check_folder(output)
    constraints = {"precision": precision, "recall": recall, "confidence": confidence}
    chosen = methods.FitOptions(
        method=method,
        privileged=list(dict.fromkeys(privileged or [])),
        texts=text or [],
        categories=category or [],
        constraints={name: value for name, value in constraints.items() if value is not None},
        positive=positive,
        tune=tune,
        seed=seed,
        jobs=jobs,
        cluster=cluster,
    )
    if teacher is not None:
        _check_teacher_options(chosen, target, unlabeled)
        students(teacher, data, output, as_json=as_json)
        return
    with progress(f"Reading {data.name} ...") as show:
        samples = tables.read_training(data, target, [*chosen.texts, *chosen.categories])
        more = None if unlabeled is None else _read_unlabeled(unlabeled, data, samples.X, chosen)
        with use_cluster(cluster):
            fitted = methods.fit(samples, more, chosen, show)
    from widemargin.export import save

    result = _fit_result(data, output, fitted)
    shown = ("labeled_samples", "unlabeled_samples", "columns", "because", "preprocessing")
    notes = {"trained_on": data.name, **{name: result[name] for name in shown}}
    metadata = {
        "kinds": fitted.kinds,
        "target": target,
        "file_type": fitted.file_type,
        "data": data.name,
        "notes": notes,
    }
    save(fitted.model, output, metadata=metadata)
    print_result(result, as_json)


@app.command()
def predict(
    model: Model,
    data: Data,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="CSV file to write instead of printing.")
    ] = None,
    scores: Annotated[bool, typer.Option("--scores", help="Add the decision values.")] = False,
    top: Annotated[
        int | None, typer.Option(min=1, help="Number of labels that a label tree predicts.")
    ] = None,
) -> None:
    """Predict class labels, as CSV. Files of any size are read in chunks."""
    import sys
    from contextlib import nullcontext

    from widemargin._base.checkpoint import atomic_write
    from widemargin.cli.output import progress
    from widemargin.cli.prediction import prediction_chunks

    if output is not None:
        _check_folder(output)
    target = nullcontext(sys.stdout.buffer) if output is None else atomic_write(output)
    count = -1  # a header comes first
    with progress(f"Predicting {data.name} ...") as show, target as file:
        for chunk in prediction_chunks(model, data, scores, top):
            file.write(chunk)
            count += chunk.count(b"\n")
            show(f"Predicting {data.name}: {count:,} samples ...")
        # At the end of the process, a closed pipe would not be an error of the command.
        file.flush()


@app.command()
def evaluate(model: Model, data: Data, as_json: Json = False) -> None:
    """Compare predictions with the labels of a table."""
    from widemargin.cli.output import print_result, progress
    from widemargin.cli.prediction import evaluation

    with progress(f"Evaluating {data.name} ..."):
        result = evaluation(model, data)
    print_result(result, as_json)


@app.command()
def report(
    model: Model,
    data: Annotated[
        Path | None, typer.Argument(exists=True, dir_okay=False, help="File with labeled samples.")
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="HTML file to write.")] = Path(
        "report.html"
    ),
) -> None:
    """Write a page about a model and its predictions: one HTML file that needs no network."""
    from widemargin.cli.output import progress
    from widemargin.cli.prediction import report_on

    _check_folder(output)
    with progress(f"Writing {output} ..."):
        report_on(model, data).save(output)
    print(output)


@app.command()
def students(
    teacher: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="Model file.")],
    data: Data,
    output: Annotated[Path, typer.Option("--output", "-o", help="Model file to write.")],
    landmarks: Annotated[
        int | None,
        typer.Option(min=1, help="Kernel values that replace a teacher that is not linear."),
    ] = None,
    evaluate_on: Annotated[
        Path | None,
        typer.Option("--evaluate", exists=True, dir_okay=False, help="File with other samples."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Distill a model of several classes into one fast detector for each class, and save them."""
    from widemargin.cli.output import print_result, progress
    from widemargin.cli.prediction import distill

    _check_folder(output)
    with progress(f"Fitting students of {teacher.name} ..."):
        result = distill(teacher, data, output, evaluate_on, landmarks)
    print_result(result, as_json)


@app.command()
def data(
    name: Annotated[
        str | None, typer.Argument(help="Name of a data set. Lists them if missing.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="CSV file to write instead of printing.")
    ] = None,
    subset: Annotated[str, typer.Option(help="all, train or test.")] = "all",
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Seed of generated data.")] = 0,
) -> None:
    """Write included, generated or downloaded data as CSV."""
    import sys

    from widemargin._base.checkpoint import atomic_write
    from widemargin.cli import samples

    if name is None:
        for known, text in samples.describe().items():
            print(f"{known}: {text}")
        return
    if output is not None:
        _check_folder(output)
    text = samples.table(name, subset, seed).to_csv(index=False, lineterminator="\n").encode()
    if output is None:
        sys.stdout.buffer.write(text)
        return
    with atomic_write(output) as file:
        file.write(text)


@app.command()
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write.")] = Path(
        "widemargin-demo"
    ),
) -> None:
    """Fit the main estimators to included and generated data, and write a report."""
    from widemargin.cli.demo import run_demo

    run_demo(output)


@app.command()
def reproduce(
    papers: Annotated[
        list[str],
        typer.Argument(
            help="gated, privileged, preference, coulomb, discriminant, labeltree or all."
        ),
    ],
    quick: Annotated[
        bool, typer.Option("--quick", help="Included and generated data only, in two minutes.")
    ] = False,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write.")] = Path(
        "widemargin-reproduction"
    ),
    data: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            file_okay=False,
            help="Folder with copies of data sets as NAME.npz, which are not downloaded then.",
        ),
    ] = None,
) -> None:
    """Compare the tables of the papers with ours, on one HTML page and in one JSON file."""
    from widemargin.cli.reproduction import reproduce as run

    run(papers, quick, output, data)
    print(output / "reproduction.html")


@app.command()
def inspect(model: Model, as_json: Json = False) -> None:
    """Describe a model file without loading the model: no code of the file runs."""
    from dataclasses import asdict

    from widemargin.cli.output import print_result
    from widemargin.export import inspect as inspect_file

    print_result(asdict(inspect_file(model)), as_json)


def compile_all() -> None:
    """Compile all inner loops into the cache, for containers and CI."""
    from widemargin.cli.output import progress

    with progress("Compiling ..."):
        resolve_name("widemargin:compile_all")()


if "compile_all" in widemargin.__all__:
    app.command("compile")(compile_all)


def _check_folder(output: Path) -> None:
    """Raise a CommandError if a file cannot be there, before any work is done."""
    if not output.absolute().parent.is_dir():
        raise CommandError(
            f"--output {output}: there is no folder {output.parent}.", "Create it first."
        )
    if output.is_dir():
        raise CommandError(f"--output {output} is a folder.", "Pass the name of a file.")


def _check_teacher_options(chosen: Any, target: str | None, unlabeled: Path | None) -> None:
    """Raise a CommandError if students would not use an option."""
    from dataclasses import fields

    default = type(chosen)()
    used = {f.name for f in fields(chosen) if getattr(chosen, f.name) != getattr(default, f.name)}
    options = {"texts": "text", "categories": "category", "constraints": "precision and --recall"}
    arguments = {"target": target, "unlabeled": unlabeled}
    used |= {name for name, value in arguments.items() if value is not None}
    if used:
        names = sorted(options.get(name, name) for name in used)
        raise CommandError(
            f"--teacher cannot be combined with {', '.join(f'--{name}' for name in names)}.",
            "Columns, target and preprocessing are those of the teacher.",
        )


def _read_unlabeled(path: Path, data: Path, trained: Any, chosen: Any) -> Any:
    """Read samples without labels, with the columns of the training samples."""
    from widemargin.cli import tables

    tables.check_file_type(path, tables.file_type(data))
    kinds = None
    if hasattr(trained, "columns"):
        kinds = tables.column_kinds(trained, chosen.texts, chosen.categories)
        kinds = {name: kind for name, kind in kinds.items() if name not in chosen.privileged}
    chunks = tables.read_chunks(path, kinds, trained.shape[1])
    return tables.stack([samples.X for samples in chunks])


def _fit_result(data: Path, output: Path, fitted: Any) -> dict[str, Any]:
    model = fitted.model[-1]
    kinds = fitted.kinds or {}
    counts = {kind: list(kinds.values()).count(kind) for kind in sorted(set(kinds.values()))}
    best = getattr(model, "best_params_", None)
    guarantee = getattr(model, "guarantee_", None)
    return {
        "data": str(data),
        "labeled_samples": fitted.n_labeled,
        "unlabeled_samples": fitted.n_unlabeled or None,
        "classes": fitted.model.classes_.tolist(),
        "columns": counts,
        "method": type(model).__name__,
        "because": fitted.reason,
        "preprocessing": "numbers: median, missing indicator, scaled; categories: one-hot; "
        "text: tf-idf" if kinds else "none",
        "selected_parameters": best,
        "cross_validated_score": getattr(model, "best_score_", None),
        "duality_gap": float(model.dual_gap_.max()) if hasattr(model, "dual_gap_") else None,
        "threshold": getattr(model, "threshold_", None),
        "guaranteed": None if guarantee is None else guarantee.guaranteed,
        "achievable": None if guarantee is None else guarantee.achievable,
        "model": str(output),
    }  # fmt: skip
