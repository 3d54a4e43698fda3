"""A pool of Ray workers: jobs are tasks on the nodes of a running Ray cluster.

Ray places the jobs and reports those that lost their process or node; another worker resumes these
from the store, which all nodes must be able to read. Each job has its own process.
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
from hopscope.extras import install_extra
from hopscope.machine import check_threads, keep_pages
from hopscope.store.files import read_bytes, write_bytes, writing
from hopscope.store.lock import locked
from hopscope.workers.fleets import PACK, check_pack
from hopscope.workers.job import Job, Report, check_unnumbered, do_remote, reports_from
from hopscope.workers.pools import OpenPool, WorkerLost

if TYPE_CHECKING:
    from hopscope.runs import Stop

AUTO = "auto"
"""The address of the Ray cluster on this machine."""
AHEAD = 2
"""Number of jobs queued at Ray for each job that it can run at once."""
ANSWER = 5.0
"""Seconds to wait for an answer from an address."""
STORE_WORD = ".store"
"""The file with a random word that shows whether a node sees the same store."""


@dataclass(frozen=True)
class Cluster:
    """The nodes of a running Ray."""

    address: str = AUTO
    """HOST:PORT, or auto."""
    gpus: int | float = 0
    """GPUs of each job: 0, a fraction of one, or several."""
    cpus: int | float = 1
    """CPUs of each job."""
    pack: int = PACK
    threads: int | None = None
    """Threads of each job; None: one for each CPU."""

    def __post_init__(self) -> None:
        """Raise ConfigError for settings that Ray would refuse or misread."""
        check_pack(self.pack)
        check_threads(self.threads)
        if not (0 <= self.gpus <= 1 or (self.gpus > 1 and self.gpus == int(self.gpus))):
            raise ConfigError(f"gpus is {self.gpus}; expected 0 to 1, or a whole number")
        if not self.cpus > 0:
            raise ConfigError(f"cpus is {self.cpus}; expected a number above 0")
        if self.job_threads > max(1, self.cpus):
            raise ConfigError(
                f"threads is {self.threads}, but each job asks for {self.cpus:g} processors: ask "
                "for more"
            )

    @property
    def job_threads(self) -> int:
        """Threads of each job."""
        return self.threads or max(1, int(self.cpus))

    @contextmanager
    def open(self, jobs: Sequence[Job], stop: "Stop") -> Iterator[OpenPool]:  # noqa: ARG002
        """Connect to Ray within this block; yield its workers."""
        for job in jobs:
            check_unnumbered(job.device)
        if not self.gpus and any(job.device == "cuda" for job in jobs):
            raise ConfigError("device is 'cuda', but gpus of each job is 0: ask for some")
        word = store_word(Path(jobs[0].store))
        with connected(self.address) as ray:
            task = ray.remote(
                num_cpus=self.cpus,
                num_gpus=self.gpus,
                max_retries=0,  # the sweep counts deaths and retries
                max_calls=1,
            )(node_function(gpus=self.gpus > 0, threads=self.job_threads))
            yield _RayWorkers(ray, task, word, AHEAD * self._jobs_at_once(ray))

    def _jobs_at_once(self, ray: Any) -> int:
        """Return the number of jobs that all nodes can run at once; raises if no node can."""
        nodes = [node for node in ray.nodes() if node["Alive"]]
        jobs = sum(self._fitting(node["Resources"]) for node in nodes)
        if jobs:
            return jobs
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
    word: str
    capacity: int
    references: list[Any] = field(default_factory=list)

    def begin(self, job: Job) -> Future[list[Report]]:
        reference = self.task.remote(job.model_dump_json(), self.word, __version__)
        self.references.append(reference)
        reports: Future[list[Report]] = Future()
        reference.future().add_done_callback(lambda answer: self._answer(answer, reports))
        return reports

    def _answer(self, answer: Future[str], reports: Future[list[Report]]) -> None:
        """Set the result or the error of a job's future from Ray's answer."""
        try:
            reports.set_result(reports_from(answer.result()))
        except Exception as error:  # noqa: BLE001  (handed to the future's owner)
            reports.set_exception(self._translated(error))

    def _translated(self, error: Exception) -> Exception:
        """Convert an error of Ray into the error that a sweep expects."""
        errors = self.ray.exceptions
        if isinstance(error, errors.RayTaskError):
            for_user = isinstance(error.cause, ImportError | ConfigError)
            return ConfigError(str(error.cause)) if for_user else error
        if isinstance(error, errors.RayError):  # the process, node or memory was lost, or a stop
            words = " ".join(str(error).split())[:200]
            return WorkerLost(f"{type(error).__name__}: {words}")
        return error

    def ask_to_stop(self) -> None:
        for reference in self.references:
            self.ray.cancel(reference, force=False)


def node_function(*, gpus: bool, threads: int) -> Callable[[str, str, str], str]:
    """Return the function that a node runs, on a job, the store's word and our version (all text).

    It is nested, so that Ray sends its code instead of its name: even a node without hopscope can
    run it, and report that hopscope is missing.
    """

    def run(job: str, word: str, version: str) -> str:
        import json
        import os
        import socket

        host = socket.gethostname()
        # Torch reads this variable when it is imported.
        os.environ["OMP_NUM_THREADS"] = str(json.loads(job)["threads"] or threads)
        if not gpus:
            os.environ["CUDA_VISIBLE_DEVICES"] = ""  # a job without GPUs sees none
        try:
            import hopscope
        except ImportError as error:
            raise ImportError(f"node {host} has no hopscope ({error}): install it") from None
        if hopscope.__version__ != version:
            versions = f"node {host} has hopscope {hopscope.__version__}, this is {version}"
            raise ImportError(f"{versions}: install the same version on every node")
        from hopscope.workers.cluster import do_on_node

        return do_on_node(job, word)

    bare: Callable[[str, str, str], str] = unwrap(run)  # without the tests' type checks
    return bare


def do_on_node(job: str, word: str) -> str:
    """Do a job on this node; raises ConfigError if the node does not see the store."""
    root = Path(Job.from_json(job).store)
    if _word_at(root) != word:
        raise ConfigError(
            f"node {socket.gethostname()} does not see the store {root}: put it on a file system "
            "that all nodes mount at the same path, and name it with --store"
        )
    keep_pages()
    return do_remote(job)


def store_word(root: Path) -> str:
    """Return the random word of the store; write one if there is none."""
    with writing(root):
        root.mkdir(parents=True, exist_ok=True)
    with locked(root, f"another process makes runs in {root}", patience=60.0):
        if not _word_at(root):
            write_bytes(root / STORE_WORD, secrets.token_hex(16).encode())
        return _word_at(root)


def _word_at(root: Path) -> str:
    with suppress(RunDamaged):
        return read_bytes(root / STORE_WORD).decode(errors="replace")
    return ""


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """Yield the module ray, connected to this address unless the process is already connected."""
    try:
        import ray  # type: ignore[import-not-found, unused-ignore]
    except ImportError as error:
        raise ConfigError(
            f"workers over Ray need the library ray ({error}): {install_extra('cluster')}"
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
        signal.signal(signal.SIGTERM, on_terminate)  # Ray has replaced the handler
    try:
        yield ray
    finally:
        ray.shutdown()


def _check_answer(address: str) -> None:
    """Raise ConfigError if nothing listens at the address: Ray itself would retry for minutes."""
    host, _, port = address.rpartition(":")
    if not host:  # auto: Ray looks on this machine
        return
    try:
        with socket.create_connection((host.strip("[]"), int(port)), ANSWER):
            return
    except (OSError, OverflowError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigError(
            f"nothing answers at {address!r} ({reason}); expected HOST:PORT of a Ray that runs "
            "(`ray start --head` starts one), or auto"
        ) from error
