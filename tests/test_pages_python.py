"""Every block of Python on the pages runs, page by page, from what its page takes for granted.

Models are those of the gallery, or trained for a moment: what is shown is how things are called.
Pages that are notebooks run when the documentation is built.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import induction
import nano
import pytest
import task_of_ones_own
import torch
from pages import PAGES, ROOT, blocks

import hopscope
from hopscope import Experiment, Model, Run, Store, Training
from hopscope.papers import preset
from hopscope.store.gallery import about

Names = Mapping[str, Any]
NOTEBOOK = "file_format: mystnb"
ELSEWHERE = {
    "README.md": "opens a GPT-2: the test below",
    "docs/findings.md": "trains a model of twelve layers: the last test below",
    "docs/sharing.md": "loads what was exported: tests/export/test_gpt2.py",
}
"""Pages whose blocks do not run here: why, and where what they do is tested."""


def demo() -> Names:
    study = hopscope.load("gallery/demo")
    return {"study": study, "run": study.run, "model": study.model, "task": study.task}


def encoder() -> Names:
    model = task_of_ones_own.Model()
    model.head = model.out
    return {"model": model}


def repeated() -> Names:
    """Loaders of a model that cannot repeat tokens yet, and of one that can."""
    return {"load_first": lambda: induction.adapter(0), "load_last": lambda: induction.adapter(30)}


def repeater() -> Names:
    """A model that repeats tokens."""
    return {"model": induction.adapter(30)}


def checkpoint() -> Names:
    """A checkpoint of a nanoGPT that has learned its task."""
    torch.save(nano.saved(nano.trained()), "ckpt.pt")
    return {}


def drawn() -> Names:
    return {"draw": task_of_ones_own.draw}


def runs() -> Names:
    """Three runs of a store, one of them of four seeds, after a few steps."""
    training = Training(steps=2, batch=2, examples=8, validation_examples=2, checkpoint_at=(1,))
    for tag, seeds in (("my-run", (0, 1, 2, 3)), ("baseline", (0,)), ("with-mlp", (1,))):
        model, task = Model(layers=1, heads=1, d_model=16), preset("demo").recipe.task
        recipe = Experiment(task=task, model=model, training=training, seeds=seeds)
        Store().tag(hopscope.train(recipe).name, tag)
    return {"hopscope": hopscope}


GIVEN: Mapping[str, Mapping[str, Callable[[], Names]]] = {
    "docs/circuits.md": {"EncoderAdapter(": encoder, "OwnTask(draw": drawn},
    "docs/questions/gpt2.md": {"hopscope.Study(model": repeater},
    "docs/questions/induction.md": {"Study.series(": repeated},
    "docs/questions/nanogpt.md": {'nanogpt("ckpt.pt")': checkpoint},
    "docs/probe.md": {"hopscope.probe(model, task)": demo, "Pairs(": repeater},
    "docs/runs.md": {"compare(": runs},
}
"""What a page has said in words by the block with this text."""
SHORTER = {
    "range(8)": "range(1)",
    "steps=1_000": "steps=2",
    "step=500": "step=1",
    "examples=256": "examples=16",
    "study.patch()": "study.patch(examples=16)",
    "vocabulary=50_257": "vocabulary=64",
}
"""So that it is a matter of seconds."""


def own(page: Path) -> str:
    return str(page.relative_to(ROOT))


WITH_PYTHON = [
    page for page in PAGES if blocks(page, "python") and NOTEBOOK not in page.read_text()
]


@pytest.fixture
def no_training(monkeypatch: pytest.MonkeyPatch) -> list[Experiment]:
    """What was asked to be trained; the demo, which is in the gallery, is what comes back."""
    asked: list[Experiment] = []

    def trained(experiment: Experiment, store: str = "") -> Run:
        asked.append(experiment)
        run: Run = hopscope.load("gallery/demo").run
        return run

    monkeypatch.setattr("hopscope.runs.train", trained)
    return asked


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", [page for page in WITH_PYTHON if own(page) not in ELSEWHERE], ids=own
)
def test_its_blocks_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.chdir(tmp_path)
    given, names = dict(GIVEN.get(own(page), {})), dict[str, Any]()
    if page.name == "training.md":
        request.getfixturevalue("no_training")
    for text in blocks(page, "python"):
        for marker in [marker for marker in given if marker in text]:
            names |= given.pop(marker)()
        exec(compile(shorter(text), own(page), "exec"), names)
    assert given == {}


def shorter(text: str) -> str:
    for long, short in SHORTER.items():
        text = text.replace(long, short)
    return text


@pytest.mark.slow
def test_the_blocks_of_the_readme_run(monkeypatch: pytest.MonkeyPatch) -> None:
    transformers = pytest.importorskip("transformers")
    loader = transformers.AutoModelForCausalLM
    monkeypatch.setattr(loader, "from_pretrained", lambda name: repeater()["model"])
    names: dict[str, Any] = {}
    for text in blocks(ROOT / "README.md", "python"):
        exec(compile(shorter(text), "README.md", "exec"), names)
    assert names["study"].circuit.sufficient


@pytest.mark.slow
def test_the_main_flow_runs(no_training: list[Experiment]) -> None:
    flow, *_ = blocks(ROOT / "docs/training.md", "python")
    names: dict[str, Any] = {}
    exec(compile(flow, "training.md", "exec"), names)
    assert no_training == [preset("demo").recipe]
    study: hopscope.Study = names["study"]
    assert study.circuit.paths == hopscope.load("gallery/demo").circuit.paths
    assert [path for path, _ in study.emergence().order]


def test_the_model_nearest_to_figure_5_is_what_the_findings_train(
    no_training: list[Experiment],
) -> None:
    (block,) = blocks(ROOT / "docs/findings.md", "python")
    exec(compile(block, "findings.md", "exec"), {})
    kept = about(hopscope.load("gallery/figure-5").run.folder)
    assert kept is not None
    assert [asked.run_name() for asked in no_training] == [kept.run]
