"""Open files that are kept back for saving."""

import errno
import os
import subprocess
import sys
import threading

from manela.hosts.daemon.saving import Reserve


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
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == [str(errno.EMFILE), "saved"]


def test_what_was_lent_is_taken_again_and_closed():
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    reserve = Reserve()
    with reserve.lend():
        pass
    assert len(reserve._held) == 16
    reserve.close()
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


def test_nobody_waits_for_whoever_saves():
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
    assert len(reserve._held) == 16
    reserve.close()
