"""A Ray to work with: one of our own on this machine, or one that runs somewhere.

A Ray of our own is closed: a token in a file of mode 0600, a temporary folder of mode 0700 (short,
because paths of sockets hold 107 bytes), no dashboard, no telemetry, and as many processors as this
process may use. All of it is gone afterwards; what a killed process left, the next one removes: a
lock in the folder says whose it is.
"""

import os
import secrets
import shutil
import signal
import socket
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from hopscope.errors import ConfigError
from hopscope.machine import cores
from hopscope.store.lock import holder_of, locked, marks

LOCAL = "local"
"""The address of a Ray of our own."""
PREFIX = "hopscope-ray-"
"""Before the names of temporary folders of ours."""
LONGEST = 40
"""Letters of the folder of temporary files, if Ray's sockets are to find room below it."""
KNOCKING = 5.0
"""Seconds to wait for an answer from an address."""
OBJECTS = 100 * 2**20
"""Bytes of Ray's object store: what comes back from a job has a few hundred."""


def ray_itself() -> Any:
    """The library."""
    try:
        import ray  # type: ignore[import-not-found, unused-ignore]
    except ImportError as error:
        raise ConfigError(
            f"workers over Ray need the library ray ({error}): pip install 'hopscope[cluster]'"
        ) from error
    return ray


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """Ray, connected to whatever runs at an address, or to one of our own; then as before."""
    ray = ray_itself()
    if ray.is_initialized():
        if address == LOCAL:
            raise ConfigError(
                "this process is connected to a Ray already: give its address (or auto), or "
                "ray.shutdown() first"
            )
        yield ray
        return
    terminating = signal.getsignal(signal.SIGTERM)  # which Ray takes
    try:
        with _own(ray) if address == LOCAL else _joined(ray, address):
            yield ray
    finally:
        if signal.getsignal(signal.SIGTERM) is not terminating and _main_thread():
            signal.signal(signal.SIGTERM, terminating)


@contextmanager
def _own(ray: Any) -> Iterator[None]:
    """A Ray that begins and ends here."""
    folder = _folder()
    try:
        with locked(folder, f"another process uses {folder}"), _environment(
            RAY_AUTH_MODE="token", RAY_AUTH_TOKEN_PATH=str(_written(folder / "token")),
            RAY_USAGE_STATS_ENABLED="0", RAY_AUTH_TOKEN=None,
        ):  # fmt: skip
            _look_again(ray)
            try:
                ray.init(
                    address=LOCAL,
                    num_cpus=cores(),
                    include_dashboard=False,
                    log_to_driver=False,
                    logging_level="ERROR",
                    object_store_memory=OBJECTS,
                    _temp_dir=str(folder),
                )
                yield
            finally:
                ray.shutdown(wait_for_processes=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)  # what is written meanwhile, the next one removes


@contextmanager
def _joined(ray: Any, address: str) -> Iterator[None]:
    """A Ray of somebody else, or of the same job; its token is in the environment."""
    if "://" in address:
        raise ConfigError(
            f"the address is {address!r}; expected HOST:PORT or auto: start hopscope on a node of "
            "the cluster, as it has to see the store"
        )
    _knock(os.environ.get("RAY_ADDRESS", address) if address == "auto" else address)
    _look_again(ray)
    try:
        ray.init(address=address, log_to_driver=False, logging_level="ERROR")
    except ray.exceptions.AuthenticationError as error:
        raise ConfigError(
            f"the Ray at {address} asks for its token: set RAY_AUTH_MODE=token and "
            "RAY_AUTH_TOKEN_PATH to the file that holds it"
        ) from error
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise ConfigError(
            f"no Ray is to be joined at {address!r} ({' '.join(str(error).split())[:200]}); "
            "if one runs there, it may ask for a token: RAY_AUTH_MODE=token and RAY_AUTH_TOKEN_PATH"
        ) from error
    try:
        yield
    finally:
        ray.shutdown()


def _look_again(ray: Any) -> None:
    """Ray looks at the environment when it is imported; it has no public name for once more."""
    ray._raylet.Config.initialize("")  # noqa: SLF001


def _knock(address: str) -> None:
    """Refuse an address that nobody listens at; Ray would try for minutes."""
    host, _, port = address.rpartition(":")
    if not host:  # auto: Ray looks for one that runs on this machine
        return
    try:
        with socket.create_connection((host.strip("[]"), int(port)), KNOCKING):
            return
    except (OSError, OverflowError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigError(
            f"nobody answers at {address!r} ({reason}); expected HOST:PORT of a Ray that runs "
            "(`ray start --head` starts one), auto, or local for one of our own"
        ) from error


def _folder() -> Path:
    """A folder of our own for what Ray keeps while it runs."""
    root = Path(tempfile.gettempdir())
    if len(str(root)) > LONGEST:
        root = Path("/tmp")  # noqa: S108  (the folder in it is made by mkdtemp)
    for left in root.glob(f"{PREFIX}*"):
        if _is_orphan(left):
            shutil.rmtree(left, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=PREFIX, dir=root))


def _is_orphan(folder: Path) -> bool:
    """Was it left by a process that was killed? Others may use the same root, and people call
    folders of theirs what they like.
    """
    try:
        return (
            bool(marks(folder))
            and holder_of(folder) is None
            and folder.lstat().st_uid == os.getuid()
        )
    except OSError:  # somebody else has removed it
        return False


def _written(path: Path) -> Path:
    """The file of the token, which nobody else can read."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(_token())
    return path


@cache
def _token() -> str:
    """One for each process, as Ray reads it once."""
    return secrets.token_hex(32)


@contextmanager
def _environment(**wanted: str | None) -> Iterator[None]:
    """With these variables of the environment (None: without it), and then as before."""
    before: Mapping[str, str | None] = {name: os.environ.get(name) for name in wanted}
    _set(wanted)
    try:
        yield
    finally:
        _set(before)


def _set(variables: Mapping[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def _main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
