"""The lines under a pane give what it shows: the command in a terminal, and the Python."""

import ast
import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hostile import KEYS, TEXTS
from short import ID

from hopscope.cli.main import run as command
from hopscope.web.views import Views
from tests.browser.lookers import at, bars, measured, opened, ready

DRAWN = ["ex=3&step=600&head=1.3", "head=2.0"]
NOT_DRAWN = ["ex=2&off=1.3;0.1=mean&step=800", "ex=4&order=5&head=1.1", "ex=1&off=0.3:query=itself"]


def said(page: Any, pane: str) -> tuple[list[str], str]:
    """The words of the pane's command (none: it has none), and its Python."""
    shell, python = (
        page.get_attribute(f".{pane} .foot .line{which} code", "title") or ""
        for which in (":not(.python)", ".python")
    )
    return shlex.split(shell)[1:], python


def printed(capsys: pytest.CaptureFixture[str], words: list[str]) -> Any:
    capsys.readouterr()
    assert command(words) == 0
    return json.loads(capsys.readouterr().out)


def value_of(python: str) -> np.ndarray:
    """What the last line is, after the others."""
    *lines, last = python.splitlines()
    names: dict[str, Any] = {}
    exec("\n".join(lines), names)
    return np.asarray(eval(last, names), float)


def table(page: Any, pane: str) -> list[list[str]]:
    """The numbers of a pane, as its table shows them."""
    if not page.is_visible(f".{pane} .behind"):
        page.click(f".{pane} .menu summary")
        page.click(f".{pane} .menu button:text('Table')")
    ready(page)
    rows = "(all) => all.map((row) => [...row.cells].map((cell) => cell.textContent))"
    return page.eval_on_selector_all(f".{pane} .behind tbody tr", rows)


def chosen(page: Any) -> tuple[int, ...]:
    """The head that is looked at."""
    return tuple(map(int, page.inner_text(".heads .large h3").split()[1].split(".")))


def hops(row: dict[str, Any]) -> list[float]:
    return [value for name, value in row.items() if name.startswith("hop_")]


def check_maps(page: Any, capsys: pytest.CaptureFixture[str], kind: str = "own") -> None:
    words, python = said(page, "heads")
    wanted = np.array(printed(capsys, words)[kind], float)
    cells = [row[3 if kind == "own" else 4] for row in table(page, "heads")]
    shown = [float(cell or "nan") for cell in cells]
    three = [float(f"{value:.3g}") for value in shown]  # digits that half precision has
    np.testing.assert_array_equal(shown, three)
    shown = np.reshape(shown, wanted.shape)
    np.testing.assert_allclose(wanted, shown, atol=1e-3)
    np.testing.assert_allclose(value_of(python), shown[chosen(page)], atol=1e-3)


def check_example(page: Any, capsys: pytest.CaptureFixture[str], drawn: bool = True) -> None:
    words, python = said(page, "example")
    shown = [[float(cell) for cell in row[4:]] for row in table(page, "example")]
    np.testing.assert_allclose(value_of(python), shown, atol=1e-3)
    assert bool(words) == drawn
    if words:
        attention = np.array(printed(capsys, words)["attention"])
        np.testing.assert_allclose(attention[chosen(page)], shown, atol=1e-3)


@pytest.mark.slow
def test_an_example(demo: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """That the command line draws, that no command draws, and that is typed."""
    for address in (*DRAWN, *NOT_DRAWN):
        demo.evaluate(f"location.hash = '#/run/gallery-demo?{address}'")
        ready(demo)
        check_example(demo, capsys, drawn=address in DRAWN)
    before = demo.inner_text(".token b >> nth=0")
    demo.locator(".token").first.dblclick()
    demo.keyboard.type("b1" if before != "b1" else "c1")
    demo.keyboard.press("Enter")
    ready(demo)
    check_example(demo, capsys, drawn=False)


def test_maps(page: Any, explorer: str, capsys: pytest.CaptureFixture[str]) -> None:
    opened(page, explorer)
    for kind in ("own", "others"):
        at(page, f"/run/gallery-demo?step=651&head=0.1&kind={kind}")
        check_maps(page, capsys, kind)


def test_a_seed_of_a_fleet(
    page: Any,
    fleet: tuple[str, Path],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    address, root = fleet
    monkeypatch.setenv("HOPSCOPE_STORE", str(root))
    opened(page, address, f"/run/{ID}?seed=9&step=5&ex=2")
    check_maps(page, capsys)
    check_example(page, capsys)
    words, python = said(page, "time")  # no circuit, whose paths could be followed
    assert (words[0], command(words), "losses" in python) == ("show", 0, True)
    words, python = said(page, "losses")
    np.testing.assert_allclose(value_of(python), [bars(page)], atol=1e-6)
    rows = printed(capsys, [*words, "--json"])
    np.testing.assert_allclose([row["loss"] for row in rows], bars(page), atol=1e-6)
    page.hover('.map[data-head="0.1"]')
    page.keyboard.press("a")
    shown = measured(page)
    words, python = said(page, "losses")
    assert python == ""
    np.testing.assert_allclose(hops(printed(capsys, [*words, "--json"])[-1]), shown, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["demo", "planted", "ngram"])
def test_what_each_pane_says_can_be_done(
    page: Any, explorer: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With many checkpoints and with one: its command and its lines of Python."""
    monkeypatch.chdir(tmp_path)
    opened(page, explorer, f"/run/gallery-{name}")
    for pane in ("sequence", "ngram", "time") if name == "ngram" else ("circuit", "time"):
        words, python = said(page, pane)
        assert command(words) == 0
        exec(python, {})


LINES = """async (texts) => {
  const made = await import("/commands.js");
  return texts.map((text) => {
    const model = { seeds: [0], seed: 0, member: 0 };
    const about = { name: text, id: text, ...model, arrays: [], checkpoints: [1, 2] };
    const off = [{ layer: 1, head: 3, destination: text, as: "uniform" }];
    const state = { about, off, tokens: [text], order: null, ex: 0, step: null, seed: null };
    return [
      made.ofMap(state, "own", [1, 3]),
      made.ofExample(state, [1, 3]),
      made.ofExample({ ...state, off: [], tokens: null }, [1, 3]),
      made.ofNoted(about, 5),
      made.ofSeed(about, 0, { destination: text, source: text }),
      made.ofChanged(state, 64),
      made.ofCircuit(state),
      made.ofTraining(state),
      made.ofTraining({ ...state, about: { ...about, checkpoints: [1] } }),
      made.ofTraining({ ...state, about: { ...about, ngram: {} } }),
      made.ofNgram(about, "course"),
      made.ofAccuracies(about),
      made.ofAnswers(about),
      made.ofFindings(about),
    ];
  });
}"""
"""All lines that the page writes, with these texts wherever a text stands in them."""


def test_whatever_is_named_is_one_literal(blank: Any) -> None:
    for text, made in zip(TEXTS, blank.evaluate(LINES, list(TEXTS)), strict=True):
        for line in filter(None, (each["shell"] for each in made)):
            words = shlex.split(line)
            quoted = text.replace("'", "''")
            assert text in words or f"where run = '{quoted}' and" in words[2], line
            assert "--head" not in words or f"1.3:{text}=uniform" in words, line
        for lines in filter(None, (each["python"] for each in made)):
            nodes = list(ast.walk(ast.parse(lines)))
            found = [each.value for each in nodes if isinstance(each, ast.Constant)]
            assert text in found, lines
            assert "changes" not in lines or f"1.3:{text}=uniform" in found, lines
            names = {a.name for each in nodes if isinstance(each, ast.Import) for a in each.names}
            assert names <= {"hopscope"}, lines


def test_lines_of_an_example_are_of_the_shown_member(
    blank: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def shown(_: Views, id_: str, seed: int | None = None) -> None:
        raise LookupError(id_, seed)

    monkeypatch.setattr(Views, "shown", shown)
    python = blank.evaluate("""async () => {
      const { ofExample } = await import("/commands.js");
      const about = { name: "fleet", id: "fleet", seeds: [0, 9], seed: 9, member: 1 };
      const state = { about, off: [], tokens: null, order: null, ex: 0, step: null, seed: 9 };
      return ofExample(state, { layer: 1, head: 0 }).python;
    }""")
    with pytest.raises(LookupError, match=r"\('fleet', 9\)"):
        exec(python, {})


def test_a_key_of_the_terminal_is_in_no_command(blank: Any) -> None:
    for made in blank.evaluate(LINES, list(KEYS)):
        assert {each["shell"] for each in made} == {""}
