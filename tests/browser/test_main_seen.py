"""Everybody can use the page: of every kind and state of run, at any size."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from language import FOUND, KIND, OTHER, benchmark, heads
from short import FLEET, ID

from hopscope.configs import LmCircuit
from hopscope.store import RunFolder, Store
from hopscope.web.mechanism import Traced
from tests.browser.lookers import (
    SOON,
    TOKEN,
    asked,
    check_for_everybody,
    complaints_of_axe,
    held,
    opened,
    pressed,
    ready,
    served,
    table_of,
    until,
)

STATES = {
    "training": ("/run/{training}", ".time"),
    "lm": ("/run/{lm}", ".accuracies"),
    "mechanism": ("/run/{mechanism}", ".shares"),
    "error": ("/run/0000000000", ".error"),
    "ablated": ("/run/gallery-demo?step=800&off=1.3:value+0;2.0", ".scene"),
    "n-gram": ("/run/gallery-ngram?step=20000", ".parameters"),
    "planted": ("/run/gallery-planted?ghost=theory", ".scene"),
    "maximised": ("/run/gallery-demo?pane=circuit", ".scene"),
}
"""Addresses, and what is there when a state is drawn."""
SLOW = ("planted", "maximised")


def of_language_models(store: Store) -> dict[str, RunFolder]:
    """A benchmark with its heads, and a mechanism whose findings are to be patched in."""
    bench = benchmark(store, {"index": 0, "probabilities": {"0": 0.6, "1": 0.2}})
    bench.commit(heads(KIND.label))
    traced = store.create(LmCircuit(model="x", prompts=KIND))
    traced.commit({}, complete=True)
    return {"lm": bench, "mechanism": traced}


@pytest.fixture(scope="module")
def states(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The address of each state."""
    root: Path = tmp_path_factory.mktemp("states")
    begun = Store(root).create(FLEET)
    runs = {**of_language_models(Store(root)), "training": begun}
    ids = {state: folder.name.rpartition("-")[2] for state, folder in runs.items()}
    with pytest.MonkeyPatch.context() as patch, begun.locked(), served(root) as address:
        patch.setattr(Traced, "findings", lambda _: FOUND)
        yield {
            state: f"{address}/#token={TOKEN}&{path.format(**ids)}"
            for state, (path, _) in STATES.items()
        }


def shown(page: Any, states: dict[str, str], name: str) -> None:
    page.goto(states[name])
    page.wait_for_selector(f"{STATES[name][1]}:visible", timeout=SOON)
    ready(page)


SEEN = ".bar > *, .pane header > *, .foot .copy"
CUT = """() => [...document.querySelectorAll("SEEN")].filter((each) => {
  const { left, right, width } = each.getBoundingClientRect();
  return width && each.checkVisibility() && (left < -1 || right > innerWidth + 1);
}).map((each) => each.outerHTML.slice(0, 100))""".replace("SEEN", SEEN)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in STATES]
)
def test_axe_finds_nothing_and_nothing_is_cut(
    page: Any, states: dict[str, str], forgiven: list[str], name: str
) -> None:
    """A window of 1,280 pixels at 200 % is laid out as one of 640."""
    if name == "error":
        forgiven.append("404")  # the browser notes an answer that is no 200
    shown(page, states, name)
    check_for_everybody(page, 1280, 400)
    for width in (640, 2560, 400):
        page.set_viewport_size({"width": width, "height": 800})
        ready(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate(CUT) == []
    if name == "error":
        assert "no run" in page.inner_text(".error")


def test_long_commands_leave_their_buttons_in_sight(page: Any, fleet: tuple[str, Path]) -> None:
    opened(page, fleet[0], f"/run/{ID}")
    assert "hopscope sql" in page.inner_text(".losses .foot")
    for width in (700, 1024, 1200):
        page.set_viewport_size({"width": width, "height": 800})
        ready(page)
        assert page.evaluate(CUT) == []


COLOURS = """() => [...document.querySelectorAll(".heads canvas")].map((each) => {
  const { data } = each.getContext("2d").getImageData(0, 0, each.width, each.height);
  return new Set(data.filter((_, n) => n % 4 === 0)).size;
})"""


def test_what_only_a_colour_says_is_seen_when_colours_are_forced_and_on_paper(
    page: Any, explorer: str
) -> None:
    page.emulate_media(forced_colors="active")
    opened(page, explorer, "/run/gallery-demo")
    assert min(page.evaluate(COLOURS)) > 1
    wanted = page.locator(".swatches i").evaluate_all("(all) => all.map((i) => i.style.cssText)")
    seen = "(all) => all.map((i) => getComputedStyle(i).backgroundColor)"
    assert len({*page.locator(".swatches i").evaluate_all(seen)}) == len({*wanted}) > 2
    page.emulate_media(media="print")
    printed = "(all) => [...new Set(all.map((i) => getComputedStyle(i).printColorAdjust))]"
    for what in (".swatches i", ".symbol i", ".loss i", ".token", ".gone", ".thumb"):
        assert page.locator(what).evaluate_all(printed) == ["exact"], what


def test_axe_finds_nothing_beside_an_error_and_in_tables(page: Any, explorer: str) -> None:
    """And every canvas has a table behind it; what is switched off is seen without colour."""
    opened(page, explorer, "/run/gallery-demo?off=9.9;2.0")
    page.wait_for_selector(".error:visible")
    for pane in page.locator(".pane:visible").all():
        pane.locator(".menu summary").click()
        pane.locator(".menu button:text('Table')").click()
        assert not pane.locator("canvas").count() or pane.locator(".behind td").count() > 10
    assert complaints_of_axe(page) == []
    chip = page.locator('.chip[data-item="2.0"]')
    assert chip.get_attribute("aria-pressed") == "true"
    assert "switched off" in chip.get_attribute("aria-label")
    assert chip.locator(".cross").evaluate("(e) => getComputedStyle(e).visibility") == "visible"


def test_a_run_without_a_checkpoint_says_so_in_every_pane(
    page: Any, states: dict[str, str]
) -> None:
    """Of what is not measured there is no picture and an empty table; nor is anything left of the
    run that was shown before.
    """
    shown(page, states, "ablated")
    assert page.locator(".arcs path").count()
    example = table_of(page, "example")
    assert "attends to 0" in example.inner_text()
    page.click(f".runs a[href='#{states['training'].partition('&')[2]}']")
    page.wait_for_selector(".time .quiet:text('No checkpoint')")
    ready(page)
    assert (page.locator(".arcs path").count(), page.inner_text(".time .hint")) == (0, "")
    assert "attends" not in example.inner_text()
    told = page.locator(".pane:visible .quiet").all_inner_texts()
    assert "being measured" not in " ".join(told).lower()
    assert told.count("No checkpoint yet.") == 4  # no command: it is being trained
    for pane in ("heads", "losses", "time"):
        table = table_of(page, pane)
        for kind in ("SVG", "PNG"):
            assert page.locator(f"#pane-{pane} .menu button:text('{kind}')[aria-disabled]").count()
        table.locator("table").wait_for()
        assert not table.locator("tbody tr").count()
    assert "step" not in pressed(page, "Space")  # nor is it played


@pytest.mark.parametrize(
    ("name", "label", "chosen"),
    [
        ("lm", "Which kind of question", OTHER.label),
        ("mechanism", "Which symbol is exchanged", "x1…"),
    ],
)
def test_what_is_chosen_of_a_language_model_is_in_the_address(
    page: Any, states: dict[str, str], name: str, label: str, chosen: str
) -> None:
    shown(page, states, name)
    choice = page.get_by_label(label)
    first = choice.input_value()
    choice.select_option(chosen)
    assert asked(page) == {"asked": chosen}
    page.reload()
    page.wait_for_selector(f"{STATES[name][1]}:visible", timeout=SOON)
    ready(page)
    assert choice.input_value() == chosen
    page.go_back()
    ready(page)
    assert choice.input_value() == first


SHIFT = """globalThis.shift = 0;
new PerformanceObserver((list) => { for (const its of list.getEntries()) shift += its.value; })
  .observe({ type: "layout-shift", buffered: true });"""


def test_what_comes_later_moves_nothing(fresh: Any, explorer: str) -> None:
    fresh.add_init_script(SHIFT)
    for width, high in ((400, 900), (1280, 900), (2560, 1400)):
        fresh.set_viewport_size({"width": width, "height": high})
        for run in ("demo", "transformer-a"):
            opened(fresh, explorer, f"/run/gallery-{run}")
            fresh.wait_for_timeout(300)
            assert fresh.evaluate("globalThis.shift") < 0.05, (run, width)


@pytest.mark.slow
def test_layers_without_a_head_of_the_circuit_are_one_line(page: Any, explorer: str) -> None:
    """Until somebody opens them, or switches a head of theirs off."""
    opened(page, explorer, "/run/gallery-transformer-a")
    fold, chips = page.locator(".fold"), page.locator(".chip")
    assert fold.text_content() == "layers 2–3: nothing of the circuit ▸"
    assert chips.count() == 10
    fold.click()
    assert (fold.count(), chips.count()) == (0, 12)
    opened(page, explorer, "/run/gallery-transformer-a?off=3.0")
    assert fold.count() == 0
    page.click(".tray button:text('all on')")
    ready(page)
    assert page.locator('.chip[aria-pressed="true"]').count() == 0


@pytest.mark.slow
def test_what_is_maximised_is_drawn_higher_and_then_as_before(page: Any, explorer: str) -> None:
    page.set_viewport_size({"width": 600, "height": 900})  # no pane is wider alone
    opened(page, explorer, "/run/gallery-demo")
    for pane, drawn in (("circuit", ".scene"), ("time", ".chart")):
        place = page.locator(f"#pane-{pane} {drawn}").first
        heights = [place.bounding_box()["height"]]
        for _ in range(2):
            page.click(f"#pane-{pane} [aria-pressed][title^='Maximise']")
            ready(page)
            heights.append(place.bounding_box()["height"])
        assert heights[0] == heights[2] < heights[1] / 1.3, pane


TWICE = """() => {
  const all = [...document.querySelectorAll("body *")];
  const sizes = all.map((each) => parseFloat(getComputedStyle(each).fontSize));
  all.forEach((each, n) => { each.style.fontSize = `${2 * sizes[n]}px`; });
}"""
LINES = ".hint p, .whose, .readout, .key b span, .now, .now b"
SHORT = """() => [...document.querySelectorAll("LINES")].filter((each) =>
  each.checkVisibility() && each.clientHeight && each.scrollHeight > each.clientHeight + 2
).map((each) => each.outerHTML)""".replace("LINES", LINES)


@pytest.mark.parametrize("width", [390, 1000, 1280, 1400])
def test_letters_twice_as_large_are_not_cut(page: Any, explorer: str, width: int) -> None:
    """By the browser's settings for text alone, as opposed to its zoom. On a narrow page lines
    wrap, and rows of tokens are of one length.
    """
    page.set_viewport_size({"width": width, "height": 900})
    opened(page, explorer, "/run/gallery-demo?off=1.3")
    assert page.inner_text(".whose").startswith("Squares: the changed model")
    assert page.evaluate(SHORT) == []
    if width == 390:
        places = page.eval_on_selector_all(
            ".token", "(all) => all.map((its) => [its.offsetTop, its.offsetWidth])"
        )
        tops = [top for top, _ in places]
        assert [tops.count(top) for top in sorted(set(tops))] == [10, 10]
        assert max(wide for _, wide in places) - min(wide for _, wide in places) <= 1
    page.evaluate(TWICE)
    ready(page)
    assert page.evaluate(SHORT) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_an_example_that_is_not_there_yet_is_announced(
    page: Any, explorer: str, forgiven: list[str]
) -> None:
    """In the room that it will take; and so is why it cannot be there."""
    waits = held(page, "**/example")
    page.goto(f"{explorer}/#token={TOKEN}&/run/gallery-demo")
    line, strip = page.locator(".example .strip .quiet"), page.locator(".strip")
    line.wait_for()
    assert line.inner_text() == "The example is being computed …"
    until(page, lambda: waits)
    high = strip.bounding_box()["height"]  # the page is laid out when it asks
    forgiven.append("422")
    waits[0].fulfill(status=422, json={"error": "no"})
    ready(page)
    assert line.inner_text() == "Not computed: no"
    page.unroute("**/example")
    pressed(page, "n")
    assert (line.is_visible(), strip.bounding_box()["height"]) == (False, high)
