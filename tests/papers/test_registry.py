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
from hopscope.configs import Experiment, Recipe, Retrieval, read_recipe
from hopscope.errors import ConfigError
from hopscope.papers import demo, preset, presets
from hopscope.papers.claim import Finding
from hopscope.papers.musat.reasons import REASONS
from hopscope.papers.preset import OURS, Preset
from hopscope.papers.registry import PAPERS
from hopscope.papers.table import PROTOCOLS, Protocol
from hopscope.papers.target import Target
from hopscope.papers.tasks import presets as presets_of_tasks
from hopscope.theory import flow

REPOSITORY = Path(__file__).parents[2]
ROOT = REPOSITORY / "results"
MEASURED = pytest.mark.skipif(not ROOT.is_dir(), reason="no results in this checkout")
RUNS: dict[Protocol, tuple[Recipe, ...]] = {
    name: (Experiment(seeds=(seed,)),) for seed, name in enumerate(PROTOCOLS)
}


def names(pattern: str) -> list[str]:
    return [target.name for target in PAPERS.matching(pattern)]


def test_targets_are_found_by_name_paper_and_beginning() -> None:
    assert names("musat/fig5") == ["musat/fig5"]
    assert names("musat/fig4") == [
        "musat/fig4-ic", "musat/fig4-nonic", "musat/fig4-seeds", "musat/fig4-nonic-seeds",
    ]  # fmt: skip
    assert names("musat/readings") == ["musat/readings"]
    assert names("musat/reading") == ["musat/readings", "musat/readings-long"]
    assert names("musat") + names("chen") == names("") == list(PAPERS.targets)
    for pattern, answer in (
        ("musat/fig5 ", r"did you mean musat/fig5, "),
        ("table", "there are musat/fig2, .*, chen/choices$"),
    ):
        with pytest.raises(ConfigError, match=f"no target '{pattern}': {answer}"):
            PAPERS.matching(pattern)


def test_a_protocol_without_runs_takes_the_nearest_better_or_else_lesser() -> None:
    cases: list[tuple[str, Protocol, Protocol]] = [
        ("smoke reduced full", "smoke", "smoke"),
        ("smoke reduced full", "reduced", "reduced"),
        ("reduced full", "smoke", "reduced"),
        ("smoke full", "reduced", "full"),
        ("full", "smoke", "full"),
        ("smoke reduced", "full", "reduced"),
        ("smoke", "reduced", "smoke"),
    ]
    for has, wanted, taken in cases:
        recipes = {name: lambda name=name: RUNS[name] for name in PROTOCOLS if name in has.split()}
        target = Target("musat/x", "x", (), recipes=recipes)
        assert target.runs(wanted) == (taken, RUNS[taken]), (has, wanted)
    computed = {protocol: Target("musat/x", "x", ()).runs(protocol) for protocol in PROTOCOLS}
    assert computed == {"smoke": ("smoke", ()), "reduced": ("full", ()), "full": ("full", ())}


def test_every_target_says_what_it_is_and_smoke_is_small() -> None:
    for name, target in PAPERS.targets.items():
        assert target.name == name
        assert all((target.shows, target.method, target.rows, target.remarks["smoke"])), name
        for protocol in target.recipes:
            taken, recipes = target.runs(protocol)
            assert taken == protocol
            assert len({recipe.digest() for recipe in recipes}) == len(recipes), name
            assert recipes or protocol == "smoke", name
        for recipe in target.runs("smoke")[1]:
            assert recipe.steps <= (400 if isinstance(recipe, Experiment) else 1_500), name
            assert not isinstance(recipe, Experiment) or recipe.model.d_model <= 32, name


def test_every_claim_rests_on_targets_that_there_are_and_says_how_it_is_judged() -> None:
    for name, claim in PAPERS.claims.items():
        assert claim.id == name
        assert set(claim.sources) <= set(PAPERS.targets), name
        assert all((claim.targets, claim.says, claim.where, claim.paper, claim.how)), name


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
        assert task.kind == name.removeprefix("task/")
        graph = task.graph()
        needed = flow(graph, causal=True).minimum
        assert found.recipe.model.layers == max(needed[fact.value] or 0 for fact in graph.facts)
    kept = read_recipe((REPOSITORY / "examples" / "mqar.json").read_text())
    assert presets_of_tasks()["task/mqar"].recipe == kept


def test_the_demo_is_the_run_that_comes_with_hopscope_and_says_why() -> None:
    """Whoever changes it builds the gallery anew."""
    made = demo.preset()
    assert made.recipe.run_name() == "retrieval-d2-l3h4-2cf992db20"
    assert all(reason.startswith("ours: ") for reason in made.sources.values())


@MEASURED
def test_tables_in_the_repository_come_back_to_the_letter() -> None:
    results = PAPERS.results(ROOT)
    for name, target in PAPERS.targets.items():
        table = results.table(name)
        assert set(map(type, table.rows)) == set(target.rows), name
        assert table.to_bytes() == results.path(name).read_bytes(), name
        _, recipes = target.runs(table.protocol)
        assert {*table.runs} == {each.run_name() for each in recipes}, name
    parts = [part for name in PAPERS.targets for part in results.parts(name)]
    assert len(parts) == len([*ROOT.glob("*/*.part.jsonl")])
    for part in parts:
        name = part.target
        assert PROTOCOLS[part.protocol] > PROTOCOLS[results.table(name).protocol]
        assert part.missing
        _, recipes = PAPERS.targets[name].runs(part.protocol)
        assert {*part.runs} < {each.run_name() for each in recipes}
        assert part.to_bytes() == results.part_path(name, part.protocol).read_bytes()


@MEASURED
def test_the_verdicts_in_the_repository_are_counted_costed_and_explained() -> None:
    """As the overview tells them, which a test of its own holds against the tables."""
    lines = (ROOT / "README.md").read_text().splitlines()
    cells = [re.split(r" (?<!\\)\| ", line.strip("| ")) for line in lines if line.startswith("| ")]
    found = {row[0]: row[5:] for row in cells if row[0] in PAPERS.claims}
    assert set(found) == set(PAPERS.claims)
    count = Counter(verdict for verdict, _ in found.values())
    told = (
        f"with a verdict on {count.total()} claims ({count['reproduced']} reproduced, "
        f"{count['not reproduced']} not, {count['under a reading']} under a reading of what they "
        f"leave open, {count['not measured']} not measured on models as large)"
    )
    assert told in " ".join((REPOSITORY / "README.md").read_text().split())
    for name, (verdict, evidence) in found.items():
        cost = re.search(r" (h|min) of (training|asking)|computed, without", evidence)
        assert cost or verdict == "not measured", name
        why = PAPERS.claims[name].why(Finding("", verdict, ""))  # type: ignore[arg-type]
        assert (why is not None) == (verdict == "not reproduced"), name


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
