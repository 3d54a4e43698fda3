"""A saved page opens from a file with the network cut, and is alive: its numbers are torch's.

The run is gallery/demo with three of its checkpoints, under a name that tries to be markup.
"""

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hopscope.errors import ConfigError, RunMissing
from hopscope.store import Store
from hopscope.web import carried
from hopscope.web.bundle import bundle, data_script, single
from hopscope.web.frame import Frame
from hopscope.web.questions import AblateQuestion, CostsQuestion, ExampleQuestion
from hopscope.web.tensors import unpacked
from hopscope.web.trained import Trained
from hopscope.web.views import Views
from tests.browser.lookers import complaints_of_axe, settled
from tests.browser.test_engine import close

ID, STEPS = "gallery-demo", [500, 2400, 2500]
ASKED_OF_A_SEED = ("run", "example", "ablate", "overTime", "costs")
HOSTILE = '</script><img src=x onerror="window.pwned=1">\'\u2028`${window.pwned=2}`'


class Some(Views):
    """The views of a store, in which runs have hostile names and three checkpoints."""

    def run(self, id: str, seed: int | None = None) -> dict[str, Any]:  # noqa: A002
        found = super().run(id, seed)
        named = {"name": f"a{HOSTILE}", "checkpoints": STEPS, "arrays": ["losses", "maps"]}
        found |= named | {"tags": [HOSTILE], "command": dict.fromkeys(found["command"], HOSTILE)}
        found["about"]["what"] = HOSTILE
        return found


@pytest.fixture(scope="module")
def views(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Views]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Trained, "steps", property(lambda _: STEPS))
        yield Some(Store(tmp_path_factory.mktemp("runs")))


@pytest.fixture(scope="module")
def data(views: Views) -> dict[str, Any]:
    """What pages carry: of three checkpoints, and the weights of one."""
    return carried.carried(views, ID, room=0)


@pytest.fixture(scope="module")
def saved(
    views: Views, data: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, str]:
    """The addresses of the page as a folder and as one file."""
    folder = tmp_path_factory.mktemp("saved")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hopscope.web.bundle.carried", lambda *_: data)
        bundle(views, ID, folder / "site")
        single(views, ID, folder / "page.html")
    return (folder / "site" / "index.html").as_uri(), (folder / "page.html").as_uri()


def opened(page: Any, address: str, rest: str = "") -> None:
    page.context.set_offline(True)
    page.goto(f"{address}{rest}")
    page.wait_for_function("() => globalThis.hopscope?.state.about")


def ask(page: Any, method: str, question: dict[str, Any]) -> Any:
    return page.evaluate(
        """async ([method, id, question]) => {
          try {
            const found = await hopscope.source[method](id, question);
            if (found[Symbol.asyncIterator] === undefined) return found;
            const rows = [];
            for await (const row of found) rows.push(row);
            return rows;
          } catch (error) { return error.message; }
        }""",
        [method, ID, question],
    )


@pytest.mark.parametrize("form", [0, 1])
def test_it_opens_from_a_file_and_asks_nobody(
    page: Any, saved: tuple[str, str], requests: list[str], form: int
) -> None:
    opened(page, saved[form])
    page.wait_for_function("() => hopscope.state.maps && hopscope.state.losses")
    assert ask(page, "example", {"index": 9})["about"]["answers"]
    assert all(url.startswith(("file:", "data:")) for url in requests)
    assert form == 0 or [url for url in requests if not url.startswith("data:")] == [saved[1]]
    assert page.evaluate("() => hopscope.state.error") is None


def test_an_address_puts_nothing_into_a_command(page: Any, saved: tuple[str, str]) -> None:
    """What is copied has the heads that the run has; what the address says beside is told once."""
    address = "#/run/gallery-demo?off=1.3:$(touch%20x);1.0:value+0;9.0&head=77.7&step=7&ex=-1"
    opened(page, saved[1], f"{address}&seed=99")
    page.wait_for_function("() => hopscope.state.seed === null && !hopscope.live.busy")
    line = page.get_attribute("#pane-losses .line:not(.python) code", "title")
    words = shlex.split(line)
    assert [words[at + 1] for at, word in enumerate(words) if word == "--head"] == [
        "1.0:value 0=uniform"
    ]
    assert "touch" not in "".join(page.locator(".foot code").all_inner_texts())
    told = page.inner_text(".error")
    for part in ("off=1.3:$(touch x)", "off=9.0", "head=77.7", "step=7", "ex=-1", "seed=99"):
        assert part in told
    page.wait_for_function("() => !location.hash.includes('touch')")
    page.evaluate("() => { location.hash = '#/run/gallery-demo?off=1.2:`x`' }")
    page.wait_for_function("() => hopscope.state.error.text.includes('off=1.2:`x`')")
    assert page.evaluate("() => hopscope.state.off") == []


def test_in_a_notebook_it_lives_in_a_frame(
    page: Any, data: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hopscope.web.bundle.carried", lambda *_: data)
    shown = Frame("gallery/demo", Store(tmp_path), height=700)
    assert repr(shown) == "Frame('gallery/demo', height=700)"
    page.set_content(f"<!doctype html><title>notebook</title>{shown._repr_html_()}")
    (frame,) = page.main_frame.child_frames
    frame.wait_for_function("() => globalThis.hopscope?.state.maps")
    off = {"layer": 1, "head": 0, "reader": "", "as": "uniform"}
    frame.evaluate("(off) => hopscope.state.toggle(off)", off)
    frame.wait_for_function("() => hopscope.state.answer?.changes.length")
    assert frame.evaluate("() => hopscope.state.error") is None


def test_axe_finds_nothing_on_it(page: Any, saved: tuple[str, str]) -> None:
    opened(page, saved[1])
    page.wait_for_function("() => hopscope.state.maps && hopscope.state.example")
    assert complaints_of_axe(page) == []


def test_hostile_words_stay_words(page: Any, saved: tuple[str, str], views: Views) -> None:
    for address in saved:
        opened(page, address)
        page.wait_for_function("() => hopscope.state.maps")
        assert page.evaluate("() => window.pwned") is None
        assert page.locator("img").count() == 0
        title = page.evaluate("() => document.querySelector('h1').textContent")
        assert title == views.run(ID)["name"]
    text = data_script({"x": HOSTILE})
    assert not set("<>&\u2028") & set(text)


def test_switching_a_head_off_moves_the_losses(
    page: Any, saved: tuple[str, str], views: Views
) -> None:
    opened(page, saved[0])
    page.wait_for_function("() => hopscope.state.maps")
    page.evaluate("""() => hopscope.state.set({ off: [
      { layer: 1, head: 0, reader: "", as: "uniform" },
      { layer: 2, head: 1, reader: "query", as: "uniform" },
    ] })""")
    page.wait_for_function("() => hopscope.state.answer?.examples >= 64")
    answer = page.evaluate("() => hopscope.state.answer")
    changes = ("1.0=uniform", "2.1:query=uniform")
    asked = AblateQuestion(changes=changes, examples=answer["examples"])
    answer = {key: answer[key] for key in ("names", "examples", "guess", "clean", "changed")}
    close(answer, views.ablate(ID, asked, lambda: False))


def test_what_was_measured_beforehand(page: Any, saved: tuple[str, str], views: Views) -> None:
    opened(page, saved[1])
    never = lambda: False  # noqa: E731
    for changes in ((), ("1.1=uniform",), ("2.0:query=uniform",)):
        asked = AblateQuestion(step=500, changes=changes)
        expected = views.ablate(ID, asked, never)
        close(ask(page, "ablate", {"step": 500, "changes": [*changes]}), expected)
    costs = list(views.costs(ID, CostsQuestion(step=2400), never))
    close(ask(page, "costs", {"step": 2400}), costs)
    both = {"changes": ["1.1=uniform", "1.2=uniform"], "examples": 16}
    assert [row["step"] for row in ask(page, "overTime", both)] == [2500]
    one = ask(page, "overTime", {"changes": ["1.1=uniform"], "examples": 16})
    assert [row["step"] for row in one] == STEPS


def test_the_first_example_of_every_checkpoint(
    page: Any, saved: tuple[str, str], views: Views
) -> None:
    opened(page, saved[0])
    _, about = unpacked(views.example(ID, ExampleQuestion(step=500)))
    close(ask(page, "example", {"step": 500})["about"], about)


def test_the_whole_demo_takes_less_than_two_megabytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(carried, "KNOWN_EXAMPLES", 2)  # as long as losses on more of them
    file = single(Views(Store(tmp_path / "runs")), ID, tmp_path / "page.html")
    assert 1_000_000 < file.stat().st_size < 2_000_000


def test_an_address_with_another_seed_opens_the_one_that_is_there(
    page: Any, saved: tuple[str, str]
) -> None:
    opened(page, saved[1], f"#/run/{ID}?seed=0")
    page.goto("about:blank")
    page.goto(f"{saved[1]}#/run/{ID}?seed=9")
    page.wait_for_selector(".error:visible")
    assert page.inner_text(".error span").endswith(": seed=9")
    page.wait_for_function("() => hopscope.state.about && hopscope.state.seed === null")


def test_the_mark_goes_back_to_the_first_example(page: Any, saved: tuple[str, str]) -> None:
    opened(page, saved[1], f"#/run/{ID}?ex=5&off=1.3")
    settled(page)
    fifth = page.evaluate("() => hopscope.state.example.json")
    assert fifth["changes"]
    page.click("a.mark")
    page.wait_for_function("() => hopscope.state.run && !hopscope.state.ex")
    settled(page)
    first = page.evaluate("() => hopscope.state.example.json")
    assert "changes" not in first
    assert first["tokens"] == ask(page, "example", {})["about"]["tokens"] != fifth["tokens"]


def test_symbols_are_typed_and_shuffled(page: Any, saved: tuple[str, str], views: Views) -> None:
    """By hand on the page; its answers are the server's."""
    opened(page, saved[1])
    page.wait_for_function("() => hopscope.state.example")
    page.locator(".token").nth(3).dblclick()
    page.keyboard.type("a1")
    page.keyboard.press("Enter")
    page.wait_for_function("() => hopscope.state.example.json.tokens[3].text === 'a1'")
    texts = page.evaluate("() => hopscope.state.tokens")
    asked = ExampleQuestion(tokens=tuple(texts))
    close(page.evaluate("() => hopscope.state.example.json"), unpacked(views.example(ID, asked))[1])
    page.click("text=shuffle")
    page.wait_for_function("() => !hopscope.live.busy")
    assert page.evaluate("() => hopscope.state.error") is None


@pytest.mark.parametrize(
    ("method", "question", "said"),
    [
        ("ablate", {"step": 500, "changes": ["1.0=itself"]}, "at step 500 this page carries no"),
        ("ablate", {"step": 7}, "there is no checkpoint after step 7; there are 500, 2400, 2500"),
        ("example", {"step": 500, "index": 3}, "only its first example can be seen; it computes"),
        ("example", {"step": 500, "tokens": ["a0"]}, "only its first example can be seen"),
        ("example", {"step": 500, "order": 0}, "only its first example can be seen"),
        ("example", {"tokens": ["a9"]}, 'there is no symbol "a9" here; the symbols are a0, a1'),
        ("costs", {"step": 500, "instead": "mean"}, "at step 500 this page carries no weights"),
        ("arrays", "fleet", 'this page carries no arrays "fleet"; it has losses, maps'),
        ("keep", {}, "a saved page keeps no views: copy its address"),
        *((method, {"seed": 9}, "this page holds seed 0 alone") for method in ASKED_OF_A_SEED),
    ],
)
def test_what_it_cannot_answer_is_one_line(
    page: Any, saved: tuple[str, str], method: str, question: Any, said: str
) -> None:
    opened(page, saved[1])
    assert said in ask(page, method, question)


def test_what_cannot_be_written(views: Views, tmp_path: Path) -> None:
    with pytest.raises(RunMissing):
        single(views, "0123456789", tmp_path / "page.html")
    with pytest.raises(ConfigError, match="is a folder; expected the name of a file"):
        single(views, ID, tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="is a file; expected a folder"):
        bundle(views, ID, tmp_path / "file")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file"]


def test_a_page_of_somebody_else_is_not_written_over(
    views: Views, data: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hopscope.web.bundle.carried", lambda *_: data)
    written = bundle(views, ID, tmp_path / "site")
    assert bundle(views, ID, tmp_path / "site") == written  # its own, anew
    mine = tmp_path / "mine"
    mine.mkdir()
    for name in (path.name for path in written):
        (mine / name).write_text("/* mine */")
        with pytest.raises(ConfigError, match=f"{name} is there, and hopscope did not write it"):
            bundle(views, ID, mine)
        assert [path.name for path in mine.iterdir()] == [name]
        with pytest.raises(ConfigError, match="name another file or folder"):
            single(views, ID, mine / name)
        assert (mine / name).read_text() == "/* mine */"
        (mine / name).unlink()
    page = single(views, ID, tmp_path / "page.html")
    assert single(views, ID, page) == page
