"""Ghosts behind the circuit: the rows of another checkpoint, or of another seed."""

from typing import Any

GHOSTS = """async ([own, names]) => {
  const { ghostOf } = await import("/paths.js"), { Maps } = await import("/maps.js");
  const maps = (steps) => new Maps({
    steps: { data: steps },
    own: { shape: [2, 1, 1, 2, 2], data: Float32Array.from(own) },
  }, ["query", "value 0"]);
  const its = maps([0, 100]), fleet = { maps: maps([3, 5]), seeds: [3, 5] };
  const told = (ghost) => ghost.map((its) => [its.destination, its.source, its.share]);
  return names.map((name) => told(ghostOf({}, name, its, fleet)));
}"""


def test_rows_of_another_step_and_of_another_seed(page: Any, site: str) -> None:
    page.goto(f"{site}/blank")
    first, second = [0.5, 0.5, 0.0625, 0.9375], [0.0, 1.0, 0.25, 0.75]
    names = ["step-0", "seed-3", "step-100", "seed-5", "seed-4", "step-7", ""]
    found = page.evaluate(GHOSTS, [[*first, *second], names])
    early, late = [["query", "value 0", 0.5]], [["query", "value 0", 1], ["value 0", "query", 0.25]]
    assert found == [early, early, late, late, [], [], []]


CARRIED = """async (about) => {
  const { arrows } = await import("/paths.js");
  return arrows(about).map((its) => [its.head, its.carried]);
}"""


def test_heads_that_attend_alike_carry_what_each_was_patched_for(page: Any, site: str) -> None:
    page.goto(f"{site}/blank")
    path = {"layer": 2, "destination": "query", "source": "value 0"}
    sites = [
        {"layer": 2, "heads": [n], "source": "value 0", "destinations": ["query"]} for n in (0, 1)
    ]
    moves = [
        {
            "symbol": f"x{n}",
            "way": "values",
            "hop": n,
            "share": {"mean": 0.9, "low": 0.8},
            "left": {"mean": 0},
        }
        for n in (1, 2)
    ]
    circuit = {
        "components": [
            {
                "layer": 2,
                "heads": [0, 1],
                "destinations": ["query"],
                "kind": "moves",
                "paths": [path | {"head": n} for n in (0, 1)],
            }
        ],
        "account": {
            "patched": [
                {"site": its, "moves": [move]} for its, move in zip(sites, moves, strict=True)
            ]
        },
    }
    about = {"circuit": circuit, "task": {"graph": ["x0->x1", "x1->x2"]}}
    assert page.evaluate(CARRIED, about) == [[0, ["x1"]], [1, ["x2"]]]


EVENTS = """async (about) => {
  const { events } = await import("/events.js");
  return events(about).map((its) => [its.name, its.text, its.step]);
}"""


def test_a_hop_that_is_learned_is_the_one_that_was_asked(page: Any, site: str) -> None:
    page.goto(f"{site}/blank")
    about = {"task": {"hops": ["hop 5"]}, "circuit": None, "learned": [40]}
    assert page.evaluate(EVENTS, about) == [["hop 5", "hop 5 is learned", 40]]
