"""Objectives and duality gaps of fitted models in 60 decimal digits, straight from definitions."""

from decimal import Decimal, getcontext

import numpy as np

getcontext().prec = 60

ZERO = Decimal(0)
decimals = np.vectorize(lambda value: Decimal(float(value)), otypes=[object])
_exponential = np.vectorize(lambda value: value.exp(), otypes=[object])


def kernel_values(model, X, Y):
    X, Y, gamma = decimals(X), decimals(Y), Decimal(float(model._gamma))
    if model.kernel == "rbf":
        return _exponential(-gamma * sum((X[:, [k]] - Y[:, k]) ** 2 for k in range(X.shape[1])))
    if model.kernel == "laplacian":
        return _exponential(-gamma * sum(abs(X[:, [k]] - Y[:, k]) for k in range(X.shape[1])))
    products = X @ Y.T
    if model.kernel == "poly":
        return (gamma * products + Decimal(float(model.coef0))) ** model.degree
    return products


def svc_certificate(model, X, y):
    """Return the objective and the relative gap of a binary SVC, from its fitted attributes."""
    sign = np.where(y == model.classes_[1], 1, -1)
    dual, support = decimals(model.dual_coef_[0]), model.support_
    values, norm, total = decimals(np.zeros(len(X))), ZERO, ZERO
    if len(support):
        values = kernel_values(model, X, X[support]) @ dual
        norm, total = values[support] @ dual, dual.sum()
    bound = abs(dual).sum() - norm / 2 if len(support) else ZERO
    if total != 0:  # move one variable such that the sum is 0
        largest = np.abs(model.dual_coef_[0]).argmax()
        moved = support[[largest]]
        own = kernel_values(model, X[moved], X[moved])[0, 0]
        bound -= total * (sign[moved[0]] - values[moved[0]] + total * own / 2)
    slack = np.maximum(ZERO, 1 - sign * (values + Decimal(float(model.intercept_[0]))))
    objective = norm / 2 + Decimal(float(model.C)) * slack.sum()
    return float(objective), relative(objective, bound)


def linear_certificate(Z, sign, C, squared, weights, dual):
    """Return the objective and the relative gap of a linear classifier over the samples Z."""
    Z, weights, dual, C = decimals(Z), decimals(weights), decimals(dual), Decimal(float(C))
    sign = sign.astype(int)
    slack = np.maximum(ZERO, 1 - sign * (Z @ weights))
    objective = (weights * weights).sum() / 2 + C * (slack * slack if squared else slack).sum()
    combined = Z.T @ dual
    bound = (sign * dual).sum() - (combined * combined).sum() / 2
    bound -= (dual * dual).sum() / (4 * C) if squared else ZERO
    return float(objective), relative(objective, bound)


def joint_certificate(Z, label, C, weights, dual):
    """Return the objective and the relative gap of the problem of Crammer and Singer."""
    Z, weights, dual, samples = decimals(Z), decimals(weights), decimals(dual), range(len(Z))
    scores = Z @ weights
    margins = 1 + scores - scores[samples, label][:, np.newaxis]
    margins[samples, label] = ZERO
    objective = (weights * weights).sum() / 2 + Decimal(float(C)) * margins.max(axis=1).sum()
    combined = Z.T @ dual
    bound = dual[samples, label].sum() - (combined * combined).sum() / 2
    return float(objective), relative(objective, bound)


def relative(objective, bound):
    """Return the relative gap; no objective is negative, so that 0 is a bound as well."""
    return float((objective - max(bound, ZERO)) / objective) if objective else 0.0


def draw(seed):
    """Draw samples of extreme scale and offset, labels, and parameters of an SVC."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(8, 60)), int(rng.integers(1, 6))
    X = rng.standard_normal((n, d))
    noise = rng.uniform(0, 2) * rng.standard_normal(n)
    y = (X @ rng.standard_normal(d) + noise > 0).astype(int)
    y[:2] = 0, 1
    scales = [1.0, 10.0 ** rng.uniform(-8, 8), 10.0 ** rng.uniform(-4, 4, d)]
    offset = 10.0 ** rng.uniform(0, 8) if rng.random() < 0.4 else 0.0
    X = X * scales[rng.integers(3)] + offset
    kernel = str(rng.choice(["linear", "rbf", "poly", "laplacian"], p=[0.45, 0.35, 0.12, 0.08]))
    parameters = {"kernel": kernel, "C": 10.0 ** rng.uniform(-8, 8)}
    if kernel != "linear":
        parameters["gamma"] = ["scale", 1.0, 10.0 ** rng.uniform(-6, 6)][rng.integers(3)]
    if kernel == "poly":
        parameters |= {"degree": int(rng.integers(2, 6)), "coef0": float(rng.integers(0, 2))}
    if rng.random() < 0.3:
        parameters["gap_tol"] = 10.0 ** rng.uniform(-9, -2)
    return X, y, parameters
