from widemargin import datasets as datasets
from widemargin import distributed as distributed
from widemargin import export as export
from widemargin import plotting as plotting
from widemargin import report as report
from widemargin import structured as structured
from widemargin._base.targets import effective_class_weight as effective_class_weight
from widemargin._base.targets import ldam_class_margin as ldam_class_margin
from widemargin.compilation import compile_all as compile_all
from widemargin.discriminant.kernel import KernelDiscriminantAnalysis as KernelDiscriminantAnalysis
from widemargin.discriminant.linear import LinearDiscriminantAnalysis as LinearDiscriminantAnalysis
from widemargin.discriminant.quadratic import (
    QuadraticDiscriminantAnalysis as QuadraticDiscriminantAnalysis,
)
from widemargin.gated.comparison import compare_students as compare_students
from widemargin.gated.difficulty import difficulty_degrees as difficulty_degrees
from widemargin.gated.early_exit import early_exit_predict as early_exit_predict
from widemargin.gated.export import StudentExport as StudentExport
from widemargin.gated.student import GatedSVC as GatedSVC
from widemargin.gated.students import GatedStudents as GatedStudents
from widemargin.imbalance import RescaledClassifier as RescaledClassifier
from widemargin.imbalance import imbalance_report as imbalance_report
from widemargin.labeltree.io import load_extreme_format as load_extreme_format
from widemargin.labeltree.io import save_extreme_format as save_extreme_format
from widemargin.labeltree.metrics import label_propensities as label_propensities
from widemargin.labeltree.metrics import ndcg_at_k as ndcg_at_k
from widemargin.labeltree.metrics import precision_at_k as precision_at_k
from widemargin.labeltree.tree import LabelTreeClassifier as LabelTreeClassifier
from widemargin.privileged.search import PrivilegedSVCCV as PrivilegedSVCCV
from widemargin.privileged.svc import PrivilegedSVC as PrivilegedSVC
from widemargin.privileged.two_view import TwoViewSVC as TwoViewSVC
from widemargin.semisupervised.classifier import PreferenceClassifier as PreferenceClassifier
from widemargin.semisupervised.preference import PreferenceSVC as PreferenceSVC
from widemargin.semisupervised.selection import PartiallyLabeledKFold as PartiallyLabeledKFold
from widemargin.semisupervised.selection import (
    precision_at_recall_scorer as precision_at_recall_scorer,
)
from widemargin.semisupervised.selection import (
    recall_at_precision_scorer as recall_at_precision_scorer,
)
from widemargin.semisupervised.transductive import TransductiveSVC as TransductiveSVC
from widemargin.svm import SVC as SVC
from widemargin.svm.code_matrix import CodeMatrixClassifier as CodeMatrixClassifier
from widemargin.svm.code_matrix import code_matrix as code_matrix
from widemargin.svm.crammer_singer import CrammerSingerSVC as CrammerSingerSVC
from widemargin.svm.linear_search import LinearSVCCV as LinearSVCCV
from widemargin.svm.linear_svc import LinearSVC as LinearSVC
from widemargin.svm.search import SVCCV as SVCCV

__version__: str

__all__ = [  # noqa: RUF022 - in the order of dir()
    "CodeMatrixClassifier",
    "CrammerSingerSVC",
    "GatedSVC",
    "GatedStudents",
    "KernelDiscriminantAnalysis",
    "LabelTreeClassifier",
    "LinearDiscriminantAnalysis",
    "LinearSVC",
    "LinearSVCCV",
    "PartiallyLabeledKFold",
    "PreferenceClassifier",
    "PreferenceSVC",
    "PrivilegedSVC",
    "PrivilegedSVCCV",
    "QuadraticDiscriminantAnalysis",
    "RescaledClassifier",
    "SVC",
    "SVCCV",
    "StudentExport",
    "TransductiveSVC",
    "TwoViewSVC",
    "__version__",
    "code_matrix",
    "compare_students",
    "compile_all",
    "datasets",
    "difficulty_degrees",
    "distributed",
    "early_exit_predict",
    "effective_class_weight",
    "export",
    "imbalance_report",
    "label_propensities",
    "ldam_class_margin",
    "load_extreme_format",
    "ndcg_at_k",
    "plotting",
    "precision_at_k",
    "precision_at_recall_scorer",
    "recall_at_precision_scorer",
    "report",
    "save_extreme_format",
    "structured",
]
