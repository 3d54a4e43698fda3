"""Event files, read by TensorBoard itself, and their check sums by the book."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopscope.sharing.events import crc32c, opening, scalars, text


def slow_crc32c(data: bytes) -> int:
    """Long division of polynomials, bit by bit."""
    found = 0xFFFFFFFF
    for byte in data:
        for bit in range(8):
            top = (found ^ byte >> bit) & 1
            found = found >> 1 ^ (0x82F63B78 if top else 0)
    return found ^ 0xFFFFFFFF


@given(st.binary(max_size=40))
@settings(max_examples=30)
def test_check_sums_are_those_of_long_division(data: bytes) -> None:
    assert crc32c(data) == slow_crc32c(data)


def test_long_names_and_large_steps_are_read_as_they_were_written() -> None:
    event_pb2 = pytest.importorskip("tensorboard.compat.proto.event_pb2")
    values = {"x" * 300: 0.25, "attention/0.1/value 0←key 0": float("inf"), "zero": 0.0}
    event = event_pb2.Event.FromString(scalars(12.5, 2**31, values)[12:-4])
    assert (event.wall_time, event.step) == (12.5, 2**31)
    assert {each.tag: each.simple_value for each in event.summary.value} == values
    assert event_pb2.Event.FromString(opening(1.0)[12:-4]).file_version == "brain.Event:2"
    (value,) = event_pb2.Event.FromString(text(1.0, "config", "| é |")[12:-4]).summary.value
    assert value.tensor.string_val == ["| é |".encode()]
    assert value.metadata.plugin_data.plugin_name == "text"
