"""A release, step by step: what is checked here need not be remembered.

    python tools/release.py            # checks all, builds, installs and tries the wheel; publishes nothing
    python tools/release.py --quick    # the same without the tests

It stops at the first thing that is not in order, and ends with the commands that publish.
"""

from __future__ import annotations

import datetime
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILT = ROOT / "build" / "dist"


def main() -> None:
    """Go through the checklist."""
    is_quick = "--quick" in sys.argv[1:]
    version = find_version()
    step("the version is one of a release", bool(re.fullmatch(r"\d+\.\d+\.\d+", version)), f"it is {version}")
    step("nothing is uncommitted", run("git", "status", "--porcelain") == "", "commit or remove what there is")
    step("the branch is main", run("git", "branch", "--show-current").strip() == "main", "check out main")
    today = datetime.date.today().isoformat()
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    fragments = sorted(file.name for file in (ROOT / "changelog.d").glob("+*.md"))
    step(
        "no news fragment is left", not fragments, f"run `towncrier build --version {version}`: {', '.join(fragments)}"
    )
    step("the changelog has this release", f"## {version} ({today})" in changes, f"write '## {version} ({today})'")
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    step("CITATION.cff names it", f"version: {version}" in citation, f"write 'version: {version}'")
    for target in ("check", "docs", *(() if is_quick else ("test", "lowest", "newest"))):
        step(f"make {target}", subprocess.run(["make", target], cwd=ROOT, check=False).returncode == 0, "see above")
    [wheel], [source] = BUILT.glob("*.whl"), BUILT.glob("*.tar.gz")
    uv = str(Path(sys.executable).with_name("uv"))
    shown = run(uv, "tool", "run", "--isolated", "--from", str(wheel), "manela", "--version").strip()
    step("the wheel runs where nothing is installed", shown == f"manela {version}", f"it says {shown!r}")
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(source) as archive:
            archive.extractall(folder, filter="data")
        [unpacked] = Path(folder).iterdir()
        tests = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-x",
            "--numprocesses",
            "2",
            "--dist",
            "loadfile",
            "tests",
            "--ignore",
            "tests/e2e",
            "--ignore",
            "tests/pages",
        ]
        step(
            "the source distribution passes its own tests",
            is_quick or subprocess.run(tests, cwd=unpacked, env=own_source(unpacked), check=False).returncode == 0,
            "see above",
        )
    print("\nAll is in order. What publishes:")
    print(f"  git tag -s v{version} && git push origin v{version}")
    print(f"  twine upload {wheel.relative_to(ROOT)} {source.relative_to(ROOT)}")


def find_version() -> str:
    """The version that the package has."""
    found = re.search(r'^__version__ = "(.+)"$', (ROOT / "src" / "manela" / "__init__.py").read_text(), re.MULTILINE)
    return found[1] if found else ""


def own_source(unpacked: Path) -> dict[str, str]:
    """An environment in which the unpacked package is imported, and not that of this folder."""
    return {**os.environ, "PYTHONPATH": str(unpacked / "src"), "OMP_NUM_THREADS": "1"}


def run(*command: str) -> str:
    """What a command prints."""
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def step(what: str, is_done: bool, advice: str) -> None:
    """Say that a step is done, or end with what to do."""
    print(f"{'ok ' if is_done else 'NO '} {what}", flush=True)
    if not is_done:
        sys.exit(f"    {advice}")


if __name__ == "__main__":
    main()
