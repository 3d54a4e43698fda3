"""What may be asked of a model, as data with bounds, parsed from the body of a request."""

import json
from typing import Annotated, Any, Literal, NoReturn, Self

from pydantic import Field

from hopscope.configs import Config
from hopscope.configs.config import Whole, shortened
from hopscope.errors import ConfigError

MOST_EXAMPLES = 4096
MOST_CHANGES = 512
LAST_EXAMPLE = 10_000
"""Examples one of which can be looked at; all before it are made as well."""

Number = Annotated[Whole, Field(ge=0, lt=2**31)]
Word = Annotated[str, Field(max_length=24)]
Change = Annotated[str, Field(max_length=240)]
"""One change, in the grammar of `hopscope.circuits.changes`."""
Examples = Annotated[Whole, Field(ge=1, le=MOST_EXAMPLES)]
Changes = Annotated[tuple[Change, ...], Field(max_length=MOST_CHANGES)]


class Question(Config):
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
        """The question in the body of a request; anything else is a ConfigError in one line."""
        try:
            fields = json.loads(data, parse_constant=_no_number)
        except (ValueError, RecursionError) as error:
            raise ConfigError(
                f"a question is a JSON object, and this is not ({shortened(str(error))})"
            ) from error
        if not isinstance(fields, dict):
            raise ConfigError(f"a question is a JSON object, got {shortened(repr(fields))}")
        if unknown := sorted(set(fields) - set(cls.model_fields)):
            known = ", ".join(cls.model_fields)
            raise ConfigError(f"a question has no {shortened(repr(unknown[0]))}; it has {known}")
        return cls(**fields)


class ExampleQuestion(Question):
    """One example: its tokens, the answers to it, and the attention of every head."""

    index: Annotated[Whole, Field(ge=0, lt=LAST_EXAMPLE)] = 0
    """The number of the example."""
    tokens: Annotated[tuple[Word, ...], Field(max_length=4096)] | None = None
    """A sequence that somebody typed, symbol by symbol; unset: the example as it was drawn."""
    order: Number | None = None
    """Another order of the same facts, by any number; unset: the example's own."""
    kind: Annotated[str, Field(max_length=80)] | None = None
    """Of a benchmark, the kind of question; unset: the first."""


class AblateQuestion(Question):
    """Losses of the model as it is, and with these changes."""

    examples: Examples = 256


class CostsQuestion(Question):
    """Losses with every head and every path changed in turn."""

    examples: Examples = 256
    instead: Literal["uniform", "itself", "previous", "position", "mean", "resample"] = "uniform"
    """What each does instead; a single row cannot carry a mean, and is uniform then."""


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number")


Answer = dict[str, Any]
"""The answer to a question, ready for JSON."""
