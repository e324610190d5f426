"""Fixtures of the tests of ensembles."""

import pytest
from tests.structured.ensembles.cases import ENSEMBLES


@pytest.fixture(params=ENSEMBLES, ids=str)
def kind(request):
    return request.param
