"""Support vector machines and structured SVMs with a scikit-learn API.

Every public name is available here and imported on first use, so that ``import widemargin`` alone
takes little time. To add a name, add a line to ``_HOMES`` and the import to ``__init__.pyi``.
"""

import threading
from importlib import import_module

__version__ = "0.1.0"

_HOMES = {
    "CodeMatrixClassifier": "svm.code_matrix",
    "CrammerSingerSVC": "svm.crammer_singer",
    "GatedSVC": "gated.student",
    "GatedStudents": "gated.students",
    "KernelDiscriminantAnalysis": "discriminant.kernel",
    "LabelTreeClassifier": "labeltree.tree",
    "LinearDiscriminantAnalysis": "discriminant.linear",
    "LinearSVC": "svm.linear_svc",
    "LinearSVCCV": "svm.linear_search",
    "PartiallyLabeledKFold": "semisupervised.selection",
    "PreferenceClassifier": "semisupervised.classifier",
    "PreferenceSVC": "semisupervised.preference",
    "PrivilegedSVC": "privileged.svc",
    "PrivilegedSVCCV": "privileged.search",
    "QuadraticDiscriminantAnalysis": "discriminant.quadratic",
    "RescaledClassifier": "imbalance",
    "SVC": "svm",
    "SVCCV": "svm.search",
    "StudentExport": "gated.export",
    "TransductiveSVC": "semisupervised.transductive",
    "TwoViewSVC": "privileged.two_view",
    "code_matrix": "svm.code_matrix",
    "compare_students": "gated.comparison",
    "compile_all": "compilation",
    "difficulty_degrees": "gated.difficulty",
    "early_exit_predict": "gated.early_exit",
    "effective_class_weight": "_base.targets",
    "imbalance_report": "imbalance",
    "label_propensities": "labeltree.metrics",
    "ldam_class_margin": "_base.targets",
    "load_extreme_format": "labeltree.io",
    "ndcg_at_k": "labeltree.metrics",
    "precision_at_k": "labeltree.metrics",
    "precision_at_recall_scorer": "semisupervised.selection",
    "recall_at_precision_scorer": "semisupervised.selection",
    "save_extreme_format": "labeltree.io",
}
_SUBPACKAGES = ("datasets", "distributed", "export", "plotting", "report", "structured")

__all__ = ["__version__", *_HOMES, *_SUBPACKAGES]


# Modules with import cycles, as scikit-learn has, can fail to import in two threads at once.
_lock = threading.RLock()


def __getattr__(name):
    with _lock:
        if name in _HOMES:
            value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
            globals()[name] = value
            return value
        if name in _SUBPACKAGES:
            return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted(__all__)
