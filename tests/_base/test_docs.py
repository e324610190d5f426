"""Shared parameter descriptions."""

import pytest

from widemargin._base.docs import shared_docs


def test_a_description_takes_the_indentation_of_its_line():
    @shared_docs
    class Estimator:
        """Summary.

        Parameters
        ----------
        <<degree>>
        """

        def predict(self, X):
            """Predict.

            Parameters
            ----------
            <<X>>
            """

    assert "        degree : int, default=3\n            Degree of the 'poly'" in Estimator.__doc__
    assert "<<" not in Estimator.predict.__doc__
    assert "            X : {array-like" in Estimator.predict.__doc__


def test_an_unknown_name_is_an_error():
    def function():
        """Summary.

        <<nonsense>>
        """

    with pytest.raises(KeyError, match="nonsense"):
        shared_docs(function)
