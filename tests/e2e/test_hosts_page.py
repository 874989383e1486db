"""docs/hosts.md, followed by a shell from its first host to vectors."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from manela.formats.embeddings import read_embedding
from manela.hosts.folder.home import read_status

PAGE = Path(__file__).parents[2] / "docs" / "hosts.md"
PATIENCE = 300.0


def find_block(beginning):
    """The block of the page that begins like this."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return next(block for block in blocks if block.startswith(beginning))


def test_the_page_leads_from_two_new_hosts_to_their_vectors(tmp_path):
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    options = {"cwd": tmp_path, "env": {**os.environ, "PATH": path}, "text": True}

    def run(block):
        done = subprocess.run(
            ["bash", "-e", "-c", block], capture_output=True, timeout=PATIENCE, check=False, **options
        )
        assert done.returncode == 0, done.stderr

    for beginning in ("manela agent init alpha", "manela agent peer add beta", "cat > alpha.csv"):
        run(find_block(beginning))
    with (tmp_path / "log").open("w") as log:
        daemons = subprocess.Popen(
            ["bash", "-c", find_block("manela agent run --home alpha --trace") + "\nwait"],
            stdout=log, stderr=log, start_new_session=True, **options,
        )  # fmt: skip
    try:
        until = time.monotonic() + PATIENCE
        while not all(read_status(tmp_path / name).get("state") == "done" for name in ("alpha", "beta")):
            assert time.monotonic() < until, (tmp_path / "log").read_text()
            time.sleep(0.1)
        run(find_block("manela agent export"))
        run(find_block("manela agent exposure"))
    finally:
        os.killpg(daemons.pid, signal.SIGTERM)
        daemons.wait(60)
    assert set(read_embedding(tmp_path / "alpha-vectors.csv").nodes.tolist()) == {"ann", "bob"}
