"""The table of kinds of run: each recipe names its kind, and nobody else asks for it."""

import pytest
from sums import Sums

from hopscope.configs import Experiment, NgramExperiment, read_recipe
from hopscope.configs.kinds import KINDS, Kind, fetched, kind_of
from hopscope.errors import ConfigError

KIND = Kind(Sums, "nowhere:prepare", "hopscope.runs.view:PlainRun")


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one entry that a kind needs."""
    monkeypatch.setitem(KINDS, "sums", KIND)


def test_parts_are_fetched_by_name_when_they_are_used() -> None:
    assert fetched("hopscope.runs.view:PlainRun").__name__ == "PlainRun"
    with pytest.raises(ModuleNotFoundError):
        fetched(KINDS["sums"].prepare)
    for name, kind in KINDS.items():
        if name != "sums":
            assert callable(fetched(kind.prepare))
            assert callable(fetched(kind.run))


def test_a_recipe_has_the_kind_of_its_own_class() -> None:
    assert kind_of(Sums()) is KIND
    assert kind_of(Experiment()).recipe is Experiment


def test_files_of_recipes_name_their_kind() -> None:
    for recipe in (Sums(), Experiment(), NgramExperiment()):
        assert f'"kind":"{recipe.kind}"' in recipe.written().decode()
        assert read_recipe(recipe.written()) == recipe
        assert read_recipe(recipe.canonical_json()) == recipe
    with pytest.raises(ConfigError, match="a recipe's kind is None; expected one of facts"):
        read_recipe("{}")


def test_a_file_of_a_kind_is_read_by_its_recipe() -> None:
    with pytest.raises(ConfigError, match="Sums.task: unknown field"):
        read_recipe('{"kind": "sums", "task": {}}')
    with pytest.raises(ConfigError, match="kind is 'dreams'; .* llm-mechanism, sums"):
        read_recipe('{"kind": "dreams"}')
