"""The commands of the pages that train, search or write run too, shortened, on a store of a moment.

What needs a network, a cluster or a browser is listed here with the tests of what it does.
"""

import re
import shlex
from collections.abc import Mapping
from pathlib import Path

import pytest
from pages import ROOT, blocks, commands

import hopscope
import hopscope.papers
from hopscope import MQAR, Experiment, Model, Retrieval, Run, Store, Training
from hopscope.cli.main import run

ELSEWHERE = {
    r"view": "tests/web, tests/browser, tests/cli/test_view.py",
    r"lm|push|pull|show (smollm2|.*--answers)": "weights are needed: tests/lm, test_hub.py",
    r"(sweep recipes.py|train demo) .*--workers": "tests/workers, tests/cli/test_workers.py",
    r"export RUN --to (wandb|transformers)|export .*--follow": "tests/export",
    r"(attention|circuit) hf:": "a GPT-2 is needed: tests/cli/test_circuits.py",
    r"papers (report|run)": "the smoke protocol of ./test, tests/cli/test_reproduce.py",
}
"""Commands that do not run here, and where what they do is tested."""
SHORTER = {
    r"\bRUN --all": "fleet --all --examples 16",
    r"\bRUN\b": "demo-run",
    r"^(probe|attention) gallery/transformer-a": r"\1 gallery/demo",
    r"^emergence mqar": "emergence demo-run",
    r"^(probe|evaluate) (\S+)": r"\1 \2 --examples 64",
    r"^(patch|baselines|ablate) (?!fleet)(\S+)": r"\1 \2 --examples 16",
    r"^circuit (mqar|demo-run)": r"circuit \1 --again --force --examples 16",
    r"^circuit fleet": "circuit fleet --again --force",
    r"^tag d2-l3h4": "tag baseline",
    r" training.steps=8000": "",
    r"^train (\S+)(?!.*--prolong)": r"train \1 training.steps=4 training.batch=4",
    r"--prolong d3-l12h1": "--prolong d3-l12h1 training.steps=6 training.batch=4",
    r"^ngram train": "ngram train descent.epochs=40,20,20 descent.chains=20 "
    "descent.validation_chains=20",
    r"--shards 6": "--shards 3",
}
"""So that it is a matter of seconds: a pattern, and what stands there instead."""
HERE = [line for line in commands() if not any(re.match(each, line) for each in ELSEWHERE)]


def shorter(line: str) -> str:
    for long, short in SHORTER.items():
        line = re.sub(long, short, line)
    return line


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store of runs of two steps, under the names that the pages give them."""
    made = tmp_path_factory.mktemp("pages")
    store, training = Store(made / "runs"), Training(steps=2, batch=4, checkpoint_at=(1,))
    wanted: Mapping[str, Experiment] = {
        "baseline": Experiment(task=Retrieval(hops=2), training=training),
        "fleet": Experiment(task=Retrieval(hops=2), training=training, seeds=(0, 1)),
        "mqar": Experiment(task=MQAR(), training=training),
        "d3-l12h1": hopscope.papers.preset("musat/transformer-a").recipe.replace(training=training),
    }
    for name, recipe in wanted.items():
        small = recipe.replace(model=Model(layers=1, heads=1, d_model=16))
        found: Run = hopscope.train(recipe if name == "d3-l12h1" else small, store=store)
        store.tag(found.name, name)
    for line in ("gallery --copy demo", "circuit fleet --all --force --examples 16"):
        assert run([*shlex.split(line), "--store", str(store.root)]) == 0
    store.tag("demo", "demo-run")
    (made / "mine.json").write_text(wanted["baseline"].to_file())
    (made / "recipes.py").write_text(recipes())
    (made / "examples").symlink_to(ROOT / "examples")
    return made


def recipes() -> str:
    """The file of recipes that the page on many runs shows."""
    shown = blocks(ROOT / "docs" / "many_runs.md", "python")
    (text,) = (its for its in shown if "# recipes.py" in its)
    return text.replace("steps=1_000", "steps=2").replace("range(8)", "range(1)")


@pytest.mark.slow
@pytest.mark.parametrize("line", HERE)
def test_it_runs(
    line: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    assert run(shlex.split(shorter(line))) == 0
    assert "Traceback" not in capsys.readouterr().err
