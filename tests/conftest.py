"""What tests share: where the real networks are, and Hypothesis's profile."""

import io
import os
import signal
import subprocess
import sys
import warnings
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

from manela.errors import ManelaWarning
from manela.formats import datasets as catalogue

settings.register_profile(
    "manela",
    deadline=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("manela")

# without a card Triton's kernels are interpreted; this must stand before they are imported
if not Path("/dev/nvidiactl").exists():
    os.environ.setdefault("TRITON_INTERPRET", "1")

# Ray runs its workers at the lowest priority, where tests beside them leave them next to no time
os.environ.setdefault("RAY_worker_niceness", "0")

# gRPC, which Ray brings, would end processes that tests fork from one that has used it
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

# a shell starts what runs in its background with Ctrl-C ignored, which processes of tests would inherit
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

_BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"


def pytest_addoption(parser):
    parser.addoption("--rewrite", action="store_true", help="write the traces of tests/hosts/transcripts as they are")


def pytest_collection_modifyitems(items):
    """Run those with processes of their own first: they wait much, and the longest must not begin last."""
    items.sort(key=lambda item: not {"e2e", "reproduction"} & set(item.path.parts))


@pytest.fixture
def real(monkeypatch):
    """A function that gives the path of a published network, or skips the test where no folder has it."""
    given = os.environ.get("MANELA_DATA")
    folders = [Path(given)] if given else []
    folders += [_BESIDE, catalogue.cache_folder()]

    def find(name):
        dataset = catalogue.find(name)
        for folder in folders:
            if (folder / dataset.file).is_file():
                monkeypatch.setenv("MANELA_DATA", str(folder))
                return folder / dataset.file
        return pytest.skip(f"{dataset.file} is neither in MANELA_DATA, nor in ../shared/data, nor in the cache")

    return find


@pytest.fixture
def manela():
    """The command, in a process of its own; returns the finished process."""

    def run(*arguments, **options):
        command = [sys.executable, "-m", "manela", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False, **options)

    return run


@pytest.fixture
def manela_here(monkeypatch):
    """The command in this process, for the many ways in which it can be misused; returns what a process would."""
    from manela.cli import main

    def run(*arguments, cwd=None):
        out, err = io.StringIO(), io.StringIO()
        with monkeypatch.context() as context, redirect_stdout(out), redirect_stderr(err), warnings.catch_warnings():
            if cwd is not None:
                context.chdir(cwd)
            warnings.simplefilter("always", ManelaWarning)
            warnings.showwarning = main.show_warning
            status = main.run([str(one) for one in arguments])
        return subprocess.CompletedProcess(arguments, status, out.getvalue(), err.getvalue())

    return run
