"""Circuits as files, and what they say: names of heads, paths, kinds of parts, losses."""

import json
from pathlib import Path as FilePath

import numpy as np
import pytest

from hopscope import __version__
from hopscope.circuits import Circuit, aim
from hopscope.circuits.draft import Conditions, Draft, Unit
from hopscope.circuits.limits import Limits
from hopscope.circuits.mechanism import AS_IS, BY_POSITION, ITSELF, UNIFORM, Aim, Mechanism, Target
from hopscope.circuits.parts import Estimate, HeadReport, Losses, paths_of
from hopscope.circuits.state import State
from hopscope.configs import Discovery
from hopscope.errors import CircuitError, ConfigError
from hopscope.facts import Role
from hopscope.theory import Path

KEY, VALUE, QUERY = Role("key"), Role("value"), Role("query")
NONE = State()


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
        (Mechanism(((VALUE, aim("own", KEY)),)), "previous position"),
        (Mechanism(((VALUE, aim("own", Role("key", 1))),)), ""),
        (Mechanism(((QUERY, aim("own", KEY)),)), ""),
        (Mechanism(((QUERY, BY_POSITION), (KEY, BY_POSITION))), "by position"),
    ):
        assert HeadReport(layer=0, head=0, mechanism=mechanism).name == name, str(mechanism)


def test_paths_read_roles_of_their_own_chain_with_enough_attention() -> None:
    mixed = Aim(((Target("own", KEY), 0.7), (Target("own", VALUE), 0.2), (Target("itself"), 0.1)))
    mechanism = Mechanism(((QUERY, mixed), (KEY, aim("others", VALUE)), (VALUE, aim("own", VALUE))))
    assert paths_of((2, 1), mechanism) == (Path(2, 1, QUERY, KEY), Path(2, 1, QUERY, VALUE))
    assert paths_of((2, 1), mechanism, share=0.3) == (Path(2, 1, QUERY, KEY),)
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
    copy = Unit((0, 0), (((0, 0), VALUE),), (Path(0, 0, VALUE, KEY),))
    stray = Unit((0, 1), (((0, 1), KEY),), ())
    draft = Draft(Conditions(NONE, NONE), (look, copy))
    assert [draft.locates(unit) for unit in (copy, look, stray)] == [True, False, False]


def test_a_circuit_on_its_own_is_its_rows_and_nothing_else() -> None:
    ideal = State({
        (0, 0): Mechanism(((QUERY, aim("own", VALUE)), (KEY, UNIFORM)), ITSELF),
        (0, 1): Mechanism(rest=UNIFORM),
    })  # fmt: skip
    own = Conditions(ideal, NONE).own
    assert own[0, 0] == Mechanism(((QUERY, AS_IS), (KEY, AS_IS)), ITSELF)
    assert own[0, 1] == Mechanism(rest=UNIFORM)
