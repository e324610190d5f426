"""Solvers of the binary hinge problem, with a kernel or with explicit features."""
