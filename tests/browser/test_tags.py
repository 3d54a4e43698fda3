"""The discs of all heads, however many there are: each can be seen and hit."""

from typing import Any

import pytest

DRAWN = """async ([layers, heads, side]) => {
  const { discs } = await import("/tags.js"), { everyHead } = await import("/paths.js");
  const about = { task: { roles: [] }, circuit: null, name: "a" };
  const state = { about, isOff: () => false };
  const scene = { y: (level) => 100 * level, layers, heads, width: 600, side };
  const made = discs(everyHead({ layers, heads }), { scene, state, tip: null });
  return made.map(({ tag, layer }) => {
    const place = /^translate\\(([\\d.-]+) ([\\d.-]+)\\)$/.exec(tag.getAttribute("transform"));
    const radius = tag.querySelector(".disc").getAttribute("r");
    const [x, y] = place.slice(1).map(Number);
    return [x, y - 100 * (layer + 0.5), Number(radius)];
  });
}"""
SIDES = {1: 60, 3: 100, 5: 132, 16: 132, 24: 132, 64: 132, 128: 132}
"""Room beside the circuit, by the number of heads, as the circuit gives it."""


@pytest.mark.slow
def test_discs_can_be_hit_and_do_not_overlap(blank: Any) -> None:
    for heads, side in SIDES.items():
        drawn = blank.evaluate(DRAWN, [2, heads, side])
        first, second = drawn[:heads], drawn[heads:]
        assert first == second  # in each layer, around its middle
        for n, (x, y, radius) in enumerate(first):
            assert radius >= 1.5
            assert 600 - side <= x - radius < x + radius <= 600
            assert abs(y) + radius < 50  # half of a layer's height
            for other_x, other_y, _ in first[:n]:
                assert (x - other_x) ** 2 + (y - other_y) ** 2 >= (2 * radius) ** 2
