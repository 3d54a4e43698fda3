"""The run of a benchmark: its answers (validated when read), its results and its best heads."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from hopscope import intervals
from hopscope.configs import Config, LmBench
from hopscope.errors import ConfigError
from hopscope.lm.rows import read_lines
from hopscope.runs.view import PlainRun
from hopscope.store import RunFolder

ANSWERS = "answers"
"""The folder of the files of a benchmark's run."""
WEIGHTS = "weights.json"
"""The file with the digest of the weights that a run was begun with."""

AnswerRecord = dict[str, Any]
"""The fields of an `ExactAnswer` or a `SampledAnswer` as JSON."""


class SavedAnswer(Config):
    """The fields of every answer, whatever the protocol."""

    kind: str
    """The label of the question's kind."""
    index: Annotated[int, Field(ge=0)]
    """The number of the question among its kind."""
    correct: str


class ExactAnswer(SavedAnswer):
    """An answer of the exact protocol."""

    probabilities: dict[str, Annotated[float, Field(ge=0)]]
    """The probability of every acceptable answer, by its text."""


class SampledAnswer(SavedAnswer):
    """An answer of a protocol that samples."""

    acceptable: Annotated[tuple[str, ...], Field(min_length=1)]
    said: Annotated[tuple[str, ...], Field(min_length=1)]
    """All samples of the model."""
    answer: str | None
    """The acceptable answer in the last sample; None if it has none."""


class ModelWeights(Config):
    """The weights of the model that answers."""

    weights: str
    """The digest of the weights (`hopscope.circuits.engine.weights_digest`)."""
    parameters: Annotated[int, Field(ge=0)]
    """The number of weights."""


def answers(folder: RunFolder) -> list[AnswerRecord]:
    """Read all committed answers, kind by kind."""
    bench = folder.recipe_as(LmBench)
    form = ExactAnswer if bench.asking.protocol == "exact" else SampledAnswer
    kinds = [prompts.label for prompts in bench.prompts]

    def parse(line: str) -> tuple[tuple[int, int], AnswerRecord]:
        saved = form.from_json(line)
        if isinstance(saved, ExactAnswer) and saved.correct not in saved.probabilities:
            raise ConfigError(f"question {saved.index}: the correct answer has no probability")
        if saved.index >= bench.questions:
            raise ConfigError(f"question {saved.index} of {bench.questions}")
        return (kinds.index(saved.kind), saved.index), json.loads(line)

    return read_lines(folder, ANSWERS, parse)


@dataclass(frozen=True, repr=False)
class BenchRun(PlainRun):
    """The run of a benchmark: its recipe and the answers so far."""

    @property
    def recipe(self) -> LmBench:
        """The recipe that the run is made from."""
        return self.folder.recipe_as(LmBench)

    @property
    def answers(self) -> list[AnswerRecord]:
        """All answers so far, kind by kind."""
        return answers(self.folder)

    @property
    def parameters(self) -> int | None:
        """The number of the model's weights; None if unknown (for example at an endpoint)."""
        if WEIGHTS not in self.folder.manifest.files:
            return None
        return ModelWeights.from_json(self.folder.read(WEIGHTS)).parameters


@dataclass(frozen=True)
class Result:
    """The result of one kind of question; None where a number could not be measured."""

    kind: str
    hops: int
    count: int
    accuracy_over: int
    """The number of questions that the accuracy is averaged over."""
    accuracy: float | None
    """The chance that the accepted answer is correct, averaged over the questions that have an
    accepted answer; with the greedy protocol, over all questions."""
    interval: tuple[float, float] | None
    """The 95 % interval of the accuracy, over questions (`hopscope.intervals`)."""
    chance: float
    first: float
    """The chance that the very first sample is the correct answer."""
    acceptance: float
    """The chance that a sample is an acceptable answer, averaged over questions; if answers are
    sampled, the share of first samples (later ones are of the questions that are hard to get)."""
    best: float
    """How often the likeliest acceptable answer (exact) or the answer (else) is correct."""
    tries: float | None
    """The mean number of samples until an acceptable answer comes; None if one never does."""


def results(folder: RunFolder) -> list[Result]:
    """One result for each kind of question that has answers."""
    bench, every = folder.recipe_as(LmBench), answers(folder)
    rows = []
    for prompts in bench.prompts:
        own = [each for each in every if each["kind"] == prompts.label]
        if own:
            exact = bench.asking.protocol == "exact"
            numbers = _exact(own) if exact else _sampled(own, bench.asking.protocol == "greedy")
            rows.append(Result(kind=prompts.label, hops=prompts.depth, count=len(own), **numbers))
    return rows


def result_rows(run: BenchRun) -> list[dict[str, Any]]:
    """A row for each kind of question: its result, and how it was measured."""
    bench, folder = run.recipe, run.folder
    about = {
        "run": folder.name,
        "model": bench.model,
        "protocol": bench.asking.protocol,
        "dtype": None if bench.endpoint else bench.dtype,
        "seconds": folder.manifest.seconds,
    }
    return [{**about, **asdict(each)} for each in results(folder)]


def best_heads(scores: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the best head of each route, from `HeadScores.as_data`.

    A row has the head's attention to the chain asked about (own) and to the others, and the number
    of heads that pass the threshold (beyond).
    """
    rows = []
    for number, route in enumerate(scores["routes"]):
        own, others = np.array(scores["own"][number]), np.array(scores["others"][number])
        threshold = float(scores["threshold"][number])
        score = own - others
        layer, head = (int(place) for place in np.unravel_index(score.argmax(), score.shape))
        rows.append(
            {
                **route,
                "layer": layer,
                "head": head,
                "own": float(own[layer, head]),
                "others": float(others[layer, head]),
                "threshold": threshold,
                "beyond": int((score > threshold).sum()),
            }
        )
    return rows


def chance_of_correct(answer: AnswerRecord) -> float | None:
    """Return the probability of the correct answer among the acceptable ones.

    None for sampled answers, or if all acceptable answers have probability 0.
    """
    chances = answer.get("probabilities", {})
    whole = sum(chances.values())
    return float(chances[answer["correct"]] / whole) if whole > 0 else None


def _exact(every: Sequence[AnswerRecord]) -> dict[str, Any]:
    chances = [each["probabilities"] for each in every]
    whole = [sum(each.values()) for each in chances]
    right = [each["probabilities"][each["correct"]] for each in every]
    shares = [share for each in every if (share := chance_of_correct(each)) is not None]
    best = [max(each, key=each.__getitem__) for each in chances]
    return {
        "accuracy_over": len(shares),
        "accuracy": _mean(shares) if shares else None,
        "interval": intervals.mean_share(shares) if shares else None,
        "chance": _mean([1 / len(each) for each in chances]),
        "first": _mean(right),
        "acceptance": _mean(whole),
        "best": _mean([b == each["correct"] for b, each in zip(best, every, strict=True)]),
        "tries": _mean([1 / all_ for all_ in whole]) if all(whole) else None,
    }


def _sampled(every: Sequence[AnswerRecord], greedy: bool) -> dict[str, Any]:
    accepted = [each for each in every if each["answer"] is not None]
    counted = every if greedy else accepted
    samples = sum(len(each["said"]) for each in every)
    right = [each["answer"] == each["correct"] for each in every]
    first = [each for each in accepted if len(each["said"]) == 1]
    return {
        "accuracy_over": len(counted),
        "accuracy": sum(right) / len(counted) if counted else None,
        "interval": intervals.share(sum(right), len(counted)) if counted else None,
        "chance": _mean([1 / len(each["acceptable"]) for each in every]),
        "first": sum(each["answer"] == each["correct"] for each in first) / len(every),
        "acceptance": len(first) / len(every),
        "best": _mean(right),
        "tries": samples / len(accepted) if accepted else None,
    }


def _mean(values: Sequence[float | bool]) -> float:
    return sum(values) / len(values)
