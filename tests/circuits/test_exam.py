"""Exams: their positions, and who can be examined on what."""

import inspect
from dataclasses import replace
from inspect import unwrap

import pytest
import torch

from hopscope.circuits import (
    Exam,
    exam_of,
    subject_of,
)
from hopscope.configs import KHop, Retrieval
from hopscope.errors import CircuitError
from hopscope.facts import Role
from hopscope.tasks import dataset, question_losses

TASKS = [Retrieval(hops=2, chains=3, dim=4), KHop(hops=2, length=12, alphabet=4)]


def test_a_role_that_does_not_exist_is_named_with_those_that_do() -> None:
    with pytest.raises(CircuitError, match="there is no role 'value 7' here; the roles are key 0,"):
        exam_of(TASKS[0], 1).number(Role("value", 7))


def test_what_is_no_model_or_no_task_is_named() -> None:
    # Without the checks of types that only tests have.
    with pytest.raises(CircuitError, match="there is no adapter for a int"):
        inspect.unwrap(subject_of)(3)  # type: ignore[arg-type]
    with pytest.raises(CircuitError, match="a model is examined on a task, .*; got int"):
        inspect.unwrap(exam_of)(3, 4)  # type: ignore[arg-type]


def test_positions_are_those_of_the_role() -> None:
    task = TASKS[0]
    exam = exam_of(task, 5)
    assert (len(exam), exam.length) == (5, task.interface().length)
    found = exam.positions(Role("value", 1))
    assert found.sum(1).tolist() == [task.chains] * 5
    for example, at in found.nonzero().tolist():
        assert exam.table[int(exam.roles.role[example, at])] == Role("value", 1)
    everywhere = sum(exam.positions(role) for role in exam.table)
    assert (everywhere == 1).all()


@pytest.mark.parametrize(
    ("asked", "answered", "read"), [(None, None, 9), (2, None, 2), (None, 3, 3), (2, 3, 2)]
)
def test_what_is_read_is_what_is_asked_and_answered(
    asked: int | None, answered: int | None, read: int
) -> None:
    exam = exam_of(Retrieval(hops=1, chains=3, dim=4), 2)
    assert exam.length == 9
    assert replace(exam, read=asked).read_of(answered) == read


def test_examples_are_those_of_the_validation_stream() -> None:
    task = TASKS[0]
    drawn = dataset(task, 3, 4, "validation")
    exam = exam_of(task, 4, seed=3)
    assert torch.equal(exam.inputs, drawn.inputs)
    answers = torch.zeros(4, task.interface().read, task.interface().outputs)
    assert exam.losses(answers).shape == (4, 2)
    expected = question_losses(task, answers, drawn)
    assert torch.equal(exam.losses(answers), expected)


def test_at_least_one_example_and_any_maker_of_exams() -> None:
    for examples, told in ((2.5, "2.5"), ("64", "'64'")):
        with pytest.raises(CircuitError, match=f"examples is {told}; a model is examined with"):
            unwrap(exam_of)(Retrieval(), examples)
    with pytest.raises(CircuitError, match="examples is 0; a model is examined with at least 1"):
        exam_of(TASKS[0], 0)
    asked: list[tuple[int, int]] = []

    def mine(examples: int, seed: int) -> Exam:
        asked.append((examples, seed))
        return exam_of(TASKS[1], examples, seed)

    assert len(exam_of(mine, 3, seed=8)) == 3
    assert asked == [(3, 8)]
