"""Ray as a pool: jobs as tasks on as many machines as it has.

Ray (one that runs already) places the jobs, and reports which of them lost their process or
machine; those are begun again. It knows nothing of runs: what is complete stays so, and what was
begun goes on, in the store that all machines see. A job has a process of its own.
"""

import logging
import os
import secrets
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from inspect import unwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hopscope import __version__
from hopscope.errors import ConfigError, RunDamaged
from hopscope.machine import check_threads, keep_pages
from hopscope.store.files import read_bytes, write_bytes, writing
from hopscope.store.lock import locked
from hopscope.workers.fleets import PACK, check_pack
from hopscope.workers.job import Job, Report, check_unnumbered, do_remote, reports_from
from hopscope.workers.pools import WorkerLost, Workers

if TYPE_CHECKING:
    from hopscope.runs import Stop

AUTO = "auto"
"""The address of a Ray that runs on this machine."""
AHEAD = 2
"""Jobs that Ray holds for each that it can work on."""
ANSWER = 5.0
"""Seconds to wait for an answer from an address."""
MARK = ".store"
"""The file of a random word by which a machine recognises the store, not just its path."""


@dataclass(frozen=True)
class Cluster:
    """The machines of a Ray that runs."""

    address: str = AUTO
    """HOST:PORT, or auto."""
    gpus: int | float = 0
    """GPUs of each job: 0, a part of one, or several."""
    cpus: int | float = 1
    """Processors of each job."""
    pack: int = PACK
    threads: int | None = None
    """Threads of each job; None: as many as it has processors."""

    def __post_init__(self) -> None:
        """Refuse what Ray would refuse, or read otherwise."""
        check_pack(self.pack)
        check_threads(self.threads)
        if not (0 <= self.gpus <= 1 or (self.gpus > 1 and self.gpus == int(self.gpus))):
            raise ConfigError(f"gpus is {self.gpus}; expected 0 to 1, or a whole number")
        if not self.cpus > 0:
            raise ConfigError(f"cpus is {self.cpus}; expected a number above 0")
        if self.share > max(1, self.cpus):
            raise ConfigError(
                f"threads is {self.threads}, but each job asks for {self.cpus:g} processors: ask "
                "for more"
            )

    @property
    def share(self) -> int:
        """Threads of each job."""
        return self.threads or max(1, int(self.cpus))

    @contextmanager
    def open(self, jobs: Sequence[Job], stop: "Stop") -> Iterator[Workers]:  # noqa: ARG002
        """The workers of the Ray, while we are connected to it."""
        for job in jobs:
            check_unnumbered(job.device)
        if not self.gpus and any(job.device == "cuda" for job in jobs):
            raise ConfigError("device is 'cuda', but gpus of each job is 0: ask for some")
        mark = store_mark(Path(jobs[0].store))
        with connected(self.address) as ray:
            task = ray.remote(
                num_cpus=self.cpus,
                num_gpus=self.gpus,
                max_retries=0,  # deaths are counted where jobs are handed out
                max_calls=1,
            )(on_machine(gpus=self.gpus > 0, threads=self.share))
            yield _RayWorkers(ray, task, mark, AHEAD * self._room(ray))

    def _room(self, ray: Any) -> int:
        """Jobs that all machines have room for at a time."""
        nodes = [node for node in ray.nodes() if node["Alive"]]
        found = sum(self._fitting(node["Resources"]) for node in nodes)
        if found:
            return found
        have = ", ".join(
            f"{node['NodeManagerHostname']} has {node['Resources'].get('CPU', 0):g} CPUs and "
            f"{node['Resources'].get('GPU', 0):g} GPUs"
            for node in nodes
        )
        raise ConfigError(
            f"a job asks for {self.cpus:g} CPUs and {self.gpus:g} GPUs, and no machine has that: "
            f"{have}"
        )

    def _fitting(self, resources: Mapping[str, int | float]) -> int:
        fit = int(resources.get("CPU", 0) / self.cpus + 1e-6)
        if not self.gpus:
            return fit
        there = resources.get("GPU", 0)
        on_gpus = there / self.gpus if self.gpus > 1 else int(there) * int(1 / self.gpus + 1e-6)
        return min(fit, int(on_gpus))


@dataclass(frozen=True)
class _RayWorkers:
    ray: Any
    task: Any
    mark: str
    most: int
    references: list[Any] = field(default_factory=list)

    def begin(self, job: Job) -> Future[list[Report]]:
        reference = self.task.remote(job.model_dump_json(), self.mark, __version__)
        self.references.append(reference)
        found: Future[list[Report]] = Future()
        reference.future().add_done_callback(lambda future: self._settle(future, found))
        return found

    def _settle(self, answered: Future[str], found: Future[list[Report]]) -> None:
        try:
            found.set_result(reports_from(answered.result()))
        except Exception as error:  # noqa: BLE001  (handed to the future's owner)
            found.set_exception(self._meaning(error))

    def _meaning(self, error: Exception) -> Exception:
        """What an error of Ray's means to a sweep."""
        raised = self.ray.exceptions
        if isinstance(error, raised.RayTaskError):
            cause: Exception = error.cause
            known = isinstance(cause, ImportError | ConfigError)
            return ConfigError(str(cause)) if known else error
        if isinstance(error, raised.RayError):  # the process, the machine or its memory; or stopped
            words = " ".join(str(error).split())[:200]
            return WorkerLost(f"{type(error).__name__}: {words}")
        return error

    def ask_to_stop(self) -> None:
        for reference in self.references:
            self.ray.cancel(reference, force=False)


def on_machine(*, gpus: bool, threads: int) -> Callable[[str, str, str], str]:
    """The function that a machine runs: a job, the store's mark and our version, all as text.

    It is nested, so that Ray sends its code and not its name: a machine without hopscope can then
    say so.
    """

    def run(job: str, mark: str, version: str) -> str:
        import json
        import os
        import socket

        host = socket.gethostname()
        # Torch reads it when it is imported.
        os.environ["OMP_NUM_THREADS"] = str(json.loads(job)["threads"] or threads)
        if not gpus:
            os.environ["CUDA_VISIBLE_DEVICES"] = ""  # a job that asked for no GPU sees none
        try:
            import hopscope
        except ImportError as error:
            raise ImportError(f"node {host} has no hopscope ({error}): install it") from None
        if hopscope.__version__ != version:
            words = f"node {host} has hopscope {hopscope.__version__}, this is {version}"
            raise ImportError(f"{words}: install the same version on every node")
        from hopscope.workers.cluster import arrived

        return arrived(job, mark)

    bare: Callable[[str, str, str], str] = unwrap(run)  # without the tests' type checks
    return bare


def arrived(job: str, mark: str) -> str:
    """Do a job on the machine where it arrived, if that machine sees the store."""
    root = Path(Job.from_json(job).store)
    if _mark_at(root) != mark:
        raise ConfigError(
            f"node {socket.gethostname()} does not see the store {root}: put it on a file system "
            "that all nodes mount at the same path, and name it with --store"
        )
    keep_pages()
    return do_remote(job)


def store_mark(root: Path) -> str:
    """The random word in the store, which is written if there is none."""
    with writing(root):
        root.mkdir(parents=True, exist_ok=True)
    with locked(root, f"another process makes runs in {root}", patience=60.0):
        if not _mark_at(root):
            write_bytes(root / MARK, secrets.token_hex(16).encode())
        return _mark_at(root)


def _mark_at(root: Path) -> str:
    with suppress(RunDamaged):
        return read_bytes(root / MARK).decode(errors="replace")
    return ""


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """Ray, connected to the one at this address unless this process is connected already."""
    try:
        import ray  # type: ignore[import-not-found, unused-ignore]
    except ImportError as error:
        raise ConfigError(
            f"workers over Ray need the library ray ({error}): pip install 'hopscope[cluster]'"
        ) from error
    if ray.is_initialized():
        yield ray
        return
    if "://" in address:
        raise ConfigError(
            f"the address is {address!r}; expected HOST:PORT or auto: start hopscope on a node of "
            "the cluster, as it has to see the store"
        )
    _check_answer(os.environ.get("RAY_ADDRESS", address) if address == AUTO else address)
    on_terminate = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise ConfigError(
            f"cannot connect to a Ray at {address!r} ({' '.join(str(error).split())[:200]}): "
            "`ray start --head` starts one; for one with a token set RAY_AUTH_MODE=token and "
            "RAY_AUTH_TOKEN_PATH"
        ) from error
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, on_terminate)  # which Ray has taken
    try:
        yield ray
    finally:
        ray.shutdown()


def _check_answer(address: str) -> None:
    """Refuse an address where nobody listens; Ray would try for minutes."""
    host, _, port = address.rpartition(":")
    if not host:  # auto: Ray looks for one on this machine
        return
    try:
        with socket.create_connection((host.strip("[]"), int(port)), ANSWER):
            return
    except (OSError, OverflowError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigError(
            f"nobody answers at {address!r} ({reason}); expected HOST:PORT of a Ray that runs "
            "(`ray start --head` starts one), or auto"
        ) from error
