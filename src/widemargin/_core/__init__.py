"""The workshop: compilation, threads, products, files, checkpoints, progress."""
