"""Every function in src says in a line what it does."""

import ast
from pathlib import Path

import manela

HELP = {"cli/main.py: _options"}
"""Functions whose docstrings would be printed as help."""


def find_functions(tree):
    """Yield the functions of a module and of its classes, but not those within functions."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
        else:
            yield from find_functions(node)


def test_every_function_has_a_docstring():
    package = Path(manela.__file__).parent
    silent = {
        f"{path.relative_to(package)}: {function.name}"
        for path in package.rglob("*.py")
        for function in find_functions(ast.parse(path.read_text(encoding="utf-8")))
        if not ast.get_docstring(function) and not function.name.startswith("__")
    }
    assert silent == HELP
