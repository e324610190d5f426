"""What tests get: figures that need no screen, and the same random cases, or else new ones."""

import os
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import settings

os.environ["MPLBACKEND"] = "Agg"

# A case may wait for a compilation or a busy machine, so no deadline is fair.
settings.register_profile("compiled", deadline=None, derandomize=True)
# `make test-slow` looks further, each time elsewhere.
settings.register_profile(
    "random", deadline=None, derandomize=False, max_examples=300, print_blob=True
)
settings.register_profile("interpreted", settings.get_profile("compiled"), max_examples=10)
settings.load_profile("interpreted" if os.environ.get("NUMBA_DISABLE_JIT") == "1" else "compiled")


@pytest.fixture(autouse=True)
def close_figures():
    """Figures that stay open are too many in the end, in whichever test that is."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


# Measured by the tests of the packages alone: tracing these too would take minutes.
NOT_TRACED = {"adopted", "benchmarks", "suites", "tools", "test_docs.py"}


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.relative_to(Path(__file__).parent).parts[0] in NOT_TRACED:
            item.add_marker("no_cover")


def pytest_terminal_summary(terminalreporter):
    """Print how many faults were tried: tests record them as properties "faults: <kind>"."""
    counts = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", None) == "call":
                for name, number in report.user_properties:
                    counts[name] += number if name.startswith("faults: ") else 0
    for name, number in sorted(counts.items()):
        if number:
            terminalreporter.write_line(f"{name}: {number} tried")
