"""Solvers of the optimization problems: arrays in, a `Solution` out."""

from widemargin.solvers.hinge.problem import HingeProblem, NotSeparableError
from widemargin.solvers.hinge.smo import solution_at, solve_hinge
from widemargin.solvers.solution import Solution, certify

__all__ = [
    "HingeProblem",
    "NotSeparableError",
    "Solution",
    "certify",
    "solution_at",
    "solve_hinge",
]
