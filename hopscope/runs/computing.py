"""How this process computes: what the last bits of a result depend on, beside its recipe.

Sums that several threads share are added up in another order with another number of threads, and
other kernels or versions add up differently. So a run notes how its steps were computed, goes on
with the number of threads that it had, and says if anything else is different.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from hopscope.machine import check_threads, processor
from hopscope.models import native
from hopscope.store import RunFolder
from hopscope.store.manifest import Provenance


@contextmanager
def using_threads(count: int | None) -> Iterator[None]:
    """Compute with so many threads of the processor within this block; None: as before."""
    check_threads(count)
    before = torch.get_num_threads()
    torch.set_num_threads(before if count is None else count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def threads_of(folder: RunFolder, asked: int | None) -> int | None:
    """How many threads a run goes on with: as many as asked for, else as many as it had."""
    computed = folder.manifest.computed
    return computed[-1].threads if asked is None and computed else asked


def processor_of(device: torch.device) -> str:
    """The name of what computes on this device: the processor, or the GPU."""
    return str(torch.cuda.get_device_name(device)) if device.type == "cuda" else processor()


def note_computing(folder: RunFolder, device: torch.device) -> str:
    """Note in the run's manifest how its next steps are computed, on this device, from the next
    commit on.

    Returns one line on what is different from the steps before, or nothing.
    """
    manifest = folder.manifest
    here = Provenance(
        first=manifest.step,
        threads=torch.get_num_threads(),
        kernels=_kernels(device),
        torch=_torch(device),
        processor=processor_of(device),
    )
    before = manifest.computed[-1] if manifest.computed else None
    if before is not None and before.model_copy(update={"first": here.first}) == here:
        return ""
    kept = tuple(each for each in manifest.computed if each.first < manifest.step)
    folder.manifest = manifest.model_copy(update={"computed": (*kept, here)})
    if manifest.step == 0 or before is None:
        return ""
    return (
        f"{folder.name} goes on from step {manifest.step:,} {_difference(before, here)}: the last "
        "bits of its results will differ from those of a run without a stop, as its manifest notes"
    )


def _kernels(device: torch.device) -> str:
    """The backend that is taken there; with the version of Triton, which compiles its kernels."""
    backend = native.backend_on(device)
    if backend != "triton":
        return backend
    import triton

    return f"{backend} {triton.__version__}"


def _torch(device: torch.device) -> str:
    """The version of torch, and on a GPU that of CUDA."""
    cuda = f", CUDA {torch.version.cuda}" if device.type == "cuda" else ""
    return f"{torch.__version__}{cuda}"


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
