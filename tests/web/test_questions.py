"""What a request may hold: JSON that can be read in one way, and questions with bounds."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopscope.errors import ConfigError
from hopscope.web.policy import Refused
from hopscope.web.questions import DEPTH, AblateQuestion, ExampleQuestion, read_json

NO_JSON = (
    b"", b"[1]", b"7", b"{}{}", b'{"a": NaN}', b'{"a": -Infinity}', b'{"a": 1e999}',
    b'{"a": ' + b"9" * 5_000 + b"}", b'{"a": 1, "a": 2}', b'{"b": [{"a": 1, "a": 2}]}',
    b'{"a": 1,}', b'{"a": "\\ud800"}', b'{"\\udfff": 1}', b'{"a": "\xff"}',
    '{"a": 1}'.encode("utf-16"), b'\xef\xbb\xbf{"a": 1}',
    b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", b'{"a":' * 20_000 + b"1" + b"}" * 20_000,
    b'{"a": ' + b"[" * DEPTH, b'{"a": "' + b"\\" * 200_001, b'"' * 250_000,
    b'"' + b'\\"' * 125_000,
)  # fmt: skip


def test_json_that_could_be_read_in_two_ways_or_takes_long_is_refused_at_once() -> None:
    for data in NO_JSON:
        begun = time.process_time()
        with pytest.raises(Refused, match="cannot be read: expected") as caught:
            AblateQuestion.parse(data)
        assert caught.value.status == 400, data[:40]
        assert time.process_time() - begun < 1, data[:40]


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


REFUSED = (
    ({"examples": 4097}, "less than or equal to 4096, got 4097"),
    ({"examples": 1}, "greater than or equal to 2, got 1"),
    ({"examples": True}, "expected a number, got True"),
    ({"examples": "4"}, "expected a number, got '4'"),
    ({"examples": 64.0}, "AblateQuestion.examples"),
    ({"circuit": "yes"}, "AblateQuestion.circuit"),
    ({"circuit": 1}, "AblateQuestion.circuit"),
    ({"step": -1}, "greater than or equal to 0, got -1"),
    ({"sample": 10**20}, "AblateQuestion.sample"),
    ({"exmaples": 1}, "a question has no 'exmaples'; it has step, seed, sample"),
    ({"changes": "x"}, "AblateQuestion.changes"),
    ({"changes": [1]}, "AblateQuestion.changes"),
    ({"changes": ["0.0=mean"] * 513}, "should have at most"),
    ({"changes": ["x" * 241]}, "should have at most"),
)


def test_a_question_has_bounds() -> None:
    found = AblateQuestion.parse(b'{"step": 5, "examples": 32, "changes": ["1.0=mean"]}')
    assert found == AblateQuestion(step=5, examples=32, changes=("1.0=mean",))
    assert ExampleQuestion.parse(b"{}").index == 0
    for fields, line in REFUSED:
        with pytest.raises(ConfigError) as error:
            AblateQuestion.parse(json.dumps(fields).encode())
        assert line in str(error.value), fields
        assert "\n" not in str(error.value)
        assert len(str(error.value)) < 400
