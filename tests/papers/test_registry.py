"""Targets and presets of all papers: how they are found, what they say of themselves, and that what
is committed is what they say.
"""

import json
import re
import shlex
from collections import Counter
from pathlib import Path

import pytest

from hopscope.cli.main import run
from hopscope.configs import Experiment, Retrieval, read_recipe
from hopscope.errors import ConfigError
from hopscope.papers import preset, presets
from hopscope.papers.experiment import PROTOCOLS
from hopscope.papers.musat.claims import REASONS
from hopscope.papers.preset import OURS, Preset
from hopscope.papers.registry import PAPERS
from hopscope.papers.results import COMPUTED
from hopscope.papers.tasks import presets as presets_of_tasks
from hopscope.theory import flow

REPOSITORY = Path(__file__).parents[2]
ROOT = REPOSITORY / "results"
MEASURED = pytest.mark.skipif(not ROOT.is_dir(), reason="no results in this checkout")


def names(pattern: str) -> list[str]:
    return [each.name for each in PAPERS.matching(pattern)]


def test_experiments_are_found_by_name_paper_and_beginning() -> None:
    assert names("musat/fig5") == ["musat/fig5"]
    assert names("musat/fig4") == [
        "musat/fig4-ic", "musat/fig4-nonic", "musat/fig4-seeds", "musat/fig4-nonic-seeds",
    ]  # fmt: skip
    assert names("musat/variants") == ["musat/variants"]
    assert names("musat/variant") == ["musat/variants", "musat/variants-long"]
    assert names("musat") + names("chen") == names("") == list(PAPERS.experiments)
    for pattern, answer in (
        ("musat/fig5 ", r"did you mean musat/fig5, "),
        ("table", "there are musat/fig2, .*, chen/choices$"),
    ):
        with pytest.raises(ConfigError, match=f"no experiment '{pattern}': {answer}"):
            PAPERS.matching(pattern)


def test_every_experiment_says_what_it_is() -> None:
    for name, experiment in PAPERS.experiments.items():
        assert experiment.name == name
        assert all((experiment.shows, experiment.method, experiment.rows)), name
        assert bool(experiment.reduced) == ("reduced" in experiment.recipes), name
        assert all(experiment.runs(protocol) for protocol in experiment.recipes), name
        (*_, only) = experiment.recipes or ("full",)
        assert len(experiment.recipes) == 2 or experiment.nearest("full") == only


def test_every_claim_rests_on_experiments_that_there_are_and_says_how_it_is_judged() -> None:
    for name, claim in PAPERS.claims.items():
        assert claim.id == name
        assert set(claim.sources) <= set(PAPERS.experiments), name
        assert all((claim.needs, claim.says, claim.where, claim.paper, claim.how)), name


def test_every_preset_has_sources_of_its_fields() -> None:
    open_ = {"kind", "seeds", "model.d_head", "training.examples", "descent.records"} | {
        f"training.{name}" for name in
        ("warmup", "precision", "checkpoint_every", "validation_examples", "checkpoint_at")
    }  # fmt: skip
    for name in presets():
        found = preset(name)
        paths = {path for path, _, _ in found.fields()}
        assert set(found.sources) <= paths, name
        if name.startswith(("musat/", "chen/")):
            assert {path for path, _, source in found.fields() if source == OURS} <= open_, name
    made = Preset("mine", "two hops", Experiment(task=Retrieval(hops=2)), {"task.hops": "§6"})
    fields = {name: (value, source) for name, value, source in made.fields()}
    assert fields["task.hops"] == (2, "§6")
    assert fields["model.layers"] == (made.recipe.model.layers, OURS)
    assert set(fields) == set(made.recipe.named())


def test_presets_of_tasks_have_the_fewest_layers_that_theory_gives() -> None:
    for name, found in presets_of_tasks().items():
        task = found.recipe.task
        assert name in (f"task/{task.kind}", "demo")
        graph = task.graph()
        needed = flow(graph, causal=True).minimum
        assert found.recipe.model.layers == max(needed[fact.value] or 0 for fact in graph.facts)
    kept = read_recipe((REPOSITORY / "examples" / "mqar.json").read_text())
    assert presets_of_tasks()["task/mqar"].recipe == kept


def test_the_demo_is_the_run_that_comes_with_hopscope_and_says_why() -> None:
    """Whoever changes it builds the gallery anew."""
    made = preset("demo")
    assert made.recipe.run_name() == "retrieval-d2-l3h4-2cf992db20"
    assert all(reason.startswith("ours: ") for reason in made.sources.values())


@MEASURED
def test_rows_in_the_repository_come_back_to_the_letter_and_are_of_runs_that_are_meant() -> None:
    results = PAPERS.results(ROOT)
    for name, experiment in PAPERS.experiments.items():
        kept = results.measured(name)
        lines = [line for line in results.path(name).read_text().split("\n") if line]
        rows = {row.to_json() for run in kept.values() for row in run.rows}
        assert set(map(type, (row for run in kept.values() for row in run.rows))) == set(
            experiment.rows
        ), name
        assert rows <= {*lines}
        assert len(lines) == sum(1 + len(run.rows) for run in kept.values())
        meant = {run for protocol in PROTOCOLS for run in experiment.runs(protocol)} or {COMPUTED}
        assert {*kept} <= meant, name
        assert any(not table.missing for table in results.tables(name)), name


@MEASURED
def test_the_verdicts_in_the_repository_are_counted_costed_and_explained() -> None:
    """README counts the papers' claims alone."""
    judged = PAPERS.judged("", PAPERS.results(ROOT))
    count = Counter(found.verdict for claim, found in judged if claim.origin == "paper")
    ours = sum(claim.origin == "ours" for claim, _ in judged)
    words = {
        "reproduced": "reproduced",
        "not reproduced": "not",
        "depends on an open choice": "depend on a choice that they leave open",
        "at smaller scale": "hold at smaller scale",
        "needs larger models": "need larger models",
        "not enough seeds": "need more seeds",
    }
    assert {*count} <= {*words}
    each = ", ".join(f"{count[verdict]} {words[verdict]}" for verdict in words if count[verdict])
    told = f"with a verdict on {count.total()} claims ({each}) and on {ours} of its own"
    assert told in " ".join((REPOSITORY / "README.md").read_text().split())
    for claim, found in judged:
        assert re.search(r" (h|min) of (training|asking)|computed, without", " ".join(found.cost))
        assert (claim.why(found) is not None) == (found.verdict == "not reproduced"), claim.id


ON_THE_GALLERY = [
    name
    for name, reason in REASONS.items()
    if reason.command.startswith("hopscope ablate gallery/")
]


@pytest.mark.slow
@pytest.mark.parametrize("name", ON_THE_GALLERY)
def test_the_experiment_comes_out_so(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    reason = PAPERS.claims[name].reason
    assert run([*shlex.split(reason.command)[1:], "--json"]) == 0
    changed = json.loads(capsys.readouterr().out)[-1]["loss"]
    assert f"{changed:.2f}" in re.findall(r"\d\.\d\d", reason.says)
