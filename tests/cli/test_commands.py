"""The command line as users run it, on files."""

import contextlib
import io
import json
import os
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file, make_classification
from sklearn.utils import Bunch

import widemargin
from widemargin import (
    SVC,
    load_extreme_format,
    ndcg_at_k,
    precision_at_k,
    save_extreme_format,
)
from widemargin._base.options import cli_options, label_tree_options
from widemargin.cli import main
from widemargin.cli import samples as cli_samples
from widemargin.cli.output import progress
from widemargin.datasets import make_extreme_labels
from widemargin.export import inspect, load, save


def run_process(*arguments):
    """Run the command line in a new process."""
    return subprocess.run(
        [sys.executable, "-m", "widemargin.cli", *map(str, arguments)],
        capture_output=True,
        text=True,
    )


def run(*arguments):
    """Run the command line in this process, which takes less time: what a new one would return."""
    out, err, code = io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), io.StringIO(), 0
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("default")
        patch.setattr(sys, "argv", ["widemargin", *map(str, arguments)])
        patch.setattr(warnings, "showwarning", warnings.showwarning)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                main()
            except SystemExit as end:
                code = end.code
            out.flush()
    return subprocess.CompletedProcess([], code, out.buffer.getvalue().decode(), err.getvalue())


def succeed(*arguments):
    result = run(*arguments)
    assert result.returncode == 0, result.stderr
    return result.stdout


def fail(*arguments, code=1):
    """Return the one sentence of a failed command."""
    result = run(*arguments)
    assert result.returncode == code, result.stderr
    assert "Traceback" not in result.stderr
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    return result.stderr


def mixed_table(n=120, seed=0):
    """Text, a category with missing values, numbers with missing values and string labels."""
    rng = np.random.default_rng(seed)
    good = rng.random(n) < 0.5
    words = [f"word{k}" for k in range(40)]
    return pd.DataFrame(
        {
            "age": np.where(rng.random(n) < 0.2, np.nan, 40 + 10 * good + rng.normal(0, 5, n)),
            "city": pd.Series(rng.choice(["Rome", "Oslo", "São Paulo"], n)).where(
                rng.random(n) < 0.9
            ),
            "note": [
                " ".join([*rng.choice(words, 4), "happy" if g else 'sad, "very"']) for g in good
            ],
            "diagnosis": rng.normal(size=n) + 3 * good,
            "outcome": np.where(good, "yes", "no"),
        }
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Data files, and a model of the mixed table."""
    folder = tmp_path_factory.mktemp("cli")
    table = mixed_table()
    table.to_csv(folder / "train.csv", index=False)
    table.to_parquet(folder / "train.parquet")
    mixed_table(60, seed=1).to_csv(folder / "test.csv", index=False)
    X, y = make_classification(200, 8, class_sep=1.5, random_state=0)
    numbers = pd.DataFrame(X, columns=[f"x{k}" for k in range(8)]).assign(label=y)
    numbers.to_csv(folder / "numbers.csv", index=False)
    numbers[["x0", "x1"]].to_csv(folder / "few.csv", index=False)
    dump_svmlight_file(X, 2 * y - 1, str(folder / "data.svm"), zero_based=False)
    succeed("fit", folder / "train.csv", "--target", "outcome", "-o", folder / "model.skops")
    return folder


def test_fit_explains_what_it_does(folder, tmp_path):
    out = succeed("fit", folder / "train.csv", "--target", "outcome", "-o", tmp_path / "model")
    assert "labeled samples: 120\n" in out
    assert "columns: category 1, number 2, text 1\n" in out
    assert "method: LinearSVC\n" in out
    assert "because: there is text" in out
    assert "\x1b" not in out  # no colours in a pipe


def test_fit_prints_json(folder, tmp_path):
    out = succeed(
        "fit", folder / "numbers.csv", "--target", "label", "-o", tmp_path / "m", "--json"
    )
    result = json.loads(out)
    assert result["method"] == "SVC"
    assert result["classes"] == [0, 1]
    assert 0 <= result["duality_gap"] < 1e-3


def test_predict_and_evaluate_a_mixed_table(folder):
    predicted = succeed("predict", folder / "model.skops", folder / "test.csv").split()
    assert predicted[0] == "prediction"
    expected = mixed_table(60, seed=1)["outcome"]
    accuracy = np.mean(np.array(predicted[1:]) == expected.to_numpy())
    result = json.loads(succeed("evaluate", folder / "model.skops", folder / "test.csv", "--json"))
    assert result["accuracy"] == accuracy > 0.9
    assert [row["class"] for row in result["classes"]] == ["no", "yes"]
    assert sum(row["samples"] for row in result["classes"]) == 60
    plain = succeed("evaluate", folder / "model.skops", folder / "test.csv")
    assert f"accuracy: {accuracy:.4g}\n" in plain
    assert "true class\tpredicted no\tpredicted yes\n" in plain


def test_predictions_are_those_of_the_model_in_python(folder):
    table = mixed_table(60, seed=1)
    model = load(folder / "model.skops")
    strings = table.assign(city=table["city"].fillna("").astype(object))
    expected = model.decision_function(strings)
    lines = succeed("predict", folder / "model.skops", folder / "test.csv", "--scores").split("\n")
    assert lines[0] == "prediction,score yes"
    scores = [float(line.split(",")[1]) for line in lines[1:-1]]
    np.testing.assert_array_equal(scores, expected)


def test_parquet_is_read_like_csv(folder, tmp_path):
    parquet = folder / "train.parquet"
    succeed("fit", parquet, "--target", "outcome", "-o", tmp_path / "model")
    of_parquet = succeed("predict", tmp_path / "model", parquet)
    assert of_parquet == succeed("predict", folder / "model.skops", folder / "train.csv")


def test_svmlight_files(folder, tmp_path):
    out = succeed("fit", folder / "data.svm", "-o", tmp_path / "model")
    assert "classes: -1, 1\n" in out
    result = json.loads(succeed("evaluate", tmp_path / "model", folder / "data.svm", "--json"))
    assert result["accuracy"] > 0.9
    error = fail("predict", tmp_path / "model", folder / "numbers.csv")
    assert "trained on an svmlight file, and numbers.csv is a table" in error


@pytest.fixture(scope="module")
def documents(tmp_path_factory):
    """Files of the Extreme Classification format, and a model of the first one."""
    folder = tmp_path_factory.mktemp("documents")
    found = make_extreme_labels(300, 30, n_features=200, random_state=0)
    for name, part in (("train", slice(200)), ("test", slice(200, None))):
        save_extreme_format(folder / f"{name}.txt", found.X[part], found.Y[part])
    succeed("fit", folder / "train.txt", "--seed", 0, "-o", folder / "model")
    return folder


def test_labels_of_an_extreme_classification_file_are_ranked(documents, monkeypatch):
    X, Y = load_extreme_format(documents / "test.txt")
    model = load(documents / "model")[-1]
    expected, scores = model.predict_topk(X, 3)
    monkeypatch.setattr(label_tree_options, "text_lines", 7)  # several chunks
    arguments = ("predict", documents / "model", documents / "test.txt", "--top", 3, "--scores")
    header, *lines = succeed(*arguments).splitlines()
    assert header == "label 1,label 2,label 3,score 1,score 2,score 3"
    table = np.array([line.split(",") for line in lines], dtype=np.float64)
    np.testing.assert_array_equal(table, np.hstack([expected, scores]))
    assert succeed(*arguments[:3]).startswith("label 1,label 2,label 3,label 4,label 5\n")
    found = json.loads(succeed("evaluate", *arguments[1:3], "--json"))
    assert (found["samples"], found["labels"]) == (100, 30)
    best = {row["k"]: row for row in found["ranking"]}
    assert best[3]["precision"] == pytest.approx(precision_at_k(Y, expected, 3))
    assert best[3]["ndcg"] == pytest.approx(ndcg_at_k(Y, expected, 3))


def test_a_fit_to_an_extreme_classification_file_is_explained(documents, tmp_path):
    out = succeed("fit", documents / "train.txt", "-o", tmp_path / "model")
    assert "method: LabelTreeClassifier\nbecause: samples have any number of labels\n" in out
    succeed("report", tmp_path / "model", documents / "test.txt", "-o", tmp_path / "r.html")
    assert '<th scope="col">P@k</th>' in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_errors_about_extreme_classification_files_are_one_sentence(documents, folder, tmp_path):
    train, model, output = documents / "train.txt", documents / "model", tmp_path / "model"
    for option, message in (
        (("--target", "y"), "an Extreme Classification file contains its labels"),
        (("--method", "svc"), "does not use several labels of a sample. Use --method labeltree"),
        (("--precision", 0.9), "does not use precision"),
        (("--unlabeled", documents / "test.txt"), "does not use the 100 unlabeled samples"),
        (("--text", "x"), "--text and --category are for tables"),
        (("--tune",), "--tune is not available"),
        (("--unlabeled", folder / "train.csv"), "and train.csv is a table"),
    ):
        assert message in fail("fit", train, *option, "-o", output)
    for command in ("predict", "evaluate", "report"):
        error = fail(command, model, folder / "numbers.csv")
        assert "trained on an Extreme Classification file, and numbers.csv is a table" in error
    (tmp_path / "other.txt").write_text("1 10 30\n0 1:1\n")
    assert "has 10 features, and the model was trained on 200" in fail(
        "predict", model, tmp_path / "other.txt"
    )
    (tmp_path / "few.txt").write_text("1 200 4\n0 1:1\n")
    assert "has 4 labels, and the model 30" in fail("evaluate", model, tmp_path / "few.txt")
    (tmp_path / "none.txt").write_text("1 200 30\n 1:1\n")
    assert "0 different labels" in fail("fit", tmp_path / "none.txt", "-o", output)
    (tmp_path / "bad.txt").write_text("2 200 30\n0 1:1\nx\n")
    assert "line 3: 'x' is not a sample" in fail("fit", tmp_path / "bad.txt", "-o", output)
    assert "predicts several labels" in fail("students", model, train, "-o", output)
    error = fail("predict", folder / "model.skops", folder / "test.csv", "--top", 2)
    assert "--top is for label trees" in error
    assert not output.exists()


def test_very_many_classes_are_arranged_in_a_tree(tmp_path, monkeypatch):
    monkeypatch.setattr(cli_options, "most_flat_classes", 3)
    X, y = make_classification(200, 6, n_informative=6, n_redundant=0, n_classes=4, random_state=0)
    table = pd.DataFrame(X, columns=list("abcdef")).assign(y=y)
    table.to_csv(tmp_path / "t.csv", index=False)
    out = succeed("fit", tmp_path / "t.csv", "--target", "y", "-o", tmp_path / "m")
    assert "because: there are 4 classes, which a tree of labels makes fast" in out
    ranked = succeed("predict", tmp_path / "m", tmp_path / "t.csv", "--top", 9).splitlines()
    assert ranked[0] == "label 1,label 2,label 3,label 4"
    single = succeed("predict", tmp_path / "m", tmp_path / "t.csv").splitlines()
    assert [line.split(",")[0] for line in ranked[1:]] == single[1:]


def test_a_teacher_is_distilled_by_fit(tmp_path):
    X, y = make_classification(120, 4, n_informative=4, n_redundant=0, n_classes=3, random_state=0)
    table = tmp_path / "t.csv"
    pd.DataFrame(X, columns=list("abcd")).assign(y=y).to_csv(table, index=False)
    succeed("fit", table, "--target", "y", "--method", "linear", "-o", tmp_path / "teacher")
    arguments = ("fit", table, "--teacher", tmp_path / "teacher", "-o", tmp_path / "students")
    assert json.loads(succeed(*arguments, "--json"))["teacher"] == "LinearSVC"
    assert type(load(tmp_path / "students")[-1]).__name__ == "GatedStudents"
    error = fail(*arguments, "--tune", "--category", "a")
    assert "--teacher cannot be combined with --category, --tune." in error
    assert "--target" in fail(*arguments, "--target", "y")


def test_predictions_are_written_whole_or_not_at_all(folder, tmp_path):
    output = tmp_path / "predictions.csv"
    succeed("predict", folder / "model.skops", folder / "test.csv", "-o", output)
    assert len(output.read_text().splitlines()) == 61
    broken = mixed_table(60, seed=1).astype({"age": object})
    broken.loc[59, "age"] = "old"
    broken.to_csv(tmp_path / "broken.csv", index=False)
    error = fail("predict", folder / "model.skops", tmp_path / "broken.csv", "-o", output)
    assert "'old'" in error
    assert "These columns must contain numbers: age, diagnosis" in error
    assert len(output.read_text().splitlines()) == 61
    assert sorted(os.listdir(tmp_path)) == ["broken.csv", "predictions.csv"]


def test_constraints_with_a_guarantee(folder, tmp_path):
    arguments = ("--target", "label", "--precision", 0.7, "--confidence", 0.9, "--seed", 0)
    out = succeed("fit", folder / "numbers.csv", *arguments, "-o", tmp_path / "model", "--json")
    result = json.loads(out)
    assert result["method"] == "PreferenceSVC"
    assert result["because"].startswith("precision")
    assert result["guaranteed"] is True
    assert result["achievable"]["precision"] >= 0.7
    evaluated = json.loads(
        succeed("evaluate", tmp_path / "model", folder / "numbers.csv", "--json")
    )
    assert evaluated["constraints"] == {"precision": 0.7}
    assert evaluated["positive_class"] == 1


def test_unlabeled_samples_in_the_file_and_in_another(folder, tmp_path):
    table = pd.read_csv(folder / "numbers.csv").astype({"label": object})
    table.loc[100:, "label"] = ""
    table.to_csv(tmp_path / "partial.csv", index=False)
    arguments = ("--target", "label", "--unlabeled", folder / "numbers.csv", "--seed", 0)
    out = succeed("fit", tmp_path / "partial.csv", *arguments, "-o", tmp_path / "m", "--json")
    result = json.loads(out)
    assert (result["labeled_samples"], result["unlabeled_samples"]) == (100, 300)
    assert result["method"] == "PreferenceSVC"
    assert "unlabeled samples (300)" in result["because"]


def test_privileged_columns_are_not_needed_for_prediction(folder, tmp_path):
    arguments = ("--target", "outcome", "--privileged", "diagnosis")
    out = succeed("fit", folder / "train.csv", *arguments, "-o", tmp_path / "model")
    assert "method: PrivilegedSVC\n" in out
    assert load(tmp_path / "model")[-1]._privileged_functions is not None
    mixed_table(20).drop(columns="diagnosis").to_csv(tmp_path / "new.csv", index=False)
    assert len(succeed("predict", tmp_path / "model", tmp_path / "new.csv").split()) == 21


def test_tune_reports_the_selected_parameters(folder, tmp_path):
    arguments = ("--target", "label", "--tune", "--jobs", 1, "-o", tmp_path / "model", "--json")
    result = json.loads(succeed("fit", folder / "numbers.csv", *arguments))
    assert result["method"] == "SVCCV"
    assert result["selected_parameters"].keys() == {"C", "gamma"}
    assert 0.8 < result["cross_validated_score"] <= 1


def test_report_is_one_page(folder, tmp_path):
    page = tmp_path / "report.html"
    arguments = ("report", folder / "model.skops", folder / "test.csv", "-o", page)
    assert succeed(*arguments) == f"{page}\n"
    text = page.read_text(encoding="utf-8")
    for words in ("because</dt><dd>there is text", "train.csv", "test.csv", "Confusion matrix"):
        assert words in text
    succeed("report", folder / "model.skops", "-o", page)
    assert "Confusion matrix" not in page.read_text(encoding="utf-8")
    assert "no folder" in fail("report", folder / "model.skops", "-o", tmp_path / "no" / "r.html")
    assert "no column 'age'" in fail("report", folder / "model.skops", folder / "numbers.csv")


def test_students_replace_their_teacher(tmp_path):
    for subset in ("train", "test"):
        succeed("data", "vowel", "--subset", subset, "-o", tmp_path / f"{subset}.csv")
    train, test = tmp_path / "train.csv", tmp_path / "test.csv"
    succeed("fit", train, "--target", "target", "-o", tmp_path / "teacher")
    arguments = ("students", tmp_path / "teacher", train, "-o", tmp_path / "students", "--json")
    more = ("--landmarks", 100, "--evaluate", test)
    result = json.loads(succeed(*arguments, *more))
    assert result["merged_with_the_teacher"] is True
    assert len(result["f1"]) == 11
    assert {row["class"] for row in result["f1"]} == set(result["classes"])
    assert set(result["f1"][0]) == {"class", "teacher", "student", "labels alone"}
    assert all(0.0 <= row["labels alone"] <= 1.0 for row in result["f1"])
    assert len(succeed("predict", tmp_path / "students", test).split("\n")) == 464
    assert inspect(tmp_path / "students").metadata["notes"]["because"] == "students of teacher"
    scores = load(tmp_path / "students").decision_function(pd.read_csv(test))
    succeed(*arguments, "--landmarks", 100)
    again = load(tmp_path / "students").decision_function(pd.read_csv(test))
    np.testing.assert_array_equal(scores, again)
    succeed("report", tmp_path / "students", test, "-o", tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<dt>because</dt><dd>students of teacher</dd>" in page
    assert "Teacher and students" in page
    pd.read_csv(test).drop(columns="target").to_csv(tmp_path / "new.csv", index=False)
    error = fail("students", tmp_path / "teacher", tmp_path / "new.csv", "-o", tmp_path / "s")
    assert "no column 'target'" in error


def test_labels_with_decimal_places_are_those_without(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2)).round(3)
    y = (X[:, 0] > 0).astype(int)
    table = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": y})
    table.to_csv(tmp_path / "whole.csv", index=False)
    # pandas writes a column with missing values as 1.0
    missing = table.assign(y=table["y"].where(np.arange(60) > 3))
    missing.to_csv(tmp_path / "missing.csv", index=False)
    assert "1.0" in (tmp_path / "missing.csv").read_text()
    for trained, others in (("whole", "missing"), ("missing", "whole")):
        method = ("--method", "preference") if trained == "missing" else ()
        model = tmp_path / f"{trained}.skops"
        arguments = ("fit", tmp_path / f"{trained}.csv", "--target", "y", "-o", model, *method)
        assert json.loads(succeed(*arguments, "--json"))["classes"] == [0, 1]
        found = json.loads(succeed("evaluate", model, tmp_path / f"{others}.csv", "--json"))
        assert found["samples"] == (56 if others == "missing" else 60)
    positive = ("--precision", 0.6, "--positive", "1.0")
    succeed("fit", tmp_path / "whole.csv", "--target", "y", "-o", tmp_path / "m", *positive)
    assert load(tmp_path / "m")[-1].pos_label_ == 1


def test_students_of_two_classes_are_judged_each_by_itself(tmp_path):
    X, y = make_classification(200, 4, random_state=0)
    pd.DataFrame(X, columns=list("abcd")).assign(y=y).to_csv(tmp_path / "t.csv", index=False)
    table, teacher = tmp_path / "t.csv", tmp_path / "teacher"
    succeed("fit", table, "--target", "y", "--method", "linear", "-o", teacher)
    arguments = ("students", teacher, table, "-o", tmp_path / "s", "--evaluate", table, "--json")
    result = json.loads(succeed(*arguments))
    model = load(tmp_path / "s")
    accepted = model[-1].answers(model[:-1].transform(pd.read_csv(table)))
    for k, row in enumerate(result["f1"]):
        true, found = y == row["class"], accepted[:, k]
        assert row["student"] == pytest.approx(
            2 * (true & found).sum() / (true.sum() + found.sum())
        )


def test_downloaded_data_are_written_as_csv(tmp_path, monkeypatch):
    monkeypatch.setenv("WIDEMARGIN_DATA", str(tmp_path))
    X, y = np.arange(1.0, 33.0).reshape(2, 16), np.array([1, 2])
    found = {"X_train": X, "y_train": y, "X_test": X[:1], "y_test": y[:1]}
    monkeypatch.setattr(cli_samples, "fetch_dataset", lambda name: Bunch(**found))
    assert len(succeed("data", "letter").splitlines()) == 4
    test = succeed("data", "letter", "--subset", "test").splitlines()
    assert test[0].startswith("feature_1,")
    assert test[1].startswith("1.0,2.0")
    assert "no subset 'new'" in fail("data", "letter", "--subset", "new")
    found["X_train"] = sp.csr_matrix(X)
    assert "not a table of numbers" in fail("data", "letter")


def test_data_that_are_not_there_need_a_network(tmp_path, monkeypatch):
    monkeypatch.setenv("WIDEMARGIN_DATA", str(tmp_path))
    monkeypatch.setitem(sys.modules, "pooch", None)
    assert "copy it to" in fail("data", "letter")


def write_arff(path, table, target):
    lines = ["@relation r"]
    for name in table:
        kind = "numeric" if name != target else f"{{{','.join(sorted(set(table[target])))}}}"
        lines.append(f"@attribute {name} {kind}")
    rows = [",".join("?" if pd.isna(v) else str(v) for v in row) for row in table.to_numpy()]
    path.write_text("\n".join([*lines, "@data", *rows]) + "\n")


def test_arff_files_are_tables(tmp_path):
    X, y = make_classification(80, 4, random_state=0)
    table = pd.DataFrame(X.round(4), columns=list("abcd")).assign(kind=np.where(y, "yes", "no"))
    table.loc[3, "a"] = np.nan
    write_arff(tmp_path / "t.arff", table, "kind")
    table.to_csv(tmp_path / "t.csv", index=False)
    predicted = []
    for name in ("t.arff", "t.csv"):
        succeed("fit", tmp_path / name, "--target", "kind", "-o", tmp_path / "m")
        predicted.append(succeed("predict", tmp_path / "m", tmp_path / name))
        assert json.loads(succeed("evaluate", tmp_path / "m", tmp_path / name, "--json"))
    assert predicted[0] == predicted[1]
    (tmp_path / "bad.arff").write_text("@relation r\n@attribute a string\n@data\nx\n")
    assert "ARFF" in fail("fit", tmp_path / "bad.arff", "--target", "a", "-o", tmp_path / "m")
    assert "'e'" in fail("fit", tmp_path / "t.arff", "--target", "e", "-o", tmp_path / "m")


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arff", ".svm"])
def test_truncated_and_altered_files_end_in_a_result_or_one_sentence(tmp_path, suffix):
    X, y = make_classification(40, 3, n_redundant=0, random_state=0)
    table = pd.DataFrame(X.round(3), columns=list("abc")).assign(y=np.where(y, "yes", "no"))
    path, model = tmp_path / f"t{suffix}", tmp_path / "m"
    target = () if suffix == ".svm" else ("--target", "y")
    if suffix == ".svm":
        dump_svmlight_file(X, y, str(path), zero_based=True)
    elif suffix == ".arff":
        write_arff(path, table, "y")
    else:
        getattr(table, "to_parquet" if suffix == ".parquet" else "to_csv")(path, index=False)
    succeed("fit", path, "-o", model, "--method", "linear", *target)
    content, rng = path.read_bytes(), np.random.default_rng(0)
    for attempt in range(25):
        damaged = bytearray(content)
        if attempt % 2:
            del damaged[rng.integers(len(damaged)) :]
        for place in rng.integers(max(1, len(damaged)), size=attempt % 5):
            if place < len(damaged):
                damaged[place] = rng.integers(256)
        path.write_bytes(damaged)
        result = run("evaluate", model, path)
        errors = [line for line in result.stderr.splitlines() if not line.startswith("Warning")]
        assert result.returncode in (0, 1)
        assert len(errors) == result.returncode, result.stderr
        assert "--debug shows where" not in result.stderr, result.stderr


def test_reproduction_of_an_unknown_paper_fails(tmp_path):
    assert "no paper 'svm'" in fail("reproduce", "svm", "--quick", "-o", tmp_path)


def test_data_is_written_as_csv(tmp_path):
    names = [line.split(":")[0] for line in succeed("data").splitlines()]
    assert names[:5] == ["satimage", "vowel", "yeast", "tickets", "a9a"]
    table = pd.read_csv(io.StringIO(succeed("data", "yeast")))
    assert table.shape == (1484, 9)
    assert "CYT" in set(table["target"])
    assert len(pd.read_csv(io.StringIO(succeed("data", "vowel", "--subset", "test")))) == 462
    assert "no data set 'cifar'. Use satimage" in fail("data", "cifar")
    assert "no official split" in fail("data", "yeast", "--subset", "test")
    assert "subset must be one of" in fail("data", "vowel", "--subset", "rest")


def test_inspect_describes_a_model(folder):
    result = json.loads(succeed("inspect", folder / "model.skops", "--json"))
    assert result["estimator"] == "sklearn.pipeline.Pipeline"
    assert result["classes"] == ["no", "yes"]
    assert result["metadata"]["kinds"]["note"] == "text"
    assert result["metadata"] == inspect(folder / "model.skops").metadata
    assert "estimator: sklearn.pipeline.Pipeline\n" in succeed("inspect", folder / "model.skops")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train.csv", "--target", "outcom"], "no column 'outcom'. Did you mean 'outcome'?"),
        (["train.csv"], "--target is missing"),
        (["empty.csv", "--target", "y"], "empty.csv is empty"),
        (["header.csv", "--target", "y"], "has a header and no samples"),
        (["binary.csv", "--target", "y"], "cannot be read as CSV"),
        (["one.csv", "--target", "y"], "has one class, a. Labels of two classes are needed"),
        (["unlabeled.csv", "--target", "y"], "has no labels"),
        (["semicolons.csv", "--target", "y"], "separated by ';'. Separate them by commas"),
        (
            ["rare.csv", "--target", "y", "--tune"],
            "--tune needs 5 samples of each class, and a has",
        ),
        (["numbers.csv", "--target", "x0"], "which are no classes"),
        (["train.csv", "--target", "outcome", "--text", "nte"], "Did you mean 'note'?"),
        (["train.csv", "--target", "outcome", "--method", "magic"], "no --method magic. Use auto"),
        (
            ["train.csv", "--target", "outcome", "--method", "svc", "--precision", ".9"],
            "--method svc does not use precision",
        ),
        (["train.csv", "--target", "outcome", "--precision", ".9", "--tune"], "--tune is not"),
        (
            ["three.csv", "--target", "y", "--recall", ".9"],
            "need two classes, and the target has 3",
        ),
        (
            ["numbers.csv", "--target", "label", "--precision", ".9", "--positive", "2"],
            "no class '2'. Classes: [0, 1]",
        ),
        (["fake.parquet", "--target", "y"], "cannot be read"),
        (["fake.svm"], "cannot be read as svmlight"),
        (["latin.csv", "--target", "y"], "is not UTF-8 text (invalid start byte). Save it"),
        (["ragged.csv", "--target", "y"], "Expected 2 fields in line 3, saw 3. Quote fields"),
        (["twice.csv", "--target", "y"], "more than one column 'x'. Rename or remove it"),
        (["infinite.csv", "--target", "y"], "Column 'x' contains inf, and 1e+150 is the largest"),
        (["lists.parquet", "--target", "y"], "Column 'x' contains neither numbers nor strings"),
        (["train.csv", "--target", "outcome", "--jobs", "0"], "--jobs must not be 0"),
    ],
    ids=lambda value: None if isinstance(value, list) else value,
)
def test_errors_of_fit_are_one_helpful_sentence(folder, tmp_path, arguments, message):
    (folder / "empty.csv").touch()
    (folder / "header.csv").write_text("x,y\n")
    (folder / "binary.csv").write_bytes(bytes(range(128, 256)) * 10)
    (folder / "one.csv").write_text("x,y\n1,a\n2,a\n3,\n")
    (folder / "unlabeled.csv").write_text("x,y\n1,\n2,\n")
    (folder / "three.csv").write_text("x,y\n1,a\n2,b\n3,c\n")
    (folder / "semicolons.csv").write_text("x;y\n1;a\n2;b\n")
    (folder / "rare.csv").write_text("x,y\n" + "1,a\n" * 4 + "2,b\n" * 5)
    (folder / "fake.parquet").write_text("x,y\n1,2\n")
    (folder / "fake.svm").write_text("x,y\n1,2\n")
    (folder / "latin.csv").write_text("x,y\n1,a\n2,Müller\n", encoding="latin-1")
    (folder / "ragged.csv").write_text("x,y\n1,a\n2,b,c\n")
    (folder / "twice.csv").write_text("x,y,x\n1,a,2\n2,b,3\n")
    (folder / "infinite.csv").write_text("x,y\n1,a\ninf,b\n")
    pd.DataFrame({"x": [[1, 2]] * 2, "y": ["a", "b"]}).to_parquet(folder / "lists.parquet")
    name, *rest = arguments
    assert message in fail("fit", folder / name, *rest, "-o", tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_fit_warns_of_numbers_that_are_used_as_strings(folder, tmp_path):
    table = mixed_table().astype({"age": object})
    table.loc[3, "age"] = "unknown"
    table.to_csv(tmp_path / "data.csv", index=False)
    result = run("fit", tmp_path / "data.csv", "--target", "outcome", "-o", tmp_path / "model")
    assert result.returncode == 0
    assert "Warning: Column 'age' is used as text, because 1 of its " in result.stderr
    assert "values are not numbers, such as 'unknown'." in result.stderr


def test_a_privileged_column_that_is_named_twice_is_one_column(folder, tmp_path):
    twice = ("--privileged", "diagnosis") * 2
    fit = ("--target", "outcome", *twice, "-o", tmp_path / "model")
    assert "PrivilegedSVC" in succeed("fit", folder / "train.csv", *fit)


def test_lines_with_too_many_fields_are_not_predicted(folder, tmp_path):
    table = mixed_table().assign(unused=1.0)
    text = table.to_csv(index=False)
    (tmp_path / "ragged.csv").write_text(text + text.splitlines()[5] + ",1\n", encoding="utf-8")
    message = fail("predict", folder / "model.skops", tmp_path / "ragged.csv")
    assert "Expected 6 fields in line 122, saw 7" in message


def test_output_that_is_a_folder_or_a_device(folder, tmp_path):
    predict = ("predict", folder / "model.skops", folder / "test.csv", "-o")
    assert f"--output {tmp_path} is a folder" in fail(*predict, tmp_path)
    succeed(*predict, os.devnull)
    assert not os.path.isfile(os.devnull)


def test_errors_of_predict_are_one_helpful_sentence(folder, tmp_path):
    model = folder / "model.skops"
    assert "no column 'age'" in fail("predict", model, folder / "numbers.csv")
    assert run("predict", model, folder / "numbers.csv").stdout == ""
    mixed_table().rename(columns={"age": "Age"}).to_csv(tmp_path / "renamed.csv", index=False)
    assert "Did you mean 'Age'?" in fail("predict", model, tmp_path / "renamed.csv")
    corrupt = tmp_path / "corrupt.skops"
    corrupt.write_bytes(model.read_bytes()[:-1000])
    for command in ("predict", "evaluate"):
        assert "checksum is wrong" in fail(command, corrupt, folder / "test.csv")
    assert "checksum is wrong" in fail("inspect", corrupt)
    save(SVC(), tmp_path / "other.skops")
    error = fail("predict", tmp_path / "other.skops", folder / "test.csv")
    assert "was not saved by `widemargin fit`" in error


def test_evaluate_recognizes_a_model_of_other_data(folder, tmp_path):
    mixed_table().replace({"outcome": {"yes": "maybe"}}).to_csv(tmp_path / "x.csv", index=False)
    error = fail("evaluate", folder / "model.skops", tmp_path / "x.csv")
    assert "has the label 'maybe' in column 'outcome'" in error
    assert "Was the model trained on other data?" in error


def test_categories_are_read_as_they_are_written(tmp_path):
    """Leading zeros and lower-case truth values are the same strings in fit and predict."""
    table = pd.DataFrame({"code": ["007", "010", "100"] * 20, "sure": ["true", "false", ""] * 20})
    table.assign(y=["a", "b", "c"] * 20).to_csv(tmp_path / "data.csv", index=False)
    for kept in (["code"], ["sure"]):
        pd.read_csv(tmp_path / "data.csv", dtype=str, keep_default_na=False)[[*kept, "y"]].to_csv(
            tmp_path / "one.csv", index=False
        )
        option = ("--category", "code") if kept == ["code"] else ()
        arguments = ("--target", "y", *option, "-o", tmp_path / "model")
        succeed("fit", tmp_path / "one.csv", *arguments)
        result = succeed("evaluate", tmp_path / "model", tmp_path / "one.csv", "--json")
        assert json.loads(result)["accuracy"] == 1.0


def test_samples_without_labels_are_not_evaluated(folder, tmp_path):
    table = mixed_table(60, seed=1)
    table.loc[40:, "outcome"] = ""
    table.to_csv(tmp_path / "some.csv", index=False)
    table.assign(outcome="").to_csv(tmp_path / "none.csv", index=False)
    model = folder / "model.skops"
    result = json.loads(succeed("evaluate", model, tmp_path / "some.csv", "--json"))
    assert result["samples"] == 40
    for command in (["evaluate"], ["report"]):
        assert "none.csv has no labels" in fail(*command, model, tmp_path / "none.csv")


def test_debug_shows_the_traceback(folder):
    result = run_process("--debug", "predict", folder / "model.skops", folder / "numbers.csv")
    assert result.returncode == 1
    assert "Traceback" in result.stderr


def test_commands_in_processes_of_their_own(folder, tmp_path):
    model = tmp_path / "model.skops"
    fit = run_process("fit", folder / "train.csv", "--target", "outcome", "-o", model)
    assert (fit.returncode, fit.stderr) == (0, "")
    predict = run_process("predict", model, folder / "test.csv")
    assert predict.returncode == 0
    assert predict.stdout == succeed("predict", folder / "model.skops", folder / "test.csv")
    evaluate = run_process("evaluate", model, folder / "test.csv")
    assert "accuracy: " in evaluate.stdout
    model.write_bytes(model.read_bytes()[:-1])
    corrupt = run_process("predict", model, folder / "test.csv")
    assert corrupt.returncode == 1
    assert corrupt.stderr.count("\n") == 1


def test_usage_errors_have_their_own_exit_code(folder):
    assert run("fit", folder / "missing.csv", "-o", "model").returncode == 2
    assert run("fit", folder / "train.csv").returncode == 2
    assert run("nothing").returncode == 2


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_is_shown_on_terminals_only(monkeypatch):
    for stream, shown in ((Terminal(), True), (io.StringIO(), False)):
        monkeypatch.setattr(sys, "stderr", stream)
        with progress("Reading ...") as show:
            show("1,000 samples ...")
        assert ("1,000 samples" in stream.getvalue()) == shown


def test_fit_shows_a_bar_of_its_subproblems_and_fits_the_same_model(folder, tmp_path, monkeypatch):
    shown = []

    @contextlib.contextmanager
    def progress_of_a_terminal(text):
        yield lambda text=None, **done: shown.append((text, done))

    fit = ("fit", folder / "numbers.csv", "--target", "label", "--tune", "-o")
    succeed(*fit, tmp_path / "plain")
    monkeypatch.setattr("widemargin.cli.output.progress", progress_of_a_terminal)
    streams = Bunch(stderr=Terminal(), stdout=io.StringIO())
    monkeypatch.setattr("widemargin.cli.output.sys", streams)
    succeed(*fit, tmp_path / "shown")
    texts, counts = zip(*shown, strict=True)
    assert "Fitting SVCCV to 200 samples ..." in texts
    total = max(done.get("total", 0) for done in counts)
    assert [done["completed"] for done in counts if "completed" in done] == list(range(total + 1))
    assert total > 1
    assert inspect(tmp_path / "shown").types == inspect(tmp_path / "plain").types
    table = pd.read_csv(folder / "numbers.csv").drop(columns="label")
    scores = [load(tmp_path / name).decision_function(table) for name in ("plain", "shown")]
    np.testing.assert_array_equal(*scores)


def test_version_and_help():
    assert succeed("--version") == f"{widemargin.__version__}\n"
    assert "evaluate" in succeed("--help")


def test_help_imports_no_numerical_library():
    code = """
import sys
sys.argv = ["widemargin", "--help"]
from widemargin.cli import main
try:
    main()
finally:
    sys.stderr.write(",".join({"numpy", "sklearn", "pandas", "numba", "skops"} & {*sys.modules}))
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "")


def test_without_typer_the_error_names_the_extra():
    code = """
import sys
sys.modules["typer"] = None
from widemargin.cli import main
main()
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 1
    assert "pip install 'widemargin[cli]'" in result.stderr


def test_a_closed_pipe_ends_the_command(folder):
    writer = subprocess.Popen(
        [sys.executable, "-m", "widemargin.cli", "predict", folder / "model.skops",
         folder / "test.csv"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    writer.stdout.close()
    assert b"Traceback" not in writer.stderr.read()
    writer.stderr.close()
    assert writer.wait() == 1


MEMORY = r"""
import re, sys
from pathlib import Path
from widemargin.cli import main
sys.argv = ["widemargin", *sys.argv[1:]]
try:
    main()
finally:
    # Not ru_maxrss, which a new process takes over from the one that has started it.
    print(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1], file=sys.stderr)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_predict_needs_no_more_memory_for_a_million_samples(tmp_path):
    X, y = make_classification(1000, 10, random_state=0)
    table = pd.DataFrame(X, columns=list("abcdefghij")).round(3)
    table.assign(y=y).to_csv(tmp_path / "train.csv", index=False)
    fit = ("--target", "y", "--method", "linear", "-o", tmp_path / "model")
    succeed("fit", tmp_path / "train.csv", *fit)
    lines = table.to_csv(index=False).split("\n", 1)
    peaks = []
    for repetitions in (200, 1000):
        (tmp_path / "new.csv").write_text(lines[0] + "\n" + lines[1] * repetitions)
        result = subprocess.run(
            [sys.executable, "-c", MEMORY, "predict", tmp_path / "model", tmp_path / "new.csv",
             "-o", tmp_path / "predictions.csv"],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        peaks.append(int(result.stderr.split()[-1]))
        with open(tmp_path / "predictions.csv") as file:
            assert sum(1 for _ in file) == 1000 * repetitions + 1
    assert peaks[1] < 1.2 * peaks[0]


def test_labels_that_pandas_takes_for_missing_values_are_labels(tmp_path):
    table = mixed_table()[["age", "outcome"]].replace({"outcome": {"yes": "NA", "no": "None"}})
    table.to_csv(tmp_path / "data.csv", index=False)
    output = succeed("fit", tmp_path / "data.csv", "--target", "outcome", "-o", tmp_path / "model")
    assert "classes: NA, None" in output
    assert "samples: 120" in succeed("evaluate", tmp_path / "model", tmp_path / "data.csv")


def test_labels_of_floating_point_are_the_same_in_parquet_and_csv(tmp_path):
    table = mixed_table()[["age", "outcome"]].replace({"outcome": {"yes": 0.1, "no": 2.5}})
    table["outcome"] = table["outcome"].astype(float)
    table.to_parquet(tmp_path / "data.parquet")
    table.to_csv(tmp_path / "data.csv", index=False)
    succeed("fit", tmp_path / "data.parquet", "--target", "outcome", "-o", tmp_path / "model")
    assert "samples: 120" in succeed("evaluate", tmp_path / "model", tmp_path / "data.csv")


def test_a_table_without_samples_and_an_output_without_a_folder(tmp_path):
    table = mixed_table()[["age", "outcome"]]
    table.to_csv(tmp_path / "data.csv", index=False)
    table.head(0).to_csv(tmp_path / "header.csv", index=False)
    fit = ["fit", tmp_path / "data.csv", "--target", "outcome", "-o"]
    succeed(*fit, tmp_path / "model")
    for command in ("evaluate", "predict"):
        message = fail(command, tmp_path / "model", tmp_path / "header.csv")
        assert "has a header and no samples" in message
    assert "there is no folder" in fail(*fit, tmp_path / "missing" / "model")
    predict = ["predict", tmp_path / "model", tmp_path / "data.csv", "-o"]
    assert "there is no folder" in fail(*predict, tmp_path / "missing" / "labels.csv")
