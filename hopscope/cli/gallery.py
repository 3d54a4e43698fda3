"""`hopscope gallery`: the models that come with hopscope."""

from dataclasses import dataclass
from typing import Annotated

import tyro

from hopscope.cli.arguments import StoreArguments
from hopscope.cli.output import say
from hopscope.store import RunFolder, Store
from hopscope.store.gallery import about, find, names


@dataclass(frozen=True)
class GalleryListArguments:
    """List the models that come with hopscope: each stands where a run is only read."""


@dataclass(frozen=True)
class GalleryCopyArguments(StoreArguments):
    """Copy a model that comes with hopscope into a store: an ordinary run, gallery-NAME."""

    name: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="GALLERY")]
    """A model that `hopscope gallery` lists, with or without gallery/ before it."""


def copy(chosen: GalleryCopyArguments) -> int:
    source = find(chosen.name)
    made = Store(chosen.store).copy(source, source.name.replace("/", "-"))
    say(f"{made.name}: a copy of {source.name}, in {made.path}")
    return 0


def listing(chosen: GalleryListArguments) -> int:  # noqa: ARG001  (there are no flags)
    from hopscope.cli.tables import table

    columns = ["model", "task", "layers × heads", "checkpoints", "MB"]
    folders = [find(name) for name in names()]
    table(columns, map(_row, folders))
    for folder in folders:
        known = about(folder)
        if known:
            say("", f"{folder.name}: {known.what}", f"  {known.origin}")
    say("", "Each stands where a run is asked for: `hopscope maps gallery/demo`")
    return 0


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
