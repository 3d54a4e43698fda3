"""A commit that replaces files, cut off anywhere: whoever reads finds the old or the new ones."""

import os
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest

from hopscope.configs import Experiment
from hopscope.errors import RunDamaged
from hopscope.store import RunFolder, Store
from hopscope.store.lease import LEASE
from hopscope.store.manifest import FileEntry
from hopscope.store.pending import pending

NAMES = ("circuit.json", "explorer/maps.safetensors")
OLD, NEW = b"the first", b"another, longer"
CALLS = ("fsync", "replace", "unlink")


class CutOffError(Exception):
    pass


@pytest.fixture
def run(store: Store, tiny: Experiment) -> RunFolder:
    made = store.create(tiny)
    made.commit(dict.fromkeys(NAMES, OLD))
    return made


def replace(run: RunFolder, by: bytes = NEW) -> None:
    with run.locked():
        run.sweep_leftovers()
        run.commit(dict.fromkeys(NAMES, by))


def check_old_or_new(run: RunFolder) -> bytes:
    """What somebody finds who comes now, without a lock."""
    found = RunFolder(run.path)
    (content,) = {found.read(name) for name in NAMES}
    assert content in (OLD, NEW)
    assert found.damage() == {}
    assert found.strays().foreign == ()
    (listed,), problems = Store(run.path.parent).listed()
    assert (listed.problem, problems) == ("", [])
    assert [path.read_bytes() for path in found.checked(NAMES[0])] == [content]
    return content


def cut(own: Callable[..., Any], calls: Iterator[int], last: int) -> Callable[..., Any]:
    """A call of the system that is not made, nor any after it, from a number on."""

    def instead(*given: Any, **named: Any) -> Any:
        if next(calls) >= last:
            raise CutOffError
        return own(*given, **named)

    return instead


def test_cut_off_at_any_call_of_the_system(run: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before it and behind it; and then the same commit is made whole."""
    seen, whole = [], False
    for last in count(1):
        calls = count(1)
        with monkeypatch.context() as patch:
            for call in CALLS:
                patch.setattr(os, call, cut(getattr(os, call), calls, last))
            try:
                replace(run)
                whole = True
            except CutOffError:
                pass
        seen.append(check_old_or_new(run))
        if whole:
            break
        (run.path / LEASE).unlink(missing_ok=True)  # as this process is not dead
        replace(run, OLD)
        assert check_old_or_new(run) == OLD
        assert run.verify() == []
    turned = seen.index(NEW)
    assert 0 < turned < len(seen) - 1  # before its manifest, and after it
    assert seen == [OLD] * turned + [NEW] * (len(seen) - turned)
    assert run.verify() == []


def test_who_has_read_the_manifest_before_reads_the_new_file(run: RunFolder) -> None:
    before = RunFolder(run.path)
    replace(run)
    assert before.read(NAMES[0]) == NEW


def test_damage_is_found_in_both_places_of_a_file(run: RunFolder) -> None:
    (run.path / NAMES[0]).write_bytes(b"xxxxxxxxx")
    (run.path / pending(NAMES[0], FileEntry.of(OLD))).write_bytes(b"yyyyyyyyy")
    with pytest.raises(RunDamaged, match=r"SHA-256 differs\): restore it from a copy, or make it"):
        run.read(NAMES[0])
