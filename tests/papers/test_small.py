"""Every experiment of both papers at its smallest: from runs to verdicts, figures and the page."""

from dataclasses import replace
from pathlib import Path

import pytest
from chen_rows import TINY

from hopscope.cli.main import run
from hopscope.configs import Experiment, Model, NgramExperiment, Recipe, Retrieval, Training
from hopscope.papers import registry
from hopscope.papers.chen import claims, settings
from hopscope.papers.chen.settings import SETTINGS, first_stage
from hopscope.papers.musat.measure_depth import depth_rows
from hopscope.papers.registry import PAPERS, Registry


def small(hops: int, layers: int, steps: int, *, curriculum: bool = True) -> Experiment:
    """A training of seconds."""
    return Experiment(
        task=Retrieval(hops=hops, position="pair", base=10, curriculum=curriculum),
        model=Model(layers=layers, heads=2, d_model=32, init="fan-in"),
        training=Training(
            steps=steps, batch=32, examples=2**12, lr=2e-3, validate_every=20,
            checkpoint_every=max(1, steps // 10),
        ),
    )  # fmt: skip


def recipes_of(name: str) -> tuple[Recipe, ...]:
    if name == "chen/settings":
        return tuple(NgramExperiment(**changes) for changes in TINY.values())
    if name == "chen/choices":
        return tuple(NgramExperiment(**first_stage(changes)) for changes in TINY.values())
    if name.startswith("chen"):
        return (NgramExperiment(**TINY["the paper's"]),)
    if "fig4" in name:
        return tuple(small(2, n, 100, curriculum="nonic" not in name) for n in (1, 2))
    return (small(1, 2, 400),)


@pytest.fixture
def papers(monkeypatch: pytest.MonkeyPatch) -> Registry:
    """Both papers with tiny models; no language model is asked."""
    for module in (settings, claims):
        monkeypatch.setattr(module, "SETTINGS", {**SETTINGS, **TINY})
    known = {}
    for name, each in PAPERS.experiments.items():
        if name == "musat/depth":
            known[name] = replace(each, compute=lambda: depth_rows(8))
        elif name != "musat/fig2":
            known[name] = replace(each, recipes={"full": lambda name=name: recipes_of(name)})
    judged = {name: its for name, its in PAPERS.claims.items() if "musat/fig2" not in its.needs}
    found = Registry(known, judged)
    monkeypatch.setattr(registry, "PAPERS", found)
    return found


@pytest.mark.slow
def test_every_experiment_goes_from_runs_to_the_page(
    papers: Registry, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = ["--results", str(tmp_path / "found")]
    words = ["--store", str(tmp_path / "runs"), *folder, "--threads", "1"]
    code = run(["papers", "run", *words])
    assert (code, capsys.readouterr().err) == (0, "")
    results = papers.results(tmp_path / "found")
    for name in papers.experiments:
        (table,) = results.tables(name)
        assert not table.missing, name
        assert [*results.path(name).parent.glob(f"{Path(name).stem}-*.svg")], name
    verdicts = {claim.id: found.verdict for claim, found in papers.judged("", results)}
    exact = ("musat/theorem-1", "musat/three-heads-suffice")
    assert [verdicts.pop(name) for name in exact] == ["reproduced"] * 2
    assert {*verdicts.values()} <= {"not enough seeds", "not measured"}  # of one seed each
    page = tmp_path / "page.html"
    assert run(["papers", "report", *folder, "--save", str(page)]) == 0
    assert page.read_text().count("<svg") > 20
    assert run(["papers", "run", *words]) == 0  # nothing is left to do
    assert capsys.readouterr().out.count("nothing to train") == len(papers.experiments)
