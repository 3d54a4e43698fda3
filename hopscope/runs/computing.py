"""Threads, kernels and versions: besides the recipe, the last bits of a result depend on these.

They decide the order in which numbers are summed. So a run records how its steps were computed,
continues with its number of threads, and warns if anything else has changed.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from hopscope.machine import processor
from hopscope.models import native
from hopscope.store import RunFolder
from hopscope.store.manifest import Provenance


@contextmanager
def using_threads(count: int | None) -> Iterator[None]:
    """Compute with this number of CPU threads within the block (None: no change)."""
    before = torch.get_num_threads()
    torch.set_num_threads(before if count is None else count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def usual_modes() -> Iterator[None]:
    """Compute within this block with default dtype float32, with gradients and without autocast.

    The caller's settings are ignored, because they are not part of a recipe.
    """
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    try:
        with (
            torch.inference_mode(mode=False),
            torch.enable_grad(),
            torch.autocast("cpu", enabled=False),
            torch.autocast("cuda", enabled=False),
        ):
            yield
    finally:
        torch.set_default_dtype(before)


def threads_of(folder: RunFolder, threads: int | None) -> int | None:
    """Return `threads`; if None, the number that the run used last (None for a new run)."""
    computed = folder.manifest.computed
    return computed[-1].threads if threads is None and computed else threads


def processor_of(device: torch.device) -> str:
    """The name of the processor, or of the GPU."""
    return str(torch.cuda.get_device_name(device)) if device.type == "cuda" else processor()


def note_computing(folder: RunFolder, device: torch.device) -> str:
    """Record in the manifest how the next steps are computed; the next commit writes it.

    Returns a line on the differences from the steps before, or "".
    """
    manifest = folder.manifest
    cuda = f", CUDA {torch.version.cuda}" if device.type == "cuda" else ""
    here = Provenance(
        first=manifest.step,
        threads=torch.get_num_threads(),
        kernels=_kernels(device),
        torch=f"{torch.__version__}{cuda}",
        processor=processor_of(device),
    )
    before = manifest.computed[-1] if manifest.computed else None
    if before is not None and before.model_copy(update={"first": here.first}) == here:
        return ""
    kept = tuple(each for each in manifest.computed if each.first < manifest.step)
    folder.manifest = manifest.model_copy(update={"computed": (*kept, here)})
    if manifest.step == 0 or before is None:
        return ""
    place = f"{folder.recipe.unit} {manifest.step:,}"
    return (
        f"{folder.name} goes on from {place} {_difference(before, here)}: the last bits of its "
        "results will differ from those of a run without a stop, as its manifest notes"
    )


def _kernels(device: torch.device) -> str:
    """Return the backend on this device; for triton with its version."""
    backend = native.backend_on(device)
    if backend != "triton":
        return backend
    import triton

    return f"{backend} {triton.__version__}"


def _difference(before: Provenance, here: Provenance) -> str:
    old, new = (
        each.model_dump(exclude={"first"}, exclude_defaults=True) for each in (before, here)
    )
    changed = [
        f"{name} {new.get(name, 'none')} (before: {old.get(name, 'none')})"
        for name in sorted({*new, *old}, key=[*new, *old].index)
        if new.get(name) != old.get(name)
    ]
    return f"with {', '.join(changed)}"
