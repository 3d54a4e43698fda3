import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopscope.configs import (
    ConditionalRetrieval,
    Experiment,
    Induction,
    KHop,
    Model,
    Retrieval,
    Training,
)
from hopscope.errors import ConfigError, FactError


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Retrieval(hops=0), "Retrieval.hops: Input should be greater than or equal to 1"),
        (lambda: Retrieval(hops=0), "got 0"),
        (lambda: Retrieval(dim=3), "dim is 3; .* make it even"),
        (lambda: Retrieval(symbols="one-hot", dim=4), "12|16 distinct one-hot symbols need dim"),
        (lambda: Retrieval(hop=2), "Retrieval.hop: unknown field"),
        (lambda: Retrieval(symbols="cubic"), "'gaussian', 'sphere' or 'one-hot', got 'cubic'"),
        (lambda: Model(heads=3, d_model=128), "heads is 3 and d_model 128.* choose a divisor"),
        (lambda: Training(lr=-1.0), "Training.lr: .*greater than 0, got -1.0"),
        (lambda: Experiment(seeds=(1, 1)), "each may appear once"),
        (lambda: Experiment(seeds=()), "seeds"),
        (lambda: ConditionalRetrieval(decoys=4), "at most chains - 1 = 3"),
        (lambda: ConditionalRetrieval(decoys=1, symbols="one-hot", dim=18), "need dim >= 20"),
        (lambda: Experiment.from_json("{"), "Experiment: Invalid JSON"),
        (lambda: Experiment(task={"kind": "sorting"}), "task: .*'sorting'"),
    ],
)
def test_bad_values_are_refused_on_one_line(make: object, text: str) -> None:
    with pytest.raises(ConfigError, match=text) as caught:
        make()  # type: ignore[operator]
    assert "\n" not in str(caught.value)


def test_cyclic_facts_are_refused() -> None:
    with pytest.raises(FactError, match="need each other"):
        ConditionalRetrieval(facts=("a->b", "b->a"))


def test_a_config_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Model().layers = 3  # type: ignore[misc]


tasks = st.one_of(
    st.builds(Retrieval, hops=st.integers(1, 9), chains=st.integers(1, 6)),
    st.builds(Induction, dim=st.sampled_from([2, 4, 8])),
    st.builds(ConditionalRetrieval, decoys=st.integers(0, 3)),
    st.builds(KHop, hops=st.integers(1, 4), alphabet=st.integers(2, 30)),
)


@given(tasks, st.integers(0, 2**31 - 1))
def test_json_round_trip_keeps_identity(task: object, seed: int) -> None:
    experiment = Experiment(task=task, seeds=(seed,))
    again = Experiment.from_json(experiment.canonical_json())
    assert again == experiment
    assert again.run_name() == experiment.run_name()


def test_identity_ignores_spelling_and_follows_values() -> None:
    base = Experiment()
    spelled = json.dumps(json.loads(base.canonical_json()), indent=3)
    assert Experiment.from_json(spelled).digest() == base.digest()
    assert Experiment(seeds=(1,)).digest() != base.digest()
    assert Experiment(task=Retrieval(base=10)).digest() != base.digest()


def test_checkpoints_are_known_before_the_start() -> None:
    training = Training(steps=12, checkpoint_every=5, checkpoint_at=(3, 10, 40))
    assert training.checkpoint_steps() == (0, 3, 5, 10, 12)


def test_the_rate_warms_up_and_follows_its_schedule() -> None:
    constant = Training(steps=100, lr=1e-3, warmup=4)
    assert [constant.rate(step) for step in (0, 1, 3, 4, 99)] == pytest.approx(
        [0.25e-3, 0.5e-3, 1e-3, 1e-3, 1e-3]
    )
    cosine = Training(steps=104, lr=1e-3, warmup=4, schedule="cosine")
    assert cosine.rate(4) == pytest.approx(1e-3)
    assert cosine.rate(54) == pytest.approx(0.5e-3)
    assert cosine.rate(104) == pytest.approx(0)


def test_words_and_truths_are_no_numbers() -> None:
    for model in ({"heads": True}, {"layers": "4"}, {"d_model": False}):
        with pytest.raises(ConfigError, match=r"expected a number, got (True|False|'4')"):
            Model(**model)
    assert Model(layers=np.int64(3)).layers == 3  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"betas\.0: Input should be less than 1"):
        Training(betas=(1, 0.9))
