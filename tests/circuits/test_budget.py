"""Budgets in bytes: what is kept, what is computed at once, and what is refused."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from hopscope.circuits import (
    Ablation,
    Ablator,
    Exam,
    Mechanism,
    budget,
    exam_of,
    role_maps,
    subject_of,
)
from hopscope.circuits.budget import Kept, check_examples, check_search
from hopscope.circuits.mechanism import ITSELF
from hopscope.circuits.subject import TransformerSubject
from hopscope.configs import KHop, Retrieval
from hopscope.errors import CircuitError
from hopscope.models import Transformer


def test_what_was_used_longest_ago_goes_first() -> None:
    kept = Kept(3 * 40)
    for name in "abc":
        kept.put(name, torch.zeros(10))
    kept.get("a")
    kept.put("d", torch.zeros(10))
    assert [name for name in "abcd" if kept.get(name) is not None] == ["a", "c", "d"]
    assert kept.held == 120


def test_what_is_larger_than_the_budget_is_not_kept() -> None:
    kept = Kept(39)
    kept.put("a", torch.zeros(10))
    assert kept.get("a") is None
    assert kept.held == 0


def test_a_view_is_kept_without_what_it_is_a_part_of() -> None:
    kept = Kept(100)
    kept.put("a", torch.arange(1000.0)[:10])
    found = kept.get("a")
    assert found is not None
    assert found.tolist() == list(range(10))
    assert found.untyped_storage().nbytes() == 40


class Counted(TransformerSubject):
    """A subject that notes how many positions it is asked for at once."""

    def __init__(self, model: Transformer) -> None:
        super().__init__(model)
        self.most = 0

    def look(self, number: int, x: Tensor, read: int, heads: Sequence[int]) -> Tensor:
        self.most = max(self.most, len(x))
        return super().look(number, x, read, heads)

    def write(self, number: int, x: Tensor, mixed: Tensor) -> Tensor:
        self.most = max(self.most, len(x))
        return super().write(number, x, mixed)


@pytest.mark.parametrize("streams", [1, 2, 7])
def test_no_more_streams_are_computed_at_once_than_the_budget_allows(
    random_model: Transformer, exam: Exam, monkeypatch: pytest.MonkeyPatch, streams: int
) -> None:
    stream = len(exam) * exam.length * random_model.config.d_model * budget.FLOAT
    attention = len(exam) * 2 * exam.length**2 * budget.FLOAT
    one = budget.AT_ONCE * attention + budget.WIDTHS * stream
    monkeypatch.setattr(budget, "CALL_BYTES", streams * one + 1)
    subject = Counted(random_model)
    heads = [(layer, head) for layer in range(3) for head in range(2)]
    several = [
        Ablation.of({first: Mechanism(rest=ITSELF), second: Mechanism()})
        for first in heads
        for second in heads
    ]
    Ablator(subject, exam).losses(several)
    assert subject.most == streams * len(exam)


def test_kept_streams_and_drawn_rows_stay_in_their_budgets(
    random_model: Transformer, exam: Exam, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget, "STREAM_BYTES", 40_000)
    monkeypatch.setattr(budget, "DRAWN_BYTES", 5_000)
    ablator = Ablator(subject_of(random_model), exam)
    for head in range(2):
        for rest in (ITSELF, Mechanism().rest):
            ablator.losses([Ablation.of({(n, head): Mechanism(rest=rest) for n in range(3)})])
    assert ablator._walk is not None
    assert 0 < ablator._walk._streams.held <= 40_000
    assert 0 < ablator.painter._drawn.held <= 5_000


def test_maps_are_the_same_a_few_examples_at_a_time(
    random_model: Transformer, exam: Exam, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = role_maps(subject_of(random_model), exam)
    monkeypatch.setattr(budget, "CALL_BYTES", 1)
    subject = Counted(random_model)
    found = role_maps(subject, exam)
    assert np.allclose(found.own, expected.own, atol=1e-6)
    assert np.allclose(found.previous, expected.previous, atol=1e-6)
    assert subject.most == 1


@pytest.mark.parametrize("task", [Retrieval(), KHop(length=100)])
def test_examples_that_no_machine_holds_are_refused(task: Any) -> None:
    expected = (
        r"10,000,000,000 examples of \d+ positions would take about [\d,]+ GiB; this machine has"
    )
    with pytest.raises(CircuitError, match=expected):
        check_examples(task, 10**10)
    with pytest.raises(CircuitError, match=r"; this machine has \d+: take fewer examples"):
        exam_of(task, 10**10)


def test_a_search_is_refused_by_what_a_single_ablation_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    memory: Callable[[], int] = lambda: 2**30  # noqa: E731
    monkeypatch.setattr(budget, "memory_bytes", memory)
    check_search(1_000, 2**10, 2**10)
    with pytest.raises(CircuitError, match="a search with 100,000 examples would take about 1 GiB"):
        check_search(100_000, 2**10, 2**10)
