"""Questions are parsed from bytes within bounds, or refused in one line."""

import json

import pytest

from hopscope.errors import ConfigError
from hopscope.web.questions import AblateQuestion, ExampleQuestion


def test_a_question_is_read_from_its_bytes() -> None:
    found = AblateQuestion.parse(b'{"step": 5, "examples": 32, "changes": ["1.0=mean"]}')
    assert found == AblateQuestion(step=5, examples=32, changes=("1.0=mean",))
    assert ExampleQuestion.parse(b"{}").index == 0


@pytest.mark.parametrize(
    ("body", "line"),
    [
        (b"", "a question is a JSON object, and this is not"),
        (b"\xff", "a question is a JSON object, and this is not"),
        (b"[]", r"a question is a JSON object, got \[\]"),
        (b"[" * 100_000, "a question is a JSON object, and this is not"),
        (b'{"examples": NaN}', "NaN is no number"),
        (b'{"examples": 1' + b"0" * 5000 + b"}", "a question is a JSON object, and this is not"),
        (b'{"examples": 1000000000}', "less than or equal to 4096, got 1000000000"),
        (b'{"examples": 0}', "greater than or equal to 1, got 0"),
        (b'{"examples": true}', "expected a number, got True"),
        (b'{"examples": "4"}', "expected a number, got '4'"),
        (b'{"circuit": "yes"}', "AblateQuestion.circuit"),
        (b'{"circuit": 1}', "AblateQuestion.circuit"),
        (b'{"step": -1}', "greater than or equal to 0, got -1"),
        (b'{"exmaples": 1}', "a question has no 'exmaples'; it has step, seed, sample"),
        (b'{"changes": ["\\ud800"]}', "AblateQuestion.changes.0"),
    ],
)
def test_anything_else_is_refused_in_one_line(body: bytes, line: str) -> None:
    with pytest.raises(ConfigError, match=line) as error:
        AblateQuestion.parse(body)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 400


def test_there_are_bounds() -> None:
    for fields in ({"changes": ["0.0=mean"] * 513}, {"changes": ["x" * 241]}):
        with pytest.raises(ConfigError, match="should have at most"):
            AblateQuestion.parse(json.dumps(fields).encode())
