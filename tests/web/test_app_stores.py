"""Stores that were tampered with: that run shows a line, all else goes on, nothing changes."""

import hashlib
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from asking import Answer, Ask, asked
from stopping import TINY, changed

from hopscope.store import Store
from hopscope.training import train
from hopscope.web.views import Views

CANARY = b"the content of a file beside the store"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store of two runs, and a file beside it that nobody may read."""
    root = tmp_path_factory.mktemp("whole")
    for seed in (0, 1):
        train(changed(TINY, steps=2, checkpoint_every=1).replace(seeds=(seed,)), root / "runs")
    (root / "canary.json").write_bytes(CANARY)
    return root


def every_question(run: str) -> list[Ask]:
    of_run, more = f"/api/runs/{run}".encode(), b'{"examples": 4, "changes": ["0.0=itself"]}'
    gets = [b"", b"/arrays/losses", b"/arrays/maps", b"/views"]
    posts = [(b"/example", b"{}"), (b"/ablate", more), (b"/over-time", more)]
    posts += [(b"/costs", b'{"examples": 4}')]
    return [
        *(Ask(path=of_run + what) for what in gets),
        *(Ask("POST", of_run + what, body=body) for what, body in posts),
    ]


def told(views: Views, asks: list[Ask]) -> list[Answer]:
    notes: list[str] = []
    answers = asked(*asks, views=views, notes=notes)
    assert notes == []  # no mistake of ours
    for answer in answers:
        assert CANARY not in answer.body
        assert str(views.store.root).encode() not in answer.body
        assert b"Traceback" not in answer.body
    return answers


def ids(views: Views) -> dict[str, str]:
    return {row["name"]: row["id"] for row in views.runs()["rows"]}


def digest(root: Path) -> str:
    """Every file below a folder: its name, kind and content."""
    found = hashlib.sha256()
    for path in sorted(root.rglob("*")):
        status = path.lstat()
        found.update(f"{path.relative_to(root)} {stat.S_IFMT(status.st_mode)}".encode())
        if stat.S_ISREG(status.st_mode) and os.access(path, os.R_OK):
            found.update(path.read_bytes())
    return found.hexdigest()


def last(folder: Path) -> Path:
    """The weights that most questions are about."""
    return max(folder.rglob("step-*"))


def canary(folder: Path) -> Path:
    return folder.parent.parent / "canary.json"


def moved(folder: Path) -> None:
    elsewhere = folder.parent.parent / "elsewhere"
    folder.rename(elsewhere)
    folder.symlink_to(elsewhere)


def replaced(path: Path, make: Callable[[Path], object]) -> None:
    path.unlink()
    make(path)


HOSTILE: dict[str, Callable[[Path], None]] = {
    "a link for a run": moved,
    "a link for weights": lambda run: replaced(last(run), lambda its: its.symlink_to(canary(run))),
    "no JSON": lambda run: replaced(run / "manifest.json", lambda its: its.write_bytes(b"[" * 99)),
}
"""What else can be forged is decided in `tests/store`."""


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_run_harms_nothing_but_itself(whole: Path, tmp_path: Path, name: str) -> None:
    root = tmp_path / "copy"
    shutil.copytree(whole, root)
    first, second = Store(root / "runs").names()
    known = ids(Views(Store(root / "runs")))
    HOSTILE[name](root / "runs" / first)
    before, views = digest(root), Views(Store(root / "runs"))
    table, *answers = told(views, [Ask(), *every_question(known[first])])
    rows = {row["name"]: row for row in table.json()["rows"]}
    assert rows[second]["state"] == "complete"
    assert "\n" not in rows.get(first, {}).get("problem", "")
    if HOSTILE[name] is not moved:  # a folder may stand elsewhere, as a link of its owner
        assert [its for its in answers if its.status != 200 or b'"error"' in its.body]
    for answer in answers:
        if answer.status != 200:
            assert answer.refused, answer
            assert "\n" not in answer.json()["error"]
    assert {answer.status for answer in told(views, every_question(known[second]))} == {200}
    assert digest(root) == before


def test_another_run_under_a_known_name_is_no_mistake_of_ours(whole: Path, tmp_path: Path) -> None:
    root = tmp_path / "copy"
    shutil.copytree(whole, root)
    first, second = Store(root / "runs").names()
    views = Views(Store(root / "runs"))
    known = ids(views)
    shutil.rmtree(root / "runs" / first)
    shutil.copytree(root / "runs" / second, root / "runs" / first)
    for answer in told(views, every_question(known[first])):
        assert answer.status in (200, 404, 409)
    assert told(views, [Ask(path=f"/api/runs/{known[second]}".encode())])[0].status == 200
