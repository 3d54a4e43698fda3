"""What a notebook shows of each result: a figure with a text for those who do not see it, tables,
and in a terminal one line.
"""

import re
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hopscope
from hopscope.circuits import Circuit, attention_maps
from hopscope.configs import Experiment, MarkovExperiment
from hopscope.errors import ConfigError
from hopscope.facts import Role
from hopscope.llm.heads import HeadScores, Route
from hopscope.models.planted import Planted
from hopscope.papers.registry import PAPERS
from hopscope.report.comparison import comparison_figure
from hopscope.report.kinds import FIGURES
from hopscope.report.notebook import PICTURES, VIEWS
from hopscope.runs import opened
from hopscope.store import Store
from hopscope.store import sql as ask
from hopscope.study import Study, compare


class Whole(HTMLParser):
    """Every element that is opened is closed, in turn."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def shown(result: Any) -> str:
    """What a notebook shows, which is whole and runs nothing; elsewhere it is one line."""
    assert len(repr(result).splitlines()) == 1
    assert len(repr(result)) < 150
    text: str = result._repr_html_()
    whole = Whole()
    whole.feed(text)
    assert whole.open == []
    assert not re.search(r"<(script|link|img|iframe)| on\w+=", text)
    figures = re.findall(r'<svg role="img" aria-label="([^"]+)"', text)
    assert all(len(said) > 20 for said in figures)
    return text


@pytest.fixture(scope="module")
def demo() -> Study:
    study: Study = hopscope.load("gallery/demo")
    return study


def test_every_view_is_of_a_class_that_shows_itself() -> None:
    for name, view in VIEWS.items():
        for each in (name, view):
            module, _, member = each.partition(":")
            assert hasattr(import_module(module), member), each
        module, _, member = name.partition(":")
        assert hasattr(getattr(import_module(module), member), "_repr_html_")


def test_results_have_a_picture_that_can_be_saved(demo: Study, tmp_path: Path) -> None:
    both = compare("gallery/demo", "gallery/planted")
    results = (demo.circuit, demo.maps(4), demo.emergence(4), demo.contents(40), demo.run, both)
    for number, result in enumerate(results):
        path = tmp_path / f"{number}.svg"
        figure = result.picture(path)
        text = path.read_text()
        assert text.startswith("<svg")
        assert figure.name in text.replace("\n", " ")
        assert result.picture().caption == figure.caption
    demo.maps(4).picture(str(tmp_path / "maps.png"))
    assert (tmp_path / "maps.png").stat().st_size > 10_000


def test_what_has_no_single_picture_says_what_has(demo: Study, store: Store) -> None:
    with pytest.raises(ConfigError, match="no single figure of a Study; .* Circuit, .*RoleMaps"):
        demo.picture()
    with pytest.raises(ConfigError, match="no single figure of a Store"):
        store.picture()


def test_every_picture_is_of_a_class_that_shows_itself() -> None:
    for name, draw in PICTURES.items():
        module, _, member = name.partition(":")
        assert name in VIEWS
        assert hasattr(getattr(import_module(module), member), "picture")
        module, _, member = draw.partition(":")
        assert callable(getattr(import_module(module), member))


def test_circuits_and_maps_show_a_figure(known: Planted, circuit: Circuit) -> None:
    text = shown(circuit)
    assert text.count("<svg") == 1
    assert "each part</summary>" in text
    assert "what each arrow carries" not in text
    assert "role maps" in shown(attention_maps(known.model, known.task, examples=4))


def test_an_account_is_shown_with_its_circuit(demo: Study) -> None:
    assert "what each arrow carries</summary>" in shown(demo.circuit)


def test_emergence_and_contents_show_a_figure_and_a_table(demo: Study) -> None:
    text = shown(demo.emergence(4))
    assert "hop 2 is learned" in text
    found = demo.contents(40)
    assert "by layer and role</summary>" in shown(found)


def test_runs_show_their_state_and_what_is_known_of_them(store: Store, demo: Study) -> None:
    text = shown(demo)
    assert "complete, step 2,500" in text
    assert "the model of seed 0 after step 2,500; its circuit is known" in text
    fresh = store.create(Experiment())
    text = shown(fresh)
    assert "<svg" not in text
    assert "stopped, step 0 of" in text
    assert "settings</summary>" in text
    assert "<svg" in shown(hopscope.load("gallery/ngram"))
    assert "<svg" not in shown(opened(store.create(MarkovExperiment())))
    assert set(FIGURES) == {"facts", "ngram", "llm", "llm-mechanism"}


def test_a_store_and_an_answer_are_tables(store: Store) -> None:
    run = store.create(Experiment())
    store.tag(run.name, "baseline")
    text = shown(store)
    assert run.name in text
    assert "baseline" in text
    text = shown(ask(store, "select range as number from range(25)"))
    assert text.count("<tr>") == 21
    assert "and 5 more" in text


def test_a_question_in_sql_shows_its_answer(store: Store) -> None:
    name = store.create(Experiment()).name
    query = "select name, step\n    from runs where name is not null or step is not null or true"
    text = shown(store.sql(query))
    assert "<th>name</th><th>step</th>" in text
    assert f"<td>{name}</td><td>0</td>" in text
    assert "<td>0.874</td>" in shown(store.sql("select round(0.8741::float, 3) as loss"))
    assert "tables: runs, metrics" in shown(store.sql("select nothing from nowhere"))


def test_two_runs_are_shown_side_by_side(store: Store, demo: Study) -> None:
    copy = store.copy(demo.run.folder, "mine")
    text = shown(compare("gallery/demo", copy, store))
    assert text.count("<svg") == 1
    assert "step of the circuit" in text
    bare = store.create(Experiment()).name
    assert f"<code>hopscope resume {bare}</code>" in shown(compare("gallery/demo", bare, store))


def test_claims_and_findings_are_tables(tmp_path: Path) -> None:
    claim = next(iter(PAPERS.claims.values()))
    assert claim.id in shown(claim)
    assert "not measured" in shown(claim.finding(PAPERS.results(tmp_path)))


def test_heads_of_language_models_show_a_figure() -> None:
    route = (Route(Role("query"), Role("key"), "look-up"),)
    zero = np.zeros((1, 2, 2))
    scores = HeadScores("tiny", "f1", route, zero, zero, np.ones(1), zero, zero, 8, 3)
    assert shown(scores).count("<svg") == 1


def test_light_and_dark_are_those_of_the_notebook_before_those_of_the_browser(
    circuit: Circuit,
) -> None:
    text = shown(circuit)
    assert "@media (prefers-color-scheme: dark)" in text
    for mark in ('[data-jp-theme-light="false"]', '[data-theme="dark"]', ".vscode-dark"):
        assert mark in text
    assert "var(--hopscope-0," in text


def test_without_a_drawing_library_there_is_a_line_and_the_text(
    circuit: Circuit, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(view: str) -> Any:
        raise ModuleNotFoundError("No module named 'matplotlib'", name="matplotlib")

    monkeypatch.setattr("hopscope.report.notebook.fetched", missing)
    text = circuit._repr_html_()
    assert "matplotlib is not installed: pip install matplotlib" in text
    assert "with this attention alone" in text
    assert "<svg" not in text


def test_what_cannot_be_read_is_told_in_a_line(store: Store, demo: Study) -> None:
    run = opened(store.copy(demo.run.folder, "mine"))
    for part in run.folder.path.glob("metrics/*"):
        part.write_bytes(b"")
    text = run._repr_html_()
    assert "damaged" in text
    assert "<svg" not in text


def test_a_figure_shows_itself_and_what_was_not_trained_none() -> None:
    text = shown(comparison_figure(compare("gallery/demo", "gallery/transformer-a")))
    assert text.count("<svg") == 1
    assert "<svg" not in shown(hopscope.load("gallery/planted"))


def test_a_comparison_names_the_parts_of_both_circuits() -> None:
    text = shown(compare("gallery/demo", "gallery/transformer-a"))
    assert "<td>gallery/transformer-a</td><td>9.0  value 1, value 2 ← by position</td>" in text
