"""The engine answers what a server answers: the same words, the same numbers."""

from typing import Any

import numpy as np
import pytest

from hopscope.circuits import exam_of
from hopscope.errors import CircuitError
from hopscope.web import measuring
from hopscope.web.examples import example
from hopscope.web.questions import AblateQuestion, CostsQuestion, ExampleQuestion
from hopscope.web.tensors import unpacked
from tests.browser.parity import LARGE, SMALL, close, opened

ABLATE = "(asked) => engine.ablate(asked).catch((error) => error.message)"
EXAMPLE = """async (asked) => {
  try {
    const { about, tensors } = await globalThis.engine.example(asked);
    return [about, [...tensors].map(([name, { shape, data }]) => [name, shape, [...data]])];
  } catch (error) { return error.message; }
}"""
COSTS = """async ([asked, paths]) => {
  const rows = [];
  try {
    for await (const row of globalThis.engine.costs(asked, paths)) rows.push(row);
  } catch (error) { return error.message; }
  return rows;
}"""
OF_ALL = (
    (),
    ("0.0=uniform",),
    ("1.0=itself",),
    ("1.0=previous",),
    ("1.0=position",),
    ("0.0=mean",),
    ("0.0=resample", "1.0=uniform"),
    ("1.0=mean", "0.0=position"),
    ("1.0:query=uniform",),
    ("1.0:query=key 0", "1.0:value 0=position", "0.0=resample"),
    ("1.0=value 0>query,key 0>value 0",),
    ("1.0=value 0>query/itself", "0.0:key 0=previous", "0.0:value 0=key 0>value 0"),
)
"""Every kind of change."""


def never() -> bool:
    return False


@pytest.mark.parametrize("name", ["demo", *SMALL])
def test_an_example(page: Any, site: str, name: str) -> None:
    """Drawn, with heads changed, in another order, and typed."""
    run = opened(page, site, name)
    plain = ExampleQuestion(index=7, sample=1)
    changed = plain.model_copy(update={"changes": ("1.0=mean", "0.0:query=position")})
    ordered = changed.model_copy(update={"order": 5})
    texts = [token["text"] for token in unpacked(example(run, 0, ordered))[1]["tokens"]]
    typed = [  # truths are lost and won
        ordered.model_copy(update={"tokens": (*texts[:place], other, *texts[place + 1 :])})
        for place in range(2, len(texts), 4)
        for other in [next(text for text in texts if text != texts[place])]
    ]
    shown = []
    for asked in (plain, changed, ordered, *typed):
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


@pytest.mark.parametrize(
    "name", ["demo", *SMALL, *(pytest.param(name, marks=pytest.mark.slow) for name in LARGE)]
)
def test_losses_with_every_kind_of_change(page: Any, site: str, name: str) -> None:
    """Of the model as it is, and of its circuit."""
    run = opened(page, site, name)
    for circuit in (False, True) if run.circuit else (False,):
        for changes in OF_ALL[:: 3 if circuit or name in LARGE else 1]:
            asked = AblateQuestion(changes=changes, examples=5, sample=2, circuit=circuit)
            found = page.evaluate(ABLATE, asked.model_dump(mode="json"))
            close(found, measuring.ablated(run, 0, asked, never))
            assert changes != OF_ALL[1] or found["clean"] != found["changed"]


def test_costs_of_every_head_and_path(page: Any, site: str) -> None:
    for name, instead in (("demo", "uniform"), ("demo", "mean"), ("recall", "uniform")):
        run = opened(page, site, name)
        asked = CostsQuestion(examples=4, instead=instead)
        paths = [
            {"layer": path.layer, "head": path.head, "reader": str(path.reader)}
            for path in (run.circuit.paths if run.circuit else ())
        ]
        found = page.evaluate(COSTS, [asked.model_dump(mode="json"), paths or None])
        close(found, list(measuring.costs(run, 0, asked, never)))


REFUSED = (
    ("9.0=uniform", "there is no head 9.0; this model has layers 0 … 2"),
    ("1.0", 'the change "1.0" is not understood; expected LAYER.HEAD=WHAT'),
    ("1.0=off", 'the change "1.0=off" is not understood; WHAT is uniform'),
    ("1.0:query=mean", "there is no role"),
    ("1.0:nobody=uniform", 'there is no role "nobody" here; the roles are'),
    ("1.0:key=uniform", 'there is no role "key": roles are key 0'),
    ("1.0=uniform;1.0:query=itself", "head 1.0 is given twice"),
    ("1.0:query=value 0>key 0", "is of the row query, and names key 0"),
    ("1.0=key 0>query,value 0>query", "one role two targets"),
    ("1.0:value 0=query", "1.0: value 0 cannot look at query, which comes after it"),
)


def test_what_cannot_be_done_is_one_line(page: Any, site: str) -> None:
    run = opened(page, site, "demo")
    for changes, said in REFUSED:
        found = page.evaluate(ABLATE, {"changes": changes.split(";")})
        assert said in found, changes
        assert "\n" not in found
    # What reads what comes after it, is refused in the words of the server.
    later = ("1.0=query>value 0,key 0>query",)
    asked = CostsQuestion(changes=later, examples=4)
    with pytest.raises(CircuitError) as refused:
        list(measuring.costs(run, 0, asked, never))
    assert page.evaluate(COSTS, [asked.model_dump(mode="json"), None]) == str(refused.value)
    asked = ExampleQuestion(changes=later).model_dump(mode="json")
    assert page.evaluate(EXAMPLE, asked) == str(refused.value)
    opened(page, site, "k hops")
    for words, said in (
        ("d" * 23, "the sequence has 23 symbols; expected 24"),
        ("e" * 24, 'there is no symbol "e" here; the symbols are a, b, c, d'),
    ):
        assert page.evaluate(EXAMPLE, {"tokens": [*words]}) == said


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
    found = page.evaluate(ABLATE, asked.model_dump(mode="json"))
    close(found, measuring.ablated(run, 0, asked, never))


IN_TURN = """async (asked) => {
  const { finished } = await import("/bench.js"), { changesOf } = await import("/changes.js");
  const bench = await engine.bench(undefined, 0, 40); // more than are computed at once
  const tables = finished(bench.tables());
  const of = (its, text) =>
    its.losses(changesOf([text], new Map(), its.model, its.exam.table), tables);
  const running = asked.map((text) => of(bench, text)), together = running.map(() => null);
  while (together.includes(null))
    running.forEach((steps, n) => {
      const { done, value } = together[n] === null ? steps.next() : {};
      if (done) together[n] = [...value];
    });
  const afterwards = asked.map((text) => [...finished(of(bench, text))]);
  engine.benches.clear();
  const another = await engine.bench(undefined, 0, 40);
  another.keep = () => {}; // there is no room
  return [together, afterwards, asked.map((text) => [...finished(of(another, text))])];
}"""
"""Losses of a bench with each change: computed a step of each at a time, of the same bench
afterwards, and of another that keeps nothing."""


def test_questions_that_are_computed_in_turn_do_not_meet(page: Any, site: str) -> None:
    opened(page, site, "k hops")
    asked = ["0.0=uniform", "2.0=position", "2.1=resample"]
    together, afterwards, alone = page.evaluate(IN_TURN, asked)
    assert together == afterwards == alone


def test_nothing_is_computed_twice_except_what_failed(page: Any, site: str) -> None:
    opened(page, site, "k hops")
    found = page.evaluate("""async () => {
      let drives = 0;
      const asked = { examples: 4, changes: ["1.0=uniform"] };
      const bench = await engine.bench(undefined, 0, 4), losses = bench.losses.bind(bench);
      bench.losses = (changes) => { drives += 1; return losses(changes); };
      for (let n = 0; n < 3; n++) await engine.ablate(asked);
      const { weights } = engine;
      engine.weights = async () => { throw new Error("no weights"); };
      const told = await engine.ablate({ examples: 4, step: 7 }).catch((error) => error.message);
      engine.weights = weights;
      return [drives, told, (await engine.ablate({ examples: 4, step: 7 })).examples];
    }""")
    assert found == [2, "no weights", 4]


def test_a_question_is_given_up_between_steps(page: Any, site: str) -> None:
    """Between which the page is awake."""
    page.goto(f"{site}/blank")
    told = page.evaluate("""async () => {
      const { drive } = await import("/bench.js");
      const giving = new AbortController();
      const slow = (function* () { for (;;) { giving.abort(); yield; } })();
      return drive(slow, giving.signal).catch((error) => error.name);
    }""")
    assert told == "AbortError"
