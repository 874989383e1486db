"""Arrays in a file: the same bytes for the same arrays, and damage is seen."""

import io
import json
import zipfile

import numpy as np
import pytest

from manela.errors import FormatError
from manela.system.arrays import read_arrays, write_arrays


def write(path, given, notes=None, name="run"):
    with path.open("wb") as file:
        write_arrays(file, given, notes or {}, name)
    return path


ARRAYS = {
    "matrix": np.arange(12, dtype=np.float32).reshape(3, 4),
    "fortran": np.asfortranarray(np.arange(6).reshape(2, 3)),
    "strided": np.arange(20)[::3],
    "empty": np.zeros(0, np.int64),
    "no columns": np.zeros((3, 0), np.float32),
    "number": np.array(7.5),
    "words": np.array(["a", "ünd"]),
    "bits": np.array([True, False]),
    "big": np.array([1, 2], ">i4"),
}


def test_arrays_and_notes_come_back(tmp_path):
    found, notes = read_arrays(write(tmp_path / "x.npz", ARRAYS, {"round": 3, "ü": [None, 0.5]}), "run")
    assert notes == {"round": 3, "ü": [None, 0.5]}
    assert list(found) == list(ARRAYS)
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].dtype == array.dtype
        assert found[name].shape == array.shape


def test_no_arrays_and_no_notes_come_back(tmp_path):
    assert read_arrays(write(tmp_path / "x.npz", {}), "run") == ({}, {})


def test_arrays_of_many_pieces_come_back(tmp_path):
    array = np.random.default_rng(0).normal(size=(90_000, 9))  # 6 MiB, which are read 4 at a time
    found, _ = read_arrays(write(tmp_path / "x.npz", {"a": array, "row": array[:, :1]}), "run")
    np.testing.assert_array_equal(found["a"], array)


def test_numpy_reads_the_file_too(tmp_path):
    with np.load(write(tmp_path / "x.npz", ARRAYS)) as archive:
        np.testing.assert_array_equal(archive["matrix"], ARRAYS["matrix"])


def test_the_same_arrays_are_the_same_bytes_however_they_lie_in_memory(tmp_path):
    one = write(tmp_path / "a.npz", ARRAYS, {"b": 1, "a": 2}).read_bytes()
    copies = {name: np.array(array, order="C") for name, array in ARRAYS.items()}
    assert write(tmp_path / "b.npz", copies, {"a": 2, "b": 1}).read_bytes() == one


@pytest.mark.parametrize("seed", range(20))
def test_no_flipped_bit_goes_unseen(tmp_path, seed):
    path = write(tmp_path / "x.npz", {"a": np.arange(50.0)}, {"round": 3})
    content = bytearray(path.read_bytes())
    bit = int(np.random.default_rng(seed).integers(8 * len(content)))
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)
    try:
        found, notes = read_arrays(path, "run")
    except FormatError as error:
        assert "x.npz" in str(error)
    else:  # a bit of the archive that says nothing of its content
        np.testing.assert_array_equal(found["a"], np.arange(50.0))
        assert notes == {"round": 3}


def test_an_array_that_was_put_in_the_place_of_another_is_told_by_its_name(tmp_path):
    notes = {"sha256": {"a": "0" * 64}}
    np.savez(tmp_path / "x.npz", a=np.arange(3), run=np.array(json.dumps(notes)))
    with pytest.raises(FormatError, match="is damaged: 'a' does not have the SHA-256"):
        read_arrays(tmp_path / "x.npz", "run")


def test_an_array_that_was_removed_is_seen(tmp_path):
    notes = {"sha256": {"a": "0" * 64}}
    np.savez(tmp_path / "x.npz", run=np.array(json.dumps(notes)))
    with pytest.raises(FormatError, match="is damaged or not a file of manela"):
        read_arrays(tmp_path / "x.npz", "run")


def test_notes_of_another_name_are_told_with_what_is_there(tmp_path):
    write(tmp_path / "x.npz", {"a": np.zeros(1)}, name="host")
    with pytest.raises(FormatError, match="must hold 'run', got a, host"):
        read_arrays(tmp_path / "x.npz", "run")
    with zipfile.ZipFile(tmp_path / "empty.npz", "w"):
        pass
    with pytest.raises(FormatError, match="must hold 'run', got nothing"):
        read_arrays(tmp_path / "empty.npz", "run")


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x05\x06"])
def test_what_is_no_archive_is_told(tmp_path, content):
    (tmp_path / "x.npz").write_bytes(content)
    with pytest.raises(FormatError, match="is damaged or not a file of manela"):
        read_arrays(tmp_path / "x.npz", "run")


def test_a_file_that_is_not_there_is_told(tmp_path):
    with pytest.raises(FormatError, match="x.npz: no such file"):
        read_arrays(tmp_path / "x.npz", "run")


def test_objects_are_never_unpickled(tmp_path):
    buffer = io.BytesIO()
    np.savez(buffer, a=np.array([{}], dtype=object), run=np.array('{"sha256": {}}'), allow_pickle=True)
    (tmp_path / "x.npz").write_bytes(buffer.getvalue())
    with pytest.raises(FormatError, match="it is not an archive of only numbers and texts"):
        read_arrays(tmp_path / "x.npz", "run")
