from widemargin import datasets as datasets
from widemargin import plotting as plotting
from widemargin.svm import SVC as SVC
from widemargin.svm.svccv import SVCCV as SVCCV

__version__: str

__all__ = ["SVC", "SVCCV", "__version__", "datasets", "plotting"]
