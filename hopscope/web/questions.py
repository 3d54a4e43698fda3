"""Parse and validate the bodies of requests.

JSON must be unambiguous: UTF-8, unique keys, small depth, finite numbers. The fields of a question
have bounds.
"""

import json
import re
from collections.abc import Callable
from typing import Annotated, Any, Literal, Never, Self

from pydantic import Field

from hopscope.configs import Config
from hopscope.configs.config import Whole, shortened
from hopscope.errors import ConfigError
from hopscope.web.policy import Refused

STUDY = "study"
"""The kind and the id of a study (a model with its task) on the page."""
DEPTH = 16
TEXT = re.compile(rb'"(?:[^"\\]|\\.)*"?', re.DOTALL)
"""A JSON text; an unclosed quote matches to the end, so that the scan takes linear time."""
BRACKET = re.compile(rb"[][{}]")
MOST_EXAMPLES = 4096
MOST_CHANGES = 512
VIEWABLE = 10_000
"""Number of examples that can be shown; to show one, all before it are made too."""

Ask = Callable[[], None]
"""Called between the steps of a computation; raises if the client no longer waits for it."""
Number = Annotated[Whole, Field(strict=True, ge=0)]
Word = Annotated[str, Field(max_length=24)]
ChangeText = Annotated[str, Field(max_length=240)]
"""One change, in the grammar of `hopscope.circuits.ablation`."""
ExampleCount = Annotated[Whole, Field(strict=True, ge=2, le=MOST_EXAMPLES)]
"""Number of examples for losses: at least 2, because one has no interval."""
ChangeTexts = Annotated[tuple[ChangeText, ...], Field(max_length=MOST_CHANGES)]


class ModelQuestion(Config):
    """A question about one model of a run."""

    step: Number | None = None
    """The step of the checkpoint (default: the last)."""
    seed: Number | None = None
    """The seed of the fleet member (default: the first)."""
    sample: Number = 0
    """The seed of the examples."""
    changes: ChangeTexts = ()
    """Changes of heads."""
    circuit: Annotated[bool, Field(strict=True)] = False
    """Change heads of the circuit instead of the model's."""

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """Parse the body of a request; raises Refused or ConfigError."""
        fields = read_json(data)
        if unknown := sorted(set(fields) - set(cls.model_fields)):
            known = ", ".join(cls.model_fields)
            raise ConfigError(f"a question has no {shortened(repr(unknown[0]))}; it has {known}")
        return cls(**fields)


class ExampleQuestion(ModelQuestion):
    """One example: its tokens, the answers to it, and the attention of every head."""

    index: Annotated[Number, Field(lt=VIEWABLE)] = 0
    """The number of the example."""
    tokens: Annotated[tuple[Word, ...], Field(max_length=4096)] | None = None
    """A sequence typed by the user, symbol by symbol (default: the drawn example)."""
    order: Number | None = None
    """The seed of another order of the same facts (default: the example's own order)."""
    kind: Annotated[str, Field(max_length=80)] | None = None
    """The kind of question of a benchmark (default: the first)."""


class AblateQuestion(ModelQuestion):
    """Losses of the model without and with these changes."""

    examples: ExampleCount = 256
    probe: Annotated[bool, Field(strict=True)] = False
    """Also return which symbols can be decoded at each role with the changes."""


class CostsQuestion(ModelQuestion):
    """Losses with every head and every path changed in turn."""

    examples: ExampleCount = 256
    instead: Literal["uniform", "itself", "previous", "position", "mean", "resample"] = "uniform"
    """The change of each."""


def read_json(data: bytes) -> dict[str, Any]:
    """Parse a JSON object; raises Refused for any other text."""
    depth = 0
    for bracket in BRACKET.findall(TEXT.sub(b"", data)):
        depth += 1 if bracket in b"[{" else -1
        if depth > DEPTH:
            raise _refused(f"JSON of at most {DEPTH} levels")
    try:
        found = json.loads(data.decode(), object_pairs_hook=_once, parse_constant=_none)
        json.dumps(found, ensure_ascii=False, allow_nan=False).encode()  # surrogates, 1e999
    except (ValueError, RecursionError):
        raise _refused("JSON in UTF-8, of finite numbers") from None
    if not isinstance(found, dict):
        raise _refused("a JSON object")
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(found := dict(pairs)) < len(pairs):
        raise _refused("JSON that names each field once")
    return found


def _none(_: str) -> Never:
    raise ValueError("not a number")


def _refused(expected: str) -> Refused:
    return Refused(400, f"the request cannot be read: expected {expected}")
