"""What configs work out from their fields; `tests/tasks` holds shapes and roles to examples."""

import math

import pytest

from hopscope.configs import (
    MQAR,
    ConditionalRetrieval,
    Descent,
    Discovery,
    Experiment,
    Induction,
    KHop,
    Model,
    NgramExperiment,
    NgramProcess,
    Prompts,
    Retrieval,
)
from hopscope.configs.model import Interface
from hopscope.configs.prompts import FORMULATIONS


def test_widths_have_defaults_and_a_token_is_one_number() -> None:
    assert Model(d_model=24, heads=2).mlp_width == 96
    assert Model(d_model=24, heads=2, d_mlp=10).mlp_width == 10
    assert Model(heads=4, d_model=128).head_width == 32
    ends = {"inputs": 50, "length": 4, "read": 1, "outputs": 3}
    assert [Interface(tokens=each, **ends).numbers for each in (True, False)] == [1, 50]


def test_without_curriculum_the_last_hop_is_asked_alone() -> None:
    for task in (Retrieval(hops=3), KHop(hops=3)):
        last = task.replace(curriculum=False)
        assert (task.asked_hops(), last.asked_hops()) == ((1, 2, 3), (3,))
        assert (task.asks_every_hop(), last.asks_every_hop()) == (True, False)
        assert task.interface().outputs == 3 * last.interface().outputs
        assert task.chosen_hops() == 3
        assert Experiment(task=task).loss_names(3) == ["hop 1", "hop 2", "hop 3"]
        assert Experiment(task=last).loss_names(1) == ["hop 3"]
    three = ConditionalRetrieval()
    assert (three.asked_hops(), three.chosen_hops()) == ((1, 2, 3), None)
    assert MQAR().asks_every_hop() is None


def test_induction_is_retrieval_over_one_hop() -> None:
    one, other = Induction(), Retrieval(hops=1)
    for ask in ("graph", "roles", "interface", "chances"):
        assert getattr(one, ask)() == getattr(other, ask)()
    assert (one.chosen_hops(), other.chosen_hops()) == (None, 1)


def test_tokens_have_a_vocabulary_and_chance_knows_which_are_possible() -> None:
    # The last position nearly always has an answer: one hop is a guess among the letters.
    assert KHop(hops=1, alphabet=4, length=99).chances(1) == pytest.approx((math.log(4),), abs=1e-9)
    assert MQAR(pairs=6).chance() == pytest.approx(math.log(6))
    assert KHop(hops=3, alphabet=5).interface().outputs == 3 * (5 + 1)  # "none"
    assert MQAR(alphabet=10).interface().inputs == 10
    assert MQAR(alphabet=10, filler="blank").interface().inputs == 11
    orders = [Retrieval().ordered(order).fact_order() for order in ("forward", "shuffled")]
    assert orders == [(0, 1, 2), None]


def test_plans_of_the_ngram_experiment_are_the_papers_added_up() -> None:
    assert Descent().plan() == [("C", 2_000), ("W", 50_000), ("a", 5_000)]
    assert Descent(stages="CW,a").plan() == [("CW", 52_000), ("a", 5_000)]
    assert Descent(stages="CWa", epochs=(7,)).plan() == [("CWa", 7)]
    process = NgramProcess(parents=(3, 1))
    assert (process.parents, process.memory) == ((1, 3), 3)
    experiment = NgramExperiment(descent={"stages": "CW,a", "epochs": (2, 3)})
    assert (experiment.steps, experiment.unit) == (5, "epoch")
    assert experiment.chance == pytest.approx(math.log(3))


def test_prompts_have_depths_graphs_and_labels() -> None:
    named = [Prompts(formulation=short) for short in FORMULATIONS]
    assert [one.formulation for one in named] == list(FORMULATIONS.values())
    assert [one.depth for one in named] == [5, 5, 5, 2, 4]
    assert [one.label for one in named] == [
        "equations-d5", "lives-with-d5", "kingdoms", "functions", "relatives",
    ]  # fmt: skip
    assert Prompts(formulation="f1", hops=20, chains=8).label == "equations-d20-n8"
    assert [len(one.graph().known) for one in named] == [1, 1, 1, 2, 1]
    assert Prompts.from_json('{"formulation":"f3"}').hops is None


def test_discovery_takes_shares_of_its_examples_and_tells_differences() -> None:
    assert [Discovery(examples=count).sketch for count in (128, 1)] == [32, 1]
    other = Discovery(needed=0.1, examples=64)
    assert Discovery().differences(other) == "examples 128 (64), needed 0.05 (0.1)"
    assert Discovery().differences(Discovery()) == ""
    assert Discovery().replace(needed=0.1, examples=64) == other
