"""Write frozen model files of a version: ``python -m tests.export.freeze NAME``.

Run it once for each version of the package, with its number as NAME, and of the format.
`test_files` loads all files with every later version.
"""

import sys
from pathlib import Path

from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.suites.registry import classification, two_classes

from widemargin import SVC, LinearDiscriminantAnalysis, LinearSVC, PreferenceSVC
from widemargin.export import save

MODELS = {
    "svc": (SVC(), classification),
    "pipeline": (make_pipeline(StandardScaler(), LinearSVC()), classification),
    "lda": (LinearDiscriminantAnalysis(), classification),
    "preference": (PreferenceSVC(precision=0.7, random_state=0), two_classes),
}


def freeze(version, folder):
    for name, (model, data) in MODELS.items():
        X, y = data()
        scores = model.fit(X, y).decision_function(X[:5])
        content = {"X": X[:5].tolist(), "scores": scores.tolist()}
        save(model, folder / f"{version}-{name}.skops", metadata=content)


if __name__ == "__main__":
    freeze(sys.argv[1], Path(__file__).parent / "frozen")
