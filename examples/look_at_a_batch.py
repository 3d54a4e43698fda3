"""A batch of each task: sequences, targets, and the role of every position."""

import torch

from hopscope import MQAR, ConditionalRetrieval, KHop, Retrieval
from hopscope.configs import Task
from hopscope.tasks import examples, sampler_of

TASKS: tuple[Task, ...] = (
    Retrieval(hops=2, chains=2),
    ConditionalRetrieval(chains=2, decoys=1),
    KHop(hops=2, alphabet=4, length=12),
    MQAR(pairs=2, alphabet=8, length=10),
)


def main() -> None:
    for task in TASKS:
        batch = examples(sampler_of(task), seed=0, index=torch.arange(1))
        table = task.roles()
        print(
            f"{task.kind}: inputs {tuple(batch.inputs.shape)}, targets {tuple(batch.targets.shape)}"
        )
        for place, number in enumerate(batch.roles.role[0].tolist()):
            chain = int(batch.roles.chain[0, place])
            print(f"  position {place:2}: {table[number]!s:14} of chain {chain}")


if __name__ == "__main__":
    main()
