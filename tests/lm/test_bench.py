"""Benchmarks: every answer kept, no question asked twice, and what the numbers mean."""

import copy
import json
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from solving import ask, solved

from hopscope.cli.lm_text import bench_parts
from hopscope.configs import Asking, LmBench, NgramExperiment, Prompts
from hopscope.errors import (
    ConfigError,
    EndpointFailed,
    Interrupted,
    LmError,
    RunDamaged,
    RunMismatch,
)
from hopscope.intervals import share
from hopscope.lm import bench as bench_module
from hopscope.lm.bench import prepare
from hopscope.lm.model import LanguageModel
from hopscope.lm.prompts import Question
from hopscope.lm.results import BenchRun, answers, result_rows, results
from hopscope.store import RunFolder, Store


class Solver:
    """Knows every answer to equations, and gives it at the third try."""

    name = "solver"

    def __init__(self, chatter: int = 2) -> None:
        self.chatter = chatter
        self.asked: list[str] = []

    def answer(self, question: Question, temperature: float, seed: int) -> str:
        self.asked.append(question.prompt)
        if self.asked.count(question.prompt) <= self.chatter:
            return "Let me think about that"
        return f" {solved(question.prompt)}."


def bench(protocol: str = "paper", questions: int = 60, **asking: Any) -> LmBench:
    kinds = (Prompts(formulation="equations", hops=2), Prompts(formulation="equations", hops=3))
    return LmBench(
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
    assert first.acceptance == 0.0  # of one sample; later ones count as tries
    assert first.tries == 3
    assert first.chance == 0.25
    assert first.interval == pytest.approx(share(60, 60))
    kept = answers(folder)
    assert len(kept) == 120
    assert kept[0]["said"][:2] == ["Let me think about that"] * 2


def test_what_could_not_be_measured_is_absent(tmp_path: Path, store: Store) -> None:
    folder = ask(bench(tries=3), lambda: Solver(chatter=9), tmp_path)
    for each in results(folder):
        assert (each.accuracy, each.interval, each.tries) == (None, None, None)
        assert (each.count, each.accuracy_over) == (60, 0)
        assert (each.acceptance, each.first, each.best) == (0.0, 0.0, 0.0)
    assert all(len(each["said"]) == 3 for each in answers(folder))
    (row, _) = result_rows(BenchRun(folder))
    assert (row["run"], row["dtype"], row["accuracy"]) == (folder.name, "float32", None)
    run = created(store, "exact")
    never = SCORED | {"index": 1, "probabilities": {"0": 0.0, "1": 0.0}}
    run.commit({"answers/all.jsonl": f"{json.dumps(never)}\n{json.dumps(SCORED)}\n".encode()})
    assert (
        [each["index"] for each in answers(run)]
        == [0, 1]
        == [each["index"] for each in BenchRun(run).answers]
    )
    (found,) = results(run)
    assert (found.accuracy, found.tries) == (pytest.approx(7 / 9), None)
    assert (found.accuracy_over, found.count) == (1, 2)
    assert bench_parts(BenchRun(run))[0].rows[0][1] == "1 of 2"
    assert found.acceptance == pytest.approx(0.45)


def test_greedy_asks_once_and_chatter_is_wrong(tmp_path: Path) -> None:
    solver = Solver(chatter=0)
    folder = ask(bench("greedy"), lambda: solver, tmp_path)
    assert len(solver.asked) == 120
    assert [each.accuracy for each in results(folder)] == [1.0, 1.0]
    folder = ask(bench("greedy", questions=5), lambda: Solver(chatter=1), tmp_path)
    for each in results(folder):
        assert (each.accuracy, each.interval) == (0.0, pytest.approx(share(0, 5)))


class Stopper(Solver):
    """Sends this process a signal while it answers."""

    def __init__(self, after: int) -> None:
        super().__init__(chatter=0)
        self.after = after

    def answer(self, *how: Any) -> str:
        if len(self.asked) == self.after:
            os.kill(os.getpid(), signal.SIGTERM)
        return super().answer(*how)


def test_a_stopped_benchmark_asks_no_question_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hopscope.lm.bench.CONCURRENCY", 1)
    whole = ask(bench("greedy"), lambda: Solver(chatter=0), tmp_path / "whole")
    asked = []
    for after in (10, 30, 61, 100):
        stopper = Stopper(after - len(asked))
        with pytest.raises(Interrupted, match="hopscope resume lm-solver-greedy"):
            ask(bench("greedy"), lambda one=stopper: one, tmp_path / "stopped")
        asked += stopper.asked
    last = Solver(chatter=0)
    folder = ask(bench("greedy"), lambda: last, tmp_path / "stopped")
    asked += last.asked
    assert len(asked) == len(set(asked)) == 120
    assert answers(folder) == answers(whole)
    assert folder.read("answers/all.jsonl") == whole.read("answers/all.jsonl")
    assert ask(bench("greedy"), pytest.fail, tmp_path / "stopped").path == folder.path  # complete


def test_questions_are_under_way_together_and_a_failure_loses_no_other_answer(
    tmp_path: Path,
) -> None:
    solver, failed = Solver(chatter=0), threading.Event()
    together = threading.Barrier(8, timeout=60)

    class Fails(Solver):
        def answer(self, question: Question, *how: Any) -> str:
            solver.asked.append(question.prompt)
            if len(solver.asked) <= 8:
                together.wait()
            if question.index == 3:
                failed.set()
                raise EndpointFailed("busy: ask later")
            assert failed.wait(60)
            time.sleep(0.2)  # the answer comes after the failure
            return solver.answer(question, *how)

    with pytest.raises(EndpointFailed, match="busy: ask later"):
        ask(bench("greedy"), Fails, tmp_path)
    folder = Store(tmp_path).create(bench("greedy"))
    there = [each["index"] for each in answers(folder)]
    assert 7 <= len(there) < 24  # those under way; hardly one was begun after the failure
    assert 3 not in there
    last = Solver(chatter=0)
    ask(bench("greedy"), lambda: last, tmp_path)
    assert len(last.asked) == 120 - len(there)
    with pytest.raises(EndpointFailed):  # nothing came: nothing to keep
        ask(bench("greedy", 1), Never, tmp_path)


def test_ctrl_c_twice_waits_for_no_answer_and_asks_no_more(tmp_path: Path) -> None:
    before, begun, pressed = {*threading.enumerate()}, [], threading.Event()

    class Silent(Solver):
        def answer(self, question: Question, *how: Any) -> str:
            begun.append(question)
            assert pressed.wait(10)
            return super().answer(question, *how)

    def press() -> None:
        while len(begun) < 8:
            time.sleep(0.01)
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.5)

    hand = threading.Thread(target=press)
    hand.start()
    with pytest.raises(KeyboardInterrupt) as caught:
        ask(bench("greedy"), Silent, tmp_path)
    hand.join()
    assert not isinstance(caught.value, Interrupted)
    left = {*threading.enumerate()} - before
    assert len(left) >= 8
    assert all(each.daemon for each in left)  # the end of the process waits for none either
    pressed.set()
    for each in left:
        each.join(60)
    assert len(begun) == 8


class Never(Solver):
    def answer(self, *how: Any) -> str:
        raise EndpointFailed("gone")


def test_a_model_without_probabilities_is_asked_otherwise(tmp_path: Path) -> None:
    with pytest.raises(LmError, match="solver gives no probabilities: use --protocol paper"):
        ask(bench("exact"), Solver, tmp_path)
    prompts, greedy = (Prompts(formulation="f1"),), Asking(protocol="greedy")
    away = LmBench(model="http://127.0.0.1:9/v1#tiny", prompts=prompts, asking=greedy)
    with pytest.raises(ConfigError, match="an endpoint computes on its own: use auto"):
        prepare(away, "cuda")
    prepare(away, "auto")


TINY = LmBench(
    model="tiny", prompts=(Prompts(formulation="equations", hops=1, chains=2),), questions=30,
    asking=Asking(template="raw"),
)  # fmt: skip


def test_exact_probabilities_are_renormalised(tmp_path: Path, tiny: LanguageModel) -> None:
    folder = ask(TINY, lambda: tiny, tmp_path)
    (found,) = results(folder)
    assert 0 < found.first < found.acceptance < 1
    assert found.chance == 0.5
    by_hand = [
        each["probabilities"][each["correct"]] / sum(each["probabilities"].values())
        for each in answers(folder)
    ]
    assert found.accuracy == pytest.approx(sum(by_hand) / 30)
    assert BenchRun(folder).parameters == tiny.model.num_parameters()
    assert found.interval[0] < found.accuracy < found.interval[1]


def test_answers_of_two_models_are_not_mixed(
    tmp_path: Path, tiny: LanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = bench_module.answers_to

    def once(*asked: Any) -> Any:
        monkeypatch.setattr(bench_module, "answers_to", stopped)
        return whole(*asked)

    def stopped(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(bench_module, "answers_to", once)
    with pytest.raises(KeyboardInterrupt):
        ask(TINY, lambda: tiny, tmp_path)
    monkeypatch.setattr(bench_module, "answers_to", whole)
    other = copy.copy(tiny)
    other.model = copy.deepcopy(tiny.model)
    with torch.no_grad():
        next(other.model.parameters()).mul_(2)
    with pytest.raises(RunMismatch, match="was begun with other weights than"):
        ask(TINY, lambda: other, tmp_path)
    assert len(answers(ask(TINY, lambda: tiny, tmp_path))) == 30


KIND = "equations-d1-n2"
SAID = {"kind": KIND, "index": 0, "correct": "1", "acceptable": ["0", "1"], "said": ["1"],
        "answer": "1"}  # fmt: skip
SCORED = {"kind": KIND, "index": 0, "correct": "1", "probabilities": {"0": 0.2, "1": 0.7}}


def created(store: Store, protocol: str = "greedy") -> RunFolder:
    prompts = (Prompts(formulation="f1", hops=1, chains=2),)
    asking = Asking(protocol=protocol)
    return store.create(LmBench(model="x", prompts=prompts, questions=2, asking=asking))


def line(**changes: object) -> bytes:
    return (json.dumps({**SAID, **changes}) + "\n").encode()


def test_what_is_no_answer_is_damage(store: Store) -> None:
    run = created(store)
    for content in (
        line(index=2),  # there are two questions
        line(kind="kingdoms"), line() + line(), line(said=[]), line(more=1), b"{", b"\xff\xfe",
    ):  # fmt: skip
        run.commit({"answers/all.jsonl": content})
        with pytest.raises(RunDamaged, match="has a line that this run did not write") as caught:
            answers(run)
        assert "\n" not in str(caught.value)
    with pytest.raises(RunMismatch, match="is a run of kind ngram, expected one of kind lm"):
        answers(store.create(NgramExperiment()))


def test_the_correct_answer_has_a_probability(store: Store) -> None:
    run = created(store, "exact")
    run.commit({"answers/all.jsonl": json.dumps(SCORED).encode()})
    assert answers(run) == [SCORED]
    run.commit({"answers/all.jsonl": json.dumps({**SCORED, "correct": "5"}).encode()})
    with pytest.raises(RunDamaged, match="question 0: the correct answer has no probability"):
        answers(run)
