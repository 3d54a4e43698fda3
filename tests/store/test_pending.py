"""A commit that replaces a file, cut off anywhere: whoever reads finds the old or the new one."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from hopscope.configs import Experiment
from hopscope.errors import RunDamaged, StoreUnwritable
from hopscope.store import RunFolder, Store, folder
from hopscope.store.lease import LEASE
from hopscope.store.manifest import MANIFEST, FileEntry
from hopscope.store.pending import pending, places

NAME = "circuit.json"
OLD, NEW = b"the first", b"another, longer"


@pytest.fixture
def run(store: Store, tiny: Experiment) -> RunFolder:
    made = store.create(tiny)
    made.commit({NAME: OLD, "explorer/maps.safetensors": OLD})
    return made


def replace(run: RunFolder) -> None:
    with run.locked():
        run.commit({NAME: NEW, "explorer/maps.safetensors": NEW})


def check_old_or_new(run: RunFolder) -> bytes:
    """What somebody finds who comes now, without a lock."""
    found = RunFolder(run.path)
    content = found.read(NAME)
    assert content in (OLD, NEW)
    assert found.read("explorer/maps.safetensors") == content
    assert found.damage() == {}
    (listed,), problems = Store(run.path.parent).listed()
    assert (listed.problem, problems) == ("", [])
    (path,) = found.checked(NAME)
    assert path.read_bytes() == content
    return content


class CutOffError(Exception):
    pass


CALLS = ("fsync", "replace", "unlink")


def test_cut_off_at_any_call_of_the_system(run: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before it and behind it; and then the same commit is made whole."""
    seen = set()
    for last in count(1):
        calls = count(1)

        def cut(own: Callable[..., Any], calls: count, last: int) -> Callable[..., Any]:  # type: ignore[type-arg]
            def instead(*given: Any, **named: Any) -> Any:
                number = next(calls)
                if number >= last:
                    raise CutOffError
                return own(*given, **named)

            return instead

        with monkeypatch.context() as patch:
            for call in CALLS:
                patch.setattr(os, call, cut(getattr(os, call), calls, last))
            try:
                replace(run)
                whole = True
            except CutOffError:
                whole = False
        seen.add(check_old_or_new(run))
        if whole:
            break
        (run.path / LEASE).unlink(missing_ok=True)  # as this process is not dead
        with run.locked():
            run.commit({NAME: OLD, "explorer/maps.safetensors": OLD})
            run.sweep_leftovers()
        assert check_old_or_new(run) == OLD
        assert run.verify() == []
    assert seen == {OLD, NEW}
    assert run.verify() == []


def test_a_manifest_that_cannot_be_written_changes_nothing(
    run: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = folder.write_inside

    def full(root: Any, name: str, data: bytes) -> None:
        if name == MANIFEST:
            raise StoreUnwritable("cannot write manifest.json: the disk is full")
        own(root, name, data)

    with monkeypatch.context() as patch:
        patch.setattr(folder, "write_inside", full)
        with pytest.raises(StoreUnwritable, match="the disk is full"):
            replace(run)
    assert check_old_or_new(run) == OLD
    replace(run)
    assert check_old_or_new(run) == NEW
    assert RunFolder(run.path).verify() == []


@pytest.mark.parametrize(("where", "found"), [("flush_inside", OLD), ("settle", NEW)])
def test_killed_before_its_manifest_and_behind_it(run: RunFolder, where: str, found: bytes) -> None:
    code = (
        "import os, sys\n"
        "from hopscope.store import RunFolder, folder\n"
        "run = RunFolder(__import__('pathlib').Path(sys.argv[1]))\n"
        "with run.locked():\n"
        f"    folder.{where} = lambda *_: os.kill(os.getpid(), 9)\n"
        f"    run.commit({{{NAME!r}: {NEW!r}, 'explorer/maps.safetensors': {NEW!r}}})\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(run.path)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert check_old_or_new(run) == found
    assert RunFolder(run.path).strays().foreign == ()
    with run.locked():  # whoever writes next, finishes it
        run.sweep_leftovers()
    assert (run.path / NAME).read_bytes() == found
    assert RunFolder(run.path).verify() == []


def test_who_has_read_the_manifest_before_reads_the_new_file(run: RunFolder) -> None:
    before = RunFolder(run.path)
    replace(run)
    assert before.read(NAME) == NEW


def test_both_places_are_looked_at_and_damage_is_found_in_both(run: RunFolder) -> None:
    entry = FileEntry.of(NEW)
    assert places(NAME, entry) == (NAME, pending(NAME, entry), NAME)
    (run.path / NAME).write_bytes(b"xxxxxxxxx")
    (run.path / pending(NAME, FileEntry.of(OLD))).write_bytes(b"yyyyyyyyy")
    with pytest.raises(RunDamaged, match=r"SHA-256 differs\): restore it from a copy, or make it"):
        run.read(NAME)
