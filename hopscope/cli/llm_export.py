"""`hopscope llm export`: the questions as files for other evaluation tools."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hopscope.cli.output import say
from hopscope.configs import Prompts
from hopscope.errors import ConfigError
from hopscope.store.files import check_folder, write_bytes


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
    sample: int = 0
    """Which questions: another number draws others."""
    format: Literal["ruler", "lm-eval", "inspect"] = "ruler"
    """The tool that is to read them."""
    out: Path = Path("exports")
    """The folder for the files; lm-eval's name it, so export again after moving it."""


def export(chosen: LlmExportArguments) -> int:
    if chosen.questions < 1:
        raise ConfigError(f"--questions is {chosen.questions}; expected at least 1")
    check_folder(chosen.out)
    for name, text in files(chosen).items():
        write_bytes(chosen.out / name, text.encode())
        say(f"{chosen.format}: {chosen.out / name}")
    return 0


def files(chosen: LlmExportArguments) -> dict[str, str]:
    """The text of each file, by its name."""
    from hopscope.llm.export import inspect_ai, lm_eval, ruler, task_name

    prompts = Prompts.model_validate(
        {"formulation": chosen.formulation, "hops": chosen.hops, "chains": chosen.chains}
    )
    if chosen.format == "ruler":
        lines = ruler(prompts, chosen.sample, chosen.questions)
        return {f"{task_name(prompts, chosen.sample)}_ruler.jsonl": lines}
    write = {"lm-eval": lm_eval, "inspect": inspect_ai}[chosen.format]
    return write(prompts, chosen.sample, chosen.questions, str(chosen.out.resolve()))
