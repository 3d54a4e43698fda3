"""The engine answers what a server answers: the same words, the same numbers."""

from typing import Any

import numpy as np
import pytest
from asking import wait

from hopscope.web import measuring
from hopscope.web.examples import example
from hopscope.web.questions import AblateQuestion, ExampleQuestion
from hopscope.web.tensors import unpacked
from tests.browser.parity import LARGE, SMALL, STEP, Case, close, opened

ASK = """async ([method, asked]) => {
  try {
    const found = await engine[method](asked);
    if (!found.tensors) return found;
    const { about, tensors } = found;
    return [about, [...tensors].map(([name, { shape, data }]) => [name, shape, [...data]])];
  } catch (error) { return error.message; }
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
    ("1.0:query=itself", "1.0:value 0=position", "0.0=resample"),
    ("1.0:query=previous", "0.0:key 0=itself", "0.0:value 0=uniform"),
    ("1.0:query=mean", "0.0:value 0=resample", "0.0:key 0=itself"),
)
"""Every kind of change."""


def ask(page: Any, method: str, **asked: Any) -> Any:
    return page.evaluate(ASK, [method, {"step": STEP, **asked}])


def check_arrays(tensors: list[Any], arrays: dict[str, np.ndarray]) -> None:
    assert {each for each, _, _ in tensors} == arrays.keys()
    for each, shape, data in tensors:
        assert tuple(shape) == arrays[each].shape
        assert np.abs(np.array(data) - arrays[each].astype(float).ravel()).max() < 1e-3


def check_an_example(page: Any, run: Case) -> None:
    """As it was drawn, and with heads changed."""
    rows = ("0.0:value 0=mean", "1.0:query=resample")
    for changes in ((), ("1.0=mean", "0.0:query=position"), ("0.0=resample",), rows):
        arrays, about = unpacked(example(run.opened, ExampleQuestion(index=7, changes=changes)))
        said, tensors = ask(page, "example", index=7, changes=changes)
        close(said, about)
        check_arrays(tensors, arrays)


def check_other_symbols(page: Any, run: Case) -> None:
    """The answers are the model's; what is true, and whose chain it is, nobody says."""
    _, drawn = unpacked(example(run.opened, ExampleQuestion()))
    texts = [token["text"] for token in drawn["tokens"]]
    texts[1] = texts[3]  # a value, where there are keys and values
    asked = ExampleQuestion(tokens=tuple(texts), changes=("1.0=mean",))
    arrays, about = unpacked(example(run.opened, asked))
    said, tensors = ask(page, "example", tokens=texts, changes=asked.changes)
    check_arrays(tensors, arrays)
    assert [token["text"] for token in said["tokens"]] == texts
    for found, wanted in ((said, about), (said["changes"], about["changes"])):
        for one, other in zip(found["answers"], wanted["answers"], strict=True):
            assert one["position"] == other["position"]
            for own, hop in zip(one["hops"], other["hops"], strict=True):
                close(own, hop | {"truth": None, "right": None, "loss": None})


@pytest.mark.parametrize(
    "name", ["demo", *SMALL, *(pytest.param(name, marks=pytest.mark.slow) for name in LARGE)]
)
def test_examples_and_losses_with_every_kind_of_change(page: Any, site: str, name: str) -> None:
    run = opened(page, site, name)
    if name not in LARGE:
        check_an_example(page, run)
        check_other_symbols(page, run)
    for changes in OF_ALL[:: 3 if name in LARGE else 1]:
        wanted = measuring.ablated(run.opened, AblateQuestion(changes=changes, examples=16), wait)
        found = ask(page, "ablate", changes=changes, examples=16)
        close(found, {key: wanted[key] for key in ("examples", "clean", "changed")})
        assert changes != OF_ALL[1] or found["clean"] != found["changed"]


def test_where_webassembly_is_refused_loops_say_the_same(page: Any, site: str) -> None:
    opened(page, site, "recall")  # whose widths are no multiples of what is computed together
    vectors = ask(page, "ablate", changes=["1.0=itself"])
    opened(page, site, "recall", "blank")
    assert page.evaluate("async () => (await engine.bench(0)).model.room") is None
    loops = ask(page, "ablate", changes=["1.0=itself"])
    assert loops != vectors  # in the last digits
    close(loops, vectors)


REFUSED = (
    ("ablate", {"changes": ["1.0=off"]}, '"1.0=off" changes no head'),
    ("ablate", {"changes": ["1.0=uniform", "1.0:query=itself"]}, "head 1.0 is given twice"),
    ("example", {"tokens": [*"d" * 23]}, "the sequence has 23 symbols; expected 24"),
    ("example", {"tokens": [*"e" * 24]}, 'no symbol "e" here; the symbols are a, b, c, d'),
)


def test_what_cannot_be_done_is_one_line(page: Any, site: str) -> None:
    opened(page, site, "k hops")
    for method, asked, said in REFUSED:
        assert said in ask(page, method, **asked), asked


IN_TURN = """async (asked) => {
  const { drive } = await import("/bench.js");
  const { changesOf, unchanged } = await import("/changes.js");
  const bench = await engine.bench(0);
  const changes = (text) => changesOf([text], unchanged(bench.model.layers));
  const of = (its, text) => its.losses(changes(text), 40); // more than are computed at once
  const running = asked.map((text) => of(bench, text)), together = running.map(() => null);
  while (together.includes(null))
    running.forEach((steps, n) => {
      const { done, value } = together[n] === null ? steps.next() : {};
      if (done) together[n] = value;
    });
  const all = (its) => Promise.all(asked.map((text) => drive(of(its, text))));
  const afterwards = await all(bench);
  engine.benches.clear();
  const another = await engine.bench(0);
  another.room = 0; // nothing is kept
  return [together, afterwards, await all(another)];
}"""
"""Losses of a bench with each change: computed a step of each at a time, of the same bench
afterwards, and of another that keeps nothing."""


def test_questions_that_are_computed_in_turn_do_not_meet(page: Any, site: str) -> None:
    opened(page, site, "k hops")
    asked = ["0.0=uniform", "2.0=position", "2.1=resample"]
    together, afterwards, alone = page.evaluate(IN_TURN, asked)
    assert together == afterwards == alone


def test_nothing_is_computed_twice(page: Any, site: str) -> None:
    opened(page, site, "k hops")
    found = page.evaluate("""async () => {
      const { model } = await engine.bench(0), walked = [];
      const layer = model.layer.bind(model);
      model.layer = (number, ...rest) => { walked.push(number); return layer(number, ...rest); };
      const counts = [];
      for (const changes of [["2.0=mean"], ["2.0=mean"], ["2.0=itself"]]) {
        await engine.ablate({ step: 0, examples: 10, changes });
        counts.push(walked.splice(0).length);
      }
      return counts;
    }""")
    assert found == [5, 0, 1]  # both layers before; the last as it is, what it carries, and changed


def test_a_question_is_given_up_between_steps(blank: Any) -> None:
    """Between which the page is awake."""
    told = blank.evaluate("""async () => {
      const { drive } = await import("/bench.js");
      const giving = new AbortController();
      const slow = (function* () { for (;;) { giving.abort(); yield; } })();
      return drive(slow, giving.signal).catch((error) => error.name);
    }""")
    assert told == "AbortError"
