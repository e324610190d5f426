"""Solvers of the optimization problems: arrays in, a `Solution` out."""

from widemargin.solvers.hinge.problem import HingeProblem, NotSeparableError, certify
from widemargin.solvers.hinge.smo import solution_at, solve_hinge
from widemargin.solvers.solution import Solution

__all__ = ["HingeProblem", "NotSeparableError", "Solution", "certify", "solution_at", "solve_hinge"]
