"""Multi-class classification by binary subproblems: code matrices and their decoding.

A code matrix has a row (a code word) for each class and a column for each binary subproblem, which
separates the classes with +1 in the column from those with -1; classes with 0 are left out.
One-vs-rest and one-vs-one are such matrices; so are error-correcting codes, in which code words
differ in many columns, so that a few wrong binary decisions are corrected.
"""

from widemargin.svm.code_matrix.classifier import CodeMatrixClassifier
from widemargin.svm.code_matrix.codes import code_matrix

__all__ = ["CodeMatrixClassifier", "code_matrix"]
