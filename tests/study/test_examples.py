"""No analysis sees an example that a search or its measurement saw, or another analysis."""

from collections.abc import Callable
from contextlib import suppress
from itertools import combinations
from typing import Any

import pytest
from torch import Tensor

from hopscope.circuits import Examples, examples_of
from hopscope.circuits.examples import FIRST_SEED, example_seed
from hopscope.configs import MQAR, Model, Retrieval
from hopscope.errors import NotLearned
from hopscope.models import Transformer
from hopscope.models.planted import planted
from hopscope.study import RunStudy, Study, load
from hopscope.tasks import dataset

Seen = Callable[[Callable[[], Any]], tuple[str, set[bytes]]]
TOGETHER = {"probe", "patch", "baselines"}
"""Patching probes what roles hold, and baselines are held against it on the same pairs."""
FEW, PROBED = 16, 256


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Seen:
    """What something that is done comes to, and every example that models are given meanwhile."""
    given: list[Tensor] = []
    enter = Transformer.enter

    def recorded(self: Transformer, inputs: Tensor) -> Tensor:
        given.append(inputs)
        return enter(self, inputs)

    def during(work: Callable[[], Any]) -> tuple[str, set[bytes]]:
        given.clear()
        result = ""
        with suppress(NotLearned):  # of a model without answers, the examples were seen by then
            result = str(work())
        return result, {example.numpy().tobytes() for inputs in given for example in inputs}

    monkeypatch.setattr(Transformer, "enter", recorded)
    return during


def analyses(study: Study) -> dict[str, Callable[[], Any]]:
    """Every analysis of a study, at the seed that nobody sets."""
    found: dict[str, Callable[[], Any]] = {
        "attention": lambda: study.attention(FEW),
        "ablate": lambda: study.ablate("1.0=position", examples=FEW),  # it estimates tables, too
        "diagnose": lambda: study.diagnose(examples=FEW),
        "probe": lambda: study.probe(PROBED),
        "patch": lambda: study.patch(FEW),
    }
    if study.circuit.tracked:  # a circuit of no path has no emergence
        found["emergence"] = lambda: study.emergence(4)
    if not isinstance(study, RunStudy):  # a run's baselines are those of any model, and slow
        found["baselines"] = lambda: study.baselines(FEW)
    return found


def studied(kind: str) -> Study:
    """A model with a history: of a run; of vectors, or of tokens, from elsewhere."""
    if kind == "run":
        return load("gallery/demo")
    if kind == "vectors":
        its = planted(Retrieval(hops=1, chains=2, dim=64, symbols="sphere"))
        return Study.series({1: its.model, 2: its.model}, its.task)
    task = MQAR(pairs=4, alphabet=64, length=24)
    model = Transformer.seeded(Model(layers=2, heads=1, d_model=8), task.interface(), 0)
    study = Study.series({1: model, 2: model}, task)
    study.discover(examples=FEW, force=True)
    return study


@pytest.mark.parametrize("kind", ["run", "vectors", "tokens"])
def test_every_analysis_has_examples_of_its_own(seen: Seen, kind: str) -> None:
    """And another study of the same model finds the same numbers on them."""
    study = studied(kind)
    seed, sizes = study.circuit.found.seed, study.circuit.found.settings
    searches = (example_seed("search", seed + 1000 * n) for n in range(sizes.searches))
    drawn = [dataset(study.task, *its, "validation").inputs for its in (
        *((its, sizes.examples) for its in searches),
        (example_seed("measurement", seed), sizes.fresh),
    )]  # fmt: skip
    search = {example.numpy().tobytes() for inputs in drawn for example in inputs}
    if kind != "run":  # whose circuit was found before
        assert search == seen(lambda: study.discover(settings=sizes, force=True))[1]
    results = {name: seen(work) for name, work in analyses(study).items()}
    known = {name: examples for name, (_, examples) in results.items()}
    for (one, its), (other, others) in combinations({"search": search, **known}.items(), 2):
        assert {one, other} <= TOGETHER or not its & others, (one, other)
    assert not known["probe"] & seen(lambda: study.probe(PROBED, seed=1))[1]
    if kind == "vectors":
        for name, work in analyses(studied(kind)).items():
            assert str(work()) == results[name][0], name


def test_purposes_differ_for_a_function_that_draws() -> None:
    asked, task = [], Retrieval(hops=1, chains=2)

    def draw(examples: int, seed: int) -> Examples:
        asked.append(seed)
        return examples_of(task, examples, seed)

    seeds = (0, 1, 2, 1000, 2000)  # independent searches are a thousand apart
    for purpose in FIRST_SEED:
        for seed in seeds:
            examples_of(draw, 2, seed, purpose)
    assert len({*asked, *seeds}) == len(asked) + len(seeds)  # training has other seeds, too
