"""A process that is killed while it saves leaves a whole model file: the old or the new one."""

import random
import subprocess
import sys

import pytest

from widemargin.export import inspect, load

SAVE_FOREVER = """
import itertools, sys
from sklearn.datasets import make_classification
from widemargin import LinearSVC
from widemargin.export import save

X, y = make_classification(200, 50, random_state=0)
models = [LinearSVC(C=C).fit(X, y) for C in (0.1, 1.0)]
for round in itertools.count():
    save(models[round % 2], sys.argv[1], metadata={"round": round})
    print(flush=True)
"""


@pytest.mark.slow
def test_a_process_killed_at_any_moment_of_a_save_leaves_a_whole_model(tmp_path):
    path, rng, rounds = tmp_path / "model.skops", random.Random(0), set()
    for _ in range(200):
        writer = subprocess.Popen(
            [sys.executable, "-c", SAVE_FOREVER, str(path)], stdout=subprocess.PIPE
        )
        with writer:
            writer.stdout.readline()
            with pytest.raises(subprocess.TimeoutExpired):
                writer.wait(rng.uniform(0, 0.1))
            writer.kill()
        found = inspect(path)
        assert load(path).get_params()["C"] == [0.1, 1.0][found.metadata["round"] % 2]
        rounds.add(found.metadata["round"])
    assert len(rounds) > 1
