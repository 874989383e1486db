"""Connects to a Ray cluster, and checks the resources of its machines."""

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

_CONNECT_TIMEOUT = 10.0
"""Timeout in seconds of the first connection to an address; larger waits longer for a wrong one."""
_TOKEN_HINT = (
    "; if it asks for a token, set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN (`ray get-auth-token` there prints it), "
    "before Ray is imported"
)


def connect(ray: Any, address: str | None) -> bool:
    """Connect to a cluster, or start Ray on this machine; return False if this process was already connected."""
    if ray.is_initialized():
        return False
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # the default of 5 is too short on a busy machine
    os.environ.setdefault("RAY_gcs_rpc_server_connect_timeout_s", "60")
    _check_listening(address)
    is_main_thread = threading.current_thread() is threading.main_thread()
    previous_handler = signal.getsignal(signal.SIGTERM) if is_main_thread else None
    try:
        if address is None:
            # without an address Ray would join any cluster started on this machine, even one that has ended
            local_address = os.environ.get("RAY_ADDRESS") or "local"
            ray.init(address=local_address, log_to_driver=False, logging_level=logging.ERROR, include_dashboard=False)
        elif not is_client(address):
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
        else:
            _connect_client(ray, address)
    except (RuntimeError, ValueError, OSError, ray.exceptions.RayError) as error:
        where = f"at {address}" if address else "on this machine"
        hint = _TOKEN_HINT if is_client(address) else ""
        raise ClusterError(f"no Ray cluster answers {where}: {last_line(error)}{hint}") from error
    finally:
        if previous_handler is not None:
            signal.signal(signal.SIGTERM, previous_handler)
    # Ray's client caches this answer; asking for the first time after the connection is lost would fail
    return bool(ray.is_initialized())


def _connect_client(ray: Any, address: str) -> None:
    """Connect from outside a cluster, without the warnings and logs of Ray's client, which repeat its errors."""
    options = {"address": address, "log_to_driver": False, "logging_level": logging.CRITICAL}
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        try:
            ray.init(**options)
        except ConnectionAbortedError:
            # sometimes the process that serves this client does not start on the cluster; retry
            ray.init(**options)


def is_client(address: str | None) -> bool:
    """Whether an address is for a client outside the cluster."""
    return (address or "").startswith("ray://")


def bring_token() -> None:
    """Make Ray send its authentication token, if there is one; clients outside a cluster do not by default.

    Call this before Ray is imported, which is when it reads the mode.
    """
    is_set = any(os.environ.get(name) for name in ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"))
    if is_set or Path("~/.ray/auth_token").expanduser().exists():
        os.environ.setdefault("RAY_AUTH_MODE", "token")


def _check_listening(address: str | None) -> None:
    """Raise ClusterError if nothing listens at an address; Ray would retry for minutes."""
    host, colon, port = (address or "").removeprefix("ray://").rpartition(":")
    if is_client(address) and not colon:
        raise ClusterError(f"the address must be ray://HOST:PORT, as in ray://10.0.0.1:10001, got {address}")
    if not colon:
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_TIMEOUT).close()
    except (OSError, ValueError, OverflowError) as error:
        raise ClusterError(f"no Ray cluster answers at {address}: {error}") from error


def machines(ray: Any) -> list[dict[str, float]]:
    """Return the resources of each machine of the cluster: CPU, object_store_memory and others."""
    return [node["Resources"] for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU", 0) >= 1]


def share_out(resources: list[dict[str, float]], workers: int | None, threads: int | None) -> tuple[int, int]:
    """Return the number of workers, and of threads for each; by default one worker per machine, with all its cores."""
    if not resources:
        raise ClusterError("no machine of the Ray cluster has a free CPU")
    cores = [int(machine["CPU"]) for machine in resources]
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


def check_store(resources: list[dict[str, float]], need: int) -> None:
    """Raise ClusterError if the object store of a machine is too small for a run."""
    least = min(machine.get("object_store_memory", 0) for machine in resources)
    if need > least:
        raise ClusterError(
            f"Ray's object store must hold {need / 1e6:,.0f} MB on every machine, and one has {least / 1e6:,.0f} MB: "
            "start Ray with a larger --object-store-memory"
        )


def count(number: int, name: str) -> str:
    """Format a number of things: "1 worker", "2 workers"."""
    return f"{number} {name}" if number == 1 else f"{number} {name}s"


def last_line(error: BaseException) -> str:
    """Return the last line of an error, as Ray puts tracebacks before it."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[-1].strip()[:200]
