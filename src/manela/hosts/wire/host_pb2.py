"""The messages of proto/manela/v1/host.proto, built from its descriptor when imported.

Code that protoc writes runs with few releases of protobuf only; a descriptor is read by all of them. `make proto`
writes host.desc, and host_pb2.pyi with the types.
"""

from importlib.resources import files
from typing import Any

from manela.errors import import_extra

descriptor_pb2, descriptor_pool, message_factory = (
    import_extra(f"google.protobuf.{name}", "agents", "a host")
    for name in ("descriptor_pb2", "descriptor_pool", "message_factory")
)

_SET = descriptor_pb2.FileDescriptorSet.FromString(files(__package__).joinpath("host.desc").read_bytes())
DESCRIPTOR = descriptor_pool.Default().AddSerializedFile(_SET.file[0].SerializeToString())
__all__ = sorted(DESCRIPTOR.message_types_by_name)


def __getattr__(name: str) -> Any:
    """The class of a message, by its name in the file."""
    if name not in DESCRIPTOR.message_types_by_name:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    made = globals()[name] = message_factory.GetMessageClass(DESCRIPTOR.message_types_by_name[name])
    return made
