"""Every program that measures can be started: what it imports is there."""

import importlib
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

from hopscope.circuits import Drawn

ROOT = Path(__file__).parent.parent
IMPORTS = """
import importlib.util, pathlib, sys
sys.path.insert(0, sys.argv[1])
for path in sorted(pathlib.Path(sys.argv[1]).glob("*.py")):
    spec = importlib.util.spec_from_file_location(f"of_{path.stem}", path)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        print(f"{path.name}: {type(error).__name__}: {error}")
"""


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["benchmarks", "results/scripts"])
def test_all_imports_are_there(folder: str) -> None:
    command = [sys.executable, "-c", IMPORTS, str(ROOT / folder)]
    found = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
    assert found.stdout == ""


def test_a_seed_that_is_slow_at_every_point_does_not_widen_a_law(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    slope = importlib.import_module("emergence_laws").slope
    steps = {(context, 32): context * np.array([1, 1, 1, 5, 9.0]) for context in (8, 16, 32)}
    assert slope(steps, 0) == {
        "exponents": [1], "interval": [[1], [1]], "points": 3, "left out": [],
    }  # fmt: skip
    steps[8, 32][4] = np.inf
    assert slope(steps, 0) == {"exponents": [1], "interval": None, "points": 3, "left out": []}
    assert slope(steps | {(64, 32): np.full(5, np.inf)}, 0)["left out"] == [(64, 32)]


@pytest.mark.parametrize(
    "name",
    [
        "two ignored heads",  # left out, since the model does the same without them
        "heads cancel in a layer",  # not left out: one subtracts
        "by place if marked",  # a head that is left out matters only if it brings another mark
        "two ways, condition named",  # what is looked at is of another chain
        "embedding answers 60%, sure",  # right without attention, and above chance by the loss
        "fourth answer known",  # the same, of one answer
        "sink of 90%",  # a mixture, by what the head brings
        "sink that speaks",
        "norm after layers",  # even attention does the work of a row
        "keys of two tokens",
    ],
)
def test_a_misleading_model_is_answered_rightly(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    cases = importlib.import_module("misleading").CASES
    row = next(case for case in cases if case.name == name).row()
    assert row["right"], (row["verdict"], row["components"], row["lacks"])


def test_a_misleading_model_without_a_gap_has_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    its = importlib.import_module("misleading")
    model = its.HandWritten({"a": its.EVEN}, answer=lambda r: 10 * its.same_number(r))
    case = its.Case("embedding", "knows every answer", model, partial(its.known, share=1.0))
    row = case.row()
    assert row["verdict"].startswith("Nothing to recover")
    assert {score[2] for score in row["scores"]} == {None}


def test_an_ignored_head_is_left_out_if_even_attention_does_its_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Head 0.1 attends as 0.0 does. With both even, the look-up is as good; not with both means."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    its = importlib.import_module("misleading")
    model = its.HandWritten(its.PREVIOUS | {"ignored": its.back(1)}, {"a": its.LOOK_UP})
    row = its.plain_case("ignored", "0.1 is ignored", model, its.plain, its.LOOK_UPS).row()
    assert row["right"], (row["verdict"], row["components"], row["lacks"])


def test_a_vote_of_even_attention_is_no_known_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two values, the one that more of the facts have is right more often than by chance."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    its = importlib.import_module("misleading")

    def draw(examples: int, seed: int) -> Drawn:
        facts = its.Facts(examples, seed, facts=8)
        facts.values = its.KEYS + torch.randint(2, (examples, 8), generator=facts.generator)
        return facts.drawn()

    model = its.HandWritten(*its.USUAL)
    row = its.plain_case("few", "usual", model, draw, its.LOOK_UPS, choices=2).row()
    assert row["right"], (row["verdict"], row["components"], row["lacks"])
