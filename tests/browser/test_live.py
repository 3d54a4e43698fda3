"""What is asked, and when it is given up: with a source that answers when it is told to.

Its streams give a row every few milliseconds and are deaf to who gives them up, as those of a saved
page may be.
"""

from typing import Any

import pytest

ROWS = 30
SOON = 10_000
"""Milliseconds."""
BEGIN = """async (rows) => {
  const [{ State }, { Live }] = await Promise.all([import("/state.js"), import("/live.js")]);
  const state = new State();
  async function* stream() {
    for (let n = 0; n < rows; n++) {
      await new Promise((done) => setTimeout(done, 10));
      yield n;
    }
  }
  const maps = (steps) => [
    ["steps", { data: steps }],
    ["own", { shape: [steps.length, 1, 1, 1, 1], data: steps }],
  ];
  const source = {
    steps: [0, 10],
    pending: [],
    asked: 0,
    run: async (id) => ({
      ...{ id, task: { roles: ["query"] }, checkpoints: source.steps, emerged: {} },
      ...{ model: { layers: 1, heads: 1 }, arrays: ["maps"], at_hand: [] },
    }),
    arrays: (id, name, seed, { signal }) => new Promise((done, fail) => {
      const tensors = new Map(maps(source.steps));
      source.asked += 1;
      source.pending.push(() => done({ about: null, tensors }));
      signal.addEventListener("abort", () => fail(signal.reason));
    }),
    example: async () => ({ about: {}, tensors: new Map() }),
    ablate: async () => ({}),
    overTime: stream,
    costs: stream,
  };
  Object.assign(globalThis, { state, source, live: new Live(state, source) });
  globalThis.answer = () => source.pending.splice(0).forEach((give) => give());
  state.set({ run: "a", off: [{ layer: 0, head: 0, reader: "", as: "uniform" }] }, "none");
}"""


@pytest.fixture
def live(page: Any, site: str) -> Any:
    """A page with `live`, its `state` and its `source`, which has given the maps of a run."""
    page.goto(f"{site}/blank")
    page.evaluate(BEGIN, ROWS)
    until(page, "source.pending.length")
    page.evaluate("() => answer()")
    until(page, "state.maps && state.example && !live.busy")
    return page


def until(page: Any, told: str) -> None:
    page.wait_for_function(f"() => {told}", timeout=SOON)


def at_once(page: Any, begin: str, told: str, act: str) -> Any:
    """Begin, and as soon as this is so, do that, and say what follows: no row comes between."""
    return page.evaluate(
        f"""async () => {{
          {begin}
          while (!({told})) await new Promise((done) => setTimeout(done));
          {act}
        }}"""
    )


def frames(page: Any, number: int = 10) -> None:
    """Let some frames pass, in which a row of a stream would come."""
    page.evaluate(
        """async (number) => {
          for (let n = 0; n < number; n++) await new Promise((done) => requestAnimationFrame(done));
        }""",
        number,
    )


CHANGES = {
    "step": ("costs", "costs", "{ step: 0 }"),
    "switches, costs": ("costs", "costs", "{ off: [] }"),
    "switches, over time": ("overTime", "overTime", "{ off: [] }"),
}


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("done", [True, False])
def test_a_stream_ends_with_what_it_is_of(live: Any, name: str, done: bool) -> None:
    method, key, change = CHANGES[name]
    live.evaluate(f"() => live.{method}() && null")
    until(live, f"state.{key}?.length >= {ROWS if done else 1}")
    live.evaluate(f"() => state.set({change}, 'none')")
    until(live, f"state.{key} === null")
    frames(live)
    assert live.evaluate(f"() => [state.{key}, state.working]") == [None, ""]


def test_curves_over_time_are_of_every_step(live: Any) -> None:
    live.evaluate("() => live.overTime() && null")
    until(live, "state.overTime?.length")
    live.evaluate("() => state.set({ step: 0 }, 'none')")
    until(live, f"state.overTime.length === {ROWS} && !state.working")


def test_what_is_asked_right_after_a_change_is_of_it(live: Any) -> None:
    live.evaluate("() => { state.set({ off: [], step: 0 }, 'none'); live.costs(); }")
    until(live, f"state.costs?.length === {ROWS} && !state.working")


def test_each_stream_is_stopped_by_itself(live: Any) -> None:
    begin = "live.overTime(); live.costs(); const both = state.working;"
    begun = "state.costs.length && state.overTime.length"
    said = at_once(live, begin, begun, "live.overTime(); return [both, state.working]")
    assert said == ["over-time costs", "costs"]
    until(live, f"state.costs.length === {ROWS} && !state.working")
    assert live.evaluate("() => state.overTime.length") < ROWS


def test_a_stream_that_is_stopped_can_be_asked_for_at_once(live: Any) -> None:
    again = "live.costs(); live.costs(); return [state.working, state.costs.length]"
    assert at_once(live, "live.costs();", "state.costs.length", again) == ["costs", 0]
    until(live, f"state.costs.length === {ROWS} && !state.working")
    assert live.evaluate("() => new Set(state.costs).size") == ROWS


def test_streams_go_on_when_their_model_has_learned(live: Any) -> None:
    live.evaluate("() => { live.overTime(); live.costs(); }")
    until(live, "state.costs.length && state.overTime.length")
    live.evaluate("() => live.openRun() && null")
    until(live, "state.opening === false || source.pending.length")
    live.evaluate("() => answer()")
    until(live, f"state.costs.length === {ROWS} && state.overTime.length === {ROWS}")
    live.evaluate("() => live.costs() && null")
    live.evaluate("() => state.set({ run: 'b' }, 'none')")
    until(
        live, "state.about.id === 'b' && state.working === ''"
    )  # a deaf stream ends with its next row
    assert live.evaluate("() => [state.costs, state.overTime]") == [None, None]


def test_what_is_drawn_stays_until_the_new_maps_are_there(live: Any) -> None:
    """And a checkpoint that comes meanwhile gives no question up: it waits for its turn."""
    shown = "() => [state.steps, state.maps.steps, state.about.checkpoints, source.asked]"
    before = [[0, 10], [0, 10], [0, 10]]
    assert live.evaluate(shown) == [*before, 1]
    live.evaluate("() => { source.steps = [0, 10, 20]; live.openRun(); }")
    until(live, "source.pending.length")
    assert live.evaluate(shown) == [*before, 2]
    live.evaluate("() => { source.steps = [0, 10, 20, 30]; live.openRun(); live.openRun(); }")
    frames(live)
    assert live.evaluate(shown) == [*before, 2]
    live.evaluate("() => answer()")
    until(live, "source.pending.length")
    assert live.evaluate(shown) == [*[[0, 10, 20]] * 3, 3]
    live.evaluate("() => answer()")
    until(live, "!live.busy")
    assert live.evaluate(shown) == [*[[0, 10, 20, 30]] * 3, 3]


def test_another_run_gives_the_maps_up(live: Any) -> None:
    live.evaluate("() => live.openRun() && null")
    until(live, "source.pending.length")
    live.evaluate("() => { source.pending = []; state.set({ run: 'b' }, 'none'); }")
    until(live, "source.pending.length")
    assert live.evaluate("() => [state.about.id, state.maps]") == ["b", None]
    live.evaluate("() => answer()")
    until(live, "state.maps && !live.busy")


def test_what_was_chosen_stays_with_its_run(live: Any) -> None:
    chosen = "() => [state.asked, state.reading]"
    live.evaluate("() => state.set({ asked: 'x1', reading: 'query ← query', seed: 3 }, 'none')")
    until(live, "source.pending.length")
    live.evaluate("() => answer()")
    until(live, "state.maps && !live.busy")
    assert live.evaluate(chosen) == ["x1", "query ← query"]  # another model of the same run
    live.evaluate("() => state.set({ run: 'b' }, 'none')")
    until(live, "state.about.id === 'b'")
    assert live.evaluate(chosen) == [None, None]
