"""What can be asked of a language model, wherever it runs."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

GREEDY = 0.0
"""The temperature at which the likeliest token is taken."""


def raw_text(prompt: str, opening: str = "") -> str:
    """A prompt as a model without a chat template gets it."""
    return f"{prompt}\nAnswer:{' ' * bool(opening)}{opening}"


def begun(prompts: Sequence[str], openings: Sequence[str]) -> Sequence[str]:
    """The opening of each answer; empty texts if no openings are given."""
    return openings or [""] * len(prompts)


@runtime_checkable
class Backend(Protocol):
    """A model that continues prompts."""

    name: str

    def complete(
        self,
        prompts: Sequence[str],
        temperature: float,
        seeds: Sequence[int],
        openings: Sequence[str] = (),
    ) -> list[str]:
        """One answer to each prompt, up to its end or the limit of tokens, behind its opening if
        there are openings. The seed fixes what a local model samples; at temperature GREEDY it
        plays no part.
        """


@runtime_checkable
class ScoringBackend(Backend, Protocol):
    """A model whose probabilities can be read as well."""

    def probabilities(
        self,
        prompts: Sequence[str],
        answers: Sequence[Sequence[str]],
        openings: Sequence[str] = (),
    ) -> list[list[float]]:
        """For each prompt, the probability that the model says each answer (behind the opening, if
        there are openings) and then stops.
        """
