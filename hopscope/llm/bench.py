"""Ask a model all questions of a benchmark, keep every answer, and go on where it stopped.

Answers are committed to the run in pieces, a line of JSON each. A benchmark that was killed asks
only the questions whose answers are not there yet.
"""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from hopscope.configs import Asking, LlmBench
from hopscope.errors import RunMismatch
from hopscope.llm.answers import answered
from hopscope.llm.backend import GREEDY, Backend, ScoringBackend
from hopscope.llm.kept import ANSWERS, PART, Answer, answers
from hopscope.llm.prompts import Question, question
from hopscope.store import RunFolder, Store
from hopscope.training.loop import NobodyWatches, Watcher, finished, interrupted
from hopscope.training.signals import StopRequest

PIECE = 25
"""Questions between commits."""


def ask(
    bench: LlmBench,
    backend: Callable[[], Backend],
    store: Store | Path | str | None = None,
    watcher: Watcher | None = None,
) -> RunFolder:
    """Run the benchmark, or finish it; if it is complete, return that run. The model is only
    loaded if there is something to ask.
    """
    store = store if isinstance(store, Store) else Store(store)
    # Before there is a run: a model that cannot be had leaves nothing behind.
    asked_of = None if store.has_complete(bench) else backend()

    def work(folder: RunFolder, request: StopRequest) -> None:
        _run(bench, folder, asked_of or backend(), watcher or NobodyWatches(), request)

    return finished(bench, store, work)


def _run(
    bench: LlmBench, folder: RunFolder, backend: Backend, watcher: Watcher, request: StopRequest
) -> None:
    done = {(each["kind"], each["index"]) for each in answers(folder)}
    begun = time.monotonic()
    watcher.start(folder, len(done))
    try:
        for piece in _pieces(bench, done):
            kind, found = piece[0][0], asked(bench, backend, [each for _, each in piece])
            first = len(done)
            done |= {(kind, each["index"]) for each in found}
            lines = "".join(json.dumps({"kind": kind, **each}) + "\n" for each in found)
            now = time.monotonic()
            folder.commit(
                {f"{PART}{first:08d}.jsonl": lines.encode()},
                step=len(done),
                precision=bench.asking.precision,
                seconds=round(folder.manifest.seconds + now - begun, 3),
            )
            begun = now
            watcher.advance(len(done), {})
            if request.signal and len(done) < bench.steps:
                raise interrupted(folder, len(done), request)
        whole = "".join(json.dumps(each) + "\n" for each in answers(folder))
        parts = tuple(folder.files(PART))
        folder.commit({ANSWERS: whole.encode()}, drop=parts, complete=True)
    finally:
        watcher.stop()


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
