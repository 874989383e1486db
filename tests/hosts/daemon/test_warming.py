"""A daemon that keeps its memory small: nothing that is used may get lost."""

import mmap
import subprocess
import sys
from pathlib import Path

import numpy as np

from manela.hosts.daemon.warming import drop_pages

CODE = """
import ctypes, json, sqlite3, zlib
import numpy as np
from manela.hosts.daemon.warming import drop_code, keep_memory_small

calls, system = [], ctypes.CDLL
if hasattr(ctypes.CDLL(None), "mallopt"):
    class Library(ctypes.CDLL):
        def __getattr__(self, name):
            found = super().__getattr__(name)
            self.__dict__[name] = lambda *values: calls.append(found(*values))
            return self.__dict__[name]
    ctypes.CDLL = Library
keep_memory_small()
keep_memory_small()
matrix = np.arange(10_000.0).reshape(100, 100)
before = (matrix @ matrix).sum(), zlib.crc32(matrix.tobytes())
ctypes.CDLL = system
drop_code()
after = (matrix @ matrix).sum(), zlib.crc32(matrix.tobytes())
assert sqlite3.connect(":memory:").execute("SELECT 1 + 1").fetchone() == (2,)
print(json.dumps([before == after, all(answer == 1 for answer in calls), len(calls)]))
"""


def test_pages_of_code_come_back_when_they_are_needed_and_the_system_takes_every_option():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() in ("[true, true, 6]", "[true, true, 0]")  # 0 where there is no glibc


def resident(name):
    """Kilobytes of a file's pages that are mapped into this process."""
    found, inside = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        head, *rest = line.split()
        if not head.endswith(":"):
            inside = len(rest) >= 5 and name in rest[4]
        elif inside and head == "Rss:":
            found += int(rest[0])
    return found


def map_pages(path, **access):
    path.write_bytes(bytes(range(256)) * 16 * 256)
    with path.open("r+b") as file:
        return mmap.mmap(file.fileno(), 0, **access)


def test_pages_are_given_back_and_nothing_is_lost(tmp_path):
    path = tmp_path / "pages"
    with map_pages(path, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ) as mapped:
        array = np.frombuffer(mapped, np.uint8)
        before = int(array.sum())
        assert resident(path.name) >= 1024
        drop_pages(lambda name: path.name in name)
        assert resident(path.name) == 0
        assert int(array.sum()) == before
        del array


def test_pages_that_are_shared_stay(tmp_path):
    path = tmp_path / "shared"
    with map_pages(path, access=mmap.ACCESS_WRITE) as mapped:
        assert sum(mapped[:]) > 0
        drop_pages(lambda name: path.name in name)
        assert resident(path.name) >= 1024


def test_what_was_written_privately_stays(tmp_path):
    path = tmp_path / "written"
    path.write_bytes(bytes(1 << 20))
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE) as mapped:
        mapped[5] = 9
        drop_pages(lambda name: "written" in name)
        assert mapped[5] == 9
