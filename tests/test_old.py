"""What earlier versions wrote opens unchanged; samples of it lie in `tests/old`.

    runs-1       folders of format 1, written by the version before format 2
    runs-2       the same trainings, as they are written today
    about-1      the card of a model of the gallery
    results-1    the first rows of tables of results

A format that changes gets samples of its own; none of these is ever written anew.
"""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from hopscope.configs import Experiment, MarkovExperiment, Retrieval
from hopscope.markov.run import MarkovRun
from hopscope.papers.registry import PAPERS
from hopscope.runs import opened, train
from hopscope.store import Store, sql
from hopscope.store.gallery import About
from hopscope.training import Run

OLD = Path(__file__).parent / "old"
FACTS, NGRAM = "retrieval-d1-l1h1-882b9ad3c7", "markov-3-pa12-CWa-724c768583"


def before(folder: Path) -> dict[str, bytes]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.fixture(params=["runs-1", "runs-2"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """A copy, since whoever reads a run may leave a lock beside it."""
    shutil.copytree(OLD / request.param, tmp_path / "runs")
    return Store(tmp_path / "runs")


def test_runs_are_read_as_they_are(store: Store) -> None:
    kept = before(store.root)
    facts, ngram = opened(store.find(FACTS)), opened(store.find(NGRAM))
    assert isinstance(facts, Run)
    assert isinstance(ngram, MarkovRun)
    for run in (facts, ngram):
        assert run.folder.manifest.complete
        assert run.folder.verify() == []
        assert run.recipe.run_name() == run.name
    assert (facts.checkpoints, ngram.checkpoints) == ([0, 2, 4], [0, 6])
    assert facts.losses("train")[0].tolist() == [1, 2, 3, 4]
    assert 0 < facts.final_losses().mean() < 2 * facts.recipe.guess
    assert sum(p.numel() for p in facts.model.parameters()) == 988
    assert ngram.course(0).epochs[-1] == 6
    rows = sql(store, "select run, count(*) from metrics group by run order by run").rows
    assert rows == ((NGRAM, 6), (FACTS, 9))
    assert before(store.root) == kept


def test_they_are_the_runs_that_these_configs_make_today(store: Store) -> None:
    facts, ngram = store.find(FACTS), store.find(NGRAM)
    assert isinstance(facts.recipe, Experiment)
    assert isinstance(ngram.recipe, MarkovExperiment)
    assert facts.recipe.task == Retrieval(hops=1, chains=2)
    for folder in (facts, ngram):  # what is there already is not trained
        assert train(folder.recipe, store).folder.manifest == folder.manifest


def test_a_commit_brings_an_old_run_into_todays_format(store: Store) -> None:
    folder = store.find(FACTS)
    old = {name: folder.read(name) for name in folder.manifest.files}
    folder.commit({"circuit.json": b"{}"})
    again = store.find(FACTS)
    assert again.manifest.format == 2
    assert again.verify() == []
    assert {name: again.read(name) for name in old} == old


def test_the_card_of_a_model() -> None:
    card = About.from_json((OLD / "about-1.json").read_bytes())
    assert not card.trained
    assert "written by hand, not trained" in card.origin


@pytest.mark.parametrize("name", ["musat/order", "chen/settings"])
def test_tables_of_results(name: str) -> None:
    table = PAPERS.results(OLD / "results-1").table(name)
    lines = (OLD / "results-1" / f"{name}.jsonl").read_text().splitlines()
    assert len(table.rows) == len(lines) - 1 > 0
    for row, line in zip(table.rows, lines[1:], strict=True):
        kept = json.loads(line)
        found = json.loads(row.to_json())
        assert {field: found[field] for field in kept} == kept


def test_numbers_of_checkpoints_are_those_of_today() -> None:
    """The same training gives the same weights, on whatever machine the samples are from."""
    old, new = (Run(Store(OLD / each).find(FACTS)) for each in ("runs-1", "runs-2"))
    assert old.recipe == new.recipe
    for name, weight in old.model_at(0).state_dict().items():
        assert np.array_equal(weight.numpy(), new.model_at(0).state_dict()[name].numpy())
