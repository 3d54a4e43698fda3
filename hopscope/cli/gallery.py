"""`hopscope gallery`: the models that come with hopscope."""

from dataclasses import dataclass
from typing import Annotated, Any

import tyro

from hopscope.cli.arguments import JsonArguments, StoreArguments
from hopscope.cli.output import say
from hopscope.store import RunFolder, Store
from hopscope.store.gallery import about, find, names


@dataclass(frozen=True)
class GalleryListArguments(JsonArguments):
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


def listing(chosen: GalleryListArguments) -> int:
    from hopscope.cli.tables import print_rows

    folders = [find(name) for name in names()]
    rows = [_row(folder) for folder in folders]
    print_rows(rows, {"MB": ".2f"}, json=chosen.json)
    if chosen.json:
        return 0
    for folder in folders:
        known = about(folder)
        if known:
            say("", f"{folder.name}: {known.what}", f"  {known.origin}")
    say("", "Each stands where a run is asked for: `hopscope maps gallery/demo`")
    return 0


def _row(folder: RunFolder) -> dict[str, Any]:
    shape, files = folder.recipe.shape(), folder.manifest.files
    return {
        "model": folder.name,
        "task": folder.recipe.task_kind,
        "hops": shape["hops"],
        "layers": shape["layers"],
        "heads": shape["heads"],
        "d_model": shape["d_model"],
        "checkpoints": len(folder.files("checkpoints/")),
        "MB": sum(entry.size for entry in files.values()) / 1e6,
    }
