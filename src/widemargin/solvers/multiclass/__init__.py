"""Solvers of the multi-class problem of Crammer and Singer."""
