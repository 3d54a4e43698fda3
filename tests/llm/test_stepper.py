"""Benchmarks: every answer kept, no question asked twice, and what the numbers mean."""

import json
import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from solving import solved

from hopscope.configs import Asking, LlmBench, NgramExperiment, Prompts
from hopscope.errors import ConfigError, Interrupted, LlmError, RunDamaged, RunMismatch
from hopscope.intervals import share
from hopscope.llm.kept import ANSWERS, PART, answers
from hopscope.llm.local import LocalModel
from hopscope.llm.prompts import question
from hopscope.llm.results import results
from hopscope.llm.run import BenchRun
from hopscope.llm.stepper import ask, prepare
from hopscope.store import RunFolder, Store


class Solver:
    """Knows every answer to equations, and says it at the third try."""

    name = "solver"

    def __init__(self, chatter: int = 2) -> None:
        self.chatter = chatter
        self.asked: list[str] = []

    def complete(self, prompts: Sequence[str], *how: Any) -> list[str]:
        self.asked += prompts
        return [self.answer(prompt) for prompt in prompts]

    def answer(self, prompt: str) -> str:
        if self.asked.count(prompt) <= self.chatter:
            return "Let me think about that"
        return f" {solved(prompt)}."


def bench(protocol: str = "paper", questions: int = 60, **asking: Any) -> LlmBench:
    kinds = (Prompts(formulation="equations", hops=2), Prompts(formulation="equations", hops=3))
    return LlmBench(
        model="solver", prompts=kinds, questions=questions,
        asking=Asking(protocol=protocol, template="raw", **asking),
    )  # fmt: skip


def test_the_papers_protocol_asks_until_an_answer_is_acceptable(tmp_path: Path) -> None:
    solver = Solver()
    folder = ask(bench(), lambda: solver, tmp_path)
    assert folder.manifest.complete
    assert folder.verify() == []
    assert len(solver.asked) == 3 * 120
    first, second = results(folder)
    assert (first.kind, first.hops, first.count) == ("equations-d2", 2, 60)
    assert first.accuracy == second.accuracy == 1.0
    assert first.first == 0.0
    assert first.acceptance == pytest.approx(1 / 3)
    assert first.tries == 3
    assert first.guessing == 0.25
    assert first.interval == pytest.approx(share(60, 60))
    kept = answers(folder)
    assert len(kept) == 120
    assert kept[0]["said"][:2] == ["Let me think about that"] * 2


def test_who_never_answers_is_given_up_and_greedy_asks_once(tmp_path: Path) -> None:
    folder = ask(bench(tries=3), lambda: Solver(chatter=9), tmp_path)
    for each in results(folder):
        assert (each.accuracy, each.acceptance, each.tries) == (0.0, 0.0, float("inf"))
    assert all(len(each["said"]) == 3 for each in answers(folder))
    solver = Solver(chatter=0)
    folder = ask(bench("greedy"), lambda: solver, tmp_path)
    assert len(solver.asked) == 120
    assert [each.accuracy for each in results(folder)] == [1.0, 1.0]


class Stopper(Solver):
    """Gets a signal while it answers."""

    def __init__(self, after: int) -> None:
        super().__init__(chatter=0)
        self.after = after

    def complete(self, prompts: Sequence[str], *how: Any) -> list[str]:
        if len(self.asked) <= self.after < len(self.asked) + len(prompts):
            os.kill(os.getpid(), signal.SIGTERM)
        return super().complete(prompts, *how)


def test_a_stopped_benchmark_asks_no_question_twice(tmp_path: Path) -> None:
    whole = ask(bench("greedy"), lambda: Solver(chatter=0), tmp_path / "whole")
    asked = []
    for after in (10, 30, 61, 100):
        stopper = Stopper(after - len(asked))
        with pytest.raises(Interrupted, match="hopscope resume llm-solver-greedy"):
            ask(bench("greedy"), lambda one=stopper: one, tmp_path / "stopped")
        asked += stopper.asked
    last = Solver(chatter=0)
    folder = ask(bench("greedy"), lambda: last, tmp_path / "stopped")
    asked += last.asked
    assert len(asked) == len(set(asked)) == 120
    assert answers(folder) == answers(whole)
    assert folder.read("answers/all.jsonl") == whole.read("answers/all.jsonl")
    assert ask(bench("greedy"), pytest.fail, tmp_path / "stopped").path == folder.path  # complete


def test_who_tells_no_probabilities_is_asked_otherwise(tmp_path: Path) -> None:
    with pytest.raises(RunMismatch, match="solver tells no probabilities: use --protocol paper"):
        ask(bench("exact"), Solver, tmp_path)


def test_a_language_model_computes_on_the_processor(tmp_path: Path) -> None:
    recipe = LlmBench(model=str(tmp_path / "nowhere"), prompts=(Prompts(formulation="f1"),))
    for device in ("auto", "cpu"):
        with pytest.raises(LlmError):
            prepare(recipe, device)
    with pytest.raises(ConfigError, match="device is 'cuda'; a language model of this machine"):
        prepare(recipe, "cuda")


def test_exact_probabilities_are_renormalised(tmp_path: Path, tiny: LocalModel) -> None:
    chosen = LlmBench(
        model="tiny", prompts=(Prompts(formulation="equations", hops=1, chains=2),), questions=30,
        asking=Asking(template="raw"),
    )  # fmt: skip
    folder = ask(chosen, lambda: tiny, tmp_path)
    (found,) = results(folder)
    assert 0 < found.first < found.acceptance < 1
    assert found.guessing == 0.5
    by_hand = [
        each["probabilities"][each["correct"]] / sum(each["probabilities"].values())
        for each in answers(folder)
    ]
    assert found.accuracy == pytest.approx(sum(by_hand) / 30)
    assert found.interval[0] < found.accuracy < found.interval[1]
    first = question(chosen.prompts[0], 0, 0)
    (chances,) = tiny.probabilities([first.prompt], [first.acceptable])
    kept = answers(folder)[0]["probabilities"]
    assert list(kept.values()) == pytest.approx(chances, rel=1e-4)


KIND = "equations-d1-n2"
SAID = {"kind": KIND, "index": 0, "correct": "1", "acceptable": ["0", "1"], "said": ["1"],
        "answer": "1"}  # fmt: skip
SCORED = {"kind": KIND, "index": 0, "correct": "1", "probabilities": {"0": 0.2, "1": 0.7}}


def created(store: Store, protocol: str = "greedy") -> RunFolder:
    prompts = (Prompts(formulation="f1", hops=1, chains=2),)
    asking = Asking(protocol=protocol)
    return store.create(LlmBench(model="x", prompts=prompts, questions=2, asking=asking))


def line(**changes: object) -> bytes:
    return (json.dumps({**SAID, **changes}) + "\n").encode()


def test_answers_come_in_the_order_of_their_questions(store: Store) -> None:
    run = created(store)
    first, second = (f"{PART}{n:08d}-{n + 1:08d}.jsonl" for n in (0, 1))
    run.commit({first: line(index=1), second: line()})
    assert [each["index"] for each in answers(run)] == [0, 1]
    assert BenchRun(run).answers == answers(run)


def test_what_is_no_answer_is_damage(store: Store) -> None:
    run = created(store)
    for content in (
        line(index=2),  # there are two questions
        line(index=-1), line(kind="kingdoms"), line() + line(), line(said=[]), line(more=1),
        b"{", b"\xff\xfe",
    ):  # fmt: skip
        run.commit({ANSWERS: content})
        with pytest.raises(RunDamaged, match="holds what is no answer of this bench") as caught:
            answers(run)
        assert "\n" not in str(caught.value)
    with pytest.raises(RunMismatch, match="is a run of kind ngram, expected one of kind llm"):
        answers(store.create(NgramExperiment()))


def test_the_correct_answer_has_a_probability(store: Store) -> None:
    run = created(store, "exact")
    run.commit({ANSWERS: json.dumps(SCORED).encode()})
    assert answers(run) == [SCORED]
    run.commit({ANSWERS: json.dumps({**SCORED, "correct": "5"}).encode()})
    with pytest.raises(RunDamaged, match="question 0: the correct answer has no probability"):
        answers(run)
