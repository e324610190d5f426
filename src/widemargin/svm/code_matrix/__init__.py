"""Several classes by binary machines: code matrices, and how their answers are put together.

A code matrix has a row (a code word) for every class and a column for every machine. A machine
is trained to tell the classes with +1 in its column from those with -1 and does not see those with
0. One-vs-rest and one-vs-one are such matrices; so are error-correcting codes, in which code
words differ in many places, so that a few wrong machines do no harm.
"""

from widemargin.svm.code_matrix.classifier import CodeMatrixClassifier
from widemargin.svm.code_matrix.codes import code_matrix

__all__ = ["CodeMatrixClassifier", "code_matrix"]
