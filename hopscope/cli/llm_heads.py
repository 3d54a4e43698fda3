"""`hopscope llm heads`: which heads of a language model look things up."""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import tyro

from hopscope.cli.arguments import JsonArguments
from hopscope.cli.drawing import REPORTS, FigureArguments, check_figures, draw, write_numbers
from hopscope.cli.output import say, say_json, teller
from hopscope.configs import LlmBench, Prompts
from hopscope.errors import ConfigError
from hopscope.store import RunFolder, Store
from hopscope.store.files import check_folder

if TYPE_CHECKING:
    from hopscope.llm.heads import HeadScores
    from hopscope.llm.silence import Comparison


@dataclass(frozen=True)
class LlmHeadsArguments(JsonArguments, FigureArguments):
    """Find the heads that read keys and values of the right chain, and switch them off."""

    model: Annotated[str, tyro.conf.arg(metavar="MODEL")] = "smollm2-135m"
    """A known model (`hopscope models`), a folder, or a GGUF file."""
    formulation: str = "f1"
    """Which kind of question."""
    hops: int | None = None
    """Hops of equations and lives-with; unset: 5."""
    chains: int = 4
    """Chains interleaved in a question."""
    opening: bool = False
    """Give the answer's first words ("The value of b is")."""
    questions: int = 100
    """Questions to read; the same are asked again with heads switched off."""
    top: int = 10
    """Heads to switch off."""
    draws: int = 20
    """Random draws of as many other heads."""
    template: Literal["chat", "raw"] = "chat"
    """The model's chat template, or the bare prompt."""
    precision: Literal["float32", "bf16"] = "float32"
    """Arithmetic; bf16 is several times faster where processors know it."""
    sample: int = 0
    """Which questions: another number draws others."""
    out: Path | None = None
    """The folder for the figure and the numbers; unset: reports, and with --json none."""
    keep: Annotated[str | None, tyro.conf.arg(metavar="RUN")] = None
    """Also keep the numbers beside this benchmark of the same model, where the page shows them."""
    store: Path | None = None
    """Folder of runs; unset: $HOPSCOPE_STORE, or ./runs."""


def heads(chosen: LlmHeadsArguments) -> int:
    _check(chosen)
    bench = _bench(chosen)
    from hopscope.llm.heads import head_scores
    from hopscope.llm.local import LocalModel
    from hopscope.llm.models import load
    from hopscope.llm.prompts import questions
    from hopscope.llm.silence import compare

    prompts = Prompts.model_validate(
        {"formulation": chosen.formulation,
         "hops": chosen.hops, "chains": chosen.chains, "opening": chosen.opening}
    )  # fmt: skip
    model, tokenizer = load(chosen.model, chosen.precision, "eager")
    local = LocalModel(model, tokenizer, chosen.model, chosen.template)
    asked = questions(prompts, chosen.sample, chosen.questions)
    scores = head_scores(local, prompts.graph(), prompts.label, asked)
    found = scores.best(chosen.top)
    off = compare(local, asked, found, chosen.draws) if found else None
    if chosen.json:
        say_json(data_of(scores, off))
    else:
        print_heads(scores)
        print_effect(off, chosen.draws)
        say()
    name = Path(chosen.model).name.removesuffix(".gguf")
    tell, out = teller(json_alone=chosen.json), _out(chosen)
    if out is not None:
        save_heads(scores, off, out / f"{name}-{prompts.label}-heads", chosen, tell)
    if bench is not None:
        with bench.locked():
            kept = json.dumps(data_of(scores, off)).encode()
            bench.commit({f"heads-{prompts.label}.json": kept})
        tell(f"kept with {bench.name}")
    return 0


def _check(chosen: LlmHeadsArguments) -> None:
    """Refuse what could not be computed, drawn or written, before anything is."""
    if chosen.questions < 2 or chosen.draws < 1 or chosen.top < 1:
        raise ConfigError("llm heads needs at least 2 questions, 1 draw and 1 head to switch off")
    if (out := _out(chosen)) is not None:
        check_folder(out)
    check_figures(chosen)


def _out(chosen: LlmHeadsArguments) -> Path | None:
    """The folder for the figure and the numbers, if there are to be any."""
    return chosen.out or (None if chosen.json else REPORTS)


def _bench(chosen: LlmHeadsArguments) -> RunFolder | None:
    """The benchmark that heads are kept with, if one is named; it must be of this model."""
    if chosen.keep is None:
        return None
    folder = Store(chosen.store).find(chosen.keep)
    folder.check_writable()
    asked = folder.recipe_as(LlmBench).model
    if asked != chosen.model:
        raise ConfigError(
            f"--keep names {folder.name}, a benchmark of {asked}; the heads are of {chosen.model}"
        )
    return folder


def print_heads(scores: "HeadScores") -> None:
    """For each route its best heads."""
    from hopscope.cli.tables import table

    rows = []
    for number, route in enumerate(scores.routes):
        score = scores.score[number]
        layer, head = (int(place) for place in np.unravel_index(score.argmax(), score.shape))
        rows.append(
            (str(route), route.purpose, f"{layer}.{head}", f"{scores.own[number, layer, head]:.3f}",
             f"{scores.others[number, layer, head]:.3f}", f"{scores.threshold[number]:.3f}",
             int(scores.significant[number].sum()),
             _difference(scores.right[number, layer, head], scores.error[number, layer, head]))
        )  # fmt: skip
    columns = ["route", "purpose", "head", "own", "others", "chance", "beyond", "right − wrong"]
    title = f"{scores.model} on {scores.kind}: {scores.correct} of {scores.questions} correct"
    table(columns, rows, title=title)
    say("head: the best of all, layer.head; own, others: its attention to the asked chain and to")
    say("another; chance: what own − others must exceed; beyond: heads that do")


def _difference(right: float, error: float) -> str:
    if np.isnan(right):
        return "–"
    return f"{right:+.3f}" + ("" if np.isnan(error) else f" ± {error:.3f}")


def print_effect(off: "Comparison | None", draws: int) -> None:
    """Accuracy with heads switched off."""
    if off is None:
        say("", "No head looks anything up beyond chance: nothing to switch off.")
        return
    drawn = [each.accuracy for each in off.random]
    names = ", ".join(f"{layer}.{head}" for layer, head in off.found.heads)
    say("", f"Switching off {names}:")
    say(f"  accuracy {off.clean.accuracy:.3f} → {off.found.accuracy:.3f}")
    say(f"  as many other heads, {draws} draws: {min(drawn):.3f} … {max(drawn):.3f}, mean "
          f"{sum(drawn) / draws:.3f}; {off.rank} of them lower it at least as much")  # fmt: skip


def data_of(scores: "HeadScores", off: "Comparison | None") -> dict[str, Any]:
    """The scores and the effect of switching heads off, ready for JSON."""
    return {**scores.as_data(), "switched_off": asdict(off) if off else None}


def save_heads(
    scores: "HeadScores",
    off: "Comparison | None",
    path: Path,
    chosen: FigureArguments,
    tell: Callable[[object], None],
) -> None:
    """A figure, all numbers, and the scores in the format of Retrieval_Head."""
    from hopscope.report.heads import heads_figure

    draw(chosen, path.with_name(f"{path.name}.svg"), lambda: heads_figure(scores), tell)
    contents = {".json": data_of(scores, off), "-retrieval.json": scores.as_retrieval_heads()}
    for suffix, content in contents.items():
        write_numbers(content, path.with_name(path.name + suffix), tell)
