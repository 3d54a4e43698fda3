"""JSON that could be read in two ways, or takes long to read, is not read at all."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopscope.web.policy import Refused
from hopscope.web.strict import DEPTH, read_json

BAD = {
    "nothing": b"",
    "no object": b"[1]",
    "a number": b"7",
    "two": b"{}{}",
    "NaN": b'{"a": NaN}',
    "infinite": b'{"a": -Infinity}',
    "too large": b'{"a": 1e999}',
    "many digits": b'{"a": ' + b"9" * 5_000 + b"}",
    "twice": b'{"a": 1, "a": 2}',
    "twice inside": b'{"b": [{"a": 1, "a": 2}]}',
    "a comma": b'{"a": 1,}',
    "half a pair": b'{"a": "\\ud800"}',
    "half a pair as a key": b'{"\\udfff": 1}',
    "no UTF-8": b'{"a": "\xff"}',
    "UTF-16": '{"a": 1}'.encode("utf-16"),
    "a mark": b'\xef\xbb\xbf{"a": 1}',
    "deep": b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "deep objects": b'{"a":' * 20_000 + b"1" + b"}" * 20_000,
    "open": b'{"a": ' + b"[" * DEPTH,
    "a quote that does not end": b'{"a": "' + b"\\" * 200_001,
    "many quotes": b'"' * 250_000,
    "a text that does not end": b'"' + b'\\"' * 125_000,
}


def test_what_is_refused_at_once() -> None:
    for name, data in BAD.items():
        begun = time.process_time()
        with pytest.raises(Refused, match="cannot be read: expected") as caught:
            read_json(data)
        assert caught.value.status == 400, name
        assert time.process_time() - begun < 1, name


def test_as_deep_as_is_allowed_and_no_deeper() -> None:
    """Brackets in a text are no depth."""
    assert read_json(b'{"a": "' + b"[" * 100 + b'\\"{{{"}') == {"a": "[" * 100 + '"{{{'}
    assert read_json(b'{"a":' * DEPTH + b"1" + b"}" * DEPTH)
    with pytest.raises(Refused, match=f"at most {DEPTH} levels"):
        read_json(b'{"a":' * (DEPTH + 1) + b"1" + b"}" * (DEPTH + 1))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab"), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), JSON, max_size=4))
def test_what_a_browser_writes_is_read(value: dict[str, object]) -> None:
    assert read_json(json.dumps(value, ensure_ascii=False).encode()) == value
