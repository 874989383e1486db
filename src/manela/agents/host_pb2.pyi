from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class Frame(_message.Message):
    __slots__ = ("call", "number", "last", "content")
    CALL_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    call: int
    number: int
    last: bool
    content: bytes
    def __init__(self, call: _Optional[int] = ..., number: _Optional[int] = ..., last: _Optional[bool] = ..., content: _Optional[bytes] = ...) -> None: ...

class Hello(_message.Message):
    __slots__ = ("protocol", "host", "dimensions", "hops", "context", "lock_step", "half", "nodes", "strengths", "run", "numbers")
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    DIMENSIONS_FIELD_NUMBER: _ClassVar[int]
    HOPS_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    LOCK_STEP_FIELD_NUMBER: _ClassVar[int]
    HALF_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    STRENGTHS_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    NUMBERS_FIELD_NUMBER: _ClassVar[int]
    protocol: int
    host: str
    dimensions: int
    hops: int
    context: bool
    lock_step: bool
    half: bool
    nodes: int
    strengths: _containers.RepeatedScalarFieldContainer[float]
    run: str
    numbers: bytes
    def __init__(self, protocol: _Optional[int] = ..., host: _Optional[str] = ..., dimensions: _Optional[int] = ..., hops: _Optional[int] = ..., context: _Optional[bool] = ..., lock_step: _Optional[bool] = ..., half: _Optional[bool] = ..., nodes: _Optional[int] = ..., strengths: _Optional[_Iterable[float]] = ..., run: _Optional[str] = ..., numbers: _Optional[bytes] = ...) -> None: ...

class Introduction(_message.Message):
    __slots__ = ("askers", "others")
    ASKERS_FIELD_NUMBER: _ClassVar[int]
    OTHERS_FIELD_NUMBER: _ClassVar[int]
    askers: _containers.RepeatedScalarFieldContainer[str]
    others: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, askers: _Optional[_Iterable[str]] = ..., others: _Optional[_Iterable[str]] = ...) -> None: ...

class Acceptance(_message.Message):
    __slots__ = ("session", "accepted")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_FIELD_NUMBER: _ClassVar[int]
    session: int
    accepted: bytes
    def __init__(self, session: _Optional[int] = ..., accepted: _Optional[bytes] = ...) -> None: ...

class Request(_message.Message):
    __slots__ = ("session", "round", "neighbours", "since", "edges", "steps", "firsts", "keys", "random", "numbers")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    ROUND_FIELD_NUMBER: _ClassVar[int]
    NEIGHBOURS_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    EDGES_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    FIRSTS_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    RANDOM_FIELD_NUMBER: _ClassVar[int]
    NUMBERS_FIELD_NUMBER: _ClassVar[int]
    session: int
    round: int
    neighbours: bool
    since: int
    edges: bytes
    steps: bytes
    firsts: bytes
    keys: bytes
    random: int
    numbers: bytes
    def __init__(self, session: _Optional[int] = ..., round: _Optional[int] = ..., neighbours: _Optional[bool] = ..., since: _Optional[int] = ..., edges: _Optional[bytes] = ..., steps: _Optional[bytes] = ..., firsts: _Optional[bytes] = ..., keys: _Optional[bytes] = ..., random: _Optional[int] = ..., numbers: _Optional[bytes] = ...) -> None: ...

class Reply(_message.Message):
    __slots__ = ("version", "half", "changed", "neighbours", "index", "vectors")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    HALF_FIELD_NUMBER: _ClassVar[int]
    CHANGED_FIELD_NUMBER: _ClassVar[int]
    NEIGHBOURS_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    VECTORS_FIELD_NUMBER: _ClassVar[int]
    version: int
    half: bool
    changed: bytes
    neighbours: bytes
    index: bytes
    vectors: bytes
    def __init__(self, version: _Optional[int] = ..., half: _Optional[bool] = ..., changed: _Optional[bytes] = ..., neighbours: _Optional[bytes] = ..., index: _Optional[bytes] = ..., vectors: _Optional[bytes] = ...) -> None: ...
