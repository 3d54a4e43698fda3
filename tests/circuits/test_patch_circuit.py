"""The account of a circuit: all of it on planted models, and what contradicts it said by name; and
what else can be asked of a circuit.
"""

import json
from typing import Any

import pytest
import torch

from hopscope.circuits import Ablation, Ablator, Circuit, discover, examples_of
from hopscope.circuits.account import Averaged, Site
from hopscope.circuits.circuit_patching import patch_circuit
from hopscope.circuits.components import Estimate
from hopscope.circuits.contradictions import accounted_for, contradictions
from hopscope.circuits.diagnostics import Restored, diagnose
from hopscope.circuits.pattern import AS_IN_MODEL, Pattern
from hopscope.configs import Discovery, Retrieval
from hopscope.errors import CircuitError
from hopscope.facts import Role
from hopscope.models.planted import Planted, planted
from hopscope.plots.account import account_table

QUERY, VALUE = Role("query"), Role("value", 1)


def said_of(circuit: Circuit) -> list[str]:
    return [str(each) for each in contradictions(circuit)]


def with_account(circuit: Circuit, **changes: object) -> Circuit:
    """The same circuit, of which other things were measured."""
    account = circuit.account.model_copy(update=changes)
    return circuit.model_copy(update={"account": account})


@pytest.fixture(scope="module")
def known() -> Planted:
    return planted(Retrieval(hops=3, chains=2, dim=8, symbols="one-hot"))


@pytest.fixture(scope="module")
def found(known: Planted) -> Circuit:
    circuit = discover(known.model, known.task, examples=16)
    return patch_circuit(known.model, circuit, examples=16)


@pytest.fixture(scope="module")
def twins() -> Planted:
    return planted(Retrieval(hops=2, chains=2, dim=8, symbols="one-hot"), twins=True)


@pytest.fixture(scope="module")
def pairs(twins: Planted) -> Circuit:
    """Their circuit, which has both heads of each pair."""
    return discover(twins.model, twins.task, examples=16)


def test_every_component_of_a_planted_circuit_has_an_account(found: Circuit) -> None:
    account = found.account
    assert accounted_for(found) == found.components
    for component in found.components:
        for path in component.paths:
            its = account.of(component, path)
            assert its.site == Site.of(path)
    assert account.decodable.held(QUERY, 3) == ("x0", "x1", "x2", "x3")
    assert account.decodable.held(QUERY, 1) == ("x0",)
    assert account.decodable.most(QUERY, "x0") == (pytest.approx(1, abs=0.01), 0)
    assert account.decodable.most(QUERY, "x1") == (pytest.approx(1, abs=0.01), 2)
    moves = found.components[-1]
    assert {*account.arrows(moves)[0].moved(found.task.graph().asked)} == {"x2", "x3"}  # type: ignore[union-attr]
    assert Circuit.from_dict(json.loads(found.model_dump_json())) == found


def test_a_component_of_several_heads_has_the_account_of_each_of_its_paths(
    twins: Planted, pairs: Circuit
) -> None:
    assert all(len(each.heads) == len(each.paths) == 2 for each in pairs.components)
    again = patch_circuit(twins.model, pairs, examples=16)
    assert accounted_for(again) == again.components
    for path in again.components[-1].paths:  # each of two brings a half
        its = again.account.of(again.components[-1], path)  # type: ignore[union-attr]
        assert its.moved({"x2": 2})["x2"].mean == pytest.approx(0.5, abs=0.01)  # type: ignore[union-attr]
    assert not any("but moves no symbol" in line for line in said_of(again))


def test_a_head_that_works_against_another_has_an_effect_below_0() -> None:
    """Of two equal heads one brings twice the symbol, and the other takes it away once."""
    known = planted(Retrieval(hops=1, chains=2, dim=8, symbols="one-hot"), twins=True)
    with torch.no_grad():
        twice, against = known.model.blocks[1].attention.out.weight.chunk(2, 1)
        twice.mul_(4), against.mul_(-2)
    circuit = patch_circuit(known.model, discover(known.model, known.task, examples=16))
    shares = [
        circuit.account.of(circuit.components[-1], path).moved({"x1": 1})["x1"].mean  # type: ignore[union-attr]
        for path in circuit.components[-1].paths
    ]
    assert shares == pytest.approx([2, -1], abs=0.01)
    assert "x1 -1.00 ± 0.00" in str(account_table(circuit))


def test_contradictions_are_named(found: Circuit) -> None:
    """Value 0 looks x2 up as well, though nobody needs it there: theory and contents differ."""
    account, lines = found.account, said_of(found)
    assert "1.00 of x2 is decodable at value 0 after layer 1" in lines[0]
    assert "value 1 → value 0, which the answers do not need" in lines[0]
    assert all("is decodable at value 0" in line for line in lines)
    decodable = account.decodable
    query = decodable.roles.index(QUERY)
    nothing = tuple((*layer[:query], (0.0,) * 4, *layer[query + 1 :]) for layer in decodable.shares)
    said = said_of(with_account(found, decodable=decodable.model_copy(update={"shares": nothing})))
    assert any("by its paths query should decode x3, but at most 0.00" in line for line in said)
    assert any("value 1 → query moves x3 (1.00), but then only" in line for line in said)
    given = tuple((1.0,) * 4 for _ in decodable.roles)
    full = decodable.model_copy(update={"shares": (given, *decodable.shares[1:])})
    said = said_of(with_account(found, decodable=full))
    assert any("1.00 of x3 is decodable at value 0 from the start" in line for line in said)
    silent = tuple(its.model_copy(update={"moves": ()}) for its in account.patched)
    muted = said_of(with_account(found, patched=silent))
    assert sum("but moves no symbol" in line for line in muted) == len(found.components)
    weak = tuple(each.model_copy(update={"kind": "weak"}) for each in found.components)
    waved = said_of(found.model_copy(update={"components": weak}))
    assert sum("counts as weak, but" in line for line in waved) == len(found.components)
    assert not any("without it the other paths" in line for line in waved)
    twin = weak[-1].model_copy(update={"heads": (9,)})
    waved = said_of(found.model_copy(update={"components": (*weak, twin)}))
    replaced = [line for line in waved if "(without it the other paths bring the same" in line]
    assert [line.split(" counts")[0] for line in replaced] == ["2.0 value 1 → query"]
    bare = found.model_copy(update={"account": None})
    assert not contradictions(bare)
    assert not accounted_for(bare)


def test_components_that_bring_no_symbol_bring_their_place_or_a_constant(found: Circuit) -> None:
    """The first component, as if no exchange of symbols had moved an answer."""
    account, first = found.account, found.components[0]
    assert account.averaged == ()  # only what brings no symbol is asked for its mean
    silent = tuple(its.model_copy(update={"moves": ()}) for its in account.patched)
    site = Site(layer=first.layer, heads=first.heads, destinations=first.destinations)
    for by_place, by_role, brings, contradicted in (
        (0.011, 0.5, "place", False),
        (0.01, 0.02, "constant", True),
        (0.5, 0.6, "symbols", True),
    ):
        model, place, role = (Estimate(mean=x, low=x, high=x) for x in (0.01, by_place, by_role))
        mean = Averaged(site=site, model=model, by_place=place, by_role=role, gap=1)
        assert mean.brings == brings
        its = with_account(found, patched=silent, averaged=(mean,))
        assert accounted_for(its) == ((first,) if brings != "symbols" else ())
        needed = [line for line in said_of(its) if "is needed" in line and first.name in line]
        assert len(needed) == sum(each.name == first.name for each in found.components) - (
            not contradicted
        )


def test_rows_without_paths_say_what_they_fetch_and_who_put_it_there(
    known: Planted, found: Circuit
) -> None:
    """The last component, as if it had been found as in the model alone."""
    last = found.components[-1].model_copy(update={"target": AS_IN_MODEL})
    assert (last.layer, last.paths) == (2, ())
    components = (*found.components[:-1], last)
    again = patch_circuit(
        known.model, found.model_copy(update={"components": components}), examples=16
    )
    account = again.account
    its = account.of(last)
    assert {*its.moved(known.task.graph().asked)} == {"x2", "x3"}
    (fetched,) = account.fetched(last)
    assert (fetched.site.source, fetched.site.chain) == (VALUE, "own")
    assert [giver.site.layer for giver in account.givers(VALUE, "x3", 2)] == [1]
    assert account.givers(VALUE, "x2", 2) == []  # it was given


def test_an_account_belongs_to_its_model(known: Planted, found: Circuit) -> None:
    other = planted(known.task)
    with torch.no_grad():
        other.model.head.weight += 1
    for asked in (patch_circuit, diagnose):
        with pytest.raises(CircuitError, match="this circuit was found in another model"):
            asked(other.model, found)
        with pytest.raises(CircuitError, match="names no task"):
            asked(known.model, found.model_copy(update={"task": None}))


def test_backups_and_restored_heads_are_those_made_by_hand(twins: Planted, pairs: Circuit) -> None:
    """The circuit has one head of each pair. The other brings the other half of the answer, and can
    stand in for it.
    """
    easy = pairs.found.model_copy(update={"settings": Discovery(enough=0.1)})
    halves = tuple(each.model_copy(update={"heads": (0,)}) for each in pairs.components)
    circuit = pairs.model_copy(update={"components": halves, "found": easy})
    found = diagnose(twins.model, circuit, examples=32)
    nothing = found.model_copy(update={"backups": (), "restored": ()})
    assert str(nothing) == "no head could stand in, and restoring none recovers more"
    least = Restored(head=(0, 1), gained=Estimate(mean=1e-4, low=1e-5, high=2e-4))
    assert str(nothing.model_copy(update={"restored": (least,)})) == str(nothing)
    with pytest.raises(CircuitError, match="examples is 1; an interval needs at least 2"):
        diagnose(twins.model, circuit, examples=1)

    ablator = Ablator(twins.model, examples_of(twins.task, 32, seed=2))
    patterns: dict[Any, Any] = dict(circuit.ablation().changes)

    def loss(changed: dict[Any, Any], computed: bool = False) -> float:
        if computed:
            looks = {
                at: [(role, AS_IN_MODEL) for role, _ in p.targets] for at, p in changed.items()
            }
            changed = {at: Pattern(tuple(its), changed[at].rest) for at, its in looks.items()}
        return float(ablator.losses([Ablation.of(changed)]).mean())

    nothing = loss({at: Pattern(rest=its.rest) for at, its in patterns.items()})
    gap = nothing - loss({})
    assert {each.head for each in found.restored} == {(layer, 1) for layer in range(3)}
    for each in found.restored:
        alone = loss({**patterns, each.head: Pattern(rest=AS_IN_MODEL)})
        assert each.gained.mean == pytest.approx((loss(patterns) - alone) / gap, abs=1e-4)
    assert [(each.head, each.instead_of) for each in found.backups] == [
        ((its.layer, 1), its) for its in halves
    ]
    for each in found.backups:
        mine, other = (each.instead_of.layer, 0), dict(patterns)
        for role in each.instead_of.destinations:
            other[mine] = other[mine].without(role)
            other[each.head] = other[each.head].with_target(role, each.instead_of.target)
        share = (nothing - loss(other, computed=True)) / gap
        assert each.recovered.mean == pytest.approx(share, abs=1e-4)
