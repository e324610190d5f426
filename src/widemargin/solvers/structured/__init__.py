"""Solvers of the structured problem."""
