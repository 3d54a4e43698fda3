"""What is asked in the body of a request: JSON as a browser writes it, and nothing else (one
meaning, little depth, finite numbers); and of a model, data with bounds.
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
"""The kind, and the id, of what is no run: a model with its task."""
DEPTH = 16
TEXT = re.compile(rb'"(?:[^"\\]|\\.)*"?', re.DOTALL)
"""A text, or all that follows a quote which nothing ends: so that no byte is read twice."""
BRACKET = re.compile(rb"[][{}]")
MOST_EXAMPLES = 4096
MOST_CHANGES = 512
VIEWABLE = 10_000
"""Examples one of which can be looked at; all before it are made as well."""

Ask = Callable[[], None]
"""Is called between the steps of an answer, and raises where nobody waits for it any more."""
Number = Annotated[Whole, Field(strict=True, ge=0)]
Word = Annotated[str, Field(max_length=24)]
Change = Annotated[str, Field(max_length=240)]
"""One change, in the grammar of `hopscope.circuits.ablation`."""
Examples = Annotated[Whole, Field(strict=True, ge=2, le=MOST_EXAMPLES)]
"""How many losses are measured on: one alone has no interval."""
Changes = Annotated[tuple[Change, ...], Field(max_length=MOST_CHANGES)]


class ModelQuestion(Config):
    """Which model of a run is asked about."""

    step: Number | None = None
    """The checkpoint after this step; unset: the last."""
    seed: Number | None = None
    """Of a fleet, the model with this seed; unset: the first."""
    sample: Number = 0
    """Which examples: another number draws others."""
    changes: Changes = ()
    """What heads do instead."""
    circuit: Annotated[bool, Field(strict=True)] = False
    """Change heads of the circuit instead of the model as it is."""

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """The question in the body of a request; anything else is an error in one line."""
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
    """A sequence that somebody typed, symbol by symbol; unset: the example as it was drawn."""
    order: Number | None = None
    """Another order of the same facts, by any number; unset: the example's own."""
    kind: Annotated[str, Field(max_length=80)] | None = None
    """Of a benchmark, the kind of question; unset: the first."""


class AblateQuestion(ModelQuestion):
    """Losses of the model as it is, and with these changes."""

    examples: Examples = 256
    probe: Annotated[bool, Field(strict=True)] = False
    """Also which symbols can be read at each role with the changes."""


class CostsQuestion(ModelQuestion):
    """Losses with every head and every path changed in turn."""

    examples: Examples = 256
    instead: Literal["uniform", "itself", "previous", "position", "mean", "resample"] = "uniform"
    """What each does instead; a single row cannot carry a mean, and is uniform then."""


def read_json(data: bytes) -> dict[str, Any]:
    """The object that this text is."""
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
