"""Solvers of the multi-class problem of Crammer and Singer, with features or with a kernel."""
