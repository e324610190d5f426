from widemargin import datasets as datasets
from widemargin import plotting as plotting
from widemargin.svm import SVC as SVC

__version__: str

__all__ = ["SVC", "__version__", "datasets", "plotting"]
