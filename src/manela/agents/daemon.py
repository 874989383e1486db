"""Daemon: one host as a process, from its folder to its peers and back."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

from manela.agents.config import FILE, read_config
from manela.agents.exchanges import make_host
from manela.agents.folder import CERTIFICATE, KEY, SECRET, STATUS, TRACE, only_one
from manela.agents.host import Host, Saved
from manela.agents.identity import read_certificate
from manela.agents.learner import Learner
from manela.agents.memory import drop_code, keep_memory_small
from manela.agents.neighbourhood import Neighbourhood
from manela.agents.service import Service
from manela.agents.store import Store, read_numbers
from manela.agents.trace import write_fact
from manela.agents.warming import warm_up
from manela.errors import AgentError, ManelaError, OutputError, RefusedError

_TICK = 0.5
_SAVE_EVERY = 0.25
"""Seconds from one save to the next, where rounds are shorter; with more, more is lost when the power is."""
_LOCK_STEP_PATIENCE = 3600.0
_LONGEST_STOP = 1.0
"""Seconds that whatever is being done has to end; a daemon that is to stop takes no longer."""
_MOST_UNWRITTEN = 200


def log(event: str, **facts: Any) -> None:
    """A line of JSON on stderr, at once; where it cannot be written, as on a full disk, the daemon goes on without."""
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    line = json.dumps({"time": now, "event": event, **facts}, ensure_ascii=False) + "\n"
    with contextlib.suppress(OSError):
        os.write(2, line.encode(errors="replace"))


def run(folder: Path, trace: bool = False, while_stdin: bool = False) -> None:
    """Run the host in this folder until SIGTERM or Ctrl-C, or until stdin ends if that is asked for."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until there is something to read anew
    keep_memory_small()
    with only_one(folder), Store(folder) as store:
        daemon = Daemon(folder, store, trace)
        asyncio.run(daemon.run(while_stdin))


class Daemon:
    """A host, its server, and what it keeps."""

    _digest = ""

    def __init__(self, folder: Path, store: Store, trace: bool = False) -> None:
        self.folder, self.store = folder, store
        self.config = read_config(folder / FILE)
        secret = store.get(SECRET)
        if secret is None:
            raise AgentError(f"{store.file}: has no secret; make the host anew with `manela agent init`")
        # every start has draws of its own: a free-running host must not repeat itself after a crash
        starts = int(store.get("starts") or "0") + 1
        store.put("starts", str(starts))
        self._terms = self.config.terms((int(secret) + starts) % 2**63)
        self._changes = self._edges_seen = store.changes
        host = self._build()
        saved = store.load()
        if saved is not None:
            host.restore(saved)
        warm_up(self._terms)
        drop_code()
        self.state, self.trouble = "meeting", ""
        self._trace = (folder / TRACE).open("a", encoding="utf-8") if trace else None
        if self._trace is not None:
            host.on_disclosure = self._disclose
        self._reload = self._settled = False
        self._unwritten: Counter[tuple[str, str, str]] = Counter()
        self._saving: asyncio.Task[None] | None = None
        self._saved_at = 0.0
        self._began, self._rate = time.time(), (time.monotonic(), host.pairs, 0.0)
        self._host = host
        self._watch: Any = None

    async def run(self, while_stdin: bool) -> None:
        """Until told to stop."""
        from manela.agents.transport.rpc import RpcServer, RpcTransport, Traffic

        self.traffic = Traffic()
        keys, peers = self._keys(), self._peers()
        options = self.config.peers
        transport = RpcTransport(keys, peers, options.deadline, self.traffic)
        self.service = Service(self._host, transport, self.config.rates, self._refused, options.deadline * 0.8)
        server = RpcServer(
            self.config.listen, keys, peers, self.service.serve, self.service.refuse, options.deadline, self.traffic
        )
        self.learner = Learner(
            self.service, list(peers), self._save_round, self._tell, options.grace, options.wait, options.finish,
            options.longest_pause,
        )  # fmt: skip
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.learner.end)
        loop.add_signal_handler(signal.SIGHUP, self._hang_up)
        self.port = 0
        tasks: list[asyncio.Task[Any]] = []
        try:
            await server.start()
            self.port = server.port
            log("listening", host=self.config.name, address=self.config.listen, port=server.port, peers=len(peers))
            if self.config.watch:
                from manela.agents.status_server import StatusServer

                self._write_status()
                self._watch = StatusServer(self.config.watch, lambda: self._status)
                log("watched", page=self._watch.url)
            if while_stdin:
                # not of the executor, which would be waited for at the end
                threading.Thread(target=self._wait_for_stdin, args=(loop,), daemon=True).start()
            learning = asyncio.create_task(self._learn())
            ticking = asyncio.create_task(self._tick(server, transport))
            tasks = [learning, ticking, asyncio.create_task(self.learner.stop.wait())]
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            await self._end(tasks, server, transport)

    async def _end(self, tasks: list[asyncio.Task[Any]], server: Any, transport: Any) -> None:
        """Stop everything and keep the state, whatever went wrong before."""
        failed = self.state == "failed"
        self.state = "stopping"
        self.learner.end()
        if tasks:  # the learning takes back what it has not finished, within moments
            await asyncio.wait(tasks[:1], timeout=_LONGEST_STOP)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        try:
            if self._watch is not None:
                self._watch.close()
                self._watch = None
            await server.stop(0.3)
            await transport.close()
        finally:
            await self._wait_until_saved()
            self._keep_now()
            self.state = "failed" if failed else "stopped"
            self._write_status()
            if self._trace is not None:
                self._trace.close()
            log(self.state, round=self.service.host.round)

    async def _learn(self) -> None:
        learner = self.learner
        try:
            await learner.meet_all(_LOCK_STEP_PATIENCE if self._terms.lock_step else self.config.peers.start)
            self.state = "learning"
            log("learning", round=self.service.host.round, rounds=self.service.host.expected_rounds)
            await learner.run(self._renew)
        except ManelaError as error:
            self.state, self.trouble = "failed", str(error)
            log("failed", why=str(error))
            raise
        if not learner.stop.is_set():
            await self._wait_until_saved()
            await self._save(self.service.host.save())
            self.state = "done"
            self._write_status()
            log("done", round=self.service.host.round, pairs=self.service.host.pairs)
        if self._terms.lock_step:
            await learner.stop.wait()
        await learner.stay(self._renew)

    async def _wait_until_saved(self) -> None:
        """Until what is being saved is."""
        if self._saving is not None:
            await asyncio.wait([self._saving])

    async def _save_round(self) -> None:
        """Keep each round; several short ones together, unless hosts go in lock-step."""
        if not self._settled:
            self._settled = True
            drop_code()
        if self._terms.lock_step:
            await self._save(self.service.host.save())
        elif (self._saving is None or self._saving.done()) and time.monotonic() - self._saved_at >= _SAVE_EVERY:
            self._saved_at = time.monotonic()
            self._saving = asyncio.create_task(self._save(self.service.host.save()))

    async def _save(self, saved: Saved) -> None:
        try:
            await asyncio.to_thread(self.store.save, saved)
        except OutputError as error:
            if not self.trouble:
                log("not saved", why=str(error))
            self.trouble = str(error)
            return
        if self.trouble:
            log("saved again")
        self.trouble = ""

    def _keep_now(self) -> None:
        try:
            if self.service.host.can_be_saved:
                self.store.save(self.service.host.save())
            waiting, self._unwritten = self._unwritten, Counter()
            self._write_down(waiting)
        except OutputError as error:
            log("not saved", why=str(error))

    # what happens beside learning

    async def _tick(self, server: Any, transport: Any) -> None:
        """Twice a second: what nobody else looks at. Trouble with it is told, and does not end the daemon."""
        said = ""
        while True:
            try:
                server.sweep()
                try:
                    await self._flush()
                finally:  # also where nothing can be written down
                    self._write_status()
                changes = self.store.changes
                if changes != self._changes or self._reload:
                    self._changes, again = changes, self._reload
                    await self._look_again(server, transport, again)
                said = ""
            except (ManelaError, OSError) as error:
                if str(error) != said:
                    said = str(error)
                    log("trouble", why=said)
            await asyncio.sleep(_TICK)

    async def _look_again(self, server: Any, transport: Any, told: bool) -> None:
        """Peers, certificates or edges may be others now."""
        self._reload = False
        try:
            keys, peers = self._keys(), self._peers()
            await transport.change(keys, peers)
            server.change(keys, peers)
            self.learner.peers = list(peers)
            self.service.host.sizes = self.store.sizes()
        except ManelaError as error:
            log("not reloaded", why=str(error))
        if told:
            log("reloaded", peers=len(self.learner.peers))

    def _renew(self) -> bool:
        """Take other edges, if there are any; called between two rounds."""
        seen = self.store.changes
        if seen == self._edges_seen or self._terms.lock_step:
            return False
        self._edges_seen = seen
        try:
            near = Neighbourhood.build(self.config.name, self.store.edges())
            if near.digest == self._digest:
                return False
            self._digest = near.digest
            self.service.host = self.service.host.renew(near)
        except ManelaError as error:
            log("edges not taken", why=str(error))
            return False
        log("edges taken", nodes=len(near.nodes), arcs=len(near.indices))
        return True

    def _hang_up(self) -> None:
        self._reload = True

    def _wait_for_stdin(self, loop: asyncio.AbstractEventLoop) -> None:
        with contextlib.suppress(OSError, ValueError):
            while os.read(sys.stdin.fileno(), 4096):
                pass
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(self.learner.end)

    def _tell(self, words: str) -> None:
        log("peers", what=words)

    def _refused(self, peer: str, refusal: RefusedError) -> None:
        key = (peer, str(refusal.reason), str(refusal))
        if key not in self._unwritten and len(self._unwritten) >= _MOST_UNWRITTEN:
            key = (peer, str(refusal.reason), "and others")
        self._unwritten[key] += 1

    async def _flush(self) -> None:
        """Write down what was refused since, alike ones together, while others go on."""
        waiting, self._unwritten = self._unwritten, Counter()
        if waiting:
            try:
                await asyncio.to_thread(self._write_down, waiting)
            except OutputError:
                self._unwritten.update(waiting)
                raise

    def _write_down(self, waiting: Counter[tuple[str, str, str]]) -> None:
        lines = []
        for (peer, reason, detail), times in waiting.items():
            words = detail if times == 1 else f"{detail} ({times} times)"
            lines.append((peer, reason, words))
            log("refused", peer=peer, reason=reason, detail=words)
        self.store.audit(lines)

    def _disclose(self, **fact: Any) -> None:
        if self._trace is None:
            return
        try:
            self._trace.write(write_fact(fact) + "\n")
        except OSError as error:
            log("not traced", why=str(error))
            self._trace = None

    def _write_status(self) -> None:
        host, now = self.service.host, time.monotonic()
        then, pairs, _ = self._rate
        if now - then >= 1.0:
            self._rate = (now, host.pairs, max(0, host.pairs - pairs) / (now - then))
        self._status = self._describe()
        path = self.folder / STATUS
        with contextlib.suppress(OSError):
            path.with_suffix(".part").write_text(json.dumps(self._status), encoding="utf-8")
            path.with_suffix(".part").replace(path)

    def _describe(self) -> dict[str, Any]:
        host = self.service.host
        refusals: dict[str, dict[str, int]] = {}
        for (peer, reason), times in self.service.refusals.items():
            refusals.setdefault(peer, {})[reason] = times
        return {
            "name": self.config.name,
            "pid": os.getpid(),
            "port": self.port,
            "watch": self._watch.url if self._watch is not None else "",
            "state": self.state,
            "trouble": self.trouble,
            "round": host.round,
            "rounds": host.expected_rounds,
            "pairs": host.pairs,
            "pairs_per_second": round(self._rate[2]),
            "nodes": host.own,
            "arcs": len(host.neighbourhood.indices),
            "began": self._began,
            "updated": time.time(),
            "sent": sum(self.traffic.sent.values()),
            "received": sum(self.traffic.received.values()),
            "refusals": refusals,
            "peers": {
                peer: {
                    "state": "here" if host.sessions.knows(peer) and not self.learner.trouble_with(peer) else "away",
                    "trouble": self.learner.trouble_with(peer),
                    "nodes": host.sessions.greetings[peer].nodes if peer in host.sessions.greetings else None,
                    "alarms": {kind: times for (who, kind), times in host.alarms.items() if who == peer},
                    "sent": self.traffic.sent[peer],
                    "received": self.traffic.received[peer],
                }
                for peer in self.learner.peers
            },
        }

    # what the folder holds

    def _build(self) -> Host:
        numbers = read_numbers(self.folder / self.config.numbers) if self._terms.lock_step else None
        near = Neighbourhood.build(self.config.name, self.store.edges(), numbers)
        self._digest = near.digest
        return make_host(self._terms, near, numbers, self.store.sizes())

    def _keys(self) -> Any:
        from manela.agents.transport.rpc import Keys

        try:
            key = (self.folder / KEY).read_bytes()
        except OSError as error:
            raise AgentError(f"{self.folder / KEY}: cannot be read: {error.strerror or error}") from error
        return Keys(key, read_certificate(self.folder / CERTIFICATE).encode())

    def _peers(self) -> dict[str, Any]:
        from manela.agents.transport.rpc import Peer

        return {name: Peer(name, *rest) for name, rest in self.store.peers().items()}
