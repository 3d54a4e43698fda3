"""A Ray of two machines for all tests of all processes: it takes seconds to start."""

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True)
class Mini:
    """A Ray of two machines with one CPU and four GPUs each, which are numbers only."""

    address: str
    token: Path
    """The file that holds its token."""

    @property
    def environment(self) -> dict[str, str]:
        """What who wants to join it has to know."""
        return {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(self.token)}


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mini]:
    """Started by the first process that asks; it ends when the last one has done."""
    own = tmp_path_factory.getbasetemp()
    shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    with (shared / "ray-users").open("w") as users:
        fcntl.flock(users, fcntl.LOCK_SH)
        started = None
        with held(shared / "ray-start"):
            place = shared / "ray-folder"
            if not place.exists() or not (Path(place.read_text()) / "address").exists():
                folder = Path(tempfile.mkdtemp(prefix="hs-", dir="/tmp"))  # sockets: 107 bytes
                place.write_text(str(folder))
                started = start(folder, shared / "ray-users")
            folder = Path(place.read_text())
        yield Mini((folder / "address").read_text(), folder / "token")
    if started is not None:
        assert started.wait(120) == 0
        shutil.rmtree(folder)


def start(folder: Path, users: Path) -> subprocess.Popen[bytes]:
    (folder / "users").symlink_to(users)
    script = str(Path(__file__).with_name("mini_cluster.py"))
    with (folder / "log").open("w") as log:
        started = subprocess.Popen([sys.executable, script, str(folder)], stdout=log, stderr=log)
    until = time.monotonic() + 120
    while not (folder / "address").exists():
        assert started.poll() is None, (folder / "log").read_text()
        assert time.monotonic() < until, (folder / "log").read_text()
        time.sleep(0.1)
    return started


@contextmanager
def held(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@pytest.fixture
def mini(cluster: Mini, monkeypatch: pytest.MonkeyPatch) -> Mini:
    """The Ray of two machines, in whose environment this test runs."""
    for name, value in cluster.environment.items():
        monkeypatch.setenv(name, value)
    return cluster
