"""Columns that exist for the training rows only: SVM2+, SVM1+ and SVM-2K."""
