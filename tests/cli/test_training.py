"""Trainings from the command line: begun, gone on with, prolonged, and from files."""

import re
from collections.abc import Callable
from pathlib import Path

from hopscope.configs import Experiment
from hopscope.store import Store

Say = Callable[..., tuple[int, str, str]]


def test_train_resume_show_and_remove(root: Path, hopscope: Say) -> None:
    flags = "--training.steps 6 --training.batch 4 --training.validation-examples 8".split()
    code, out, _ = hopscope("train", "demo", *flags, "--seeds", "0", "1", "--threads", "1")
    assert code == 0
    assert re.search(r"hop 1 \d\.\d+ \(\d\.\d+ … \d\.\d+\)", out)
    assert "final loss" in out
    (name,) = Store().names()
    assert hopscope("resume", name[-6:])[0] == 0
    code, out, _ = hopscope("runs")
    assert code == 0
    assert name in out
    code, out, _ = hopscope("show", name, "--figure", "loss.svg")
    assert code == 0
    assert re.search(r"training\.steps +6 *\n", out)
    assert "checkpoints at steps 0, 6" in out
    assert (root / "loss.svg").exists()
    code, out, _ = hopscope("sql", "select count(*) as rows from metrics", "--csv")
    assert (code, out.split()) == (0, ["rows", str(2 * 2 * (6 + 7))])
    code, out, _ = hopscope("sql", "select run, max(step) from metrics group by run")
    assert name in out
    code, out, _ = hopscope("verify", name)
    assert (code, out) == (0, f"{name}: all 5 files are as committed\n")
    (root / "runs" / name / "checkpoints" / "step-00000006.safetensors").write_bytes(b"")
    code, _, err = hopscope("verify", name)
    assert code == 1
    assert "0 bytes, expected" in err
    assert hopscope("rm", name)[0] == 0
    code, out, _ = hopscope("runs")
    assert "no runs in" in out


def test_a_training_begins_where_a_shorter_one_ended(root: Path, hopscope: Say) -> None:
    flags = "--training.batch 4 --training.warmup 0 --threads 1".split()
    assert hopscope("train", "demo", *flags, "--training.steps", "4")[0] == 0
    (short,) = Store().names()
    code, _, err = hopscope(
        "train", "demo", *flags, "--training.steps", "6", "--prolong", short[-6:]
    )
    assert code == 2
    assert "its training.schedule is cosine" in err
    constant = [*flags, "--training.schedule", "constant"]
    assert hopscope("train", "demo", *constant, "--training.steps", "4")[0] == 0
    (short,) = {*Store().names()} - {short}
    longer = ["train", "demo", *constant, "--training.steps", "6", "--prolong", short]
    code, _, err = hopscope(*longer, "--device", "cuda:7")
    assert (code, len(Store().names())) == (2, 2)
    assert "device is 'cuda:7', but torch sees no GPU: use --device cpu" in err
    code, out, _ = hopscope(*longer)
    assert code == 0
    assert "final loss" in out
    assert "step 4 of 6" in out
    assert len(Store().names()) == 3
    assert (root / "runs" / short).exists()


def test_an_experiment_file_trains_as_the_preset_it_was_written_from(
    root: Path, hopscope: Say, tiny: Experiment
) -> None:
    (root / "mine.json").write_text(tiny.canonical_json())
    assert hopscope("train", "mine.json")[0] == 0
    assert Store().names() == [tiny.run_name()]
    (root / "mine.json").write_text('{"modle": {}}')
    code, _, err = hopscope("train", "mine.json")
    assert code == 2
    assert "Experiment.modle: unknown field" in err
