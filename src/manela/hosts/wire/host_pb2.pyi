from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

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
    __slots__ = ("protocol", "host", "exchange", "dimensions", "hops", "context", "lock_step", "half", "nodes", "run", "numbers", "totals", "program", "views", "frame")
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    EXCHANGE_FIELD_NUMBER: _ClassVar[int]
    DIMENSIONS_FIELD_NUMBER: _ClassVar[int]
    HOPS_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    LOCK_STEP_FIELD_NUMBER: _ClassVar[int]
    HALF_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    NUMBERS_FIELD_NUMBER: _ClassVar[int]
    TOTALS_FIELD_NUMBER: _ClassVar[int]
    PROGRAM_FIELD_NUMBER: _ClassVar[int]
    VIEWS_FIELD_NUMBER: _ClassVar[int]
    FRAME_FIELD_NUMBER: _ClassVar[int]
    protocol: int
    host: str
    exchange: str
    dimensions: int
    hops: int
    context: bool
    lock_step: bool
    half: bool
    nodes: int
    run: str
    numbers: bytes
    totals: Totals
    program: str
    views: str
    frame: VectorFrame
    def __init__(self, protocol: _Optional[int] = ..., host: _Optional[str] = ..., exchange: _Optional[str] = ..., dimensions: _Optional[int] = ..., hops: _Optional[int] = ..., context: _Optional[bool] = ..., lock_step: _Optional[bool] = ..., half: _Optional[bool] = ..., nodes: _Optional[int] = ..., run: _Optional[str] = ..., numbers: _Optional[bytes] = ..., totals: _Optional[_Union[Totals, _Mapping]] = ..., program: _Optional[str] = ..., views: _Optional[str] = ..., frame: _Optional[_Union[VectorFrame, _Mapping]] = ...) -> None: ...

class Totals(_message.Message):
    __slots__ = ("joined", "arcs", "strengths", "frequencies", "sizes")
    JOINED_FIELD_NUMBER: _ClassVar[int]
    ARCS_FIELD_NUMBER: _ClassVar[int]
    STRENGTHS_FIELD_NUMBER: _ClassVar[int]
    FREQUENCIES_FIELD_NUMBER: _ClassVar[int]
    SIZES_FIELD_NUMBER: _ClassVar[int]
    joined: int
    arcs: int
    strengths: _containers.RepeatedScalarFieldContainer[float]
    frequencies: _containers.RepeatedScalarFieldContainer[float]
    sizes: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, joined: _Optional[int] = ..., arcs: _Optional[int] = ..., strengths: _Optional[_Iterable[float]] = ..., frequencies: _Optional[_Iterable[float]] = ..., sizes: _Optional[_Iterable[float]] = ...) -> None: ...

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

class Erasure(_message.Message):
    __slots__ = ("nodes",)
    NODES_FIELD_NUMBER: _ClassVar[int]
    nodes: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, nodes: _Optional[_Iterable[str]] = ...) -> None: ...

class Receipt(_message.Message):
    __slots__ = ("id", "time")
    ID_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    id: str
    time: int
    def __init__(self, id: _Optional[str] = ..., time: _Optional[int] = ...) -> None: ...

class Pull(_message.Message):
    __slots__ = ("session", "phase", "number", "level", "since", "frame")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    PHASE_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    FRAME_FIELD_NUMBER: _ClassVar[int]
    session: int
    phase: int
    number: int
    level: int
    since: int
    frame: VectorFrame
    def __init__(self, session: _Optional[int] = ..., phase: _Optional[int] = ..., number: _Optional[int] = ..., level: _Optional[int] = ..., since: _Optional[int] = ..., frame: _Optional[_Union[VectorFrame, _Mapping]] = ...) -> None: ...

class Shown(_message.Message):
    __slots__ = ("phase", "number", "level", "version", "half", "changed", "rows", "levels", "strengths", "moments", "sums", "sum", "products", "frame")
    PHASE_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    HALF_FIELD_NUMBER: _ClassVar[int]
    CHANGED_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    LEVELS_FIELD_NUMBER: _ClassVar[int]
    STRENGTHS_FIELD_NUMBER: _ClassVar[int]
    MOMENTS_FIELD_NUMBER: _ClassVar[int]
    SUMS_FIELD_NUMBER: _ClassVar[int]
    SUM_FIELD_NUMBER: _ClassVar[int]
    PRODUCTS_FIELD_NUMBER: _ClassVar[int]
    FRAME_FIELD_NUMBER: _ClassVar[int]
    phase: int
    number: int
    level: int
    version: int
    half: bool
    changed: bytes
    rows: bytes
    levels: int
    strengths: bytes
    moments: _containers.RepeatedCompositeFieldContainer[Moments]
    sums: Sums
    sum: Sum
    products: Products
    frame: VectorFrame
    def __init__(self, phase: _Optional[int] = ..., number: _Optional[int] = ..., level: _Optional[int] = ..., version: _Optional[int] = ..., half: _Optional[bool] = ..., changed: _Optional[bytes] = ..., rows: _Optional[bytes] = ..., levels: _Optional[int] = ..., strengths: _Optional[bytes] = ..., moments: _Optional[_Iterable[_Union[Moments, _Mapping]]] = ..., sums: _Optional[_Union[Sums, _Mapping]] = ..., sum: _Optional[_Union[Sum, _Mapping]] = ..., products: _Optional[_Union[Products, _Mapping]] = ..., frame: _Optional[_Union[VectorFrame, _Mapping]] = ...) -> None: ...

class VectorFrame(_message.Message):
    __slots__ = ("generation", "id")
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    generation: int
    id: int
    def __init__(self, generation: _Optional[int] = ..., id: _Optional[int] = ...) -> None: ...

class Moments(_message.Message):
    __slots__ = ("size", "total", "products")
    SIZE_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    PRODUCTS_FIELD_NUMBER: _ClassVar[int]
    size: int
    total: bytes
    products: bytes
    def __init__(self, size: _Optional[int] = ..., total: _Optional[bytes] = ..., products: _Optional[bytes] = ...) -> None: ...

class Sums(_message.Message):
    __slots__ = ("count", "total", "squares")
    COUNT_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    SQUARES_FIELD_NUMBER: _ClassVar[int]
    count: int
    total: bytes
    squares: bytes
    def __init__(self, count: _Optional[int] = ..., total: _Optional[bytes] = ..., squares: _Optional[bytes] = ...) -> None: ...

class Sum(_message.Message):
    __slots__ = ("count", "parts")
    COUNT_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    count: int
    parts: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, count: _Optional[int] = ..., parts: _Optional[_Iterable[float]] = ...) -> None: ...

class Products(_message.Message):
    __slots__ = ("size", "unit", "sums")
    SIZE_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    SUMS_FIELD_NUMBER: _ClassVar[int]
    size: int
    unit: float
    sums: bytes
    def __init__(self, size: _Optional[int] = ..., unit: _Optional[float] = ..., sums: _Optional[bytes] = ...) -> None: ...

class WalkRequest(_message.Message):
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

class WalkReply(_message.Message):
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
