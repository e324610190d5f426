"""The core machines."""

from widemargin.svm.svc import SVC

__all__ = ["SVC"]
