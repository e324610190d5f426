from widemargin import datasets as datasets
from widemargin import plotting as plotting
from widemargin.svm import SVC as SVC
from widemargin.svm.crammer_singer import CrammerSingerSVC as CrammerSingerSVC
from widemargin.svm.linear import LinearSVC as LinearSVC
from widemargin.svm.linear import LinearSVCCV as LinearSVCCV
from widemargin.svm.svccv import SVCCV as SVCCV

__version__: str

__all__ = [  # noqa: RUF022 - in the order of dir()
    "CrammerSingerSVC",
    "LinearSVC",
    "LinearSVCCV",
    "SVC",
    "SVCCV",
    "__version__",
    "datasets",
    "plotting",
]
