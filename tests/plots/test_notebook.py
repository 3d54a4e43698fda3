"""What a notebook shows of each result: a figure with a text for those who do not see it, tables,
in a terminal one line, and while a training goes on, how far it is.
"""

import json
import re
import sys
from html import unescape
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import hopscope
from hopscope import display
from hopscope.circuits import Circuit, attention_maps
from hopscope.circuits.emergence import Emergence
from hopscope.circuits.probing import probe
from hopscope.configs import Experiment, NgramExperiment
from hopscope.errors import ConfigError
from hopscope.facts import Role
from hopscope.lm.heads import HeadScores, RoleRoute
from hopscope.models.planted import Planted
from hopscope.papers.registry import PAPERS
from hopscope.plots.piece import SHOWN
from hopscope.plots.watching import Watching
from hopscope.runs import Watcher, opened
from hopscope.store import Store
from hopscope.study import Study, compare
from hopscope.study.comparison import Comparison
from tests.plots.balance import Balance


def shown(result: Any, figures: int | None = None) -> str:
    """What a notebook shows, which is whole and runs nothing; elsewhere it is one line."""
    assert len(repr(result).splitlines()) == 1
    assert len(repr(result)) < 150
    text: str = result._repr_html_()
    whole = Balance()
    whole.feed(text)
    assert whole.open == []
    assert not re.search(r"<(script|link|img|iframe)| on\w+=", text)
    said = re.findall(r'<svg role="img" aria-label="([^"]+)"', text)
    assert all(len(each) > 20 for each in said)
    assert figures in (None, text.count("<svg"))
    return text


@pytest.fixture(scope="module")
def demo() -> Study:
    study: Study = hopscope.load("gallery/demo")
    return study


@pytest.fixture(scope="module")
def story(demo: Study) -> Emergence:
    return Emergence.from_dict(json.loads(demo.run.folder.read("emergence.json")))


@pytest.fixture(scope="module")
def both() -> Comparison:
    return compare("gallery/demo", "gallery/transformer-a")


def member(name: str) -> Any:
    module, _, found = name.partition(":")
    return getattr(import_module(module), found)


def test_every_view_and_figure_is_of_a_class_that_shows_itself() -> None:
    for name, (view, draw) in SHOWN.items():
        assert view or draw
        for function in (view, draw):
            assert function is None or callable(member(f"hopscope.plots.{function}")), name
        assert hasattr(member(name), "_repr_html_"), name
        assert hasattr(member(name), "picture"), name


def test_a_result_shows_a_figure_that_can_be_saved_and_what_is_known(
    known: Planted, circuit: Circuit, demo: Study, story: Emergence, both: Comparison,
    tmp_path: Path,
) -> None:  # fmt: skip
    route = (RoleRoute(Role("query"), Role("key"), "look-up"),)
    zero = np.zeros((1, 2, 2))
    for result, told in (
        (circuit, "each component</summary>"),
        (demo.circuit, "what each path moves</summary>"),
        (attention_maps(known.model, known.task, examples=4), "role maps"),
        (demo.ablate("1.3", examples=8), "<td>1.3=uniform</td>"),
        (story, "hop 2 is learned"),
        (probe(known.model, known.task, 40), "by layer and role</summary>"),
        (HeadScores("tiny", "f1", route, zero, zero, np.ones(1), zero, zero, 8, 3), "tiny"),
        (demo.run, "complete, step 2,500"),
        (both, "<td>gallery/transformer-a</td><td>9.0  by position → key 2, value 1, value 2</td>"),
    ):
        text = shown(result, figures=1)
        assert told in text
        assert result.picture().name in unescape(text)
    figure = circuit.picture(tmp_path / "one.svg", width=5.5)
    assert figure.get_size_inches()[0] == 5.5
    assert figure.name in (tmp_path / "one.svg").read_text()
    shown(figure, figures=1)
    assert "what each path moves" not in shown(circuit)
    with pytest.raises(ConfigError, match="no single figure of a RunStudy; "):
        demo.picture()


def test_runs_show_their_state_and_what_is_known_of_them(store: Store, demo: Study) -> None:
    text = shown(demo)
    assert "complete, step 2,500" in text
    assert "the model of seed 0 after step 2,500, with its circuit" in text
    fresh = store.create(Experiment())
    text = shown(fresh, figures=0)
    assert "stopped, step 0 of" in text
    assert "settings</summary>" in text
    shown(hopscope.open_run("gallery/ngram"), figures=1)
    shown(opened(store.create(NgramExperiment())), figures=0)
    shown(hopscope.load("gallery/planted"), figures=0)  # it was not trained
    run = opened(store.copy(demo.run.folder, "mine"))
    for part in run.folder.path.glob("metrics/*"):
        part.write_bytes(b"")
    text = run._repr_html_()
    assert "damaged" in text
    assert "<svg" not in text


def test_stores_answers_claims_and_findings_are_tables(store: Store, tmp_path: Path) -> None:
    name = store.create(Experiment()).name
    store.tag(name, "baseline")
    text = shown(store)
    assert name in text
    assert "baseline" in text
    text = shown(store.sql("select range as number from range(25)").answer())
    assert text.count("<tr>") == 21
    assert "and 5 more" in text
    text = shown(store.sql("select name, step,\n    round(0.8741::float, 3) as loss from runs"))
    assert "<th>name</th><th>step</th><th>loss</th>" in text
    assert f"<td>{name}</td><td>0</td><td>0.874</td>" in text
    assert "tables: runs, metrics" in shown(store.sql("select nothing from nowhere"))
    claim = next(iter(PAPERS.claims.values()))
    assert claim.id in shown(claim)
    assert "not measured" in shown(claim.finding(PAPERS.results(tmp_path)))


def test_two_runs_are_shown_with_what_they_lack(store: Store, demo: Study) -> None:
    bare = store.create(Experiment())
    lacking = compare("gallery/demo", bare.name, store)
    assert f"<code>{bare.command('resume')}</code>" in shown(lacking)
    copy = store.copy(demo.run.folder, "mine")
    assert "step of the circuit" in shown(compare("gallery/demo", copy, store), figures=1)


def test_light_and_dark_are_those_of_the_notebook_before_those_of_the_browser(
    circuit: Circuit, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = shown(circuit)
    assert "@media (prefers-color-scheme: dark)" in text
    for mark in ('[data-jp-theme-light="false"]', '[data-theme="dark"]', ".vscode-dark"):
        assert mark in text
    assert "var(--hopscope-0," in text

    def missing(view: str) -> Any:
        raise ModuleNotFoundError("No module named 'matplotlib'", name="matplotlib")

    monkeypatch.setattr("hopscope.plots.notebook.of_plots", missing)
    text = circuit._repr_html_()  # without a drawing library there is a line and the text
    assert "matplotlib is not installed: pip install matplotlib" in text
    assert circuit.verdict.split(":")[0] in text
    assert "<svg" not in text


def test_training_in_a_notebook_shows_how_it_goes_and_elsewhere_nobody_is_asked(
    store: Store, tiny: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    place = SimpleNamespace(update=lambda each: seen.append(each._repr_html_()))

    def shows(each: Any, *, display_id: bool) -> Any:
        assert display_id  # else every update would be another picture
        place.update(each)
        return place

    ipython, its_display = ModuleType("IPython"), ModuleType("IPython.display")
    ipython.get_ipython = lambda: SimpleNamespace(kernel=object())  # type: ignore[attr-defined]
    its_display.display = shows  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", its_display)
    monkeypatch.setattr("hopscope.plots.watching.SECONDS", 0.0)
    run = hopscope.train(tiny, store)
    steps = tiny.training.steps
    assert f'<progress max="{steps}" value="0"' in seen[0]
    assert f'<progress max="{steps}" value="{steps}"' in seen[-1]
    for text in (run.name, "hop 2", "chance is 0.50"):
        assert text in seen[-1]
    assert len(seen) > 3
    ipython.get_ipython = SimpleNamespace  # type: ignore[attr-defined]
    assert display.watcher() is None  # in a terminal
    monkeypatch.delitem(sys.modules, "IPython")
    assert display.watcher() is None
    assert isinstance(Watching(), Watcher)
