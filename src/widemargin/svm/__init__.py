"""Support vector classifiers: kernel, linear, multi-class, and their searches."""

from widemargin.svm.svc import SVC

__all__ = ["SVC"]
