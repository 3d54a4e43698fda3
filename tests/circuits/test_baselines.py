"""What methods find of circuits that are known, and how they are ranked and graded; arrows that are
kept, and means in place of what heads bring, against walks position by position.
"""

from collections import defaultdict
from collections.abc import Callable
from copy import deepcopy
from itertools import product

import numpy as np
import pytest
import torch
from slow import walked

from hopscope.circuits import (
    Adapter,
    CallbackModel,
    Circuit,
    Examples,
    adapter_of,
    budget,
    examples_of,
)
from hopscope.circuits.account import Site
from hopscope.circuits.adapters import replaceable
from hopscope.circuits.baselines import baselines, held_against
from hopscope.circuits.circuit_patching import mean_ablate
from hopscope.circuits.faithfulness import ArrowMask, Faithfulness
from hopscope.circuits.patching import Pairs, pairs_of
from hopscope.circuits.ranking import (
    SHARES,
    Arrow,
    Baselines,
    CurvePoint,
    Grade,
    Ranking,
    ScoredArrow,
    Switches,
    arrows_of,
)
from hopscope.configs import Retrieval
from hopscope.errors import CircuitError
from hopscope.facts import Role
from hopscope.models import Transformer
from hopscope.models.planted import Planted, planted

QUERY = Role("query")


@pytest.fixture(scope="module")
def found(two_hops: Planted, circuit: Circuit) -> Baselines:
    return baselines(two_hops.model, circuit, 16, switches=Switches(steps=2, exact=True))


def test_scores_that_the_machine_cannot_hold_are_refused_before(
    two_hops: Planted, circuit: Circuit, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = pairs_of(two_hops.task, 4)
    monkeypatch.setattr(budget, "memory_bytes", lambda: 2**10)
    with pytest.raises(CircuitError, match="the scores of all arrows would .* fewer hops"):
        held_against(replaceable(two_hops.model), pairs, arrows_of(circuit))


def test_a_circuit_is_its_arrows(two_hops: Planted, circuit: Circuit, found: Baselines) -> None:
    truth = {Arrow(p.layer, p.head, p.destination, p.source) for p in two_hops.paths}
    assert set(arrows_of(circuit)) == truth == set(found.circuit)
    assert found.circuit_kept.arrows == len(truth)
    assert found.circuit_kept.hits == len(truth)
    # Keys that are no part of it find other symbols before them, and a few are taken for values.
    assert 0.8 < found.circuit_kept.faithfulness < 0.95
    assert len(truth) < found.possible


def test_gradients_find_what_carries_and_miss_what_locates(found: Baselines) -> None:
    """Planted attention is certain, so that no gradient comes through it: the heads that read the
    key of their own fact, by which the answer is found, have none. Patching sees them.
    """
    carriers = {a for a in found.circuit if a.layer > 0}
    its = {each.method: each for each in found.rankings}
    for method in ("EAP-IG", "direct logit attribution"):
        assert its[method].best(found.circuit, "arrow")[1:] == (1.0, 0.5)
        assert {s.arrow.row for s in its[method].scored} == {a.row for a in carriers}
        assert its[method].as_many.faithfulness < 0.5
    assert its["activation patching"].best(found.circuit, "row")[1:] == (1.0, 1.0)
    assert its["every arrow patched"].best(found.circuit, "arrow")[1:] == (1.0, 1.0)
    assert its["every arrow patched"].as_many == found.circuit_kept


def test_scores_are_ranked_and_graded() -> None:
    value = Role("value", 0)
    scored = tuple(
        ScoredArrow(layer=n, head=0, destination=QUERY, source=value, chain=chain, score=score,
               symbol="x1", hop=1)
        for n, chain, score in [(1, "own", 0.9), (1, "others", 0.5), (0, "own", 0.5)]
    )  # fmt: skip
    none = CurvePoint(arrows=0, hits=0, faithfulness=0.0)
    ranking = Ranking(method="EAP-IG", by="arrow", scored=scored, kept=(), as_many=none)
    circuit = [Arrow(1, 0, QUERY, value), Arrow(2, 0, QUERY, value)]
    by_arrow = [Grade(0.9, 1.0, 0.5), Grade(0.5, 1 / 3, 0.5)]
    assert list(ranking.grades(circuit, "arrow")) == by_arrow
    assert list(ranking.grades(circuit, "row")) == [Grade(0.9, 1.0, 0.5), Grade(0.5, 0.5, 0.5)]
    assert ranking.best(circuit, "arrow") == by_arrow[0]
    assert ranking.model_copy(update={"by": "row"}).grades(circuit, "arrow") == ()
    assert str(scored[1]) == "1.0 value 0 of other chains → query"
    assert ranking.model_copy(update={"scored": ()}).best(circuit, "row").f1 == 0


def test_measures_are_those_of_mib(found: Baselines) -> None:
    """Areas by numpy, over the shares of arrows."""
    for ranking in found.rankings:
        assert [k.arrows for k in ranking.kept] == [int(p * found.possible) for p in SHARES]
        assert ranking.kept[0].faithfulness == 0  # of so few arrows a thousandth is none
        assert ranking.kept[-1].faithfulness == pytest.approx(1)
        # Some arrows may make the model worse: without them it is more than faithful.
        kept = [k.model_copy(update={"faithfulness": 1.5 * k.faithfulness}) for k in ranking.kept]
        measured = found.measures(ranking.model_copy(update={"kept": tuple(kept)}))
        faithful = np.array([k.faithfulness for k in kept])
        assert measured.cpr == pytest.approx(np.trapezoid(faithful, SHARES))
        assert measured.cmd == pytest.approx(np.trapezoid(abs(1 - faithful), SHARES))
        if ranking.by == "row":
            assert measured.auroc is None
            continue
        hits, arrows = (np.array([getattr(k, n) for k in ranking.kept]) for n in ("hits", "arrows"))
        true = len(found.circuit)
        at = np.array([0, *(arrows - hits) / (found.possible - true), 1])
        rates = np.array([0, *hits / true, 1])
        assert measured.auroc == pytest.approx(np.trapezoid(rates, at))


def test_what_cannot_be_measured_is_said_in_a_line(
    two_hops: Planted, circuit: Circuit, found: Baselines, random_model: Transformer
) -> None:
    assert Baselines.from_json(found.canonical_json()) == found
    whole = CallbackModel(lambda inputs, attention: inputs, two_hops.model, (1, 1))
    unnamed = circuit.model_copy(update={"task": None})
    for ask, line in (
        (lambda: baselines(random_model, circuit), "found in another model"),
        (
            lambda: baselines(two_hops.model, unnamed),
            "baselines need minimal pairs, which only hopscope's tasks",
        ),
        (lambda: baselines(whole, circuit), "expected an Adapter"),
    ):
        with pytest.raises(CircuitError, match=line):
            ask()
    with torch.inference_mode(), pytest.raises(CircuitError, match="forbids: call it outside"):
        baselines(two_hops.model, circuit)


class Walk:
    """The score of a set of arrows, one pair of positions after the other."""

    def __init__(self, model: Transformer, pairs: Pairs, rest: str) -> None:
        self.model, self.pairs, self.examples = model, pairs, pairs.examples
        self.others = pairs.counterfactuals.values() if rest == "counterfactual" else [None]
        length = self.examples.length
        self.every = list(product(range(len(self.examples)), range(length), range(length)))
        self.means = defaultdict[tuple[int, ...], torch.Tensor](lambda: torch.tensor(0.0))
        for layer, brought in enumerate(self.run(self.examples.inputs)[1]):
            for b, i, j in self.every:
                at = self.at(b, i, j)
                count = (self.examples.roles.role == at[0]).sum()
                self.means[layer, *at] = self.means[layer, *at] + brought[b, :, i, j] / count

    def at(self, b: int, i: int, j: int) -> tuple[int, int, int]:
        """The roles of two positions, and whether they are of two chains."""
        roles = self.examples.roles
        return (
            int(roles.role[b, i]),
            int(roles.role[b, j]),
            int(roles.chain[b, i] != roles.chain[b, j]),
        )

    def run(
        self, inputs: torch.Tensor, change: Callable[[int, torch.Tensor], None] | None = None
    ) -> tuple[torch.Tensor, list[torch.Tensor]]:
        """Outputs, and what each position brings to each in every layer."""
        x, found = self.model.enter(inputs), []
        heads = range(self.model.config.heads)
        for layer, block in enumerate(self.model.blocks):
            pattern = block.pattern(x, self.examples.length, heads)  # type: ignore[operator]
            values = block.values(x)  # type: ignore[operator]
            found.append(torch.einsum("bhij,bhjd->bhijd", pattern, values))
            if change is not None:
                change(layer, found[-1])
            x = block.write(x, found[-1].sum(3))  # type: ignore[operator]
        return self.model.leave(x[:, -self.model.interface.read :]), found

    def score(self, chosen: ArrowMask) -> float:
        """How much nearer answers are to their own chain's symbols than to the other's."""
        scores = []
        for other in self.others:
            there = None if other is None else self.run(other)[1]

            def ablate(
                layer: int, brought: torch.Tensor, there: list[torch.Tensor] | None = there
            ) -> None:
                for b, i, j in self.every:
                    gone = ~chosen[layer, :, *self.at(b, i, j)]
                    brought[b, gone, i, j] = there[layer][b, gone, i, j] if there else 0.0
                if there is None:
                    self._add_means(layer, brought, chosen)

            outputs, _ = self.run(self.examples.inputs, ablate)
            scores.append(
                float((self.pairs.other(outputs) - self.examples.losses_of(outputs)).sum())
            )
        return float(np.mean(scores))

    def _add_means(self, layer: int, brought: torch.Tensor, chosen: ArrowMask) -> None:
        """Each position of a role gets the means of all arrows to that role."""
        for (at_layer, *at), mean in self.means.items():
            if at_layer == layer:
                gone = ~chosen[layer, :, *at]
                for b, i in (self.examples.roles.role == at[0]).nonzero().tolist():
                    brought[b, gone, i, 0] += mean[gone]


def every_arrow(adapter: Adapter, pairs: Pairs) -> ArrowMask:
    count = len(pairs.examples.table)
    return torch.ones(adapter.layers, adapter.heads, count, count, 2, dtype=torch.bool)


@torch.no_grad()
@pytest.mark.parametrize("rest", ["counterfactual", "mean"])
def test_the_rest_is_ablated(random_model: Transformer, two_hops: Planted, rest: str) -> None:
    pairs, adapter = pairs_of(two_hops.task, 2), replaceable(random_model)
    possible = every_arrow(adapter, pairs)
    switches = Switches(rest=rest)  # type: ignore[arg-type]
    faithfulness = Faithfulness(adapter, pairs, possible, switches)
    chosen = torch.rand(possible.shape, generator=torch.Generator().manual_seed(0)) < 0.5
    walk = Walk(random_model, pairs, rest)
    empty, model, some = (walk.score(each) for each in (~possible, possible, chosen))
    wanted = (some - empty) / (model - empty)
    assert faithfulness.of(chosen) == pytest.approx(wanted, rel=1e-3, abs=1e-4)
    assert abs(faithfulness.of(possible) - 1) + abs(faithfulness.of(~possible)) < 1e-9


@torch.no_grad()
def test_greedy_arrows_lead_to_the_output(two_hops: Planted) -> None:
    """The best arrow that leads to an answer, or to one that is taken: searched each time."""
    pairs, adapter = pairs_of(two_hops.task, 2), replaceable(two_hops.model)
    possible = every_arrow(adapter, pairs)
    scores = torch.randn(possible.shape, generator=torch.Generator().manual_seed(0))
    taken: list[tuple[int, ...]] = []
    query = pairs.examples.number("query")
    for switches in (Switches(greedy=True), Switches(), Switches(signed=True)):
        order = Faithfulness(adapter, pairs, possible, switches).best_first(scores)
        if not switches.greedy:
            by_size = switches == Switches()
            values = [float(scores[at].abs() if by_size else scores[at]) for at in order]
            assert values == sorted(values, reverse=True)
            assert len(order) == possible.sum()
            continue
        for at in order:
            reached = [
                other
                for other in map(tuple, possible.nonzero().tolist())
                if other not in taken
                and (
                    other[2] == query or any(t[0] > other[0] and other[2] in t[2:4] for t in taken)
                )
            ]
            assert at == max(reached, key=lambda other: abs(float(scores[other])))
            taken.append(at)


@torch.no_grad()
def test_arrows_are_kept_in_the_arithmetic_of_the_model(
    two_hops: Planted, random_model: Transformer
) -> None:
    pairs, found = pairs_of(two_hops.task, 8), []
    for dtype in (torch.float32, torch.bfloat16, torch.float64):
        adapter = replaceable(deepcopy(random_model).to(dtype))
        possible = every_arrow(adapter, pairs)
        kept = Faithfulness(adapter, pairs, possible, Switches(rest="mean"))
        chosen = torch.rand(possible.shape, generator=torch.Generator().manual_seed(0)) < 0.5
        found.append((kept.means, kept._score(chosen)))
    for (means, score), near in zip(found[1:], (0.05, 1e-4), strict=True):
        assert torch.allclose(means, found[0][0], atol=near * float(means.abs().max()))
        assert abs(score - found[0][1]) < near * len(pairs.examples)


TASK = Retrieval(hops=2, chains=2, dim=6, symbols="one-hot")
READERS = (Role("value", 0), Role("query"))


def by_hand(model: Transformer, examples: Examples, site: Site, *, places: bool) -> float:
    """One example and position after the other."""
    role = examples.roles.role

    def heads(layer: int, mixed: torch.Tensor) -> torch.Tensor:
        new = mixed.clone()
        for e, p in examples.positions(*site.destinations).nonzero() if layer == site.layer else ():
            alike = role == role[e, p]
            if places:
                alike[:, :p] = alike[:, p + 1 :] = False
            for head in site.heads:
                new[e, head, p] = mixed[:, head][alike].mean(0)
        return new

    out = walked(model, examples.inputs, lambda _, own: own, heads)
    return float(examples.losses_of(out).mean())


@pytest.mark.parametrize("layer", [0, 1])
def test_means_by_place_and_by_role_are_those_by_hand(
    random_model: Transformer, layer: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    adapter = replaceable(random_model)
    site, examples = Site(layer=layer, heads=(1,), destinations=READERS), examples_of(TASK, 12)
    with torch.no_grad():
        place, role = (by_hand(random_model, examples, site, places=its) for its in (True, False))
    (its,) = mean_ablate(adapter, examples, [site], 1.0)
    assert its.by_place.mean == pytest.approx(place, rel=2e-7, abs=1e-6)
    assert its.by_role.mean == pytest.approx(role, rel=2e-7, abs=1e-6)
    assert its.model.mean != pytest.approx(its.by_role.mean, rel=2e-7, abs=1e-6)
    monkeypatch.setattr(budget, "CALL_BYTES", 1)  # example by example
    (again,) = mean_ablate(adapter, examples, [site], 1.0)
    assert again.by_place.mean == pytest.approx(place, rel=2e-7, abs=1e-6)


def test_a_head_that_carries_symbols_brings_neither_its_place_nor_a_constant() -> None:
    grown = planted(TASK)
    sites = [
        Site(layer=p.layer, heads=(p.head,), destinations=(p.destination,)) for p in grown.paths
    ]
    whole, gap = adapter_of(grown.model), TASK.chance()
    found = mean_ablate(whole, examples_of(TASK, 32), sites, gap)
    assert [its.brings for its in found] == ["symbols"] * len(sites)
    assert mean_ablate(whole, examples_of(TASK, 4), [], gap) == ()
