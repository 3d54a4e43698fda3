"""How large fleets are: by a rule that was worked out by hand, on numbers that were measured."""

from pathlib import Path

import pytest
import torch

from hopscope.configs import Experiment
from hopscope.errors import ConfigError
from hopscope.workers import Here, sizing
from hopscope.workers.carry import sizes as fleet_sizes
from hopscope.workers.sizing import Measured, best_size, measure, measured, sizes

GIB = 2**30
FLAT = Measured(seconds={1: 1.0, 2: 1.0, 4: 1.0, 8: 1.0},
                memory={1: GIB, 2: GIB, 4: 2 * GIB, 8: 4 * GIB}, room=20 * GIB)  # fmt: skip
STEEP = Measured(seconds={1: 1.0, 2: 2.5}, memory={1: GIB, 2: GIB}, room=20 * GIB)


def test_sizes_are_powers_of_two_and_the_largest() -> None:
    assert sizes(1) == [1]
    assert sizes(6) == [1, 2, 4, 6]
    assert sizes(8) == [1, 2, 4, 8]


def test_between_two_sizes_a_line_is_drawn() -> None:
    assert STEEP.of(2) == 2.5
    assert Measured(seconds={4: 2.0, 8: 4.0}, memory={}, room=1).of(5) == 2.5


@pytest.mark.parametrize(
    ("found", "count", "slots", "expected"),
    [
        (FLAT, 8, 1, 8),  # a fleet costs what one model costs
        (FLAT, 8, 2, 4),  # two workers, two fleets
        (FLAT, 9, 2, 5),
        (FLAT, 64, 2, 8),
        (STEEP, 8, 2, 1),  # two as one are slower than two
        (FLAT.model_copy(update={"room": 5 * GIB}), 8, 1, 8),  # 0.8 × 5 GiB are enough
        (FLAT.model_copy(update={"room": 4 * GIB}), 8, 1, 4),
        (FLAT.model_copy(update={"room": 4 * GIB}), 8, 2, 2),  # beside another
        (FLAT.model_copy(update={"room": 4 * GIB, "gpus": 2}), 8, 2, 4),  # each on its own GPU
        (FLAT.model_copy(update={"room": GIB // 2}), 8, 1, 1),
    ],
)
def test_the_size_with_which_all_are_ready_soonest(
    found: Measured, count: int, slots: int, expected: int
) -> None:
    assert best_size(found, count, slots) == expected


def test_steps_are_measured(tiny: Experiment) -> None:
    found = measure(tiny, 2, "cpu")
    assert sorted(found.seconds) == sorted(found.memory) == [1, 2]
    assert all(0 < each < 60 for each in found.seconds.values())
    assert all(2**26 < each < found.room for each in found.memory.values())


def test_what_was_measured_is_remembered(
    tiny: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOPSCOPE_CACHE", str(tmp_path))
    asked = []
    monkeypatch.setattr(sizing, "_measured_elsewhere", lambda it: asked.append(it) or FLAT)
    assert measured(tiny, 8, "cpu", 1) == FLAT
    seeds = Experiment.model_validate({**tiny.model_dump(), "seeds": (9,)})
    assert measured(seeds, 8, "cpu", 1) == FLAT
    assert len(asked) == 1
    assert measured(tiny, 8, "cpu", 2) == FLAT  # other threads, another answer
    assert len(asked) == 2
    for file in (tmp_path / "fleets").iterdir():
        file.write_text("{")
    assert measured(tiny, 8, "cpu", 1) == FLAT
    assert len(asked) == 3


def test_what_cannot_be_measured_is_one_line(
    tiny: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOPSCOPE_CACHE", str(tmp_path))
    monkeypatch.setattr(sizing.sys, "executable", "/bin/false")
    with pytest.raises(ConfigError, match=r"cannot measure how large fleets may be \(nothing\)"):
        measured(tiny, 8, "cpu", 1)


def test_what_does_not_fit_is_not_remembered(
    tiny: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> tuple[float, int]:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(sizing, "_step", full)
    with pytest.raises(ConfigError, match="one model of .* does not fit into the free memory"):
        measure(tiny, 2, "cpu")


class Counted(Here):
    """A pool that counts how often it is asked for its slots."""

    asked = 0

    @property
    def slots(self) -> int:
        Counted.asked += 1
        return 2


def test_a_pool_is_asked_once_for_its_slots() -> None:
    found = Measured(seconds={1: 1.0, 2: 1.0}, memory={1: 1, 2: 1}, room=10)
    size = fleet_sizes(Counted(pack="auto"), "cpu", lambda *_: found)
    Counted.asked = 0  # those who check types have asked
    assert [size(Experiment(), 4) for _ in range(3)] == [2, 2, 2]
    assert Counted.asked == 1
