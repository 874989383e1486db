import subprocess
import sys

import pytest

HEAVY = ("numba", "sklearn", "matplotlib", "torch", "ray", "grpc", "scipy")


@pytest.mark.parametrize(
    "code", ["import manela", "from manela.cli.main import run; run(['--help'])", "from manela.cli.main import run"]
)
def test_nothing_heavy_is_loaded(code):
    check = f"{code}; import sys; print('loaded:', [name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert "loaded: []" in done.stdout


def test_every_public_name_can_be_had():
    import manela

    assert all(getattr(manela, name) is not None for name in manela.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Word2Vec'"):
        manela.Word2Vec  # noqa: B018
