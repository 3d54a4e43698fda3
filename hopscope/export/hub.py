"""Push a run to a hub of models, with a card, and pull it back, by huggingface_hub.

Data from a hub are not trusted. The manifest lists the files, whose names must be valid for a run.
Each is fetched by name if its size on the hub equals that in the manifest, and every hash is
checked before anything is written to the store. Only JSON, Parquet and safetensors are read.
"""

import re
import shutil
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hopscope.errors import RunMismatch, SharingError, StoreError
from hopscope.export.card import card, run_name
from hopscope.extras import install_extra
from hopscope.store import RunFolder, Store
from hopscope.store.folder import CONFIG
from hopscope.store.manifest import FILE_NAME, MANIFEST, MANIFEST_BYTES, Manifest, read_manifest

OTHERS = {".gitattributes", "README.md", "circuit.png"}
"""Files that a folder on the Hub may have besides those of a run."""
MOST_FILES = 10_000
"""Largest number of files that are fetched for one run."""


class Hub:
    """A hub (endpoint None: $HF_ENDPOINT, or huggingface_hub's default)."""

    def __init__(self, endpoint: str | None = None) -> None:
        try:
            import huggingface_hub
            import huggingface_hub.errors
            import huggingface_hub.utils
        except ImportError as error:
            raise SharingError(f"{error.name} is not installed: {install_extra('hub')}") from error
        self.library: Any = huggingface_hub
        self.library.utils.disable_progress_bars()
        self.api: Any = huggingface_hub.HfApi(endpoint)
        self.token = huggingface_hub.get_token()

    def files(self, place: str) -> tuple[str, dict[str, int]]:
        """Return the commit of OWNER/NAME or OWNER/NAME@REVISION, and the sizes of its files."""
        repository, _, revision = place.partition("@")
        with self.failures(f"cannot look at {place}"):
            found = self.api.model_info(repository, revision=revision or None, files_metadata=True)
        return str(found.sha), {each.rfilename: each.size or 0 for each in found.siblings or []}

    def is_run(self, place: str) -> bool:
        """Return whether OWNER/NAME or OWNER/NAME@REVISION is a run of hopscope."""
        _, names = self.files(place)
        return {MANIFEST, CONFIG} <= names.keys()

    def push(
        self, folder: RunFolder, place: str, licence: str = "apache-2.0", private: bool = False
    ) -> str:
        """Upload a run, replacing an earlier one; return its URL."""
        check_place(place)
        check_licence(licence)
        if self.token is None:
            raise SharingError("not logged in to the hub: `hf auth login`, or set HF_TOKEN")
        if folder.in_training():
            raise SharingError(f"{folder.name} is being trained: push it when it is complete")
        paths = dict(zip(folder.files(""), folder.paths("", verify=True), strict=True))
        with self.failures(f"cannot push to {place}"):
            url = str(self.api.create_repo(place, private=private, exist_ok=True))
        _, there = self.files(place)
        others = there.keys() - OTHERS
        if others and MANIFEST not in there:
            raise SharingError(f"{place} holds {min(others)}, and no run: choose another name")
        add, remove = self.library.CommitOperationAdd, self.library.CommitOperationDelete
        made = {**card(folder, place, licence), MANIFEST: folder.manifest.copied().to_bytes()}
        gone = {name for name in there.keys() - {*paths, *made} if FILE_NAME.fullmatch(name)}
        changes = [
            *(add(name, str(path)) for name, path in paths.items()),
            *(add(name, data) for name, data in made.items()),
            *(remove(name) for name in sorted(gone)),
        ]
        with self.failures(f"cannot push to {place}"), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "It seems that you are about to commit a data file")
            self.api.create_commit(place, changes, commit_message=f"Run {folder.manifest.name}")
        return url

    def pull(self, place: str, store: Store) -> RunFolder:
        """Fetch a run into a store."""
        repository = place.partition("@")[0]
        check_place(repository)
        commit, sizes = self.files(place)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder)

            def fetch(name: str) -> None:
                with self.failures(f"cannot fetch {name}"):
                    self.api.hf_hub_download(repository, name, revision=commit, local_dir=path)

            if sizes.get(MANIFEST, 0) > MANIFEST_BYTES:
                raise SharingError(f"{MANIFEST} of {place} is larger than {MANIFEST_BYTES:,} bytes")
            fetch(MANIFEST)
            with _sound(place):
                manifest = read_manifest(path)
            _check_sizes(manifest, sizes, path)
            for name in manifest.files:
                fetch(manifest.place(name))
            with _sound(place):
                found = RunFolder(path)
                found.check_recipe()
                found.paths("", verify=True)
                name = run_name(found, repository)
            return _copied(found, store, name)

    @contextmanager
    def failures(self, what: str) -> Iterator[None]:
        """Turn errors of the hub's library within this block into SharingError with one line."""
        errors = self.library.errors
        failures = (
            errors.LocalTokenNotFoundError, errors.HFValidationError, errors.EntryNotFoundError,
            OSError, ValueError, *errors.HfHubHTTPError.__bases__,
        )  # fmt: skip
        try:
            yield
        except failures as error:
            lines = [line for line in str(error).splitlines() if line.strip()]
            if len(lines) > 1 and "Client Error" in lines[0]:  # the next line has the reason
                lines = lines[1:]
            reason = (lines or [type(error).__name__])[0]
            raise SharingError(f"{what}: {reason[:200]}") from error


def check_place(place: str) -> None:
    """Raise SharingError unless this is OWNER/NAME."""
    if re.fullmatch(r"\w[\w.-]{0,95}/\w[\w.-]{0,95}", place, re.ASCII) is None:
        raise SharingError(f"{place[:100]!r} is not a place on a hub; expected OWNER/NAME")


def check_licence(licence: str) -> None:
    """Raise SharingError if this cannot be the hub's name of a licence."""
    if re.fullmatch(r"[a-z0-9][a-z0-9.+-]*", licence) is None:
        raise SharingError(
            f"{licence[:100]!r} is not a licence; expected the hub's name of one, as cc-by-4.0"
        )


def _check_sizes(manifest: Manifest, sizes: Mapping[str, int], path: Path) -> None:
    """Raise SharingError if files differ in size from the manifest, or do not fit on this disk."""
    if CONFIG not in manifest.files:
        raise SharingError(f"{manifest.name[:100]!r} is not a run: it has no {CONFIG}")
    free = shutil.disk_usage(path).free // 2  # the run is written twice
    total = sum(entry.size for entry in manifest.files.values())
    if len(manifest.files) > MOST_FILES or total > free:
        raise SharingError(
            f"the run has {len(manifest.files):,} files of {total:,} bytes together; this machine "
            f"takes {MOST_FILES:,} and {free:,}"
        )
    for name, entry in manifest.files.items():
        size = sizes.get(manifest.place(name))
        if size != entry.size:
            raise SharingError(
                f"{name} has {size} bytes on the hub; its manifest says {entry.size}"
            )


def _copied(found: RunFolder, store: Store, name: str) -> RunFolder:
    """Copy the run into the store, or return the same run if it is already there."""
    try:
        return store.copy(found, name)
    except RunMismatch:
        there = RunFolder(store.root / name)
        if there.manifest.files == found.manifest.files:
            return there
        raise


@contextmanager
def _sound(place: str) -> Iterator[None]:
    """Turn a StoreError within this block into SharingError that names the place on the hub."""
    try:
        yield
    except StoreError as error:
        raise SharingError(f"{place} has no valid run: {error}") from error
