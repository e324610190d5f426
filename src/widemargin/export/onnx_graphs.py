"""Converters to ONNX, for skl2onnx.

Scores are computed in float64, whatever the type of the input, so that they are those of the
estimators up to the rounding of the input and of the output.
"""

from collections.abc import Callable
from importlib import import_module
from itertools import combinations
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted

from widemargin._base.options import code_matrix_options
from widemargin.discriminant.linear import LinearDiscriminantAnalysis
from widemargin.discriminant.quadratic import QuadraticDiscriminantAnalysis
from widemargin.gated.student import GatedSVC
from widemargin.gated.students import GatedStudents
from widemargin.kernels.expansion import KernelExpansion
from widemargin.kernels.parameters import KernelParameters
from widemargin.privileged.svc import PrivilegedSVC
from widemargin.semisupervised.classifier import PreferenceClassifier
from widemargin.semisupervised.preference import PreferenceSVC
from widemargin.semisupervised.transductive import TransductiveSVC
from widemargin.svm.code_matrix import CodeMatrixClassifier
from widemargin.svm.code_matrix.binary_classifiers import JointClassifiers
from widemargin.svm.code_matrix.codes import is_one_vs_rest
from widemargin.svm.code_matrix.decoding import smallest_step
from widemargin.svm.crammer_singer import CrammerSingerSVC
from widemargin.svm.linear_svc import LinearSVC
from widemargin.svm.svc import SVC


def register_onnx_converters() -> None:
    """Register converters with skl2onnx, so that it converts fitted estimators of widemargin.

    Call it once in a process, before ``skl2onnx.to_onnx(model, X)``; the model may be a pipeline.
    Converted are `SVC`, `LinearSVC`, `CrammerSingerSVC`, `LinearDiscriminantAnalysis`,
    `QuadraticDiscriminantAnalysis`, `PrivilegedSVC`, `PreferenceSVC`, `PreferenceClassifier`,
    `TransductiveSVC`, `CodeMatrixClassifier` and students that are merged with their teacher
    (`GatedSVC`, `GatedStudents`), with all named kernels. The base estimators of meta-estimators
    are these or any that skl2onnx converts.

    The outputs are the predicted labels and the decision values, as of `decision_function`, in
    an array with a column for each class; with two classes, for ``classes_[1]`` alone.
    Discriminants return probabilities instead. The option ``zipmap`` of scikit-learn's classifiers
    does not apply.

    Raises
    ------
    ImportError
        If skl2onnx is not installed.

    See Also
    --------
    to_sklearn : Convert to an estimator of scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import SVC
    >>> from widemargin.export import register_onnx_converters
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SVC().fit(X, y)
    >>> register_onnx_converters()
    >>> import onnxruntime, skl2onnx
    >>> onnx = skl2onnx.to_onnx(model, X[:1].astype("float32"))
    >>> session = onnxruntime.InferenceSession(onnx.SerializeToString())
    >>> labels, scores = session.run(None, {"X": X.astype("float32")})
    >>> bool((labels == model.predict(X)).all()), scores.shape
    (True, (150, 3))
    """
    skl2onnx = _skl2onnx()
    for kind in _GRAPHS:
        skl2onnx.update_registered_converter(
            kind, f"Widemargin{kind.__name__}", _set_types, _convert, overwrite=True
        )


def _skl2onnx() -> Any:
    try:
        return import_module("skl2onnx")
    except ImportError as error:
        raise ImportError(
            "The conversion to ONNX requires skl2onnx. Install it with: "
            "pip install 'widemargin[onnx]'"
        ) from error


class _Graph:
    """Nodes of an ONNX graph; values are names of its tensors, ``samples`` is its input."""

    def __init__(self, scope: Any, container: Any, samples: Any):
        self.scope, self.container, self.samples = scope, container, samples
        self.types = import_module("onnx").TensorProto

    def add(self, kind: str, *inputs: Any, output: str | None = None, **attributes: Any) -> str:
        """Add an operator; arrays and numbers among its inputs become constants."""
        names = [value if isinstance(value, str) else self.constant(value) for value in inputs]
        output = output or self.scope.get_unique_variable_name("value")
        name = self.scope.get_unique_operator_name(kind)
        self.container.add_node(kind, names, output, name=name, **attributes)
        return output

    def constant(self, value: Any) -> str:
        """Add an array of float64, int64, bool or str."""
        array = np.asarray(value)
        kinds = {"f": self.types.DOUBLE, "i": self.types.INT64, "b": self.types.BOOL}
        content: Any = array.ravel()
        if array.dtype.kind in "UO":
            kind, content = self.types.STRING, [str(text).encode() for text in content]
        else:
            kind = kinds[array.dtype.kind]
        name = self.scope.get_unique_variable_name("constant")
        self.container.add_initializer(name, kind, list(array.shape), content)
        return name

    def cast(self, value: str, to: str, **options: Any) -> str:
        """Convert a tensor to DOUBLE, FLOAT, INT64 or BOOL."""
        return self.add("Cast", value, to=getattr(self.types, to), **options)

    def affine(self, value: str, weights: np.ndarray, intercept: Any) -> str:
        """Multiply by a matrix and add a vector."""
        product = self.add("MatMul", value, np.asarray(weights, dtype=np.float64))
        return self.add("Add", product, np.atleast_1d(np.asarray(intercept, dtype=np.float64)))

    def sum_columns(self, value: str) -> str:
        """Add the columns of a matrix."""
        return self.add("ReduceSum", value, np.array([1]), keepdims=1)


def _set_types(operator: Any) -> None:
    """Set the types of the outputs: labels, and one or several columns of scores."""
    types = import_module("skl2onnx.common.data_types")
    model, n_samples = operator.raw_operator, operator.inputs[0].get_first_dimension()
    labels = _all_labels(model)
    kinds = {"b": types.BooleanTensorType, "U": types.StringTensorType}
    kind = kinds.get(labels.dtype.kind, types.Int64TensorType)
    operator.outputs[0].type = kind([n_samples])
    operator.outputs[1].type = types.FloatTensorType([n_samples, _width(model)])


def _width(model: Any) -> int:
    """Return the number of columns of the scores."""
    if isinstance(model, GatedSVC):
        return 1
    if isinstance(model, _DISCRIMINANTS):
        return len(model.classes_)
    n_classes = len(model.classes_)
    if isinstance(model, SVC) and model._one_vs_one and model.decision_function_shape == "ovo":
        return n_classes * (n_classes - 1) // 2
    return 1 if n_classes == 2 else n_classes


def _all_labels(model: Any) -> np.ndarray:
    """Return all labels that may be predicted, as integers, booleans or strings."""
    if isinstance(model, GatedSVC):
        return np.array([False, True])
    labels = np.asarray(model.classes_)
    if isinstance(model, GatedStudents) and model._other is not None:
        other = np.asarray(model._other)
        if labels.dtype.kind != other.dtype.kind:
            raise TypeError("ONNX needs labels of one type: other must be of the type of classes.")
        labels = np.append(labels, other)
    if labels.dtype.kind in "iub":
        return labels.astype(np.int64)
    if labels.dtype.kind in "UO" and all(isinstance(label, str) for label in labels):
        return labels.astype(str)
    raise TypeError(f"ONNX needs labels that are integers or strings, got {labels.dtype}.")


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """Add the graph of an estimator: its labels and scores."""
    model, graph = operator.raw_operator, _Graph(scope, container, operator.inputs[0])
    check_is_fitted(model)
    X = graph.cast(operator.inputs[0].full_name, "DOUBLE")
    scores, index = _GRAPHS[type(model)](graph, model, X)
    if isinstance(model, _DISCRIMINANTS):
        scores = graph.add("Softmax", scores, axis=1)
    names = [output.full_name for output in operator.outputs]
    graph.add("Gather", graph.constant(_all_labels(model)), index, output=names[0], axis=0)
    graph.cast(scores, "FLOAT", output=names[1])


def _kernel_values(graph: _Graph, expansion: KernelExpansion, X: str) -> str:
    """Add the kernel values of samples against the vectors of an expansion."""
    parameters, vectors = expansion.parameters, _dense(expansion.vectors)
    if parameters.kernel == "laplacian":
        # Samples, vectors, features.
        apart = graph.add("Sub", graph.add("Unsqueeze", X, np.array([1])), vectors)
        total = graph.add("ReduceSum", graph.add("Abs", apart), np.array([2]), keepdims=0)
        return graph.add("Exp", graph.add("Mul", total, -float(parameters.gamma)))
    if parameters.kernel == "rbf":
        # Distances to the mean, which are smaller numbers than those to the origin.
        center = vectors.mean(axis=0)
        X, vectors = graph.add("Sub", X, center), vectors - center
        squares = graph.sum_columns(graph.add("Mul", X, X))
        products = graph.affine(X, -2.0 * vectors.T, (vectors**2).sum(axis=1))
        distance = graph.add("Max", graph.add("Add", products, squares), 0.0)
        return graph.add("Exp", graph.add("Mul", distance, -float(parameters.gamma)))
    inner = graph.affine(X, float(parameters.gamma) * vectors.T, float(parameters.coef0))
    if parameters.kernel == "poly":
        return graph.add("Pow", inner, float(parameters.degree))
    return graph.add("Tanh", inner)


def _expansion_values(graph: _Graph, expansion: KernelExpansion, X: str) -> str:
    """Add the values of all functions of a kernel expansion."""
    parameters = expansion.parameters
    if parameters.is_pairwise or parameters.add_constant or parameters.center:
        raise TypeError(
            f"kernel={parameters.kernel!r} cannot be converted to ONNX. Use a named kernel."
        )
    if expansion.vectors.shape[0] == 0:
        nothing = np.zeros((expansion.vectors.shape[1], len(np.atleast_1d(expansion.intercept))))
        return graph.affine(X, nothing, expansion.intercept)
    weights = _weights(expansion)
    if parameters.kernel == "linear":
        return graph.affine(X, _dense(expansion.vectors).T @ weights, expansion.intercept)
    return graph.affine(_kernel_values(graph, expansion, X), weights, expansion.intercept)


def _weights(expansion: KernelExpansion) -> np.ndarray:
    """Return the weight of each vector in each function, from any layout of the coefficients."""
    size = expansion.vectors.shape[0]
    blocks = []
    for start in range(0, size, 1000):
        unit = np.zeros((min(1000, size - start), size))
        unit[np.arange(len(unit)), start + np.arange(len(unit))] = 1.0
        blocks.append(expansion.combine(unit, _dense(expansion.coefficients)))
    return np.concatenate(blocks)


def _dense(matrix: Any) -> np.ndarray:
    return np.asarray(matrix.toarray() if sp.issparse(matrix) else matrix, dtype=np.float64)


def _best(graph: _Graph, scores: str, n_classes: int) -> str:
    """Add the index of the predicted class; two classes have one score."""
    if n_classes == 2:
        accepted = graph.cast(graph.add("Greater", scores, 0.0), "INT64")
        return graph.add("Reshape", accepted, np.array([-1]))
    return graph.add("ArgMax", scores, axis=1, keepdims=0)


def _svc(graph: _Graph, model: Any, X: str) -> tuple[str, str]:
    values, n_classes = _expansion_values(graph, model._expansion, X), len(model.classes_)
    if n_classes == 2 or not getattr(model, "_one_vs_one", False):
        return values, _best(graph, values, n_classes)
    votes = _votes(graph, values, n_classes, "Greater")
    if model.decision_function_shape == "ovo":
        return values, _best(graph, votes, n_classes)
    counts = _votes(graph, values, n_classes, "GreaterOrEqual")
    scores = _with_fractions(graph, counts, values, _pairs(n_classes), 1.0)
    return scores, _best(graph, scores if model.break_ties else votes, n_classes)


def _pairs(n_classes: int) -> np.ndarray:
    """Return a row for each pair of classes, +1 for the first and -1 for the second."""
    pairs = np.zeros((n_classes * (n_classes - 1) // 2, n_classes))
    for number, (i, j) in enumerate(combinations(range(n_classes), 2)):
        pairs[number, [i, j]] = 1.0, -1.0
    return pairs


def _votes(graph: _Graph, values: str, n_classes: int, compare: str) -> str:
    """Add the number of pairs that decide for each class."""
    pairs = _pairs(n_classes)
    first = graph.cast(graph.add(compare, values, 0.0), "DOUBLE")
    return graph.affine(first, pairs, (pairs < 0).sum(axis=0).astype(float))


def _with_fractions(
    graph: _Graph, values: str, scores: str, matrix: np.ndarray, unit: float
) -> str:
    """Add a fraction of the summed scores to values, which breaks ties."""
    confidence = graph.add("MatMul", scores, matrix)
    bound = graph.add("Add", graph.add("Abs", confidence), 1.0)
    fraction = graph.add("Mul", graph.add("Div", confidence, bound), unit / 3.0)
    return graph.add("Add", values, fraction)


def _linear(graph: _Graph, model: Any, X: str) -> tuple[str, str]:
    scores = graph.affine(X, _dense(model.coef_).T, model.intercept_)
    return scores, _best(graph, scores, len(model.classes_))


def _crammer_singer(graph: _Graph, model: CrammerSingerSVC, X: str) -> tuple[str, str]:
    if model._expansion is None:
        scores = graph.affine(X, model.coef_.T, model.intercept_)
    else:
        scores = _expansion_values(graph, model._expansion, X)
    n_classes = len(model.classes_)
    if n_classes == 2:
        scores = graph.add("MatMul", scores, np.array([[-1.0], [1.0]]))
    return scores, _best(graph, scores, n_classes)


def _linear_discriminant(graph: _Graph, model: Any, X: str) -> tuple[str, str]:
    scores = graph.affine(X, _dense(model.coef_).T, model.intercept_)
    if len(model.classes_) == 2:
        scores = graph.add("MatMul", scores, np.array([[0.0, 1.0]]))
    return scores, graph.add("ArgMax", scores, axis=1, keepdims=0)


def _quadratic_discriminant(graph: _Graph, model: Any, X: str) -> tuple[str, str]:
    columns = []
    statistics = zip(model.means_, model.rotations_, model.scalings_, model.priors_, strict=True)
    for mean, rotation, scaling, prior in statistics:
        rotated = graph.add("MatMul", graph.add("Sub", X, mean), rotation / np.sqrt(scaling))
        squares = graph.sum_columns(graph.add("Mul", rotated, rotated))
        half = graph.add("Mul", squares, -0.5)
        columns.append(graph.add("Add", half, np.log(prior) - 0.5 * np.log(scaling).sum()))
    scores = graph.add("Concat", *columns, axis=1)
    return scores, graph.add("ArgMax", scores, axis=1, keepdims=0)


def _preference(graph: _Graph, model: Any, X: str) -> tuple[str, str]:
    if isinstance(model, PreferenceClassifier):
        scores = _decision_values(graph, model.estimator_, X)
    else:
        scores = _expansion_values(graph, model._expansion, X)
    above = graph.add("Sub", scores, float(model.threshold_))
    accepted = graph.add("Greater", above, 0.0)
    if not model._positive_is_second:
        accepted, above = graph.add("Not", accepted), graph.add("Neg", above)
    return above, graph.add("Reshape", graph.cast(accepted, "INT64"), np.array([-1]))


def _transductive(graph: _Graph, model: TransductiveSVC, X: str) -> tuple[str, str]:
    scores = _expansion_values(graph, model._expansion, X)
    return scores, _best(graph, scores, 2)


def _student_scores(graph: _Graph, model: Any, X: str) -> str:
    if not model.merged_:
        raise TypeError(
            f"This {type(model).__name__} needs the scores of its teacher, so that it cannot be "
            "converted to ONNX. Students of a linear teacher are merged with it; for others use "
            "gate='distilled'."
        )
    features = model._features
    if features is not None:
        X = _transformed(graph, features, X)
    return graph.affine(X, np.atleast_2d(model.coef_).T, model.intercept_)


def _student(graph: _Graph, model: GatedSVC, X: str) -> tuple[str, str]:
    scores = _student_scores(graph, model, X)
    accepted = graph.cast(graph.add("GreaterOrEqual", scores, 0.0), "INT64")
    return scores, graph.add("Reshape", accepted, np.array([-1]))


def _students(graph: _Graph, model: GatedStudents, X: str) -> tuple[str, str]:
    scores = _student_scores(graph, model, X)
    index = graph.add("ArgMax", scores, axis=1, keepdims=0)
    if model._other is not None:
        accepted = graph.cast(graph.add("GreaterOrEqual", scores, 0.0), "INT64")
        count = graph.add("ReduceSum", accepted, np.array([1]), keepdims=0)
        none = graph.add("Equal", count, 0)
        index = graph.add("Where", none, len(model.classes_), index)
    if len(model.classes_) == 2:
        scores = graph.add("MatMul", scores, np.array([[-1.0], [1.0]]))
    return scores, index


def _code_matrix(graph: _Graph, model: CodeMatrixClassifier, X: str) -> tuple[str, str]:
    matrix, classifiers = model.code_matrix_.astype(np.float64), model._classifiers
    if isinstance(classifiers, JointClassifiers):
        values = _expansion_values(graph, classifiers.attributes["_expansion"], X)
        values = graph.add("Mul", values, float(classifiers.sign))
    else:
        columns = [
            _decision_values(graph, estimator, X, 2.0) for estimator in classifiers.estimators
        ]
        values = graph.add("Concat", *columns, axis=1)
    if len(matrix) == 2:
        scores = graph.add("MatMul", values, matrix[1][:, np.newaxis] / matrix.shape[1])
    elif is_one_vs_rest(matrix):
        scores = values
    else:
        scores = _decoded(graph, model, values, matrix)
    return scores, _best(graph, scores, len(matrix))


def _decoded(graph: _Graph, model: CodeMatrixClassifier, values: str, matrix: np.ndarray) -> str:
    """Add the scores of classes, as of `CodeMatrixClassifier.decision_function`."""
    if model._decoding == "hamming":
        positive = graph.cast(graph.add("Greater", values, 0.0), "DOUBLE")
        shift = 0.5 * (np.abs(matrix).sum(axis=1).max() - matrix.sum(axis=1))
        agreement = graph.affine(positive, matrix.T, shift)
        return _with_fractions(graph, agreement, values, matrix.T, smallest_step(matrix))
    sides = [_loss(graph, model._loss, graph.add("Mul", values, sign)) for sign in (1.0, -1.0)]
    sums = [
        graph.add("MatMul", side, (sign * matrix.T > 0).astype(np.float64))
        for side, sign in zip(sides, (1.0, -1.0), strict=True)
    ]
    at_zero = {"hinge": 1.0, "squared_hinge": 1.0, "logistic": np.log(2.0), "linear": 0.0}
    constant = at_zero[model._loss] * (matrix == 0).sum(axis=1)
    total = graph.add("Add", graph.add("Add", *sums), constant)
    unit = code_matrix_options.tied_losses
    return _with_fractions(graph, graph.add("Neg", total), values, matrix.T, unit)


def _loss(graph: _Graph, name: str, values: str) -> str:
    if name == "linear":
        return graph.add("Neg", values)
    if name == "logistic":
        # log(1 + exp(-t)) = max(0, -t) + log(1 + exp(-|t|))
        small = graph.add("Exp", graph.add("Neg", graph.add("Abs", values)))
        rest = graph.add("Log", graph.add("Add", small, 1.0))
        return graph.add("Add", graph.add("Max", graph.add("Neg", values), 0.0), rest)
    hinge = graph.add("Max", graph.add("Sub", 1.0, values), 0.0)
    return graph.add("Mul", hinge, hinge) if name == "squared_hinge" else hinge


def _decision_values(graph: _Graph, model: Any, X: str, factor: float = 0.0) -> str:
    """Add the decision values of a binary base estimator, as one column.

    Those of an estimator with probabilities p alone are the log-odds or, with a factor, factor
    times p minus 1.
    """
    if type(model) in _GRAPHS:
        scores, _ = _GRAPHS[type(model)](graph, model, X)
        if isinstance(model, _DISCRIMINANTS):
            scores = graph.add("MatMul", scores, np.array([[-1.0], [1.0]]))
        return scores
    raw = hasattr(model, "decision_function")
    scores = _converted(graph, model, raw)
    second = graph.add("MatMul", scores, np.array([[0.0], [1.0]]))
    if raw:
        return second
    if factor:
        return graph.add("Sub", graph.add("Mul", second, factor), 1.0)
    return _log_odds(graph, scores)


def _log_odds(graph: _Graph, probabilities: str) -> str:
    """Add the logarithm of the odds of the second class."""
    tiny = float(np.finfo(np.float64).tiny)
    logs = graph.add("Log", graph.add("Max", probabilities, tiny))
    return graph.add("MatMul", logs, np.array([[-1.0], [1.0]]))


def _converted(graph: _Graph, model: Any, raw: bool) -> str:
    """Add the scores or probabilities of a classifier that skl2onnx converts, as float64."""
    kinds = import_module("skl2onnx._supported_operators").sklearn_operator_name_map
    types = import_module("skl2onnx.common.data_types")
    scope, container = graph.scope, graph.container
    if type(model) not in kinds or (raw and not container.has_options(model, "raw_scores")):
        raise TypeError(f"skl2onnx cannot convert the scores of {type(model).__name__}.")
    operator = scope.declare_local_operator(kinds[type(model)], model)
    if raw:
        container.add_options(id(model), {"raw_scores": True})
        scope.add_options(id(model), {"raw_scores": True})
    operator.inputs.append(graph.samples)
    labels = scope.declare_local_variable("label", types.Int64TensorType())
    scores = scope.declare_local_variable("scores", graph.samples.type.__class__())
    operator.outputs.extend([labels, scores])
    return graph.cast(scores.full_name, "DOUBLE")


def _transformed(graph: _Graph, features: Any, X: str) -> str:
    """Add the features of students: scaled features, and kernel values of landmarks."""
    steps = [step for _, step in features.steps] if isinstance(features, Pipeline) else [features]
    for step in steps:
        if type(step) is StandardScaler:
            X = graph.add("Sub", X, 0.0 if step.mean_ is None else step.mean_)
            X = graph.add("Div", X, 1.0 if step.scale_ is None else step.scale_)
        elif type(step) is MinMaxScaler and not step.clip:
            X = graph.add("Add", graph.add("Mul", X, step.scale_), step.min_)
        elif type(step) is Nystroem and step.kernel in _KERNELS and not step.kernel_params:
            gamma = 1.0 / step.n_features_in_ if step.gamma is None else step.gamma
            parameters = KernelParameters(
                step.kernel, gamma, 3 if step.degree is None else step.degree,
                1.0 if step.coef0 is None else step.coef0,
            )  # fmt: skip
            expansion = KernelExpansion(parameters, step.components_, np.zeros((0, 0)))
            X = graph.add("MatMul", _kernel_values(graph, expansion, X), step.normalization_.T)
        else:
            raise TypeError(
                f"The features of these students cannot be converted to ONNX: {step!r}. Use "
                "Nystroem, after StandardScaler or MinMaxScaler if needed."
            )
    return X


_KERNELS = ("rbf", "poly", "sigmoid", "laplacian")
_DISCRIMINANTS = (LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis)
_GRAPHS: dict[type, Callable[[_Graph, Any, str], tuple[str, str]]] = {
    SVC: _svc,
    LinearSVC: _linear,
    CrammerSingerSVC: _crammer_singer,
    LinearDiscriminantAnalysis: _linear_discriminant,
    QuadraticDiscriminantAnalysis: _quadratic_discriminant,
    PrivilegedSVC: _svc,
    PreferenceSVC: _preference,
    PreferenceClassifier: _preference,
    TransductiveSVC: _transductive,
    GatedSVC: _student,
    GatedStudents: _students,
    CodeMatrixClassifier: _code_matrix,
}
