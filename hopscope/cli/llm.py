"""`hopscope llm bench|show|heads|export` and `hopscope models`."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from hopscope.cli.arguments import parse
from hopscope.cli.export import LlmExportArguments, export
from hopscope.cli.heads import LlmHeadsArguments, heads
from hopscope.cli.output import say
from hopscope.cli.writable import check_figures
from hopscope.configs import Asking, LlmBench, Prompts
from hopscope.configs.prompts import FORMULATIONS
from hopscope.errors import ConfigError
from hopscope.store import Store

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from hopscope.llm.run import BenchRun

REPORTS = Path("reports")


@dataclass(frozen=True)
class LlmBenchArguments:
    """Ask a model the paper's questions (§4); every answer is kept, and a stop loses none."""

    model: str = "smollm2-135m"
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
    seed: int = 0
    """Which questions."""
    store: Path | None = None
    """Folder of runs; unset: $HOPSCOPE_STORE, or ./runs."""


@dataclass(frozen=True)
class LlmShowArguments:
    """Show benchmarks, and draw them side by side (figure 2)."""

    runs: Annotated[tuple[str, ...], tyro.conf.Positional]
    """The runs' names, or enough of each to be unique."""
    store: Path | None = None
    """Folder of runs; unset: $HOPSCOPE_STORE, or ./runs."""
    figure: Path | None = None
    """Where the figure goes (.svg, .pdf or .png); unset: none."""
    answers: bool = False
    """Print every answer as a line of JSON instead."""
    json: bool = False
    """Print the table as lines of JSON instead."""


@dataclass(frozen=True)
class ModelsArguments:
    """List the models that can be fetched by name, or fetch one; OWNER/NAME comes from a hub."""

    action: Annotated[Literal["list", "pull"], tyro.conf.Positional] = "list"
    """List them, or fetch one into the cache ($HOPSCOPE_CACHE, or ~/.cache/hopscope)."""
    name: Annotated[str | None, tyro.conf.Positional] = None
    """Which model to fetch."""


def llm(arguments: Sequence[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help"):
        say("usage: hopscope llm ACTION [--help] …", "")
        for name, (_, summary) in ACTIONS.items():
            say(f"  {name:<6} {summary}")
        return 0
    if arguments[0] not in ACTIONS:
        raise ConfigError(
            f"unknown action {arguments[0]!r}: hopscope llm knows {', '.join(ACTIONS)}"
        )
    return ACTIONS[arguments[0]][0](arguments[1:])


def models(arguments: Sequence[str]) -> int:
    from hopscope.llm.models import KNOWN, cache_root, cached, pull

    chosen = parse(ModelsArguments, "models", arguments)
    if chosen.action == "pull":
        if chosen.name is None:
            raise ConfigError(f"models pull needs a name: {', '.join(KNOWN)}")
        say(f"{chosen.name}: {pull(chosen.name)}")
        return 0
    for name, known in KNOWN.items():
        here = "here" if cached(name).exists() else "not here"
        say(f"{name}: {known.summary}; {known.licence}; {here}")
    for folder in sorted((cache_root() / "models").glob("[!.]*--*")):
        say(f"{folder.name.replace('--', '/', 1)}: from the hub; here")
    return 0


def _bench(arguments: Sequence[str]) -> int:
    chosen = parse(LlmBenchArguments, "llm bench", arguments)
    bench = LlmBench(
        model=chosen.model,
        prompts=_kinds(chosen.formulations, chosen.hops, chosen.chains, chosen.opening),
        questions=chosen.questions,
        asking=chosen.asking,
        seeds=(chosen.seed,),
    )
    from hopscope.cli.display import display
    from hopscope.runs import train

    print_bench(train(bench, Store(chosen.store), watcher=display()))
    return 0


def _kinds(formulations: str, hops: str, chains: int, opening: bool) -> tuple[Prompts, ...]:
    """What the flags ask for. A range of hops is for equations; lives-with takes its last."""
    match = re.fullmatch(r"(\d+)(?:\.\.(\d+))?", hops)
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


def bench_figure(run: "BenchRun") -> "Figure":
    """Accuracies beside the line of guessing."""
    from hopscope.report.llm import accuracy_figure

    return accuracy_figure([run.folder])


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


def _show(arguments: Sequence[str]) -> int:
    import json

    chosen = parse(LlmShowArguments, "llm show", arguments)
    if not chosen.runs:
        raise ConfigError("llm show needs the name of a run; `hopscope runs` lists them")
    folders = [Store(chosen.store).find(name) for name in chosen.runs]
    check_figures(*filter(None, [chosen.figure]))
    if chosen.answers:
        from hopscope.llm.kept import answers

        for folder in folders:
            for each in answers(folder):
                say(json.dumps(each))
        return 0
    if chosen.json:
        from hopscope.papers.musat.measure_answers import answer_rows

        for folder in folders:
            for row in answer_rows(folder):
                say(row.to_json())
        return 0
    from hopscope.llm.run import BenchRun

    for folder in folders:
        print_bench(BenchRun(folder))
    if chosen.figure:
        from hopscope.report.curves import save_figure
        from hopscope.report.llm import accuracy_figure

        say(f"figure: {save_figure(accuracy_figure(folders), chosen.figure)}")
    return 0


ARGUMENTS: dict[str, Any] = {
    "bench": LlmBenchArguments,
    "show": LlmShowArguments,
    "heads": LlmHeadsArguments,
    "export": LlmExportArguments,
}
ACTIONS: dict[str, tuple[Callable[[Sequence[str]], int], str]] = {
    "bench": (_bench, "Ask a model the paper's five kinds of questions."),
    "heads": (heads, "Which heads look things up, and what switching them off does."),
    "export": (export, "Write the questions for RULER, lm-evaluation-harness or inspect_ai."),
    "show": (_show, "Show benchmarks, draw them side by side, or print every answer."),
}
