"""The file in which a host keeps its vectors."""

import numpy as np
import pytest

from manela.errors import AgentError
from manela.hosts.folder.vectors import VectorsFile
from manela.hosts.state.host import Saved


def test_vectors_come_back_and_damage_is_told(tmp_path):
    file = VectorsFile(tmp_path)
    assert file.load() is None
    vectors = np.random.default_rng(0).normal(size=(2, 1, 4)).astype(np.float32)
    file.save(Saved(["x", "ÿ y"], vectors, 3, 7, 99, "walks", 2, 5, {"beta": 4}))
    found = file.load()
    assert (found.names, found.round, found.version, found.pairs) == (["x", "ÿ y"], 3, 7, 99)
    assert (found.exchange, found.falls_at, found.more, found.taught) == ("walks", 2, 5, {"beta": 4})
    assert file.path.stat().st_mode & 0o777 == 0o600
    np.testing.assert_array_equal(found.vectors, vectors)
    content = file.path.read_bytes()
    for wrong in (content[:-100], content[:200], b"", content.replace("ÿ".encode(), b"__")):
        file.path.write_bytes(wrong)
        with pytest.raises(AgentError):
            file.load()


def test_smoothed_vectors_are_kept_beside_those_to_go_on_from(tmp_path):
    vectors = np.ones((2, 1, 4), np.float32)
    saved = Saved(["x", "y"], vectors, 3, 7, 99, falls_at=2, smoothed=vectors[:, 0] * 2, whole=np.array([True, False]))
    VectorsFile(tmp_path).save(saved)
    loaded = VectorsFile(tmp_path).load()
    assert (loaded.round, loaded.falls_at) == (3, 2)
    np.testing.assert_array_equal(loaded.vectors, vectors)
    np.testing.assert_array_equal(loaded.smoothed, saved.smoothed)
    assert loaded.whole.tolist() == [True, False]
