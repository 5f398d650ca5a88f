"""The envelope for private data in the user data of a subscription or an assignment.

The data follow the assignor's own user data, whose decoders read from the first byte and ignore what follows.
They end with a footer of twelve bytes: the length of the data (big-endian int32), a version byte (1), and
seven bytes that name the kind of the data. Envelopes of several kinds may follow each other.
"""

import struct

_FOOTER = struct.Struct(">iB7s")
_VERSION = 1


def attach(own: bytes | None, kind: bytes, data: bytes) -> bytes:
    """Return the assignor's own user data followed by private data of a kind (seven bytes)."""
    return (own or b"") + data + _FOOTER.pack(len(data), _VERSION, kind)


def detach(user_data: bytes | None, kind: bytes) -> tuple[bytes | None, bytes | None]:
    """Return the assignor's own user data and the private data; None for each if absent.

    User data without an envelope of this kind are returned unchanged.
    """
    if user_data is None or len(user_data) < _FOOTER.size:
        return user_data, None
    end = len(user_data) - _FOOTER.size
    length, version, found = _FOOTER.unpack_from(user_data, end)
    if found != kind or version < _VERSION or not 0 <= length <= end:
        return user_data, None
    return user_data[: end - length] or None, user_data[end - length : end]
