"""scikit-learn's own checks of estimators."""

from sklearn.utils.estimator_checks import check_param_validation, parametrize_with_checks
from tests.suites.registry import CASES, each_case

EXCLUDED = {str(case): case.excluded_checks for case in CASES}


@parametrize_with_checks(
    [case.estimator for case in CASES],
    expected_failed_checks=lambda estimator: EXCLUDED[repr(estimator).replace("\n", "")],
)
def test_scikit_learn_accepts(estimator, check):
    check(estimator)


@each_case(lambda case: True)
def test_every_parameter_is_validated(case):
    check_param_validation(type(case.estimator).__name__, case.new())
