"""Three overlapping classes, in names, and a teacher that knows them."""

import numpy as np
import pytest
from sklearn.datasets import make_classification

from widemargin import CrammerSingerSVC


@pytest.fixture(scope="session")
def three():
    X, y = make_classification(
        n_samples=240, n_classes=3, n_features=6, n_informative=5, n_redundant=0, class_sep=0.8,
        flip_y=0.05, random_state=0,
    )  # fmt: skip
    X = np.ascontiguousarray((X - X.mean(axis=0)) / X.std(axis=0))
    return X, np.array(["ant", "bee", "cat"])[y]


@pytest.fixture(scope="session")
def teacher(three):
    return CrammerSingerSVC(C=0.1).fit(*three)


@pytest.fixture(scope="session")
def kernel_teacher(three):
    return CrammerSingerSVC(kernel="rbf").fit(*three)
