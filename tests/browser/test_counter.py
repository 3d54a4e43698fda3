"""The page's random numbers are those of the command line, to the bit."""

from typing import Any

import torch

from hopscope.tasks import counter

DRAW = """async ([seed, path, count]) => {
  const its = await import("/counter.js");
  const key = its.keyOf(seed, ...path);
  return {
    bits: its.bits(key, count).map(String),
    integers: its.integers(key, count, 1000),
    order: its.shuffled(key, count),
    normals: [...its.normals(key, count)],
  };
}"""


def test_every_number_to_the_bit(page: Any, site: str) -> None:
    page.goto(f"{site}/blank")
    count = 3001
    for seed, path in ((0, [1, 0]), (7, [1, 4095, 3]), (2**31 - 1, [0])):
        found = page.evaluate(DRAW, [seed, path, count])
        key = counter.keys(torch.tensor([seed]), *path)
        raw = counter.bits(key, count)[0]
        assert [int(text) for text in found["bits"]] == [int(n) % 2**64 for n in raw]
        assert found["integers"] == counter.integers(key, count, 1000)[0].tolist()
        assert found["order"] == raw.argsort(stable=True).tolist()
        assert found["normals"] == counter.normals(key, count)[0].tolist()
