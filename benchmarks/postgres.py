"""A PostgreSQL server of one's own: made in an empty folder, reached by a socket in it, and gone at the end."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_USER = "manela"
GUARDED = "guarded"
"""The one user who must give a password, once there is such a user."""


@dataclass(frozen=True)
class Server:
    """A server that runs; all users but one log in without a password."""

    folder: Path
    programs: Path
    port: int = 5432

    @property
    def url(self) -> str:
        """As SQLAlchemy takes it."""
        return f"postgresql://{_USER}@/postgres?host={self.folder}"

    @property
    def psql(self) -> list[str]:
        """The command that runs SQL there."""
        connection = ["-h", str(self.folder), "-p", str(self.port), "-U", _USER, "-d", "postgres"]
        return [str(self.programs / "psql"), "-X", "-q", "-v", "ON_ERROR_STOP=1", *connection]

    def execute(self, sql: str) -> None:
        """Run statements."""
        subprocess.run([*self.psql, "-f", "-"], input=sql, text=True, check=True, capture_output=True)


def find_programs() -> Path | None:
    """The folder with initdb, pg_ctl and psql; None where PostgreSQL is not installed."""
    on_path = shutil.which("initdb")
    folders = [Path(on_path).resolve().parent] if on_path else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next(
        (folder for folder in folders if all((folder / name).exists() for name in ("initdb", "pg_ctl", "psql"))), None
    )


@contextmanager
def start_postgres(programs: Path, port: int | None = None) -> Iterator[Server]:
    """A server that is stopped and removed when the block ends; it refuses to run as root, and gets another user.

    With a port it is reached by that of this machine too.
    """
    folder = Path(tempfile.mkdtemp(prefix="pg"))  # short, as the path of a socket must be
    other: dict[str, int] = {}
    if os.geteuid() == 0:
        account = _unprivileged()
        other = {"user": account.pw_uid, "group": account.pw_gid}
        os.chown(folder, account.pw_uid, account.pw_gid)
    folder.chmod(0o755)
    data = folder / "data"

    def run(name: str, *arguments: str) -> None:
        command = [str(programs / name), "-D", str(data), *arguments]
        done = subprocess.run(
            command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False, **other
        )
        if done.returncode:
            raise RuntimeError(f"{name}: {done.stderr}")

    try:
        run("initdb", "-U", _USER, "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync")
        rules = f"local all {GUARDED} scram-sha-256\nlocal all all trust\nhost all all 127.0.0.1/32 trust\n"
        (data / "pg_hba.conf").write_text(rules)
        address = "" if port is None else "127.0.0.1"
        options = (
            f"-c listen_addresses='{address}' -c port={port or 5432} -c unix_socket_directories='{folder}' "
            "-c fsync=off -c shared_buffers=64MB"
        )
        run("pg_ctl", "-w", "-l", str(folder / "log"), "-o", options, "start")
        try:
            yield Server(folder, programs, port or 5432)
        finally:
            run("pg_ctl", "-w", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _unprivileged() -> pwd.struct_passwd:
    names = {account.pw_name: account for account in pwd.getpwall()}
    return names.get("postgres") or names["nobody"]
