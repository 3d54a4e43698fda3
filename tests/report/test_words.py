"""Circuits in words: who reads whom, and what is remarkable."""

from dataclasses import replace

from hopscope import load
from hopscope.circuits import Circuit
from hopscope.facts import Role
from hopscope.report.circuit import circuit_figure
from hopscope.report.words import circuit_grid, ordered_roles, remarks


def test_the_grid_says_who_reads_whom(circuit: Circuit) -> None:
    lines = circuit_grid(circuit).splitlines()
    assert lines[0].split() == ["layer", "q", "k0", "v0", "k1", "v1"]
    assert lines[1].split() == ["3", "v1·0+v1·1", "·", "·", "·", "·"]


def test_remarks_name_twins_and_stand_ins(circuit: Circuit) -> None:
    said = "\n".join(remarks(circuit))
    assert "shared: 3.0, 3.1 all do query ← value 1" in said
    assert "could stand in: layer 0" in said
    assert "along these paths the query learns x1, x2" in said


def test_of_a_model_that_only_guesses_nothing_is_solved(circuit: Circuit) -> None:
    worse = circuit.losses.model_copy(update={"clean": (0.9, 0.9), "ideal": (0.9, 0.9)})
    poor = circuit.model_copy(update={"losses": worse})
    assert not poor.solved
    assert poor.explained == 0
    said = "\n".join(remarks(poor))
    assert "there is nothing to explain: the model has 0.900, guessing 0.083; 0.900 with" in said
    assert "solved" not in said
    assert "%" not in said


def test_remarks_say_whether_the_rows_find_by_themselves_where_to_look(circuit: Circuit) -> None:
    limit = circuit.losses.limit
    for own, told in (
        (limit, f"not more than {limit:.3f}: nothing else tells them where to look"),
        (2 * limit, f"above {limit:.3f}: they need other attention to find where to look"),
    ):
        losses = circuit.losses.model_copy(update={"own": (own, own)})
        said = remarks(circuit.model_copy(update={"losses": losses}))
        assert said[1] == (
            "if its heads compute their attention from what the circuit alone provides, the loss "
            f"is {own:.3f}, {told}"
        )


def test_remarks_name_a_hop_that_fails(circuit: Circuit) -> None:
    low, high = (0.0, circuit.losses.limit), circuit.losses.hop_limits
    losses = circuit.losses.model_copy(update={"ideal": low, "hop_limits": (high[0], low[1] / 2)})
    found = circuit.model_copy(update={"losses": losses})
    assert not found.solved
    assert any(line.startswith("hop 2 fails: 0.0") for line in remarks(found))


def test_remarks_say_what_is_not_explained(circuit: Circuit) -> None:
    losses = circuit.losses.model_copy(update={"ideal": (0.5, 0.5)})
    assert circuit.flow is not None
    flow = circuit.flow.model_copy(
        update={"reached": (), "missed": ("x1",), "jumps": circuit.paths[:1]}
    )
    said = "\n".join(remarks(circuit.model_copy(update={"losses": losses, "flow": flow})))
    assert "not all is explained: 0.500 with this attention alone" in said
    assert "the query learns nothing of x1" in said
    assert "found by no key that is known: layer 0" in said
    assert ((3, 0), (3, 1)) in [step.heads for step in circuit.shared]


def test_decoys_and_further_queries_have_their_place(circuit: Circuit) -> None:
    decoy, query = Role("decoy key", 1), Role("query", 1)
    part = circuit.parts[0]  # a layer below the query's looks
    path = replace(part.paths[0], reader=query, source=decoy)
    more = circuit.model_copy(
        update={
            "parts": (part.model_copy(update={"paths": (path,)}), *circuit.parts[1:]),
            "roles": (*circuit.roles, decoy, query),
        }
    )
    assert [str(role) for role in ordered_roles(more)][:2] == ["query", "query 1"]
    assert ordered_roles(more)[-1] == decoy
    assert len(circuit_figure(more).axes[0].patches) == len(more.paths)
    assert "dk1" in circuit_grid(more).splitlines()[0].split()


def test_the_grid_names_rows_without_a_path_but_not_what_every_role_does() -> None:
    lines = circuit_grid(load("gallery/transformer-a").circuit).splitlines()
    assert lines[0].split() == ["layer", "q", "k0", "v0", "k1", "v1", "v2"]
    assert lines[1].split() == ["11", "place", "·", "·", "·", "·", "·"]
    assert lines[-1].split() == ["1", "·", "pos", "·", "pos", "pos", "·"]
    demo = load("gallery/demo").circuit
    assert any(len(part.readers) == len(demo.roles) and not part.paths for part in demo.parts)
    assert "pos" not in circuit_grid(demo)
