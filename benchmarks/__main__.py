"""Run benchmarks by name; each prints a table."""

import argparse
import importlib
import os
import platform
from pathlib import Path

from manela.system.threads import count_cores

NAMES = (
    "startup",
    "quality",
    "defaults",
    "frontier",
    "messages",
    "speed",
    "memory",
    "scaling",
    "reading",
    "mail",
    "database",
    "newcomers",
    "nearest",
    "map",
    "answers",
    "walks",
    "links",
    "complexity",
    "hosts",
    "frames",
    "soak",
    "privacy",
    "lies",
    "sybils",
    "gpu",
    "cluster",
)
_BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"


def main() -> None:
    """Parse the names and run."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of {', '.join(NAMES)}; all by default")
    names = parser.parse_args().names or NAMES
    unknown = sorted(set(names) - set(NAMES))
    if unknown:
        parser.error(f"no benchmark is called {unknown[0]!r}; there are {', '.join(NAMES)}")
    if "MANELA_DATA" not in os.environ and _BESIDE.is_dir():
        os.environ["MANELA_DATA"] = str(_BESIDE)
    print(f"{platform.system()} {platform.machine()}, {count_cores()} cores, Python {platform.python_version()}")
    for name in names:
        print(f"\n## {name}\n", flush=True)
        importlib.import_module(f"benchmarks.{name}").main()


main()
