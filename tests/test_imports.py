"""Importing does next to nothing, and what only prints text stays light."""

import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

STEPS = """
import contextlib, importlib, io, json, sys
import hopscope.cli.commands
from hopscope.cli.main import run
from hopscope.errors import HopscopeError

def heavy(*names):
    return sorted({*names} & {*sys.modules})

def called(*words):
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(HopscopeError):
        run(words)

modules, commands = json.loads(sys.argv[1])
called("--help")
found = {"help": heavy("torch", "pydantic", "numpy", "duckdb")}
called("train", "--help")
unused = "packaging", "hopscope.circuits.circuit", "hopscope.web.bundle"
found["train --help"] = heavy(*unused, "torch")
for module in modules:
    importlib.import_module(f"hopscope.{module}")
    found[module] = heavy("torch", "duckdb", "jaxtyping")
for words in commands:
    called(*words)
    found[" ".join(words)] = heavy("torch", "jaxtyping", "matplotlib")
print(json.dumps({step: names for step, names in found.items() if names}))
"""
LIGHT = (
    "configs", "facts", "store", "theory", "circuits", "circuits.circuit", "circuits.emergence",
    "circuits.maps", "circuits.probe", "circuits.ranking", "workers", "papers", "papers.registry",
    "intervals", "milestones",
)  # fmt: skip
TEXT = (
    ("show", "nope"), ("show", "gallery/demo"), ("runs",), ("sql", "select 1 as a"),
    ("circuit", "gallery/demo"), ("circuit", "gallery/demo", "--json"), ("presets", "demo"),
    ("compare", "gallery/demo", "gallery/transformer-a"), ("verify", "gallery/demo"),
    ("papers", "claims", "chen"), ("gallery",), ("lm", "list"), ("papers", "list"),
)  # fmt: skip
"""Commands that print text."""


def printed(code: str, *arguments: str, **environment: str) -> str:
    free = {k: v for k, v in os.environ.items() if k not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}
    command, env = [sys.executable, "-c", code, *arguments], free | environment
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True, timeout=600)
    return done.stdout


def test_what_is_light_loads_no_torch(tmp_path: Path) -> None:
    told = printed(STEPS, json.dumps((LIGHT, TEXT)), HOPSCOPE_STORE=str(tmp_path / "runs"))
    assert json.loads(told) == {}


def test_threads_wait_briefly_unless_the_user_has_said_how() -> None:
    code = "import os, hopscope; print(os.environ.get('GOMP_SPINCOUNT'))"
    assert printed(code) == "5000\n"
    assert printed(code, GOMP_SPINCOUNT="7") == "7\n"
    assert printed(code, OMP_WAIT_POLICY="active") == "None\n"


THREADS = """
import os, threading, time, torch

def started():
    count = lambda: len(os.listdir("/proc/self/task"))
    before, end = count(), time.monotonic() + 30
    import hopscope
    while threading.active_count() == 2 and count() < before + 2 and time.monotonic() < end:
        time.sleep(0.01)
    return count() - before

for said in {}, {"GOMP_SPINCOUNT": "7"}, {"OMP_WAIT_POLICY": "active"}:
    if not os.fork():
        os.environ.update(said)
        print(started(), end=" ", flush=True)
        os._exit(0)
    os.wait()
"""
"""Threads that begin when hopscope is imported in a process that has loaded torch."""


@pytest.mark.skipif(sys.platform != "linux", reason="GNU's OpenMP of torch is asked on Linux alone")
def test_threads_of_a_torch_that_came_first_wait_briefly_too() -> None:
    """More threads than cores are started, which makes OpenMP spin less; one belongs to Python."""
    assert printed(THREADS) == "2 0 0 "


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    for room in ("hopscope", "hopscope.circuits"):
        with pytest.raises(AttributeError, match="no attribute 'nothing'"):
            import_module(room).nothing  # noqa: B018
