"""What travels with a run for the page: role maps of all checkpoints, contents, truth.

The models of the gallery carry these files, so that nothing is computed for the first view;
`benchmarks/gallery.py --explorer` makes them. A file whose steps are not those of the run any more
counts as not there.
"""

import json
from typing import Any

from hopscope.store import RunFolder
from hopscope.store.checkpoints import checkpoint_steps
from hopscope.web.tensors import unpacked

MAPS, CONTENTS = "explorer/maps.safetensors", "explorer/contents.safetensors"
PLANTED = "planted.json"


def kept_arrays(folder: RunFolder, name: str, seed: int) -> bytes | None:
    """A file of arrays over all checkpoints, if it is kept."""
    if name not in folder.manifest.files or seed != folder.recipe.seeds[0]:
        return None
    data = folder.read(name)
    arrays, _ = unpacked(data)
    return data if arrays["steps"].tolist() == checkpoint_steps(folder) else None


def kept_truth(folder: RunFolder) -> list[dict[str, Any]] | None:
    """The paths of a circuit that was written by hand, if this is one."""
    if PLANTED not in folder.manifest.files:
        return None
    found: list[dict[str, Any]] = json.loads(folder.read(PLANTED))
    return found
