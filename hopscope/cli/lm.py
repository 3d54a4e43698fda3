"""`hopscope lm …`: questions for language models, their heads, and their circuits."""

import json as json_
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from hopscope.circuits.progress import watched
from hopscope.cli import flags
from hopscope.cli.asked import progress
from hopscope.cli.display import RunDisplay
from hopscope.cli.lm_text import bench_parts, effect_text, findings_parts, heads_piece
from hopscope.cli.options import command, gathered, option, refuse_unused
from hopscope.cli.output import note, prose, say, say_json
from hopscope.cli.results import Destination, Output, reporting
from hopscope.cli.tables import Part, print_parts, print_rows
from hopscope.configs import Asking, Dtype, LmBench, LmCircuit, Prompts, Recipe, Tracing
from hopscope.configs.lm_circuit import LEAST
from hopscope.configs.prompts import FORMULATIONS
from hopscope.errors import ConfigError, SharingError
from hopscope.export.hub import Hub
from hopscope.lm import known
from hopscope.lm.export import exported
from hopscope.machine import cache_root, check_threads
from hopscope.papers.musat.language_claims import CLAIMS
from hopscope.papers.musat.rows import AnswerRow
from hopscope.papers.results import lines_of, machine
from hopscope.runs import train
from hopscope.store import RunFolder, Store
from hopscope.store.files import check_files, check_folder, write_bytes

PAPER_QUESTIONS = 500
"""Number of questions of each kind in the paper (§4)."""


@dataclass(frozen=True)
class ModelFlags:
    """The flags for the model, the computation and the store."""

    model: str
    dtype: str
    device: str
    threads: int | None
    store: Store

    @property
    def recorded_dtype(self) -> Dtype:
        """The dtype for the recipe: the one in use, never "auto"; float32 for endpoints."""
        if "://" in self.model:
            return "float32"
        from hopscope.lm.model import dtype_of

        return dtype_of(self.dtype, self.device)

    def benchmark(
        self, prompts: tuple[Prompts, ...], questions: int, asking: Asking, seed: int = 0
    ) -> LmBench:
        """Return the recipe of a benchmark of this model."""
        return LmBench(
            model=self.model, prompts=prompts, questions=questions, dtype=self.recorded_dtype,
            asking=asking, seeds=(seed,),
        )  # fmt: skip

    def carried_out(self, recipe: Recipe, *, watch: bool) -> Any:
        """Complete the run of a recipe and return it; `watch` shows the progress."""
        watcher = RunDisplay() if watch else None
        return train(recipe, self.store, self.device, watcher=watcher, threads=self.threads)


model_options = gathered(
    "on", ModelFlags,
    option("--model MODEL", "A known model (`hopscope lm list`), OWNER/NAME of the hub that was "
           "fetched, a folder, a GGUF file, or for `ask` and `claims` the URL of an endpoint up to "
           "/v1 with the model's name after it, as http://127.0.0.1:8080/v1#llama (its key in "
           "$HOPSCOPE_API_KEY).", default="smollm2-135m", shell_complete=flags.MODELS),
    option("--dtype", "Arithmetic; auto: bfloat16 on a GPU that multiplies it, float32 elsewhere.",
           choices=['auto', 'float32', 'bfloat16', 'float16'], default="auto"),
    flags.device, flags.threads, flags.store,
)  # fmt: skip
chains_option = option("--chains N", "Chains interleaved in a question.", default=4)
opening_option = option("--opening", 'Give the answer\'s first words ("The value of b is").')
template_option = option("--template", "The model's chat template, or the bare prompt.",
                         choices=['chat', 'raw'], default="chat")  # fmt: skip
formulation_options = (
    option("--formulation NAME", "Kind of question, f1 to f5 or by its long name.", default="f1"),
    option("--hops N", "Hops of equations and lives-with (default: 5)."),
    chains_option,
)  # fmt: skip
asking_options = gathered(
    "asking", Asking,
    option("--protocol", "exact: the probability of each acceptable answer. paper: sample until an "
           "acceptable answer comes. greedy: the likeliest token, once.",
           choices=['exact', 'paper', 'greedy'], default="exact"),
    template_option,
    option("--temperature X", "Temperature of sampled answers (protocol paper).", default=1.0),
    option("--tries N", "Samples of a question before it counts as never answered.", default=50),
    option("--max-tokens N", "The largest number of tokens of an answer.", default=16),
)  # fmt: skip


def _tracing(flag: str, field: str, says: str) -> Any:
    """Return the flag that sets a field of Tracing."""
    settings: dict[str, Any] = {"default": Tracing.model_fields[field].default}
    if "questions" in flag:
        settings["type"] = click.IntRange(LEAST)
    return option(flag, says, name=field, **settings)


tracing_options = gathered(
    "tracing", Tracing,
    _tracing("--map-questions N", "mapped",
             "Questions whose streams are patched at every role (default: all)."),
    _tracing("--search-questions N", "searched", "Questions on which single heads are patched."),
    _tracing("--test-questions N", "proved",
             "Fresh questions on which the circuit is exchanged, and runs alone."),
    _tracing("--also-test-questions N", "proved_elsewhere",
             "Questions of --also-test (default: as many as --test-questions)."),
    _tracing("--every-layers N", "every", "Patch residual streams before every N-th layer."),
    _tracing("--least-gain SHARE", "gains",
             "Patch heads where a layer brings the answer so much closer to the donor's."),
    _tracing("--least-effect SHARE", "counts",
             "Share of the way to the donor's answer that a head's row must move it."),
    _tracing("--most-rows N", "most", "The largest number of rows whose sources are looked for."),
    option("--skip-query-symbol", "Do not exchange the symbol that the question gives (x0).",
           name="given", flag_value=False, default=True, show_default=False),
)  # fmt: skip


def questions_option(count: int, what: str, least: int = 1) -> Any:
    """Return the option --questions."""
    return option("--questions N", what, type=click.IntRange(least), default=count)


def kinds(formulations: str, hops: str, chains: int, *, opening: bool) -> tuple[Prompts, ...]:
    """Return the kinds of questions: equations for all hops of a range, lives-with for the last."""
    depths = flags.range_of(hops)
    if not depths:
        raise ConfigError(f"--hops is {hops!r}; expected a number or a range, such as 5 or 1..5")
    levels: dict[str, Iterable[int | None]] = {"equations": depths, "lives-with": depths[-1:]}
    names: list[Any] = [FORMULATIONS.get(short, short) for short in formulations.split(",")]
    if levels.keys().isdisjoint(names):
        refuse_unused("as these formulations have one depth each", "--hops")
    return tuple(
        Prompts(formulation=name, hops=level, chains=chains, opening=opening)
        for name in names
        for level in levels.get(name, [None])
    )


@command(
    model_options,
    gathered(
        "prompts", kinds,
        option("--formulations NAMES", "Kinds of questions, by short or long names.",
               default="f1,f2,f3,f4,f5"),
        option("--hops N|N..N", "Hops of equations (f1) and lives-with (f2): a number, or a range "
               "for f1.", default="5"),
        chains_option, opening_option,
    ),
    questions_option(PAPER_QUESTIONS, "Questions of each kind."),
    asking_options,
    flags.sample("questions"),
)  # fmt: skip
def ask(
    on: ModelFlags, prompts: tuple[Prompts, ...], questions: int, asking: Asking, sample: int
) -> None:
    """Ask a model the paper's questions (§4). Answers are kept even if the command is stopped."""
    bench = on.benchmark(prompts, questions, asking, sample)
    complete = on.store.has_complete(bench)
    run = on.carried_out(bench, watch=True)
    if complete:
        note(
            f"{run.name} was complete: no model was opened, and these are the answers that it gave "
            f"then (`{run.folder.command('rm')}` and ask again, if the model is another now)"
        )
    print_parts(bench_parts(run))


@command(
    model_options,
    questions_option(PAPER_QUESTIONS, "Questions of each kind."),
    asking_options, flags.json,
    option("--save FILE.jsonl", "Also write the rows to this file, which can be sent in."),
)  # fmt: skip
def claims(on: ModelFlags, questions: int, asking: Asking, json: bool, save: Path | None) -> None:
    """Judge what the paper says of language models on one model.

    It asks everything that these claims need: all five formulations, one to five hops, with and
    without an opening.
    """
    check_files(save)
    runs = _measured(on, questions, asking, watch=not json)
    rows = [row for own in runs.values() for row in own]
    found = {claim.id: claim.judge(rows) for claim in CLAIMS}
    if json:
        fields = ("verdict", "ours", "evidence")
        say_json(
            {name: {each: getattr(its, each) for each in fields} for name, its in found.items()}
        )
    else:
        for claim in CLAIMS:
            its = found[claim.id]
            say("", f"{claim.id}: {its.verdict}")
            prose(claim.says, its.ours, its.evidence)
    if save:
        here = machine(on.threads or 1)
        write_bytes(save, b"".join(lines_of(run, own, here) for run, own in runs.items()))
        (note if json else say)(f"rows: {save}")


def _measured(
    on: ModelFlags, questions: int, asking: Asking, *, watch: bool
) -> dict[str, list[AnswerRow]]:
    """Ask the model without and with an opening; return the rows of each run by its name."""
    from hopscope.papers.musat.measure_answers import answer_rows

    chat_endpoint = "://" in on.model and asking.template == "chat"
    found = {}
    for opening in (False,) if chat_endpoint else (False, True):
        prompts = kinds("f1,f2,f3,f4,f5", "1..5", 4, opening=opening)
        run = on.carried_out(on.benchmark(prompts, questions, asking), watch=watch)
        found[run.name] = answer_rows(run)
    return found


@reporting(
    model_options,
    gathered("prompts", Prompts, *formulation_options, opening_option),
    flags.sample("questions"), template_option,
    questions_option(100, "Questions to read; as many others are asked without heads.", LEAST),
    option("--top N", "Heads to switch off.", type=click.IntRange(1), default=10),
    option("--keep RUN", "Keep the numbers with this benchmark of the same model, where the page "
           "of `hopscope view` shows them.", shell_complete=flags.RUNS),
    endings=(".retrieval.json",), frame=False,
)  # fmt: skip
def heads(
    to: Destination, on: ModelFlags, prompts: Prompts, sample: int, template: Any, questions: int,
    top: int, keep: str | None,
) -> Output:  # fmt: skip
    """Find the heads that read keys and values of the right chain, and switch them off.

    --save FILE.json writes all numbers; FILE.retrieval.json the scores as retrieval-head tools
    read them.
    """
    check_threads(on.threads)
    bench = _bench(keep, on, template)
    from hopscope.lm.bench import same_weights
    from hopscope.lm.heads import head_scores, switch_off
    from hopscope.lm.model import load
    from hopscope.runs.computing import using_threads

    with using_threads(on.threads):
        local = load(on.model, on.dtype, on.device, template)
        if bench is not None:
            same_weights(bench, local)
        with watched(progress()):
            scores = head_scores(local, prompts, questions, sample)
            best = scores.best(top)
            off = (
                switch_off(local, prompts, best, 4 * questions, questions, sample) if best else None
            )
    data = {**scores.as_data(), "switched_off": off.model_dump(mode="json") if off else None}
    if bench is not None:
        with bench.locked():
            bench.commit({f"heads-{prompts.label}.json": json_.dumps(data).encode()})
        to.tell(f"kept with {bench.name}")

    def retrieval(path: Path) -> None:
        write_bytes(path, json_.dumps(scores.as_retrieval_heads()).encode())

    parts: list[Part] = [heads_piece(scores), effect_text(off)]
    return Output(data, parts, scores.picture, files={".retrieval.json": retrieval})


def _bench(keep: str | None, on: ModelFlags, template: str) -> RunFolder | None:
    """Return the benchmark of --keep, or None; raises if it is of another model."""
    if keep is None:
        return None
    folder = on.store.find(keep)
    folder.check_writable()
    bench = folder.recipe_as(LmBench)
    theirs = f"{bench.model} (template {bench.asking.template}, {bench.dtype})"
    ours = f"{on.model} (template {template}, {on.recorded_dtype})"
    if theirs != ours:
        raise ConfigError(
            f"--keep names {folder.name}, a benchmark of {theirs}; the heads are of {ours}"
        )
    return folder


def _here_and_elsewhere(also_test: str | None, **fields: Any) -> tuple[Prompts, Prompts | None]:
    """Return the questions for finding the circuit, and those of --also-test (or None)."""
    elsewhere = Prompts(**{**fields, "formulation": also_test}) if also_test else None
    return Prompts(**fields), elsewhere


@reporting(
    model_options,
    gathered(
        "prompts", _here_and_elsewhere,
        *formulation_options, opening_option,
        option("--also-test NAME", "Prove the circuit on this formulation as well (with the same "
               "hops and roles)."),
    ),
    flags.sample("questions"), template_option,
    questions_option(200, "Pairs of questions whose residual streams are patched.", LEAST),
    tracing_options,
    endings=(".circuit.json",), frame=False,
)  # fmt: skip
def circuit(
    to: Destination, on: ModelFlags, prompts: tuple[Prompts, Prompts | None], sample: int,
    template: Any, questions: int, tracing: Tracing,
) -> Output:  # fmt: skip
    """Find how a model computes its answer: which roles hold which symbol after which layer, and
    which heads move it. Activations are patched between questions whose chains exchange one symbol.

    Every measurement is kept, also if the command is stopped. --save FILE.circuit.json writes the
    circuit for `hopscope circuit`; FILE.json writes all findings.
    """
    here, elsewhere = prompts
    recipe = LmCircuit(
        model=on.model, prompts=here, elsewhere=elsewhere, questions=questions, tracing=tracing,
        template=template, dtype=on.recorded_dtype, seeds=(sample,),
    )  # fmt: skip
    found = on.carried_out(recipe, watch=not to.json).findings
    files = {".circuit.json": found.circuit.save}
    return Output(found.to_dict(), findings_parts(found), found.picture, files=files)


@command(
    gathered("prompts", Prompts, *formulation_options),
    flags.sample("questions"),
    questions_option(PAPER_QUESTIONS, "Number of questions."),
    option("--to", "The tool that is to read them.", choices=["ruler", "lm-eval", "inspect"],
           default="ruler"),
    option("--save FOLDER", "Folder for the files; lm-eval's name it, so export again after moving "
           "it.", default=Path("exports")),
)  # fmt: skip
def export(prompts: Prompts, sample: int, questions: int, to: Any, save: Path) -> None:
    """Write the paper's questions as a task for RULER, lm-evaluation-harness or inspect_ai."""
    check_folder(save)
    for name, text in exported(to, prompts, sample, questions, str(save.resolve())).items():
        write_bytes(save / name, text.encode())
        say(f"{to}: {save / name}")


@command(flags.json)
def listing(json: bool) -> None:
    """List the language models that can be fetched by name, and those that have been fetched."""
    rows = [
        {"model": name, "what": its.summary, "license": its.license,
         "here": "yes" if known.cached(name).exists() else "no"}
        for name, its in known.KNOWN.items()
    ]  # fmt: skip
    for folder in sorted((cache_root() / "models").glob("[!.]*--*")):
        name = folder.name.replace("--", "/", 1)
        rows.append({"model": name, "what": "from a hub", "license": "", "here": "yes"})
    print_rows(rows, {}, json=json)


@command(click.argument("model", shell_complete=flags.MODELS))
def pull(model: str) -> None:
    """Fetch a language model into the cache ($HOPSCOPE_CACHE, or ~/.cache/hopscope).

    MODEL is a name of `hopscope lm list`, or OWNER/NAME, which comes from a hub.
    """
    if known.is_hub_name(model) and not known.cached(model).exists() and _is_run(model):
        raise ConfigError(f"{model} is a run of hopscope: `hopscope pull {model}` fetches it")
    say(f"{model}: {known.pull(model)}")


def _is_run(name: str) -> bool:
    """Return whether the name is a run on the hub; False if the hub fails (fetching reports it)."""
    try:
        return Hub().is_run(name)
    except SharingError:
        return False
