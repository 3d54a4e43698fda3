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


def test_rows_of_another_step_and_of_another_seed(blank: Any) -> None:
    first, second = [0.5, 0.5, 0.0625, 0.9375], [0.0, 1.0, 0.25, 0.75]
    names = ["step-0", "seed-3", "step-100", "seed-5", "seed-4", "step-7", ""]
    found = blank.evaluate(GHOSTS, [[*first, *second], names])
    early, late = [["query", "value 0", 0.5]], [["query", "value 0", 1], ["value 0", "query", 0.25]]
    assert found == [early, early, late, late, [], [], []]


EVENTS = """async (about) => {
  const { events } = await import("/events.js");
  return events(about).map((its) => [its.name, its.text, its.step]);
}"""


def test_a_hop_that_is_learned_is_the_one_that_was_asked(blank: Any) -> None:
    about = {"task": {"hops": ["hop 5"], "asked": [5]}, "circuit": None, "learned": [40]}
    assert blank.evaluate(EVENTS, about) == [["5", "hop 5 is learned", 40]]
