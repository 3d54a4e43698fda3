"""What methods find of circuits that are known, and how they are ranked and graded."""

import re

import pytest

from hopscope.circuits import Circuit, Whole, discover, subject_of
from hopscope.errors import CircuitError
from hopscope.facts import Role
from hopscope.models import Transformer
from hopscope.models.planted import Planted
from hopscope.report.baselines import baselines_figure, baselines_rows
from hopscope.tracing.baselines import baselines
from hopscope.tracing.ranking import Arrow, Baselines, Grade, Ranking, Scored, arrows_of

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
    assert str(scored[1]) == "1.0 query ← value 0 of other chains"
    assert Ranking(method="EAP-IG", by="row", scored=()).best(circuit, "row").f1 == 0


def test_it_is_kept_as_json_drawn_and_told(found: Baselines) -> None:
    assert Baselines.from_json(found.canonical_json()) == found
    assert sum(axes.axison for axes in baselines_figure(found).axes) == 5
    columns, rows = baselines_rows(found)
    assert [row[0] for row in rows] == ["circuit", *(its.method for its in found.rankings)]
    assert all(len(row) == len(columns) for row in rows)
    assert rows[0][-2:] == ["4", "1.00"]


def test_what_cannot_be_measured_is_said_in_a_line(
    two_hops: Planted, circuit: Circuit, random_model: Transformer
) -> None:
    with pytest.raises(CircuitError, match="steps is 0; gradients are averaged over at least 1"):
        baselines(two_hops.model, circuit, steps=0)
    with pytest.raises(CircuitError, match="this circuit was found in another model"):
        baselines(random_model, circuit)
    with pytest.raises(CircuitError, match="the circuit names no task"):
        baselines(two_hops.model, circuit.model_copy(update={"task": None}))
    whole = Whole(lambda inputs, attention: inputs, two_hops.model, (1, 1))
    with pytest.raises(CircuitError, match=re.escape("write an adapter that walks")):
        baselines(whole, circuit)
    assert not isinstance(subject_of(two_hops.model), Whole)
