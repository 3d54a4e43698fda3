import pytest

from hopscope.circuits.saved import saved_circuit
from hopscope.store import gallery
from hopscope.web.described import circuit_of


@pytest.mark.parametrize(
    ("name", "path", "carried", "routed"),
    [
        ("demo", "0.1:key 1>value 1", [], ["x1"]),
        ("demo", "2.1:value 0>query", ["x1", "x2"], []),
        ("demo", "2.2:value 0>query", ["x2"], []),  # attends as 2.1 does, and was patched alone
        ("three-heads", "8.0:value 0>query", ["x1"], ["x1"]),
        ("transformer-b", "5.0:value 1>value 0", [], []),  # answers leave, but nothing is routed
    ],
)
def test_a_path_carries_and_routes_what_its_own_patching_says(
    name: str, path: str, carried: list[str], routed: list[str]
) -> None:
    circuit = saved_circuit(gallery.find(f"gallery/{name}"), 0)
    assert circuit is not None
    paths = [its for each in circuit_of(circuit)["components"] for its in each["paths"]]
    (found,) = (its for its in paths if its["name"] == path)
    assert (found["carried"], found["routed"]) == (carried, routed)


@pytest.mark.parametrize(("name", "reasons"), [("demo", 0), ("transformer-a", 2)])
def test_the_page_gets_the_reasons_for_a_verdict(name: str, reasons: int) -> None:
    circuit = saved_circuit(gallery.find(f"gallery/{name}"), 0)
    assert circuit is not None
    assert circuit_of(circuit)["reasons"] == list(circuit.lacks)
    assert len(circuit.lacks) == reasons
