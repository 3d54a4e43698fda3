"""The main flow: pose a task, train a model on it, look at what happened."""

import argparse
import tempfile

from hopscope import Experiment, Model, Retrieval, Training, train
from hopscope.report.terminal import plot
from hopscope.tasks import guessing_level


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1_500)
    parser.add_argument("--store", help="folder of runs; unset: a temporary one")
    chosen = parser.parse_args()

    task = Retrieval(hops=1, position="pair", base=10)
    model = Model(layers=2, heads=2, d_model=64, init="fan-in")
    training = Training(steps=chosen.steps, batch=48, lr=2e-3, warmup=min(200, chosen.steps))
    experiment = Experiment(task=task, model=model, training=training)

    with tempfile.TemporaryDirectory() as temporary:
        run = train(experiment, store=chosen.store or temporary)
        steps, losses = run.losses("train")
        print(plot(steps, losses.mean(axis=1), guessing_level(task)))
        for hop, loss in enumerate(run.final_losses()[0], start=1):
            print(f"hop {hop}: {loss:.4f} (guessing: {guessing_level(task):.2f})")


if __name__ == "__main__":
    main()
