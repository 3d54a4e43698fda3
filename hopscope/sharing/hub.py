"""Runs on a hub of models: all files of a run as they are, with a card; and back.

Nothing that a hub sends is trusted. Its manifest says which files there are, by the patterns of a
run's names; each is asked for by that name, no byte more is read than the manifest promises, and
all is held against it before a run is made of it. Only JSON, Parquet and safetensors come so.
"""

import re
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hopscope.errors import RunMismatch, SharingError, StoreError
from hopscope.machine import memory_bytes
from hopscope.sharing.card import card, run_name
from hopscope.store import RunFolder, Store
from hopscope.store.files import sha256, write_inside
from hopscope.store.folder import CONFIG
from hopscope.store.manifest import MANIFEST, MOST_BYTES, NAME, Manifest, read_manifest

OTHERS = {".gitattributes", "README.md", "circuit.png"}
"""What may lie beside the files of a run."""
MOST_FILES = 10_000
"""Files of a run that are fetched at most."""
TIMEOUT = 60.0
"""Seconds to wait for a hub that says nothing."""


class Hub:
    """A hub; None: the one that $HF_ENDPOINT names, or huggingface_hub's own."""

    def __init__(self, endpoint: str | None = None) -> None:
        try:
            import httpx
            import huggingface_hub
            from huggingface_hub import errors, utils
        except ImportError as error:
            raise SharingError(
                f"{error.name} is not installed: pip install 'hopscope[hub]'"
            ) from error
        self.httpx = httpx
        self.library: Any = huggingface_hub
        self.errors: Any = errors
        self.utils: Any = utils
        self.utils.disable_progress_bars()
        self.api: Any = huggingface_hub.HfApi(endpoint)
        self.token = huggingface_hub.get_token()

    def files(self, repository: str, revision: str | None = None) -> tuple[str, set[str]]:
        """The commit that is asked for, and the names of its files."""
        with self.told(f"cannot look at {repository}"):
            found = self.api.model_info(repository, revision=revision)
        return str(found.sha), {each.rfilename for each in found.siblings or []}

    def is_run(self, place: str) -> bool:
        """Is this, OWNER/NAME or OWNER/NAME@REVISION, a run of hopscope?"""
        repository, _, revision = place.partition("@")
        _, names = self.files(repository, revision or None)
        return {MANIFEST, CONFIG} <= names

    def push(
        self, folder: RunFolder, place: str, licence: str = "apache-2.0", private: bool = False
    ) -> str:
        """Put a run there, and say where it is to be seen. Files of an earlier run go."""
        check_place(place)
        if self.token is None:
            raise SharingError("there is no key for the hub: `hf auth login`, or set HF_TOKEN")
        if folder.in_training():
            raise SharingError(f"{folder.name} is being trained: push it when it is complete")
        paths = dict(zip(folder.files(""), folder.paths("", verify=True), strict=True))
        with self.told(f"cannot push to {place}"):
            url = str(self.api.create_repo(place, private=private, exist_ok=True))
        _, there = self.files(place)
        if there - OTHERS and MANIFEST not in there:
            raise SharingError(
                f"{place} holds {min(there - OTHERS)}, and no run: choose another name"
            )
        add, remove = self.library.CommitOperationAdd, self.library.CommitOperationDelete
        made = {**card(folder, place, licence), MANIFEST: folder.manifest.copied().to_bytes()}
        gone = {name for name in there - {*paths, *made} if NAME.fullmatch(name)}
        changes = [
            *(add(name, str(path)) for name, path in paths.items()),
            *(add(name, data) for name, data in made.items()),
            *(remove(name) for name in sorted(gone)),
        ]
        with self.told(f"cannot push to {place}"), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "It seems that you are about to commit a data file")
            self.api.create_commit(place, changes, commit_message=f"Run {folder.manifest.name}")
        return url

    def pull(self, place: str, store: Store) -> RunFolder:
        """Fetch a run into a store."""
        repository, _, revision = place.partition("@")
        check_place(repository)
        commit, _ = self.files(repository, revision or None)
        with tempfile.TemporaryDirectory() as folder, self._client() as client:
            path = Path(folder)

            def fetch(name: str, most: int) -> bytes:
                where = self.library.hf_hub_url(
                    repository, name, revision=commit, endpoint=self.api.endpoint
                )
                data = self._bytes(client, where, name, most)
                write_inside(path, name, data)
                return data

            fetch(MANIFEST, MOST_BYTES)
            with _sound(place):
                manifest = read_manifest(path)
            _check_sizes(manifest, path)
            fetch(manifest.place(CONFIG), manifest.files[CONFIG].size)
            with _sound(place):
                found = RunFolder(path)
                found.check_recipe()
            for name, entry in manifest.files.items():
                if sha256(fetch(manifest.place(name), entry.size)) != entry.sha256:
                    raise SharingError(f"{name} of {place} is not what its manifest says")
            with _sound(place):
                name = run_name(found, repository)
            return _kept(found, store, name)

    @contextmanager
    def told(self, what: str) -> Iterator[None]:
        """Turns what the hub's library raises into one line."""
        errors = self.errors
        failures = (
            errors.LocalTokenNotFoundError, errors.HFValidationError, OSError, ValueError,
            *errors.HfHubHTTPError.__bases__,
        )  # fmt: skip
        try:
            yield
        except failures as error:
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise SharingError(f"{what}: {reason[:200]}") from error

    @contextmanager
    def _client(self) -> Iterator[Any]:
        headers = self.utils.build_hf_headers(token=self.token or False)
        with self.httpx.Client(headers=headers, follow_redirects=True, timeout=TIMEOUT) as client:
            yield client

    def _bytes(self, client: Any, where: str, name: str, most: int) -> bytes:
        """A file of at most so many bytes."""
        found = bytearray()
        try:
            with client.stream("GET", where) as answer:
                answer.raise_for_status()
                for block in answer.iter_bytes():
                    found += block
                    if len(found) > most:
                        raise SharingError(f"{name} is larger than the {most:,} bytes it may have")
        except self.httpx.HTTPError as error:
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise SharingError(f"cannot fetch {name}: {reason[:200]}") from error
        return bytes(found)


def check_place(place: str) -> None:
    """Refuse what is no OWNER/NAME."""
    if re.fullmatch(r"\w[\w.-]{0,95}/\w[\w.-]{0,95}", place, re.ASCII) is None:
        raise SharingError(f"{place[:100]!r} is no place on a hub; expected OWNER/NAME")


def _check_sizes(manifest: Manifest, path: Path) -> None:
    """Refuse what this machine cannot hold, before it is fetched."""
    free = shutil.disk_usage(path).free // 2  # it is written twice
    total = sum(entry.size for entry in manifest.files.values())
    largest = max((entry.size for entry in manifest.files.values()), default=0)
    most = memory_bytes() // 4
    if CONFIG not in manifest.files:
        raise SharingError(f"{manifest.name[:100]!r} is no run: it has no {CONFIG}")
    if len(manifest.files) > MOST_FILES or total > free or largest > most:
        raise SharingError(
            f"the run has {len(manifest.files):,} files of {total:,} bytes together and "
            f"{largest:,} at most; this machine takes {MOST_FILES:,}, {free:,} and {most:,}"
        )


def _kept(found: RunFolder, store: Store, name: str) -> RunFolder:
    """The run in the store; one that is there already, and is the same, stays."""
    try:
        return store.copy(found, name)
    except RunMismatch:
        there = RunFolder(store.root / name)
        if there.manifest.files == found.manifest.files:
            return there
        raise


@contextmanager
def _sound(place: str) -> Iterator[None]:
    """What is wrong with a run that came is told with where it came from."""
    try:
        yield
    except StoreError as error:
        raise SharingError(f"{place} holds no sound run: {error}") from error
