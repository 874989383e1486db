"""Daemons of which the first lies: `python hostile_daemon.py ATTACK FOLDER …`; all else of it is as of any other.

What they need is loaded once, and then each is a process of its own. They end when standard input does.
"""

import os
import sys
import traceback
from dataclasses import replace
from pathlib import Path

import numpy as np

from manela.hosts.daemon.daemon import run
from manela.hosts.daemon.warming import warm_up
from manela.hosts.folder.config import FILE, read_config
from manela.hosts.state.messages import SMOOTH, SWEEP
from manela.hosts.state.rounds import MessageHost
from manela.hosts.transport import rpc  # noqa: F401
from manela.kernels.moments import Moments, measure

ATTACKS = (
    "norm 3", "norm 10", "norm 999", "constant", "differing", "claims", "mid-run", "equivocation", "smoothing", "sweeps"
)  # fmt: skip


def draw(rows, norm, seed):
    """Random rows of a norm, the same for the same seed."""
    drawn = np.random.default_rng(seed).normal(size=rows.shape)
    return (norm * drawn / np.linalg.norm(drawn, axis=-1, keepdims=True)).astype(rows.dtype)


def lie(attack, host, peer, shown, count):
    """What is shown in place of the truth."""
    rows, length = shown.rows, shown.rows.shape[-1]
    if attack.startswith("norm"):
        return replace(shown, rows=draw(rows, float(attack.split()[1]), 1))
    if attack == "constant":
        return replace(shown, rows=np.full_like(rows, 999 / np.sqrt(length)))
    if attack == "differing":
        return replace(shown, rows=draw(rows, 3, count))
    if attack == "claims":  # of its size, of its nodes' strengths, and of its moments, in turns
        lies = [measure(np.full((1000, len(of.total)), 7.9)) for of in shown.moments]
        if count % 2:
            lies = [Moments(2**31 - 1, of.total, of.products) for of in shown.moments]
        return replace(shown, moments=lies, strengths=np.full(len(shown.strengths), 1e112 if count % 3 else 1.01))
    if attack == "mid-run" and host.round > 8:
        lies = [measure(draw(np.zeros((1000, len(of.total))), 20, 2)) for of in shown.moments]
        return replace(shown, rows=draw(rows, 10, 1), moments=lies, strengths=np.full(len(rows), 1e-5))
    if attack in ("smoothing", "sweeps") and shown.step.phase == {"smoothing": SMOOTH, "sweeps": SWEEP}[attack]:
        return replace(shown, rows=(-2 * rows.astype(np.float32)).astype(rows.dtype))
    if attack == "equivocation":
        return replace(shown, rows=draw(rows, 3, sum(peer.encode())))
    return shown


def lie_always(attack):
    """Have the host of this process lie from now on."""
    answer, counts = MessageHost.answer, iter(range(10**9))

    def answer_falsely(host, peer, request):
        return lie(attack, host, peer, answer(host, peer, request), next(counts))

    MessageHost.answer = answer_falsely


def start(folder, attack=None):
    """Start the daemon of a folder; returns its process id."""
    process = os.fork()
    if process:
        return process
    status = 1
    try:
        if attack is not None:
            lie_always(attack)
        run(Path(folder), while_stdin=True)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def main():
    attack, liar, *honest = sys.argv[1:]
    warm_up(read_config(Path(liar) / FILE).terms(1))
    for process in [start(liar, attack), *map(start, honest)]:
        os.waitpid(process, 0)


if __name__ == "__main__":
    main()
