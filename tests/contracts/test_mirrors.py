"""Every module has tests of its own: `src/manela/a/b.py` has `tests/a/test_b.py`, or a line here names others."""

import ast
import importlib
import re
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
SOURCE = TESTS.parent / "src" / "manela"

TESTED_BY = {
    "agents/shown_rows": "agents/test_message_host.py",
    "agents/smoothing_phase": "agents/test_message_host.py",
    "agents/start_phase": "agents/test_message_host.py",
    "agents/walk_answering": "agents/test_walk_host.py",
    "agents/walk_drawing": "agents/test_walk_host.py",
    "agents/warming": "agents/test_daemon.py",
    "cli/agent_edges": "cli/test_agent.py",
    "cli/agent_peers": "cli/test_agent.py",
    "cli/datasets": "cli/test_main.py",
    "cli/federate": "cli/test_agent.py",
    "cli/import_": "cli/test_import.py",
    "cli/info": "cli/test_main.py",
    "cli/mail_sources": "cli/test_import.py",
    "cli/map": "e2e/test_map.py",
    "cli/reproduce": "reports/test_report.py",
    "cli/serve": "e2e/test_answers.py",
    "cli/similar": "cli/test_main.py",
    "datasets/loading": "datasets/test_catalogue.py",
    "engines/cluster/engine": "e2e/test_cluster.py",
    "engines/cluster/message_worker": "engines/test_message_worker.py",
    "engines/cluster/messages": "e2e/test_cluster.py",
    "engines/cluster/walk_worker": "engines/test_walk_worker.py",
    "engines/cluster/walks": "e2e/test_cluster.py",
    "engines/cluster/worker": "engines/test_walk_worker.py",
    "engines/cpu": "contracts/test_engines.py",
    "engines/engine": "engines/test_training.py",
    "engines/gpu/card": "engines/test_gpu.py",
    "engines/gpu/engine": "engines/test_gpu.py",
    "engines/gpu/messages": "contracts/test_messages.py",
    "engines/gpu/neighbours": "contracts/test_messages.py",
    "engines/gpu/planning": "engines/test_gpu.py",
    "engines/gpu/walks": "contracts/test_walks.py",
    "engines/message_rounds": "contracts/test_messages.py",
    "engines/messages": "contracts/test_messages.py",
    "engines/threaded": "contracts/test_engines.py",
    "engines/walk_rounds": "engines/test_walk_worker.py",
    "engines/walks": "contracts/test_embedders.py",
    "estimators/baseline": "contracts/test_embedders.py",
    "estimators/deepwalk": "contracts/test_embedders.py",
    "estimators/embedder": "contracts/test_embedders.py",
    "estimators/learning": "estimators/test_manela.py",
    "estimators/node2vec": "contracts/test_embedders.py",
    "estimators/skip_gram": "contracts/test_embedders.py",
    "formats/vector_arrays": "formats/test_embeddings.py",
    "formats/vector_database": "formats/test_embeddings.py",
    "formats/vector_text": "formats/test_embeddings.py",
    "index": "test_nearest.py",
    "kernels/gpu_messages": "contracts/test_messages.py",
    "kernels/gpu_neighbours": "contracts/test_messages.py",
    "kernels/gpu_walks": "contracts/test_walks.py",
    "kernels/hosts": "agents/test_walk_plan.py",
    "kernels/messages": "contracts/test_messages.py",
    "kernels/nearest": "test_nearest.py",
    "kernels/received": "agents/test_trust.py",
    "kernels/simd": "kernels/test_cpu.py",
    "reports/experiments/classification": "reports/test_report.py",
    "reports/experiments/links": "reports/test_report.py",
    "reports/experiments/relationship": "reports/test_report.py",
    "reports/experiments/sweep": "reports/test_report.py",
    "reports/experiments/tuned": "reports/test_report.py",
    "reports/experiments/visualisation": "reports/test_report.py",
    "reports/paper": "reports/test_report.py",
    "sources/correspondence": "sources/test_mail.py",
    "sources/query": "sources/test_sql.py",
    "sources/source": "contracts/test_sources.py",
}
"""What tests a module that has no file of tests of its own."""


def list_modules():
    """The modules of the package, as `a/b`."""
    return sorted(
        path.relative_to(SOURCE).with_suffix("").as_posix()
        for path in SOURCE.rglob("*.py")
        if path.stem not in ("__init__", "__main__") and not path.stem.endswith("_pb2")
    )


def find_mirror(module):
    folder, _, name = module.rpartition("/")
    return TESTS / folder / f"test_{name}.py"


def as_import(module):
    return "manela." + module.replace("/", ".")


@cache
def list_imports(path):
    """All that a file imports, wherever in it: modules, and names as `module.name`."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


@cache
def list_public_names(module):
    """The functions and classes that a module defines for others."""
    tree = ast.parse((SOURCE / f"{module}.py").read_text(encoding="utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return {node.name for node in tree.body if isinstance(node, kinds) and not node.name.startswith("_")}


def list_commands(module):
    """The names of the commands, and of groups of commands, that a module of the command line defines."""
    from manela.cli.main import app

    defined = importlib.import_module(as_import(module))
    groups = [value for value in vars(defined).values() if type(value).__name__ == "Typer"]
    found, waiting = set(), [app]
    while waiting:
        group = waiting.pop()
        for command in group.registered_commands:
            if command.callback.__module__ == defined.__name__:
                found.add(command.name or command.callback.__name__.replace("_", "-"))
        for below in group.registered_groups:
            waiting.append(below.typer_instance)
            if below.typer_instance in groups:
                found.add(below.name)
    return found


def list_reached(path):
    """The source files that a file of tests names: its own mirror, what it imports, and whose public names it uses."""
    named = set(re.findall(r"\bmanela(?:\.\w+)+", path.read_text(encoding="utf-8"))) | list_imports(path)
    own = path.relative_to(TESTS).with_name(path.name.removeprefix("test_")).with_suffix("").as_posix()
    exported = {name.removeprefix("manela.") for name in named if name.count(".") == 1}
    found = set()
    for module in list_modules():
        if module == own or as_import(module) in named or list_public_names(module) & exported:
            found.add(SOURCE / f"{module}.py")
    packages = {file.parent for file in SOURCE.rglob("__init__.py")} - {SOURCE}
    return found | {folder / "__init__.py" for folder in packages if as_import(_name(folder)) in named}


def names_module(module, path):
    """Whether a file of tests, or a file of cases that it imports, names a module or how it is reached.

    That is by its import path, by a public name of it, by a module that imports it, or by the name of its command.
    """
    for file in (path, *_find_cases(path)):
        reached = list_reached(file)
        if SOURCE / f"{module}.py" in reached:
            return True
        if any(as_import(module) in list_imports(other) for other in reached):
            return True
        text = file.read_text(encoding="utf-8")
        if module.startswith("cli/") and any(f'"{name}"' in text for name in list_commands(module)):
            return True
    return False


def _name(path):
    return path.relative_to(SOURCE).as_posix()


def _find_cases(path):
    """The files beside a file of tests that it imports, such as `engine_cases`."""
    return [path.parent / f"{name}.py" for name in list_imports(path) if (path.parent / f"{name}.py").exists()]


def test_every_module_has_a_mirror_or_a_line_and_not_both():
    modules = list_modules()
    assert len(modules) > 100  # they were found at all
    assert [module for module in modules if not find_mirror(module).exists() and module not in TESTED_BY] == []
    assert [module for module in modules if find_mirror(module).exists() and module in TESTED_BY] == []


def test_no_line_names_a_module_that_does_not_exist():
    assert sorted(set(TESTED_BY) - set(list_modules())) == []


@pytest.mark.parametrize(("module", "file"), TESTED_BY.items(), ids=TESTED_BY)
def test_a_file_that_a_line_names_exists_and_tests_something_of_the_module(module, file):
    path = TESTS / file
    assert path.is_file()
    assert re.search(r"^(async )?def test_", path.read_text(encoding="utf-8"), re.MULTILINE)
    assert names_module(module, path), f"{file} names neither {as_import(module)} nor how it is reached"


def test_a_file_that_has_nothing_to_do_with_a_module_does_not_name_it():
    assert not names_module("kernels/gpu_walks", TESTS / "test_progress.py")
    assert not names_module("cli/map", TESTS / "cli" / "test_tune.py")
    assert not names_module("reports/experiments/sweep", TESTS / "agents" / "test_limits.py")
