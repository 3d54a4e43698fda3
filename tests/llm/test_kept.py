"""Answers on disk: what is no answer of the benchmark is damage, and is named."""

import json

import pytest

from hopscope.configs import Asking, LlmBench, MarkovExperiment, Prompts
from hopscope.errors import RunDamaged, RunMismatch
from hopscope.llm.kept import ANSWERS, PART, answers
from hopscope.llm.run import BenchRun
from hopscope.store import RunFolder, Store

KIND = "equations-d1-n2"
SAID = {"kind": KIND, "index": 0, "correct": "1", "acceptable": ["0", "1"], "said": ["1"],
        "answer": "1"}  # fmt: skip
SCORED = {"kind": KIND, "index": 0, "correct": "1", "probabilities": {"0": 0.2, "1": 0.7}}


def folder(store: Store, protocol: str = "greedy") -> RunFolder:
    prompts = (Prompts(formulation="f1", hops=1, chains=2),)
    asking = Asking(protocol=protocol)
    return store.create(LlmBench(model="x", prompts=prompts, questions=2, asking=asking))


def line(**changes: object) -> bytes:
    return (json.dumps({**SAID, **changes}) + "\n").encode()


def test_answers_come_in_the_order_of_their_questions(store: Store) -> None:
    run = folder(store)
    first, second = (f"{PART}{n:08d}-{n + 1:08d}.jsonl" for n in (0, 1))
    run.commit({first: line(index=1), second: line()})
    assert [each["index"] for each in answers(run)] == [0, 1]
    assert BenchRun(run).answers == answers(run)


def test_what_is_no_answer_is_damage(store: Store) -> None:
    run = folder(store)
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
        answers(store.create(MarkovExperiment()))


def test_the_correct_answer_has_a_probability(store: Store) -> None:
    run = folder(store, "exact")
    run.commit({ANSWERS: json.dumps(SCORED).encode()})
    assert answers(run) == [SCORED]
    run.commit({ANSWERS: json.dumps({**SCORED, "correct": "5"}).encode()})
    with pytest.raises(RunDamaged, match="question 0: the correct answer has no probability"):
        answers(run)
