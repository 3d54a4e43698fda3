"""Patterns, changes and circuits as data and as text: what they say, and what they refuse."""

import json
import math
import pickle
from inspect import unwrap
from pathlib import Path as FilePath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopscope import __version__
from hopscope.circuits import Ablation, Circuit, Component, Pattern, along, target
from hopscope.circuits.ablation import changes_of
from hopscope.circuits.circuit import FORMAT
from hopscope.circuits.components import Estimate, HeadAlone, Instead, Losses, PathFlow, Score
from hopscope.circuits.pattern import (
    AS_IN_MODEL,
    ITSELF,
    MEAN,
    PREVIOUS,
    RESAMPLE,
    UNIFORM,
    Source,
    Target,
    table_of,
)
from hopscope.configs import Discovery
from hopscope.errors import CircuitError, ConfigError
from hopscope.facts import Role, chain_of_facts
from hopscope.theory import Path

KEY, VALUE, QUERY = Role("key", 1), Role("value", 0), Role("query")
READS = Pattern(((QUERY, target("own", VALUE)), (KEY, AS_IN_MODEL)), ITSELF)
ELSE = along("hop", 2).if_("2 hops").or_else(along("hop"), ITSELF)


def test_what_makes_no_sense_is_refused() -> None:
    for make in (
        lambda: Source("own"),
        lambda: Source("itself", KEY),
        lambda: Source("relation"),
        lambda: Source("own", KEY, "hop"),
        lambda: Source("itself", times=2),
        lambda: Source("position"),
        lambda: Source("itself", head=(0, 0)),
        lambda: Target(((Source("own", KEY), 0.5),)),
        lambda: Target(((Source("model"), 0.5), (Source("itself"), 0.5))),
        lambda: along("hop").or_else(ELSE),
        lambda: table_of("position", (0, 0)).if_("2 hops"),
        lambda: AS_IN_MODEL.or_else(ITSELF),
        lambda: Pattern(((KEY, UNIFORM), (KEY, ITSELF))),
    ):
        with pytest.raises(CircuitError):
            make()


ROLES = st.sampled_from([KEY, VALUE, QUERY])
TARGETS = st.sampled_from([UNIFORM, ITSELF, PREVIOUS, AS_IN_MODEL, ELSE, target("own", VALUE)])
LOOKS = st.dictionaries(ROLES, TARGETS)


@given(LOOKS, TARGETS, ROLES, ROLES, TARGETS)
def test_every_role_has_its_target_or_that_of_the_rest(
    looks: dict[Role, Target], rest: Target, role: Role, other: Role, new: Target
) -> None:
    """Whatever the order in which targets are given, and in another process."""
    its = Pattern(tuple(looks.items()), rest)
    assert its == Pattern(tuple(reversed(looks.items())), rest)
    assert its.of(role) == looks.get(role, rest)
    assert its.with_target(role, new).of(role) == new
    assert its.without(role).of(role) == rest
    assert its.with_target(role, new).without(role) == its.without(role)
    assert its.with_target(role, its.of(role)).of(other) == its.of(other)
    state = Ablation.of({(0, 1): its, (1, 0): Pattern()})
    row, far = ((0, 1), role), ((1, 0), other)
    assert state.looking_at([row], new).without([row]) == state.without([row])
    assert state.looking_at([far], new).looking_at([row], new) == state.looking_at([row, far], new)
    assert {*state.looking_at([row], new).live} == {*state.live, row}
    assert [*state.computed.live] == state.live
    # Strings hash otherwise in every process, so a copy may not bring its hash along.
    hash(its)
    again = pickle.loads(pickle.dumps(its))
    assert (again, hash(again)) == (its, hash(its))
    assert b"_hash" not in pickle.dumps(its)


def test_patterns_and_targets_are_written_out() -> None:
    assert str(READS) == "as in the model → key 1; value 0 → query; else itself"
    assert str(ELSE) == "hop ×2 if 2 hops, else hop, else itself"
    assert [ELSE.written, AS_IN_MODEL.written, table_of("token", (0, 1)).written] == [
        "rule", "model", "table",
    ]  # fmt: skip


def test_the_same_changes_in_any_order_are_the_same_ablation() -> None:
    mean = Pattern(rest=MEAN)
    one = Ablation.of({(1, 0): READS, (0, 1): mean, (0, 0): READS})
    other = Ablation.of({(0, 0): READS, (0, 1): mean, (1, 0): READS})
    assert (one, hash(one)) == (other, hash(other))
    for head, change in (((1, 0), MEAN), ("1.0", mean), ((1,), mean), ((1, 0.5), READS)):
        with pytest.raises(CircuitError):
            unwrap(Ablation.of.__func__)(Ablation, {head: change})  # type: ignore[attr-defined]


def test_changes_are_read_from_their_text() -> None:
    """Of whole heads, or of one row, which leaves the others as they are."""
    paths = Pattern(((QUERY, target("own", VALUE)), (VALUE, target("own", Role("key")))), ITSELF)
    reads = Pattern(((QUERY, target("own", VALUE)),), AS_IN_MODEL)
    for texts, change in (
        (["1.12=itself"], Pattern(rest=ITSELF)),
        (["1.12=position"], Pattern(rest=table_of("position", (1, 12)))),
        (["1.12=resample"], Pattern(rest=RESAMPLE)),
        (["1.12=value 0>query,key 0>value 0/itself"], paths),
        (["1.12:query=uniform"], Pattern(((QUERY, UNIFORM),), AS_IN_MODEL)),
        (["1.12:query=value 0"], reads),
        (["1.12:query=mean"], Pattern(((QUERY, MEAN),), AS_IN_MODEL)),
        (["1.12:query=value 0>query"], reads),
        (
            ["1.12:query=uniform", "1.12:value 0=itself"],
            Pattern(((QUERY, UNIFORM), (VALUE, ITSELF)), AS_IN_MODEL),
        ),
    ):
        assert changes_of(texts) == {(1, 12): change}, texts
    done = {(1, 0): Pattern(((VALUE, target("own", KEY)),))}
    on_top = {(1, 0): Pattern(((VALUE, target("own", KEY)), (QUERY, ITSELF)))}
    assert changes_of(["1.0:query=itself"], done) == on_top


def test_what_cannot_be_done_is_refused() -> None:
    form, twice = r"expected LAYER\.HEAD=WHAT", r"head 1\.0 is given twice"
    bad = [(text, form) for text in ("3=uniform", "3.0", "x.0=mean", "3.0:=mean", "٣.0=mean", "")]
    for text, line in (
        *bad,
        ("3.0=flat", "WHAT is uniform, itself, previous, mean, resample, pos"),
        ("3.0=0 valve>query", "there is no role '0 valve'"),
        ("3.0:query=value", "or a role that it looks at"),
        ("3.0:query=key 0>value 0", "is for the row query but names value 0"),
        ("1.0=uniform, 1.0=mean", twice),
        ("1.0=uniform, 1.0:query=itself", twice),
        ("1.0:query=itself, 1.0=uniform", twice),
        ("1.0:query=itself, 1.0:query=uniform", twice),
    ):
        with pytest.raises(ConfigError, match=line):
            changes_of(text.split(", "))


def test_a_component_has_its_rows_its_paths_and_what_it_is_called() -> None:
    mixed = Target(
        ((Source("own", KEY), 0.7), (Source("others", VALUE), 0.2), (Source("itself"), 0.1))
    )
    both = Component(layer=2, heads=(1, 3), destinations=(VALUE, QUERY), target=mixed)
    assert both.rows == (((2, 1), VALUE), ((2, 1), QUERY), ((2, 3), VALUE), ((2, 3), QUERY))
    assert both.paths == tuple(Path(2, h, role, KEY) for h in (1, 3) for role in (VALUE, QUERY))
    assert (both.name, both.written) == ("2.1+3", "rule")
    nothing = both.model_copy(update={"target": target("own", Role("other"))})
    assert nothing.paths == ()
    for looks, destination, previous in (
        (target("own", Role("key")), VALUE, True),
        (PREVIOUS, QUERY, True),
        (target("own", KEY), VALUE, False),
        (target("own", Role("key")), QUERY, False),
        (table_of("position", (0, 1)), VALUE, False),
    ):
        one = Component(layer=0, heads=(1,), destinations=(destination,), target=looks)
        assert one.is_previous == previous, looks


def test_what_a_circuit_writes_it_reads(circuit: Circuit, tmp_path: FilePath) -> None:
    circuit.save(tmp_path / "circuit.json")
    assert Circuit.load(tmp_path / "circuit.json") == circuit
    kept = json.loads(json.dumps(circuit.to_dict()))
    assert Circuit.from_dict(kept) == circuit
    with pytest.raises(ConfigError, match=rf"Circuit\.format: .*{FORMAT}.* got 4"):
        Circuit.from_dict({**kept, "format": 4})
    with pytest.raises(CircuitError, match="a circuit is saved as JSON"):
        circuit.save(tmp_path / "circuit.svg")


def test_it_says_its_verdict_first_and_has_a_row_for_each_component(circuit: Circuit) -> None:
    lines = str(circuit).splitlines()
    assert lines[0] == circuit.verdict
    for each, line in zip(circuit.components, lines[-len(circuit.components) :], strict=True):
        assert line.endswith("lost without it if attention is computed)") == (each.kind == "routes")
    frame = circuit.frame()
    assert list(frame["component"]) == [each.name for each in circuit.components]
    assert list(frame["lost"]) == [each.lost.mean for each in circuit.components if each.lost]


def test_a_circuit_says_with_which_other_settings_or_version_it_was_found(
    circuit: Circuit,
) -> None:
    assert circuit.differs_from(Discovery(examples=32)) is None
    said = circuit.differs_from(Discovery(needed=0.1)) or ""
    assert "examples 32 (128), needed 0.05 (0.1)" in said
    old = circuit.found.model_copy(update={"version": "0.0.9"})
    found = circuit.model_copy(update={"found": old}).differs_from(Discovery(examples=32)) or ""
    assert f"0.0.9 (this is {__version__})" in found
    with pytest.raises(CircuitError, match=r"no head 3\.0 in this circuit"):
        circuit.pattern(3, 0)
    with pytest.raises(CircuitError, match="found in another model"):
        circuit.check_model("0" * 64)


def losses_of(**changed: Any) -> Losses:
    """A model that solves two hops, and a circuit that recovers 90 % of them."""
    some = {"model": (0.1, 0.3), "ablated": (1.0, 1.4), "prescribed": (0.2, 0.4)}
    return Losses(**{**some, "computed": (0.2, 0.4), "chance": 1.0, **changed})


def test_the_verdict_follows_from_losses_rows_and_warnings(circuit: Circuit) -> None:
    row = circuit.components[0]
    table = row.model_copy(update={"target": table_of("position", (0, 0))})
    left = row.model_copy(update={"target": AS_IN_MODEL, "kind": "moves"})
    seldom = row.model_copy(update={"kind": "moves", "holds": near(0.5)})
    often = row.model_copy(update={"kind": "moves", "holds": near(0.7)})

    def of(components: tuple[Component, ...] = (row, row), **changed: Any) -> Circuit:
        losses = losses_of(**changed)
        return circuit.model_copy(update={"losses": losses, "components": components, "scores": ()})

    well = {"prescribed": (0.1, 0.31), "computed": (0.11, 0.3)}
    assert of().recovered() == pytest.approx(0.9)
    assert math.isnan(of(computed=None).recovered("computed"))
    for its, verdict in (
        (of(**well), "Explained"),
        (of(**{**well, "computed": None}), "Explained"),
        (of(), "Not explained"),
        (of(**{**well, "computed": (0.9, 0.9)}), "Partly explained"),
        (of((row, table), **well), "Found, not explained"),
        (of((row, row, left), **well), "Found, not explained"),
        (of((row, row, left.model_copy(update={"kind": "weak"})), **well), "Explained"),
        (of((row, row, seldom), **well), "Partly explained"),
        (of((row, often), **well), "Partly explained"),
        (of((row, row, seldom.model_copy(update={"kind": "weak"})), **well), "Explained"),
        (of((row, seldom), **well), "Found, not explained"),
        (of(**{**well, "chance": 1.3}), "Partly explained"),  # learned without attention
        (of(**{**well, "chance": 1.25}), "Explained"),
        (of((), **well), "Nothing found"),
        (of(model=(1.0, 1.0)), "Nothing to explain"),
        (of(ablated=(0.1, 0.3)), "Nothing to recover"),
    ):
        assert its.verdict.startswith(verdict), its.verdict
        assert str(its).count("by chance") == 1  # the losses are said once
    assert of((row, table)).named_rows == (1, 2)
    assert of((row, table, seldom)).unnamed == (table, seldom)
    assert "lost without it, holds in 50% of its rows)" in str(of((row, seldom)))
    assert (of(**well).sufficient, of().sufficient) == (True, False)
    assert not of(**{**well, "computed": (0.9, 0.9)}).self_contained
    assert not of(**{**well, "computed": None}).self_contained


def test_a_share_of_a_gap_that_may_be_none_is_not_in_the_verdict(circuit: Circuit) -> None:
    unsure = circuit.scores[0].model_copy(update={"recovered": None})
    for rest, said in (("even", True), ("mean", False)):
        its = circuit.model_copy(update={"scores": (unsure.model_copy(update={"rest": rest}),)})
        assert its.verdict.startswith("Nothing to recover") == said


def near(mean: float) -> Estimate:
    return Estimate(mean=mean, low=mean - 0.02, high=mean + 0.02)


@pytest.mark.parametrize(
    ("attention", "rest", "recovered", "alike", "verdict"),
    [
        ("prescribed", "even", 1.0, 0.6, "Not faithful"),  # right and wrong in other examples
        ("computed", "even", 0.98, 0.6, "Not faithful"),
        ("computed", "even", 0.5, 0.6, "Explained"),  # says no more than the losses say
        ("prescribed", "even", 1.0, 0.94, "Explained"),  # within the interval
        ("prescribed", "mean", 0.5, 0.6, "Partly explained"),  # others count by even attention
        ("prescribed", "resample", 0.5, 0.6, "Partly explained"),
        ("computed", "mean", 0.5, 0.6, "Partly explained"),
        ("computed", "resample", 0.5, 0.6, "Explained"),  # symbols of two examples are mixed
    ],
)
def test_a_circuit_explains_if_its_answers_are_the_models_and_the_rest_does_not_matter(
    circuit: Circuit, attention: Any, rest: Any, recovered: float, alike: float, verdict: str
) -> None:
    for classes in (False, True):
        score = Score(
            attention=attention,
            rest=rest,
            recovered=near(recovered),
            agreement=near(0.0 if classes else alike),
            same_answer=near(alike) if classes else None,
        )
        its = circuit.model_copy(update={"scores": (score,)})
        assert its.verdict.startswith(f"{verdict}:")
        assert str(its).count(f"{attention} attention, rest {rest}") == (verdict != "Explained")


@pytest.mark.parametrize(("alike", "faithful"), [(0.5, True), (0.4, False)])
def test_guesses_at_a_hop_that_was_not_learned_may_differ(
    circuit: Circuit, alike: float, faithful: bool
) -> None:
    score = circuit.scores[0].model_copy(update={"same_answer": near(alike)})
    losses = losses_of(model=(0.1, 1.4), prescribed=(0.1, 1.4), computed=(0.1, 1.4), chance=2.0)
    its = circuit.model_copy(update={"scores": (score,), "losses": losses})
    assert its.losses.known == (True, False)
    assert its.verdict.startswith("Not faithful") is not faithful


@pytest.mark.parametrize(("layer", "lost", "lacks"), [(2, 0.0, 1), (2, 0.04, 0), (1, 0.0, 0)])
def test_in_the_last_layer_nothing_routes(
    circuit: Circuit, layer: int, lost: float, lacks: int
) -> None:
    """If it is needed only with computed attention, prescribed attention gives away its work."""
    assert circuit.layers == 3
    changes = {"layer": layer, "kind": "routes", "lost": near(lost), "lost_computed": near(0.3)}
    its = circuit.components[-1].model_copy(update=changes)
    its = circuit.model_copy(update={"components": (*circuit.components[:-1], its)})
    assert len(its.lacks) == lacks
    assert its.verdict.startswith("Partly explained" if lacks else "Explained")


@pytest.mark.parametrize(
    ("first", "second", "lacks"),
    [
        ((0.3, 0.3), (0.3, 0.3), 0),
        ((0.3, 0.3), (0.0, 0.0), 1),  # ignored
        ((0.3, 0.3), (0.0, -0.3), 1),  # it works against the other
        ((0.3, 0.3), (0.0, 0.3), 0),  # the other is enough, and so is this head
        ((0.0, 0.0), (0.0, 0.0), 0),  # only together they are needed
    ],
)
def test_a_head_that_brings_little_to_its_component_is_lacking(
    circuit: Circuit, first: tuple[float, float], second: tuple[float, float], lacks: int
) -> None:
    """By what is lost without each of two heads, and gained with it alone."""
    sharing = tuple(
        HeadAlone(head=(2, head), lost=near(lost), gained=near(gained))
        for head, (lost, gained) in enumerate((first, second))
    )
    changes = {"layer": 2, "heads": (0, 1), "kind": "moves", "sharing": sharing}
    its = circuit.components[-1].model_copy(update=changes)
    its = circuit.model_copy(update={"components": (*circuit.components[:-1], its)})
    assert len(its.lacks) == lacks
    assert its.verdict.startswith("Partly explained" if lacks else "Explained")


@pytest.mark.parametrize(("lost", "lacks"), [(0.3, 1), (0.06, 0)])  # 0.06: within the interval
def test_a_head_that_is_needed_and_left_out_is_lacking(
    circuit: Circuit, lost: float, lacks: int
) -> None:
    its = circuit.model_copy(update={"left_out": (HeadAlone(head=(1, 5), lost=near(lost)),)})
    assert len(its.lacks) == lacks


@pytest.mark.parametrize("instead", ["ablated", "mean"])
def test_rows_that_are_needed_and_left_out_of_a_used_head_are_lacking(
    circuit: Circuit, instead: Instead
) -> None:
    left = HeadAlone(head=(2, 0), lost=near(0.3), instead=instead)
    (line,) = circuit.model_copy(update={"left_out": (left,)}).lacks
    assert "the other rows of 2.0 alone" in line


def test_flow_names_answers_that_do_not_arrive_and_sources_that_cannot_be_matched(
    circuit: Circuit,
) -> None:
    graph, key = chain_of_facts(2), Role("key", 0)
    first = [Path(0, 0, VALUE, key), Path(1, 0, QUERY, VALUE)]
    for paths, answers, reached, missed, jumps in (
        (first, ["x1"], ("x1",), (), ()),
        (first, ["x1", "x2"], ("x1",), ("x2",), ()),
        (first[1:], ["x1"], ("x1",), (), (first[1],)),
        ([], ["x1"], (), ("x1",), ()),
    ):
        flow = PathFlow.along(graph, paths, answers)
        assert (flow.reached, flow.missed, flow.jumps) == (reached, missed, jumps)
        its = circuit.model_copy(update={"flow": flow})
        assert len(its.lacks) == bool(missed) + len(jumps)


def test_what_cannot_be_is_warned_of(circuit: Circuit) -> None:
    """A relation followed further than a layer can reach; a circuit that is better than its model
    beyond its interval, where everything else attends evenly.
    """
    assert circuit.warnings == ()
    for layer, times, warned in ((0, 1, 0), (0, 2, 1), (1, 1, 0), (1, 2, 1), (2, 2, 0), (3, 5, 1)):
        each = Component(
            layer=layer,
            heads=(0,),
            destinations=(QUERY,),
            target=ITSELF.or_else(along("hop", times)),
        )
        its = circuit.model_copy(update={"components": (each,)})
        assert len(its.warnings) == warned, (layer, times)
        assert its.verdict.startswith("Not faithful") == bool(warned)
        # If the model itself looks there, its place can be known: a token may name it.
        mixture = Target(((Source("relation", None, "hop", times), 0.1), (Source("itself"), 0.9)))
        for holds, rule, still in (
            (1.0, each.target, 0),
            (0.5, each.target, warned),
            (1.0, mixture, warned),
        ):
            found = each.model_copy(update={"holds": near(holds), "target": rule})
            its = circuit.model_copy(update={"components": (found,)})
            assert len(its.warnings) == still, (layer, times, holds, rule)
    for low, rest, warned in ((1.02, "even", 1), (1.001, "even", 0), (1.02, "mean", 0)):
        better = Score(
            attention="prescribed",
            rest=rest,  # type: ignore[arg-type]
            recovered=Estimate(mean=1.03, low=low, high=1.04),
            agreement=Estimate(mean=0.9, low=0.8, high=1),
        )
        its = circuit.model_copy(update={"scores": (better,)})
        assert len(its.warnings) == warned, (low, rest)
        assert its.verdict.startswith("Not faithful") == bool(warned)
