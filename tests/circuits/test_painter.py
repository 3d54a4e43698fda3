"""Attention that a mechanism prescribes, against loops over positions; many ablations in one walk,
against one edited forward pass each; and what an ablation is asked for.
"""

from collections.abc import Callable
from dataclasses import replace
from inspect import unwrap

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from slow import CHANGES, slow_attention
from torch import Tensor

from hopscope.circuits import (
    Ablation,
    Ablator,
    Carried,
    Exam,
    Mechanism,
    adapter_of,
    along,
    budget,
    exam_of,
    patterns,
)
from hopscope.circuits.ablation import Change
from hopscope.circuits.pattern import Head
from hopscope.circuits.adapters import OwnAdapter
from hopscope.circuits.attended import attended
from hopscope.circuits.mechanism import AS_IS, BY_POSITION, ITSELF, PREVIOUS, UNIFORM, Aim, Target
from hopscope.circuits.mechanism import aim as at
from hopscope.configs import KHop, Model, Retrieval
from hopscope.errors import CircuitError
from hopscope.facts import Role
from hopscope.models import Transformer
from hopscope.models.planted import Planted
from hopscope.models.transformer import Block

TASKS = [Retrieval(hops=2, chains=3, dim=4), KHop(hops=2, length=12, alphabet=4)]
KEY, VALUE, QUERY = Role("key", 1), Role("value", 0), Role("query")
MIXED = Aim(((Target("own", KEY), 0.75), (Target("itself"), 0.25)))
MECHANISMS = [
    *(Mechanism(rest=rest) for rest in (UNIFORM, ITSELF, PREVIOUS, BY_POSITION, AS_IS, MIXED)),
    *(Mechanism(rest=at(where, KEY)) for where in ("own", "all", "others", "elsewhere", "place")),
    *(Mechanism(rest=along("back", times)) for times in (1, 2, 3)),
    *(Mechanism(rest=along("alike", times)) for times in (1, 2)),
    Mechanism(rest=along("back", 2).if_("odd").or_else(along("back"), PREVIOUS)),
    Mechanism(((QUERY, at("own", VALUE)), (VALUE, AS_IS)), ITSELF),
    Mechanism(((KEY, at("own", VALUE)), (QUERY, at("place", VALUE))), UNIFORM),
    Mechanism(((QUERY, UNIFORM),), AS_IS),
]


def with_relations(exam: Exam) -> Exam:
    """The same exam with a relation to a position, one to a set, and a condition. The first leads
    nowhere from every third position; the second from the first example's positions alone, to all
    with the same remainder, later ones too.
    """
    places = torch.arange(exam.length)
    back = (places - 2).masked_fill(places % 3 == 0, -1).clamp_min(-1).expand(len(exam), -1)
    alike = (places[:, None] % 3 == places % 3) & (places[:, None] % 3 > 0)
    alike[4:, 1] = False  # so that twice is not once
    alike = torch.stack((alike, *[torch.zeros_like(alike)] * (len(exam) - 1)))
    odd = (torch.arange(len(exam)) % 2 == 1)[:, None].expand(-1, exam.length)
    return replace(exam, relations={"back": back, "alike": alike}, conditions={"odd": odd})


@pytest.mark.parametrize("task", TASKS, ids=["vectors", "tokens"])
@pytest.mark.parametrize("causal", [True, False])
def test_every_mechanism_is_painted_as_a_loop_over_positions_would(
    task: Retrieval | KHop, causal: bool
) -> None:
    """Each head of a layer follows another one."""
    count = len(MECHANISMS)
    config = Model(layers=1, heads=count, d_model=2 * count, init="fan-in", causal=causal)
    model = Transformer.seeded(config, task.interface(), 0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(3)
    adapter, exam = adapter_of(model), with_relations(exam_of(task, 5))
    (own,) = patterns(adapter, exam.inputs)
    ablation = Ablation.of({(0, head): its for head, its in enumerate(MECHANISMS)})
    found = attended(adapter, exam, ablation).patterns[0]  # type: ignore[arg-type]
    for head, mechanism in enumerate(MECHANISMS):
        expected = slow_attention(mechanism, exam, own[:, head], causal)
        assert torch.allclose(found[:, head], expected, atol=1e-6), str(mechanism)
    assert torch.allclose(found.sum(-1), torch.ones(found.shape[:-1]), atol=1e-5)


Edit = Callable[[int, Tensor], Tensor]
HEADS = [(layer, head) for layer in range(3) for head in range(2)]


def walked(model: Transformer, exam: Exam, attention: Edit, heads: Edit) -> Tensor:
    """The outputs of one pass whose attention and whose heads are edited."""
    x = model.enter(exam.inputs)
    for layer, block in enumerate(model.blocks):
        assert isinstance(block, Block)
        pattern = attention(layer, block.pattern(x, exam.length, range(model.config.heads)))
        x = block.write(x, heads(layer, pattern @ block.values(x)))
    return model.leave(x)


def slow_losses(model: Transformer, exam: Exam, ablation: Ablation) -> Tensor:
    """One whole forward pass; what heads usually carry comes from another one."""
    usual: list[Tensor] = []

    def note(_: int, mixed: Tensor) -> Tensor:
        usual.append(mixed)
        return mixed

    walked(model, exam, lambda _, pattern: pattern, note)

    def attention(layer: int, pattern: Tensor) -> Tensor:
        pattern = pattern.clone()
        for head, change in ablation.at(layer):
            if isinstance(change, Mechanism):
                pattern[:, head] = slow_attention(change, exam, pattern[:, head])
        return pattern

    def heads(layer: int, mixed: Tensor) -> Tensor:
        mixed = mixed.clone()
        for head, change in ablation.at(layer):
            if change == Carried("mean"):
                mixed[:, head] = usual[layer][:, head].mean(0)
            elif change == Carried("resample"):
                mixed[:, head] = usual[layer][:, head].roll(1, 0)
        return mixed

    every = walked(model, exam, attention, heads)
    return exam.losses(every[:, -model.interface.read :])


@given(
    st.lists(
        st.dictionaries(st.sampled_from(HEADS), st.sampled_from(CHANGES)), min_size=1, max_size=5
    )
)
@settings(
    max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_a_walk_of_many_equals_one_pass_each(
    random_model: Transformer, ablator: Ablator, several: list[dict[Head, Change]]
) -> None:
    ablations = [Ablation.of(each) for each in several]
    with torch.no_grad():
        expected = torch.stack([slow_losses(random_model, ablator.exam, a) for a in ablations])
    assert torch.allclose(ablator.losses(ablations), expected, atol=1e-5)
    shown = attended(adapter_of(random_model), ablator.exam, ablations[0])
    read = shown.outputs[:, -random_model.interface.read :]
    assert torch.allclose(ablator.exam.marks(read), expected[0], atol=1e-5)


class Counted(OwnAdapter):
    """A model that notes for how many examples it is asked at once."""

    most = 0

    def finish(self, layer: int, x: Tensor, brought: Tensor) -> Tensor:
        self.most = max(self.most, len(x))
        return super().finish(layer, x, brought)


def test_how_much_walks_together_or_is_kept_changes_nothing(
    random_model: Transformer, exam: Exam, monkeypatch: pytest.MonkeyPatch
) -> None:
    several = [Ablation.of({head: change}) for head in HEADS for change in CHANGES]
    with torch.no_grad():
        expected = torch.stack([slow_losses(random_model, exam, a) for a in several])
    most = []
    for call, kept in ((1, 0), (200_000, 30_000), (2**30, 2**30)):
        monkeypatch.setattr(budget, "CALL_BYTES", call)
        monkeypatch.setattr(budget, "STREAM_BYTES", kept)
        monkeypatch.setattr(budget, "DRAWN_BYTES", kept)
        adapter = Counted(random_model)
        ablator = Ablator(adapter, exam)
        for _ in range(2):  # the second time some of it is kept
            assert torch.allclose(ablator.losses(several), expected, atol=1e-5), (call, kept)
        most.append(adapter.most)
    assert most[0] == len(exam) < most[1] < most[2]


def test_a_head_out_of_range_is_named(ablator: Ablator) -> None:
    for head in ((3, 0), (0, 2), (-1, 0)):
        line = rf"no head {head[0]}\.{head[1]}; this model has layers 0 … 2 with heads 0 … 1"
        with pytest.raises(CircuitError, match=line):
            ablator.losses([Ablation.of({head: Mechanism()})])


def test_a_loss_that_is_no_number_is_refused(random_model: Transformer, exam: Exam) -> None:
    with torch.no_grad():
        random_model.head.bias[0] = torch.nan
    with pytest.raises(CircuitError, match="the model's loss is not a finite number everywhere"):
        Ablator(adapter_of(random_model), exam).losses([Ablation()])


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
    assert torch.equal(losses, Ablator(adapter_of(two_hops.model), exam).losses([Ablation()]))
    for wrong in ([], Ablation()):
        with pytest.raises(CircuitError, match="a list of ablations, of at least one"):
            unwrap(Ablator.losses)(Ablator(two_hops.model, exam), wrong)
    with pytest.raises(CircuitError, match="takes an Exam, as .* makes; got Retrieval"):
        unwrap(Ablator.__init__)(object.__new__(Ablator), two_hops.model, two_hops.task)
