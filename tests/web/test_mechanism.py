"""A run that took a language model apart, as the page asks for it."""

from typing import Any

import pytest

from hopscope.configs import LmCircuit, Prompts
from hopscope.errors import ConfigError
from hopscope.store import Store
from hopscope.web.mechanism import Traced
from hopscope.web.tensors import unpacked
from hopscope.web.views import Views


def made(store: Store, *, complete: bool = True) -> str:
    """The id of such a run."""
    folder = store.create(LmCircuit(model="x", prompts=Prompts(formulation="equations", hops=2)))
    folder.commit({}, complete=complete)
    return folder.name.rpartition("-")[2]


def test_what_was_found_is_read_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    id_, views, read = made(store), Views(store), list[str]()
    found: dict[str, Any] = {"layers": [0, 1], "verdict": ["look-ups: stacked"]}

    def findings(run: Traced) -> dict[str, Any]:
        read.append(run.folder.name)
        return found

    monkeypatch.setattr(Traced, "findings", findings)
    assert views.shown(id_).at_hand("findings") is None
    assert unpacked(views.shown(id_).arrays("findings")) == ({}, found)
    assert views.shown(id_).at_hand("findings") == views.shown(id_).arrays("findings")
    assert len(read) == 1


def test_nothing_is_found_before_all_is_measured(store: Store) -> None:
    id_, views = made(store, complete=False), Views(store)
    assert views.run(id_)["arrays"] == []
    with pytest.raises(ConfigError, match="no arrays 'findings'; this one has none yet"):
        views.shown(id_).arrays("findings")
