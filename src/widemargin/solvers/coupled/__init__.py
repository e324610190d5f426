"""Solvers of problems over two coupled kernel expansions: SVM1+ and SVM-2K."""
