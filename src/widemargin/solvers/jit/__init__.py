"""Compiled helpers that several solvers share: rows of matrices, random numbers."""
