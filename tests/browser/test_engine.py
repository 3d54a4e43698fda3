"""The engine answers what a server answers: the same words, the same numbers."""

import base64
from typing import Any

import numpy as np
import pytest
from safetensors.torch import save

from hopscope.circuits import Ablator, exam_of, subject_of
from hopscope.configs import MQAR, Experiment, Model, Training
from hopscope.errors import CircuitError
from hopscope.web import measuring
from hopscope.web.examples import example
from hopscope.web.questions import AblateQuestion, CostsQuestion, ExampleQuestion
from hopscope.web.tables import circuit_changes, engine_tables
from hopscope.web.tensors import unpacked
from tests.browser.parity import SMALL, Case, case, close

OPEN = """async ([tables, hops, circuit, weights]) => {
  const { Engine } = await import("/engine.js");
  const { readSafetensors } = await import("/safetensors.js");
  const bytes = Uint8Array.from(atob(weights), (one) => one.charCodeAt(0)).buffer;
  const read = () => readSafetensors(bytes).tensors;
  globalThis.engine = new Engine({ tables, hops, circuit, weights: read });
}"""
EXAMPLE = """async (asked) => {
  const { about, tensors } = await globalThis.engine.example(asked);
  return [about, [...tensors].map(([name, { shape, data }]) => [name, shape, [...data]])];
}"""
COSTS = """async ([asked, paths]) => {
  const rows = [];
  for await (const row of globalThis.engine.costs(asked, paths)) rows.push(row);
  return rows;
}"""


class Opened:
    """A case as the views hold a run."""

    def __init__(self, its: Case) -> None:
        self.its, self.task, self.circuit = its, its.recipe.task, its.circuit
        self.hops = its.recipe.losses_named(0)

    def model(self, step: int) -> Any:
        return self.its.model

    def ablator(self, step: int, examples: int, sample: int) -> Ablator:
        return Ablator(subject_of(self.its.model), exam_of(self.task, examples, sample))

    def spreads(self, keys: list[Any], measure: Any) -> list[Any]:
        """Nothing is remembered."""
        return list(measure(keys))


def opened(page: Any, site: str, name: str) -> Opened:
    run = Opened(case(name))
    page.goto(f"{site}/blank")
    circuit = None if run.circuit is None else circuit_changes(run.circuit)
    weights = base64.b64encode(save(dict(run.its.model.state_dict()))).decode()
    page.evaluate(OPEN, [engine_tables(run.its.recipe), run.hops, circuit, weights])
    return run


@pytest.mark.parametrize("name", ["demo", *SMALL])
def test_an_example(page: Any, site: str, name: str) -> None:
    """Drawn, with heads changed, in another order, and typed."""
    run = opened(page, site, name)
    plain = ExampleQuestion(index=7, sample=1)
    changed = plain.model_copy(update={"changes": ("1.0=mean", "0.0:query=position")})
    ordered = changed.model_copy(update={"order": 2})
    texts = [token["text"] for token in unpacked(example(run, 0, ordered))[1]["tokens"]]
    other = next(text for text in texts if text != texts[2])
    typed = ordered.model_copy(update={"tokens": (*texts[:2], other, *texts[3:])})
    shown = []
    for asked in (plain, changed, ordered, typed):
        arrays, about = unpacked(example(run, 0, asked))
        said, tensors = page.evaluate(EXAMPLE, asked.model_dump(mode="json"))
        close(said, about)
        shown.append([token["text"] for token in said["tokens"]])
        wanted = {"attention", *(["changes.attention"] if asked.changes else [])}
        assert {each for each, _, _ in tensors} == wanted
        for each, shape, data in tensors:
            assert tuple(shape) == arrays[each].shape
            assert np.abs(np.array(data) - arrays[each].astype(float).ravel()).max() < 1e-3
    assert shown[0] == shown[1] != shown[2] != shown[3]


def test_losses_with_intervals(page: Any, site: str) -> None:
    run = opened(page, site, "demo")
    for circuit in (False, True):
        asked = AblateQuestion(changes=("2.1=uniform",), examples=40, sample=3, circuit=circuit)
        found = page.evaluate("(asked) => engine.ablate(asked)", asked.model_dump(mode="json"))
        close(found, measuring.ablated(run, 0, asked, lambda: False))
        assert found["clean"] != found["changed"]


def test_costs_of_every_head_and_path(page: Any, site: str) -> None:
    for name, instead in (("demo", "uniform"), ("demo", "mean"), ("recall", "uniform")):
        run = opened(page, site, name)
        asked = CostsQuestion(examples=4, instead=instead)
        paths = [
            {"layer": path.layer, "head": path.head, "reader": str(path.reader)}
            for path in (run.circuit.paths if run.circuit else ())
        ]
        found = page.evaluate(COSTS, [asked.model_dump(mode="json"), paths or None])
        close(found, list(measuring.costs(run, 0, asked, lambda: False)))


REFUSED = (
    ("9.0=uniform", "there is no head 9.0; this model has layers 0 … 2"),
    ("1.0", 'the change "1.0" is not understood; expected LAYER.HEAD=WHAT'),
    ("1.0=off", 'the change "1.0=off" is not understood; WHAT is uniform'),
    ("1.0:query=mean", "there is no role"),
    ("1.0:nobody=uniform", 'there is no role "nobody" here; the roles are'),
    ("1.0:key=uniform", 'there is no role "key": roles are key 0'),
    ("1.0=uniform;1.0:query=itself", "head 1.0 is given twice"),
    ("1.0:query=key 0<value 0", "is of the row query, and names key 0"),
    ("1.0=query<key 0,query<value 0", "one role two aims"),
    ("1.0:value 0=query", "1.0: value 0 cannot read query, which comes after it"),
)


def test_what_cannot_be_done_is_one_line(page: Any, site: str) -> None:
    run = opened(page, site, "demo")
    ask = "(changes) => engine.ablate({ changes }).catch((error) => error.message)"
    for changes, said in REFUSED:
        found = page.evaluate(ask, changes.split(";"))
        assert said in found, changes
        assert "\n" not in found
    # What reads what comes after it, is refused in the words of the server.
    asked = CostsQuestion(changes=("1.0=value 0<query,query<key 0",), examples=4)
    with pytest.raises(CircuitError) as refused:
        list(measuring.costs(run, 0, asked, lambda: False))
    ask = f"(asked) => ({COSTS})([asked, null]).catch((error) => error.message)"
    assert page.evaluate(ask, asked.model_dump(mode="json")) == str(refused.value)
    ask = f"(asked) => ({EXAMPLE})(asked).catch((error) => error.message)"
    asked = ExampleQuestion(changes=asked.changes)
    assert page.evaluate(ask, asked.model_dump(mode="json")) == str(refused.value)


def test_what_comes_later_may_be_read_where_it_comes_before_or_is_seen(
    page: Any, site: str
) -> None:
    """In others of the 64 examples; and by a model that sees both ways."""
    run = opened(page, site, "without norm, shuffled")
    exam = exam_of(run.task, 8, 0)
    names = np.array([str(role) for role in run.task.roles()])[exam.roles.role]
    later = [list(row).index("value 1") > max(np.flatnonzero(row == "key 0")) for row in names]
    asked = ExampleQuestion(index=later.index(True), changes=("0.0:key 0=value 1",))
    said, _ = page.evaluate(EXAMPLE, asked.model_dump(mode="json"))
    close(said, unpacked(example(run, 0, asked))[1])
    run = opened(page, site, "bidirectional, without MLP")
    asked = AblateQuestion(changes=("0.0:value 0=query",), examples=8)
    found = page.evaluate("(asked) => engine.ablate(asked)", asked.model_dump(mode="json"))
    close(found, measuring.ablated(run, 0, asked, lambda: False))


def test_nothing_is_computed_twice(page: Any, site: str) -> None:
    opened(page, site, "k hops")
    counted = page.evaluate("""async () => {
      let drives = 0;
      const asked = { examples: 4, changes: ["1.0=uniform"] };
      const bench = await engine.bench(undefined, 0, 4), losses = bench.losses.bind(bench);
      bench.losses = (changes) => { drives += 1; return losses(changes); };
      for (let n = 0; n < 3; n++) await engine.ablate(asked);
      return drives;
    }""")
    assert counted == 2


AWAKE = """async (tables) => {
  const { Engine } = await import("/engine.js");
  const engine = new Engine({ tables, hops: ["1"], circuit: null, weights: null });
  engine.model = async () => ({ layers: 1, d_model: 1 });
  let longest = 0, last = performance.now();
  const look = () => {
    longest = Math.max(longest, performance.now() - last);
    last = performance.now();
  };
  const timer = setInterval(look);
  const benches = await Promise.all([engine.bench(0, 0, 128), engine.bench(0, 0, 128)]);
  look();
  clearInterval(timer);
  const { drawn } = await import("/draw.js");
  const begun = performance.now();
  const whole = drawn(tables.task, 0, 128);
  const took = performance.now() - begun;
  const same = benches.every(({ exam }) => exam.inputs.join() === whole.inputs.join());
  return [benches[0] === benches[1], same, longest / took];
}"""
"""Two questions for the same bench: whether they get one, with the examples of the task, and the
longest time that the page slept meanwhile, as a share of what drawing them takes."""


@pytest.mark.slow
def test_the_page_stays_awake_while_examples_are_drawn(page: Any, site: str) -> None:
    recipe = Experiment(
        task=MQAR(alphabet=4096, pairs=8, length=64),
        model=Model(layers=1, heads=1, d_model=16),
        training=Training(steps=1, examples=8, batch=8),
    )
    page.goto(f"{site}/blank")
    one, same, share = page.evaluate(AWAKE, engine_tables(recipe))
    assert (one, same) == (True, True)
    assert share < 0.5


def test_a_bench_that_failed_is_asked_for_again(page: Any, site: str) -> None:
    opened(page, site, "k hops")
    found = page.evaluate("""async () => {
      const { weights } = engine;
      engine.weights = async () => { throw new Error("no weights"); };
      const told = await engine.ablate({ examples: 4 }).catch((error) => error.message);
      engine.weights = weights;
      return [told, (await engine.ablate({ examples: 4 })).examples];
    }""")
    assert found == ["no weights", 4]
