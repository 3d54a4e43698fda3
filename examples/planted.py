"""A transformer written by hand: it solves the task with the fewest layers by a known circuit."""

from hopscope import Retrieval
from hopscope.models.planted import planted
from hopscope.tasks import dataset, hop_losses
from hopscope.theory import depths


def main() -> None:
    for hops in (1, 3, 5, 7):
        task = Retrieval(hops=hops, symbols="sphere", dim=64)
        grown = planted(task)
        batch = dataset(task, seed=0, count=100, split="validation")
        worst = hop_losses(task, grown.model(batch.inputs), batch).max().item()
        layers = grown.model.config.layers
        print(f"{hops} hops: {layers} layers (theory: {depths(hops).causal}), error {worst:.1e}")
    for path in grown.paths:
        print(f"  {path}")


if __name__ == "__main__":
    main()
