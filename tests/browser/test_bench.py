"""Losses with heads changed are those of `hopscope ablate`, for every kind of change."""

from typing import Any

import pytest
import torch

from hopscope.circuits import Ablation, Ablator, exam_of, subject_of
from hopscope.circuits.changes import changes_of
from hopscope.web.tables import circuit_changes
from tests.browser.parity import LOSSES, NAMES, opened

EXAMPLES = 5
LARGE = ("planted", "transformer-a")
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
    ("1.0=query<value 0,value 0>key 0",),
    ("1.0=query<value 0/itself", "0.0:key 0=previous", "0.0:value 0=value 0<key 0"),
)


@pytest.mark.parametrize("name", NAMES)
def test_losses_are_those_of_torch(page: Any, site: str, name: str) -> None:
    its = opened(page, site, name, EXAMPLES, sample=2)
    ablator = Ablator(subject_of(its.model), exam_of(its.recipe.task, EXAMPLES, 2))
    for texts in OF_ALL[:: 3 if name in LARGE else 1]:
        found = page.evaluate(LOSSES, [texts, []])
        expected = ablator.losses([Ablation.of(changes_of(texts))])[0].double()
        off = (torch.tensor(found).double() - expected.flatten()).abs().max()
        assert off < 1e-4 * max(1.0, float(expected.max())), texts


@pytest.mark.parametrize("name", ["demo", "planted", "transformer-a"])
def test_losses_of_the_circuit(page: Any, site: str, name: str) -> None:
    its = opened(page, site, name, EXAMPLES)
    assert its.circuit is not None
    ablator = Ablator(subject_of(its.model), exam_of(its.recipe.task, EXAMPLES, 0))
    base = dict(its.circuit.ablation().changes)
    for texts in ((), ("1.0:query=uniform",)):
        found = page.evaluate(LOSSES, [texts, circuit_changes(its.circuit)])
        expected = ablator.losses([Ablation.of(changes_of(texts, base))])[0].double()
        off = (torch.tensor(found).double() - expected.flatten()).abs().max()
        assert off < 1e-4


def test_streams_that_do_not_fit_are_computed_again(page: Any, site: str) -> None:
    opened(page, site, "k hops", 6)
    texts = ["2.1=resample", "2.0=position"]
    kept = page.evaluate(LOSSES, [texts, []])
    page.evaluate("() => { globalThis.bench.streams = []; globalThis.bench.keep = () => {}; }")
    assert page.evaluate(LOSSES, [texts, []]) == kept
    assert page.evaluate("() => globalThis.bench.streams.length") == 0


IN_TURN = """async (asked) => {
  const { changesOf } = await import("/changes.js");
  const { model, exam } = globalThis.bench;
  const running = asked.map((text) =>
    globalThis.bench.losses(changesOf([text], new Map(), model, exam.table)));
  const found = running.map(() => null);
  while (found.includes(null))
    running.forEach((steps, n) => {
      const { done, value } = found[n] === null ? steps.next() : {};
      if (done) found[n] = [...value];
    });
  return found;
}"""
"""Losses of a bench with each change, computed a step of each at a time."""


def test_two_questions_that_are_computed_in_turn_do_not_meet(page: Any, site: str) -> None:
    opened(page, site, "k hops", 40)  # more than are computed at once
    asked = ["0.0=uniform", "2.0=uniform"]
    together = page.evaluate(IN_TURN, asked)
    later = page.evaluate(LOSSES, [["1.1=uniform"], []])
    opened(page, site, "k hops", 40)
    for text, found in zip([*asked, "1.1=uniform"], [*together, later], strict=True):
        assert found == page.evaluate(LOSSES, [[text], []]), text


def test_a_question_is_given_up_between_steps(page: Any, site: str) -> None:
    opened(page, site, "k hops", 4)
    told = page.evaluate("""async () => {
      const { drive } = await import("/bench.js");
      const giving = new AbortController();
      const slow = (function* () { for (;;) { giving.abort(); yield; } })();
      return drive(slow, giving.signal).catch((error) => error.name);
    }""")
    assert told == "AbortError"
