"""LabelTreeClassifier: classification with very many labels."""

import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.callback import CallbackSupportMixin
from sklearn.preprocessing import normalize
from sklearn.utils.extmath import row_norms
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from widemargin._base.callbacks import FitProgress
from widemargin._base.checkpoint import CheckpointJournal
from widemargin._base.docs import shared_docs
from widemargin._base.numeric import TINY
from widemargin._base.options import label_tree_options as options
from widemargin._base.sklearn_compat import BaseEstimator, Interval, StrOptions, fit_context, naming
from widemargin._base.targets import check_costs, encode_targets
from widemargin._base.validation import (
    canonical_csr,
    check_magnitude,
    validate_predict,
    validate_training,
    validate_weights,
)
from widemargin.labeltree import labels as forms
from widemargin.labeltree.beam import KINDS, LOG, Scoring, merge_trees, score_labels, search
from widemargin.labeltree.labels import EncodedLabels, numbers_of
from widemargin.labeltree.node import NodeSolver
from widemargin.labeltree.partition import (
    LabelTree,
    balanced_tree,
    encode_nested,
    huffman_tree,
    random_tree,
)
from widemargin.labeltree.training import TreeTraining
from widemargin.svm.linear_svc import constant_feature, random_seeds
from widemargin.svm.training import set_attributes

# Parameters that a checkpoint does not depend on; a random state is known by its seeds.
_NOT_TRAINED = ("score_exponent", "beam_width", "checkpoint", "random_state")


def _gives_probabilities(model: "LabelTreeClassifier") -> bool:
    """Return whether the model was fitted with the logistic loss, or would be."""
    return getattr(model, "_kind", KINDS.get(model.loss)) == LOG


@shared_docs
class LabelTreeClassifier(CallbackSupportMixin, ClassifierMixin, BaseEstimator):
    r"""Classification with very many labels, by linear classifiers in a tree of labels.

    The labels are partitioned recursively, so that similar ones are in the same subtree. Each node
    of the tree has a linear classifier for each of its children, trained on the samples that have
    a label below the node:

    .. math::

        \min_w \tfrac12 \|w\|^2 + C \sum_i \ell\bigl(y_i \langle w, x_i \rangle\bigr)

    where :math:`y_i` is 1 if sample i has a label below the child, else -1. The score of a label is
    the sum of :math:`-\max(0, 1 - \langle w, x \rangle)^p` over the nodes on its path from the
    root, or of the negative logistic losses. A beam search finds the labels of the highest scores.
    With n samples of L labels, `fit` and `predict` take time in proportion to :math:`n \log L`.

    Samples have one class each (multi-class), or any number of labels (multi-label). Rows of X
    should have similar norms, as those of
    :class:`~sklearn.feature_extraction.text.TfidfVectorizer` have.

    Parameters
    ----------
    n_trees : int, default=1
        Number of trees, each with another random partition. Probabilities exp(score) are averaged.

    partition : str or list, default='centroids'
        How labels are partitioned: by balanced spherical k-means over the mean samples of the
        labels ('centroids'), over the features of the labels that are passed to `fit`
        ('label_features'), or over both side by side ('both'); at random into parts of equal size
        ('random'); by frequency ('huffman'). A nested list of labels is a tree itself:
        ``[["cat", "dog"], ["oak", ["elm", "fir"]]]``.

    branching : int, default=16
        Most children of a node, except for nodes whose children are labels. 2 gives deep trees
        (Parabel), 100 and more shallow ones (Bonsai).

    max_leaf_size : int, default=80
        Most labels that are children of one node. Ignored by 'huffman'.

    loss : {'squared_hinge', 'hinge', 'log', 'crammer_singer'}, default='squared_hinge'
        Loss function of the classifiers. 'log' is logistic regression, for `predict_proba`.
        'crammer_singer' solves one multi-class problem for each node instead of a binary problem
        for each child. It is meant for one class for each sample: several labels of a sample would
        compete.

    C : float, default=0.7
        Regularization parameter. The strength of the regularization is inversely proportional to
        C. Must be strictly positive and finite. The default was chosen on the training samples of
        four data sets of texts, for samples of norm 1.

    prune : float, default=0.1
        Weights of small contributions are set to 0: those up to :math:`\mathrm{prune} / (\sqrt m
        v_j)` for feature j, where m is the mean number of nonzero features of a sample and
        :math:`v_j` the root mean square of the nonzero values of the feature. This is `prune`
        itself for samples of norm 1 with equal values. Larger values give smaller models and faster
        predictions; 0 keeps all weights.

    score_exponent : int or 'auto', default='auto'
        Exponent p of the scores :math:`-\max(0, 1 - \langle w, x \rangle)^p` of the hinge losses.
        2 is the negative squared hinge loss, as in Parabel and omikuji; 3 is that of PECOS. The
        classifiers of labels, where slack is often above 1, have the more influence, compared with
        those of the nodes above them, the larger the exponent is. This ranks labels of few samples
        better.
        'auto' is 4 for samples with up to 3 labels on average, 3 for up to 10, and 2 for more; it
        is 1 for joint nodes, whose slack is that to the best other child. Not used with 'log'.

    beam_width : int, default=10
        Number of nodes of each level that predictions follow. The larger it is, the closer
        predictions are to the labels of the highest scores, and the longer they take.

    <<fit_intercept>>

    <<intercept_scaling>>

    tol : float, default=0.1
        Tolerance on the violation of the optimality conditions at which the solver of a node stops.

    max_iter : int, default=1000
        Maximum number of passes over the samples of a node.

    checkpoint : str or path-like, default=None
        File to which every node is appended when it is trained. A fit with the same data and
        parameters reads it and trains only the other nodes, with the same result. `beam_width` may
        differ.

    random_state : int, RandomState instance or None, default=None
        Seed of the partitions, and of the order in which coordinate descent visits the samples. If
        None, a fixed seed is used, so that results are reproducible.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels; column numbers if y was an indicator matrix.

    trees_ : list of LabelTree
        Trees over the numbers of labels in `classes_`. Labels without a training sample are not in
        them: their score is negative infinity, and they are never predicted.

    weights_ : list of TreeWeights
        Weights of each tree, as flat arrays.

    n_iter_ : int
        Largest number of passes over the samples of a node.

    <<n_features_in_>>

    <<feature_names_in_>>

    See Also
    --------
    LinearSVC : One classifier for each class, for up to a few hundred classes.

    Notes
    -----
    Results do not depend on the number of threads. A model that was saved with
    ``joblib.dump(model, path)`` is loaded with ``joblib.load(path, mmap_mode="r")`` without reading
    its weights into memory, so that several processes share them.

    References
    ----------
    Y. Prabhu, A. Kag, S. Harsola, R. Agrawal, M. Varma: Parabel: partitioned label trees for
    extreme classification with application to dynamic search advertising. WWW 2018.

    S. Khandagale, H. Xiao, R. Babbar: Bonsai: diverse and shallow trees for extreme multi-label
    classification. Machine Learning 2020.

    H.-F. Yu, K. Zhong, J. Zhang, W.-C. Chang, I. S. Dhillon: PECOS: prediction for enormous and
    correlated output spaces. JMLR 2022.

    Examples
    --------
    >>> from sklearn.feature_extraction.text import TfidfVectorizer
    >>> from sklearn.pipeline import make_pipeline
    >>> from widemargin import LabelTreeClassifier
    >>> texts = ["graph colouring", "colour of a flower", "graph search", "garden flower"]
    >>> tags = [["math"], ["art", "garden"], ["math", "code"], ["garden"]]
    >>> model = make_pipeline(TfidfVectorizer(), LabelTreeClassifier()).fit(texts, tags)
    >>> model.predict(["a flower in the garden"])
    [['garden']]
    """

    _parameter_constraints: dict = {
        "n_trees": [Interval(Integral, 1, None, closed="left")],
        "partition": [
            StrOptions({"centroids", "label_features", "both", "random", "huffman"}),
            list,
        ],
        "branching": [Interval(Integral, 2, 65535, closed="both")],
        "max_leaf_size": [Interval(Integral, 2, 65535, closed="both")],
        "loss": [StrOptions(set(KINDS))],
        "C": [Interval(Real, 0.0, np.inf, closed="neither")],
        "prune": [Interval(Real, 0.0, None, closed="left")],
        "score_exponent": [
            Interval(Integral, 1, options.largest_exponent, closed="both"),
            StrOptions({"auto"}),
        ],
        "beam_width": [Interval(Integral, 1, None, closed="left")],
        "fit_intercept": ["boolean"],
        "intercept_scaling": [Interval(Real, 0, None, closed="neither")],
        "tol": [Interval(Real, 0.0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "checkpoint": [None, str, os.PathLike],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        *,
        n_trees=1,
        partition="centroids",
        branching=16,
        max_leaf_size=80,
        loss="squared_hinge",
        C=0.7,
        prune=0.1,
        score_exponent="auto",
        beam_width=10,
        fit_intercept=True,
        intercept_scaling=1.0,
        tol=0.1,
        max_iter=1000,
        checkpoint=None,
        random_state=None,
    ):
        self.n_trees = n_trees
        self.partition = partition
        self.branching = branching
        self.max_leaf_size = max_leaf_size
        self.loss = loss
        self.C = C
        self.prune = prune
        self.score_exponent = score_exponent
        self.beam_width = beam_width
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.tol = tol
        self.max_iter = max_iter
        self.checkpoint = checkpoint
        self.random_state = random_state

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.classifier_tags.multi_label = True
        return tags

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None, label_features: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        <<X_train>>

        y : array-like, sparse matrix, or list of lists
            Class labels, an array of shape (n_samples,); or an indicator matrix of shape
            (n_samples, n_labels), dense or sparse; or for each sample a list of its labels.

        <<sample_weight>>

        label_features : {array-like, sparse matrix} of shape (n_classes, n_label_features), \
                default=None
            Features of the labels themselves, such as the TF-IDF features of their names, in the
            order of `classes_`. Needed for ``partition='label_features'`` and 'both'.

        Returns
        -------
        <<returns_self>>
        """
        metadata = {"sample_weight": sample_weight, "label_features": label_features}
        samples, encoded, weight = self._validate(X, y, sample_weight)
        label_features = self._validate_label_features(label_features, len(encoded.classes))
        matrix = encoded.matrix
        counts = np.bincount(matrix.indices, minlength=matrix.shape[1])
        sums = partial(label_sums, samples, matrix, weight)
        trees = self._partition(encoded.classes, counts, sums, label_features)
        solver = self._solver(samples, weight)
        n_nodes = sum(len(tree.inner_nodes()) for tree in trees)
        progress = FitProgress(self, n_nodes, X, y, metadata)
        parameters = {k: v for k, v in self.get_params().items() if k not in _NOT_TRAINED}
        journal = CheckpointJournal(
            self.checkpoint, "LabelTreeClassifier", samples, encoded, weight, label_features,
            parameters, solver.seed, [vars(tree) for tree in trees],
        )  # fmt: skip
        training = TreeTraining(solver, trees, encoded.matrix, journal)
        attributes = partial(self._attributes, training, encoded)
        training.run(progress, attributes)
        set_attributes(self, attributes())
        progress.close()
        training.report_convergence(progress.stop_requested)
        return self

    def predict(self, X: Any) -> Any:
        """Predict class labels, or the labels of every sample.

        Parameters
        ----------
        <<X>>

        Returns
        -------
        y : ndarray, sparse matrix, or list of lists
            In the form in which y was passed to `fit`: class labels, those of the highest scores;
            or of the multi-label samples those labels whose exp(score) is at least 1/2, but no more
            than the training sample with the most labels had.
        """
        check_is_fitted(self)
        if self._form == forms.MULTICLASS:
            return self.predict_topk(X, 1)[0][:, 0]
        numbers, scores = self._search(X, self._most_labels)
        rows, ranks = np.nonzero(scores >= np.log(0.5))
        columns, shape = numbers[rows, ranks], (len(numbers), len(self.classes_))
        chosen = sp.csr_array((np.ones(len(rows)), (rows, columns)), shape=shape)
        chosen.sort_indices()
        return forms.decode_labels(chosen, self.classes_, self._form, self._dtype)

    def predict_topk(self, X: Any, k: int = 5) -> tuple[np.ndarray, NDArray[np.float64]]:
        """Predict the k best labels of every sample, by a beam search.

        Parameters
        ----------
        <<X>>

        k : int, default=5
            Number of labels. The beam is at least as wide.

        Returns
        -------
        labels : ndarray of shape (n_samples, k)
            Labels in decreasing order of their scores.

        scores : ndarray of shape (n_samples, k)
            Their scores, which are at most 0: exp(score) is like a probability.
        """
        check_is_fitted(self)
        most = int(np.sum(self.trees_[0].label >= 0))
        if not isinstance(k, Integral) or isinstance(k, bool) or not 1 <= k <= most:
            raise ValueError(
                f"k must be an integer from 1 to {most}, the number of labels with training "
                f"samples, got {k!r}."
            )
        numbers, scores = self._search(X, k)
        return self.classes_[numbers], scores

    def decision_function(self, X: Any, candidates: Any = None) -> NDArray[np.float64]:
        """Compute the scores of labels, without a beam search.

        Parameters
        ----------
        <<X>>

        candidates : array-like of shape (n_candidates,), default=None
            Labels to score, which takes little time if they are few. If None, all labels are
            scored, which takes time and memory in proportion to their number.

        Returns
        -------
        scores : ndarray of shape (n_samples, n_candidates), (n_samples, n_classes) or (n_samples,)
            Scores of the labels. With two classes and no candidates, the score of the second class
            minus that of the first.
        """
        check_is_fitted(self)
        numbers = np.arange(len(self.classes_))
        position: Any = slice(None)
        if candidates is not None:
            numbers = numbers_of(np.asarray(candidates), self.classes_, "candidates")
            numbers, position = np.unique(numbers, return_inverse=True)  # some may be repeated
        scores = self._scores(X, numbers)[:, position]
        if candidates is None and self._form == forms.MULTICLASS and len(numbers) == 2:
            return scores[:, 1] - scores[:, 0]
        return scores

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Compute the share of samples whose labels are predicted exactly.

        With several labels for each sample, all of them must be right, which is rare if they are
        many: `precision_at_k` and `ndcg_at_k` rate rankings of labels.

        Parameters
        ----------
        <<X>>

        y : array-like, sparse matrix, or list of lists
            True labels, in the form in which y was passed to `fit`.

        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples.

        Returns
        -------
        score : float
            Accuracy, from 0 to 1.
        """
        check_is_fitted(self)
        if self._form != forms.LISTS:
            return super().score(X, y, sample_weight)
        exact = forms.equal_sets(y, self.predict(X))
        return float(np.average(exact, weights=sample_weight))

    @available_if(_gives_probabilities)
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Compute the probabilities of all labels, for ``loss='log'``.

        The probability of a label is the product of those on its path, averaged over trees. It
        takes time and memory in proportion to the number of labels: `predict_topk` returns the
        logarithms of the largest ones.

        Parameters
        ----------
        <<X>>

        Returns
        -------
        probability : ndarray of shape (n_samples, n_classes)
            With one class for each sample, probabilities are normalized to sum to 1.
        """
        check_is_fitted(self)
        probability = np.exp(self._scores(X, np.arange(len(self.classes_))))
        if self._form == forms.MULTICLASS:
            probability /= probability.sum(axis=1, keepdims=True)
        return probability

    def _scores(self, X: Any, numbers: np.ndarray) -> np.ndarray:
        """Return the scores of the labels with these numbers."""
        X, scoring = self._validate_predict(X), Scoring(self._kind, self._exponent)
        scores = np.array([
            score_labels(X, tree, weights, scoring, numbers)
            for tree, weights in zip(self.trees_, self.weights_, strict=True)
        ])  # fmt: skip
        best = scores.max(axis=0)
        shift = np.where(np.isfinite(best), best, 0.0)
        with np.errstate(divide="ignore"):  # labels without samples
            return shift + np.log(np.mean(np.exp(scores - shift), axis=0))

    def _search(self, X: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the numbers of the k best labels of every sample, and their scores."""
        check_is_fitted(self)
        X, scoring = self._validate_predict(X), Scoring(self._kind, self._exponent)
        several = len(self.trees_) > 1
        most = int(np.sum(self.trees_[0].label >= 0))
        wanted = min(most, max(k, options.candidates)) if several else k
        beam = max(self._beam_width, k)
        results = [
            search(X, tree, weights, scoring, beam, wanted)
            for tree, weights in zip(self.trees_, self.weights_, strict=True)
        ]
        return merge_trees(results, k)

    def _validate(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, EncodedLabels, Any]:
        """Return samples of positive weight as a CSR matrix, their labels, and their weights."""
        form = forms.form_of(y)
        if form == forms.MULTICLASS:
            X, y = validate_training(self, X, y)
            chosen, targets = encode_targets(y, sample_weight, None)
            encoded, weight = forms.encode_codes(targets.classes, targets.codes), targets.weight
        else:
            with naming("X"):
                X = validate_data(self, X, dtype=np.float64, order="C", accept_sparse="csr")
            encode = forms.encode_lists if form == forms.LISTS else forms.encode_indicator
            encoded = encode(y, X)
            chosen, weight = validate_weights(sample_weight, np.arange(X.shape[0]))
            encoded = replace(encoded, matrix=encoded.matrix[chosen])
            if encoded.matrix.nnz == 0:
                raise ValueError(
                    "sample_weight must be positive for samples that have labels; all samples with "
                    "labels have the weight 0."
                )
        X = canonical_csr(sp.csr_array(X))
        check_magnitude(X)
        return X if weight is None else X[chosen], encoded, weight

    def _validate_label_features(self, label_features: Any, n_classes: int) -> Any:
        needed = isinstance(self.partition, str) and self.partition in ("label_features", "both")
        if label_features is None:
            if needed:
                raise ValueError(
                    f"partition={self.partition!r} needs label_features. Pass a matrix with a row "
                    "for each label to fit, or use partition='centroids'."
                )
            return None
        if not needed:
            raise ValueError(
                f"label_features are not used with partition={self.partition!r}. Use "
                "partition='label_features' or 'both', or do not pass them."
            )
        features = check_array(
            label_features, accept_sparse="csr", dtype=np.float64, input_name="label_features"
        )
        if features.shape[0] != n_classes:
            raise ValueError(
                f"label_features must have a row for each of the {n_classes} labels, got "
                f"{features.shape[0]} rows."
            )
        return canonical_csr(sp.csr_array(features))

    def _partition(
        self, classes: np.ndarray, counts: np.ndarray, sums: Callable[[], Any], label_features: Any
    ) -> list[LabelTree]:
        """Return a tree for each random seed.

        ``counts`` are the numbers of samples of the labels, ``sums()`` computes their `label_sums`,
        and ``label_features`` are features of the labels themselves.
        """
        kind = self.partition
        present = np.flatnonzero(counts)
        seeds = random_seeds(self.random_state, int(self.n_trees)).tolist()
        if isinstance(kind, list):
            return [LabelTree.of(encode_nested(kind, classes, counts))] * self.n_trees
        if kind == "huffman":
            return [LabelTree.of(huffman_tree(present, counts, self.branching))] * self.n_trees
        if kind == "random":
            shape = self.branching, self.max_leaf_size
            return [LabelTree.of(random_tree(present, *shape, seed)) for seed in seeds]
        features = label_features
        if kind != "label_features":
            features = sums()
            features = (
                features if kind == "centroids" else sp.hstack([features, label_features]).tocsr()
            )
        # Features that the user passed are not changed.
        features = canonical_csr(normalize(features, copy=features is label_features))
        shape = self.branching, self.max_leaf_size
        return [LabelTree.of(balanced_tree(features, present, *shape, seed)) for seed in seeds]

    def _solver(self, X: Any, weight: Any) -> NodeSolver:
        with np.errstate(over="ignore"):
            cost = np.full(X.shape[0], float(self.C)) if weight is None else self.C * weight
        check_costs(cost, self.C)
        return NodeSolver(
            X, cost, self.loss, constant_feature(self), self.tol, self.max_iter,
            self.prune, int(random_seeds(self.random_state)),
        )  # fmt: skip

    def _attributes(self, training: TreeTraining, encoded: Any) -> dict[str, Any]:
        """Return the fitted attributes, of what is trained so far.

        ``encoded`` is an `EncodedLabels`, or has its attributes without the matrix.
        """
        return {
            "classes_": encoded.classes,
            "trees_": training.trees,
            "weights_": training.weights(),
            "n_iter_": training.most_passes(),
            "_kind": KINDS[self.loss],
            "_exponent": self._exponent_for(encoded.mean_labels),
            "_beam_width": self.beam_width,
            "_form": encoded.form,
            "_dtype": encoded.dtype,
            "_most_labels": encoded.most_labels,
        }

    def _exponent_for(self, mean: float) -> int:
        """Return the exponent of scores for samples with this many labels."""
        if self.score_exponent != "auto":
            return int(self.score_exponent)
        if self.loss == "crammer_singer":
            return 1
        return 4 if mean <= options.few_labels else 3 if mean <= options.many_labels else 2

    def _check_loaded(self) -> None:
        """Raise a ValueError if compiled code would read beyond the arrays of a loaded model."""
        if not hasattr(self, "trees_"):
            return
        for tree, weights in zip(self.trees_, self.weights_, strict=True):
            tree.check(len(self.classes_))
            weights.check(tree, self.n_features_in_)
        if self._exponent not in range(1, options.largest_exponent + 1):
            raise ValueError(f"The exponent of scores is {self._exponent!r}.")

    def _validate_predict(self, X: Any) -> Any:
        # For one sample, scikit-learn's validation takes several times as long as the search.
        if not self._is_validated(X):
            X = sp.csr_array(validate_predict(self, X))
        X = canonical_csr(X)
        check_magnitude(X)
        return X

    def _is_validated(self, X: Any) -> bool:
        """Return whether X is a CSR matrix in which nothing has to be converted or refused."""
        return (
            type(X) in (sp.csr_array, sp.csr_matrix)
            and not hasattr(self, "feature_names_in_")
            and X.dtype == np.float64
            and X.shape[0] > 0
            and X.shape[1] == self.n_features_in_
            and bool(np.isfinite(X.data).all())
        )


def label_sums(X: Any, labels: Any, weight: Any) -> Any:
    """Return the sums of the normalized samples of each label."""
    # Samples are scaled by the entries of the labels: a copy of X would need more memory.
    scale = 1.0 / np.sqrt(np.maximum(row_norms(X, squared=True), TINY))
    scale = scale if weight is None else scale * weight
    centroids = sp.csr_array((sp.diags_array(scale) @ labels).T.tocsr() @ X)
    centroids.sum_duplicates()  # sorts the features of each label, in place
    return centroids
