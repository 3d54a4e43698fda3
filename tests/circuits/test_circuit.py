"""Mechanisms, changes and circuits as data and as text: what they say, and what they refuse."""

import json
import pickle
from inspect import unwrap
from pathlib import Path as FilePath

import numpy as np
import pytest

from hopscope import __version__
from hopscope.circuits import Ablation, Carried, Circuit, Mechanism, aim, along
from hopscope.circuits.changes import changes_of
from hopscope.circuits.draft import Conditions, Draft, Unit
from hopscope.circuits.limits import Limits
from hopscope.circuits.mechanism import AS_IS, BY_POSITION, ITSELF, PREVIOUS, UNIFORM, Aim, Target
from hopscope.circuits.parts import Estimate, HeadReport, Losses, paths_of
from hopscope.circuits.state import State
from hopscope.configs import Discovery
from hopscope.errors import CircuitError, ConfigError
from hopscope.facts import Role
from hopscope.theory import Path

KEY, VALUE, QUERY = Role("key", 1), Role("value", 0), Role("query")
READS = Mechanism(((QUERY, aim("own", VALUE)), (KEY, AS_IS)), ITSELF)
ELSE = along("hop", 2).if_("2 hops").or_else(along("hop"), ITSELF)
MEAN = Carried("mean")


def test_what_makes_no_sense_is_refused() -> None:
    for make, line in (
        (lambda: Target("own"), "the target 'own' needs a role"),
        (lambda: Target("itself", KEY), "the target 'itself' takes no role, got key 1"),
        (lambda: Target("relation"), "the target 'relation' needs a name"),
        (lambda: Target("own", KEY, "hop"), "the target 'own' takes no relation, got 'hop'"),
        (lambda: Target("itself", times=2), "the target 'itself' is followed 2 times"),
        (lambda: Aim(((Target("own", KEY), 0.5),)), "the weights of an aim add up to 0.5"),
        (lambda: Aim(((Target("model"), 0.5), (Target("itself"), 0.5))), "cannot be mixed"),
        (lambda: along("hop").or_else(ELSE), "put all aims that come after one another in one"),
        (lambda: BY_POSITION.if_("2 hops"), "the same under all conditions"),
        (lambda: Mechanism(((KEY, UNIFORM), (KEY, ITSELF))), "gives one role two aims"),
        (
            lambda: unwrap(Carried.__init__)(object.__new__(Carried), "zero"),
            "to carry 'zero'; expected mean or resample",
        ),
    ):
        with pytest.raises(CircuitError, match=line):
            make()


def test_every_role_has_its_aim_or_that_of_the_rest() -> None:
    assert READS.readers == (KEY, QUERY)  # sorted, so that the same mechanism is equal
    assert READS.of(QUERY) == aim("own", VALUE)
    assert READS.of(VALUE) == ITSELF
    assert Mechanism(((KEY, AS_IS), (QUERY, aim("own", VALUE))), ITSELF) == READS
    assert READS.with_aim(QUERY, UNIFORM).of(QUERY) == UNIFORM
    assert READS.with_aim(VALUE, PREVIOUS).readers == (KEY, QUERY, VALUE)
    assert READS.without(QUERY) == Mechanism(((KEY, AS_IS),), ITSELF)
    assert READS.without(VALUE) == READS


def test_what_they_say() -> None:
    for said, text in (
        (READS, "key 1 ← as it is; query ← value 0; else itself"),
        (Mechanism(rest=PREVIOUS), "previous"),
        (aim("others", KEY), "key 1 of other chains"),
        (aim("elsewhere", VALUE), "all but value 0"),
        (aim("place", VALUE), "by place of value 0"),
        (
            Aim(((Target("own", KEY), 0.75), (Target("itself"), 0.25))),
            "0.75 key 1 + 0.25 itself",
        ),
        (ELSE, "hop ×2 if 2 hops, else hop, else itself"),
    ):
        assert str(said) == text


def test_copies_hash_as_they_do_where_they_are() -> None:
    """Strings hash otherwise in every process, so a copy may not bring its hash along."""
    hash(READS)
    again = pickle.loads(pickle.dumps(READS))
    assert again == READS
    assert hash(again) == hash(READS)
    assert b"_hash" not in pickle.dumps(READS)


def test_the_same_changes_in_any_order_are_the_same_ablation() -> None:
    one = Ablation.of({(1, 0): READS, (0, 1): MEAN, (0, 0): READS})
    other = Ablation.of({(0, 0): READS, (0, 1): MEAN, (1, 0): READS})
    assert one == other
    assert hash(one) == hash(other)
    for head, change in (((1, 0), "mean"), ("1.0", MEAN), ((1,), MEAN), ((1, 0.5), READS)):
        with pytest.raises(CircuitError, match=r"is to do .*; expected \(layer, head\) with a"):
            unwrap(Ablation.of.__func__)(Ablation, {head: change})  # type: ignore[attr-defined]


def test_changes_are_read_from_their_text() -> None:
    """Of whole heads, or of one row, which leaves the others as they are."""
    paths = Mechanism(((QUERY, aim("own", VALUE)), (VALUE, aim("own", Role("key")))), ITSELF)
    reads = Mechanism(((QUERY, aim("own", VALUE)),), AS_IS)
    for texts, change in (
        (["1.12=itself"], Mechanism(rest=ITSELF)),
        (["1.12=resample"], Carried("resample")),
        (["1.12=query<value 0,value 0<key 0/itself"], paths),
        (["1.12=query>value 0,value 0>key 0/identity"], paths),  # earlier words for the same
        (["1.12:query=uniform"], Mechanism(((QUERY, UNIFORM),), AS_IS)),
        (["1.12:query=value 0"], reads),
        (["1.12:query=query<value 0"], reads),
        (
            ["1.12:query=uniform", "1.12:value 0=itself"],
            Mechanism(((QUERY, UNIFORM), (VALUE, ITSELF)), AS_IS),
        ),
    ):
        assert changes_of(texts) == {(1, 12): change}, texts
    done = {(1, 0): Mechanism(((VALUE, aim("own", KEY)),))}
    on_top = {(1, 0): Mechanism(((VALUE, aim("own", KEY)), (QUERY, ITSELF)))}
    assert changes_of(["1.0:query=itself"], done) == on_top


def test_what_cannot_be_done_is_refused() -> None:
    form, twice = r"expected LAYER\.HEAD=WHAT", r"head 1\.0 is given twice"
    bad = [(text, form) for text in ("3=uniform", "3.0", "x.0=mean", "3.0:=mean", "٣.0=mean", "")]
    for text, line in (
        *bad,
        ("3.0=flat", "WHAT is uniform, itself, previous, position, mean"),
        ("3.0=query<0 valve", "there is no role '0 valve'"),
        ("3.0:0 valve=uniform", "there is no role '0 valve'"),
        ("3.0:query=value", "mean and resample replace what a whole head carries"),
        ("3.0:query=value 0<key 0", "is of the row query, and names value 0"),
        ("1.0=uniform, 1.0=mean", twice),
        ("1.0=uniform, 1.0:query=itself", twice),
        ("1.0:query=itself, 1.0=uniform", twice),
        ("1.0:query=itself, 1.0:query=uniform", twice),
    ):
        with pytest.raises(ConfigError, match=line):
            changes_of(text.split(", "))
    with pytest.raises(ConfigError, match="what the head carries is replaced already"):
        changes_of(["3.0:query=itself"], {(3, 0): MEAN})


FIRST = Role("key")


def test_what_a_circuit_writes_it_reads(circuit: Circuit, tmp_path: FilePath) -> None:
    circuit.save(tmp_path / "circuit.json")
    assert Circuit.load(tmp_path / "circuit.json") == circuit
    kept = json.loads(json.dumps(circuit.to_dict()))
    assert Circuit.from_dict(kept) == circuit
    with pytest.raises(ConfigError, match=r"Circuit\.format: .*4.* got 3"):
        Circuit.from_dict({**kept, "format": 3})


def test_a_circuit_says_with_which_other_settings_or_version_it_was_found(
    circuit: Circuit,
) -> None:
    assert circuit.switches.settings == Discovery(examples=32)
    assert circuit.differs_from(Discovery(examples=32)) is None
    said = "this circuit was found with other settings: examples 32 (128), needed 3 (4)"
    assert circuit.differs_from(Discovery(needed=4)) == said
    old = circuit.switches.model_copy(update={"version": "0.0.9"})
    found = circuit.model_copy(update={"switches": old}).differs_from(Discovery(examples=32))
    assert found == f"this circuit was found with hopscope 0.0.9 (this is {__version__})"


def test_heads_have_names() -> None:
    for mechanism, name in (
        (Mechanism(rest=ITSELF), "idle"),
        (Mechanism(), "idle"),
        (Mechanism(rest=AS_IS), ""),
        (Mechanism(((VALUE, aim("own", FIRST)),)), "previous position"),
        (Mechanism(((VALUE, aim("own", Role("key", 1))),)), ""),
        (Mechanism(((QUERY, aim("own", FIRST)),)), ""),
        (Mechanism(((QUERY, BY_POSITION), (FIRST, BY_POSITION))), "by position"),
    ):
        assert HeadReport(layer=0, head=0, mechanism=mechanism).name == name, str(mechanism)


def test_paths_read_roles_of_their_own_chain_with_enough_attention() -> None:
    mixed = Aim(((Target("own", FIRST), 0.7), (Target("own", VALUE), 0.2), (Target("itself"), 0.1)))
    mechanism = Mechanism(
        ((QUERY, mixed), (FIRST, aim("others", VALUE)), (VALUE, aim("own", VALUE)))
    )
    assert paths_of((2, 1), mechanism) == (Path(2, 1, QUERY, FIRST), Path(2, 1, QUERY, VALUE))
    assert paths_of((2, 1), mechanism, share=0.3) == (Path(2, 1, QUERY, FIRST),)
    nothing = Mechanism(((QUERY, aim("own", Role("other"))),))
    assert paths_of((0, 0), nothing) == ()


def losses_of(**hops: tuple[float, ...]) -> Losses:
    kept = {"clean": (0.1, 0.3), "ablated": (1.0, 1.0), **hops}
    return Losses(**kept, guess=1.0, limit=0.3, hop_limits=(0.25, 0.5))


def test_a_hop_that_fails_is_not_hidden_by_the_mean() -> None:
    losses = losses_of(ideal=(0.2, 0.35), own=(0.3, 0.1))
    assert losses.mean("clean") == pytest.approx(0.2)
    assert losses.mean("own") < losses.mean("ideal") <= losses.limit
    assert losses.low("ideal")
    assert not losses.low("own")
    with pytest.raises(CircuitError, match="was not measured"):
        losses_of(ideal=(0.2, 0.2)).mean("own")
    assert str(Estimate(mean=0.5, low=0.4, high=0.6)) == "0.500 (0.400 … 0.600)"


def test_a_good_model_is_held_against_guessing_and_a_poor_one_against_itself() -> None:
    settings = Discovery(low_share=0.1, low_factor=2, hop_share=0.2, hop_factor=3)
    for losses, mean, hops in (([0.01, 0.03], 0.1, [0.2, 0.2]), ([0.1, 0.3], 0.4, [0.3, 0.9])):
        limits = Limits.of(np.array(losses), 1.0, settings)
        assert (limits.mean, *limits.hop) == pytest.approx((mean, *hops)), losses


def test_losses_of_other_hops_are_refused() -> None:
    limits = Limits(0.5, np.array([0.6, 0.9]))
    losses = np.array([[[0.1, 0.9], [0.5, 0.5], [0.7, 0.1], [0.6, 0.6], [0.0, 1.0]]])
    assert limits.keep(losses).tolist() == [[True, True, False, False, False]]
    with pytest.raises(CircuitError, match="losses of 1 hops on some examples and of 2 on others"):
        limits.keep(np.zeros((3, 1)))


def test_only_heads_below_a_path_that_reads_or_is_read_there_can_locate() -> None:
    look = Unit((1, 0), (((1, 0), QUERY),), (Path(1, 0, QUERY, VALUE),))
    copy = Unit((0, 0), (((0, 0), VALUE),), (Path(0, 0, VALUE, FIRST),))
    stray = Unit((0, 1), (((0, 1), FIRST),), ())
    draft = Draft(Conditions(State(), State()), (look, copy))
    assert [draft.locates(unit) for unit in (copy, look, stray)] == [True, False, False]
