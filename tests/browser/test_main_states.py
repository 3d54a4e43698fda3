"""Every kind and state of run opens to something that everybody can use, at any size."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from short import FLEET

from hopscope.configs import LlmBench, LlmMechanism, Prompts
from hopscope.llm.kept import ANSWERS
from hopscope.store import RunFolder, Store
from hopscope.web.mechanism import Traced
from tests.browser.lookers import SOON, TOKEN, complaints_of_axe, pressed, ready, served

KIND = Prompts(formulation="equations", hops=2)
HEADS = {
    "model": "x", "kind": KIND.label, "questions": 4, "correct": 3, "switched_off": None,
    "routes": [{"route": "query → key 0", "purpose": "look-up"}],
    "own": [[[0.1, 0.2], [0.9, 0.1]]], "others": [[[0.1, 0.1], [0.2, 0.1]]], "threshold": [0.3],
}  # fmt: skip
ANSWER = {"kind": KIND.label, "index": 0, "correct": "0", "probabilities": {"0": 0.6, "1": 0.2}}
HALF = {"mean": 0.5, "low": 0.4, "high": 0.6}
PROOF = {"knocked": HALF, "alone": HALF, "everything": HALF, "random": [0.1], "questions": 3}
FOUND = {
    "answered": {"right": 3, "of": 4, "interval": [0.2, 0.9], "guessing": 0.25},
    "roles": ["query", "answer"], "layers": list(range(29)), "verdict": ["look-ups: stacked"],
    "follows": {"x1": [[HALF] * 29] * 2},
    "circuit": [{"name": "1.0", "told": "answer ← value 0"}],
    "proof": [{"exchange": "x1…", **PROOF}], "elsewhere": [],
}  # fmt: skip
PANES = {
    "training": ".time",
    "llm": ".accuracies",
    "mechanism": ".shares",
    "error": ".error",
    "demo": ".scene",
}
"""What is there when a state is drawn."""


def of_language_models(store: Store) -> dict[str, RunFolder]:
    """A benchmark with its heads, and a mechanism whose findings are to be patched in."""
    bench = store.create(LlmBench(model="x", prompts=(KIND,), questions=30))
    line = json.dumps(ANSWER).encode() + b"\n"
    bench.commit({ANSWERS: line, f"heads-{KIND.label}.json": json.dumps(HEADS).encode()})
    traced = store.create(LlmMechanism(model="x", prompts=KIND))
    traced.commit({}, complete=True)
    return {"llm": bench, "mechanism": traced}


@pytest.fixture(scope="module")
def states(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The address of each state."""
    root = tmp_path_factory.mktemp("states")
    begun = Store(root).create(FLEET)
    runs = {**of_language_models(Store(root)), "training": begun}
    ids = {state: folder.name.rpartition("-")[2] for state, folder in runs.items()}
    ids |= {"error": "0000000000", "demo": "gallery-demo"}
    with pytest.MonkeyPatch.context() as patch, begun.locked(), served(Path(root)) as address:
        patch.setattr(Traced, "findings", lambda _: FOUND)
        yield {state: f"{address}/#token={TOKEN}&/run/{id_}" for state, id_ in ids.items()}


def shown(page: Any, states: dict[str, str], name: str) -> None:
    page.goto(states[name])
    page.wait_for_selector(f"{PANES[name]}:visible", timeout=SOON)
    ready(page)


@pytest.mark.parametrize("name", ["training", "llm", "mechanism", "error"])
def test_axe_finds_nothing(
    page: Any, states: dict[str, str], complaints: list[str], name: str
) -> None:
    shown(page, states, name)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        ready(page)
        assert complaints_of_axe(page) == []
    if name == "error":
        assert "no run" in page.inner_text(".error")
        complaints.clear()  # the browser notes an answer that is no 200


def test_a_run_without_a_checkpoint_says_so_in_every_pane(
    page: Any, states: dict[str, str]
) -> None:
    """Of what is not measured there is no picture and an empty table."""
    shown(page, states, "training")
    told = page.locator(".pane:visible .quiet").all_inner_texts()
    assert "being measured" not in " ".join(told).lower()
    assert told.count("No checkpoint yet.") == 3  # somebody trains it, so nobody is told how
    for pane in ("heads", "losses", "time"):
        menu = page.locator(f"#pane-{pane} .menu")
        menu.locator("summary").click()
        for kind in ("SVG", "PNG"):
            page.wait_for_selector(f"#pane-{pane} .menu button:text('{kind}')[aria-disabled]")
        menu.locator("button:text('Table')").click()
        page.wait_for_selector(f"#pane-{pane} .behind table")
        assert not page.locator(f"#pane-{pane} .behind tbody tr").count()
    assert "step" not in pressed(page, "Space")  # nor is it played


CUT = """() => [...document.querySelectorAll(".bar > *, .pane header > *")].filter((each) => {
  const { left, right, width } = each.getBoundingClientRect();
  return width && each.checkVisibility() && (left < -1 || right > innerWidth + 1);
}).map((each) => each.outerHTML.slice(0, 100))"""
ZOOMED = {"200 %": (640, 2), "400 px": (400, 1), "2,560 px": (2560, 1)}
"""A window of 1,280 pixels at 200 % is laid out as one of 640."""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["training", "llm", "mechanism", "demo"])
def test_nothing_is_cut_and_the_page_does_not_scroll_sideways(
    page: Any, states: dict[str, str], name: str
) -> None:
    shown(page, states, name)
    for width, scale in ZOOMED.values():
        page.set_viewport_size({"width": width, "height": 800})
        screen = {"width": width, "height": 800, "deviceScaleFactor": scale, "mobile": False}
        page.context.new_cdp_session(page).send("Emulation.setDeviceMetricsOverride", screen)
        ready(page)
        assert page.evaluate("() => devicePixelRatio") == scale
        assert page.evaluate("() => document.documentElement.scrollWidth") <= width
        assert page.evaluate(CUT) == []
