"""The maps of every seed: asked for once, and again when the fleet has learned more."""

from typing import Any

import pytest

BEGIN = """async () => {
  const [{ State }, { fleetPane }] = await Promise.all([import("/state.js"), import("/fleet.js")]);
  const state = new State();
  const source = { pending: [], asked: 0, open: 0 };
  source.arrays = (id, name, seed, { signal }) => new Promise((done, fail) => {
    source.asked += 1;
    source.open += 1;
    let open = 1;
    const settle = (run) => (value) => {
      source.open -= open;
      open = 0;
      run(value);
    };
    const tensors = new Map([["own", { shape: [2, 1, 1, 2, 2], data: new Float32Array(8) }]]);
    source.pending.push({ done: () => settle(done)({ about: null, tensors }), fail: settle(fail) });
    signal.addEventListener("abort", () => settle(fail)(signal.reason));
  });
  document.body.append(fleetPane(state, source).element);
  globalThis.about = (run, ...checkpoints) => ({
    ...{ id: run, name: run, task: { roles: ["query", "key 0"] }, seeds: [3, 4] },
    ...{ arrays: ["fleet"], checkpoints, circuit: null },
  });
  globalThis.show = (...its) => state.set({ run: its[0], about: globalThis.about(...its) }, "none");
  globalThis.answer = (how, value) => source.pending.splice(0).forEach((its) => its[how](value));
  Object.assign(globalThis, { state, source });
}"""
ASKED = """async () => {
  for (let n = 0; n < 5; n++) await new Promise((done) => requestAnimationFrame(done));
  return [source.asked, source.open, state.fleet?.key ?? null];
}"""
"""How often was asked, how many of it are open, and of what the maps are that are shown."""


@pytest.fixture
def fleet(page: Any, site: str) -> Any:
    """A page with the pane alone, which has asked for the maps of a run."""
    page.goto(f"{site}/blank")
    page.evaluate(BEGIN)
    page.evaluate("() => show('a', 0, 10)")
    assert page.evaluate(ASKED) == [1, 1, None]
    return page


def test_it_is_asked_again_when_the_run_has_learned(fleet: Any) -> None:
    fleet.evaluate("() => show('a', 0, 10)")
    assert fleet.evaluate(ASKED) == [1, 1, None]
    fleet.evaluate("() => answer('done')")
    assert fleet.evaluate(ASKED) == [1, 0, "a 0,10"]
    fleet.evaluate("() => show('a', 0, 10)")
    assert fleet.evaluate(ASKED) == [1, 0, "a 0,10"]
    fleet.evaluate("() => show('a', 0, 10, 20)")
    assert fleet.evaluate(ASKED) == [2, 1, "a 0,10"]
    assert fleet.locator(".map").count() == 2  # what is drawn stays until there is better
    fleet.evaluate("() => answer('done')")
    assert fleet.evaluate(ASKED) == [2, 0, "a 0,10,20"]


def test_one_question_at_a_time_and_what_came_meanwhile_after_it(fleet: Any) -> None:
    for last in (20, 30):
        fleet.evaluate("(last) => show('a', 0, 10, last)", last)
        assert fleet.evaluate(ASKED) == [1, 1, None]
    fleet.evaluate("() => answer('done')")
    assert fleet.evaluate(ASKED) == [2, 1, "a 0,10"]
    fleet.evaluate("() => answer('done')")
    assert fleet.evaluate(ASKED) == [2, 0, "a 0,10,30"]


def test_another_run_gives_the_question_up(fleet: Any) -> None:
    fleet.evaluate("() => show('b', 5)")
    assert fleet.evaluate(ASKED) == [2, 1, None]
    fleet.evaluate("() => answer('done')")
    assert fleet.evaluate(ASKED) == [2, 0, "b 5"]
    assert fleet.evaluate("() => state.error ?? null") is None


def test_an_error_is_a_line_until_there_is_an_answer(fleet: Any) -> None:
    fleet.evaluate("() => answer('fail', new Error('no'))")
    assert fleet.evaluate(ASKED) == [1, 0, None]
    assert fleet.evaluate("() => state.error") == {"text": "no", "kind": "fleet"}
    fleet.evaluate("() => show('a', 0, 10, 20)")
    assert fleet.evaluate(ASKED) == [2, 1, None]
    fleet.evaluate("() => answer('done')")
    assert fleet.evaluate(ASKED) == [2, 0, "a 0,10,20"]
    assert fleet.evaluate("() => state.error") is None


@pytest.mark.parametrize(
    ("chosen", "shown"),
    [
        (None, "key 0 ← query"),
        ("query ← key 0", "query ← key 0"),
        ("value 1 ← key 0", "key 0 ← query"),  # of a run that had such roles
    ],
)
def test_a_path_is_looked_at_that_the_run_has(fleet: Any, chosen: str | None, shown: str) -> None:
    fleet.evaluate("(reading) => state.set({ reading }, 'none')", chosen)
    fleet.evaluate("() => answer('done')")
    fleet.evaluate(ASKED)
    assert fleet.get_by_label("Which path").input_value() == shown
