"""A saved page opens from a file with the network cut, and is alive: its numbers are torch's.

The run is gallery/demo with two of its checkpoints, under a name that tries to be markup.
"""

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hopscope.errors import ConfigError
from hopscope.store import Store
from hopscope.web import carried
from hopscope.web.bundle import data_script, files_of, write_page
from hopscope.web.frame import Frame
from hopscope.web.questions import AblateQuestion, CostsQuestion, ExampleQuestion
from hopscope.web.tensors import unpacked
from hopscope.web.trained import Trained
from hopscope.web.views import Views
from tests.browser.lookers import asked, bars, complaints_of_axe, pressed, ready
from tests.browser.parity import close

ID, STEPS = "gallery-demo", [500, 2500]
HOSTILE = '</script><img src=x onerror="window.pwned=1">\'\u2028`${window.pwned=2}`'


class Some(Views):
    """The views of a store, in which runs have hostile names and two checkpoints."""

    def run(self, id: str, seed: int | None = None) -> dict[str, Any]:  # noqa: A002
        found = super().run(id, seed)
        named = {
            "name": f"a{HOSTILE}",
            "checkpoints": STEPS,
            "arrays": ["losses", "maps", "contents"],
        }
        found |= named | {"tags": [HOSTILE]}
        found["what"] = HOSTILE
        return found


@pytest.fixture(scope="module")
def views(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Views]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Trained, "steps", property(lambda _: STEPS))
        yield Some(Store(tmp_path_factory.mktemp("runs")))


@pytest.fixture(scope="module")
def data(views: Views) -> dict[str, Any]:
    """What pages carry: of two checkpoints, and the weights of one."""
    return carried.carried(views, ID, room=0)


@pytest.fixture(scope="module")
def saved(
    views: Views, data: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, str]:
    """The addresses of the page as a folder and as one file."""
    folder = tmp_path_factory.mktemp("saved")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hopscope.web.bundle.carried", lambda *_: data)
        write_page(views, ID, folder / "site")
        write_page(views, ID, folder / "page.html")
    return (folder / "site" / "index.html").as_uri(), (folder / "page.html").as_uri()


def opened(page: Any, address: str, rest: str = "") -> None:
    page.context.set_offline(True)
    page.goto(f"{address}{rest}")
    ready(page)


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
    """And hostile words stay words on it."""
    opened(page, saved[form])
    assert ask(page, "example", {"index": 9})["about"]["answers"]
    own = [url for url in requests if not url.startswith(("data:", "blob:"))]
    assert all(url.startswith("file:") for url in own)
    assert form == 0 or own == [saved[1]]
    assert not page.is_visible(".error")
    assert page.evaluate("() => window.pwned") is None
    assert page.locator("img").count() == 0
    assert page.text_content("h1") == f"a{HOSTILE}"
    assert form == 0 or complaints_of_axe(page) == []


def test_what_a_page_carries_cannot_end_its_script() -> None:
    assert not set("<>&\u2028") & set(data_script({"x": HOSTILE}))


def test_an_address_puts_nothing_into_a_command(page: Any, saved: tuple[str, str]) -> None:
    """What is copied has the heads that the run has; what the address says beside is told once."""
    address = "#/run/gallery-demo?off=1.3:$(touch%20x);1.0:value+0;9.0&head=77.7&step=7&ex=256"
    opened(page, saved[1], f"{address}&seed=99")
    line = page.get_attribute("#pane-losses .line:not(.python) code", "title")
    words = shlex.split(line)
    assert [words[at + 1] for at, word in enumerate(words) if word == "--head"] == [
        "1.0:value 0=uniform"
    ]
    assert "touch" not in "".join(page.locator(".foot code").all_inner_texts())
    told = page.inner_text(".error")
    for part in ("off=1.3:$(touch x)", "off=9.0", "head=77.7", "step=7", "ex=256", "seed=99"):
        assert part in told
    assert asked(page) == {"off": "1.0:value 0"}
    page.evaluate("() => { location.hash = '#/run/gallery-demo?off=1.2:`x`' }")
    assert asked(page) == {}
    assert "off=1.2:`x`" in page.inner_text(".error")


@pytest.mark.slow
def test_in_a_notebook_it_lives_in_a_frame(
    page: Any, data: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And so do its links."""
    monkeypatch.setattr("hopscope.web.bundle.carried", lambda *_: data)
    shown = Frame("gallery/demo", Store(tmp_path), height=700)
    page.set_content(f"<!doctype html><title>notebook</title>{shown._repr_html_()}")
    (frame,) = page.main_frame.child_frames
    frame.wait_for_selector('.chip[data-item="1.0"]')
    before = bars(frame)
    frame.click('.chip[data-item="1.0"]')
    assert bars(frame) != before
    assert not frame.is_visible(".error")
    last = frame.get_attribute(".slider", "aria-valuenow")
    for link in (".mark", ".runs li a"):
        frame.focus(".slider")
        page.keyboard.press("Home")
        ready(frame)
        assert frame.get_attribute(".slider", "aria-valuenow") == "0"
        frame.evaluate("(link) => document.querySelector(link).click()", link)
        ready(frame)
        at = (frame.url, frame.get_attribute(".slider", "aria-valuenow"))
        assert at == ("about:srcdoc", last)


def test_losses_with_heads_off_are_the_servers_and_what_is_not_known_is_not_shown(
    page: Any, saved: tuple[str, str], views: Views
) -> None:
    opened(page, saved[0], f"#/run/{ID}?off=1.0;2.1:query")
    changes = ("1.0=uniform", "2.1:query=uniform")
    question = AblateQuestion(changes=changes)
    found = views.shown(ID).ablate(question, lambda: None)
    close(bars(page), found["changed"]["mean"])
    assert page.inner_text(".losses .hint") == "256 fresh examples"
    told = "a saved page cannot measure the changed one"
    assert told in page.inner_text(".whose")  # and its squares are pale
    assert page.locator(".nodes.old").count()
    for key, shown in (("Home", 0), ("End", 2)):
        pressed(page, key)
        assert len(bars(page)) == shown
        told = "Not measured: at step 500 this page carries no weights"
        assert (told in page.inner_text(".bars")) == (not shown)


def test_an_example_of_another_step_is_not_left_on_the_page(
    page: Any, saved: tuple[str, str]
) -> None:
    """Without weights the page has its first example, with nothing off, and says so."""
    opened(page, saved[1], f"#/run/{ID}?off=1.3&ex=2")
    assert page.inner_text(".answers small").endswith("right in this example")
    pressed(page, "Home")
    assert (page.locator(".token").count(), page.inner_text(".answers")) == (0, "")
    told = page.inner_text(".example .strip .quiet")
    assert told.startswith("Not computed: at step 500 this page carries no weights")
    page.evaluate("hopscope.state.set({ ex: 0 })")
    ready(page)
    for where in (".answers small", ".example .hint"):
        assert page.inner_text(where).endswith(", with nothing off")
    assert not page.is_visible(".error")
    assert page.locator(".token").count()


REFUSED = (
    ("ablate", {"step": 500, "changes": ["1.0=itself"]}, "at step 500 this page carries no"),
    ("example", {"step": 500, "index": 3}, "only its first example can be seen; it computes"),
    ("example", {"step": 500, "tokens": ["a0"]}, "only its first example can be seen"),
    ("example", {"tokens": ["a9"]}, 'there is no symbol "a9" here; the symbols are a0, a1'),
    (
        "costs",
        {"step": 500, "changes": ["1.1=uniform"]},
        "at step 500 this page carries no weights",
    ),
    ("run", {"seed": 9}, "this page holds seed 0 alone"),
)


def test_its_answers_are_the_servers(page: Any, saved: tuple[str, str], views: Views) -> None:
    """Computed where it has weights; where not, measured beforehand, of the first example. What it
    cannot answer is one line.
    """
    opened(page, saved[1], f"#/run/{ID}?seed=9")  # of which it holds none, and says so
    assert page.inner_text(".error span").endswith(": seed=9")
    for method, question, said in REFUSED:
        assert said in ask(page, method, question), (method, question)
    never = lambda: None  # noqa: E731
    for changes in ((), ("1.1=uniform",), ("2.0:query=uniform",)):
        question = AblateQuestion(step=500, changes=changes)
        found = ask(page, "ablate", {"step": 500, "changes": [*changes]})
        close(found, views.shown(ID).ablate(question, never))
    costs = list(views.shown(ID).costs(CostsQuestion(step=500), never))
    close(ask(page, "costs", {"step": 500}), costs)
    before = ("1.1=mean", "1.2:query=itself")
    costs = list(views.shown(ID).costs(CostsQuestion(examples=16, changes=before), never))
    close(ask(page, "costs", {"examples": 16, "changes": before}), costs)
    both = {"changes": ["1.1=uniform", "1.2=uniform"], "examples": 16}
    assert [row["step"] for row in ask(page, "overTime", both)] == [2500]
    one = ask(page, "overTime", {"changes": ["1.1=uniform"], "examples": 16})
    assert [row["step"] for row in one] == STEPS
    _, about = unpacked(views.shown(ID).example(ExampleQuestion(step=500)))
    close(ask(page, "example", {"step": 500})["about"], about)
    told = page.evaluate(
        """async (id) => {
          const stop = new AbortController(), { signal } = stop;
          const asked = hopscope.source.ablate(id, { changes: ["0.0=mean"] }, { signal });
          await 0;
          stop.abort();
          return asked.catch((error) => error.name);
        }""",
        ID,
    )
    assert told == "AbortError"


NO_WORKER = (
    "delete globalThis.Worker",
    "globalThis.Worker = class { constructor() { setTimeout(() => this.onerror()); } }",
)


def test_a_worker_computes_or_else_the_page(page: Any, saved: tuple[str, str]) -> None:
    """The page's own thread is not asked for anything but drawing."""
    asked = {"changes": ["1.1=mean"], "examples": 16}
    opened(page, saved[1])
    assert len(page.workers) == 1
    found = ask(page, "ablate", asked)
    for script in NO_WORKER:
        other = page.context.new_page()
        other.add_init_script(script)
        opened(other, saved[0])
        assert ask(other, "ablate", asked) == found
        assert other.workers == []
        other.close()


def test_symbols_are_typed_into_it(page: Any, saved: tuple[str, str], views: Views) -> None:
    """It answers what the model says, and not what is true."""
    opened(page, saved[1])
    texts = page.locator("#pane-example .token b").all_inner_texts()
    place = texts.index("a1", 8)
    page.dblclick(f'.token[data-place="{place}"]')
    page.keyboard.type("c1")
    page.keyboard.press("Enter")
    ready(page)
    assert "symbols of yours: what is true is not known" in page.inner_text("#pane-example .hint")
    assert page.inner_text(".answers h3") == "Answers what is right is not known here"
    texts[place] = "c1"
    _, about = unpacked(views.shown(ID).example(ExampleQuestion(tokens=tuple(texts))))
    shown = page.locator(".answers li span").all_inner_texts()
    assert [each.removeprefix("→ ") for each in shown] == [
        hop["answer"] for answer in about["answers"] for hop in answer["hops"]
    ]
    assert not page.locator("#pane-example button:text('shuffle')").count()


@pytest.mark.slow
def test_the_whole_demo_takes_less_than_two_megabytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(carried, "EXAMPLES", 2)  # losses are as long as of more
    file = write_page(Views(Store(tmp_path / "runs")), ID, tmp_path / "page.html")
    assert 1_000_000 < file.stat().st_size < 2_000_000


def test_what_hopscope_did_not_write_is_not_written_over(
    views: Views, data: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hopscope.web.bundle.carried", lambda *_: data)
    mine = tmp_path / "mine"
    for target in (tmp_path / "page.html", tmp_path / "site"):
        written = write_page(views, ID, target)
        assert write_page(views, ID, target) == written  # its own, anew
    mine.mkdir()
    for name in (path.name for path in files_of(mine)):
        (mine / name).write_text("/* mine */")
        with pytest.raises(ConfigError, match=f"{name} is there, and hopscope did not write it"):
            write_page(views, ID, mine)
        assert [path.name for path in mine.iterdir()] == [name]
        assert (mine / name).read_text() == "/* mine */"
        (mine / name).unlink()
