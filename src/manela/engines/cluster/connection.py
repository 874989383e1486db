"""The way to a Ray cluster: connecting, its machines, and how many workers they have room for."""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
import warnings
from pathlib import Path
from typing import Any

from manela.errors import ClusterError

_KNOCK = 10.0
"""Seconds until something must listen at an address."""
_TOKEN_HINT = (
    "; if it asks for a token, set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN (`ray get-auth-token` there prints it), "
    "before Ray is imported"
)


def connect(ray: Any, address: str | None) -> bool:
    """Connect to a cluster, or start Ray on this machine; False where this process was connected before."""
    if ray.is_initialized():
        return False
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_gcs_rpc_server_connect_timeout_s", "60")  # 5 are too few where others work too
    _knock(address)
    main = threading.current_thread() is threading.main_thread()
    kept = signal.getsignal(signal.SIGTERM) if main else None
    try:
        if address is None:
            # without an address Ray would join any cluster that was started on this machine, even one that has ended
            here = os.environ.get("RAY_ADDRESS") or "local"
            ray.init(address=here, log_to_driver=False, logging_level=logging.ERROR, include_dashboard=False)
        elif not is_client(address):
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
        else:
            _connect_client(ray, address)
    except (RuntimeError, ValueError, OSError, ray.exceptions.RayError) as error:
        where = f"at {address}" if address else "on this machine"
        hint = _TOKEN_HINT if is_client(address) else ""
        raise ClusterError(f"no Ray cluster answers {where}: {last_line(error)}{hint}") from error
    finally:
        if kept is not None:
            signal.signal(signal.SIGTERM, kept)
    # Ray's client keeps the answer; to ask for it first when the connection is lost would fail
    return bool(ray.is_initialized())


def _connect_client(ray: Any, address: str) -> None:
    """Connect from outside a cluster; what Ray's client warns of and logs, its errors say too."""
    options = {"address": address, "log_to_driver": False, "logging_level": logging.CRITICAL}
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        try:
            ray.init(**options)
        except ConnectionAbortedError:
            # over there, the process that is to serve this client did not start, which happens at times
            ray.init(**options)


def is_client(address: str | None) -> bool:
    """Whether it is an address for machines outside the cluster."""
    return (address or "").startswith("ray://")


def bring_token() -> None:
    """Have Ray show the token that it has, if any: inside a cluster it does so unasked, from outside it does not.

    Ray reads the mode when it is imported.
    """
    named = any(os.environ.get(name) for name in ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"))
    if named or Path("~/.ray/auth_token").expanduser().exists():
        os.environ.setdefault("RAY_AUTH_MODE", "token")


def _knock(address: str | None) -> None:
    """Refuse an address where nobody listens; Ray would try for minutes."""
    host, colon, port = (address or "").removeprefix("ray://").rpartition(":")
    if is_client(address) and not colon:
        raise ClusterError(f"the address must be ray://HOST:PORT, as in ray://10.0.0.1:10001, got {address}")
    if not colon:
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_KNOCK).close()
    except (OSError, ValueError, OverflowError) as error:
        raise ClusterError(f"no Ray cluster answers at {address}: {error}") from error


def machines(ray: Any) -> list[dict[str, float]]:
    """What each machine of the cluster has: CPU, object_store_memory and more."""
    return [node["Resources"] for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU", 0) >= 1]


def share_out(found: list[dict[str, float]], workers: int | None, threads: int | None) -> tuple[int, int]:
    """How many workers, and threads of each: one worker a machine with all its cores by default."""
    if not found:
        raise ClusterError("the Ray cluster has no machine with a processor to give")
    cores = [int(machine["CPU"]) for machine in found]
    if workers is None:
        workers = len(cores) if threads is None else sum(core // threads for core in cores)
    if threads is None:
        threads = min(cores) if workers <= len(cores) else max(1, sum(cores) // workers)
        while threads > 1 and sum(core // threads for core in cores) < workers:
            threads -= 1
    room = sum(core // threads for core in cores)
    if not 1 <= workers <= room:
        raise ClusterError(
            f"{count(workers, 'worker')} with {count(threads, 'thread')} each do not fit: "
            f"the cluster's machines have {', '.join(map(str, cores))} cores, room for {room}"
        )
    return workers, threads


def check_store(found: list[dict[str, float]], need: int) -> None:
    """Refuse a run for which a machine's object store is too small."""
    least = min(machine.get("object_store_memory", 0) for machine in found)
    if need > least:
        raise ClusterError(
            f"Ray's object store must hold {need / 1e6:,.0f} MB on every machine, and one has {least / 1e6:,.0f} MB: "
            "start Ray with a larger --object-store-memory"
        )


def count(number: int, name: str) -> str:
    """A number of things, in the singular where it is one."""
    return f"{number} {name}" if number == 1 else f"{number} {name}s"


def last_line(error: BaseException) -> str:
    """What went wrong; Ray puts it behind traces."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[-1].strip()[:200]
