"""Many fits in one process leave nothing behind: no memory, no files, no threads."""

import gc
import os
import threading
from pathlib import Path

import pytest
from tests.faults.test_killed_fits import FITS, fit

# Fits, and how many come before the first measurement, by when all code is loaded.
SOAK = int(os.environ.get("WIDEMARGIN_SOAK", "200"))
WARM_UP = 2 * len(FITS)


def resident_megabytes():
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux's /proc")
def test_memory_is_flat_over_many_mixed_fits(tmp_path, record_property):
    names, path = list(FITS), tmp_path / "state"
    measured, threads, opened = [], 0, 0
    for number in range(max(SOAK, 2 * WARM_UP)):
        model = fit(names[number % len(names)], path if number % 2 else None)
        model.predict(FITS[names[number % len(names)]]()[1][0])
        del model
        for file in tmp_path.iterdir():
            file.unlink()
        if number >= WARM_UP and (number - WARM_UP) % len(names) == 0:
            measured.append(resident_megabytes())
            if not threads:
                threads, opened = threading.active_count(), len(os.listdir("/proc/self/fd"))
    record_property("memory in MB after every round of fits", measured)
    assert measured[-1] - measured[0] < 10.0, measured
    assert threading.active_count() <= threads
    assert len(os.listdir("/proc/self/fd")) <= opened
