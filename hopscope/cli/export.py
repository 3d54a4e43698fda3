"""`hopscope llm export`: the questions as files for other evaluation tools."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hopscope.cli.output import say
from hopscope.configs import Prompts
from hopscope.errors import ConfigError
from hopscope.store.files import write_bytes
from hopscope.store.writable import check_folder


@dataclass(frozen=True)
class LlmExportArguments:
    """Write the paper's questions as a task for RULER, lm-evaluation-harness or inspect_ai."""

    formulation: str = "f1"
    """Which kind of question, by short or long name."""
    hops: int | None = None
    """Hops of equations and lives-with; unset: 5."""
    chains: int = 4
    """Chains interleaved in a question."""
    questions: int = 500
    """How many questions."""
    seed: int = 0
    """Which questions."""
    format: Literal["ruler", "lm-eval", "inspect"] = "ruler"
    """The tool that is to read them."""
    to: Path = Path("exports")
    """The folder for the files; lm-eval's name it, so export again after moving it."""


def export(chosen: LlmExportArguments) -> int:
    if chosen.questions < 1:
        raise ConfigError(f"--questions is {chosen.questions}; expected at least 1")
    check_folder(chosen.to)
    for name, text in files(chosen).items():
        write_bytes(chosen.to / name, text.encode())
        say(f"{chosen.format}: {chosen.to / name}")
    return 0


def files(chosen: LlmExportArguments) -> dict[str, str]:
    """File name → text."""
    from hopscope.llm.export import inspect_ai, lm_eval, ruler, task_name

    prompts = Prompts.model_validate(
        {"formulation": chosen.formulation, "hops": chosen.hops, "chains": chosen.chains}
    )
    if chosen.format == "ruler":
        lines = ruler(prompts, chosen.seed, chosen.questions)
        return {f"{task_name(prompts, chosen.seed)}_ruler.jsonl": lines}
    write = {"lm-eval": lm_eval, "inspect": inspect_ai}[chosen.format]
    return write(prompts, chosen.seed, chosen.questions, str(chosen.to.resolve()))
