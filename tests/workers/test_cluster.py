"""Ray's pool: what other pools keep to, and what only several machines can get wrong."""

from hopscope.configs import Experiment, Model, Retrieval, Training
from hopscope.store import Store
from hopscope.workers import carry_out
from hopscope.workers.cluster import Cluster

TRAINING = Training(
    steps=6, batch=4, examples=16, checkpoint_every=4, validation_examples=4, precision="float32"
)


def recipe(seed: int) -> Experiment:
    return Experiment(
        task=Retrieval(hops=1, chains=2),
        model=Model(layers=1, heads=1, d_model=8),
        training=TRAINING,
        seeds=(seed,),
    )


def test_it_runs(mini, store: Store) -> None:
    outcome = carry_out(
        [recipe(0), recipe(1)],
        store,
        device="cpu",
        threads=1,
        workers=Cluster(mini.address, gpus=0.25, cpus=0.5, pack=1),
    )
    assert outcome.complete, outcome.troubles
    assert Cluster(mini.address, gpus=0.25, cpus=0.5).slots == 4
