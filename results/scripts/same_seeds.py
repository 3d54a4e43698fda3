"""Does a seed decide what a model of figure 4 learns? The same models, trained on two machines.

    python results/scripts/same_seeds.py

A seed fixes initial weights and examples; the machine decides the last bits. In the table: how many
hops each model knows after 4,000 steps on a processor (`results/figure_4_on_a_processor.jsonl`, and
seed 0 in `results/musat/fig4-ic.jsonl`), and on a GPU (`results/musat/fig4-seeds.jsonl`, of which
the loss at that step counts). Beside it, how often models of one depth and different seeds agree.
"""

import json
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path

from hopscope.papers.judge import out_of
from hopscope.papers.musat.curriculum_claims import LEARNED_LOSS

RESULTS = Path(__file__).parents[1]
STEPS = 4_000
Hops = dict[tuple[int, int], int]


def rows(name: str, processor: bool) -> Iterator[dict]:
    """The rows of a table that were trained on a processor, or those that were not."""
    lines = list(map(json.loads, (RESULTS / name).read_text().splitlines()))
    on_a_gpu = {line.get("run") for line in lines if "NVIDIA" in line.get("machine", "")}
    for row in lines:
        if "layers" in row and (row["run"] not in on_a_gpu) == processor:
            yield row


def known(losses: list[float]) -> int:
    """The last hop that is known."""
    return max((hop for hop, loss in enumerate(losses, 1) if loss < LEARNED_LOSS), default=0)


def on_a_processor() -> Hops:
    found = [
        *rows("musat/fig4-ic.jsonl", processor=True),
        *rows("figure_4_on_a_processor.jsonl", processor=True),
    ]
    return {(row["layers"], row["seed"]): known(row["final"]) for row in found}


def on_a_gpu() -> Hops:
    found: Hops = {}
    for row in rows("musat/fig4-seeds.jsonl", processor=False):
        course = row["course"]
        then = max(number for number, step in enumerate(course["steps"]) if step <= STEPS)
        found[row["layers"], row["seed"]] = known([losses[then] for losses in course["losses"]])
    return found


def main() -> None:
    here, there = on_a_processor(), on_a_gpu()
    models = sorted(set(here) & set(there))
    print("layers  seed  processor  GPU")
    for layers, seed in models:
        print(f"{layers:6}  {seed:4}  {here[layers, seed]:9}  {there[layers, seed]:3}")
    for depths in (range(1, 4), range(4, 9)):
        own = [(m, m) for m in models if m[0] in depths]
        others = [(a, b) for a, b in permutations(models, 2) if a[0] == b[0] and a[0] in depths]
        equal, unequal = (
            out_of(sum(here[a] == there[b] for a, b in pairs), len(pairs))
            for pairs in (own, others)
        )
        print(f"{depths[0]} to {depths[-1]} layers know as many hops: {equal} of the same seed,")
        print(f"    {unequal} of different seeds")


if __name__ == "__main__":
    main()
