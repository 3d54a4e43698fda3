"""Questions are parsed from bytes within bounds, or refused in one line."""

import json

import pytest

from hopscope.errors import ConfigError
from hopscope.web.questions import AblateQuestion, ExampleQuestion


def test_a_question_is_read_from_its_bytes() -> None:
    found = AblateQuestion.parse(b'{"step": 5, "examples": 32, "changes": ["1.0=mean"]}')
    assert found == AblateQuestion(step=5, examples=32, changes=("1.0=mean",))
    assert ExampleQuestion.parse(b"{}").index == 0


REFUSED = (
    (b"", "a question is a JSON object, and this is not"),
    (b"[]", "a question is a JSON object, got []"),
    (b"[" * 100_000, "a question is a JSON object, and this is not"),
    (b'{"examples": NaN}', "NaN is no number"),
    (b'{"examples": 4097}', "less than or equal to 4096, got 4097"),
    (b'{"examples": 0}', "greater than or equal to 1, got 0"),
    (b'{"examples": true}', "expected a number, got True"),
    (b'{"examples": "4"}', "expected a number, got '4'"),
    (b'{"circuit": "yes"}', "AblateQuestion.circuit"),
    (b'{"step": -1}', "greater than or equal to 0, got -1"),
    (b'{"step": 1e400}', "AblateQuestion.step"),
    (b'{"sample": 99999999999999999999}', "AblateQuestion.sample"),
    (b'{"exmaples": 1}', "a question has no 'exmaples'; it has step, seed, sample"),
    (b'{"changes": "x"}', "AblateQuestion.changes"),
    (b'{"changes": ["\\ud800"]}', "AblateQuestion.changes.0"),
    (json.dumps({"changes": ["0.0=mean"] * 513}).encode(), "should have at most"),
    (json.dumps({"changes": ["x" * 241]}).encode(), "should have at most"),
)


def test_anything_else_is_refused_in_one_line() -> None:
    for body, line in REFUSED:
        with pytest.raises(ConfigError) as error:
            AblateQuestion.parse(body)
        assert line in str(error.value), body[:100]
        assert "\n" not in str(error.value)
        assert len(str(error.value)) < 400
