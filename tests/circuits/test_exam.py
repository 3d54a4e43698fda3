"""Exams: their positions, and who can be examined on what."""

import inspect
from dataclasses import replace

import pytest
import torch

from hopscope.circuits import Exam, attention_maps, exam_of, subject_of
from hopscope.configs import KHop, Retrieval
from hopscope.errors import CircuitError
from hopscope.facts import Role
from hopscope.models.planted import Planted
from hopscope.tasks import dataset, question_losses

TASK = Retrieval(hops=2, chains=3, dim=4)


def test_positions_are_those_of_the_role() -> None:
    exam = exam_of(TASK, 5)
    assert (len(exam), exam.length) == (5, TASK.interface().length)
    found = exam.positions(Role("value", 1))
    assert found.sum(1).tolist() == [TASK.chains] * 5
    for example, at in found.nonzero().tolist():
        assert exam.table[int(exam.roles.role[example, at])] == Role("value", 1)
    everywhere = sum(exam.positions(role) for role in exam.table)
    assert (everywhere == 1).all()
    with pytest.raises(CircuitError, match="there is no role 'value 7' here; the roles are key 0,"):
        exam.number(Role("value", 7))


def test_what_is_read_is_what_is_asked_and_answered() -> None:
    exam = exam_of(Retrieval(hops=1, chains=3, dim=4), 2)
    for asked, answered, read in ((None, None, exam.length), (2, None, 2), (None, 3, 3), (2, 3, 2)):
        assert replace(exam, read=asked).read_of(answered) == read, (asked, answered)


def test_examples_are_those_of_the_validation_stream() -> None:
    drawn = dataset(TASK, 3, 4, "validation")
    exam = exam_of(TASK, 4, seed=3)
    assert torch.equal(exam.inputs, drawn.inputs)
    answers = torch.zeros(4, TASK.interface().read, TASK.interface().outputs)
    assert exam.losses(answers).shape == (4, 2)
    assert torch.equal(exam.losses(answers), question_losses(TASK, answers, drawn))

    def mine(examples: int, seed: int) -> Exam:
        return exam_of(TASK, examples, seed)

    assert torch.equal(exam_of(mine, 4, seed=3).inputs, drawn.inputs)


def test_what_cannot_be_examined_is_named(two_hops: Planted) -> None:
    # Without the checks of types that only tests have.
    subject, exam = inspect.unwrap(subject_of), inspect.unwrap(exam_of)
    for ask, line in (
        (lambda: subject(3), "there is no adapter for a int"),
        (lambda: exam(3, 4), "a model is examined on a task, .*; got int"),
        (lambda: exam(TASK, 2.5), "examples is 2.5; a model is examined with"),
        (lambda: exam(TASK, "64"), "examples is '64'; a model is examined with"),
        (lambda: exam(TASK, 0), "examples is 0; a model is examined with at least 1"),
        (
            lambda: exam(KHop(length=100), 10**10),
            r"10,000,000,000 examples of 100 positions would take about [\d,]+ GiB; this machine",
        ),
        *(
            (lambda task=task: attention_maps(two_hops.model, task, 4), "was made for examples of")
            for task in (Retrieval(hops=3), KHop(), Retrieval(hops=2, dim=4))
        ),
    ):
        with pytest.raises(CircuitError, match=line):
            ask()
