"""Fits on a cluster that fails: an error that names it, and no process that is left."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

distributed = pytest.importorskip("distributed")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL on Windows"),
]

PREAMBLE = """
    import os, sys, threading, time
    import numpy as np
    import dask.array as da
    import distributed
    from widemargin import LinearSVC
    from widemargin.distributed import DaskEstimator

    def fit(n=40_000, d=40):
        random = da.random.default_rng(0)
        X = random.normal(size=(n, d), chunks=(2_500, d))
        y = (X.sum(axis=1) + random.normal(size=n, chunks=2_500) > 0.0).astype(int)
        return DaskEstimator(LinearSVC(loss="hinge", C=0.01, verbose=1)).fit(X, y)
"""


def start(body):
    """Run a script in a session of its own, so that its processes can be listed."""
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(PREAMBLE) + textwrap.dedent(body)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def processes_of(session):
    """Return the processes of a session that are running."""
    listed = subprocess.run(["ps", "-e", "-o", "sid=,pid=,stat="], capture_output=True, text=True)
    rows = [line.split() for line in listed.stdout.splitlines()]
    return [int(pid) for sid, pid, state in rows if int(sid) == session and "Z" not in state]


def assert_none_left(session, seconds=60.0):
    until = time.monotonic() + seconds
    while (left := processes_of(session)) and time.monotonic() < until:
        time.sleep(0.5)
    assert not left, left


def finish(process, seconds=180):
    """Return the outputs of a script, whose processes must all end."""
    try:
        out, err = process.communicate(timeout=seconds)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert_none_left(process.pid)
    return out, err


def wait_for(process, text):
    """Read lines until one contains the text."""
    for line in process.stdout:
        if text in line:
            return line
    raise AssertionError(process.stderr.read())


@pytest.mark.skipif(not os.path.exists("/proc"), reason="needs ps with sessions")
def test_ctrl_c_ends_a_fit_and_its_workers():
    process = start("""
        if __name__ == "__main__":
            with (
                distributed.LocalCluster(
                    n_workers=2, threads_per_worker=1, dashboard_address=":0"
                ) as cluster,
                distributed.Client(cluster),
            ):
                try:
                    while True:
                        fit()
                except KeyboardInterrupt:
                    print("interrupted", flush=True)
    """)
    wait_for(process, "round 1 ")
    process.send_signal(signal.SIGINT)
    out, err = finish(process)
    assert "interrupted" in out, err
    assert process.returncode == 0


def test_a_lost_scheduler_is_an_error():
    process = start("""
        if __name__ == "__main__":
            import asyncio, multiprocessing

            def serve(pipe):
                async def run():
                    async with distributed.Scheduler(dashboard=False, port=0) as scheduler:
                        pipe.send(scheduler.address)
                        await scheduler.finished()
                asyncio.run(run())

            here, there = multiprocessing.Pipe()
            scheduler = multiprocessing.get_context("fork").Process(target=serve, args=[there])
            scheduler.start()
            address = here.recv()
            import subprocess

            worker = subprocess.Popen(
                [sys.executable, "-m", "distributed.cli.dask_worker", address, "--nthreads", "1",
                 "--no-dashboard", "--death-timeout", "5"]
            )
            with distributed.Client(address, timeout=60) as client:
                client.wait_for_workers(1, timeout=60)
                fit()
                killer = threading.Timer(0.5, scheduler.kill)
                killer.start()
                try:
                    while True:
                        fit()
                except (OSError, distributed.client.FuturesCancelledError) as error:
                    print("lost:", type(error).__name__, error, flush=True)
            worker.wait(60)
    """)
    out, err = finish(process)
    assert "lost:" in out, err[-3000:]


def test_a_worker_out_of_memory_is_an_error():
    process = start("""
        if __name__ == "__main__":
            with (
                distributed.LocalCluster(
                    n_workers=1, threads_per_worker=1, dashboard_address=":0",
                    memory_limit=400_000_000,
                ) as cluster,
                distributed.Client(cluster),
            ):
                X = da.ones((200_000, 1_000), chunks=(200_000, 1_000))  # 1.6 GB in a partition
                y = da.arange(200_000, chunks=200_000) % 2
                try:
                    DaskEstimator(LinearSVC()).fit(X, y)
                except distributed.scheduler.KilledWorker as error:
                    print("KilledWorker", flush=True)
    """)
    out, err = finish(process)
    assert "KilledWorker" in out, err[-3000:]
    assert process.returncode == 0
