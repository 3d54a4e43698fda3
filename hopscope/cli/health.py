"""Is this installation sound? What `hopscope doctor` looks at, each with what to do about it."""

import platform
import re
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any, Literal

import hopscope
from hopscope.errors import ConfigError, StoreError, StoreUnwritable
from hopscope.machine import cores, memory_bytes, processor
from hopscope.store import Store
from hopscope.store.writable import check_folder

State = Literal["fine", "note", "wrong"]
GIB = 2**30
LITTLE = GIB
"""Bytes of free disk below which a training may not be able to keep its checkpoints."""
EXTRAS = ("web", "llm", "cluster", "bridges")
FRAMES = ("pandas", "pyarrow")
REQUIREMENT = re.compile(r"([\w.-]+)>=([\d.]+)(?:; extra == \"(\w+)\")?")


@dataclass(frozen=True)
class Check:
    """One thing that `hopscope doctor` looked at, and what it found."""

    name: str
    state: State
    """Fine; a note, where something could be better; or wrong."""
    found: str
    todo: str = ""
    """What to do about it."""

    def to_dict(self) -> dict[str, Any]:
        """The check as a dictionary, ready for JSON."""
        return asdict(self)


def checks(store: Store) -> Iterator[Check]:
    """Every check of this installation and store, one after another."""
    yield Check("Python", "fine", f"{platform.python_version()}, {sys.executable}")
    place = Path(hopscope.__file__).parent
    yield Check("hopscope", "fine", f"{hopscope.__version__}, {place}")
    yield needs()
    memory = f"{memory_bytes() / GIB:.0f} GiB of memory"
    yield Check("processor", "fine", f"{processor()}, {cores()} cores, {memory}")
    yield (whole := torch_itself())
    if whole.state != "wrong":
        for look in (device, threads, kernels, agreement):
            yield look()
    for name in EXTRAS:
        yield extra(name)
    yield frames()
    yield store_folder(store)
    yield disk(store)
    yield runs(store)


def needs() -> Check:
    """The packages that hopscope cannot do without."""
    lack = lacking(None)
    if lack is None:
        return Check("packages", "note", *NOT_INSTALLED)
    if lack:
        return Check("packages", "wrong", ", ".join(lack), "install hopscope again with pip")
    return Check("packages", "fine", "all that it needs is installed")


NOT_INSTALLED = (
    "hopscope is imported from a folder, and not installed: what it needs is not known",
    "pip install --config-settings editable_mode=compat -e FOLDER",
)


def extra(name: str) -> Check:
    """The packages of an extra; nothing is wrong without them."""
    lack = lacking(name)
    if lack is None:
        return Check(f"extra {name}", "note", *NOT_INSTALLED)
    if not lack:
        return Check(f"extra {name}", "fine", "installed")
    return Check(
        f"extra {name}", "note", f"not installed ({', '.join(lack)})",
        f"to use it: source ./environment.sh {name}, or pip install FOLDER[{name}]",
    )  # fmt: skip


def lacking(wanted: str | None) -> list[str] | None:
    """Packages of an extra (None: of hopscope itself) that are missing or too old; None if the
    package's own list is not to be had.
    """
    try:
        listed = requires("hopscope") or []
    except PackageNotFoundError:
        return None
    found = [match.groups() for line in listed if (match := REQUIREMENT.match(line))]
    told = (_lack(name, least) for name, least, of in found if of == wanted)
    return [text for text in told if text]


def _lack(name: str, least: str) -> str:
    """What is wrong with one package, or nothing."""
    try:
        there = version(name)
    except PackageNotFoundError:
        return f"{name} is missing"
    return f"{name} {there} is older than {least}" if _number(there) < _number(least) else ""


def _number(text: str) -> tuple[int, ...]:
    """A version as numbers; what comes after them says little here."""
    leading = re.match(r"\d+(\.\d+)*", text)
    return tuple(map(int, leading[0].split("."))) if leading else ()


def frames() -> Check:
    """What answers in SQL can be handed to."""
    there = [f"{name} {version(name)}" for name in FRAMES if not _lack(name, "0")]
    if there:
        return Check("data frames", "fine", ", ".join(there))
    return Check("data frames", "note", f"neither {' nor '.join(FRAMES)}", "pip install pandas")


def torch_itself() -> Check:
    """Can torch be loaded at all?"""
    try:
        import torch
    except (ImportError, OSError) as error:
        first = (str(error).splitlines() or [""])[0][:200]
        return Check("torch", "wrong", f"cannot be loaded: {first}", "install torch again")
    return Check("torch", "fine", torch.__version__)


def device() -> Check:
    """Where `--device auto` computes, and with which numbers."""
    from hopscope.configs import Training
    from hopscope.models import compiled
    from hopscope.runs.computing import processor_of
    from hopscope.training.precision import device_of, precision_of

    chosen = device_of("auto")
    precision = f"{precision_of(Training(), chosen)} unless told"
    if chosen.type == "cpu":
        return Check("device", "fine", f"no GPU: the processor, {precision}")
    return Check("device", "fine", f"{processor_of(chosen)}, {precision}, by {compiled.gpu_path()}")


def threads() -> Check:
    """How many threads a run gets that does not say."""
    import torch

    number, most = torch.get_num_threads(), cores()
    found = f"{number}, on {most} cores"
    if number > most:
        todo = f"set OMP_NUM_THREADS={most}: more threads than cores are slow"
        return Check("threads", "note", found, todo)
    return Check("threads", "fine", found)


def kernels() -> Check:
    """How bf16 models are computed, and why not in a faster way."""
    from hopscope.models import compiled

    try:
        taken, why = compiled.path(), compiled.why_none_better()
    except ConfigError as error:
        return Check("kernels", "wrong", str(error), f"unset {compiled.VARIABLE}, or name another")
    what, _, todo = why.partition(": ")
    return Check("kernels", "note" if todo else "fine", f"{taken}; {what}" if what else taken, todo)


def agreement() -> Check:
    """The kernels against torch, on this machine."""
    from hopscope.models.agreement import agreements

    try:
        found = agreements()
    except ConfigError:  # `kernels` tells of it
        return Check("agreement", "fine", "not asked")
    if not found:
        return Check("agreement", "fine", "torch alone computes here")
    told = ", ".join(f"{one.path} {one.error:.2%}" for one in found)
    told += f" off float64 (bf16 may be {found[0].allowed:.2%} off)"
    if all(one.agrees for one in found):
        return Check("agreement", "fine", told)
    todo = "set HOPSCOPE_KERNELS=torch, and install hopscope again with gcc (CC=gcc)"
    return Check("agreement", "wrong", told, todo)


def store_folder(store: Store) -> Check:
    """Where runs are kept, and whether any can be made."""
    path = store.root.absolute()
    try:
        check_folder(path)
    except StoreUnwritable as error:
        return Check("store", "wrong", str(error), "set HOPSCOPE_STORE, or --store")
    return Check("store", "fine", str(path) if path.is_dir() else f"{path}, not made yet")


def disk(store: Store) -> Check:
    """How much more can be kept."""
    there = store.root.absolute()
    while not there.exists():
        there = there.parent
    try:
        free = shutil.disk_usage(there).free
    except OSError as error:
        return Check("disk", "wrong", f"{there}: {error.strerror}", "choose another with --store")
    if free < LITTLE:
        return Check("disk", "wrong", f"{free / GIB:.2f} GiB free", "free some space")
    return Check("disk", "fine", f"{free / GIB:.0f} GiB free")


def runs(store: Store) -> Check:
    """The runs there are, and what is wrong with them."""
    try:
        found, problems = store.listed()
    except StoreError as error:
        return Check("runs", "wrong", str(error))
    states = Counter(run.state for run in found)
    told = ", ".join(f"{count} {state}" for state, count in sorted(states.items())) or "none"
    if not problems:
        return Check("runs", "fine", told)
    more = f" (and {len(problems) - 1} more: `hopscope runs`)" if len(problems) > 1 else ""
    return Check("runs", "wrong", told, f"{problems[0]}{more}")
