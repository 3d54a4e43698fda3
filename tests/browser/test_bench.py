"""Losses with heads changed are those of `hopscope ablate`, for every kind of change."""

from typing import Any

import pytest
import torch

from hopscope.circuits import Ablation, Ablator, exam_of, subject_of
from hopscope.circuits.changes import changes_of
from hopscope.web.tables import circuit_changes
from tests.browser.parity import LARGE, LOSSES, NAMES, Case, opened

EXAMPLES = 5
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


def check(page: Any, its: Case, ablator: Ablator, texts: Any, *, circuit: bool = False) -> None:
    """The page's losses with these changes of the model, or of its circuit, are torch's."""
    base = dict(its.circuit.ablation().changes) if circuit else {}
    shown = circuit_changes(its.circuit) if circuit else []
    found = torch.tensor(page.evaluate(LOSSES, [texts, shown])).double()
    wanted = ablator.losses([Ablation.of(changes_of(texts, base))])[0].double().flatten()
    assert (found - wanted).abs().max() < 1e-4 * max(1.0, float(wanted.max())), texts


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in LARGE)) for name in NAMES]
)
def test_losses_are_those_of_torch(page: Any, site: str, name: str) -> None:
    its = opened(page, site, name, EXAMPLES, sample=2)
    ablator = Ablator(subject_of(its.model), exam_of(its.recipe.task, EXAMPLES, 2))
    for texts in OF_ALL[:: 3 if name in LARGE else 1]:
        check(page, its, ablator, texts)
    for texts in ((), ("1.0:query=uniform",)) if its.circuit else ():
        check(page, its, ablator, texts, circuit=True)


def test_streams_that_do_not_fit_are_computed_again(page: Any, site: str) -> None:
    opened(page, site, "k hops", 6)
    texts = ["2.1=resample", "2.0=position"]
    kept = page.evaluate(LOSSES, [texts, []])
    page.evaluate("() => { globalThis.bench.streams = []; globalThis.bench.keep = () => {}; }")
    assert page.evaluate(LOSSES, [texts, []]) == kept


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


def test_a_checkpoint_of_another_model_is_refused(page: Any, site: str) -> None:
    opened(page, site, "k hops", 1)
    told = page.evaluate("""async () => {
      const { Transformer } = await import("/transformer.js");
      const { model } = globalThis.bench, told = [];
      const config = { layers: 3, heads: 2, d_model: 32, d_head: 16, d_mlp: 128, norm: true };
      for (const wrong of [{ outputs: 15, layers: 4 }, { outputs: 16 }]) {
        try { new Transformer({ ...config, ...wrong }, model.tensors); }
        catch (error) { told.push(error.message); }
      }
      return told;
    }""")
    assert told == [
        "the checkpoint has no blocks.3.attention_norm.weight",
        "head.weight has the shape [15,32]; this model's is [16,32]",
    ]
