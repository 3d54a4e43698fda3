"""What a benchmark came to: accuracies with intervals, beside the line of guessing."""

from collections.abc import Sequence
from dataclasses import dataclass

from hopscope import intervals
from hopscope.configs import LlmBench
from hopscope.llm.kept import Answer, answers
from hopscope.store import RunFolder


@dataclass(frozen=True)
class Result:
    """How well a model answered one kind of question."""

    kind: str
    hops: int
    count: int
    accuracy: float
    """What the paper's protocol gives at last: the chance that the accepted answer is correct."""
    interval: tuple[float, float]
    """The 95 % interval of the accuracy, over questions (`hopscope.intervals`)."""
    guessing: float
    first: float
    """The chance that the very first sample is the correct answer."""
    acceptance: float
    """The chance that a sample is an acceptable answer."""
    best: float
    """How often the likeliest acceptable answer (exact) or the answer (else) is correct."""
    tries: float
    """The mean number of samples until an acceptable answer comes; infinite if none ever does."""


def results(folder: RunFolder) -> list[Result]:
    """One result for each kind of question that has answers."""
    bench, found = folder.recipe_as(LlmBench), answers(folder)
    rows = []
    for prompts in bench.prompts:
        own = [each for each in found if each["kind"] == prompts.label]
        if own:
            exact = bench.asking.protocol == "exact"
            rows.append((_exact if exact else _counted)(prompts.label, prompts.depth, own))
    return rows


def _exact(kind: str, hops: int, found: Sequence[Answer]) -> Result:
    chances = [each["probabilities"] for each in found]
    whole = [sum(each.values()) for each in chances]
    right = [each["probabilities"][each["correct"]] for each in found]
    shares = [one / all_ if all_ > 0 else 0.0 for one, all_ in zip(right, whole, strict=True)]
    best = [max(each, key=each.__getitem__) for each in chances]
    return Result(
        kind=kind,
        hops=hops,
        count=len(found),
        accuracy=_mean(shares),
        interval=intervals.mean_share(shares),
        guessing=_mean([1 / len(each) for each in chances]),
        first=_mean(right),
        acceptance=_mean(whole),
        best=_mean([float(b == each["correct"]) for b, each in zip(best, found, strict=True)]),
        tries=_mean([1 / all_ if all_ > 0 else float("inf") for all_ in whole]),
    )


def _counted(kind: str, hops: int, found: Sequence[Answer]) -> Result:
    right = [each["answer"] == each["correct"] for each in found]
    first = [len(each["said"]) == 1 and good for each, good in zip(found, right, strict=True)]
    samples = sum(len(each["said"]) for each in found)
    accepted = sum(each["answer"] is not None for each in found)
    return Result(
        kind=kind,
        hops=hops,
        count=len(found),
        accuracy=_mean([float(good) for good in right]),
        interval=intervals.share(sum(right), len(right)),
        guessing=_mean([1 / len(each["acceptable"]) for each in found]),
        first=_mean([float(good) for good in first]),
        acceptance=accepted / samples,
        best=_mean([float(good) for good in right]),
        tries=samples / accepted if accepted else float("inf"),
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
