"""Hosts that learn BlogCatalog together: four real daemons on loopback with TLS, beside the CPU engine."""

import asyncio
import tempfile
import time
import warnings
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.table import table
from manela import Manela, ManelaWarning
from manela.analysis.classification import classify
from manela.formats.loading import load_graph, load_labels
from manela.hosts.daemon.contacts import Contacts
from manela.hosts.daemon.learner import Learner
from manela.hosts.daemon.service import Service
from manela.hosts.federation import Federation, assign, free_ports
from manela.hosts.folder.config import Config
from manela.hosts.folder.home import init, read_status
from manela.hosts.folder.identity import CERTIFICATE, KEY, read_certificate
from manela.hosts.folder.store import Store
from manela.hosts.state.neighbourhood import Edge, Neighbourhood
from manela.hosts.state.terms import PeerOptions
from manela.hosts.walks.host import make_host

PEERS = (64, 256)
KILLS = 2.0
"""Seconds from one kill to the next."""
_LOOK = 0.25
"""Seconds between two looks at the memory of daemons; more looks take time from those who learn."""


def main() -> None:
    warnings.simplefilter("ignore", ManelaWarning)
    graph = load_graph("blogcatalog", unweighted=True)
    labels = load_labels("blogcatalog").of(graph.nodes)
    Manela(rounds=2, n_jobs=2).fit(graph)  # compiles
    seconds = []
    with table(
        "BlogCatalog, 4 hosts, random split, default settings", "micro-F1 at 50 %", "seconds from the first round on",
        "against one process", "MB sent", "against walks", "memory of a daemon at most, MB: its own, with libraries",
    ) as rows:  # fmt: skip
        for seed in (0, 1, 2):
            begun = time.perf_counter()
            model = Manela(n_jobs=2, random_state=seed).fit(graph)
            seconds.append(time.perf_counter() - begun)
            rows.row(f"one process, 2 threads, seed {seed}", _score(model.embedding_, labels), f"{seconds[-1]:.2f}")
        whole = float(np.median(seconds))
        by_walks = 0
        for name, parameters, options, disturb in (
            ("by walks, as in 0.1", {"exchange": "walks", "ratios": (0.7, 0.3)}, {}, None),
            ("by messages", {}, {}, None),
            ("by messages, again", {}, {}, None),
            ("by messages, without noise", {}, {"noise": 0.0}, None),
            (f"one killed and restarted every {KILLS:g} s", {}, {}, _kill_often),
            ("one killed for good at half time, nodes of the rest", {}, {"wait": 1.0, "finish": 5.0}, _kill_once),
        ):
            with tempfile.TemporaryDirectory() as folder:
                run = _run(graph, Path(folder), parameters, options, disturb)
            by_walks = by_walks or run["sent"]
            here = run["here"]
            rows.row(
                name, _score(run["vectors"][here], labels[here]), f"{run['learning']:.1f}",
                f"{run['learning'] / whole:.1f}x", f"{run['sent'] / 1e6:.0f}", f"{run['sent'] / by_walks:.2f}x",
                "{:.0f}, {:.0f}".format(*(one / 1e6 for one in run["memory"])),
            )  # fmt: skip
    print()
    with table("peers of one daemon", "met", "its rounds a second", "its memory, MB: own, with libraries") as rows:
        for peers in PEERS:
            with tempfile.TemporaryDirectory() as folder:
                rows.row(peers, *asyncio.run(_hold(Path(folder), peers)))


def _score(vectors: Any, labels: Any) -> str:
    scores = classify(vectors, labels, jobs=2).micro
    return f"{scores.mean():.4f} ± {scores.std(ddof=1):.4f}"


def _run(
    graph: Any, folder: Path, parameters: dict[str, Any], options: dict[str, Any], disturb: Callable[..., Any] | None
) -> dict[str, Any]:
    federation = Federation(graph, assign(graph, 4, "random", 0), folder, parameters, **options)
    first, looked, memory, gone = 0.0, 0.0, (0, 0), []
    with federation.running():
        for statuses in federation.wait(poll=0.02):
            if not first and all(status.get("round", 0) > 0 for status in statuses):
                first = time.monotonic()
            if time.monotonic() > looked + _LOOK:
                looked = time.monotonic()
                for member in federation.members:
                    memory = tuple(map(max, memory, _memory(federation.pid(member))))
            if disturb is not None and first:
                gone = disturb(federation, statuses, time.monotonic() - first)
                if gone:
                    break
        while gone and not all(one.get("state") == "done" for one in federation.statuses() if one["name"] not in gone):
            time.sleep(0.1)
        ended = time.monotonic()
        statuses = federation.statuses()
    numbers = federation.numbers
    here = np.array(sorted(row for (_, host), row in numbers.items() if host not in gone))
    return {
        "vectors": federation.gather().vectors, "here": here, "learning": ended - first,
        "sent": sum(status["sent"] for status in statuses), "memory": memory,
    }  # fmt: skip


def _kill_often(federation: Federation, statuses: list[dict[str, Any]], seconds: float) -> list[str]:
    """Now and then another one, while rounds go on: a run is so short that smoothing would never be left in peace."""
    done = getattr(federation, "kills", 0)
    learning = any(status.get("round", 0) < status.get("rounds", 1) for status in statuses)
    if seconds >= KILLS * (done + 1) and learning:
        member = federation.members[done % len(federation.members)]
        federation.kill(member)
        federation.start(member)
        federation.kills = done + 1  # type: ignore[attr-defined]
    return []


def _kill_once(federation: Federation, statuses: list[dict[str, Any]], _: float) -> list[str]:
    """The first one, when all have done half of their rounds."""
    if all(2 * status.get("round", 0) >= status.get("rounds", 1) for status in statuses):
        federation.kill(federation.members[0])
        return [federation.members[0].name]
    return []


async def _hold(folder: Path, peers: int) -> list[str]:
    """A real daemon with many peers, all of which live in this process and speak TLS."""
    from manela.hosts.transport.rpc import Endpoint, Keys, RpcServer, RpcTransport

    parameters = {"dimensions": 32, "rounds": 10**6, "pairs": 10**9, "smooth": False}
    names = ["hub", *(f"p{i}" for i in range(peers))]
    ports = dict(zip(names, free_ports(len(names)), strict=True))
    edges = {f"p{i}": [Edge("x", (f"n{i}", "hub")), Edge("x", ("y", f"p{i}"))] for i in range(peers)}
    edges["hub"] = [Edge(f"n{i}", ("x", f"p{i}")) for i in range(peers)]
    edges["hub"] += [Edge(f"n{i}", (f"n{(i + 1) % peers}", "hub")) for i in range(peers)]
    for name in names:
        options = PeerOptions(start=60.0, grace=5.0)
        init(folder / name, Config(name, f"127.0.0.1:{ports[name]}", parameters, start="random", peers=options))
    certificates = {name: read_certificate(folder / name / CERTIFICATE) for name in names}
    with Store(folder / "hub") as store:
        store.add_edges(edges["hub"])
        for name in names[1:]:
            store.add_peer(name, f"127.0.0.1:{ports[name]}", certificates[name])
    hub = Endpoint("hub", f"127.0.0.1:{ports['hub']}", (certificates["hub"],))

    async def keep() -> None:
        await asyncio.sleep(0.5)  # a peer of few nodes need not hurry

    async with AsyncExitStack() as stack:
        learners = []
        for name in names[1:]:
            config = Config(name, f"127.0.0.1:{ports[name]}", parameters)
            host = make_host(config.terms(1), Neighbourhood.build(name, edges[name]))
            keys, contacts = Keys((folder / name / KEY).read_bytes(), certificates[name].encode()), Contacts()
            transport = RpcTransport(keys, {"hub": hub}, 30.0, contacts.count)
            service = Service(host, transport, contacts)
            server = RpcServer(
                config.listen,
                keys,
                {"hub": hub},
                service.serve,
                service.bound_request,
                service.refuse,
                30.0,
                contacts.count,
            )
            await server.start()
            stack.push_async_callback(server.stop, 0.1)
            stack.push_async_callback(transport.close)
            learners.append(Learner(service, ["hub"], keep, grace=5.0))
        process = await asyncio.create_subprocess_exec(
            "python", "-m", "manela", "agent", "run", "--home", str(folder / "hub"),
            stderr=asyncio.subprocess.DEVNULL, env=_environment(),
        )  # fmt: skip
        running = []
        try:
            await asyncio.gather(*(learner.meet_all(90.0) for learner in learners))
            running = [asyncio.create_task(learner.run()) for learner in learners]
            await _wait(process, folder, lambda status: status.get("round", 0) >= 3)
            first, begun = read_status(folder / "hub"), time.monotonic()
            await asyncio.sleep(20.0)
            status, memory = read_status(folder / "hub"), _memory(process.pid)
            met = sum(one["state"] == "here" for one in status["peers"].values())
            speed = (status["round"] - first["round"]) / (time.monotonic() - begun)
            return [str(met), f"{speed:.1f}", "{:.0f}, {:.0f}".format(*(one / 1e6 for one in memory))]
        finally:
            process.terminate()
            await process.wait()
            for learner in learners:
                learner.end()
            await asyncio.gather(*running, return_exceptions=True)


async def _wait(process: Any, folder: Path, holds: Callable[[dict[str, Any]], bool]) -> None:
    until = time.monotonic() + 180.0
    while not holds(read_status(folder / "hub")):
        if time.monotonic() > until or process.returncode is not None:
            raise TimeoutError(read_status(folder / "hub"))
        await asyncio.sleep(0.2)


def _environment() -> dict[str, str]:
    import os
    import sys

    return {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


def _memory(pid: int) -> tuple[int, int]:
    """The memory of a process: what is its own, and with the pages of libraries, which processes share."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0, 0
    found = {line.partition(":")[0]: line.split()[1] for line in lines if line.startswith(("RssAnon", "VmRSS"))}
    return int(found.get("RssAnon", 0)) * 1024, int(found.get("VmRSS", 0)) * 1024
