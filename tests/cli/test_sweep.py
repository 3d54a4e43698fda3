"""`hopscope sweep`, also with --plan and --slurm, as a user calls them."""

import json
from pathlib import Path

import pytest
from calling import Say

from hopscope.store import Store

FILE = """
from hopscope import Experiment, Model, Retrieval, Training
TRAINING = Training(
    steps={steps}, batch=4, examples=16, checkpoint_every={steps}, validation_examples=4,
    precision="float32",
)
def recipes():
    for heads in (1, 2):
        for seed in range(2):
            yield Experiment(
                task=Retrieval(hops=1, chains=2), model=Model(layers=1, heads=heads, d_model=8),
                training=TRAINING, seeds=(seed,),
            )
"""


@pytest.fixture
def file(root: Path) -> Path:
    path = root / "sweep.py"
    path.write_text(FILE.format(steps=6))
    return path


def test_shares_are_planned_and_carried_out_together(hopscope: Say, file: Path, root: Path) -> None:
    plan = ("sweep", "--plan", str(file))
    for words, jobs in {"--pack 1": "2 × 1", "--workers 1": "1 × 2"}.items():
        out = hopscope(*plan, *words.split())[1]
        assert out.count(jobs) == out.count(" 0..1 ") == 2
        assert "0 of 4 runs are complete; the time of 2 settings is unknown until" in out
    code, out, _ = hopscope("sweep", str(file), "--shard", "1/2", "--threads", "1")
    assert (code, out.splitlines()[-1]) == (0, "2 of 2 runs are complete")
    assert len(Store(root / "runs").names()) == 2
    rows = json.loads(hopscope(*plan, "--json")[1])
    assert [(row["seeds"], row["runs"]) for row in rows] == [([0, 1], 2)] * 2
    assert sorted((row["complete"], row["missing"]) for row in rows) == [(0, 2), (2, 0)]
    assert sorted(str(row["hours"]) for row in rows) == ["0.0", "None"]  # of one nothing is known
    assert hopscope("sweep", str(file), "--shard", "2/2", "--threads", "1")[0] == 0
    assert hopscope("sweep", str(file))[1] == "4 of 4 runs are complete\n"
    out = hopscope(*plan)[1]
    assert out.splitlines()[-1] == "4 of 4 runs are complete"


def test_time_that_is_up_asks_to_be_queued_again(hopscope: Say, file: Path, root: Path) -> None:
    file.write_text(FILE.format(steps=100_000))
    code, out, _ = hopscope("sweep", str(file), "--time-limit", "0.001", "--threads", "1")
    assert (code, out.splitlines()[-1]) == (75, "0 of 4 runs are complete")


def test_every_job_of_an_array_has_a_pack(hopscope: Say, file: Path) -> None:
    code, out, _ = hopscope("sweep", str(file), "--slurm", "--shards", "4", "--pack", "1",
                            "--gpus", "0")  # fmt: skip
    assert code == 0
    assert "#SBATCH --array=1-4\n" in out
    assert "--gres" not in out
    assert f"{file} --pack 1 --store" in out
    assert "--pack" not in hopscope("sweep", str(file), "--slurm", "--shards", "2")[1]


def test_an_empty_share_is_no_mistake(hopscope: Say, file: Path) -> None:
    shares = [f"{k}/5" for k in range(1, 6)]
    plans = {
        k: json.loads(hopscope("sweep", "--plan", str(file), "--shard", k, "--json")[1])
        for k in shares
    }
    assert [sum(row["runs"] for row in rows) for rows in plans.values()] == [2, 2, 0, 0, 0]
    code, out, _ = hopscope("sweep", str(file), "--shard", "5/5")
    line = "shard 5/5 is empty: there are fewer packs than shards; --pack 1 makes more\n"
    assert (code, out) == (0, line)
