import re
import subprocess
import sys
from pathlib import Path

import pytest

import manela

HEAVY = ("numba", "sklearn", "matplotlib", "torch", "ray", "grpc", "scipy")


@pytest.mark.parametrize(
    "code", ["import manela", "from manela.cli.main import run; run(['--help'])", "from manela.cli.main import run"]
)
def test_nothing_heavy_is_loaded(code):
    check = f"{code}; import sys; print('loaded:', [name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert "loaded: []" in done.stdout


def test_every_public_name_can_be_had():
    assert all(getattr(manela, name) is not None for name in manela.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Word2Vec'"):
        manela.Word2Vec  # noqa: B018


ROOMS = {
    "google": ("hosts/wire",),
    "grpc": ("hosts/transport",),
    "grpc_health": ("hosts/transport",),
    "cryptography": ("hosts/folder",),
    "ray": ("engines/ray",),
    "torch": ("engines/gpu", "engines/engine.py"),
    "triton": ("engines/gpu",),
}
"""Where libraries may be imported by name, which the import contracts do not see."""


@pytest.mark.parametrize("library", sorted(ROOMS))
def test_a_library_that_is_imported_by_name_is_so_in_its_room_only(library):
    source = Path(manela.__file__).parent
    files = [
        path.relative_to(source).as_posix()
        for path in source.rglob("*.py")
        if re.search(rf"""import_(?:extra|module)\(\s*f?["']{library}[."']""", path.read_text(encoding="utf-8"))
    ]
    assert files
    assert all(file.startswith(ROOMS[library]) for file in files), files
