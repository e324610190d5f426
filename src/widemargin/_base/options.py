"""Tuning constants: what each one trades, and the script that measures it.

Each component has a frozen dataclass of options and one instance with the defaults. The values
were chosen by the benchmarks named below; the same name has the same value everywhere. Change one
here and run its benchmark.
"""

from dataclasses import dataclass

__all__: list[str] = []


# ---- _base and kernels ---------------------------------------------------------------------------


# ---- svm -----------------------------------------------------------------------------------------


# ---- solvers.hinge -------------------------------------------------------------------------------


@dataclass(frozen=True)
class StoppingOptions:
    """Options of the stopping rules that all solvers share; measured by `benchmarks/core.py`."""

    first_gap_tol: float = 0.1
    """Tolerance on the violation to start with where the duality gap decides. Too large costs
    additional evaluations of the gap, too small costs iterations that the gap did not need."""
    tightening: float = 0.1
    """Factor from one tolerance to the next while the gap is too large."""
    smallest_tol: float = 1e-13
    """Tolerance below which the solver gives up closing the gap."""
    rounding: float = 4.0
    """Rounding error of a sum, in units of machine epsilon times its size."""
    update_work: float = 100.0
    """Multiplications in matrix products that take the time of one pair update, per variable.
    Measured by `benchmarks/privileged.py`."""


@dataclass(frozen=True)
class SmoOptions:
    """Options of sequential minimal optimization; measured by `benchmarks/core.py`."""

    dense_size: int = 2000
    """Largest number of samples for which the whole Gram matrix is held. Above it the working sets
    win, and memory grows with the cache only."""
    working_set_size: int = 1024
    """Largest working set. Larger ones need fewer passes over all samples, each more expensive."""
    smallest_working_set: int = 32
    """Smallest working set, where a sixth of the samples would be fewer."""
    working_set_share: int = 6
    """A working set is at most the number of samples divided by this."""
    slice_work: int = 50_000_000
    """Kernel values used between two reports: about a fifth of a second."""
    newton_period: int = 100
    """Pair updates per sample after which a Newton step on the free variables is tried."""
    shrink_size: int = 500
    """Smallest number of samples for which shrinking pays for its bookkeeping."""
    shrink_steps: int = 1000
    """Pair updates before the first attempt to shrink a problem with a whole Gram matrix."""
    shrink_share: float = 0.5
    """Share of samples that must be at a bound before they are removed. Smaller shrinks earlier,
    and must restore the residual more often."""
    update_columns: int = 4096
    """Columns of the Gram matrix that one thread takes when the residual is updated."""
    rechecks: int = 3
    """How often a residual computed from float32 kernel values is compared with float64 ones."""
    recheck_rows: int = 512
    """Support vectors in the sample that is compared."""
    recheck_entries: int = 1 << 22
    """Entries of a block of float64 kernel values: 32 MiB."""
    objective_error: float = 1e-5
    """Relative error of the dual objective by float32 values that is accepted."""
    slack_error_factor: float = 10.0
    """Samples whose slack is within this many errors of 0 get float64 kernel values as well."""
    rounded_gap: float = 1e-3
    """Relative gap at which a point that rounding keeps from tol is accepted as converged."""
    flat_curvature: float = 1e-12
    """Smallest curvature along a pair, relative to the largest kernel value."""
    separability: float = 1e10
    """Dual objective, relative to the scale of the data, above which hard-margin samples are
    reported as not separable. Larger takes longer to find that out, smaller rejects problems
    whose margin is tiny."""
    feasibility: float = 1e-9
    """Relative error by which a starting point may miss the constraints."""


@dataclass(frozen=True)
class FreeSetNewtonOptions:
    """Options of Newton's method on the free variables; measured by `benchmarks/core.py`."""

    most_free: int = 300
    """Largest number of free variables: a step costs its third power."""
    work: int = 200_000_000
    """Multiplications after which a sequence of steps ends."""
    precision: float = 1e-12
    """Relative violation at which a solution is exact to rounding."""
    rounds: int = 8
    """How often the solver continues at a tenth of the tolerance to find the free variables."""
    dependence: float = 1e-11
    """Relative pivot below which a row of the matrix depends on those before it."""
    contradiction: float = 1e-8
    """Relative residual above which equations of dependent rows contradict each other."""


@dataclass(frozen=True)
class InteriorPointOptions:
    """Options of the interior-point methods; measured by `benchmarks/privileged.py`."""

    iterations: int = 100
    """Largest number of steps; 10 to 50 are usual."""
    near: float = 1e-6
    """Distance from the optimum from which on a lack of progress means rounding."""
    stalled_near: int = 5
    """Steps without progress after which the method stops near the optimum."""
    stalled_far: int = 40
    """The same far from the optimum, where distances may rise for a while."""
    step_share: float = 0.995
    """Share of the step to the boundary that is taken. Closer to 1 is faster and less stable."""
    chunk: int = 2048
    """Rows of a partial sum of the normal equations, one task of a thread."""
    regularization: tuple[float, ...] = (0.0, 1e-14, 1e-12, 1e-10, 1e-8)
    """Relative additions to the diagonal that are tried until the Cholesky factor exists."""
    negligible: float = 1e-7
    """Samples that contribute less than this to the normal equations are left out."""
    precision: float = 1e-12
    """Relative distance from the optimum at which the hard-margin solver stops."""
    accepted_gap: float = 1e-6
    """Relative duality gap with which a point that misses tol is accepted as converged."""
    most_free: int = 600
    """Largest number of support vectors for which their equations are solved at the end."""
    corrections: int = 5
    """How often support vectors with negative dual variables are removed from these equations."""
    proximity: float = 1e-12
    """Relative addition to the diagonal that makes these equations solvable."""
    refinements: int = 4
    """Steps of iterative refinement of their solution."""


@dataclass(frozen=True)
class MajorizeMinimizeOptions:
    """Options of majorize-minimize; measured by `benchmarks/gated.py`."""

    smoothing: float = 1e-7
    """Smallest slack in the weights, relative to the margin. Smaller is more exact and slower."""
    smallest_smoothing: float = 1e-10
    """Smoothing below which the solver gives up."""
    stalled: float = 1e-12
    """Relative change of the scores at which the smoothing is reduced."""
    first_active_set: int = 16
    """Iteration at which the equations of the samples on the margin are first tried."""
    distances: tuple[float, ...] = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
    """Distances to the margin, relative to it, at which samples are assumed to be on it."""
    corrections: int = 10
    """Corrections of that assumption for each distance."""


stopping_options = StoppingOptions()
smo_options = SmoOptions()
newton_options = FreeSetNewtonOptions()
interior_point_options = InteriorPointOptions()
majorize_minimize_options = MajorizeMinimizeOptions()


# ---- linear solvers and solvers.multiclass -------------------------------------------------------


@dataclass(frozen=True)
class CoordinateDescentOptions:
    """Options of dual coordinate descent; measured by `benchmarks/linear.py`."""

    slice_work: int = 50_000_000
    """Values of X read between two reports: about a fifth of a second."""
    slice_passes: int = 20
    """Most passes over the samples between two reports, and between two evaluations of the duality
    gap where the solver stops on it."""
    step_work: int = 20
    """Work of one step apart from its row, in values of X."""
    newton_speed: int = 8
    """How much faster a multiplication is in a Newton step than in a pass, where rows are read in
    random order. Larger takes Newton steps more often."""
    refined_entries: int = 20_000
    """Problems with up to this many values in X are solved to machine precision, in less time than
    is noticed."""
    refined_tol: float = 1e-12
    """Difference of projected gradients that counts as machine precision."""
    refine_rounds: int = 20
    """Most Newton steps towards machine precision."""
    refine_passes: int = 20
    """Most passes after each of them."""


@dataclass(frozen=True)
class PrimalNewtonOptions:
    """Options of Newton's method for the primal; measured by `benchmarks/linear.py`."""

    direct_features: int = 1000
    """Largest number of features with which second derivatives are formed and factorized. Above it
    conjugate gradients are faster."""
    refined_work: int = 5_000_000
    """Problems whose second derivatives take up to this many multiplications are solved to machine
    precision, which takes one or two more steps."""
    refined_tol: float = 1e-13
    """Relative norm of the gradient that counts as machine precision."""
    gradient_steps: int = 1000
    """Most steps of conjugate gradients for one Newton step."""
    line_steps: int = 50
    """Most steps of a line search."""
    line_tol: float = 1e-4
    """Derivative along the step, relative to that at its start, at which the line search ends."""
    stalled_gap: float = 1e-6
    """Relative duality gap with which a point is accepted that rounding keeps from tol."""


coordinate_descent_options = CoordinateDescentOptions()
primal_newton_options = PrimalNewtonOptions()


# ---- solvers.coupled and privileged --------------------------------------------------------------


# ---- solvers.structured and structured.learners --------------------------------------------------


# ---- structured.inference and structured.ensembles -----------------------------------------------


# ---- gated ---------------------------------------------------------------------------------------


# ---- semisupervised and imbalance ----------------------------------------------------------------


# ---- discriminant and plotting -------------------------------------------------------------------
