"""A process that is killed while it saves leaves a whole model file: the old or the new one."""

import os
import subprocess
import sys

import pytest

# Children are forked, since starting Python takes longer than a hundred saves.
KILL_AT_RANDOM = """
import itertools, os, random, signal, sys, time
from sklearn.datasets import make_classification
from widemargin import LinearSVC
from widemargin.export import inspect, load, save

path, rng, seen = sys.argv[1], random.Random(0), set()
X, y = make_classification(200, 50, random_state=0)
models = [LinearSVC(C=C).fit(X, y) for C in (0.1, 1.0)]
start = time.perf_counter()
for _ in range(4):
    save(models[0], path, metadata={"round": 0})
longest = time.perf_counter() - start
for attempt in range(200):
    child = os.fork()
    if child == 0:
        for round in itertools.count(1000 * attempt + 1):
            save(models[round % 2], path, metadata={"round": round})
    time.sleep(rng.uniform(0.0, longest))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    round = inspect(path).metadata["round"]
    assert load(path).C == (0.1, 1.0)[round % 2]
    seen.add(round)
print(len(seen))
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked on this system")
def test_a_process_killed_at_any_moment_of_a_save_leaves_a_whole_model(tmp_path):
    result = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", KILL_AT_RANDOM, str(tmp_path / "model.skops")],
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    assert int(result.stdout) > 20
