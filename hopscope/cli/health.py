"""`hopscope doctor` (checks of the installation, with remedies) and `hopscope completion`."""

import platform
import shutil
import sys
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, metadata, version
from pathlib import Path

import click
from packaging.requirements import Requirement

import hopscope
from hopscope.cli import flags
from hopscope.cli.options import command
from hopscope.cli.output import say, say_json
from hopscope.cli.tables import table
from hopscope.errors import ConfigError, StoreError, StoreUnwritable
from hopscope.extras import install, lack, needed
from hopscope.machine import cores, memory_bytes, processor
from hopscope.store import Store
from hopscope.store.files import check_folder
from hopscope.store.folder import in_store

GIB = 2**30
LITTLE = GIB
"""Bytes of free disk below which a training may not be able to keep its checkpoints."""
DEV = "dev"
"""The extra for developing hopscope; `doctor` does not check it."""
FRAME_LIBRARIES = ("pandas", "pyarrow")


@dataclass(frozen=True)
class Check:
    """The result of one check of `hopscope doctor`."""

    name: str
    found: str
    todo: str = ""
    """What to do about it."""
    wrong: bool = False

    @property
    def state(self) -> str:
        """The state of the check: wrong, note (something could be better) or fine."""
        return "wrong" if self.wrong else "note" if self.todo else "fine"


def checks(store: Store) -> Iterator[Check]:
    """Yield every check of this installation and store."""
    yield Check("Python", f"{platform.python_version()}, {sys.executable}")
    place = Path(hopscope.__file__).parent
    yield Check("hopscope", f"{hopscope.__version__}, {place}")
    yield needs()
    memory = f"{memory_bytes() / GIB:.0f} GiB of memory"
    yield Check("processor", f"{processor()}, {cores()} cores, {memory}")
    yield (whole := torch_itself())
    if not whole.wrong:
        for look in (device, threads, kernels, agreement):
            yield look()
    for name in extras():
        yield extra(name)
    yield frames()
    yield store_folder(store)
    yield disk(store)
    yield runs(store)


def needs() -> Check:
    """Check the packages that hopscope requires."""
    try:
        lacks = [*filter(lack, needed(""))]
    except PackageNotFoundError:
        todo = "pip install --config-settings editable_mode=compat -e FOLDER"
        found = "hopscope is imported from a folder and not installed: its requirements are unknown"
        return Check("packages", found, todo)
    if lacks:
        return Check("packages", _told(lacks), "install hopscope again with pip", wrong=True)
    return Check("packages", "all requirements are installed")


def extras() -> list[str]:
    """Return the extras in the package's metadata; empty if hopscope is not installed."""
    try:
        named = metadata("hopscope").get_all("Provides-Extra") or []
    except PackageNotFoundError:
        return []
    return [name for name in named if name != DEV]


def extra(name: str) -> Check:
    """Check the packages of an extra; missing ones are a note, not an error."""
    lacks = [*filter(lack, needed(name))]
    if not lacks:
        return Check(f"extra {name}", "installed")
    told = f"not installed ({_told(lacks)})"
    return Check(f"extra {name}", told, f"to use it: {install(lacks)}")


def _told(lacks: Iterable[Requirement]) -> str:
    return ", ".join(map(lack, lacks))


def frames() -> Check:
    """Check whether pandas or pyarrow is there for the answers of SQL queries."""
    there = [f"{name} {version(name)}" for name in FRAME_LIBRARIES if not lack(Requirement(name))]
    if there:
        return Check("data frames", ", ".join(there))
    return Check("data frames", f"neither {' nor '.join(FRAME_LIBRARIES)}", "pip install pandas")


def torch_itself() -> Check:
    """Check whether torch can be imported."""
    try:
        import torch
    except (ImportError, OSError) as error:
        first = (str(error).splitlines() or [""])[0][:200]
        return Check("torch", f"cannot be loaded: {first}", "install torch again", wrong=True)
    return Check("torch", torch.__version__)


def device() -> Check:
    """Check the device and the precision of `--device auto`."""
    from hopscope.configs import Training
    from hopscope.models import native
    from hopscope.runs.computing import processor_of
    from hopscope.training.device import device_of, precision_of

    chosen = device_of("auto")
    precision = f"{precision_of(Training(), chosen)} by default"
    if chosen.type == "cpu":
        return Check("device", f"no GPU: the processor, {precision}")
    with warnings.catch_warnings(action="ignore"):  # this check shows it instead
        found = f"{processor_of(chosen)}, {precision}, by {native.gpu_backend(chosen)}"
        what, _, todo = native.why_no_triton(chosen).partition(": ")
    return Check("device", f"{found}; {what}" if what else found, todo)


def threads() -> Check:
    """Check the default number of threads of a run."""
    import torch

    number, most = torch.get_num_threads(), cores()
    found = f"{number}, on {most} cores"
    if number > most:
        todo = f"set OMP_NUM_THREADS={most}: more threads than cores are slow"
        return Check("threads", found, todo)
    return Check("threads", found)


def kernels() -> Check:
    """Check which kernels compute bf16 models, and why no faster ones are used."""
    from hopscope.models import native

    try:
        taken, why = native.backend(), native.why_none_better()
    except ConfigError as error:
        return Check("kernels", str(error), f"unset {native.VARIABLE}, or name another", wrong=True)
    what, _, todo = why.partition(": ")
    return Check("kernels", f"{taken}; {what}" if what else taken, todo)


def agreement() -> Check:
    """Check that the kernels agree with torch on this machine."""
    from hopscope.models.agreement import agreements

    try:
        found = agreements()
    except ConfigError:  # `kernels` reports it
        return Check("agreement", "not asked")
    if not found:
        return Check("agreement", "torch alone computes here")
    told = ", ".join(f"{one.backend} {one.error:.2%}" for one in found)
    told += f" off float64 (bf16 may be {found[0].allowed:.2%} off)"
    if all(one.agrees for one in found):
        return Check("agreement", told)
    todo = "set HOPSCOPE_KERNELS=torch, and install hopscope again with gcc (CC=gcc)"
    return Check("agreement", told, todo, wrong=True)


def store_folder(store: Store) -> Check:
    """Check the folder of runs, and whether it is writable."""
    path = store.root.absolute()
    try:
        check_folder(path)
    except StoreUnwritable as error:
        return Check("store", str(error), "set HOPSCOPE_STORE, or --store", wrong=True)
    return Check("store", str(path) if path.is_dir() else f"{path}, not made yet")


def disk(store: Store) -> Check:
    """Check the free space of the store's disk."""
    there = store.root.absolute()
    while not there.exists():
        there = there.parent
    try:
        free = shutil.disk_usage(there).free
    except OSError as error:
        return Check(
            "disk", f"{there}: {error.strerror}", "choose another with --store", wrong=True
        )
    if free < LITTLE:
        return Check("disk", f"{free / GIB:.2f} GiB free", "free some space", wrong=True)
    return Check("disk", f"{free / GIB:.0f} GiB free")


def runs(store: Store) -> Check:
    """Count the runs by state; wrong if any cannot be read."""
    try:
        found, problems = store.listed()
    except StoreError as error:
        return Check("runs", str(error), wrong=True)
    states = Counter(run.state for run in found)
    told = ", ".join(f"{count} {state}" for state, count in sorted(states.items())) or "none"
    if not problems:
        return Check("runs", told)
    more = (
        f" (and {len(problems) - 1} more: `{in_store(store.root, 'runs')}`)"
        if len(problems) > 1
        else ""
    )
    return Check("runs", told, f"{problems[0]}{more}", wrong=True)


STATE_COLOURS = {"fine": "32", "note": "33", "wrong": "31"}
"""Green, yellow and red, in the codes of a terminal."""


@command(flags.store, flags.json)
def doctor(store: Store, json: bool) -> int:
    """Check the installation, this machine and the store; exit code 1 if something is wrong."""
    found = list(checks(store))
    wrong = [check for check in found if check.wrong]
    if json:
        fields = ("name", "state", "found", "todo")
        say_json([{field: getattr(check, field) for field in fields} for check in found])
    else:
        _print(found)
        say("", f"{len(wrong)} of {len(found)} are wrong" if wrong else "no problems found")
    return 1 if wrong else 0


@command(click.argument("shell", type=click.Choice(["bash", "zsh", "fish"])))
def completion(shell: str) -> None:
    """Print a script that completes commands, flags and names.

    \b
      source <(hopscope completion bash)   (zsh likewise)
      hopscope completion fish | source
    """
    from click.shell_completion import get_completion_class

    from hopscope.cli.commands import CommandGroup
    from hopscope.cli.main import COMPLETE

    made = get_completion_class(shell)
    assert made is not None
    say(*made(CommandGroup(), {}, "hopscope", COMPLETE).source().splitlines())


def _print(found: list[Check]) -> None:
    rows = [(check.state, check.name, check.found) for check in found]
    table(("state", "what", "found"), rows, colours=STATE_COLOURS)
    todo = [(check.name, check.todo) for check in found if check.todo]
    if todo:
        say()
        table(("what", "to do"), todo)
