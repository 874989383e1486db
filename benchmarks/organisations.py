"""Three organisations with mail, CSV and a Postfix log that learn alone, and then invite each other as documented."""

import csv
import json
import mailbox
import subprocess
import sys
import time
from email.message import EmailMessage
from email.utils import format_datetime, localtime
from pathlib import Path
from typing import Any

import numpy as np

from manela import read_embedding
from manela.formats.datasets import planted_partition
from manela.hosts.daemon.process import make_command
from manela.hosts.federation import free_ports, split_graph
from manela.hosts.folder.home import read_status
from manela.hosts.state.neighbourhood import Edge

NAMES = ("alpha.example", "beta.example", "gamma.example")
GROUPS = 4
LONGEST = 300.0
"""Seconds after which hosts that have not settled are given up."""
QUIET = 5.0
"""Seconds without a change after which hosts have settled; they look for newer starts every two."""


class Organisations:
    """Three homes, each with a part of a network of communities, that is read from where such organisations keep it."""

    def __init__(self, folder: Path, seed: int, nodes: int = 300) -> None:
        self.graph, self.groups = planted_partition(nodes, GROUPS, inside=10, outside=2, seed=seed)
        hosts = [NAMES[part] for part in np.random.default_rng(seed).permutation(nodes) % len(NAMES)]
        self.pieces, self.numbers = split_graph(self.graph, hosts)
        self.homes = {name: folder / name for name in NAMES}
        self.sizes = {name: hosts.count(name) for name in NAMES}
        self._sources = {
            name: write(folder, name, self.pieces[name]) for name, write in zip(NAMES, _WRITERS, strict=True)
        }
        self._daemons: list[subprocess.Popen[bytes]] = []
        for name, port in zip(NAMES, free_ports(len(NAMES)), strict=True):
            _agent("init", name, "--listen", f"127.0.0.1:{port}", home=self.homes[name])

    def learn_and_meet(self) -> tuple[float, float]:
        """Learn alone, then together; return the share across hosts of both."""
        for name in NAMES:
            self._import(name)
            self._run(name)
        self._settle()
        before = self.across()
        for name in NAMES:
            line = _agent("invite", home=self.homes[name]).strip()
            for other in NAMES:
                if other != name:
                    _agent("peer", "add", line, "--nodes", str(self.sizes[name]), home=self.homes[other])
        for name in NAMES:  # edges with hosts that were no peers have waited
            self._import(name)
        self._settle(peers=2)
        return before, self.across()

    def across(self) -> float:
        """Of the ten nearest at other organisations, the share that is of the own community."""
        vectors = np.zeros((len(self.groups), 128), np.float32)
        homes = np.empty(len(self.groups), object)
        for name, home in self.homes.items():
            _agent("export", str(home / "vectors-out.npz"), home=home)
            part = read_embedding(home / "vectors-out.npz")
            rows = [self.numbers[node, name] for node in part.nodes.tolist()]
            vectors[rows], homes[rows] = part.vectors, name
        units = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-30)
        cosines = np.where(homes[:, None] == homes, -2.0, units @ units.T)
        nearest = np.argsort(-cosines, axis=1)[:, :10]
        return float((self.groups[nearest] == self.groups[:, None]).mean())

    def stop(self) -> None:
        """End the daemons."""
        for daemon in self._daemons:
            daemon.terminate()
        for daemon in self._daemons:
            daemon.wait()

    def _import(self, name: str) -> None:
        _agent("edges", "import", *self._sources[name], home=self.homes[name])

    def _run(self, name: str) -> None:
        command, environment = make_command(self.homes[name])
        with (self.homes[name] / "log.jsonl").open("a") as log:
            self._daemons.append(subprocess.Popen(command, env=environment, stdout=log, stderr=log))

    def _settle(self, peers: int = 0) -> None:
        """Wait until all are done, know so many peers, and nothing has changed for a while."""
        ended, last, since = time.monotonic() + LONGEST, None, time.monotonic()
        while time.monotonic() - since < QUIET:
            found = [read_status(home) for home in self.homes.values()]
            now = [(status.get("state"), status.get("round"), status.get("frame")) for status in found]
            met = [sum(peer["edges_agreed"] > 0 for peer in status.get("peers", {}).values()) for status in found]
            if now != last or min(met) < peers or any(state != "done" for state, *_ in now):
                last, since = now, time.monotonic()
            if time.monotonic() > ended:
                raise TimeoutError(json.dumps(now))
            time.sleep(0.1)


def _agent(*arguments: str, home: Path) -> str:
    """Run a command of an operator, and return what it prints."""
    command = [sys.executable, "-m", "manela", "agent", *arguments, "--home", str(home)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _write_mail(folder: Path, name: str, edges: list[Edge]) -> list[str]:
    """Write a mailbox in which the two ends of each edge have written to each other."""
    box, number = mailbox.mbox(folder / "mail.mbox"), 0
    for edge in edges:
        if edge.other is not None:
            own, other = f"{edge.own}@{name}", "@".join(edge.other)
            for sender, recipient in ((own, other), (other, own)):
                number += 1
                message = EmailMessage()
                message["From"], message["To"], message["Message-ID"] = sender, recipient, f"<{number}@{name}>"
                message["Date"] = format_datetime(localtime())
                box.add(message)
    box.close()
    return ["mail", str(folder / "mail.mbox"), "--domain", name]


def _write_csv(folder: Path, _: str, edges: list[Edge]) -> list[str]:
    """Write the edges of a host as a file."""
    with (folder / "edges.csv").open("w", newline="") as file:
        writer: Any = csv.writer(file)
        for edge in edges:
            writer.writerow([edge.own] if edge.other is None else [edge.own, "@".join(edge.other)])
    return ["file", str(folder / "edges.csv")]


def _write_log(folder: Path, name: str, edges: list[Edge]) -> list[str]:
    """Write a log of Postfix, which has delivered mail in both directions."""
    lines, at, number = [], time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime()), 0
    for edge in edges:
        if edge.other is not None:
            own, other = f"{edge.own}@{name}", "@".join(edge.other)
            for sender, recipient in ((own, other), (other, own)):
                number += 1
                queue = f"4{number:06X}"
                lines.append(f"{at} mx postfix/qmgr[7]: {queue}: from=<{sender}>, size=9, nrcpt=1 (queue active)")
                lines.append(
                    f"{at} mx postfix/smtp[8]: {queue}: to=<{recipient}>, relay=mx[1.2.3.4]:25, status=sent (ok)"
                )
                lines.append(f"{at} mx postfix/qmgr[7]: {queue}: removed")
    (folder / "mail.log").write_text("\n".join(lines) + "\n")
    return ["mail-log", str(folder / "mail.log"), "--domain", name]


_WRITERS = (_write_mail, _write_csv, _write_log)
