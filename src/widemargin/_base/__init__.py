"""Shared infrastructure: compilation, threads, validation, targets, callbacks, checkpoints."""
