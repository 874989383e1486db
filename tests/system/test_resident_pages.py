import mmap
from pathlib import Path

import numpy as np

from manela.hosts.daemon.warming import drop_pages


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
