"""Shares of a sweep: all of it, each recipe once, whoever asks in whatever order."""

import subprocess
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopscope.configs import Experiment, Model, NgramExperiment, Recipe
from hopscope.errors import ConfigError
from hopscope.workers.fleets import packs
from hopscope.workers.shards import Shard
from hopscope.workers.slurm import Array

SHAPES = [Model(layers=layers) for layers in (1, 2, 3)]
sweeps = st.lists(
    st.builds(
        lambda model, seed: Experiment(model=model, seeds=(seed,)),
        st.sampled_from(SHAPES),
        st.integers(0, 20),
    ),
    min_size=1,
    max_size=30,
    unique_by=lambda recipe: recipe.digest(),
)


def names(recipes: list[Recipe] | tuple[Recipe, ...]) -> list[str]:
    return [recipe.run_name() for recipe in recipes]


@settings(deadline=None, max_examples=40)
@given(sweeps, st.integers(1, 9), st.integers(1, 5), st.randoms(use_true_random=False))
def test_every_recipe_is_in_one_shard_with_its_pack(sweep, shards, pack, random) -> None:
    def split_up(recipes: list[Recipe]) -> list[list[str]]:
        numbers = range(1, shards + 1)
        return [names(Shard(number, shards).of_recipes(recipes, pack)) for number in numbers]

    dealt = split_up(sweep)
    assert Counter(name for shard in dealt for name in shard) == Counter(names(sweep))
    assert max(map(len, dealt)) < -(-len(sweep) // shards) + pack
    whole = [{*names(each)} for each in packs(sweep, pack)]
    for shard in dealt:
        assert shard == [name for name in names(sweep) if name in shard]  # in the file's order
        assert all({*shard} >= each or not {*shard} & each for each in whole)
    again = split_up(random.sample(sweep, len(sweep)))
    assert [sorted(shard) for shard in again] == [sorted(shard) for shard in dealt]


def test_the_split_is_the_same_tomorrow() -> None:
    """Jobs of an array may be started with days between them, by other versions of Python."""
    sweep = [Experiment(model=model, seeds=(seed,)) for model in SHAPES for seed in range(3)]
    shares = [Shard(number, 4).of_recipes([*sweep, NgramExperiment()], 4) for number in range(1, 5)]
    assert [[(each.shape()["layers"], *each.seeds) for each in share] for share in shares] == [
        [(2, 0)],  # the n-gram experiment has the most steps
        [(1, 0), (1, 1), (1, 2)],
        [(3, 0), (3, 1), (3, 2)],
        [(2, 0), (2, 1), (2, 2)],
    ]


def test_a_share_is_read_or_refused() -> None:
    assert Shard.read("3/8") == Shard(3, 8)
    for text in ("0/8", "9/8", "3", "1/0", "a/b", "-1/2", "1/10001", "1/2/3", ""):
        with pytest.raises(ConfigError, match=r"--shard is .*; expected K/N with K from 1 to N"):
            Shard.read(text)


def test_the_script_for_slurm_asks_for_what_was_said_and_is_bash(tmp_path: Path) -> None:
    """`tests/cli/test_sweep.py` runs one."""
    file = tmp_path / "a sweep.py"
    array = Array(file, tmp_path / "runs", shards=8, minutes=1_501, cpus=8, gpus=2, workers=4)
    lines = array.script().splitlines()
    assert lines[0] == "#!/bin/bash"
    for asked in ("array=1-8", "time=1-01:01:00", "cpus-per-task=8", "gres=gpu:2", "requeue"):
        assert f"#SBATCH --{asked}" in lines
    (command,) = (line for line in lines if " -m hopscope sweep " in line)
    assert command.endswith(f"sweep '{file}' --workers 4 --store {tmp_path}/runs \\")
    shared = '--shard "$SLURM_ARRAY_TASK_ID/8" --threads "$((SLURM_CPUS_PER_TASK / 4))"'
    assert shared in "".join(lines)
    odd = Array(tmp_path / "it's a\necho ü $(b) #.py", tmp_path, shards=1).script()
    assert "#SBATCH --job-name=hopscope-it-s-a-echo-----b---" in odd.splitlines()
    done = subprocess.run(["bash", "-n"], input=odd, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    for wrong, problem in (
        ({"shards": 0}, "--shards is 0; expected 1 or more"),
        ({"minutes": 4}, "--time-limit is 4; expected 5 or more"),
        ({"cpus": 0}, "--cpus is 0; expected 1 or more"),
        ({"gpus": -1}, "--gpus is -1; expected 0 or more"),
        ({"workers": 5}, "--workers is 5; expected 1 to 4, as many as --cpus"),
    ):
        with pytest.raises(ConfigError, match=problem):
            Array(Path("f.py"), Path("runs"), **{"shards": 1, **wrong})
