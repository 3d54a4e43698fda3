"""TensorBoard's event files, written out: records with check sums, each a small protobuf message.

record  length (uint64), masked CRC-32C of it, message, masked CRC-32C of that
event   1 wall time (double), 2 step (varint), 3 version (string) or 5 summary
summary 1 value, again and again: 1 tag, and 2 number (float) or 8 tensor with 9 metadata

The format is TensorFlow's (`event.proto`, `summary.proto`, `record_writer.h`).
"""

import struct
from collections.abc import Callable, Mapping, Sequence

Record = Callable[[float], bytes]
"""A record, once its time is given."""
VARINT, DOUBLE, BYTES, FLOAT = 0, 1, 2, 5
"""How a field is written, as protobuf numbers it."""
TEXT = 7
"""TensorFlow's number for the type of strings."""
TIME = struct.Struct("<13xd")
"""Where a record has its time: behind its length, the check sum of that, and the field's key."""
POLYNOMIAL = 0x82F63B78
"""CRC-32C (Castagnoli), its bits reversed."""


def opening(time: float) -> bytes:
    """The record that every file begins with."""
    return record(_number(1, time) + _bytes(3, b"brain.Event:2"))


def scalars(time: float, step: int, values: Mapping[str, float]) -> bytes:
    """The record of numbers by name, at a step."""
    written = (_text(1, name) + _float(2, value) for name, value in values.items())
    return _event(time, step, b"".join(_bytes(1, value) for value in written))


def text(time: float, name: str, content: str) -> bytes:
    """The record of a text in Markdown, for TensorBoard's page of texts."""
    plugin = _bytes(1, _text(1, "text"))
    tensor = _whole(1, TEXT) + _bytes(2, _bytes(2, _whole(1, 1))) + _text(8, content)
    return _event(time, 0, _bytes(1, _text(1, name) + _bytes(8, tensor) + _bytes(9, plugin)))


def record(message: bytes) -> bytes:
    """A message with its length and check sums."""
    length = struct.pack("<Q", len(message))
    return length + _masked(length) + message + _masked(message)


def begun(data: bytes, made: Sequence[Record]) -> int | None:
    """With how many of these records a file begins, whatever their times are; None if it holds
    anything else.
    """
    at = 0
    for number, make in enumerate(made):
        if at == len(data):
            return number
        found = data[at : at + TIME.size]
        record_ = make(TIME.unpack(found)[0]) if len(found) == TIME.size else b""
        if not record_ or data[at : at + len(record_)] != record_:
            return None
        at += len(record_)
    return len(made) if at == len(data) else None


def _event(time: float, step: int, summary: bytes) -> bytes:
    return record(_number(1, time) + _whole(2, step) + _bytes(5, summary))


def _number(field: int, value: float) -> bytes:
    return _key(field, DOUBLE) + struct.pack("<d", value)


def _float(field: int, value: float) -> bytes:
    return _key(field, FLOAT) + struct.pack("<f", value)


def _whole(field: int, value: int) -> bytes:
    return _key(field, VARINT) + _varint(value)


def _text(field: int, value: str) -> bytes:
    return _bytes(field, value.encode())


def _bytes(field: int, value: bytes) -> bytes:
    return _key(field, BYTES) + _varint(len(value)) + value


def _key(field: int, kind: int) -> bytes:
    return _varint(field << 3 | kind)


def _varint(value: int) -> bytes:
    """Seven bits a byte, the lowest first; the top bit says that more follow."""
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes((*found, value))


def _masked(data: bytes) -> bytes:
    """The check sum, changed as the format wants it, since data may hold check sums of its own."""
    found = crc32c(data)
    turned = (found >> 15 | found << 17) & 0xFFFFFFFF
    return struct.pack("<I", (turned + 0xA282EAD8) & 0xFFFFFFFF)


def crc32c(data: bytes) -> int:
    """The CRC-32C of these bytes.

    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    """
    found = 0xFFFFFFFF
    for byte in data:
        found = found >> 8 ^ REMAINDERS[(found ^ byte) & 255]
    return found ^ 0xFFFFFFFF


def _remainder(byte: int) -> int:
    for _ in range(8):
        byte = byte >> 1 ^ (POLYNOMIAL if byte & 1 else 0)
    return byte


REMAINDERS = tuple(map(_remainder, range(256)))
"""What each byte adds to the check sum."""
