"""Is a hop that is known in part known for some places of its facts, and not for others?

    hopscope train musat/fig4-ic-L2 --seeds 1 training.steps=4000     # 17 minutes
    python results/scripts/place_by_place.py RUN > results/place_by_place.jsonl

In the paper's retrieval task the facts of one hop, one of each chain, stand behind one another, in
an order that is drawn. For every checkpoint a row: the loss of x₁ by the place of its chain's fact
among them, on fresh examples. Who knows n of C places, and guesses among the C − n other values
where he does not, has a loss of (C − 1 − n) / C in all: of one value among m, guessing costs
1 − 1/m.
"""

import argparse
import json

import torch

import hopscope
from hopscope.facts import Role
from hopscope.tasks import answer_losses, dataset
from hopscope.training import Run

EXAMPLES, SEED = 2_048, 1


@torch.no_grad()
def by_place(run: Run, step: int) -> list[float]:
    """The loss of x₁, from the first to the last place of its facts."""
    task = run.recipe.task
    batch = dataset(task, SEED, EXAMPLES, "validation")
    losses = answer_losses(task, run.model_at(step)(batch.inputs), batch)[..., 0]
    asked = batch.roles.chain[:, -losses.shape[1] :]
    keys = batch.roles.role == task.roles().index(Role("key", 0))
    chains = batch.roles.chain[keys].view(EXAMPLES, -1)  # of the facts, place by place
    places = (asked[..., None] == chains[:, None]).int().argmax(-1)
    return [float(losses[places == place].mean()) for place in range(chains.shape[1])]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run")
    run = hopscope.load(parser.parse_args().run).run
    for step in run.checkpoints:
        places = by_place(run, step)
        row = {"run": run.name, "step": step, "loss": sum(places) / len(places), "places": places}
        print(json.dumps({k: _rounded(v) for k, v in row.items()}))


def _rounded(value: object) -> object:
    if isinstance(value, list):
        return [round(each, 3) for each in value]
    return round(value, 3) if isinstance(value, float) else value


if __name__ == "__main__":
    main()
