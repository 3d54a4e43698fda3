"""`hopscope doctor` on a sound installation, and on ones that are not."""

import json
import shutil
import sys
import tomllib
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import SimpleNamespace
from typing import NoReturn
from unittest.mock import Mock

import pytest
import torch

from hopscope.cli import health
from hopscope.cli.health import Check, checks
from hopscope.cli.main import run as hopscope
from hopscope.configs import Experiment
from hopscope.errors import ConfigError
from hopscope.models import agreement, compiled
from hopscope.store import Store

Captured = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch


@pytest.fixture(autouse=True)
def folder(root: Path) -> Path:
    return root


def found() -> dict[str, Check]:
    return {check.name: check for check in checks(Store())}


def test_here_nothing_is_wrong(root: Path, capsys: Captured) -> None:
    assert hopscope(["doctor"]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[-1] == "nothing is wrong"
    rows = [line.split() for line in out.splitlines()]
    ((state, path),) = [(row[0], row[2]) for row in rows if row[1:2] == ["kernels"]]
    assert state in ("fine", "note")  # there may be a better path, which this processor lacks
    assert path.rstrip(";") == compiled.path()
    assert not (root / "runs").exists()  # to look makes nothing


def test_json_is_an_object_for_each_check_and_extra(capsys: Captured) -> None:
    assert hopscope(["doctor", "--json"]) == 0
    looked = json.loads(capsys.readouterr().out)
    assert not [check for check in looked if check["state"] == "wrong"]
    names = {check["name"] for check in looked}
    assert names >= {
        "Python", "packages", "torch", "device", "threads", "kernels", "agreement", "data frames",
        "store", "disk", "runs",
    }  # fmt: skip
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    extras = {*project["optional-dependencies"]} - {"dev"}
    assert {name.removeprefix("extra ") for name in names if "extra" in name} == extras


def test_a_damaged_run_is_wrong(capsys: Captured) -> None:
    folder = Store().create(Experiment())
    Store().create(Experiment(seeds=(1,)))
    (folder.path / "config.json").unlink()
    assert hopscope(["doctor"]) == 1
    out = capsys.readouterr().out
    assert "1 damaged, 1 stopped" in out
    assert f"{folder.path / 'config.json'} is missing" in out
    assert out.splitlines()[-1].startswith("1 of ")


def test_a_store_that_cannot_be_read_is_wrong(root: Path) -> None:
    Store().create(Experiment())
    (root / "runs" / "tags.json").write_text("{")
    assert found()["runs"].state == "wrong"
    assert "tags.json holds no tags" in found()["runs"].todo
    shutil.rmtree(root / "runs")
    (root / "runs").write_text("")
    looked = found()
    assert (looked["store"].state, looked["runs"].state) == ("wrong", "wrong")
    assert "expected a folder of runs" in looked["runs"].found


def test_a_disk_that_is_full_is_wrong(monkeypatch: Patch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=2**20))
    assert found()["disk"] == Check("disk", "wrong", "0.00 GiB free", "free some space")


def test_a_gpu_is_named_with_what_computes_on_it(monkeypatch: Patch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "some GPU")
    monkeypatch.setattr(compiled, "why_no_triton", lambda device: "")
    assert health.device() == Check("device", "fine", "some GPU, bf16 unless told, by triton")
    why = "Triton runs no kernel here: install gcc"
    monkeypatch.setattr(compiled, "why_no_triton", lambda device: why)
    found = "some GPU, bf16 unless told, by torch; Triton runs no kernel here"
    assert health.device() == Check("device", "note", found, "install gcc")


def test_kernels_that_disagree_are_wrong(monkeypatch: Patch) -> None:
    off = agreement.Agreement("amx", 0.3, 0.01)
    monkeypatch.setattr(agreement, "agreements", lambda: [off])
    check = found()["agreement"]
    assert check.state == "wrong"
    assert check.found.startswith("amx 30.00% off float64")
    assert "HOPSCOPE_KERNELS=torch" in check.todo


def test_kernels_that_cannot_be_had_are_wrong(monkeypatch: Patch) -> None:
    monkeypatch.setenv(compiled.VARIABLE, "gpu")
    compiled.usual.cache_clear()
    try:
        check = found()["kernels"]
    finally:
        monkeypatch.undo()
        compiled.usual.cache_clear()
    assert check.state == "wrong"
    assert "got 'gpu', expected amx, avx512 or torch" in check.found


def test_agreement_is_not_asked_for_by_a_wrong_name(monkeypatch: Patch) -> None:
    monkeypatch.setattr(agreement, "agreements", Mock(side_effect=ConfigError("got 'gpu'")))
    assert health.agreement() == Check("agreement", "fine", "not asked")


def test_why_kernels_are_no_better(monkeypatch: Patch) -> None:
    monkeypatch.setattr(compiled, "path", lambda: "amx")
    for why, check in {
        "": Check("kernels", "fine", "amx"),
        "the processor has no AMX": Check("kernels", "fine", "amx; the processor has no AMX"),
        "not compiled: install gcc": Check("kernels", "note", "amx; not compiled", "install gcc"),
    }.items():
        monkeypatch.setattr(compiled, "why_none_better", lambda why=why: why)
        assert health.kernels() == check


def test_torch_that_cannot_be_loaded_is_wrong_and_stops_nothing(monkeypatch: Patch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    looked = found()
    assert looked["torch"].state == "wrong"
    assert "install torch again" in looked["torch"].todo
    assert "agreement" not in looked
    assert looked["runs"].state == "fine"


VERSIONS = {"torch": "2.10.1", "numpy": "2.0.0", "gguf": "0.17.1+local"}
NEEDED = [
    "torch>=2.11", "numpy>=2", "duckdb>=1.3", 'gguf>=0.17; extra == "llm"',
    'httpx>=0.28; extra == "llm"', 'ray>=2.48; extra == "cluster"',
    f'triton>=3.6; sys_platform == "{sys.platform}" and extra == "dev"',
    'pywin32>=1; sys_platform == "elsewhere"',
]  # fmt: skip


def installed(name: str) -> str:
    if name not in VERSIONS:
        raise PackageNotFoundError(name)
    return VERSIONS[name]


def test_packages_that_are_missing_or_too_old(monkeypatch: Patch) -> None:
    monkeypatch.setattr(health, "requires", lambda _: NEEDED)
    monkeypatch.setattr(health, "version", installed)
    assert health.needs().state == "wrong"
    assert health.needs().found == "torch is 2.10.1, expected >=2.11, duckdb is missing"
    assert health.extra("llm") == Check(
        "extra llm", "note", "not installed (httpx is missing)",
        "to use it: python -m pip install 'httpx>=0.28'",
    )  # fmt: skip
    assert health.frames().state == "note"
    monkeypatch.setitem(VERSIONS, "ray", "2.48")
    assert health.extra("cluster") == Check("extra cluster", "fine", "installed")
    monkeypatch.setitem(VERSIONS, "pandas", "3.0")
    assert health.frames() == Check("data frames", "fine", "pandas 3.0")
    here = {"torch": "2.13.0+cpu", "numpy": "2.4.0", "duckdb": "1.5.0.dev1"}
    monkeypatch.setattr(health, "version", here.__getitem__)  # of others only developers have need
    assert health.needs() == Check("packages", "fine", "all that it needs is installed")


def test_a_folder_that_was_not_installed(monkeypatch: Patch) -> None:
    def refuse(name: str) -> NoReturn:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(health, "requires", refuse)
    monkeypatch.setattr(health, "metadata", refuse)
    looked = found()
    assert looked["packages"].state == "note"
    assert "imported from a folder" in looked["packages"].found
    assert not [name for name in looked if "extra" in name]


def test_more_threads_than_cores_are_noted(monkeypatch: Patch) -> None:
    monkeypatch.setattr(health, "cores", lambda: 0)
    check = health.threads()
    assert check.state == "note"
    assert "OMP_NUM_THREADS=0" in check.todo
