"""A pytest plugin that puts a class of ours in the place of one of scikit-learn's.

Loaded with ``-p tests.adopted.swap --swap sklearn.svm.SVC=widemargin.SVC``, before the test
modules that import the replaced name.
"""

from importlib import import_module


def pytest_addoption(parser):
    parser.addoption("--swap", metavar="THEIRS=OURS", help="dotted names of the two classes")


def pytest_configure(config):
    theirs, ours = config.getoption("--swap").split("=")
    their_module, their_name = theirs.rsplit(".", 1)
    our_module, our_name = ours.rsplit(".", 1)
    setattr(import_module(their_module), their_name, getattr(import_module(our_module), our_name))
