"""Try our estimators in other libraries, and write what works as a table of the documentation.

    python tools/clients.py [--only NAME ...] [--write]

Each client is tried in a process of its own. A client that is not installed keeps its line of the
table. ``--write`` replaces ``docs/clients.json``, from which the page is built.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

TABLE = Path(__file__).parents[1] / "docs" / "clients.json"
SECONDS = 3600
"""After which a client counts as failed."""


def main() -> None:
    """Try all clients, or one in this process."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=CLIENTS, default=list(CLIENTS))
    parser.add_argument("--write", action="store_true", help=f"replace {TABLE.name}")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.here:
        warnings.simplefilter("ignore")
        print(f"\n{CLIENTS[chosen.only[0]][1]()}")
        return
    for name in chosen.only:
        result = run(name, CLIENTS[name][0])
        print(f"{name}: {result['result']}. {result['detail']}", flush=True)
        if chosen.write:
            store(name, result)


def store(name: str, result: dict[str, str]) -> None:
    """Replace the line of a client, unless it is not installed here."""
    table = json.loads(TABLE.read_text(encoding="utf-8")) if TABLE.exists() else {}
    if result["result"] != "not installed" or name not in table:
        tried = (CLIENTS[name][1].__doc__ or "").strip().rstrip(".")
        table[name] = {"tried": tried, **result}
    ordered = {known: table[known] for known in CLIENTS if known in table}
    TABLE.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def run(name: str, package: str) -> dict[str, str]:
    """Return version, result and details of one client."""
    try:
        version = metadata.version(package)
    except metadata.PackageNotFoundError:
        return {"version": "", "result": "not installed", "detail": ""}
    command = [sys.executable, __file__, "--only", name, "--here"]
    found = {"version": version, "result": "fails"}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return {**found, "detail": f"no result after {SECONDS} seconds"}
    lines = (done.stderr if done.returncode else done.stdout).strip().splitlines()
    last = lines[-1] if lines else ""
    if done.returncode:
        return {**found, "detail": last or f"exit code {done.returncode}"}
    return {**found, "result": "works", "detail": last}


def samples():
    """Return scaled samples of two classes."""
    from sklearn.datasets import load_breast_cancer
    from sklearn.preprocessing import StandardScaler

    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def meta_estimators() -> str:
    """Searches, calibration, ensembles, thresholds and selection of features of scikit-learn."""
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.ensemble import (
        AdaBoostClassifier,
        BaggingClassifier,
        StackingClassifier,
        VotingClassifier,
    )
    from sklearn.feature_selection import RFE, SequentialFeatureSelector
    from sklearn.frozen import FrozenEstimator
    from sklearn.inspection import permutation_importance
    from sklearn.model_selection import (
        GridSearchCV,
        RandomizedSearchCV,
        TunedThresholdClassifierCV,
        learning_curve,
    )
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.multioutput import ClassifierChain
    from sklearn.semi_supervised import SelfTrainingClassifier

    from widemargin import SVC, LinearDiscriminantAnalysis, LinearSVC, PreferenceSVC

    X, y = samples()
    X, y = X[:200], y[:200]
    both = [("svc", SVC()), ("lda", LinearDiscriminantAnalysis())]
    models = [
        GridSearchCV(SVC(), {"C": [1, 10]}, cv=3),
        RandomizedSearchCV(LinearSVC(), {"C": [0.1, 1, 10]}, n_iter=2, cv=3, random_state=0),
        CalibratedClassifierCV(SVC()),
        BaggingClassifier(SVC(), 3),
        AdaBoostClassifier(LinearSVC(), n_estimators=3),
        StackingClassifier(both),
        VotingClassifier(both),
        TunedThresholdClassifierCV(SVC(), scoring="f1"),
        RFE(LinearSVC(), n_features_to_select=10, step=5),
        SequentialFeatureSelector(LinearSVC(), n_features_to_select=2, cv=2),
        OneVsRestClassifier(PreferenceSVC(recall=0.9)),
        SelfTrainingClassifier(LinearDiscriminantAnalysis()),
        FrozenEstimator(SVC().fit(X, y)),
    ]
    for model in models:
        model.fit(X, y)
    ClassifierChain(LinearSVC()).fit(X, [[a, 1 - a] for a in y])
    permutation_importance(models[0], X, y, n_repeats=1)
    learning_curve(SVC(), X, y, cv=3, train_sizes=[0.5, 1.0])
    return f"{len(models) + 3} of them"


def imbalanced_learn() -> str:
    """A pipeline with SMOTE, and balanced bagging."""
    from imblearn.ensemble import BalancedBaggingClassifier
    from imblearn.over_sampling import SMOTE
    from imblearn.pipeline import make_pipeline

    from widemargin import SVC, LinearSVC

    X, y = samples()
    make_pipeline(SMOTE(random_state=0), SVC()).fit(X, y).predict(X)
    BalancedBaggingClassifier(LinearSVC(), n_estimators=3, random_state=0).fit(X, y).predict(X)
    return ""


def optuna() -> str:
    """A study over C and gamma of SVC, by cross-validation."""
    import optuna
    from sklearn.model_selection import cross_val_score

    from widemargin import SVC

    X, y = samples()
    optuna.logging.set_verbosity(optuna.logging.ERROR)

    def objective(trial):
        C = trial.suggest_float("C", 1e-2, 1e2, log=True)
        gamma = trial.suggest_float("gamma", 1e-3, 1e-1, log=True)
        return cross_val_score(SVC(C=C, gamma=gamma), X, y, cv=3).mean()

    study = optuna.create_study(direction="maximize")
    study.optimize(objective, n_trials=5)
    assert study.best_value > 0.9
    return ""


def mapie() -> str:
    """Conformal prediction sets of a fitted discriminant and of ``SVC(probability=True)``."""
    from mapie.classification import SplitConformalClassifier

    from widemargin import SVC, LinearDiscriminantAnalysis

    X, y = samples()
    for model in (LinearDiscriminantAnalysis(), SVC(probability=True)):
        fitted = model.fit(X[:200], y[:200])
        conformal = SplitConformalClassifier(fitted, confidence_level=0.9, prefit=True)
        _, sets = conformal.conformalize(X[200:400], y[200:400]).predict_set(X[400:])
        assert len(sets) == len(X) - 400
    return ""


def shap() -> str:
    """Linear, kernel and permutation explainers."""
    import shap

    from widemargin import SVC, LinearSVC

    X, y = samples()
    linear = LinearSVC().fit(X, y)
    assert shap.LinearExplainer(linear, X).shap_values(X[:5]).shape == (5, X.shape[1])
    scores = SVC().fit(X, y).decision_function
    shap.KernelExplainer(scores, X[:10]).shap_values(X[:2], nsamples=50, silent=True)
    shap.Explainer(scores, X[:10])(X[:2])
    return ""


def skops() -> str:
    """Dump and load with ``trusted=trusted_types()``."""
    import skops.io

    from widemargin import PreferenceSVC
    from widemargin.export import trusted_types

    X, y = samples()
    model = PreferenceSVC(recall=0.9).fit(X, y)
    again = skops.io.loads(skops.io.dumps(model), trusted=trusted_types())
    assert (again.predict(X) == model.predict(X)).all()
    return "with one line, below"


def mlflow() -> str:
    """Save and load with ``mlflow.sklearn``."""
    import mlflow.sklearn

    from widemargin import SVC
    from widemargin.export import trusted_types

    X, y = samples()
    model = SVC().fit(X, y)
    notes = []
    with tempfile.TemporaryDirectory() as folder:
        for name, options in (
            ("defaults", {}),
            ("one line", {"skops_trusted_types": trusted_types()}),
        ):
            try:
                mlflow.sklearn.save_model(model, f"{folder}/{name[:3]}", **options)
                again = mlflow.sklearn.load_model(f"{folder}/{name[:3]}")
                assert (again.predict(X) == model.predict(X)).all()
            except Exception as error:
                notes.append(f"{name}: {str(error).splitlines()[0][:80]}")
                continue
            if name == "defaults":
                return "with its defaults"
            return "with one line, below"
    raise SystemExit("; ".join(notes))


def onnx() -> str:
    """Conversion after ``register_onnx_converters()``, run by ONNX Runtime."""
    import numpy as np
    import onnxruntime
    import skl2onnx

    from widemargin import SVC
    from widemargin.export import register_onnx_converters

    X, y = samples()
    X = X.astype(np.float32)
    model = SVC().fit(X, y)
    register_onnx_converters()
    content = skl2onnx.to_onnx(model, X[:1]).SerializeToString()
    labels, _ = onnxruntime.InferenceSession(content).run(None, {"X": X})
    assert (labels == model.predict(X)).all()
    return "with one line, below"


def dask() -> str:
    """Its arrays as input, its workers for joblib, and its chunks for partial_fit."""
    import dask.array as da
    import joblib
    from distributed import Client
    from sklearn.model_selection import GridSearchCV

    from widemargin import SVC, LinearDiscriminantAnalysis

    X, y = samples()
    lazy, labels = da.from_array(X, chunks=(200, 30)), da.from_array(y, chunks=200)
    assert (SVC().fit(lazy, labels).predict(lazy) == SVC().fit(X, y).predict(X)).all()
    model = LinearDiscriminantAnalysis()
    for block, own in zip(lazy.to_delayed().ravel(), labels.to_delayed().ravel(), strict=True):
        model.partial_fit(block.compute(), own.compute(), classes=[0, 1])
    client = Client(processes=False, n_workers=2, dashboard_address=None)
    with client, joblib.parallel_config(backend="dask"):
        GridSearchCV(SVC(), {"C": [1, 10]}, cv=3).fit(X, y)
    return "arrays are loaded into memory, but for partial_fit of discriminants"


def ray() -> str:
    """Its workers for joblib."""
    import joblib
    import ray
    from ray.util.joblib import register_ray
    from sklearn.model_selection import GridSearchCV

    from widemargin import SVC

    X, y = samples()
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    register_ray()
    with joblib.parallel_config(backend="ray"):
        GridSearchCV(SVC(), {"C": [1, 10]}, cv=3).fit(X, y)
    ray.shutdown()
    return ""


def polars() -> str:
    """DataFrames as input, with names of columns."""
    import polars as pl

    from widemargin import SVC, LinearDiscriminantAnalysis

    X, y = samples()
    frame = pl.DataFrame(X, schema=[f"c{k}" for k in range(X.shape[1])])
    for model in (SVC(), LinearDiscriminantAnalysis()):
        fitted = model.fit(frame, pl.Series(y))
        assert list(fitted.feature_names_in_) == frame.columns
        assert (fitted.predict(frame) == type(model)().fit(X, y).predict(X)).all()
    return ""


def pyarrow() -> str:
    """Tables as input."""
    import pyarrow as pa

    from widemargin import SVC, LinearSVC

    X, y = samples()
    table = pa.table({f"c{k}": X[:, k] for k in range(X.shape[1])})
    for model in (SVC(), LinearSVC()):
        assert (model.fit(table, y).predict(table) == type(model)().fit(X, y).predict(X)).all()
    return ""


def torch() -> str:
    """Tensors on the processor as input, and discriminants on tensors by the array API."""
    os.environ["SCIPY_ARRAY_API"] = "1"  # before SciPy is imported
    import sklearn
    import torch

    from widemargin import SVC, LinearDiscriminantAnalysis

    X, y = samples()
    tensor, labels = torch.tensor(X), torch.tensor(y)
    assert (SVC().fit(tensor, labels).predict(tensor) == SVC().fit(X, y).predict(X)).all()
    with sklearn.config_context(array_api_dispatch=True):
        found = LinearDiscriminantAnalysis().fit(tensor, labels).predict(tensor)
    assert isinstance(found, torch.Tensor)
    return "discriminants compute with tensors, others with arrays"


def skore() -> str:
    """Its report of an estimator, beside ours."""
    from sklearn.model_selection import train_test_split
    from skore import EstimatorReport

    from widemargin import SVC

    X, y = samples()
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    report = EstimatorReport(SVC(), X_train=X_train, y_train=y_train, X_test=X_test, y_test=y_test)
    return f"accuracy {float(report.metrics.accuracy()):.3f} by its report"


CLIENTS: dict[str, tuple[str, Callable[[], str]]] = {
    "scikit-learn": ("scikit-learn", meta_estimators),
    "imbalanced-learn": ("imbalanced-learn", imbalanced_learn),
    "Optuna": ("optuna", optuna),
    "MAPIE": ("mapie", mapie),
    "SHAP": ("shap", shap),
    "skops": ("skops", skops),
    "MLflow": ("mlflow", mlflow),
    "skl2onnx": ("skl2onnx", onnx),
    "Dask": ("distributed", dask),
    "Ray": ("ray", ray),
    "polars": ("polars", polars),
    "PyArrow": ("pyarrow", pyarrow),
    "PyTorch": ("torch", torch),
    "skore": ("skore", skore),
}


if __name__ == "__main__":
    main()
