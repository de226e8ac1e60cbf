"""Forks, threads and Ctrl-C."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from lookalike import Collection, Index, LookalikeError, dedup, join, sign

TEXTS = [f"text number {i} has some words of its own, and others it shares" for i in range(3000)]
PATIENCE = 60


def work(_=None):
    rows = sign(TEXTS)
    near = Index.build(rows, "multi").range_search(rows, 20)[2].sum()
    return int(near), len(join(rows, 20)[0]), len(dedup(TEXTS).kept)


def in_fork(call):
    """What a call says in a forked child; a child that hangs fails the test and is ended."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(write, repr(call()).encode())
        except BaseException as error:
            os.write(write, f"failed: {error!r}".encode())
        os._exit(0)
    os.close(write)
    late = threading.Timer(PATIENCE, os.kill, (child, signal.SIGKILL))
    late.start()
    with os.fdopen(read, "rb") as said:
        answer = said.read().decode()
    _, status = os.waitpid(child, 0)
    late.cancel()
    assert status == 0, "the child hung"
    return answer


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_has_threads_of_its_own():
    wanted = repr(work())
    assert in_fork(work) == wanted
    assert in_fork(lambda: in_fork(work)) == repr(wanted)
    with multiprocessing.get_context("fork").Pool(3) as pool:
        assert [repr(of) for of in pool.map_async(work, range(4)).get(PATIENCE)] == [wanted] * 4


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_opens_collections_again(tmp_path):
    documents = {str(row): text for row, text in enumerate(TEXTS)}
    collection = Collection.create(tmp_path / "c")
    collection.add(documents)

    def refused():
        with pytest.raises(LookalikeError, match="open it again"):
            collection.search(TEXTS[0], radius=3)
        return "refused"

    assert in_fork(refused) == "'refused'"

    def again():
        with Collection.open(tmp_path / "c", read_only=True) as reader:
            return [hit.id for hit in reader.search(TEXTS[7], nearest=1)]

    assert in_fork(again) == "['7']"
    collection.close()

    def write():
        with Collection.open(tmp_path / "c") as writer:
            writer.remove(["7"])
            return len(writer)

    assert in_fork(write) == str(len(TEXTS) - 1)


def test_threads_share_everything():
    rows = sign(TEXTS)
    index = Index.build(rows)
    wanted = index.range_search(rows, 20)
    wrong = []

    def ask():
        for _ in range(3):
            got = index.range_search(sign(TEXTS), 20)
            wrong.extend(1 for a, b in zip(got, wanted) if not np.array_equal(a, b))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not wrong


def test_the_lock_is_let_go():
    """Another thread counts while this one works."""
    rows = np.random.default_rng(1).integers(0, 256, (200_000, 32), dtype=np.uint8)
    index = Index.build(rows, "scan")
    counted, done = [0], threading.Event()

    def count():
        while not done.is_set():
            counted[0] += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    started = time.monotonic()
    index.search(rows[:1000], 3)
    took = time.monotonic() - started
    done.set()
    thread.join()
    assert counted[0] > took * 50


INTERRUPTED = {
    "sign": "lookalike.sign(itertools.repeat('some words of a text, over and over ' * 50))",
    "generator": "lookalike.dedup(itertools.repeat('some words of a text, over and over ' * 50))",
    "range_search": "lookalike.Index.build(rows, 'scan').range_search(numpy.tile(rows, (20, 1)), 40)",
    "join": "lookalike.join(rows, 60)",
    "graph": "lookalike.Index.build(numpy.tile(rows, (4, 1)) ^ noise, 'graph', recall=0.9)",
}


@pytest.mark.parametrize("call", INTERRUPTED)
def test_ctrl_c_is_heard(call):
    script = f"""
import itertools, lookalike, numpy
random = numpy.random.default_rng(1)
rows = random.integers(0, 256, (300_000, 32), dtype=numpy.uint8)
noise = random.integers(0, 256, (1_200_000, 32), dtype=numpy.uint8) if {call!r} == "graph" else None
print("ready", flush=True)
try:
    {INTERRUPTED[call]}
    print("done")
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout.readline() == "ready\n"
        time.sleep(1)
        started = time.monotonic()
        child.send_signal(signal.SIGINT)
        assert child.stdout.readline() == "interrupted\n"
        assert time.monotonic() - started < 15
        assert child.wait(PATIENCE) == 0
    finally:
        child.kill()
        child.wait()
