"""Solvers of problems over two kernels: SVM1+ and SVM-2K."""
