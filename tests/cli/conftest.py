"""The command as a user calls it, in a folder of its own."""

from collections.abc import Callable
from pathlib import Path

import pytest
import safetensors.torch
from calling import Captured, End, Patch, Say, ends, hopscope, registry, root  # noqa: F401

from hopscope.cli.main import run as command
from hopscope.configs import Experiment, Recipe, Training
from hopscope.models.planted import Planted
from hopscope.papers import registry as registry_
from hopscope.papers.experiment import PaperExperiment
from hopscope.papers.registry import PAPERS, Registry
from hopscope.store.checkpoints import checkpoint_name
from hopscope.training import Run, train


@pytest.fixture
def said(capsys: Captured) -> Callable[..., str]:
    """What a command prints, which succeeds."""

    def called(*arguments: str) -> str:
        capsys.readouterr()
        assert command([*arguments]) == 0
        return capsys.readouterr().out

    return called


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("circuits")


@pytest.fixture(scope="module")
def run(story: Path, two_hops: Planted) -> Run:
    """A run of four steps, in whose later checkpoints the planted weights were put."""
    experiment = Experiment(
        task=two_hops.task,
        model=two_hops.model.config,
        training=Training(steps=4, batch=4, examples=16, checkpoint_every=2, validate_every=1),
    )
    made = train(experiment, story / "runs")
    state = {name: tensor.detach() for name, tensor in two_hops.model.state_dict().items()}
    for step in (2, 4):
        name = checkpoint_name(step)
        with safetensors.safe_open(made.folder.path / name, "pt") as file:
            words = file.metadata()
        made.folder.commit({name: safetensors.torch.save(state, words)})
    return made


@pytest.fixture
def here(story: Path, run: Run, monkeypatch: Patch) -> Path:
    monkeypatch.setenv("HOPSCOPE_STORE", str(story / "runs"))
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.chdir(story)
    return story


@pytest.fixture
def say(root: Path, hopscope: Say, monkeypatch: Patch) -> Say:  # noqa: F811
    """`papers run`, or with `--list` `papers list`, with folders of its own."""

    def said(*words: str, papers: Registry = PAPERS) -> tuple[int, str, str]:
        monkeypatch.setattr(registry_, "PAPERS", papers)
        name = "list" if "--list" in words else "run"
        kept = [word for word in words if word != "--list"]
        return hopscope("papers", name, *kept, "--results", "found", "--store", "kept")

    return said


@pytest.fixture
def recipes(tiny: Experiment) -> tuple[Experiment, ...]:
    return tuple(tiny.replace(seeds=(seed,)) for seed in (0, 1))


@pytest.fixture
def experiment(recipes: tuple[Recipe, ...]) -> PaperExperiment:
    """Two trainings of 12 steps, with nothing to draw."""
    return PaperExperiment(
        "musat/two", "two of them", (End,), ends, {"reduced": lambda: recipes},
        reduced="two instead of all",
    )  # fmt: skip


@pytest.fixture
def two(experiment: PaperExperiment) -> Registry:
    """The only experiment there is."""
    return registry(experiment)
