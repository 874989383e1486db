"""A daemon that lies: `python hostile_daemon.py ATTACK FOLDER`; everything else of it is as of any other."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from manela.agents.daemon import run
from manela.agents.message_host import MessageHost
from manela.kernels.moments import Moments, measure

ATTACKS = ("norm 3", "norm 10", "norm 999", "constant", "differing", "claims", "mid-run", "equivocation")


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
    if attack == "equivocation":
        return replace(shown, rows=draw(rows, 3, sum(peer.encode())))
    return shown


def main():
    attack, folder = sys.argv[1:]
    answer, counts = MessageHost.answer, iter(range(10**9))

    def answer_falsely(host, peer, request):
        shown = answer(host, peer, request)
        return shown if host.name == "a" else lie(attack, host, peer, shown, next(counts))

    MessageHost.answer = answer_falsely
    run(Path(folder), while_stdin=True)


if __name__ == "__main__":
    main()
