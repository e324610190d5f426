"""Data for the tests of label trees."""

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize


def documents(n_samples=300, n_labels=40, n_features=60, random_state=0):
    """Sparse samples of norm 1 whose features depend on their one to three labels."""
    random = np.random.default_rng(random_state)
    topics = random.integers(n_features, size=(n_labels, 4))
    chosen = [
        random.choice(n_labels, size=random.integers(1, 4), replace=False) for _ in range(n_samples)
    ]
    X, Y = np.zeros((n_samples, n_features)), np.zeros((n_samples, n_labels), dtype=int)
    for i, labels in enumerate(chosen):
        Y[i, labels] = 1
        X[i, topics[labels].ravel()] += 1.0
        X[i, random.integers(n_features, size=3)] += 1.0
    return sp.csr_array(normalize(X)), sp.csr_array(Y)


def classes(n_samples=300, n_classes=40, random_state=0):
    """The same with one class for each sample, whose names are strings."""
    random = np.random.default_rng(random_state)
    y = random.permutation(np.arange(n_samples) % n_classes)
    topics = random.integers(60, size=(n_classes, 4))
    X = np.zeros((n_samples, 60))
    for i in range(n_samples):
        X[i, topics[y[i]]] += 1.0
        X[i, random.integers(60, size=2)] += 1.0
    return sp.csr_array(normalize(X)), np.array([f"class {k}" for k in y])
