"""Federation: a network split over real daemons on this machine."""

from __future__ import annotations

import atexit
import csv
import io
import random
import secrets
import signal
import socket
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from manela.data.embedding import Embedding
from manela.data.graph import Graph
from manela.errors import FormatError, ParameterError, PeerError, import_extra
from manela.hosts.daemon.process import make_command
from manela.hosts.daemon.warming import warm_up
from manela.hosts.folder.config import Config
from manela.hosts.folder.home import TRACE, export, init, read_status
from manela.hosts.folder.identity import CERTIFICATE, read_certificate
from manela.hosts.folder.store import Store
from manela.hosts.folder.trace import read_disclosures
from manela.hosts.state.names import Node, check_host_name
from manela.hosts.state.neighbourhood import Edge
from manela.hosts.state.terms import PeerOptions, read_table
from manela.system.files import open_private, replace_file

_LONGEST_START = 120.0
_LONGEST_STOP = 10.0
_PORTS = range(20_000, 30_000)
"""Ports of daemons: above those that Ray's workers take, and below those that systems assign to connections."""
_reserved: list[socket.socket] = []
"""UDP sockets of the ports that this process has chosen, open until it ends."""


@atexit.register
def _release() -> None:
    """Close the reserved sockets."""
    for reserved in _reserved:
        reserved.close()


def split_graph(graph: Graph, hosts: Sequence[str]) -> tuple[dict[str, list[Edge]], dict[Node, int]]:
    """Return the edges of each host, where hosts[i] is the host of node i, and each node's row in the network."""
    names = [str(node) for node in graph.nodes.tolist()]
    nodes = list(zip(names, hosts, strict=True))
    if len(set(nodes)) < len(nodes):
        twice = next(node for node, times in Counter(nodes).items() if times > 1)
        raise FormatError(f"node ids must differ as text on each host, but {twice[0]!r}: rename one of them")
    pieces: dict[str, list[Edge]] = {host: [] for host in sorted(set(hosts))}
    indptr, indices = graph.indptr.tolist(), graph.indices.tolist()
    weights = [1.0] * len(indices) if graph.weights is None else graph.weights.tolist()
    for row, (name, host) in enumerate(nodes):
        edges = pieces[host]
        if indptr[row] == indptr[row + 1]:
            edges.append(Edge(name, None))
        edges.extend(Edge(name, nodes[indices[arc]], weights[arc]) for arc in range(indptr[row], indptr[row + 1]))
    return pieces, {node: row for row, node in enumerate(nodes)}


def assign(graph: Graph, hosts: int, by: str, seed: int) -> list[str]:
    """Return a host for each node, chosen `random`, by `community`, or by a file of lines `node host`."""
    if by not in ("random", "community"):
        return _read_assignment(graph, Path(by))
    if not 1 <= hosts <= graph.number_of_nodes:
        raise ParameterError(f"hosts must be 1 to {graph.number_of_nodes:,}, the number of nodes, got {hosts}")
    if by == "random":
        parts = np.random.default_rng(seed).permutation(np.arange(graph.number_of_nodes) % hosts)
    else:
        parts = _pack(_find_communities(graph), hosts)
    return [f"host{part + 1}" for part in parts.tolist()]


@dataclass(frozen=True)
class Member:
    """One host of a federation."""

    name: str
    home: Path
    address: str


class Federation:
    """Real daemons on this machine; `running` starts them and stops them at the end of its block."""

    def __init__(
        self,
        graph: Graph,
        hosts: Sequence[str],
        folder: Path,
        parameters: dict[str, Any],
        *,
        lock_step: bool = False,
        seed: int = 0,
        trace: bool = False,
        first_vectors: str | None = None,
        **options: Any,
    ) -> None:
        self.graph, self.folder, self._trace = graph, folder, trace
        pieces, self.numbers = split_graph(graph, hosts)
        # all hosts have one operator, and of a dense network every node may be a neighbour of each peer
        self.config = Config(
            name="host", listen="127.0.0.1:0", parameters=parameters, weighted=graph.is_weighted,
            start=first_vectors, seed=seed if lock_step else None,
            peers=read_table(PeerOptions, {"start": _LONGEST_START, "share": 1.0, **options}, "peers")
        )  # fmt: skip
        sizes = Counter(hosts)
        warm_up(self.config.terms(0))
        self.members = []
        for port, (name, edges) in zip(free_ports(len(pieces)), pieces.items(), strict=True):
            member = Member(check_host_name(name), folder / name, f"127.0.0.1:{port}")
            own = dict(parameters)
            if own.get("pairs") is not None and not lock_step:
                # outside lock-step a host knows only its own nodes, so it gets its share of the pairs
                own["pairs"] = max(1, round(own["pairs"] * sizes[name] / graph.number_of_nodes))
            init(member.home, replace(self.config, name=name, listen=member.address, parameters=own))
            with Store(member.home) as store:
                store.add_edges(edges)
            if lock_step:
                self._write_numbers(member, edges)
            self.members.append(member)
        for member in self.members:
            with Store(member.home) as store:
                for other in self.members:
                    if other is not member:
                        certificate = read_certificate(other.home / CERTIFICATE)
                        store.add_peer(other.name, other.address, certificate, sizes[other.name])
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    @contextmanager
    def stopping(self) -> Iterator[None]:
        """Stop all daemons after this block, in which they may be started and killed."""
        try:
            yield
        finally:
            self.stop()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run all daemons within this block, and stop them after it."""
        with self.stopping():
            for member in self.members:
                self.start(member)
            yield

    def start(self, member: Member) -> None:
        """Start a member's daemon; it ends when this process does."""
        command, environment = make_command(member.home, trace=self._trace, while_stdin=True)
        with open_private(member.home / "log.jsonl", "a") as log:
            self._processes[member.name] = subprocess.Popen(
                command, env=environment, stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True
            )

    def kill(self, member: Member) -> None:
        """Kill a member's daemon as a power cut would."""
        process = self._processes.pop(member.name)
        process.kill()
        process.wait()
        if process.stdin:
            process.stdin.close()

    def pid(self, member: Member) -> int:
        """Return the process id of a member's daemon."""
        return self._processes[member.name].pid

    def statuses(self) -> list[dict[str, Any]]:
        """Return the status of each member."""
        return [{"name": member.name, **read_status(member.home)} for member in self.members]

    def check(self) -> None:
        """Raise PeerError if a daemon has ended."""
        for member in self.members:
            process = self._processes.get(member.name)
            if process is not None and process.poll() is not None:
                raise PeerError(f"the daemon of {member.name} exited with status {process.returncode}: "
                                f"{self._read_last_line(member)}")  # fmt: skip

    def wait(self, poll: float = 0.1) -> Iterator[list[dict[str, Any]]]:
        """Yield the statuses of all members every `poll` seconds until all are done."""
        while True:
            statuses = self.statuses()
            yield statuses
            if all(status.get("state") == "done" for status in statuses):
                return
            self.check()
            time.sleep(poll)

    def stop(self) -> None:
        """Stop all daemons with SIGTERM, and kill those that do not stop in time."""
        for process in self._processes.values():
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        until = time.monotonic() + _LONGEST_STOP
        for process in self._processes.values():
            try:
                process.wait(max(0.0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stdin:
                process.stdin.close()

    def gather(self) -> Embedding:
        """Return the exported vectors of all members, in the order of the network's nodes."""
        exports = {member.name: export(member.home) for member in self.members}
        rows = [self.numbers[node, name] for name, part in exports.items() for node in part.nodes.tolist()]
        order = np.argsort(rows)
        vectors = np.concatenate([part.vectors for part in exports.values()])[order]
        contexts = [part.context for part in exports.values() if part.context is not None]
        context = np.concatenate(contexts)[order] if contexts else None
        pairs = sum(part.provenance["pairs_made"] for part in exports.values())
        rounds = max(part.provenance["rounds_done"] for part in exports.values())
        provenance = {
            "method": "manela", "hosts": len(self.members), "lock_step": self.config.seed is not None,
            "parameters": {**self.config.parameters}, "pairs_made": pairs, "rounds_done": rounds,
        }  # fmt: skip
        return Embedding(self.graph.nodes, vectors, context, provenance)

    def traces(self) -> dict[str, list[dict[str, Any]]]:
        """Return what was disclosed to each member, if the federation was traced."""
        return {member.name: list(read_disclosures(member.home / TRACE)) for member in self.members}

    def _write_numbers(self, member: Member, edges: list[Edge]) -> None:
        """Write the numbers of a host's nodes and of their neighbours, and of no others."""
        known = {(edge.own, member.name) for edge in edges} | {edge.other for edge in edges if edge.other}
        lines = [f"{name}@{host},{self.numbers[name, host]}" for name, host in known]
        with replace_file(member.home / self.config.numbers, private=True) as file:
            file.write(("\n".join(lines) + "\n").encode())

    def _read_last_line(self, member: Member) -> str:
        lines = (member.home / "log.jsonl").read_text(encoding="utf-8", errors="replace").splitlines()
        return lines[-1][:300] if lines else "it logged nothing"


def _find_communities(graph: Graph) -> npt.NDArray[np.int64]:
    """Return the community of each node, by Louvain's method."""
    igraph: Any = import_extra("igraph", "io", "splitting by community")
    sources = np.repeat(np.arange(graph.number_of_nodes), graph.degrees)
    once = sources < graph.indices
    network = igraph.Graph(n=graph.number_of_nodes, edges=np.stack((sources[once], graph.indices[once]), axis=1))
    weights = None if graph.weights is None else graph.weights[once].tolist()
    igraph.set_random_number_generator(random.Random(0))  # the same communities every time
    try:
        return np.array(network.community_multilevel(weights=weights).membership, dtype=np.int64)
    finally:
        igraph.set_random_number_generator(random)


def _pack(communities: npt.NDArray[np.int64], hosts: int) -> npt.NDArray[np.int64]:
    """Assign communities to hosts, the largest first, each to the host with the fewest nodes so far.

    A community that is too large for one host is cut into pieces.
    """
    parts = np.zeros(len(communities), np.int64)
    loads = np.zeros(hosts, np.int64)
    share = -(-len(communities) // hosts)
    members = [np.flatnonzero(communities == c) for c in np.unique(communities)]
    pieces = [nodes[first : first + share] for nodes in members for first in range(0, len(nodes), share)]
    for piece in sorted(pieces, key=len, reverse=True):
        part = int(np.argmin(loads))
        parts[piece] = part
        loads[part] += len(piece)
    if (loads == 0).any():
        return np.arange(len(communities)) % hosts
    return parts


def _read_assignment(graph: Graph, path: Path) -> list[str]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FormatError(f"{path}: must be `random`, `community`, or a file of lines `node host`: {error}") from error
    host_of: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        fields = next(csv.reader(io.StringIO(line))) if "," in line else line.split()
        if not fields or fields[0].startswith("#"):
            continue
        if len(fields) != 2:
            raise FormatError(f"{path}, line {number}: must be `node host`, got {len(fields)} fields")
        host_of[fields[0].strip()] = check_host_name(fields[1].strip())
    missing = [str(node) for node in graph.nodes.tolist() if str(node) not in host_of]
    if missing:
        raise FormatError(f"{path}: names no host for {len(missing):,} node(s), such as {missing[0]!r}")
    return [host_of[str(node)] for node in graph.nodes.tolist()]


def free_ports(count: int) -> list[int]:
    """Return free loopback ports, and reserve them until this process ends.

    A daemon listens on its port only later. The UDP port of the same number stays bound meanwhile, so that no other
    process chooses it here.
    """
    ports: list[int] = []
    with ExitStack() as stack:
        while len(ports) < count:
            port = secrets.choice(_PORTS)
            with ExitStack() as attempt:
                try:
                    reserved = attempt.enter_context(socket.socket(type=socket.SOCK_DGRAM))
                    reserved.bind(("127.0.0.1", port))
                    stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
                except OSError:
                    continue
                attempt.pop_all()
            _reserved.append(reserved)
            ports.append(port)
    return ports
