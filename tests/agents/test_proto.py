"""The code made of the contract is that of the contract."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def test_the_generated_code_is_up_to_date(tmp_path):
    pytest.importorskip("grpc_tools")
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{ROOT / 'proto'}", f"--python_out={tmp_path}",
               f"--pyi_out={tmp_path}", "manela/v1/host.proto"]  # fmt: skip
    subprocess.run(command, check=True)
    for name in ("host_pb2.py", "host_pb2.pyi"):
        made = (tmp_path / "manela" / "v1" / name).read_text()
        assert (ROOT / "src" / "manela" / "agents" / name).read_text() == made, "run `make proto`"
