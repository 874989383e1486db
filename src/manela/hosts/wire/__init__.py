"""What messages look like as bytes: protobuf, frames, and bounds that hold before anything is parsed.

Only this room knows protobuf. It moves nothing, and decides nothing but whether bytes are well formed.
"""
