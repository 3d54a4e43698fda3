"""`hopscope gallery`: the models that come with hopscope."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from hopscope.cli.arguments import parse
from hopscope.cli.output import say
from hopscope.errors import ConfigError
from hopscope.store import RunFolder, Store
from hopscope.store.gallery import about, find, names


@dataclass(frozen=True)
class GalleryArguments:
    """List the models that come with hopscope, or copy one into a store, to write to."""

    action: Annotated[Literal["list", "copy"], tyro.conf.Positional] = "list"
    """`gallery copy NAME` makes an ordinary run, gallery-NAME."""
    name: Annotated[str | None, tyro.conf.Positional] = None
    """Which model is copied."""
    store: Path | None = None
    """Folder of runs; unset: $HOPSCOPE_STORE, or ./runs."""


def gallery(arguments: Sequence[str]) -> int:
    chosen = parse(GalleryArguments, "gallery", arguments)
    if chosen.action == "list":
        _list()
        return 0
    if chosen.name is None:
        raise ConfigError(f"gallery copy needs the name of a model: {', '.join(names())}")
    source = find(chosen.name)
    made = Store(chosen.store).copy(source, source.name.replace("/", "-"))
    say(f"{made.name}: a copy of {source.name}, in {made.path}")
    return 0


def _list() -> None:
    from hopscope.cli.tables import table

    columns = ["model", "task", "layers × heads", "checkpoints", "MB"]
    folders = [find(name) for name in names()]
    table(columns, map(_row, folders))
    for folder in folders:
        known = about(folder)
        if known:
            say("", f"{folder.name}: {known.what}", f"  {known.origin}")
    say("", "Each stands where a run is asked for: `hopscope maps gallery/demo`")


def _row(folder: RunFolder) -> tuple[object, ...]:
    shape, files = folder.experiment.shape(), folder.manifest.files
    hops = shape["hops"]
    return (
        folder.name,
        folder.experiment.task_kind + (f", {hops} hops" if hops else ""),
        f"{shape['layers']} × {shape['heads']}" + (f", d {d}" if (d := shape["d_model"]) else ""),
        len(folder.files("checkpoints/")),
        f"{sum(entry.size for entry in files.values()) / 1e6:.2f}",
    )
