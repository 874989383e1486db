"""Open files that are kept back for saving."""

import asyncio
import errno
import os
import subprocess
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest

from manela.errors import OutputError
from manela.hosts.daemon import saving
from manela.hosts.daemon.saving import Reserve, Saver
from manela.hosts.folder import vectors as vectors_file
from manela.hosts.folder.vectors import VectorsFile
from manela.hosts.state.host import Saved


class Learning:
    """A host whose state is the number of its round."""

    def __init__(self):
        self.round, self.can_be_saved, self.saves = 0, True, 0

    def save(self):
        self.saves += 1
        return Saved(["a"], np.zeros((1, 1, 4), np.float32), self.round, self.round, 0, "messages")


@pytest.fixture
def saver(tmp_path):
    reserve = Reserve()
    yield Saver(tmp_path, reserve, 2.0)
    reserve.close()


@pytest.fixture
def clock(monkeypatch):
    """A list of one number, the time."""
    now = [1000.0]
    monkeypatch.setattr(saving, "time", SimpleNamespace(monotonic=lambda: now[0]))
    return now


@pytest.fixture
def disk(monkeypatch):
    """A disk that is full while `disk["full"]`."""
    write, state = vectors_file.write_arrays, {"full": False}

    def write_to_disk(*arguments):
        if state["full"]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(*arguments)

    monkeypatch.setattr(vectors_file, "write_arrays", write_to_disk)
    return state


def saved_round(folder):
    saved = VectorsFile(folder).load()
    return None if saved is None else saved.round


def test_rounds_are_saved_now_and_then(saver, clock, tmp_path):
    async def learn():
        host, rounds = Learning(), []
        for host.round, seconds in enumerate((0.0, 0.1, 0.1, 0.1)):
            clock[0] += seconds
            saver.save_if_due(host)
            await saver.wait()
            rounds.append(saved_round(tmp_path))
        return rounds

    assert asyncio.run(learn()) == [0, 0, 0, 3]
    assert saver.load().round == 3


def test_a_state_is_saved_after_a_save_that_has_begun(saver, tmp_path):
    async def learn():
        host = Learning()
        saver.save_if_due(host)
        host.round = 1
        await saver.save(host)

    asyncio.run(learn())
    assert saved_round(tmp_path) == 1


def test_a_failed_save_is_retried_after_pauses_that_double_up_to_the_longest(saver, clock, disk, tmp_path, caplog):
    caplog.set_level("INFO", "manela.daemon")

    async def learn():
        host, tries = Learning(), []
        disk["full"] = True
        await saver.save(host)
        assert "No space left on device" in saver.trouble
        for pause in (0.5, 1.0, 2.0, 2.0):
            for seconds in (pause - 0.01, 0.01):
                clock[0] += seconds
                before = host.saves
                saver.retry_if_due(host)
                await saver.wait()
                tries.append(host.saves > before)
        disk["full"] = False
        clock[0] += 2.0
        saver.retry_if_due(host)
        await saver.wait()
        clock[0] += 9.0
        before = host.saves
        saver.retry_if_due(host)
        assert host.saves == before  # nothing is wrong any more
        return tries

    assert asyncio.run(learn()) == [False, True] * 4
    assert saver.trouble == ""
    assert saved_round(tmp_path) == 0
    assert [record.getMessage() for record in caplog.records] == ["not saved", "saved again"]


def test_the_last_save_raises_and_leaves_out_a_state_in_the_middle_of_a_round(saver, disk, tmp_path):
    host = Learning()
    host.can_be_saved = False
    saver.save_now(host)
    assert saved_round(tmp_path) is None
    host.can_be_saved, disk["full"] = True, True
    with pytest.raises(OutputError):
        saver.save_now(host)
    disk["full"] = False
    saver.save_now(host)
    assert saved_round(tmp_path) == 0


def test_there_are_files_to_open_while_something_is_saved_whoever_has_taken_all():
    # in a process of its own, whose limit can be lowered
    code = """
import os, resource, sys
from manela.hosts.daemon.saving import Reserve, allow_many_files
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 256))
assert allow_many_files() == 256
reserve = Reserve()
taken = []
try:
    while True:
        taken.append(os.open(os.devnull, os.O_RDONLY))
except OSError as error:
    print(error.errno)
with reserve.lend():
    os.close(os.open(os.devnull, os.O_RDONLY))
    print("saved")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=240)
    assert done.stdout.split() == [str(errno.EMFILE), "saved"]


def test_what_was_lent_is_taken_again_and_closed():
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    reserve = Reserve()
    with reserve.lend():
        pass
    assert len(os.listdir("/proc/self/fd")) == before + 16  # noqa: PTH208
    reserve.close()
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


def test_nobody_waits_for_whoever_saves():
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    reserve, order = Reserve(), []
    with reserve.lend():

        def look():
            with reserve.lend():
                order.append("looked")

        other = threading.Thread(target=look)
        other.start()
        other.join(30.0)
        order.append("saved")
    assert order == ["looked", "saved"]
    assert len(os.listdir("/proc/self/fd")) == before + 16  # noqa: PTH208
    reserve.close()
