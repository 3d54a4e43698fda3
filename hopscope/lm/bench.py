"""Ask a language model (in this process or at an endpoint) all questions of a benchmark.

Answers are committed to the run in pieces. A benchmark that was killed continues with the questions
that have no answer yet.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, wait
from functools import partial
from threading import Semaphore, Thread
from typing import Protocol, runtime_checkable

import torch

from hopscope.circuits.engine import weights_digest
from hopscope.configs import LmBench
from hopscope.errors import ConfigError, LmError
from hopscope.lm.endpoint import Endpoint
from hopscope.lm.model import LanguageModel, load
from hopscope.lm.prompts import Question, answered, question
from hopscope.lm.results import ANSWERS, WEIGHTS, AnswerRecord, ModelWeights, answers
from hopscope.lm.rows import RowStepper, other_weights
from hopscope.lm.scoring import GREEDY, complete, probabilities
from hopscope.runs.stepper import MakeStepper
from hopscope.store import RunFolder

CONCURRENCY = 8
"""Number of questions sent to an endpoint at the same time."""
PIECE = 25
"""Number of questions between two commits."""


@runtime_checkable
class TextModel(Protocol):
    """Anything that answers a question in words, such as an endpoint."""

    name: str

    def answer(self, question: Question, temperature: float, seed: int) -> str:
        """Return an answer; at temperature 0 the likeliest one."""


Respondent = LanguageModel | TextModel


def prepare(bench: LmBench, device: str) -> MakeStepper:
    """Return a function that makes the benchmark's stepper; opens the endpoint or the model."""
    asking = bench.asking
    model: Respondent
    if not bench.endpoint:
        model = load(bench.model, bench.dtype, device, asking.template, asking.max_tokens)
    elif device in ("auto", "cpu"):
        url, _, name = bench.model.partition("#")
        model = Endpoint(url, name, chat=asking.template == "chat", max_tokens=asking.max_tokens)
    else:
        raise ConfigError(f"device is {device!r}; an endpoint computes on its own: use auto")
    return partial(stepper_of, bench, model)


def stepper_of(bench: LmBench, model: Respondent, folder: RunFolder) -> RowStepper:
    """The stepper of a benchmark: asks the questions that have no answer yet."""
    device = model.device if isinstance(model, LanguageModel) else torch.device("cpu")
    precision = "unknown" if bench.endpoint else bench.dtype
    stepper = RowStepper(folder, ANSWERS, answers, device, precision)
    if isinstance(model, LanguageModel):
        stepper.beside = {WEIGHTS: same_weights(folder, model)}
    stepper.pieces = _pieces(bench, model, {(row["kind"], row["index"]) for row in stepper.rows})
    return stepper


def same_weights(folder: RunFolder, model: LanguageModel) -> bytes:
    """Return the digest and number of weights as JSON; raises if the run has other weights."""
    digest, count = weights_digest(model.model), model.model.num_parameters()
    found = ModelWeights(weights=digest, parameters=count).canonical_json().encode()
    if WEIGHTS in folder.manifest.files and folder.read(WEIGHTS) != found:
        raise other_weights(folder, model.name, "ask")
    return found


def _pieces(
    bench: LmBench, model: Respondent, done: set[tuple[str, int]]
) -> Iterator[list[AnswerRecord]]:
    """Yield the answers to all questions not in `done`, in pieces, kind by kind.

    If a question fails, the other answers of its piece are yielded before the error is raised.
    """
    for prompts in bench.prompts:
        open_ = [n for n in range(bench.questions) if (prompts.label, n) not in done]
        for first in range(0, len(open_), PIECE):
            piece = [question(prompts, bench.seeds[0], n) for n in open_[first : first + PIECE]]
            new, failure = answers_to(piece, bench, model)
            if new:
                yield [{"kind": prompts.label, **each} for each in new]
            if failure:
                raise failure


def answers_to(
    questions: Sequence[Question], bench: LmBench, model: Respondent
) -> tuple[list[AnswerRecord], BaseException | None]:
    """Return the answers to these questions by the benchmark's protocol, and the first error."""
    if bench.asking.protocol == "exact":
        return _scored(questions, model), None
    if isinstance(model, LanguageModel):
        return _sampled(questions, bench, partial(complete, model)), None

    def one(question: Question) -> list[AnswerRecord]:
        def sample(_: object, temperature: float, seeds: Sequence[int]) -> list[str]:
            return [model.answer(question, temperature, seeds[0])]

        return _sampled([question], bench, sample)

    futures = _in_threads(one, questions)
    ended = [each for each in futures if not each.cancelled()]
    failures = [failure for each in ended if (failure := each.exception())]
    return [each.result()[0] for each in ended if not each.exception()], next(iter(failures), None)


def _in_threads(
    one: Callable[[Question], list[AnswerRecord]], questions: Sequence[Question]
) -> list[Future[list[AnswerRecord]]]:
    """Ask `CONCURRENCY` questions at a time, until all are answered or one fails.

    Unlike with a ThreadPoolExecutor, neither a second Ctrl-C nor the end of the process waits for a
    server that does not answer.
    """
    turn, futures = Semaphore(CONCURRENCY), [Future[list[AnswerRecord]]() for _ in questions]

    def work(future: Future[list[AnswerRecord]], question: Question) -> None:
        with turn:
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(one(question))
                except BaseException as error:  # noqa: BLE001  (handed to the future's owner)
                    future.set_exception(error)

    try:
        for each in zip(futures, questions, strict=True):
            Thread(target=work, args=each, daemon=True).start()
        wait(futures, return_when=FIRST_EXCEPTION)
    finally:  # cancel those that have not begun
        for future in futures:
            future.cancel()
    wait(futures)
    return futures


def _scored(questions: Sequence[Question], model: Respondent) -> list[AnswerRecord]:
    if not isinstance(model, LanguageModel):
        raise LmError(f"{model.name} gives no probabilities: use --protocol paper or greedy")
    return [
        {
            "index": each.index,
            "correct": each.correct,
            "probabilities": dict(zip(each.acceptable, chances, strict=True)),
        }
        for each, chances in zip(questions, probabilities(model, questions), strict=True)
    ]


def _sampled(
    questions: Sequence[Question],
    bench: LmBench,
    sample: Callable[[Sequence[Question], float, Sequence[int]], list[str]],
) -> list[AnswerRecord]:
    """Sample answers to each question until one is acceptable, or no tries are left."""
    greedy = bench.asking.protocol == "greedy"
    texts: dict[int, list[str]] = {each.index: [] for each in questions}
    open_ = list(questions)
    for turn in range(1 if greedy else bench.asking.tries):
        seeds = [_seed(bench.seeds[0], each.index, turn) for each in open_]
        new = sample(open_, GREEDY if greedy else bench.asking.temperature, seeds)
        for each, text in zip(open_, new, strict=True):
            texts[each.index].append(text)
        open_ = [each for each in open_ if answered(texts[each.index][-1], each.acceptable) is None]
        if not open_:
            break
    return [
        {
            "index": each.index,
            "correct": each.correct,
            "acceptable": list(each.acceptable),
            "said": texts[each.index],
            "answer": answered(texts[each.index][-1], each.acceptable),
        }
        for each in questions
    ]


def _seed(seed: int, index: int, turn: int) -> int:
    """Return the seed of a sample; it does not depend on how questions are grouped."""
    return (seed * 1_000_003 + index) * 1_009 + turn
