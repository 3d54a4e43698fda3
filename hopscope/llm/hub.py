"""Models from a hub of models, fetched when asked for and not otherwise.

Only safetensors, JSON and what tokenizers read is fetched: no pickle. Large files are checked
against the SHA-256 that the hub itself tells.
"""

import hashlib
from pathlib import Path
from typing import Any

from hopscope.errors import LlmError

WANTED = ("*.safetensors", "*.json", "*.jinja", "*.model", "*.txt")


def fetch(name: str, folder: Path, endpoint: str | None = None) -> None:
    """OWNER/NAME, or OWNER/NAME@REVISION, into a folder; the endpoint is huggingface_hub's own."""
    repository, _, revision = name.partition("@")
    try:
        from huggingface_hub import HfApi
        from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError
    except ImportError as error:
        raise LlmError("models from a hub need: pip install hopscope[llm]") from error
    hub = HfApi(endpoint)
    # The last are those of whichever library carries its requests.
    failures = (LocalEntryNotFoundError, *HfHubHTTPError.__bases__)
    try:
        about = hub.model_info(repository, revision=revision or None, files_metadata=True)
        hub.snapshot_download(
            repository, revision=about.sha, local_dir=folder, allow_patterns=list(WANTED)
        )
    except failures as error:  # type: ignore[misc]
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise LlmError(
            f"cannot fetch {name} from the hub: {reason} (is there a network, and is the name "
            "right? otherwise give --model a folder or a GGUF file)"
        ) from error
    _check(name, folder, about.siblings or [])


def _check(name: str, folder: Path, files: list[Any]) -> None:
    """What came is what the hub says it has, and can be loaded without pickle."""
    if not list(folder.glob("*.safetensors")):
        raise LlmError(
            f"{name} has no safetensors, and no pickle is read: convert it, and give --model the "
            "folder"
        )
    for file in files:
        path = folder / file.rfilename
        if file.lfs is not None and path.is_file() and _sha256(path) != file.lfs.sha256:
            raise LlmError(
                f"{path.name} of {name} has SHA-256 {_sha256(path)[:12]}…, the hub says "
                f"{file.lfs.sha256[:12]}…: it was changed on the way, and is not used"
            )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
