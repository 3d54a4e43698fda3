"""TensorBoard reads back what was sent to it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hopscope.errors import StoreUnwritable
from hopscope.sharing.tensorboard import TensorBoard
from hopscope.sharing.tracked import tracked
from hopscope.sharing.tracker import Place, follow, send
from hopscope.store import RunFolder


def read(folder: Path) -> Any:
    events = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    found = events.EventAccumulator(str(folder), {"scalars": 0, "tensors": 0})
    return found.Reload()


def test_tensorboard_reads_every_number_once(fleet: RunFolder, tmp_path: Path) -> None:
    runs, to = tracked(fleet), TensorBoard(Place(to=tmp_path / "logs"))
    places = [Path(sent.where) for sent in (*send(runs, to), *send(runs, to))]
    assert places[:2] == places[2:]
    assert len(list((tmp_path / "logs").rglob("*tfevents*"))) == 2
    for run, place in zip(runs, places, strict=False):
        found = read(place)
        told = {
            (event.step, tag): event.value
            for tag in found.Tags()["scalars"]
            for event in found.Scalars(tag)
        }
        assert told == {(step, name): v for step, own in run.rows() for name, v in own.items()}
        assert b"| model.layers | 2 |" in found.Tensors("config")[0].tensor_proto.string_val[0]


def test_a_file_that_grows_keeps_what_it_held(fleet: RunFolder, tmp_path: Path) -> None:
    """A TensorBoard that reads on where it stopped finds the next record there."""
    to = TensorBoard(Place(to=tmp_path))
    run = tracked(fleet)[0]
    rows, log = run.rows(), to.begin(run)
    log.add(rows[:3])
    (path,) = tmp_path.rglob("*tfevents*")
    early, file = path.read_bytes(), path.stat().st_ino
    log.add(rows[3:5])
    manifest = fleet.manifest
    fleet.manifest = manifest.model_copy(update={"seconds": 9.0})  # times are estimated anew
    again = to.begin(run)
    again.add(rows)
    whole = path.read_bytes()
    assert whole[: len(early)] == early
    assert [sent.steps for sent in follow([run], to, lambda: None)] == [7]
    assert path.read_bytes() == whole
    assert path.stat().st_ino == file  # one that was renamed over it would not be seen
    steps = {event.step for event in read(path.parent).Scalars("train/loss/x1")}
    assert steps == {step for step, values in rows if "train/loss/x1" in values}


@pytest.mark.parametrize("harm", [lambda data: data[:-3], lambda data: data + data, lambda _: b"x"])
def test_a_file_that_holds_anything_else_is_written_anew(
    fleet: RunFolder, tmp_path: Path, harm: Callable[[bytes], bytes]
) -> None:
    run, to = tracked(fleet)[0], TensorBoard(Place(to=tmp_path))
    list(send([run], to))
    (path,) = tmp_path.rglob("*tfevents*")
    whole = path.read_bytes()
    path.write_bytes(harm(whole))
    list(send([run], to))
    assert path.read_bytes() == whole


def test_a_folder_that_takes_no_files_is_refused(fleet: RunFolder, tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("a file")
    with pytest.raises(StoreUnwritable, match="a part of the path is a file"):
        list(send(tracked(fleet), TensorBoard(Place(to=tmp_path / "logs"))))
