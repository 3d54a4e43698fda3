"""All questions of a benchmark, asked of a language model, as the stepper of a run.

Answers are committed to the run in pieces, a line of JSON each. A benchmark that was killed asks
only the questions whose answers are not there yet.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import torch

from hopscope.configs import Asking, LlmBench
from hopscope.errors import ConfigError, RunMismatch
from hopscope.llm.answers import answered
from hopscope.llm.backend import GREEDY, Backend, ScoringBackend
from hopscope.llm.backends import backend_of
from hopscope.llm.kept import ANSWERS, PART, Answer, answers
from hopscope.llm.prompts import Question, question
from hopscope.runs.runner import complete
from hopscope.runs.stepper import Losses, MakeStepper, Watcher
from hopscope.store import RunFolder, Store

PIECE = 25
"""The number of questions that are answered between two commits."""


def prepare(bench: LlmBench, device: str) -> MakeStepper:
    """What begins the questions, to a model that is there."""
    if device not in ("auto", "cpu"):
        raise ConfigError(
            f"device is {device!r}; a language model of this machine computes on its processor, "
            "one behind an endpoint elsewhere: cpu, or auto"
        )
    backend = backend_of(bench)
    return lambda folder: Questions(bench, backend, folder)


def ask(
    bench: LlmBench,
    backend: Callable[[], Backend],
    store: Store | Path | str | None = None,
    watcher: Watcher | None = None,
) -> RunFolder:
    """Run the benchmark on a backend of one's own, or finish it; if it is complete, return its run.

    The backend is only made if there is something to ask.
    """
    store = store if isinstance(store, Store) else Store(store)
    # Before there is a run: a model that cannot be had leaves nothing behind.
    there = None if store.has_complete(bench) else backend()
    return complete(
        bench, lambda folder: Questions(bench, there or backend(), folder), store, watcher
    )


class Questions:
    """What is still to be asked of one benchmark."""

    device = torch.device("cpu")

    def __init__(self, bench: LlmBench, backend: Backend, folder: RunFolder) -> None:
        self.bench, self.backend, self.folder = bench, backend, folder
        done = {(each["kind"], each["index"]) for each in answers(folder)}
        self.step = self.kept = len(done)
        self.precision = bench.asking.precision
        self.planned = range(1, bench.steps + 1)
        self.pieces = _pieces(bench, done)
        self.lines: list[str] = []

    def advance(self) -> Losses:
        """Ask a piece of the questions."""
        piece = next(self.pieces)
        kind, found = piece[0][0], asked(self.bench, self.backend, [each for _, each in piece])
        self.lines += [json.dumps({"kind": kind, **each}) + "\n" for each in found]
        self.step += len(found)
        return {}

    def files(self) -> Mapping[str, bytes]:
        """The answers since the last commit."""
        files = {f"{PART}{self.kept:08d}.jsonl": "".join(self.lines).encode()}
        self.lines, self.kept = [], self.step
        return files

    def merged(self) -> tuple[Mapping[str, bytes], tuple[str, ...]]:
        """All answers as one file, and the names of the parts that it takes the place of."""
        whole = "".join(json.dumps(each) + "\n" for each in answers(self.folder))
        return {ANSWERS: whole.encode()}, tuple(self.folder.files(PART))


def _pieces(bench: LlmBench, done: set[tuple[str, int]]) -> Iterator[list[tuple[str, Question]]]:
    """What is still to be asked, kind by kind."""
    for prompts in bench.prompts:
        open_ = [n for n in range(bench.questions) if (prompts.label, n) not in done]
        for first in range(0, len(open_), PIECE):
            chosen = open_[first : first + PIECE]
            yield [(prompts.label, question(prompts, bench.seeds[0], n)) for n in chosen]


def asked(bench: LlmBench, backend: Backend, questions: Sequence[Question]) -> list[Answer]:
    """The answers to some questions, by the benchmark's protocol."""
    asking = bench.asking
    if asking.protocol == "exact":
        return _scored(backend, questions)
    tries = 1 if asking.protocol == "greedy" else asking.tries
    return _sampled(backend, questions, asking, bench.seeds[0], tries)


def _scored(backend: Backend, questions: Sequence[Question]) -> list[Answer]:
    if not isinstance(backend, ScoringBackend):
        raise RunMismatch(f"{backend.name} tells no probabilities: use --protocol paper or greedy")
    values = backend.probabilities(
        [each.prompt for each in questions],
        [each.acceptable for each in questions],
        [each.opening for each in questions],
    )
    return [
        {
            "index": each.index,
            "correct": each.correct,
            "probabilities": dict(zip(each.acceptable, chances, strict=True)),
        }
        for each, chances in zip(questions, values, strict=True)
    ]


def _sampled(
    backend: Backend, questions: Sequence[Question], asking: Asking, seed: int, tries: int
) -> list[Answer]:
    """Every question again and again, until its answer is acceptable or the tries are used up."""
    said: dict[int, list[str]] = {each.index: [] for each in questions}
    open_ = list(questions)
    temperature = GREEDY if asking.protocol == "greedy" else asking.temperature
    for turn in range(tries):
        seeds = [_seed(seed, each.index, turn) for each in open_]
        prompts, openings = [each.prompt for each in open_], [each.opening for each in open_]
        texts = backend.complete(prompts, temperature, seeds, openings)
        for each, text in zip(open_, texts, strict=True):
            said[each.index].append(text)
        open_ = [each for each in open_ if answered(said[each.index][-1], each.acceptable) is None]
        if not open_:
            break
    return [
        {
            "index": each.index,
            "correct": each.correct,
            "acceptable": list(each.acceptable),
            "said": said[each.index],
            "answer": answered(said[each.index][-1], each.acceptable),
        }
        for each in questions
    ]


def _seed(seed: int, index: int, turn: int) -> int:
    """A seed for each sample, the same however questions are grouped."""
    return (seed * 1_000_003 + index) * 1_009 + turn
