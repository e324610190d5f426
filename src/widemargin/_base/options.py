"""Tuning constants: what each one trades, and the script that measures it.

Each component has a frozen dataclass of options and one instance with the defaults. The values
were chosen by the benchmarks named below; the same name has the same value everywhere. Change one
here and run its benchmark.
"""

__all__: list[str] = []


# ---- _base and kernels ---------------------------------------------------------------------------


# ---- svm -----------------------------------------------------------------------------------------


# ---- solvers.hinge -------------------------------------------------------------------------------


# ---- linear solvers and solvers.multiclass -------------------------------------------------------


# ---- solvers.coupled and privileged --------------------------------------------------------------


# ---- solvers.structured and structured.learners --------------------------------------------------


# ---- structured.inference and structured.ensembles -----------------------------------------------


# ---- gated ---------------------------------------------------------------------------------------


# ---- semisupervised and imbalance ----------------------------------------------------------------


# ---- discriminant and plotting -------------------------------------------------------------------
