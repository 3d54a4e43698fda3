"""A training of two models, which takes a second."""

from hopscope.configs import Experiment, Model, Retrieval, Training

FLEET = Experiment(
    task=Retrieval(hops=2, chains=2),
    model=Model(layers=2, heads=2, d_model=16),
    training=Training(
        steps=12, batch=8, examples=64, checkpoint_every=5, validate_every=4,
        validation_examples=16, precision="float32",
    ),
    seeds=(4, 9),
)  # fmt: skip
ID = FLEET.run_name().rpartition("-")[2]
"""Its id on the page."""
