"""Shared parameter descriptions."""

import re
from collections import defaultdict

import pytest
from sklearn.utils.metaestimators import available_if

from widemargin._base.docs import DESCRIPTIONS, shared_docs


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


def test_methods_that_are_not_plain_functions_get_descriptions():
    @shared_docs
    class Estimator:
        @available_if(lambda self: True)
        def predict_proba(self, X):
            """Predict.

            <<X>>
            """

        @classmethod
        def from_samples(cls, X):
            """Create.

            <<X>>
            """

    assert "X : {array-like" in Estimator.predict_proba.__doc__
    assert "X : {array-like" in Estimator.from_samples.__doc__


def test_an_unknown_name_is_an_error():
    def function():
        """Summary.

        <<nonsense>>
        """

    with pytest.raises(KeyError, match="nonsense"):
        shared_docs(function)


def test_no_description_is_written_twice():
    sections = defaultdict(list)
    for name, text in DESCRIPTIONS.items():
        for entry in re.split(r"\n(?=\S)", text):
            # One line below the name may be the same by chance.
            if entry.strip().count("\n") >= 2:
                sections[" ".join(entry.split())].append(name)
    assert [names for names in sections.values() if len(names) > 1] == []
