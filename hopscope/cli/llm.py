"""`hopscope llm bench` and `llm show`."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from hopscope.cli.arguments import JsonArguments, RunNames, StoreArguments
from hopscope.cli.drawing import FigureArguments, check_figures, draw
from hopscope.cli.output import say, say_json, teller
from hopscope.configs import Asking, LlmBench, Prompts
from hopscope.configs.prompts import FORMULATIONS
from hopscope.errors import ConfigError
from hopscope.store import Store

if TYPE_CHECKING:
    from hopscope.llm.run import BenchRun


@dataclass(frozen=True)
class LlmBenchArguments(StoreArguments):
    """Ask a model the paper's questions (§4); every answer is kept, and a stop loses none."""

    model: Annotated[str, tyro.conf.arg(metavar="MODEL")] = "smollm2-135m"
    """A known model (`hopscope models`), a folder, a GGUF file, or an endpoint's URL up to /v1 with
    #NAME behind it, e.g. http://127.0.0.1:8080/v1#llama (its key in $HOPSCOPE_API_KEY)."""
    formulations: str = "f1,f2,f3,f4,f5"
    """Which kinds, by short or long name."""
    hops: str = "5"
    """Hops of equations (f1) and lives-with (f2): a number, or a range such as 1..5 for f1."""
    chains: int = 4
    """Chains interleaved in a question."""
    opening: bool = False
    """Give the answer's first words ("The value of b is")."""
    questions: int = 500
    """Questions of each kind."""
    asking: tyro.conf.OmitArgPrefixes[Asking] = field(default_factory=Asking)
    sample: int = 0
    """Which questions: another number draws others."""


@dataclass(frozen=True)
class LlmShowArguments(StoreArguments, JsonArguments, FigureArguments):
    """Show benchmarks, and draw them side by side (figure 2)."""

    runs: RunNames
    """The runs' names, or enough of each to be unique."""
    figure: Path | None = None
    """Where the figure goes (.svg, .pdf or .png); unset: none."""
    answers: bool = False
    """Print every answer as a line of JSON instead."""


def bench(chosen: LlmBenchArguments) -> int:
    bench = LlmBench(
        model=chosen.model,
        prompts=_kinds(chosen.formulations, chosen.hops, chosen.chains, chosen.opening),
        questions=chosen.questions,
        asking=chosen.asking,
        seeds=(chosen.sample,),
    )
    from hopscope.cli.display import display
    from hopscope.runs import train

    print_bench(train(bench, Store(chosen.store), watcher=display()))
    return 0


def _kinds(formulations: str, hops: str, chains: int, opening: bool) -> tuple[Prompts, ...]:
    """What the flags ask for. A range of hops is for equations; lives-with takes its last."""
    match = re.fullmatch(r"(\d{1,9})(?:\.\.(\d{1,9}))?", hops)
    if match is None:
        raise ConfigError(f"--hops is {hops!r}; expected a number or a range, e.g. 5 or 1..5")
    first, last = int(match[1]), int(match[2] or match[1])
    if last < first:
        raise ConfigError(f"--hops is {hops!r}; expected the smaller number first, e.g. 1..5")
    kinds = []
    for short in formulations.split(","):
        name: Any = FORMULATIONS.get(short, short)
        levels: Sequence[int | None] = [None]
        if name == "equations":
            levels = range(first, last + 1)
        elif name == "lives-with":
            levels = [last]
        kinds += [
            Prompts(formulation=name, hops=level, chains=chains, opening=opening)
            for level in levels
        ]
    return tuple(kinds)


def print_bench(run: "BenchRun") -> None:
    """A row for every kind of question."""
    from hopscope.cli.tables import table
    from hopscope.llm.results import results

    rows = [
        (
            each.kind, each.count, f"{each.accuracy:.3f}",
            f"{each.interval[0]:.3f} … {each.interval[1]:.3f}", f"{each.guessing:.3f}",
            f"{each.best:.3f}", f"{each.first:.3f}", f"{each.acceptance:.3f}", f"{each.tries:.1f}",
        )
        for each in results(run.folder)
    ]  # fmt: skip
    columns = ["questions", "count", "accuracy", "95 %", "guessing", "best", "first try",
               "acceptable", "tries"]  # fmt: skip
    manifest = run.folder.manifest
    title = f"{run.name}: {manifest.step:,} answers in {manifest.seconds:.0f} s"
    table(columns, rows, title=title if manifest.complete else f"{title} (stopped)")


def bench_rows(run: "BenchRun") -> list[dict[str, Any]]:
    """All that is known of each kind of question."""
    from hopscope.papers.musat.measure_answers import answer_rows

    return [json.loads(row.to_json()) for row in answer_rows(run.folder)]


def show(chosen: LlmShowArguments) -> int:
    if not chosen.runs:
        raise ConfigError("llm show needs the name of a run; `hopscope runs` lists them")
    folders = [Store(chosen.store).find(name) for name in chosen.runs]
    check_figures(chosen, chosen.figure)
    if chosen.answers:
        from hopscope.llm.kept import answers

        for folder in folders:
            for each in answers(folder):
                say(json.dumps(each))
        return 0
    from hopscope.llm.run import BenchRun

    runs = [BenchRun(folder) for folder in folders]
    if chosen.json:
        say_json([row for run in runs for row in bench_rows(run)])
    else:
        for run in runs:
            print_bench(run)
    if chosen.figure:
        from hopscope.report.llm import accuracy_figure

        tell = teller(json_alone=chosen.json)
        draw(chosen, chosen.figure, lambda: accuracy_figure(folders), tell)
    return 0
