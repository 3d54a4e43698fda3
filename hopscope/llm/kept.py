"""The answers that a benchmark has kept in its run, checked when they are read; no torch here."""

import json
from typing import Annotated, Any

from pydantic import Field

from hopscope.configs import Config, LlmBench
from hopscope.errors import ConfigError, RunDamaged
from hopscope.store import RunFolder

ANSWERS = "answers/all.jsonl"
PART = "answers/part-"

Answer = dict[str, Any]
"""The fields of a `Scored` or a `Sampled`, as JSON has them."""


class Kept(Config):
    """What is kept of every answer, whatever the protocol."""

    kind: str
    """Which of the benchmark's kinds of question."""
    index: Annotated[int, Field(ge=0)]
    """The number of the question among its kind."""
    correct: str


class Scored(Kept):
    """An answer of the exact protocol."""

    probabilities: dict[str, Annotated[float, Field(ge=0)]]
    """The probability of every acceptable answer, by its text."""


class Sampled(Kept):
    """An answer of a protocol that samples."""

    acceptable: Annotated[tuple[str, ...], Field(min_length=1)]
    said: Annotated[tuple[str, ...], Field(min_length=1)]
    """Everything that the model said, sample by sample."""
    answer: str | None
    """The acceptable answer that the last sample gives, if it gives one."""


def answers(folder: RunFolder) -> list[Answer]:
    """All answers that were committed, kind by kind."""
    bench = folder.recipe_as(LlmBench)
    found = folder.snapshot(lambda: _read(folder, bench))
    kinds = [prompts.label for prompts in bench.prompts]
    return sorted(found, key=lambda each: (kinds.index(each["kind"]), each["index"]))


def _read(folder: RunFolder, bench: LlmBench) -> list[Answer]:
    """The answers of a run, in the order of its files."""
    form = Scored if bench.asking.protocol == "exact" else Sampled
    kinds = {prompts.label for prompts in bench.prompts}
    found: list[Answer] = []
    seen: set[tuple[str, int]] = set()
    for name in folder.files("answers/"):
        try:
            for line in folder.read(name).decode().splitlines():
                kept = form.from_json(line)
                _check(kept, kinds, bench, seen)
                seen.add((kept.kind, kept.index))
                found.append(json.loads(line))
        except (ConfigError, UnicodeDecodeError) as error:
            raise RunDamaged(
                f"{folder.path / name} holds what is no answer of this benchmark ({error}): "
                f"restore it from a copy, or `hopscope rm {folder.name}` and ask again"
            ) from error
    return found


def _check(kept: Kept, kinds: set[str], bench: LlmBench, seen: set[tuple[str, int]]) -> None:
    """Does it answer a question that the benchmark asks, and that has no answer yet?"""
    answered = kept.probabilities if isinstance(kept, Scored) else None
    if answered is not None and kept.correct not in answered:
        raise ConfigError(f"question {kept.index}: the correct answer has no probability")
    if kept.kind not in kinds or kept.index >= bench.questions or (kept.kind, kept.index) in seen:
        raise ConfigError(f"question {kept.index} is not asked, or answered twice")
