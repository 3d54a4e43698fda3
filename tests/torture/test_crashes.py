"""A command that crashes before, in the middle of or after any call that changes a file: the same
command ends with the same bytes. So after a full disk, an I/O error, and a power cut.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from torture.disk import FAULTS, SPACE, Call, Disk, Watch, read_log
from torture.harness import committed, done, hopscope_, train_words, transformer

pytestmark = pytest.mark.slow
TRIALS = 8
"""Of each command, spread over its calls; and half as many power cuts."""
Store = dict[str, dict[str, bytes]]


def crashing(
    folder: Path, words: tuple[str, ...], log: Path | None, number: int, fault: str
) -> int:
    Watch(folder, log, number, fault).begin()
    return hopscope_(folder, *words)


class Command:
    """A command, the folder as it finds it, and what must be there in the end."""

    def __init__(self, root: Path, name: str) -> None:
        self.before, self.work, self.log = root / "before", root / "work", root / "log"
        self.before.mkdir()
        recipe = transformer()
        train = train_words(self.before, recipe)
        run = recipe.run_name()
        self.words = {
            "train": train,
            "copy": ("gallery", "--copy", "ngram"),
            "circuit": ("circuit", run, "--all", "--again", "--force", "--examples", "16"),
            "rm": ("rm", run, "--yes"),
        }[name]
        self.restored = train if name == "rm" else self.words  # what was removed comes again
        self.twice = (0, 2) if name in ("rm", "copy") else (0,)
        """How the next call ends: a run that is there or gone already is refused."""
        if name in ("circuit", "rm"):
            assert done(hopscope_, self.before, *train).code == 0
        self.fresh()
        first = done(crashing, self.work, self.words, self.log, 0, "")
        assert (first.code, first.rude) == (0, "")
        self.calls = read_log(self.log)
        self.check_log()
        self.goal = self.restore()

    def fresh(self) -> None:
        shutil.rmtree(self.work, ignore_errors=True)
        shutil.copytree(self.before, self.work)

    def disk(self, calls: int) -> Disk:
        """The disk after so many calls."""
        disk = Disk(self.before)
        for _, call in self.calls[:calls]:
            disk.follow(self.moved(call))
        return disk

    def moved(self, call: Call) -> Call:
        """The call as if it had been made in the folder of before."""
        own, other = (
            each.replace(str(self.work), str(self.before)) for each in (call.path, call.other)
        )
        return Call(call.name, own, other, call.content)

    def check_log(self) -> None:
        """Nothing changed by a way that is not watched; and of what the command has made a power
        cut takes nothing when it has ended.
        """
        disk = self.disk(len(self.calls))
        found = {
            str(path.relative_to(self.work)): path.read_bytes()
            for path in self.work.rglob("*")
            if path.is_file()
        }
        assert disk.content() == found
        there = committed(self.work / "runs")
        shutil.rmtree(self.work)
        disk.cut(self.work)
        assert committed(self.work / "runs") == there

    def restore(self) -> Store:
        """What there is after the next call."""
        again = done(hopscope_, self.work, *self.restored)
        assert again.rude == ""
        assert again.code in self.twice, again.err
        return committed(self.work / "runs")

    def faults(self, chance: Random) -> Iterator[tuple[int, str]]:
        """Some calls, each with a fault that it can have."""
        for number in range(TRIALS):
            place, call = chance.choice(self.calls)
            possible = [each for each in FAULTS if each != "disk full" or call.name in SPACE]
            yield place, possible[number % len(possible)]


@pytest.fixture(params=["train", "copy", "circuit", "rm"])
def command(request: pytest.FixtureRequest, tmp_path: Path) -> Command:
    return Command(tmp_path, request.param)


def test_after_a_crash_or_a_power_cut_the_command_ends_with_the_same_bytes(
    command: Command, tmp_path: Path
) -> None:
    chance = Random(45)
    for place, fault in command.faults(chance):
        command.fresh()
        crashed = done(crashing, command.work, command.words, None, place, fault)
        if fault.startswith("kill"):
            assert crashed.code == -9, (place, fault)
        else:
            assert crashed.rude == "", (place, fault)
        assert command.restore() == command.goal, (place, fault)
    disk = Disk(command.before)
    for _, call in command.calls:  # between any two calls what is named is there, and whole
        disk.follow(command.moved(call))
        if call.name == "fsync":  # no other call changes what is flushed
            (tmp_path / "cut").mkdir()
            disk.cut(tmp_path / "cut")
            committed(tmp_path / "cut" / "runs")
            shutil.rmtree(tmp_path / "cut")
    for _ in range(TRIALS // 2):
        shutil.rmtree(command.work)
        number = chance.randrange(len(command.calls))
        command.disk(number).cut(command.work, chance)
        committed(command.work / "runs")
        assert command.restore() == command.goal, number
