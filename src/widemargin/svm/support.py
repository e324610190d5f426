"""Methods that estimators which still inherit from SVC call; to be removed once they compose."""

from dataclasses import replace
from typing import Any

from widemargin._base.validation import validate_kernel_training
from widemargin.kernels.parameters import KernelParameters
from widemargin.svm.svc import SVC
from widemargin.svm.training import prepare_training, support_attributes


class TransitionalSVC(SVC):
    """An `SVC` with the private methods of former times."""

    def _check_training_data(self, X, y):
        return validate_kernel_training(self, X, y, self.kernel)

    def _prepare(self, X, y, sample_weight, gamma):
        return prepare_training(
            X,
            y,
            sample_weight,
            replace(KernelParameters.of(self), gamma=gamma),
            multi_class=self.multi_class,
            class_weight=self.class_weight,
            class_margin=self.class_margin,
        )

    def _effective_gamma(self, X, rows, weight, gamma):
        return replace(KernelParameters.of(self), gamma=gamma).resolve(X, rows, weight).gamma

    def _gram(self, X, order, gamma):
        return replace(KernelParameters.of(self), gamma=gamma).gram(X, order)

    def _rows_gram(self, X, gamma):
        return replace(KernelParameters.of(self), gamma=gamma).gram_of_vectors(X)

    def _call_kernel(self, X, Y) -> Any:
        return KernelParameters.of(self).call(X, Y)

    def _attributes(self, X, training, solutions):
        return support_attributes(X, training, solutions)

    def _solver_options(self):
        names = ("tol", "gap_tol", "max_iter", "shrinking")
        return {name: getattr(self, name) for name in names}

    def _single_is_enough(self):
        self._expansion.use_float32_within(self.tol)
        return self._expansion.float32
