"""`hopscope doctor` on a sound installation, and on ones that are not."""

import json
import shutil
import sys
import tomllib
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import SimpleNamespace

import pytest
from calling import Captured, Patch

from hopscope import extras
from hopscope.cli import health
from hopscope.cli.health import Check, checks
from hopscope.cli.main import run as hopscope
from hopscope.configs import Experiment
from hopscope.models import agreement, native
from hopscope.store import Store

pytestmark = pytest.mark.usefixtures("root")


def found() -> dict[str, Check]:
    return {check.name: check for check in checks(Store())}


def test_here_nothing_is_wrong(root: Path, capsys: Captured) -> None:
    assert hopscope(["doctor"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "no problems found"
    assert hopscope(["doctor", "--json"]) == 0
    looked = {check["name"]: check for check in json.loads(capsys.readouterr().out)}
    assert not [check for check in looked.values() if check["state"] == "wrong"]
    assert looked["kernels"]["found"].partition(";")[0] == native.backend()
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    extras = {*project["optional-dependencies"]} - {"dev"}
    assert {name.removeprefix("extra ") for name in looked if "extra" in name} == extras
    assert not (root / "runs").exists()  # to look makes nothing


def test_a_damaged_run_or_store_is_wrong(root: Path, capsys: Captured) -> None:
    folder = Store().create(Experiment())
    Store().create(Experiment(seeds=(1,)))
    (folder.path / "config.json").unlink()
    assert hopscope(["doctor"]) == 1
    out = capsys.readouterr().out
    assert "1 damaged, 1 stopped" in out
    assert f"{folder.path / 'config.json'} is missing" in out
    assert out.splitlines()[-1].startswith("1 of ")
    other = Store(root / "other")
    for seed in range(2):
        (other.create(Experiment(seeds=(seed,))).path / "config.json").unlink()
    (todo,) = (check.todo for check in checks(other) if check.name == "runs")
    assert todo.endswith(f"(and 1 more: `hopscope runs --store {other.root}`)")
    shutil.rmtree(root / "runs")
    (root / "runs").write_text("")
    looked = found()
    assert (looked["store"].state, looked["runs"].state) == ("wrong", "wrong")
    assert "expected a folder of runs" in looked["runs"].found


def test_a_machine_that_could_do_better_says_how(monkeypatch: Patch) -> None:
    off = agreement.Agreement("amx", 0.3, 0.01)
    monkeypatch.setattr(agreement, "agreements", lambda: [off])
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=2**20))
    monkeypatch.setattr(health, "cores", lambda: 0)
    monkeypatch.setattr(native, "backend", lambda: "amx")
    monkeypatch.setattr(native, "why_none_better", lambda: "not compiled: install gcc")
    looked = found()
    for name, state, text in (
        ("agreement", "wrong", "HOPSCOPE_KERNELS=torch"),
        ("disk", "wrong", "free some space"),
        ("threads", "note", "OMP_NUM_THREADS=0"),
        ("kernels", "note", "install gcc"),
    ):
        assert looked[name].state == state
        assert text in looked[name].todo
    assert looked["agreement"].found.startswith("amx 30.00% off float64")
    monkeypatch.setattr(native, "why_none_better", lambda: "the processor has no AMX")
    assert health.kernels() == Check("kernels", "amx; the processor has no AMX")


def test_kernels_that_cannot_be_had_are_wrong(monkeypatch: Patch) -> None:
    monkeypatch.setenv(native.VARIABLE, "gpu")
    looked = found()
    assert looked["kernels"].state == "wrong"
    assert "got 'gpu', expected amx, avx512 or torch" in looked["kernels"].found


def test_torch_that_cannot_be_loaded_is_wrong_and_stops_nothing(monkeypatch: Patch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    looked = found()
    assert looked["torch"].state == "wrong"
    assert "install torch again" in looked["torch"].todo
    assert "agreement" not in looked
    assert looked["runs"].state == "fine"


VERSIONS = {"torch": "2.10.1", "numpy": "2.0.0", "gguf": "0.17.1+local"}
NEEDED = [
    "torch>=2.11", "numpy>=2", "duckdb>=1.3", 'gguf>=0.17; extra == "lm"',
    'httpx>=0.28; extra == "lm"',
    f'triton>=3.6; sys_platform == "{sys.platform}" and extra == "dev"',
    'pywin32>=1; sys_platform == "elsewhere"',
]  # fmt: skip


def installed(name: str) -> str:
    if name not in VERSIONS:
        raise PackageNotFoundError(name)
    return VERSIONS[name]


def test_packages_that_are_missing_or_too_old(monkeypatch: Patch) -> None:
    monkeypatch.setattr(extras, "requires", lambda _: NEEDED)
    monkeypatch.setattr(extras, "version", installed)
    monkeypatch.setattr(health, "version", installed)
    assert health.needs().state == "wrong"
    assert health.needs().found == "torch is 2.10.1, expected >=2.11, duckdb is missing"
    assert health.extra("lm") == Check(
        "extra lm", "not installed (httpx is missing)",
        "to use it: python -m pip install 'httpx>=0.28'",
    )  # fmt: skip
    assert extras.install_extra("lm") == "python -m pip install 'gguf>=0.17' 'httpx>=0.28'"
    assert health.frames().state == "note"
    monkeypatch.setitem(VERSIONS, "pandas", "3.0")
    assert health.frames() == Check("data frames", "pandas 3.0")
    here = {"torch": "2.13.0+cpu", "numpy": "2.4.0", "duckdb": "1.5.0.dev1"}
    monkeypatch.setattr(extras, "version", here.__getitem__)  # of others only developers have need
    assert health.needs() == Check("packages", "all requirements are installed")
    monkeypatch.setattr(extras, "requires", installed)  # not installed: it knows no packages
    assert extras.install_extra("lm") == "pip install '.[lm]' in the clone of hopscope"
