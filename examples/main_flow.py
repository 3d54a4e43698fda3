"""The main flow: choose a task, train a model, find its circuit, and see when it emerged."""

import argparse
import tempfile

from hopscope import (
    Experiment,
    Model,
    Retrieval,
    Training,
    attention_maps,
    discover,
    emergence,
    train,
)
from hopscope.facts import Role
from hopscope.plots.terminal import plot

LEARNED = 1_000
"""The number of steps after which this task is certainly learned."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1_500)
    parser.add_argument("--store", help="folder of runs; unset: a temporary one")
    chosen = parser.parse_args()

    task = Retrieval(hops=1, position="pair", base=10)
    model = Model(layers=2, heads=2, d_model=64, init="fan-in")
    training = Training(
        steps=chosen.steps, batch=48, lr=2e-3, warmup=min(200, chosen.steps), checkpoint_every=50
    )
    experiment = Experiment(task=task, model=model, training=training)

    with tempfile.TemporaryDirectory() as temporary:
        run = train(experiment, store=chosen.store or temporary)
        steps, losses = run.losses("train")
        print(plot(steps, losses.mean(axis=1), task.chances()))
        for hop, loss in enumerate(run.final_losses()[0], start=1):
            print(f"hop {hop}: {loss:.4f} (chance: {task.chance():.2f})")

        maps = attention_maps(run.model, task)
        look, value = (maps.roles.index(role) for role in (Role("query"), Role("value")))
        for layer, heads in enumerate(maps.own[:, :, look, value].tolist()):
            print(f"layer {layer}: query → value {', '.join(f'{weight:.2f}' for weight in heads)}")

        circuit = discover(run.model, task, force=chosen.steps < LEARNED)
        print(circuit)
        if circuit.paths:
            for path, step in emergence(run, circuit).order:
                print(f"{path}: {'never' if step is None else f'step {step:.0f}'}")


if __name__ == "__main__":
    main()
