"""The model that a command analyses: from a run, a checkpoint's file, or from elsewhere."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hopscope import circuits
from hopscope import study as studies
from hopscope.circuits.circuit import Circuit
from hopscope.circuits.saved import checked_circuit
from hopscope.cli.flags import find_run
from hopscope.configs import Experiment
from hopscope.errors import CircuitError, ConfigError, RunDamaged
from hopscope.extras import install_extra
from hopscope.store import RunFolder, Store
from hopscope.store.checkpoints import checkpoint_steps
from hopscope.store.files import read_bytes

ELSEWHERE = ("hf", "nanogpt")
"""Prefixes (before a colon) of models that are not from a run."""
REPEATED = "repeated-tokens"
"""Name of the task whose sequences repeat random tokens."""
CHECKPOINT = re.compile(r"step-0*(\d+)\.safetensors")


@dataclass(frozen=True)
class Subject:
    """The flags that name a model."""

    name: str
    store: Store
    seed: int | None = None
    step: int | None = None
    task: str | None = None
    circuit_file: Path | None = None
    device: str = "auto"

    @property
    def elsewhere(self) -> bool:
        """Whether the model is not from a run."""
        kind, _, place = self.name.partition(":")
        return bool(place) and kind in ELSEWHERE

    def study(self) -> "studies.Study":
        """Load the model with its task."""
        return self._from_elsewhere() if self.elsewhere else self._of_run()

    def run_study(self, asking: str) -> "studies.RunStudy":
        """Load the model with its run; raises ConfigError, naming `asking`, if there is no run."""
        if self.elsewhere:
            raise ConfigError(f"{asking} is for runs; {self.name} is one model")
        return self._of_run()

    def _of_run(self) -> "studies.RunStudy":
        if self.task is not None:
            raise ConfigError(
                f"--task is for a model from elsewhere (hf:FOLDER, nanogpt:FILE); {self.name} is "
                "taken for a run, which has its own task"
            )
        folder, step = self._place()  # an unknown name fails before torch is imported
        from hopscope.training import Run
        from hopscope.training.device import device_of

        device = device_of(self.device)
        study = studies.RunStudy(Run(folder), self.seed, step)
        study.circuit_from = self.circuit_file
        if device.type != "cpu":
            study.model.to(device)
        return study

    def kept_circuit(self) -> Circuit | None:
        """Return the circuit kept with the run, or of --circuit-file, without importing torch.

        None if there is none, or if the model is not from a run.
        """
        if self.elsewhere or self.task is not None:
            return None
        folder, step = self._place()
        if folder.recipe.kind != "facts":
            return None
        seed = folder.recipe.seeds[folder.member(self.seed)]
        last = checkpoint_steps(folder)[-1:]
        return checked_circuit(folder, seed, None if [step] == last else step, self.circuit_file)

    def words(self) -> Callable[[int], str]:
        """Return a function from tokens to text: a transformers model's tokenizer, or `str`."""
        folder = self.name.removeprefix("hf:")
        if folder == self.name or not any(Path(folder).glob("tokenizer*")):
            return str
        from transformers import AutoTokenizer

        try:
            tokenizer = AutoTokenizer.from_pretrained(
                folder, local_files_only=True, trust_remote_code=False
            )
        except (OSError, ValueError) as error:
            first = str(error).splitlines()[0][:120]
            raise CircuitError(f"the tokenizer in {folder} cannot be loaded: {first}") from error
        return lambda token: str(tokenizer.decode([token]))

    def _place(self) -> tuple[RunFolder, int | None]:
        """Return the run's folder, and the step of the checkpoint (None: the last)."""
        path, step = Path(self.name), self.step
        if match := CHECKPOINT.fullmatch(path.name):
            if step is not None:
                raise ConfigError(f"--step is {step}, and {path.name} is a step: give one of them")
            return find_run(str(path.parents[1]), self.store), int(match[1])
        return find_run(self.name, self.store), step

    def _from_elsewhere(self) -> "studies.Study":
        kind, _, place = self.name.partition(":")
        flags = {"--seed": self.seed, "--step": self.step}
        if unused := [flag for flag, value in flags.items() if value is not None]:
            raise ConfigError(f"{unused[0]} is for runs; {self.name} is one model")
        if self.task is None:
            raise ConfigError(
                f"{self.name} needs --task: a file of JSON such as "
                f'{{"kind": "khop", …}}, or {REPEATED}'
            )
        if not Path(place).exists():
            raise ConfigError(f"{place} does not exist")
        if kind == "hf" and not Path(place).is_dir():
            raise ConfigError(
                f"{place} is a file; expected a folder that transformers wrote "
                "(`model.save_pretrained(FOLDER)`)"
            )
        task_of = read_task(self.task)  # a wrong task fails before the model is loaded
        from hopscope.training.device import device_of

        model, vocabulary = _hf(place) if kind == "hf" else _nanogpt(place)
        task = task_of(vocabulary)
        module = getattr(model, "module", model)
        module.to(device_of(self.device))
        circuit = Circuit.load(self.circuit_file) if self.circuit_file else None
        return studies.Study(model, task, name=Path(place).name or place, circuit=circuit)


def read_task(text: str) -> Callable[[int], Any]:
    """The task that a file describes, or the one of repeated tokens, as a function of the model's
    number of tokens.
    """
    fields: Any = {"kind": REPEATED}
    if text != REPEATED:
        try:
            fields = json.loads(read_bytes(Path(text)))
        except RunDamaged:
            raise ConfigError(
                f"--task is {text}; expected {REPEATED} or a file of JSON, and there is none"
            ) from None
        except ValueError as error:
            raise ConfigError(f"--task is {text}, which is not JSON ({error})") from None
    if not isinstance(fields, dict) or "kind" not in fields:
        raise ConfigError(f"--task is {text}; expected a JSON object with the key `kind`")
    if fields["kind"] != REPEATED:
        task = Experiment.model_validate({"task": fields}).task
        return lambda _: task
    sizes = {name: value for name, value in fields.items() if name != "kind"}
    if not sizes.keys() <= {"vocabulary", "length", "filler", "start"}:
        raise ConfigError(
            f"--task is {text}, of {', '.join(sizes)}; {REPEATED} has vocabulary, length, filler "
            "and start"
        )
    return lambda vocabulary: circuits.repeated_tokens(**{"vocabulary": vocabulary} | sizes)


def _hf(folder: str) -> tuple[Any, int]:
    """Load a decoder with transformers; return it and the size of its vocabulary."""
    try:
        from transformers.utils import logging
    except ImportError as error:
        reason = str(error).partition("\n")[0]
        raise ConfigError(
            f"hf:FOLDER needs transformers ({reason}): {install_extra('bridges', ['transformers'])}"
        ) from error
    from hopscope.circuits.adapters.pretrained import pretrained

    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        model = pretrained(folder)
    except CircuitError:
        raise
    except Exception as error:  # a wrong config can raise any exception
        first = (str(error).splitlines() or [""])[0][:120]
        raise CircuitError(
            f"{folder} cannot be loaded by transformers ({type(error).__name__}): {first}"
        ) from error
    return model.eval(), int(model.config.vocab_size)


def _nanogpt(file: str) -> tuple[Any, int]:
    """Load a nanoGPT model; return it and the size of its vocabulary."""
    model = circuits.nanogpt(file)
    return model, len(model.module.get_parameter("transformer.wte.weight"))
