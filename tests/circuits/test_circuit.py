"""Circuits as files: written and read again, and held against settings."""

import json
from pathlib import Path

import pytest

from hopscope import __version__
from hopscope.circuits import Circuit, discover
from hopscope.configs import Discovery
from hopscope.errors import ConfigError
from hopscope.models.planted import Planted


@pytest.fixture(scope="module")
def circuit(two_hops: Planted) -> Circuit:
    return discover(two_hops.model, two_hops.task, examples=16)


def test_what_a_circuit_writes_it_reads(circuit: Circuit, tmp_path: Path) -> None:
    circuit.save(tmp_path / "circuit.json")
    assert Circuit.load(tmp_path / "circuit.json") == circuit
    assert Circuit.from_dict(json.loads(json.dumps(circuit.to_dict()))) == circuit
    assert circuit.to_dict()["format"] == 4


def test_a_circuit_of_another_format_is_refused(circuit: Circuit) -> None:
    with pytest.raises(ConfigError, match=r"Circuit\.format: .*4.* got 3"):
        Circuit.from_dict({**circuit.to_dict(), "format": 3})


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
