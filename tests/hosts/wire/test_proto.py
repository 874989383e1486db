"""The descriptor and the types made of the contract are those of the contract."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from manela.hosts.wire import host_pb2 as wire

ROOT = Path(__file__).resolve().parents[3]


def test_the_generated_files_are_up_to_date(tmp_path):
    pytest.importorskip("grpc_tools")
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{ROOT / 'proto'}",
               f"--descriptor_set_out={tmp_path / 'host.desc'}", f"--pyi_out={tmp_path}",
               "manela/v1/host.proto"]  # fmt: skip
    subprocess.run(command, check=True)
    here = ROOT / "src" / "manela" / "hosts" / "wire"
    assert (here / "host.desc").read_bytes() == (tmp_path / "host.desc").read_bytes(), "run `make proto`"
    # older compilers write the same types in other lines
    names = [re.findall(r"class (\w+)|^    (\w+):", (folder / "host_pb2.pyi").read_text(), re.MULTILINE)
             for folder in (here, tmp_path / "manela" / "v1")]  # fmt: skip
    assert names[0] == names[1], "run `make proto`"


def test_messages_are_found_by_name_and_are_the_same_class_each_time():
    assert wire.Frame is wire.Frame
    frame = wire.Frame(call=3, number=1, last=True, content=b"abc")
    assert wire.Frame.FromString(frame.SerializeToString()) == frame
    assert {"Frame", "Hello", "WalkReply"} <= set(wire.__all__)
    with pytest.raises(AttributeError, match="Frames"):
        wire.Frames  # noqa: B018
