"""The solver room: numbers only. Arrays in, a Solution out."""

from widemargin.solvers.hinge.problem import HingeProblem, NotSeparableError, Solution
from widemargin.solvers.hinge.smo import solution_at, solve_hinge

__all__ = ["HingeProblem", "NotSeparableError", "Solution", "solution_at", "solve_hinge"]
