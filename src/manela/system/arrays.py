"""Reads and writes arrays as .npz, without a second copy in memory and always as the same bytes."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from manela.errors import FormatError

_PIECE = 1 << 22
"""Bytes that are written or hashed at once; larger takes more memory."""
_EPOCH = (1980, 1, 1, 0, 0, 0)


def write_arrays(file: BinaryIO, arrays: Mapping[str, npt.NDArray[Any]], notes: Mapping[str, Any], name: str) -> None:
    """Write arrays, and notes as JSON under `name`, with the SHA-256 of each array among the notes."""
    sums: dict[str, str] = {}
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for key, array in arrays.items():
            sums[key] = _write(archive, key, array)
        text = json.dumps({**notes, "sha256": sums}, ensure_ascii=False, sort_keys=True)
        _write(archive, name, np.array(text))


def read_arrays(path: Path, name: str) -> tuple[dict[str, npt.NDArray[Any]], dict[str, Any]]:
    """Read what `write_arrays` wrote; every array is checked against its SHA-256."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            if name not in archive.files:
                raise FormatError(f"{path}: must hold {name!r}, got {', '.join(archive.files) or 'nothing'}")
            notes = json.loads(str(archive[name]))
            arrays = {key: archive[key] for key in archive.files if key != name}
        for key, digest in notes.pop("sha256").items():
            if _digest(arrays[key]) != digest:
                raise FormatError(f"{path}: is damaged: {key!r} does not have the SHA-256 that was written with it")
    except FormatError:
        raise
    except FileNotFoundError:
        raise FormatError(f"{path}: no such file") from None
    except Exception as error:
        # NumPy takes what is not an archive for a pickle, and gives advice that nobody should follow
        is_pickle = "pickle" in str(error)
        reason = "it is not an archive of only numbers and texts" if is_pickle else error or type(error).__name__
        raise FormatError(f"{path}: is damaged or not a file of manela: {reason}") from error
    return arrays, notes


def _write(archive: zipfile.ZipFile, key: str, array: npt.NDArray[Any]) -> str:
    sha = hashlib.sha256()
    entry = zipfile.ZipInfo(f"{key}.npy", date_time=_EPOCH)
    with archive.open(entry, "w", force_zip64=True) as member:
        header = {"descr": np.lib.format.dtype_to_descr(array.dtype), "fortran_order": False, "shape": array.shape}
        np.lib.format.write_array_header_1_0(member, header)
        for piece in _pieces(array):
            member.write(piece)
            sha.update(piece)
    return sha.hexdigest()


def _digest(array: npt.NDArray[Any]) -> str:
    sha = hashlib.sha256()
    for piece in _pieces(array):
        sha.update(piece)
    return sha.hexdigest()


def _pieces(array: npt.NDArray[Any]) -> Iterator[bytes]:
    """Yield an array's bytes in pieces, so that no second copy of all is made."""
    if array.ndim == 0:
        yield array.tobytes()
        return
    step = max(1, _PIECE // max(1, array[:1].nbytes))
    for first in range(0, len(array), step):
        yield array[first : first + step].tobytes()
