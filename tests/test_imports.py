"""Importing does next to nothing, and the light rooms stay light."""

import os
import subprocess
import sys
from importlib import import_module

import pytest

LIGHT = [
    "hopscope", "hopscope.configs", "hopscope.facts", "hopscope.store", "hopscope.theory",
    "hopscope.circuits", "hopscope.circuits.circuit", "hopscope.circuits.emergence",
    "hopscope.circuits.maps", "hopscope.tracing", "hopscope.tracing.contents", "hopscope.workers",
    "hopscope.papers", "hopscope.papers.registry",
    "hopscope.intervals", "hopscope.milestones", "hopscope.cli.main", "hopscope.cli.commands",
    "hopscope.cli.complete",
]  # fmt: skip


@pytest.mark.parametrize("module", LIGHT)
def test_light_modules_import_no_torch(module: str) -> None:
    code = f"import sys, {module}; print('torch' in sys.modules, 'duckdb' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


@pytest.mark.parametrize(
    ("said", "spins"),
    [
        ({}, "10000"),
        ({"GOMP_SPINCOUNT": "7"}, "7"),
        ({"OMP_WAIT_POLICY": "active"}, "None"),
    ],
)
def test_threads_wait_briefly_unless_the_user_has_said_how(
    said: dict[str, str], spins: str
) -> None:
    free = {k: v for k, v in os.environ.items() if k not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}
    code = "import os, hopscope; print(os.environ.get('GOMP_SPINCOUNT'))"
    done = subprocess.run(
        [sys.executable, "-c", code], env=free | said, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == spins


def test_the_main_flow_is_at_the_top() -> None:
    import hopscope

    for name in hopscope.__all__:
        assert getattr(hopscope, name).__name__ == name
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        hopscope.nothing  # noqa: B018


@pytest.mark.parametrize("name", ["circuits", "tracing"])
def test_every_name_of_a_room_is_found_where_it_lives(name: str) -> None:
    room = import_module(f"hopscope.{name}")
    assert set(room.__all__) == set(room._HOME)
    for name in room.__all__:
        assert getattr(room, name).__name__ == name
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        room.nothing  # noqa: B018


@pytest.mark.parametrize(
    ("room", "old", "new"),
    [
        ("circuits", "Bench", "Ablator"),
        ("circuits", "Probe", "Exam"),
        ("circuits", "probe_of", "exam_of"),
        ("facts", "Path", "hopscope.theory"),
    ],
)
def test_earlier_names_still_work_and_say_the_new_ones(room: str, old: str, new: str) -> None:
    with pytest.warns(DeprecationWarning, match=new):
        found = getattr(import_module(f"hopscope.{room}"), old)
    assert found.__name__ == (old if room == "facts" else new)


def test_dir_lists_what_there_is() -> None:
    import hopscope

    assert dir(hopscope) == sorted([*hopscope.__all__, "__version__"])
    assert all(hasattr(hopscope, name) for name in dir(hopscope))
