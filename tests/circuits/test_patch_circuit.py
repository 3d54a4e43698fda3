"""The account of a circuit: all of it on planted models, and what contradicts it said by name."""

import json

import pytest
import torch

from hopscope.circuits import Circuit, discover
from hopscope.circuits.account import answers
from hopscope.circuits.circuit_patching import patch_circuit
from hopscope.circuits.contradictions import accounted_for, contradictions
from hopscope.circuits.effects import Averaged, Site
from hopscope.circuits.mechanism import Mechanism, aim
from hopscope.circuits.parts import Estimate
from hopscope.configs import Discovery, Retrieval
from hopscope.errors import CircuitError
from hopscope.facts import Role
from hopscope.models.planted import Planted, planted
from hopscope.report.account import account_remarks, account_rows

QUERY, VALUE = Role("query"), Role("value", 1)


def said_of(circuit: Circuit) -> list[str]:
    return [str(each) for each in contradictions(circuit)]


@pytest.fixture(scope="module")
def known() -> Planted:
    return planted(Retrieval(hops=3, chains=2, dim=8, symbols="one-hot"))


@pytest.fixture(scope="module")
def found(known: Planted) -> Circuit:
    circuit = discover(known.model, known.task, examples=16)
    return patch_circuit(known.model, circuit, examples=16)


def test_every_part_of_a_planted_circuit_has_an_account(found: Circuit) -> None:
    assert accounted_for(found) == found.parts
    for part in found.parts:
        for path in part.paths:
            its = found.account.of(part, path)
            assert its.site == Site.of(path)
    assert found.account.holdings.held(QUERY, 3) == ("x0", "x1", "x2", "x3")
    assert found.account.holdings.held(QUERY, 1) == ("x0",)
    rows = {row[:3] for row in account_rows(found)}
    assert ("2.0", "query ← value 1", "x2 1.00 ± 0.00, x3 1.00 ± 0.00") in rows
    assert ("0.0", "value 2 ← key 2", "·") in rows
    assert "found by x2" in {row[3] for row in account_rows(found)}
    assert account_remarks(found)[0] == "6 of 6 parts have a causal account"


def test_a_step_that_heads_share_has_the_account_of_each_of_its_paths() -> None:
    twins = planted(Retrieval(hops=2, chains=2, dim=8, symbols="one-hot"), twins=True)
    circuit = discover(twins.model, twins.task, examples=16, quick=True)
    assert all(len(part.heads) == len(part.paths) == 2 for part in circuit.parts)
    again = patch_circuit(twins.model, circuit, examples=16)
    assert accounted_for(again) == again.parts
    rows = {row[:3] for row in account_rows(again)}
    for head in ("2.0", "2.1"):
        assert (head, "query ← value 1", "x2 0.50 ± 0.00") in rows
    assert not any("yet brings no symbol" in line for line in said_of(again))


def test_what_no_path_brings_is_named(found: Circuit) -> None:
    """Value 0 looks x2 up as well, though nobody needs it there: theory and contents differ."""
    lines = said_of(found)
    why = "but 1.0 value 0 ← value 1, which the answers do not need"
    assert f"value 0 holds 1.00 of x2 after layer 1, and no path brings it there ({why})" in lines
    assert not any("comes to hold" in line or " moves " in line for line in lines)


def test_the_layer_of_the_most_is_the_first_after_which_it_is_held(found: Circuit) -> None:
    holdings = found.account.holdings
    assert holdings.most(QUERY, "x0") == (pytest.approx(1, abs=0.01), 0)
    assert holdings.most(QUERY, "x1") == (pytest.approx(1, abs=0.01), 2)
    given = tuple((1.0,) * 4 for _ in holdings.roles)
    full = holdings.model_copy(update={"shares": (given, *holdings.shares[1:])})
    said = said_of(with_account(found, holdings=full))
    assert "value 0 holds 1.00 of x3 from the start, and no path brings it there" in said


def with_account(circuit: Circuit, **changes: object) -> Circuit:
    """The same circuit, of which other things were measured."""
    account = circuit.account.model_copy(update=changes)
    return circuit.model_copy(update={"account": account})


def test_other_contradictions_are_named(found: Circuit) -> None:
    account = found.account
    holdings = account.holdings
    query = holdings.roles.index(QUERY)
    nothing = tuple((*layer[:query], (0.0,) * 4, *layer[query + 1 :]) for layer in holdings.shares)
    said = said_of(with_account(found, holdings=holdings.model_copy(update={"shares": nothing})))
    assert "along the paths query comes to hold x3; measured is 0.00 of it at most" in said
    assert any(
        line.startswith("layer 2 head 0: query ← value 1 moves x3 (1.00), of which")
        for line in said
    )
    silent = tuple(its.model_copy(update={"moves": ()}) for its in account.cargo)
    assert account.averaged == ()  # only what brings no symbol is asked for its mean
    muted = said_of(with_account(found, cargo=silent))
    assert sum("yet brings no symbol" in line for line in muted) == len(found.parts)
    kinds = tuple(part.model_copy(update={"kind": "background"}) for part in found.parts)
    waved = said_of(found.model_copy(update={"parts": kinds}))
    assert sum("counts as background, yet" in line for line in waved) == 6
    bare = found.model_copy(update={"account": None})
    for asked in (contradictions, accounted_for, account_rows, account_remarks):
        assert not asked(bare)


def test_parts_that_bring_no_symbol_bring_their_place_or_a_constant(found: Circuit) -> None:
    """The first part, as if no exchange of symbols had moved an answer."""
    account, part = found.account, found.parts[0]
    silent = tuple(its.model_copy(update={"moves": ()}) for its in account.cargo)
    site = Site(layer=part.layer, heads=(part.head,), readers=part.readers)

    needed = f"{part.name} {found.described(part)} is needed"
    for by_place, by_role, row, contradicted in (
        (0.011, 0.5, "where it stands (loss 0.010; 0.011 with that alone, 0.500 without)", False),
        (0.01, 0.02, "nothing but a constant (loss 0.010; 0.020 with its mean)", True),
        (0.5, 0.6, None, True),
    ):
        clean, place, role = (Estimate(mean=x, low=x, high=x) for x in (0.01, by_place, by_role))
        mean = Averaged(site=site, clean=clean, by_place=place, by_role=role, floor=0.001, needed=3)
        told = with_account(found, cargo=silent, averaged=(mean,))
        assert accounted_for(told) == ((part,) if row else ())
        assert row is None or row in {row[3] for row in account_rows(told)}
        assert any(line.startswith(needed) for line in said_of(told)) == contradicted


def test_what_an_account_calls_needed_is_what_its_circuit_does(
    known: Planted, found: Circuit
) -> None:
    """The rows of value 0 in the last layer bring nothing; with them five times the model's loss
    would not be called needed where the search asked for ten times.
    """
    (last,) = (part for part in found.parts if part.layer == 2)
    idle = last.model_copy(update={"readers": (Role("value", 0),), "paths": ()})
    settings = Discovery(needed=10)
    switches = found.switches.model_copy(update={"settings": settings})
    circuit = found.model_copy(update={"parts": (idle,), "switches": switches})
    account = patch_circuit(known.model, circuit, examples=16).account
    (mean,) = account.averaged
    assert mean.floor == pytest.approx(0.001 * known.task.chance())
    five = {"clean": Estimate(mean=1, low=1, high=1), "by_role": Estimate(mean=5, low=5, high=5)}
    assert mean.model_copy(update=five).brings == "constant"


def test_rows_without_paths_say_what_they_fetch_and_who_put_it_there(
    known: Planted, found: Circuit
) -> None:
    """The last step, as if it had been found by position alone."""
    (last,) = (part for part in found.parts if part.layer == 2)
    by_position = Mechanism(((QUERY, aim("position")),))
    heads = tuple(
        report.model_copy(update={"mechanism": by_position}) if report.layer == 2 else report
        for report in found.heads
    )
    parts = tuple(
        part.model_copy(update={"paths": ()}) if part == last else part for part in found.parts
    )
    again = patch_circuit(
        known.model, found.model_copy(update={"heads": heads, "parts": parts}), examples=16
    )
    (part,) = (each for each in again.parts if each.layer == 2)
    row = again.account.of(part)
    assert {*row.moved(answers(known.task.graph()))} == {"x2", "x3"}
    (its,) = again.account.fetched(part)
    assert (its.site.source, its.site.chain) == (VALUE, "own")
    assert [giver.site.layer for giver in again.account.givers(VALUE, "x3", 2)] == [1]
    assert again.account.givers(VALUE, "x2", 2) == []  # it was given
    assert any("query ← value 1 (put there by 1.0)" in row[1] for row in account_rows(again))
    assert any("(but 2.0 query ← value 1)" in line for line in said_of(again))


def test_an_account_is_kept_and_belongs_to_its_model(known: Planted, found: Circuit) -> None:
    assert Circuit.from_dict(json.loads(found.to_bytes())) == found
    other = planted(known.task)
    with torch.no_grad():
        other.model.head.weight += 1
    with pytest.raises(CircuitError, match="this circuit was found in another model"):
        patch_circuit(other.model, found)
    with pytest.raises(CircuitError, match="names no task: say which examples to explain it on"):
        patch_circuit(known.model, found.model_copy(update={"task": None}))
