"""The manifest: which files make up a run, the SHA-256 of each, and how they were computed.

It is written last, so it is the commit: files that it does not name do not exist.
"""

import json
import os
import re
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError, field_validator

from hopscope.configs import Config
from hopscope.errors import ConfigError, RunDamaged, RunMismatch, RunMissing
from hopscope.store.files import read_inside, sha256

FORMAT = 3
"""The version of the format of run folders."""
MANIFEST = "manifest.json"
CHECK = "check"
"""The key of the SHA-256 of all the rest."""
MOST_BYTES = 2**26
"""The largest manifest, or any other JSON of a run, that is read."""
NAME = re.compile(
    r"[a-z][a-z0-9-]{0,80}\.json|[a-z]{1,40}/[a-z]{1,40}(-\d{8,12}){0,3}\.(parquet|safetensors|jsonl)",
    re.ASCII,
)
"""What a file of a run may be called: a .json beside the manifest, or in a folder a word with at
most three numbers."""

VERSION = re.compile(r"-\d{10}(?=\.json$)", re.ASCII)
"""What the name of a file that replaced another one has more than its own."""

DERIVED = re.compile(r"(?!(config|packed)\.json$)[^/]+\.json|explorer/.*", re.ASCII)
"""Those that were made of a run, and without which it goes on: its circuit, views of it. How a
fleet was packed is none of them; and what a training of another kind needs lies in a folder."""

Count = Annotated[int, Field(ge=0, lt=2**31)]


class FileEntry(Config):
    """One file of a run."""

    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    size: Annotated[int, Field(ge=0, lt=2**63)]
    """The size of the file in bytes."""
    at: str = ""
    """What the file is called, where it replaced one that had its own name."""

    @classmethod
    def of(cls, data: bytes) -> "FileEntry":
        """The entry of a file with this content."""
        return cls(sha256=sha256(data), size=len(data))

    def replacing(self, name: str) -> "FileEntry":
        """The entry under a name that its content determines, so that readers of the earlier file
        still find it.
        """
        stem, dot, suffix = name.partition(".")
        return self.model_copy(
            update={"at": f"{stem}-{int(self.sha256[:8], 16):010d}{dot}{suffix}"}
        )


class Stretch(Config):
    """How the steps from `first` on were computed; with other values their last bits would differ.

    A run that goes on in another way than it began has several.
    """

    first: Count
    """The step before the first one that was computed so."""
    threads: Count
    """The number of threads of the processor that computed."""
    kernels: str
    """How the products of bf16 models were computed; see `hopscope.models.native`."""
    torch: str
    """The version of torch."""
    processor: str
    """What computed: the name of the processor, or of the GPU."""
    fleet: tuple[Count, ...] = ()
    """The seeds of the fleet in which these steps of a single model were trained, if it was."""


class Manifest(Config):
    """The committed state of a run."""

    name: str
    """The run's name, which its config's digest determines."""
    step: Count = 0
    """The number of steps that are trained and committed."""
    complete: bool = False
    precision: str = ""
    """The arithmetic that `precision = "auto"` came to."""
    seconds: Annotated[float, Field(ge=0)] = 0.0
    """The wall-clock time spent training so far, in seconds."""
    computed: tuple[Stretch, ...] = ()
    files: dict[str, FileEntry] = Field(default_factory=dict)

    @field_validator("files")
    @classmethod
    def _own_files(cls, files: dict[str, FileEntry]) -> dict[str, FileEntry]:
        for name in (*files, *(entry.at for entry in files.values() if entry.at)):
            if name == MANIFEST or NAME.fullmatch(name) is None:
                raise ValueError(
                    f"it names a file {name[:60]!r}, and no file of a run is called so"
                )
        return files

    def place(self, name: str) -> str:
        """Where a committed file is in the run's folder."""
        return self.files[name].at or name

    @property
    def places(self) -> set[str]:
        """Where all committed files are."""
        return {entry.at or name for name, entry in self.files.items()}

    def copied(self) -> "Manifest":
        """The manifest of a copy, in which every file has its own name."""
        files = {name: e.model_copy(update={"at": ""}) for name, e in self.files.items()}
        return self.model_copy(update={"files": files})

    def to_bytes(self) -> bytes:
        """The JSON of its file, with the hash of all the rest in it."""
        content = {"format": FORMAT, **self.model_dump(mode="json")}
        for entry in content["files"].values():
            if not entry["at"]:  # it has its own name
                del entry["at"]
        content[CHECK] = sha256(_spelled(content))
        return (json.dumps(content, indent=1, sort_keys=True) + "\n").encode()


def is_derived(name: str) -> bool:
    """Was a file made of its run, so that the run goes on without it?"""
    return DERIVED.fullmatch(name) is not None


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a run's folder, if it is whole and of a format that is known."""
    path = folder / MANIFEST
    if not os.path.lexists(path):
        raise RunMissing(f"there is no run in {folder}: it has no {MANIFEST}")
    try:
        content = json.loads(read_inside(folder, MANIFEST, MOST_BYTES))
        version, check = content["format"], content.pop(CHECK, None)
        if isinstance(version, int) and version > FORMAT:
            raise RunMismatch(
                f"{folder} has format {version}; this hopscope reads format {FORMAT}: upgrade it"
            )
        if check != sha256(_spelled(content)):
            raise RunDamaged(f"{path} is damaged (its SHA-256 differs): restore or remove the run")
        if content.pop("format") != FORMAT:
            raise RunDamaged(f"{folder} has format {version}, expected {FORMAT}: train it again")
        return Manifest(**content)
    except RecursionError as error:
        raise RunDamaged(
            f"{path} is not a manifest (nested too deeply): restore or remove the run"
        ) from error
    except (ValueError, LookupError, TypeError, ConfigError, ValidationError) as error:
        raise RunDamaged(
            f"{path} is not a manifest ({str(error)[:200]}): restore or remove the run"
        ) from error


def _spelled(content: dict[str, object]) -> bytes:
    """The one spelling that is hashed."""
    return json.dumps(content, sort_keys=True, separators=(",", ":")).encode()
