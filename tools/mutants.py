"""Mutants: faults put into the code one at a time, each of which some test must catch.

    python tools/mutants.py            # all of them, some minutes
    python tools/mutants.py codec      # those of which the file's name holds a word

Each is put into a copy of the package, and the tests of that file are run on the copy. A mutant that lives is a fault
that no test would see: it is printed, and the status is 1.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
REFERENCE = (
    "kernels/reference.py",
    (
        "tests/kernels/test_reference.py",
        "tests/engines/rounds/test_spectral.py",
        "tests/contracts/test_walks.py",
        "tests/contracts/test_messages.py",
    ),
)
NEIGHBOURHOOD = "hosts/state/neighbourhood.py", ("tests/hosts/state/test_neighbourhood.py", "tests/hosts/test_lies.py")
CODEC = "hosts/wire/codec.py", ("tests/hosts/wire/test_codec.py",)
MESSAGE_ROUNDS = "engines/rounds/messages.py", ("tests/contracts/test_messages.py", "tests/contracts/test_engines.py")
WALK_ROUNDS = "engines/cpu.py", ("tests/contracts/test_walks.py", "tests/contracts/test_engines.py")

MUTANTS = [
    (REFERENCE, "x += learning_rate * ((labels - sigmoid(", "x -= learning_rate * ((labels - sigmoid("),
    (REFERENCE, "number = target * (1 + negatives)", "number = target * negatives"),
    (REFERENCE, "labels[:: 1 + negatives] = 1.0", "labels[: 1 + negatives] = 1.0"),
    (REFERENCE, "if end not in (node, NOWHERE):", "if end != NOWHERE:"),
    (REFERENCE, "for step in range(steps):", "for step in range(steps - 1):"),
    (REFERENCE, ">> 32 >= arcs.thresholds", ">> 32 > arcs.thresholds"),
    (REFERENCE, "others, x = shown[len(tables) - 1 - own], new[node]", "others, x = shown[own], new[node]"),
    (REFERENCE, "kept = len(targets) / sum(targets_by_hop)", "kept = 1.0"),
    (REFERENCE, "iteration % len(negatives[own])", "0"),
    (REFERENCE, "shown = [_halve(table)]", "shown = [table]"),
    (REFERENCE, "if share > MOST_OWN or", "if share >= 1.0 or"),
    (REFERENCE, "rows.append((row - share * shown[0][node]) / (1.0 - share))", "rows.append(row)"),
    (REFERENCE, "reaches = totals > 0", "reaches = totals >= 0"),
    (REFERENCE, "halves[joined] = 0.5 * (np.log(", "halves[joined] = (np.log("),
    (REFERENCE, "* np.abs(values[order]) ** 0.5 @", "* np.abs(values[order]) @"),
    (REFERENCE, "** (0.5 * (JOIN_POWER - 1.0))", "** (JOIN_POWER - 1.0)"),
    (REFERENCE, "rows += find_common(", "rows -= find_common("),
    (REFERENCE, "calm = turned / (", "calm = turned * ("),
    (REFERENCE, "turn = left @ right", "turn = right @ left"),
    (REFERENCE, "for coefficient in FILTER[2:]:", "for coefficient in FILTER[3:]:"),
    (REFERENCE, "shares[rich] -= 1.0 - shares[poor]", "shares[rich] -= shares[poor]"),
    (REFERENCE, "np.clip(z, -30.0, 30.0)", "np.clip(z, -3.0, 3.0)"),
    (NEIGHBOURHOOD, "if edge.other is None or edge.other == (edge.own, host):", "if edge.other is None:"),
    (NEIGHBOURHOOD, "[: 1 + (edge.other[1] == host)]", "[:1]"),
    (NEIGHBOURHOOD, "kept = len(sources) - 1 - last", "kept = last"),
    (NEIGHBOURHOOD, "ranks[targets[kept]], sources[kept]", "-ranks[targets[kept]], sources[kept]"),
    (NEIGHBOURHOOD, "if node[1] != peer:", "if False:"),
    (NEIGHBOURHOOD, "is_edge &= keys[positions] == wanted", "pass"),
    (NEIGHBOURHOOD, "if len(distinct) < np.count_nonzero(accepted):", "if False:"),
    (NEIGHBOURHOOD, "edges.max() < len(self.rows)", "edges.max() <= len(self.rows)"),
    (NEIGHBOURHOOD, "return values[np.sort(first)]", "return values[first]"),
    (NEIGHBOURHOOD, "* int(own[row]) for row", "for row"),
    (
        NEIGHBOURHOOD,
        "for part in (self.indptr, self.indices, self.weights):",
        "for part in (self.indptr, self.indices):",
    ),
    (CODEC, "if parsed.nodes > MOST_NODES:", "if False:"),
    (CODEC, "(np.diff(numbers) <= 0).any()", "(np.diff(numbers) < 0).any()"),
    (CODEC, "if len(parsed.askers) != len(parsed.others):", "if False:"),
    (CODEC, "if len(parsed.askers) > most:", "if len(parsed.askers) > most + 1:"),
    (CODEC, "accepted.max() > 1", "accepted.max() > 2"),
    (CODEC, "if parsed.levels not in (1, levels):", "if parsed.levels > levels:"),
    (CODEC, "if len(rows) > most:", "if len(rows) > most + 1:"),
    (CODEC, "if c.isprintable()", "if c"),
    (CODEC, "text[:_LONGEST_PROGRAM]", "text"),
    (CODEC, 'squares.to_bytes(16, "little")', 'squares.to_bytes(16, "big")'),
    (CODEC, "_pack(matrix[np.tril_indices(", "_pack(matrix[np.triu_indices("),
    (CODEC, 'raise TermsError("lock-step must be False', 'return TermsError("lock-step must be False'),
    (MESSAGE_ROUNDS, "self.shown[len(self.shown) - 1 - own],", "self.shown[own],"),
    (MESSAGE_ROUNDS, "reversed(list(enumerate(self.shown)))", "list(enumerate(self.shown))"),
    (MESSAGE_ROUNDS, "self.updates[nodes] += made", "self.updates[nodes] = made"),
    (MESSAGE_ROUNDS, "blocks = min(BLOCKS, schedule.most_iterations)", "blocks = 1"),
    (MESSAGE_ROUNDS, "key = np.uint64(derive(self._keys[0], round))", "key = np.uint64(derive(self._keys[0], 0))"),
    (MESSAGE_ROUNDS, "counts, nodes = counts[nodes], nodes + among.start", "counts, nodes = counts[nodes], nodes"),
    (MESSAGE_ROUNDS, "pairs += int(made.sum())", "pairs = int(made.sum())"),
    (WALK_ROUNDS, "self.updates[nodes] += made", "self.updates[nodes] = made"),
    (WALK_ROUNDS, "tables[own], tables[len(tables) - 1 - own],", "tables[own], tables[own],"),
    (WALK_ROUNDS, "key = np.uint64(derive(self._key, round))", "key = np.uint64(derive(self._key, 0))"),
    (WALK_ROUNDS, "np.linspace(0, len(nodes), self._settings", "np.linspace(0, len(nodes) - 1, self._settings"),
    (WALK_ROUNDS, "nodes[first:last], moved[first:last], table", "nodes[first:last], moved[first:last], moved"),
    (
        WALK_ROUNDS,
        "nodes[first:last], counts[first:last], tables[own]",
        "nodes[first:last], counts[:last], tables[own]",
    ),
]
"""The file with its tests, what stands there once, and what is put in its place."""


def main() -> int:
    """Try the mutants; 1 if one lives."""
    chosen = [one for one in MUTANTS if not sys.argv[1:] or any(word in one[0][0] for word in sys.argv[1:])]
    alive = 0
    with tempfile.TemporaryDirectory() as folder:
        # with times and compiled kernels, so that only what a mutant changes is compiled again
        shutil.copytree(ROOT / "src" / "manela", Path(folder) / "manela")
        for number, ((name, tests), before, after) in enumerate(chosen, 1):
            is_caught = _try(Path(folder), name, tests, before, after)
            alive += not is_caught
            print(
                f"{number:3}/{len(chosen)} {'caught' if is_caught else 'LIVES '} {name}: {before} -> {after}",
                flush=True,
            )
    print(f"{len(chosen) - alive} of {len(chosen)} mutants were caught")
    return 1 if alive else 0


def _try(folder: Path, name: str, tests: tuple[str, ...], before: str, after: str) -> bool:
    """Return whether a test fails, or the process crashes, with the mutant."""
    path = folder / "manela" / name
    text, times = path.read_text(encoding="utf-8"), path.stat()
    if text.count(before) != 1:
        raise SystemExit(
            f"{name}: {before!r} stands there {text.count(before)} times, and must once: correct this script"
        )
    path.write_text(text.replace(before, after), encoding="utf-8")
    try:
        command = [sys.executable, "-B", "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
        environment = {**os.environ, "PYTHONPATH": str(folder)}
        status = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=False).returncode
        if status > 1:
            raise SystemExit(f"{name}: pytest ended with status {status} rather than with a verdict")
        return status != 0
    finally:
        path.write_text(text, encoding="utf-8")
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


if __name__ == "__main__":
    sys.exit(main())
