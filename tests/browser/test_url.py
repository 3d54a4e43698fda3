"""The page's state in its address: back, forward and reload restore it; nonsense is left out."""

from typing import Any

from tests.browser.lookers import asked, opened, pressed, ready

FULL = "/run/gallery-demo?step=500&ex=3&off=1.3:value+0;2.0=itself&head=2.1&kind=others&scale=log"
SEEN = """() => [".losses .hint", ".example .hint", ".tray ul", ".large h3", ".heads .choice"]
  .map((place) => document.querySelector(place).textContent)
  .concat(document.querySelector(".slider").getAttribute("aria-valuetext"))"""
"""What is seen of a state."""


def test_reload_restores_all(page: Any, explorer: str) -> None:
    opened(page, explorer, FULL)
    before, seen = asked(page), page.evaluate(SEEN)
    assert before["off"] == "1.3:value 0;2.0=itself"
    assert seen[-1] == "step 500"
    page.reload()
    assert (asked(page), page.evaluate(SEEN)) == (before, seen)


FITTED = """async (abouts) => {
  const { START, fitted } = await import("/url.js");
  return abouts.map((about) => fitted({ ...START, step: 99 }, about).dropped);
}"""


def test_a_step_is_left_out_where_a_run_has_none_of_it(blank: Any) -> None:
    facts = {"task": {"roles": []}, "checkpoints": [0, 500]}
    abouts: list[Any] = [facts, {}, {"checkpoints": []}, {"checkpoints": [0, 500]}]
    left_out = ["step=99"]
    assert blank.evaluate(FITTED, abouts) == [left_out, left_out, left_out, []]


def test_back_and_forward(demo: Any) -> None:
    for head in ("2.0", "2.1"):
        demo.click(f'.chip[data-item="{head}"]')
    for go, off in ((demo.go_back, "2.0"), (demo.go_back, None), (demo.go_forward, "2.0")):
        go()
        assert asked(demo).get("off") == off
        assert demo.locator(".tray li").count() == bool(off)
    assert pressed(demo, "Home", "n")["ex"] == "1"
    demo.go_back()
    assert asked(demo)["step"] == "0"
    demo.click('.runs a[href="#/run/gallery-planted"]')
    ready(demo)
    assert demo.inner_text("h1") == "gallery/planted"
    demo.go_back()
    assert asked(demo)["off"] == "2.0"
    assert demo.inner_text("h1") == "gallery/demo"


def test_going_back_stops_what_plays(page: Any, explorer: str) -> None:
    opened(page, explorer, "/run/gallery-demo?step=300")
    page.evaluate("location.hash += '&head=1.3'")
    ready(page)
    page.keyboard.press("Space")
    page.wait_for_selector(".slider:not([aria-valuetext='step 300'])")
    page.go_back()
    page.wait_for_timeout(700)  # some steps of what would still be playing
    assert asked(page) == {"step": "300"}
    assert page.inner_text(".play") == "▶"


PARSED = """async (addresses) => {
  const { format, parse } = await import("/url.js");
  return addresses.map((its) => [parse(its), format(parse(its)), parse(format(parse(its)))]);
}"""


def test_addresses_are_read_and_nonsense_is_left_out(blank: Any) -> None:
    odd = "#/run/a%2Fb?step=x&off=1.0;<img>;2.1:q=rm;9&kind=__proto__&ex=-1&pane=%00"
    many = ";".join(f"{n // 64}.{n % 64}" for n in range(640))
    long = f"#/?seed={2**31 - 1}&off={many}&tokens={'+'.join(['ba'] * 4096)}"
    whole = "#/?as=mean&off=1.3:query;1.2:query=resample;1.1:query=itself;1.0"
    addresses = [odd, long, f"#/?seed={2**31}", "#/run/%E0%A4%A", whole]
    found = blank.evaluate(PARSED, addresses)
    (state, _, again), (large, written, _), (none, *_), (broken, *_), (rows, *_) = found
    assert again == state
    assert state["run"] == "a/b"
    assert state["off"] == [
        {"layer": 1, "head": 0, "destination": "", "as": "uniform"},
        {"layer": 2, "head": 1, "destination": "q", "as": "uniform"},
    ]
    assert (state["step"], state["ex"], state["kind"], state["pane"]) == (None, 0, "own", "")
    assert (written, large["seed"], len(large["off"])) == (long, 2**31 - 1, 640)
    assert (none["seed"], broken["run"]) == (None, "")
    ways = [("query", "mean"), ("query", "resample"), ("query", "itself"), ("", "mean")]
    assert [(its["destination"], its["as"]) for its in rows["off"]] == ways
