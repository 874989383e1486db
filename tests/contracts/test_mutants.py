"""The faults that tools/mutants.py puts into the code can still be put there."""

import importlib.util
from pathlib import Path

import pytest

import manela

SCRIPT = Path(__file__).parents[2] / "tools" / "mutants.py"
spec = importlib.util.spec_from_file_location("mutants", SCRIPT)
mutants = importlib.util.module_from_spec(spec)
spec.loader.exec_module(mutants)


@pytest.mark.parametrize("mutant", mutants.MUTANTS, ids=lambda mutant: f"{mutant[0][0]}: {mutant[1]}")
def test_what_a_mutant_replaces_stands_in_its_file_once(mutant):
    (file, tests), old, new = mutant
    assert (Path(manela.__file__).parent / file).read_text(encoding="utf-8").count(old) == 1
    assert new != old
    assert all((SCRIPT.parents[1] / test).exists() for test in tests)
