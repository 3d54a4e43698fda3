"""Trainings from the command line: begun, gone on with, prolonged, and from files."""

import re
from pathlib import Path

from reproducing import Said, Say

from hopscope.configs import Experiment
from hopscope.store import Store


def test_train_resume_show_and_remove(root: Path, hopscope: Say, said: Said) -> None:
    flags = "--training.steps 6 --training.batch 4 --training.validation-examples 8 --threads 1"
    out = said("train", "demo", *flags.split(), "--seeds", "0", "1")
    assert re.search(r"hop 1 \d\.\d+ \(\d\.\d+ … \d\.\d+\)", out)
    assert "final loss" in out
    (name,) = Store().names()
    said("resume", name[-6:])
    out = said("show", name, "--figure", "loss.svg")
    assert re.search(r"training\.steps +6 *\n", out)
    assert "checkpoints at steps 0, 6" in out
    assert (root / "loss.svg").exists()
    rows = said("sql", "select count(*) as rows from metrics", "--csv").split()
    assert rows == ["rows", str(2 * 2 * (6 + 7))]
    assert name in said("sql", "select run, max(step) from metrics group by run")
    assert said("verify", name) == f"{name}: all 5 files are as committed\n"
    (root / "runs" / name / "checkpoints" / "step-00000006.safetensors").write_bytes(b"")
    code, _, err = hopscope("verify", name)
    assert code == 1
    assert "0 bytes, expected" in err


def test_a_training_begins_where_a_shorter_one_ended(root: Path, hopscope: Say, said: Said) -> None:
    flags = "train demo --training.batch 4 --training.warmup 0 --threads 1 --training.steps".split()
    said(*flags, "4")
    (short,) = Store().names()
    code, _, err = hopscope(*flags, "6", "--prolong", short[-6:])
    assert code == 2
    assert "its training.schedule is cosine" in err
    constant = ("--training.schedule", "constant")
    said(*flags, "4", *constant)
    (short,) = {*Store().names()} - {short}
    longer = (*flags, "6", *constant, "--prolong", short)
    code, _, err = hopscope(*longer, "--device", "cuda:7")
    assert (code, len(Store().names())) == (2, 2)
    assert "device is 'cuda:7', but torch sees no GPU: use --device cpu" in err
    out = said(*longer)
    assert "final loss" in out
    assert "step 4 of 6" in out
    assert len(Store().names()) == 3
    assert (root / "runs" / short).exists()


def test_an_experiment_file_trains_as_the_preset_it_was_written_from(
    root: Path, said: Said, tiny: Experiment
) -> None:
    (root / "mine.json").write_text(tiny.canonical_json())
    said("train", "mine.json")
    assert Store().names() == [tiny.run_name()]
