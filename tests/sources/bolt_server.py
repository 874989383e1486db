"""A small server of Neo4j's Bolt protocol 5.0, by the codec of Neo4j's own driver."""

import socket
import struct
import threading
from contextlib import contextmanager

from neo4j._codec.packstream.v1 import PackableBuffer, Packer, UnpackableBuffer, Unpacker

HELLO, GOODBYE, RESET, RUN, BEGIN, COMMIT, ROLLBACK, DISCARD, PULL = (
    0x01, 0x02, 0x0F, 0x10, 0x11, 0x12, 0x13, 0x2F, 0x3F,
)  # fmt: skip
SUCCESS, RECORD, IGNORED, FAILURE = 0x70, 0x71, 0x7E, 0x7F


class Bolt:
    """What is answered to any query, and what was asked."""

    def __init__(self, fields, records, password="open sesame"):
        self.fields, self.records, self.password = fields, records, password
        self.queries, self.modes, self.pulls = [], [], []
        self.failure = None
        self.url = ""


@contextmanager
def serve_bolt(bolt, port=0):
    """Answer on a port of this machine, a free one by default, until the block ends."""
    listener = socket.create_server(("127.0.0.1", port))
    bolt.url = f"bolt://127.0.0.1:{listener.getsockname()[1]}"

    def accept():
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=_converse, args=(bolt, connection), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield bolt
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


def _converse(bolt, connection):
    with connection, connection.makefile("rwb") as stream:
        if stream.read(20)[:4] != b"\x60\x60\xb0\x17":
            return
        stream.write(b"\x00\x00\x00\x05")
        stream.flush()
        at, has_failed = 0, False
        while (message := _receive(stream)) is not None:
            kind, fields = message
            if kind == GOODBYE:
                return
            if has_failed and kind != RESET:
                _send(stream, IGNORED)
                continue
            if kind == HELLO and fields[0].get("credentials", bolt.password) != bolt.password:
                _send(stream, FAILURE, {"code": "Neo.ClientError.Security.Unauthorized", "message": "wrong password"})
                return
            if kind == HELLO:
                _send(stream, SUCCESS, {"server": "Neo4j/5.0.0", "connection_id": "bolt-1", "hints": {}})
            elif kind == BEGIN:
                bolt.modes.append(fields[0].get("mode"))
                _send(stream, SUCCESS, {})
            elif kind == RUN:
                bolt.queries.append(fields[0])
                at = 0
                if bolt.failure:
                    has_failed = True
                    _send(stream, FAILURE, {"code": "Neo.ClientError.Statement.SyntaxError", "message": bolt.failure})
                else:
                    _send(stream, SUCCESS, {"fields": bolt.fields, "t_first": 0, "qid": 0})
            elif kind == PULL:
                count = fields[0]["n"]
                bolt.pulls.append(count)
                end = len(bolt.records) if count < 0 else min(at + count, len(bolt.records))
                for record in bolt.records[at:end]:
                    _send(stream, RECORD, list(record))
                at = end
                _send(stream, SUCCESS, {"has_more": True} if at < len(bolt.records) else {"type": "r", "t_last": 0})
            else:  # COMMIT, ROLLBACK, DISCARD, RESET
                has_failed = False
                _send(stream, SUCCESS, {})
            stream.flush()


def _receive(stream):
    """The signature and fields of the next message; None at the end."""
    data = b""
    while True:
        header = stream.read(2)
        if len(header) < 2:
            return None
        (size,) = struct.unpack(">H", header)
        if size == 0 and data:
            break
        data += stream.read(size)
    buffer = UnpackableBuffer(data)
    unpacker = Unpacker(buffer)
    count, signature = unpacker.unpack_structure_header()
    return signature[0], [unpacker.unpack() for _ in range(count)]


def _send(stream, signature, *fields):
    buffer = PackableBuffer()
    packer = Packer(buffer)
    packer.pack_struct(bytes([signature]), list(fields))
    data = bytes(buffer.data)
    for first in range(0, len(data), 0xFFFF):
        piece = data[first : first + 0xFFFF]
        stream.write(struct.pack(">H", len(piece)) + piece)
    stream.write(b"\x00\x00")
    if signature != RECORD:
        stream.flush()
