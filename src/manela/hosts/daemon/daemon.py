"""Daemon: runs one host as a process, from its home."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

from manela import __version__
from manela.errors import AgentError, ManelaError, OutputError
from manela.hosts.daemon.account import Account
from manela.hosts.daemon.contacts import Contacts
from manela.hosts.daemon.erasing import Eraser
from manela.hosts.daemon.learner import Learner
from manela.hosts.daemon.logs import Journal, NameKeeper, Syslog, Tracer, add_syslog, begin_log, drop_syslog, log
from manela.hosts.daemon.reopening import Reopening
from manela.hosts.daemon.saving import Reserve, Saver, allow_many_files
from manela.hosts.daemon.service import Service
from manela.hosts.daemon.status import Speed, count_refusals, describe_peers, find_expiry, warn_of_expiry, write_status
from manela.hosts.daemon.status_server import ANSWERS, ON, Answering
from manela.hosts.daemon.warming import drop_code, keep_memory_small, warm_up
from manela.hosts.folder.audit import record_settings, take_new_actions
from manela.hosts.folder.backups import keep_backup, remove_leftovers
from manela.hosts.folder.config import FILE, describe_missing, read_config
from manela.hosts.folder.edges import read_numbers
from manela.hosts.folder.erasure import forget_for_peer
from manela.hosts.folder.home import STARTS, STATUS, TRACE, only_one
from manela.hosts.folder.identity import CERTIFICATE, KEY, check_key, read_certificate
from manela.hosts.folder.store import HOST, NAME, SECRET, Store, name_backup
from manela.hosts.state.host import Host
from manela.hosts.state.neighbourhood import Neighbourhood
from manela.hosts.state.rounds import MessageHost
from manela.hosts.walks.host import make_host
from manela.system.files import check_private, remove_unfinished

_TICK = 0.5
"""Seconds between two housekeeping passes; larger values show older status and notice changes later."""
_LOCK_STEP_PATIENCE = 3600.0
"""Seconds that a lock-step run waits for its peers at the start; if smaller, it fails when one starts late."""
_LONGEST_STOP = 1.0
"""Seconds that a computation has to end when the daemon stops; larger values delay the stop."""


def run(home: Path, trace: bool = False, while_stdin: bool = False) -> None:
    """Run the host in this home until SIGTERM or Ctrl-C, or with `while_stdin` until stdin ends."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until the handler that reloads is installed
    keep_memory_small()
    begin_log()
    if not (home / FILE).exists():
        raise AgentError(describe_missing(home))
    if not (home / NAME).exists():
        raise AgentError(f"{home / NAME}: is missing; {name_backup(home)}")
    for secret_file in (KEY, NAME):
        check_private(home / secret_file)
    allow_many_files()
    with only_one(home), Store(home) as store:
        daemon = Daemon(home, store, trace)
        asyncio.run(daemon.run(while_stdin))


class Daemon:
    """A host with its server, its learner and its files."""

    _digest = ""
    _syslog: Syslog | None = None

    def __init__(self, home: Path, store: Store, trace: bool = False) -> None:
        self.home, self.store = home, store
        self.config = read_config(home / FILE)
        store.check()
        if store.get(HOST) != self.config.name:
            raise AgentError(
                f"{home / FILE}: the name must be {store.get(HOST)!r}, for which this home was made, got "
                f"{self.config.name!r}"
            )
        remove_unfinished(home)
        remove_leftovers(home)
        self._reserve = Reserve()
        self._saver = Saver(home, self._reserve, self.config.peers.longest_pause)
        self._keep_backup()
        secret = store.get(SECRET)
        if secret is None:
            raise AgentError(f"{store.file}: has no secret; make the host again with `manela agent init`")
        # every start has a new seed: a free-running host must not repeat its draws after a crash
        past_starts = store.get(STARTS) or "0"
        if not past_starts.isdecimal():
            raise AgentError(
                f"{store.file}: is damaged: it has been started {past_starts!r} times; {name_backup(home)}"
            )
        starts = int(past_starts) + 1
        store.put(STARTS, str(starts))
        self.terms = self.config.terms((int(secret) + starts) % 2**63)
        record_settings(store, self.config.list_settings())
        self._changes = self._edges_seen = store.changes
        self._account = Account(store, self.config.peers)
        host = self._build()
        saved = self._saver.load()
        if saved is not None and saved.exchange != self.terms.settings.exchange:
            log("starts over", message=f"the saved vectors were learned by {saved.exchange}")
        elif saved is not None:
            host.restore(saved)
            for removed in set(host.peers) - set(store.peers()):
                host.forget(removed)
        warm_up(self.terms)
        drop_code()
        self.state, self._failure, self._status_trouble = "meeting", "", ""
        self._tracer = Tracer(home / TRACE) if trace else None
        if self._tracer is not None:
            host.on_disclosure = self._tracer.add
        self._reload = self._settled = False
        self._audit = Store(home)  # a second connection, so that reads need not wait for writes in a thread
        self._names = NameKeeper(store, self.config.log.hash_names)
        self._journal = Journal(self._audit, self._names.show)
        self._reopening = Reopening(store, self._audit)
        self._eraser = Eraser(store, self._audit, self.config.peers.longest_pause)
        self._known_peers: dict[str, Any] = {}
        self._expires: float | None = None
        self._began, self._speed = time.time(), Speed(host.pairs)
        self.host = host
        self._watch: Any = None
        self._answering = Answering(self.config.name)
        self._answering.turn(store.get(ANSWERS) == ON)

    async def run(self, while_stdin: bool) -> None:
        """Run until a signal, or the end of stdin, stops the daemon."""
        from manela.hosts.transport.rpc import RpcServer, RpcTransport

        self._syslog = add_syslog(self.config.log.syslog, self.config.name)
        contacts = Contacts(self.config.rates)
        keys, peers = self._keys(), self._peers()
        options = self.config.peers
        transport = RpcTransport(keys, peers, options.deadline, contacts.count)
        self.service = Service(
            self.host, transport, contacts, self._journal.add, options.deadline * 0.8,
            partial(forget_for_peer, self.home, self._audit)
        )  # fmt: skip
        server = RpcServer(
            self.config.listen, keys, peers, self.service.serve, self.service.bound_request, self.service.refuse,
            options.deadline, contacts.count
        )  # fmt: skip
        self._server = server
        self.learner = Learner(
            self.service, list(peers), self._save_round, self._tell, options.grace, options.wait, options.finish,
            options.longest_pause
        )  # fmt: skip
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.learner.end)
        loop.add_signal_handler(signal.SIGHUP, self._request_reload)
        self.port = 0
        tasks: list[asyncio.Task[Any]] = []
        try:
            await server.start()
            self.port = server.port
            log("listening", host=self.config.name, address=self.config.listen, port=server.port, peers=len(peers))
            self._write_status()
            self._log_actions()
            for line in warn_of_expiry(self._status):
                log("certificate", message=line)
            if self.config.watch:
                from manela.hosts.daemon.status_server import StatusServer

                self._write_status()
                self._watch = StatusServer(self.config.watch, self._read_status, self._answering.find)
                log("watched", page=self._watch.url)
            if while_stdin:
                # not in the executor, whose threads the event loop joins at the end
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
        """Stop everything and save the state, even after a failure."""
        failed = self.state == "failed"
        self.state = "stopping"
        self.learner.end()
        if tasks:  # the learner undoes its unfinished round, which is quick
            await asyncio.wait(tasks[:1], timeout=_LONGEST_STOP)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._eraser.end()
        try:
            if self._watch is not None:
                self._watch.close()
                self._watch = None
            await server.stop(0.3)
            await transport.close()
        finally:
            await self._saver.wait()
            self._save_last()
            self.state = "failed" if failed else "stopped"
            self._write_status()
            if self._tracer is not None:
                self._tracer.close()
            log(self.state, round=self.service.host.round)
            self.close()

    def close(self) -> None:
        """Close the files that the daemon holds open."""
        self._audit.close()
        self._reserve.close()
        drop_syslog(self._syslog)
        self._syslog = None

    async def _learn(self) -> None:
        """Meet peers, learn all rounds, and go on whenever there is a reason to, until the daemon stops."""
        learner = self.learner
        try:
            await learner.meet_all(_LOCK_STEP_PATIENCE if self.terms.lock_step else self.config.peers.start)
            await self._go_on()
            await self._run_rounds()
            while not learner.stop.is_set():
                host = self.service.host
                await learner.stay(self._has_work)
                # a host that was replaced has shown nothing to peers yet, so run it even if all rounds are done
                if await self._go_on() or self.service.host is not host:
                    await self._run_rounds()
        except ManelaError as error:
            self.state, self._failure = "failed", str(error)
            log("failed", message=str(error))
            raise

    async def _run_rounds(self) -> None:
        self.state = "learning"
        if isinstance(self.service.host, MessageHost):
            self._account.turn(self.service.host.noise.ledger)
            self._account.reserve(self.service.host.noise)
        log("learning", round=self.service.host.round, rounds=self.service.host.expected_rounds)
        await self.learner.run(self._renew)
        if isinstance(self.service.host, MessageHost):
            self._account.keep(self.service.host.noise)
        if self.learner.stop.is_set():
            return
        await self._saver.save(self.service.host)
        self.state = "done"
        self._write_status()
        log("done", round=self.service.host.round, pairs=self.service.host.pairs)
        if self.terms.lock_step:
            await self.learner.stop.wait()

    def _has_work(self) -> bool:
        """Return whether a finished host has something to do: new edges, requested rounds, or a new peer."""
        try:
            return self._renew() or self._reopening.has_reason(self.service.host)
        except ManelaError as error:
            log("trouble", message=str(error))
            return False

    async def _go_on(self) -> bool:
        """Reopen learning on a finished host if there is a reason to; return whether it was reopened."""
        host = self.service.host
        if self.terms.lock_step or not host.done or not await self._reopening.reopen(host):
            return False
        await self._saver.save(host)
        return True

    async def _save_round(self) -> None:
        """Save after a round: always in lock-step, otherwise now and then."""
        if self._watch is not None:
            self._answering.look(self.service.host)
        if not self._settled:
            self._settled = True
            drop_code()
        if self.terms.lock_step:
            await self._saver.save(self.service.host)
        else:
            self._saver.save_if_due(self.service.host)

    def _keep_backup(self) -> None:
        """Write the automatic backup; if that fails, the host runs without one."""
        try:
            keep_backup(self.home, self.store.digest)
        except (ManelaError, OSError) as error:
            log("no backup", message=str(error))

    def _save_last(self) -> None:
        """Save the state and the journal before the daemon ends."""
        try:
            # a node that was removed since the last round must not be saved
            self._saver.save_now(self.service.host, None if self.terms.lock_step else self.store.nodes())
            self._journal.flush_now()
            self._log_actions()
        except OutputError as error:
            log("not saved", message=str(error))

    # housekeeping beside learning

    async def _tick(self, server: Any, transport: Any) -> None:
        """Do the housekeeping every `_TICK` seconds; log errors and carry on."""
        last_error = ""
        while True:
            try:
                with self._reserve.lend():
                    server.sweep()
                if self.state == "done":  # while a host learns, its next round is saved anyway
                    self._saver.retry_if_due(self.service.host)
                try:
                    await self._journal.flush()
                finally:  # even if the journal cannot be written
                    self._write_status()
                if self._watch is not None:
                    self._answering.look(self.service.host)
                self._eraser.look(self.service, self.learner.peers)
                changes = self.store.changes
                if changes != self._changes or self._reload:
                    self._changes, on_signal = changes, self._reload
                    await self._reload_peers(server, transport, on_signal)
                last_error = ""
            except (ManelaError, OSError) as error:
                if str(error) != last_error:
                    last_error = str(error)
                    log("trouble", message=last_error)
            await asyncio.sleep(_TICK)

    async def _reload_peers(self, server: Any, transport: Any, on_signal: bool) -> None:
        """Read keys, peers and their sizes again; log that if a signal asked for it."""
        self._reload = False
        self._names.refresh()
        self._eraser.refresh()
        self._log_actions()
        self._answering.turn(self.store.get(ANSWERS) == ON)
        keys = self._used_keys
        try:
            keys = self._keys()
        except ManelaError as error:
            log("not reloaded", message=str(error))
            self._changes = -1  # retry at the next tick
        try:
            peers = self._peers()
            await transport.change(keys, peers)
            server.change(keys, peers)
            for gone in set(self.learner.peers) - set(peers):
                self.service.forget(gone)
            self.learner.peers = list(peers)
            await asyncio.to_thread(self._keep_backup)
            self.service.host.peers.configure(self.store.sizes())
        except ManelaError as error:
            log("not reloaded", message=str(error))
            self._changes = -1
        if on_signal:
            log("reloaded", peers=len(self.learner.peers))

    def _renew(self) -> bool:
        """Replace the host if its edges have changed, and return whether they have; called between two rounds."""
        changes = self.store.changes
        if changes == self._edges_seen or self.terms.lock_step:
            return False
        self._edges_seen = changes
        try:
            near = Neighbourhood.build(self.config.name, self.store.edges(), private=self.store.private())
            if not near.nodes:
                log("no nodes", message="all nodes were removed, so the daemon ends")
                self.learner.end()
                return False
            if near.digest == self._digest:
                return False
            self._digest = near.digest
            self.service.host = self.service.host.renew(near)
        except ManelaError as error:
            log("edges not taken", message=str(error))
            return False
        log("edges taken", nodes=len(near.nodes), arcs=len(near.indices))
        return True

    def _request_reload(self) -> None:
        """Have the next tick read keys and peers again."""
        self._reload = True

    def _wait_for_stdin(self, loop: asyncio.AbstractEventLoop) -> None:
        """Stop the daemon when standard input ends."""
        with contextlib.suppress(OSError, ValueError):
            while os.read(sys.stdin.fileno(), 4096):
                pass
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(self.learner.end)

    def _tell(self, message: str) -> None:
        log("peers", message=self._names.conceal(message, self.service.host.neighbourhood.rows))

    def _log_actions(self) -> None:
        """Log what operators did since the last time, also while no daemon ran."""
        for action in take_new_actions(self.store):
            log("action", user=action.user, action=action.action, detail=action.detail, at=action.time)

    def _write_status(self) -> None:
        self._speed.look(self.service.host.pairs)
        self._status = self._describe()
        trouble = write_status(self.home / STATUS, self._status)
        if trouble and not self._status_trouble:
            log("not saved", message=trouble)
        self._status_trouble = trouble
        self._status["trouble"] = self._status["trouble"] or trouble  # for the page and the metrics

    def _describe(self) -> dict[str, Any]:
        host, contacts = self.service.host, self.service.contacts.values()
        certificates = {name: self._find_used(peer) for name, peer in self._known_peers.items()}
        return {
            "name": self.config.name,
            "program": __version__,
            "pid": os.getpid(),
            "port": self.port,
            "watch": self._watch.url if self._watch is not None else "",
            "state": self.state,
            "trouble": self._failure or self._saver.trouble,
            "round": host.round,
            "rounds": host.expected_rounds,
            "pairs": host.pairs,
            "pairs_per_second": round(self._speed.now),
            "nodes": host.own,
            "arcs": len(host.neighbourhood.indices),
            "noise": self.terms.peers.noise if self.terms.settings.exchange == "messages" else 0.0,
            "epsilon": self._account.describe(host.noise) if isinstance(host, MessageHost) else None,
            "frame": str(host.frame),
            "provisional": host.is_provisional,
            "traced": self._tracer is not None and self._tracer.is_open,
            "began": self._began,
            "updated": time.time(),
            "expires": self._expires,
            "sent": sum(contact.sent for contact in contacts),
            "received": sum(contact.received for contact in contacts),
            "refusals": count_refusals(self.service),
            "peers": describe_peers(self.learner, certificates),
        }

    def _find_used(self, peer: Any) -> tuple[str, ...]:
        """Return the certificate that a peer has shown last, or all that are pinned for it."""
        shown = self._server.shown.get(peer.name)
        pinned: tuple[str, ...] = peer.certificates
        return (shown,) if shown is not None and shown in pinned else pinned

    def _read_status(self) -> dict[str, Any]:
        """Return what the page shows: the status, and the speed over the last day."""
        return {**self._status, "now": time.time(), "history": self._speed.history(self.service.host.pairs)}

    # contents of the home

    def _build(self) -> Host:
        numbers = read_numbers(self.home / self.config.numbers) if self.terms.lock_step else None
        near = Neighbourhood.build(self.config.name, self.store.edges(), numbers, self.store.private())
        if near.private and self.terms.lock_step:
            raise AgentError("hosts in lock-step show all nodes: make private nodes public, or remove [lock_step]")
        self._digest = near.digest
        host = make_host(self.terms, near, numbers, self.store.sizes())
        if isinstance(host, MessageHost):
            self._account.load(host.noise.ledger)
        return host

    def _keys(self) -> Any:
        """Read the key and the certificate, and check that they belong together."""
        from manela.hosts.transport.rpc import Keys

        try:
            key = (self.home / KEY).read_bytes()
        except OSError as error:
            raise AgentError(f"{self.home / KEY}: cannot be read: {error.strerror or error}") from error
        certificate = read_certificate(self.home / CERTIFICATE)
        try:
            check_key(self.home / KEY, certificate)
        except AgentError as error:
            hint = "; finish the renewal with `manela agent renew --use`" * (self.home / f"next-{CERTIFICATE}").exists()
            raise AgentError(f"{error}{hint}") from error
        self._expires = find_expiry([certificate])
        self._used_keys = Keys(key, certificate.encode())
        return self._used_keys

    def _peers(self) -> dict[str, Any]:
        from manela.hosts.transport.rpc import Endpoint

        self._known_peers = {name: Endpoint(name, *entry) for name, entry in self.store.peers().items()}
        return self._known_peers
