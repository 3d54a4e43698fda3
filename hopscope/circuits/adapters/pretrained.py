"""`pretrained`: load a model of transformers from local files, with a check that it is complete.

It reads no pickle and runs no code of the folder.
"""

import warnings
from pathlib import Path
from typing import Any

from hopscope.errors import CircuitError, RunWarning


def pretrained(path: str | Path, **options: Any) -> Any:
    """The decoder in a folder. Raises CircuitError if tensors are missing or of another shape
    (transformers alone would fill them with random numbers), and warns of unused tensors.
    """
    from transformers import AutoModelForCausalLM

    folder = Path(path)
    if any(folder.glob("*.bin")) and not any(folder.glob("*.safetensors")):
        raise OSError(
            "its weights are a pickle (*.bin), which is not read: save it again, in Python, with "
            "model.save_pretrained(FOLDER)"
        )
    opened: Any = AutoModelForCausalLM.from_pretrained(
        path, local_files_only=True, trust_remote_code=False, use_safetensors=True,
        output_loading_info=True, ignore_mismatched_sizes=True, **options,
    )  # fmt: skip
    model, loaded = opened
    for name, found, expected in sorted(loaded["mismatched_keys"]):
        raise CircuitError(
            f"{path}: {name} is {tuple(found)}, and by config.json {tuple(expected)}: the files "
            "belong to different models"
        )
    if names := sorted(loaded["missing_keys"]):
        raise CircuitError(
            f"{path}: its files lack {_listed(names)}, which would be random numbers: are weights "
            "and config.json of the same model, and whole?"
        )
    if names := sorted(loaded["unexpected_keys"]):
        text = f"{path}: config.json has no place for {_listed(names)}, so the model does without"
        warnings.warn(text, RunWarning, stacklevel=2)
    return model


def _listed(names: list[str]) -> str:
    return names[0] + (f" and {len(names) - 1} more" if names[1:] else "")
