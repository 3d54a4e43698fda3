"""Attention that a pattern prescribes, against loops over positions; many ablations in one walk,
against one edited forward pass each; and what an ablation is asked for.
"""

from dataclasses import replace

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from slow import CHANGES, scaled, slow_attention, walked
from torch import Tensor

from hopscope.circuits import (
    Ablation,
    Ablator,
    Examples,
    Pattern,
    Source,
    Target,
    adapter_of,
    along,
    budget,
    estimate_tables,
    examples_of,
    patterns,
    table_of,
)
from hopscope.circuits import (
    target as at,
)
from hopscope.circuits.adapters import TransformerAdapter
from hopscope.circuits.attention import attended
from hopscope.circuits.pattern import (
    AS_IN_MODEL,
    ITSELF,
    MEAN,
    PREVIOUS,
    RESAMPLE,
    UNIFORM,
    Head,
)
from hopscope.configs import KHop, Model, Retrieval
from hopscope.errors import CircuitError
from hopscope.facts import Role
from hopscope.models import Transformer
from hopscope.models.planted import Planted

TASKS = [Retrieval(hops=2, chains=3, dim=4), KHop(hops=2, length=12, alphabet=4)]
KEY, VALUE, QUERY = Role("key", 1), Role("value", 0), Role("query")
MIXED = Target(((Source("own", KEY), 0.75), (Source("itself"), 0.25)))
PATTERNS = [
    *(Pattern(rest=rest) for rest in (UNIFORM, ITSELF, PREVIOUS, AS_IN_MODEL, MIXED)),
    *(Pattern(rest=at(where, KEY)) for where in ("own", "all", "others")),
    *(Pattern(rest=along("back", times)) for times in (1, 2, 3)),
    *(Pattern(rest=along("alike", times)) for times in (1, 2)),
    Pattern(rest=along("back", 2).if_("odd").or_else(along("back"), PREVIOUS)),
    Pattern(((QUERY, at("own", VALUE)), (VALUE, AS_IN_MODEL)), ITSELF),
    Pattern(((KEY, at("own", VALUE)), (QUERY, table_of("position", (0, 3)))), UNIFORM),
    Pattern(((QUERY, UNIFORM),), AS_IN_MODEL),
    Pattern(rest=table_of("position", (0, 2))),
]
BY_TOKEN = [
    Pattern(rest=table_of("token", (0, 1))),
    Pattern(((VALUE, table_of("token", (0, 5))), (KEY, AS_IN_MODEL)), PREVIOUS),
]


def with_relations(examples: Examples) -> Examples:
    """Examples with a relation to a position, one to a set, and a condition. The first leads
    nowhere from every third position; the second from the first example's positions alone, to all
    with the same remainder, later ones too.
    """
    places = torch.arange(examples.length)
    back = (places - 2).masked_fill(places % 3 == 0, -1).clamp_min(-1).expand(len(examples), -1)
    alike = (places[:, None] % 3 == places % 3) & (places[:, None] % 3 > 0)
    alike[4:, 1] = False  # so that twice is not once
    alike = torch.stack((alike, *[torch.zeros_like(alike)] * (len(examples) - 1)))
    odd = (torch.arange(len(examples)) % 2 == 1)[:, None].expand(-1, examples.length)
    return replace(examples, relations={"back": back, "alike": alike}, conditions={"odd": odd})


@pytest.mark.parametrize("task", TASKS, ids=["vectors", "tokens"])
@pytest.mark.parametrize("causal", [True, False])
def test_every_pattern_is_painted_as_a_loop_over_positions_would(
    task: Retrieval | KHop, causal: bool
) -> None:
    """Each head of a layer follows another one; tables are those of other examples."""
    every = [*PATTERNS, *(BY_TOKEN if isinstance(task, KHop) else ())]
    config = Model(layers=1, heads=len(every), d_model=2 * len(every), init="fan-in", causal=causal)
    model = scaled(Transformer.seeded(config, task.interface(), 0), 3)
    adapter, examples = adapter_of(model), with_relations(examples_of(task, 5))
    examples = replace(examples, tables=estimate_tables(adapter, examples_of(task, 4, seed=1)))
    (own,) = patterns(adapter, examples.inputs)
    ablation = Ablation.of({(0, head): its for head, its in enumerate(every)})
    found = attended(adapter, examples, ablation).weights[0]  # type: ignore[arg-type]
    for head, pattern in enumerate(every):
        expected = slow_attention(pattern, examples, own[:, head], causal)
        assert torch.allclose(found[:, head], expected, atol=1e-6), str(pattern)
    assert torch.allclose(found.sum(-1), torch.ones(found.shape[:-1]), atol=1e-5)


HEADS = [(layer, head) for layer in range(3) for head in range(2)]
ALL = [*CHANGES, *(Pattern(((VALUE, table_of("position", head)),)) for head in HEADS[1:5:3])]


@torch.no_grad()
def slow_losses(model: Transformer, examples: Examples, ablation: Ablation) -> Tensor:
    """One whole forward pass; what heads usually carry comes from another one."""
    usual: list[Tensor] = []

    def note(_: int, mixed: Tensor) -> Tensor:
        usual.append(mixed)
        return mixed

    walked(model, examples.inputs, lambda _, pattern: pattern, note)

    def attention(layer: int, pattern: Tensor) -> Tensor:
        pattern = pattern.clone()
        for head, change in ((h, c) for (n, h), c in ablation.changes if n == layer):
            pattern[:, head] = slow_attention(change, examples, pattern[:, head])
        return pattern

    def heads(layer: int, mixed: Tensor) -> Tensor:
        mixed = mixed.clone()
        for head, change in ((h, c) for (n, h), c in ablation.changes if n == layer):
            own = usual[layer][:, head]
            for role in examples.table:
                rows = examples.positions(role)[..., None]
                if change.of(role) == MEAN:
                    mixed[:, head] = torch.where(rows, own.mean(0), mixed[:, head])
                elif change.of(role) == RESAMPLE:
                    mixed[:, head] = torch.where(rows, own.roll(1, 0), mixed[:, head])
        return mixed

    every = walked(model, examples.inputs, attention, heads)
    return examples.losses(every[:, -model.interface.read :])


@pytest.fixture
def examples(two_hops: Planted, random_model: Transformer) -> Examples:
    tables = estimate_tables(adapter_of(random_model), examples_of(two_hops.task, 5, seed=1))
    return replace(examples_of(two_hops.task, 6), tables=tables)


@given(
    st.lists(st.dictionaries(st.sampled_from(HEADS), st.sampled_from(ALL)), min_size=1, max_size=5)
)
@settings(
    max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_a_walk_of_many_equals_one_pass_each(
    random_model: Transformer, examples: Examples, several: list[dict[Head, Pattern]]
) -> None:
    ablations = [Ablation.of(each) for each in several]
    expected = torch.stack([slow_losses(random_model, examples, a) for a in ablations])
    ablator = Ablator(random_model, examples)
    assert torch.allclose(ablator.losses(ablations), expected, atol=1e-5)
    end = attended(adapter_of(random_model), examples, ablations[0]).streams[-1]
    read = random_model.leave(end[:, -random_model.interface.read :])
    assert torch.allclose(examples.losses_of(read), expected[0], atol=1e-5)


class Counted(TransformerAdapter):
    """A model that notes for how many examples it is asked at once."""

    most = 0

    def finish(self, layer: int, x: Tensor, brought: Tensor) -> Tensor:
        self.most = max(self.most, len(x))
        return super().finish(layer, x, brought)


def test_how_much_walks_together_or_is_kept_changes_nothing(
    random_model: Transformer, examples: Examples, monkeypatch: pytest.MonkeyPatch
) -> None:
    several = [Ablation.of({head: change}) for head in HEADS[::2] for change in ALL]
    expected = torch.stack([slow_losses(random_model, examples, a) for a in several])
    most = []
    for call, kept in ((1, 0), (200_000, 30_000), (2**30, 2**30)):
        monkeypatch.setattr(budget, "CALL_BYTES", call)
        monkeypatch.setattr(budget, "KEPT_BYTES", kept)
        adapter = Counted(random_model)
        ablator = Ablator(adapter, examples)
        for _ in range(2):  # the second time some of it is kept
            assert torch.allclose(ablator.losses(several), expected, atol=1e-5), (call, kept)
        most.append(adapter.most)
    assert most[0] == len(examples) < most[1] < most[2]


def test_what_cannot_be_measured_is_named(two_hops: Planted, random_model: Transformer) -> None:
    examples, even = (
        examples_of(two_hops.task, 4),
        Ablation.of({(2, 0): Pattern(), (1, 0): Pattern()}),
    )
    far = replace(examples, losses=lambda outputs: examples.losses(outputs) * 3e38 * 10)
    beyond = Ablator(two_hops.model, far)
    assert float(beyond.losses([Ablation()]).max()) < 1
    broken = Transformer(random_model.config, random_model.interface)
    torch.nn.init.constant_(broken.head.bias, torch.nan)
    for ablator, ablation, line in (
        (Ablator(two_hops.model, examples), Ablation.of({(3, 0): Pattern()}), "no head 3.0"),
        (Ablator(two_hops.model, examples), Ablation.of({(0, -1): Pattern()}), "no head 0.-1"),
        (Ablator(broken, examples), Ablation(), "the model's loss is not a finite number"),
        (beyond, even, r"with 1.0 uniform \(and 1 more\) the loss is not a finite number"),
        (
            Ablator(two_hops.model, examples),
            Ablation.of({(0, 0): Pattern(rest=table_of("position", (0, 0)))}),
            "head 0.0 attends by position, but no table was estimated for it",
        ),
    ):
        with pytest.raises(CircuitError, match=line) as caught:
            ablator.losses([ablation])
        assert "\n" not in str(caught.value)
