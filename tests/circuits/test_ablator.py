"""What an ablation is asked for and measures, and that it is what is shown."""

from dataclasses import replace
from inspect import unwrap

import pytest
import torch

from hopscope.circuits import Ablation, Ablator, Exam, Mechanism, exam_of, patterns, subject_of
from hopscope.circuits.attended import attended
from hopscope.circuits.changes import changes_of
from hopscope.errors import CircuitError
from hopscope.facts import Role
from hopscope.models import Transformer
from hopscope.models.planted import Planted


def test_a_head_out_of_range_is_named(ablator: Ablator) -> None:
    for head in ((3, 0), (0, 2), (-1, 0)):
        line = rf"no head {head[0]}\.{head[1]}; this model has layers 0 … 2 with heads 0 … 1"
        with pytest.raises(CircuitError, match=line):
            ablator.losses([Ablation.of({head: Mechanism()})])


def test_a_loss_that_is_no_number_is_refused(random_model: Transformer, exam: Exam) -> None:
    with torch.no_grad():
        random_model.head.bias[0] = torch.nan
    with pytest.raises(CircuitError, match="the model's loss is not a finite number everywhere"):
        Ablator(subject_of(random_model), exam).losses([Ablation()])


def test_a_loss_that_an_ablation_makes_no_number_is_not_blamed_on_the_weights(
    two_hops: Planted, exam: Exam
) -> None:
    far = replace(exam, losses=lambda outputs: exam.losses(outputs) * 3e38 * 10)
    ablator = Ablator(two_hops.model, far)
    assert float(ablator.losses([Ablation()]).max()) < 1
    even = Ablation.of({(2, 0): Mechanism(), (1, 0): Mechanism()})
    with pytest.raises(
        CircuitError, match=r"with 1.0 uniform \(and 1 more\) the loss is not a fin"
    ):
        ablator.losses([even])


def test_an_ablator_takes_a_model_and_asks_for_ablations_and_an_exam(two_hops: Planted) -> None:
    exam = exam_of(two_hops.task, 8)
    losses = Ablator(two_hops.model, exam).losses([Ablation()])
    assert torch.equal(losses, Ablator(subject_of(two_hops.model), exam).losses([Ablation()]))
    for wrong in ([], Ablation()):
        with pytest.raises(CircuitError, match="a list of ablations, of at least one"):
            unwrap(Ablator.losses)(Ablator(two_hops.model, exam), wrong)
    with pytest.raises(CircuitError, match="takes an Exam, as .* makes; got Retrieval"):
        unwrap(Ablator.__init__)(object.__new__(Ablator), two_hops.model, two_hops.task)


def test_what_is_shown_under_an_ablation_is_what_is_measured_under_it(
    random_model: Transformer, ablator: Ablator
) -> None:
    subject, exam = subject_of(random_model), ablator.exam
    for texts in (
        (),
        ("0.1=uniform", "2.0:query=itself"),
        ("1.0=mean", "1.1=resample", "0.0=previous"),
        ("0.0=position", "2.1=query<value 0/itself"),
    ):
        ablation = Ablation.of(changes_of(texts))
        seen = attended(subject, exam, ablation)  # type: ignore[arg-type]
        measured = ablator.losses([ablation])[0]
        outputs = seen.outputs[:, -random_model.interface.read :]
        torch.testing.assert_close(exam.marks(outputs), measured)
    as_it_is = attended(subject, exam).patterns  # type: ignore[arg-type]
    torch.testing.assert_close(as_it_is, torch.stack(list(patterns(subject, exam.inputs))))


def test_a_row_switched_off_by_hand_is_the_same(two_hops: Planted) -> None:
    """The planted model's last head answers for the query alone: without its row, all is lost."""
    exam = exam_of(two_hops.task, 8)
    texts = ["2.0:query=uniform", "2.0:key 0=uniform"]
    found = Ablator(two_hops.model, exam).losses([Ablation.of(changes_of([t])) for t in texts])

    def edit(layer: int, pattern: torch.Tensor) -> torch.Tensor:
        seen = torch.ones_like(pattern).tril()
        rows = exam.positions(Role("query")).bool()[:, None, :, None]
        return (
            torch.where(rows, seen / seen.sum(-1, keepdim=True), pattern) if layer == 2 else pattern
        )

    with torch.no_grad():
        by_hand = exam.marks(two_hops.model(exam.inputs, attention=edit, read=exam.length))
    torch.testing.assert_close(found[0], by_hand)
    assert float(by_hand.mean()) > 0.01
    assert float(found[1].mean()) < 1e-6
