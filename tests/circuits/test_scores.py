"""Circuits run by hooks on the plain model, without the code that searched and scored them."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from math import log
from typing import Any

import numpy as np
import pytest
import torch
from slow import Slow, scaled
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

import hopscope
from hopscope.circuits import (
    CallbackModel,
    Circuit,
    Component,
    Drawn,
    Estimate,
    OwnTask,
    Source,
    Target,
    adapter_of,
    discover,
    examples_of,
    table_of,
    target,
)
from hopscope.circuits.ablation import Ablation
from hopscope.circuits.examples import example_seed
from hopscope.circuits.pattern import AS_IN_MODEL, PREVIOUS
from hopscope.circuits.scores import Runs
from hopscope.circuits.search import Search
from hopscope.circuits.tables import tables_of
from hopscope.configs import MQAR, KHop, Model, Retrieval, Task
from hopscope.facts import Role
from hopscope.models import Transformer
from hopscope.models.planted import Planted, planted
from hopscope.store import gallery
from hopscope.tasks import dataset

GALLERY = [name for name in gallery.names() if name != "ngram"]


class ByHand:
    """A model, and its circuit, on the examples on which that was measured."""

    def __init__(self, model: Transformer, task: Task, circuit: Circuit) -> None:
        self.model, self.circuit, found = model.eval(), circuit, circuit.found
        seed = example_seed("measurement", found.seed)
        self.batch = dataset(task, seed, found.settings.fresh, "validation")
        examples = examples_of(task, found.settings.fresh, found.seed, "measurement")
        assert torch.equal(examples.inputs, self.batch.inputs)
        self.examples = replace(examples, tables=tables_of(circuit))
        seen = torch.ones(examples.length, examples.length)
        self.seen = seen.tril() if model.config.causal else seen
        self.brought: dict[int, Tensor] = {}
        self.outputs, self.rows = cache(self._outputs), cache(self._rows)
        self.model_outputs = self.outputs("model", "even")

    @torch.no_grad()
    def _outputs(self, how: str, rest: str, without: Component | None = None) -> Tensor:
        """The outputs of the `model`, or of its circuit (without a component) with `prescribed` or
        `computed` attention, or with everything `ablated`; and what the rest does in these.
        """
        self.kept = [each for each in self.circuit.components if each != without]
        hooks = [
            block.attention.register_forward_hook(self._hook(layer, how, rest))  # type: ignore[operator, union-attr]
            for layer, block in enumerate(self.model.blocks)
        ]
        out: Tensor = self.model(self.batch.inputs)
        for hook in hooks:
            hook.remove()
        return out

    def _hook(self, layer: int, how: str, rest: str) -> Any:
        def replaced(attention: Any, given: tuple[Tensor, int], _: Tensor) -> Tensor:
            x, read = given
            query, key, value = (
                part(x).unflatten(-1, (attention.heads, -1)).transpose(1, 2)
                for part in (attention.query, attention.key, attention.value)
            )
            scores = (query @ key.mT * attention.scale).masked_fill(self.seen == 0, -torch.inf)
            own = scores.softmax(-1)
            if how == "model":
                self.brought[layer] = mixed = own @ value
            else:
                mixed = torch.stack([
                    self._brought((layer, head), how, rest, own[:, head], value[:, head])
                    for head in range(attention.heads)
                ], 1)  # fmt: skip
            return attention.out(mixed.transpose(1, 2).flatten(2))[:, -read:]  # type: ignore[no-any-return]

        return replaced

    def _brought(
        self, at: tuple[int, int], how: str, rest: str, own: Tensor, value: Tensor
    ) -> Tensor:
        alone = at in self.circuit.itself
        found = value if alone else self.seen / self.seen.sum(-1, keepdim=True) @ value
        usual = self.brought[at[0]][:, at[1]]
        if rest == "mean":
            found = usual.mean(0).expand_as(found)
        elif rest == "resample":
            found = torch.cat((usual[-1:], usual[:-1]))
        for each in self.kept if how != "ablated" else ():
            for role in each.destinations if at in each.at else ():
                as_in_model = how == "computed" or each.target == AS_IN_MODEL
                rows = own if as_in_model else self.rows(each.target, role)
                mine = self.examples.positions(role)[..., None]
                found = torch.where(mine, rows @ value, found)
        return found

    def _rows(self, target: Target, role: Role) -> Tensor:
        """The rows of a role under a target that does not depend on the model's attention."""
        found = torch.zeros(len(self.examples), *self.seen.shape)
        slow = Slow(self.examples, found, self.model.config.causal)
        for example, row in self.examples.positions(role).nonzero().tolist():
            found[example, row] = slow.row(target, example, row)
        return found

    def losses(self, outputs: Tensor) -> Tensor:
        """The loss of each example and hop."""
        targets = self.batch.targets
        if targets.is_floating_point():
            wrong = (outputs.view_as(targets) - targets).square()
            return wrong.mean((1, 3))
        logits = self._logits(outputs)[:, -1]
        each = cross_entropy(logits.flatten(0, 1), targets[:, -1].flatten(), reduction="none")
        return each.view(len(logits), -1)

    def _logits(self, outputs: Tensor) -> Tensor:
        return outputs.unflatten(-1, (self.batch.targets.shape[-1], -1))

    def recovered(self, outputs: Tensor, rest: str) -> float:
        ablated, model = (
            self.losses(out).mean() for out in (self.outputs("ablated", rest), self.model_outputs)
        )
        return float((ablated - self.losses(outputs).mean()) / (ablated - model))

    def agreement(self, outputs: Tensor) -> tuple[float, float | None]:
        """R² for vectors; for classes KL divergence, and how often the answer is the same."""
        its = self.model_outputs
        if self.batch.targets.is_floating_point():
            spread = (its - its.mean(0)).square().sum()
            return float(1 - (its - outputs).square().sum() / spread), None
        one, other = (self._logits(each)[:, -1].double() for each in (its, outputs))
        kl = nn.functional.kl_div(
            other.log_softmax(-1), one.log_softmax(-1), log_target=True, reduction="none"
        )
        return float(kl.sum(-1).mean()), float((one.argmax(-1) == other.argmax(-1)).double().mean())


def check(by_hand: ByHand) -> None:
    """All that the file says of the whole circuit is measured once more."""
    circuit = by_hand.circuit
    for how in ("model", "prescribed", "computed", "ablated"):
        found = by_hand.losses(by_hand.outputs(how, "even")).mean(0).tolist()
        assert found == pytest.approx(getattr(circuit.losses, how), abs=1e-4), how
    assert len(circuit.scores) == 6
    for score in circuit.scores:
        outputs = by_hand.outputs(score.attention, score.rest)
        agreement, same = by_hand.agreement(outputs)
        for said, expected in (
            (score.recovered, by_hand.recovered(outputs, score.rest)),
            (score.agreement, agreement),
            (score.same_answer, same),
        ):
            if expected is None:
                assert said is None
            else:
                assert said.mean == pytest.approx(expected, abs=1e-4), score


def check_components(by_hand: ByHand) -> None:
    """What is lost without each component is measured once more."""
    circuit = by_hand.circuit
    model, ablated = (circuit.losses.mean(which) for which in ("model", "ablated"))
    for each in circuit.components:
        for how, lost in (("prescribed", each.lost), ("computed", each.lost_computed)):
            whole, less = (
                by_hand.losses(by_hand.outputs(how, "even", without)).mean()
                for without in (None, each)
            )
            assert lost.mean == pytest.approx(float(less - whole) / (ablated - model), abs=1e-4)
            assert lost.low <= lost.mean <= lost.high


@pytest.mark.parametrize(
    "name", [n if n == "demo" else pytest.param(n, marks=pytest.mark.slow) for n in GALLERY]
)
def test_a_circuit_of_the_gallery_is_what_its_file_says(name: str) -> None:
    run = hopscope.load(f"gallery/{name}")
    check(ByHand(run.model, run.task, run.circuit))


KEY, VALUE, QUERY = Role("key", 1), Role("value", 0), Role("query")
MIXED = Target(((Source("own", VALUE), 0.75), (Source("uniform"), 0.25)))
LOOKS: list[tuple[tuple[int, int], Role, Target]] = [
    ((0, 0), VALUE, target("own", Role("key")).or_else(PREVIOUS)),
    ((0, 1), KEY, table_of("position", (0, 1))),
    ((0, 1), VALUE, target("others", KEY)),
    ((1, 0), QUERY, MIXED),
    ((1, 1), QUERY, AS_IN_MODEL),
    ((1, 1), VALUE, table_of("position", (1, 0))),  # another head's
]
"""What the rows of a circuit written by hand look at."""


def random_model(task: Task, seed: int = 1, **more: Any) -> Transformer:
    """Large random weights: nothing in it is nearly zero."""
    config = Model(layers=2, heads=2, d_model=12, init="fan-in", **more)
    return scaled(Transformer.seeded(config, task.interface(), seed), 2)  # type: ignore[no-any-return]


def noisy_model(task: Task) -> Transformer:
    """A planted model with noise, so that nothing is nearly zero; its loss is still low."""
    model = planted(task, heads=2).model
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * parameter.abs().mean() * torch.randn_like(parameter))
    return model


@pytest.mark.parametrize("kind", ["vectors", "classes"])
def test_a_circuit_is_scored_as_by_hand(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All examples at once, and a few at a time. Of classes, two hops stand at one position. Both
    models lose something when everything is ablated, in whichever way.
    """
    vectors, table = kind == "vectors", "position" if kind == "vectors" else "token"
    task: Task = KHop(hops=2, length=8, alphabet=3)
    if vectors:
        task = Retrieval(hops=2, chains=2, dim=6, symbols="one-hot")
    model = noisy_model(task) if vectors else random_model(task, seed=40, causal=False)

    def written(search: Search) -> Ablation:
        state = search.nothing
        for head, role, wanted in LOOKS:
            state = state.looking_at([(head, role)], wanted)
        return state.looking_at([((0, 0), QUERY)], table_of(table, (0, 0)))

    monkeypatch.setattr("hopscope.circuits.discovery.searched", written)
    found = []
    for most in (200_000, 2**30):
        monkeypatch.setattr("hopscope.circuits.budget.CALL_BYTES", most)
        found.append(discover(model, task, examples=32, fresh=48, tie=1, force=True))
        by_hand = ByHand(model, task, found[-1])
        check(by_hand)
        check_components(by_hand)
    for some, every in zip(*(each.scores for each in found), strict=True):
        assert some.recovered.mean == pytest.approx(every.recovered.mean, abs=1e-4)
    every = found[-1]
    assert {each.written for each in every.components} == {"rule", "table", "model"}
    assert len({round(score.agreement.mean, 3) for score in every.scores}) == 6
    assert every.itself  # some heads attend to themselves where they are ablated, others evenly


def test_heads_that_share_their_work_are_removed_together(two_hops: Planted) -> None:
    known = planted(two_hops.task, twins=True)
    circuit = discover(known.model, known.task, examples=32, fresh=64, seed=5)
    assert {*circuit.paths} == {*known.paths}
    assert [each.name for each in circuit.components] == ["0.0+1", "0.0+1", "1.0+1", "2.0+1"]
    check_components(ByHand(known.model, known.task, circuit))


def test_answers_are_compared_where_they_are_asked() -> None:
    """Only some of the positions that are read ask: what is said at others does not count."""
    task = MQAR(pairs=2, alphabet=8, length=12, queries=2)
    examples = examples_of(task, 6)
    asked = examples.roles.role == examples.number("query")
    model = random_model(task)
    out = model(examples.inputs).detach()
    elsewhere = torch.where(asked[:, -out.shape[1] :, None], out, torch.randn_like(out))
    runs = Runs(adapter_of(model), examples)
    kl, same = runs.agreement(*runs.compared(examples, out, elsewhere))
    assert (kl.mean, same.mean) == (pytest.approx(0, abs=1e-9), 1)
    assert runs.agreement(*runs.compared(examples, out, torch.randn_like(out)))[0].mean > 0.1
    # A class that the model rules out has no part in the divergence.
    more = torch.randn_like(out)
    ruled = [torch.cat([torch.full_like(its[..., :1], -torch.inf), its], -1) for its in (out, more)]
    both = (runs.compared(examples, *ruled), runs.compared(examples, out, more))
    assert all(torch.allclose(mine, its) for mine, its in zip(*both, strict=True))


def test_intervals_are_those_of_a_bootstrap() -> None:
    """A ratio of two means over the same examples, which move together."""
    random = np.random.default_rng(0)
    whole = random.gamma(2, 1, 300)
    part = 0.4 * whole + random.normal(0, 0.5, 300)
    drawn = random.integers(0, 300, (4000, 300))
    for part_, whole_ in ((part, whole), (whole - part, whole), (part, np.ones(300))):
        its = Estimate.ratio(part_, whole_)
        again = part_[drawn].mean(1) / whole_[drawn].mean(1)
        assert its.mean == pytest.approx(part_.mean() / whole_.mean())
        assert its.high - its.mean == pytest.approx(1.96 * again.std(), rel=0.05)
        assert its.mean - its.low == pytest.approx(its.high - its.mean)
    assert Estimate.ratio(np.ones(3), np.array([1.0, -1.0, 0.0])) is None  # there is no share


def test_answers_without_a_class_are_never_right() -> None:
    """The model repeats its input, which is right in the second answer; the first is ignored."""

    def forward(tokens: Tensor, attention: Callable[[int, Tensor], Tensor]) -> Tensor:
        attention(0, torch.eye(2).expand(len(tokens), 1, 2, 2))
        return nn.functional.one_hot(tokens, 8).float()

    def draw(count: int, seed: int) -> Drawn:
        tokens = torch.randint(8, (count, 2), generator=torch.Generator().manual_seed(seed))
        return Drawn(tokens, torch.where(torch.tensor([True, False]), -100, tokens), ["one", "two"])

    task = OwnTask(draw, roles=["one", "two"], chance=log(8), loss=lambda _, its: 0.0 * its)
    runs = Runs(CallbackModel(forward, nn.Linear(1, 1), (1, 1)), examples_of(task, 400))
    assert runs.known(Ablation()) == pytest.approx(0.5, abs=0.01)


def test_a_single_number_has_no_most_likely_class() -> None:
    """Yes or no by one logit is compared like a vector."""

    def forward(tokens: Tensor, attention: Callable[[int, Tensor], Tensor]) -> Tensor:
        attention(0, torch.eye(2).expand(len(tokens), 1, 2, 2))
        return tokens[..., None] - 0.5

    def draw(count: int, seed: int) -> Drawn:
        tokens = torch.randint(2, (count, 2), generator=torch.Generator().manual_seed(seed))
        return Drawn(tokens, tokens[:, 1:] > 0, ["one", "two"])

    task = OwnTask(draw, roles=["one", "two"], chance=log(2), loss=lambda its, _: its[..., 0])
    examples = examples_of(task, 40)
    runs = Runs(CallbackModel(forward, nn.Linear(1, 1), (1, 1)), examples)
    assert runs.known(Ablation()) is None
    outputs = examples.inputs[:, 1:, None] - 0.5
    for others, expected in ((outputs, 1.0), (-outputs, -3.0)):
        agreement, same = runs.agreement(*runs.compared(examples, outputs, others))
        assert agreement.mean == pytest.approx(expected, abs=0.3)
        assert same is None
