"""What methods find of circuits that are known, and how they are ranked and graded; arrows that are
kept, and means in place of what heads bring, against walks position by position.
"""

from copy import deepcopy

import numpy as np
import pytest
import torch

from hopscope.circuits import Adapter, CallbackModel, Circuit, adapter_of, budget, discover, exam_of
from hopscope.circuits.baselines import baselines
from hopscope.circuits.effects import Site
from hopscope.circuits.mean_ablation import KeptArrows, mean_ablate
from hopscope.circuits.ranking import Arrow, Baselines, Grade, Ranking, Scored, arrows_of
from hopscope.configs import Model, Retrieval
from hopscope.errors import CircuitError
from hopscope.facts import Role
from hopscope.models import Transformer
from hopscope.models.planted import Planted, planted

QUERY = Role("query")


@pytest.fixture(scope="module")
def circuit(two_hops: Planted) -> Circuit:
    return discover(two_hops.model, two_hops.task, examples=16)


@pytest.fixture(scope="module")
def found(two_hops: Planted, circuit: Circuit) -> Baselines:
    return baselines(two_hops.model, circuit, examples=16, steps=2, exact=True)


def test_a_circuit_is_its_arrows(two_hops: Planted, circuit: Circuit, found: Baselines) -> None:
    truth = {Arrow(p.layer, p.head, p.reader, p.source) for p in two_hops.paths}
    assert set(arrows_of(circuit)) == truth == set(found.circuit)
    assert found.circuit_kept.arrows == len(truth)
    assert found.circuit_kept.share > 0.99
    assert len(truth) < found.possible


def test_gradients_find_what_carries_and_miss_what_locates(found: Baselines) -> None:
    """Planted attention is certain, so that no gradient comes through it: the heads that read the
    key of their own fact, by which the answer is found, have none. Patching sees them.
    """
    carriers = {a for a in found.circuit if a.layer > 0}
    its = found.by_method
    for method in ("EAP-IG", "direct logit attribution"):
        assert its[method].best(found.circuit, "arrow")[1:] == (1.0, 0.5)
        assert {s.row for s in its[method].scored} == {a.row for a in carriers}
        assert max(kept.share for kept in its[method].kept) < 0
    assert its["activation patching"].best(found.circuit, "row")[1:] == (1.0, 1.0)
    assert its["every arrow patched"].best(found.circuit, "arrow")[1:] == (1.0, 1.0)
    assert its["activation patching"].kept[-1].share > 0.99


def test_scores_are_ranked_and_graded() -> None:
    value = Role("value", 0)
    scored = tuple(
        Scored(layer=n, head=0, reader=QUERY, source=value, chain=chain, score=score, symbol="x1",
               hop=1)
        for n, chain, score in [(1, "own", 0.9), (1, "others", 0.5), (0, "own", 0.5)]
    )  # fmt: skip
    ranking = Ranking(method="EAP-IG", by="arrow", scored=scored)
    circuit = [Arrow(1, 0, QUERY, value), Arrow(2, 0, QUERY, value)]
    by_arrow = [Grade(0.9, 1.0, 0.5), Grade(0.5, 1 / 3, 0.5)]
    assert list(ranking.grades(circuit, "arrow")) == by_arrow
    assert list(ranking.grades(circuit, "row")) == [Grade(0.9, 1.0, 0.5), Grade(0.5, 0.5, 0.5)]
    assert ranking.best(circuit, "arrow") == by_arrow[0]
    assert ranking.model_copy(update={"by": "row"}).grades(circuit, "arrow") == ()
    assert str(scored[1]) == "1.0 value 0 of other chains → query"
    assert Ranking(method="EAP-IG", by="row", scored=()).best(circuit, "row").f1 == 0


def test_measures_of_the_field_agree_with_those_of_numpy(found: Baselines) -> None:
    """The areas by a fine grid; AUROC by the ranks of all possible arrows."""
    assert found.empty_share is not None
    for ranking in found.rankings:
        measured = found.measures(ranking)
        assert measured is not None
        kept = [k for k in ranking.kept if k.arrows < found.possible]
        at = np.array([0, *(k.arrows for k in kept), found.possible]) / found.possible
        shares = np.array([found.empty_share, *(k.share for k in kept), 1.0])
        faithful = (shares - found.empty_share) / (1 - found.empty_share)
        grid = (np.arange(200_000) + 0.5) / 200_000
        curve = np.interp(grid, at, faithful)
        assert measured.cpr == pytest.approx(curve.mean(), abs=1e-4)
        # MIB takes the trapezoids of |1 - f| at the measured points alone.
        assert measured.cmd == pytest.approx(
            np.interp(grid, at, abs(1 - faithful)).mean(), abs=1e-4
        )
        if ranking.by == "row":
            assert measured.auroc is None
            continue
        scores = np.zeros(found.possible)
        labels = np.zeros(found.possible, dtype=bool)
        scores[: len(ranking.scored)] = [s.score for s in ranking.scored]
        listed = [str(s) for s in ranking.scored]
        true = [str(arrow) for arrow in found.circuit]
        labels[: len(listed)] = [name in true for name in listed]
        labels[len(listed) : len(listed) + sum(name not in listed for name in true)] = True
        ranks = np.array([((scores < x).sum() + (scores <= x).sum() + 1) / 2 for x in scores])
        count = labels.sum()
        area = (ranks[labels].sum() - count * (count + 1) / 2) / count / (~labels).sum()
        assert measured.auroc == pytest.approx(area)
    assert found.model_copy(update={"empty_share": None}).measures(found.rankings[0]) is None


def test_what_cannot_be_measured_is_said_in_a_line(
    two_hops: Planted, circuit: Circuit, found: Baselines, random_model: Transformer
) -> None:
    assert Baselines.from_json(found.canonical_json()) == found
    whole = CallbackModel(lambda inputs, attention: inputs, two_hops.model, (1, 1))
    unnamed = circuit.model_copy(update={"task": None})
    for ask, line in (
        (lambda: baselines(two_hops.model, circuit, steps=0), "steps is 0"),
        (lambda: baselines(random_model, circuit), "found in another model"),
        (lambda: baselines(two_hops.model, unnamed), "the circuit names no task"),
        (lambda: baselines(whole, circuit), "expected an Adapter"),
    ):
        with pytest.raises(CircuitError, match=line):
            ask()


@torch.no_grad()
def test_the_rest_brings_its_mean(random_model: Transformer, two_hops: Planted) -> None:
    exam, adapter = exam_of(two_hops.task, 4), adapter_of(random_model)
    assert not isinstance(adapter, CallbackModel)
    kept = KeptArrows(adapter, exam)
    shape = kept.means.shape[:-1]
    chosen = torch.rand(shape, generator=torch.Generator().manual_seed(0)) < 0.5
    heads, roles = random_model.config.heads, exam.roles
    brought = torch.zeros_like(kept.means)
    # Means are of the model as it is; then the same walk again, with them in place.
    for mean in (True, False):
        x = random_model.enter(exam.inputs)
        for layer, block in enumerate(random_model.blocks):
            pattern = block.pattern(x, exam.length, range(heads))  # type: ignore[operator]
            values = block.values(x)  # type: ignore[operator]
            mixed = torch.zeros_like(values)
            for b, i, j in torch.cartesian_prod(
                torch.arange(len(exam)), *[torch.arange(exam.length)] * 2
            ).tolist():
                r, s = int(roles.role[b, i]), int(roles.role[b, j])
                c = int(roles.chain[b, i] != roles.chain[b, j])
                what = pattern[b, :, i, j, None] * values[b, :, j]
                if mean:
                    brought[layer, :, r, s, c] += what / (roles.role == r).sum()
                    mixed[b, :, i] += what
                else:
                    mixed[b, :, i] += what * chosen[layer, :, r, s, c, None]
            if not mean:
                rest = (brought[layer] * ~chosen[layer][..., None]).sum((2, 3))
                mixed += rest[:, roles.role.long()].transpose(0, 1)
            x = block.write(x, mixed)  # type: ignore[operator]
    loss = float(exam.marks(random_model.leave(x[:, -random_model.interface.read :])).mean())
    assert torch.allclose(kept.means, brought, atol=1e-5)
    wanted = (exam.guess - loss) / (exam.guess - kept.clean)
    assert abs(kept.share(chosen) - wanted) < 1e-3


@torch.no_grad()
def test_arrows_are_kept_in_the_arithmetic_of_the_model(
    two_hops: Planted, random_model: Transformer
) -> None:
    exam, found = exam_of(two_hops.task, 8), []
    for dtype in (torch.float32, torch.bfloat16, torch.float64):
        kept = KeptArrows(adapter_of(deepcopy(random_model).to(dtype)), exam)  # type: ignore[arg-type]
        chosen = torch.rand(kept.means.shape[:-1], generator=torch.Generator().manual_seed(0)) < 0.5
        found.append((kept.means, kept.share(chosen)))
    for (means, share), near in zip(found[1:], (0.05, 1e-4), strict=True):
        assert torch.allclose(means, found[0][0], atol=near * float(means.abs().max()))
        assert abs(share - found[0][1]) < near


TASK = Retrieval(hops=2, chains=2, dim=6, symbols="one-hot")
READERS = (Role("value", 0), Role("query"))


@pytest.fixture(scope="module")
def adapter() -> Adapter:
    torch.manual_seed(0)
    shape = Model(layers=2, heads=2, d_model=16)
    model = Transformer(shape, TASK.interface())
    with torch.no_grad():
        for weight in model.parameters():
            weight.normal_(0, 0.3)
    return adapter_of(model)


def by_hand(adapter: Adapter, site: Site, *, places: bool) -> float:
    """One example and position after the other."""
    exam = exam_of(TASK, 12)
    x = adapter.embed(exam.inputs)
    for layer in range(adapter.layers):
        mixed = adapter.project(layer, x).weights() @ adapter.project(layer, x).values
        new = mixed.clone()
        for example in range(12) if layer == site.layer else ():
            for at in range(exam.length):
                role = exam.table[int(exam.roles.role[example, at])]
                if role in site.readers:
                    alike = [
                        (e, p)
                        for e in range(12)
                        for p in range(exam.length)
                        if exam.table[int(exam.roles.role[e, p])] == role
                        and (not places or p == at)
                    ]
                    for head in site.heads:
                        its = torch.stack([mixed[e, head, p] for e, p in alike]).mean(0)
                        new[example, head, at] = its
        x = adapter.finish(layer, x, new)
    return float(exam.marks(adapter.unembed(x)).mean())


@pytest.mark.parametrize("layer", [0, 1])
def test_means_by_place_and_by_role_are_those_by_hand(
    adapter: Adapter, layer: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = Site(layer=layer, heads=(1,), readers=READERS)
    with torch.no_grad():
        place, role = (by_hand(adapter, site, places=places) for places in (True, False))
    (its,) = mean_ablate(adapter, exam_of(TASK, 12), [site], 1.0)
    assert its.by_place.mean == pytest.approx(place, abs=1e-6)
    assert its.by_role.mean == pytest.approx(role, abs=1e-6)
    assert its.model.mean != pytest.approx(its.by_role.mean, abs=1e-6)
    monkeypatch.setattr(budget, "CALL_BYTES", 1)  # example by example
    (again,) = mean_ablate(adapter, exam_of(TASK, 12), [site], 1.0)
    assert again.by_place.mean == pytest.approx(place, abs=1e-6)


def test_a_head_that_carries_symbols_brings_neither_its_place_nor_a_constant() -> None:
    grown = planted(TASK)
    sites = [Site(layer=p.layer, heads=(p.head,), readers=(p.reader,)) for p in grown.paths]
    whole, gap = adapter_of(grown.model), TASK.chance()
    found = mean_ablate(whole, exam_of(TASK, 32), sites, gap)
    assert [its.brings for its in found] == ["symbols"] * len(sites)
    assert mean_ablate(whole, exam_of(TASK, 4), [], gap) == ()
