"""The manifest: the files of a run, the SHA-256 of each, and how they were computed.

Writing the manifest is the commit: it is written last, and files that it does not name are ignored.
"""

import json
import re
from pathlib import Path
from typing import Annotated

from pydantic import Field, field_validator

from hopscope.configs import Config
from hopscope.errors import ConfigError, RunDamaged, RunMismatch, RunMissing
from hopscope.store.files import read_inside, sha256

FORMAT = 3
"""The version of the format of run folders."""
MANIFEST = "manifest.json"
PACKED = "packed.json"
"""The file that marks a fleet of a sweep, whose members become separate runs."""
CHECK = "check"
"""The key of the manifest's own SHA-256, over all other keys."""
MANIFEST_BYTES = 2**26
"""Largest size of a manifest or other JSON file of a run that is read, in bytes."""
FILE_NAME = re.compile(
    r"[a-z][a-z0-9-]{0,80}\.json|[a-z]{1,40}/[a-z]{1,40}(-\d{8,12}){0,3}\.(parquet|safetensors|jsonl)",
    re.ASCII,
)
"""Valid names of a run's files: a .json next to the manifest, or in a folder a word and at most
three numbers."""
VERSION = re.compile(r"-\d{10}(?=\.json$)", re.ASCII)
"""The suffix that `FileEntry.replacing` adds to a name."""
DERIVED = re.compile(r"(?!(config|packed)\.json$)[^/]+\.json|explorer/.*", re.ASCII)
"""Names of derived files, such as circuits and views. A run can continue without them."""

Count = Annotated[int, Field(ge=0, lt=2**31)]


class FileEntry(Config):
    """One file of a run."""

    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    size: Annotated[int, Field(ge=0, lt=2**63)]
    """Bytes."""
    at: str = ""
    """The file's name on disk, if it replaced an earlier file."""

    @classmethod
    def of(cls, data: bytes) -> "FileEntry":
        """The entry of a file with this content."""
        return cls(sha256=sha256(data), size=len(data))

    def replacing(self, name: str) -> "FileEntry":
        """Return the entry with a name on disk that depends on its content.

        The earlier file therefore stays readable until the manifest is written.
        """
        stem, _, suffix = name.partition(".")
        place = f"{stem}-{int(self.sha256[:8], 16):010d}.{suffix}"
        return self.model_copy(update={"at": place})


class Provenance(Config):
    """How the steps after `first` were computed; other values change the last bits of results."""

    first: Count
    """The step before the first one that was computed this way."""
    threads: Count
    """Number of processor threads."""
    kernels: str
    """The backend of bf16 models; see `hopscope.models.native`."""
    torch: str
    """The version of torch."""
    processor: str
    """The name of the processor, or of the GPU."""
    fleet: tuple[Count, ...] = ()
    """Seeds of the fleet in which these steps of a single model were trained, if any."""


class Manifest(Config):
    """The committed state of a run."""

    name: str
    """The run's name, which the digest of its config determines."""
    step: Count = 0
    """Number of steps that are trained and committed."""
    complete: bool = False
    precision: str = ""
    """The arithmetic that `precision = "auto"` chose."""
    seconds: Annotated[float, Field(ge=0)] = 0.0
    """Wall-clock seconds spent training so far."""
    computed: tuple[Provenance, ...] = ()
    files: dict[str, FileEntry] = Field(default_factory=dict)

    @field_validator("files")
    @classmethod
    def _own_files(cls, files: dict[str, FileEntry]) -> dict[str, FileEntry]:
        for name in (*files, *(entry.at for entry in files.values() if entry.at)):
            if name == MANIFEST or FILE_NAME.fullmatch(name) is None:
                raise ValueError(f"{name[:60]!r} is not a name of a run's file")
        return files

    def place(self, name: str) -> str:
        """The name on disk of a committed file."""
        return self.files[name].at or name

    @property
    def places(self) -> set[str]:
        """The names on disk of all committed files."""
        return {*map(self.place, self.files)}

    def copied(self) -> "Manifest":
        """The manifest of a copy, in which every file has its own name."""
        files = {name: e.model_copy(update={"at": ""}) for name, e in self.files.items()}
        return self.model_copy(update={"files": files})

    def to_bytes(self) -> bytes:
        """The JSON file, with its own hash in it."""
        content = {"format": FORMAT, **self.model_dump(mode="json")}
        for entry in content["files"].values():
            if not entry["at"]:
                del entry["at"]
        content[CHECK] = _digest(content)
        return (json.dumps(content, indent=1, sort_keys=True) + "\n").encode()


def is_derived(name: str) -> bool:
    """Return whether the file is derived from the run, so that the run can continue without it."""
    return DERIVED.fullmatch(name) is not None


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a run's folder.

    Raises RunMissing if there is none, RunDamaged, or RunMismatch for another format.
    """
    try:
        data = read_inside(folder, MANIFEST, MANIFEST_BYTES)
    except RunDamaged as error:
        if isinstance(error.__cause__, FileNotFoundError):
            raise RunMissing(f"there is no run in {folder}: it has no {MANIFEST}") from error
        raise
    why = ": restore or remove the run"
    try:
        content = json.loads(data)
        if content.pop(CHECK, None) != _digest(content):
            raise RunDamaged(f"{folder / MANIFEST} is damaged (its SHA-256 differs){why}")
        if (version := content.pop("format")) != FORMAT:
            raise RunMismatch(
                f"{folder} has format {version!r}; this hopscope reads format {FORMAT}: use the "
                "version that made it"
            )
        return Manifest(**content)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError, ConfigError) as bad:
        raise RunDamaged(f"{folder / MANIFEST} is not a manifest ({str(bad)[:200]}){why}") from bad


def _digest(content: dict[str, object]) -> str:
    """Return the SHA-256 of the content as canonical JSON."""
    return sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode())
