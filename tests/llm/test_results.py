"""What a benchmark comes to."""

from pathlib import Path

import pytest

from hopscope.configs import Asking, LlmBench, Prompts
from hopscope.llm.kept import answers
from hopscope.llm.local import LocalModel
from hopscope.llm.prompts import question
from hopscope.llm.results import results
from hopscope.llm.work import ask


def test_exact_probabilities_are_renormalised(tmp_path: Path, tiny: LocalModel) -> None:
    chosen = LlmBench(
        model="tiny", prompts=(Prompts(formulation="equations", hops=1, chains=2),), questions=30,
        asking=Asking(template="raw"),
    )  # fmt: skip
    folder = ask(chosen, lambda: tiny, tmp_path)
    (found,) = results(folder)
    assert 0 < found.first < found.acceptance < 1
    assert found.guessing == 0.5
    by_hand = [
        each["probabilities"][each["correct"]] / sum(each["probabilities"].values())
        for each in answers(folder)
    ]
    assert found.accuracy == pytest.approx(sum(by_hand) / 30)
    assert found.interval[0] < found.accuracy < found.interval[1]
    first = question(chosen.prompts[0], 0, 0)
    (chances,) = tiny.probabilities([first.prompt], [first.acceptable])
    kept = answers(folder)[0]["probabilities"]
    assert list(kept.values()) == pytest.approx(chances, rel=1e-4)
