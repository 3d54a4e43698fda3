"""Circuits as files: written, read again, read from before, and held against settings."""

import json
from pathlib import Path
from typing import Any

import pytest

from hopscope import __version__
from hopscope.circuits import Circuit, discover
from hopscope.configs import Discovery
from hopscope.errors import ConfigError
from hopscope.models.planted import Planted


@pytest.fixture(scope="module")
def circuit(two_hops: Planted) -> Circuit:
    return discover(two_hops.model, two_hops.task, examples=16)


def of_format_1(kept: Any) -> Any:
    """The same data as the first version wrote them."""
    if isinstance(kept, list):
        return [of_format_1(each) for each in kept]
    if not isinstance(kept, dict):
        return kept
    if set(kept) == {"layer", "head", "reader", "source"}:
        names = {"reader": "query", "source": "key"}
        return {names.get(name, name): value for name, value in kept.items()}
    left = {name: of_format_1(it) for name, it in kept.items() if name not in NEW}
    return {**left, "format": 1} if "format" in left else left


NEW = ("settings", "version")


def test_what_a_circuit_writes_it_reads(circuit: Circuit, tmp_path: Path) -> None:
    circuit.save(tmp_path / "circuit.json")
    assert Circuit.load(tmp_path / "circuit.json") == circuit
    assert Circuit.from_dict(json.loads(json.dumps(circuit.to_dict()))) == circuit
    assert circuit.to_dict()["format"] == 3


def test_a_circuit_of_format_1_is_read_without_settings(circuit: Circuit) -> None:
    before = of_format_1(circuit.to_dict())
    assert before["parts"][0]["paths"][0].keys() == {"layer", "head", "query", "key"}
    found = Circuit.from_json(json.dumps(before))
    unknown = circuit.switches.model_copy(update={"settings": None, "version": None})
    assert found == circuit.model_copy(update={"switches": unknown})
    assert "earlier version of hopscope" in str(found.differs_from(Discovery()))


def test_a_circuit_of_a_later_format_is_refused(circuit: Circuit) -> None:
    with pytest.raises(ConfigError, match=r"Circuit\.format: .*3.* got 4"):
        Circuit.from_dict({**circuit.to_dict(), "format": 4})

    older = {name: it for name, it in circuit.to_dict().items() if name != "account"}
    assert Circuit.from_dict({**older, "format": 2}) == circuit  # which had no account


def test_a_circuit_says_with_which_other_settings_or_version_it_was_found(
    circuit: Circuit,
) -> None:
    assert circuit.switches.settings == Discovery(examples=16)
    assert circuit.differs_from(Discovery(examples=16)) is None
    said = "this circuit was found with other settings: examples 16 (128), needed 3 (4)"
    assert circuit.differs_from(Discovery(needed=4)) == said
    old = circuit.switches.model_copy(update={"version": "0.0.9"})
    found = circuit.model_copy(update={"switches": old}).differs_from(Discovery(examples=16))
    assert found == f"this circuit was found with hopscope 0.0.9 (this is {__version__})"
