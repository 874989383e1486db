"""The reference of Python, whose signatures say what a parameter is by default."""

import inspect
from pathlib import Path

import griffe
import pytest

import manela

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", ["Manela", "DeepWalk", "Node2Vec", "ProNE", "NetMF"])
def test_signatures_show_the_values_of_defaults(name):
    extensions = griffe.load_extensions(f"{ROOT / 'docs' / 'hooks.py'}:RealDefaults")
    package = griffe.load("manela", search_paths=[ROOT / "src"], extensions=extensions, resolve_aliases=True)
    shown = {parameter.name: str(parameter.default) for parameter in package[name].parameters}
    expected = inspect.signature(getattr(manela, name)).parameters.values()
    assert {parameter.name: shown[parameter.name] for parameter in expected} == {
        parameter.name: repr(parameter.default) for parameter in expected
    }
