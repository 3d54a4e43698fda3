"""`hopscope attention`, `circuit`, `probe`, `patch`, `ablate`, `evaluate`, `baselines`."""

import json
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np

from hopscope import circuits
from hopscope import study as studies
from hopscope.circuits.circuit import Circuit
from hopscope.circuits.components import Estimate
from hopscope.circuits.progress import Progress
from hopscope.circuits.ranking import Switches
from hopscope.cli.asked import Asked, analysis
from hopscope.cli.changes import changed
from hopscope.cli.emergence import circuits_of_all
from hopscope.cli.options import given, option, refuse_unused
from hopscope.cli.output import note
from hopscope.cli.results import FRAMES, Output, ending
from hopscope.cli.subject import Subject
from hopscope.cli.tables import Part, circuit_parts
from hopscope.configs import Config, Discovery
from hopscope.display import data_frame
from hopscope.errors import ConfigError
from hopscope.plots.account import account_table
from hopscope.plots.piece import Piece, of_plots
from hopscope.plots.words import ablation_table
from hopscope.store.files import write_bytes
from hopscope.web.questions import VIEWABLE

STRONGEST = 3
"""Number of roles listed for each head."""


@analysis(
    256,
    option("--example N", "Show this single example, position by position, instead of a mean."),
)
def attention(asked: Asked, example: int | None) -> Output:
    """Show every head's mean attention from role to role over examples."""
    if example is not None:
        return _one_example(asked, example)
    study = asked.study
    found = study.attention(asked.examples, asked.sample)
    known = study.circuit.components if getattr(study, "has_circuit", False) else ()
    used = {head for each in known for head in each.at}
    rows = [
        (f"{layer}.{head}{'*' if (layer, head) in used else ''}", words)
        for (layer, head), words in _strongest(found)
    ]
    columns = ("head", "strongest attention to other positions: source → destination, share")
    shown = Piece("", columns, rows, ("*: a head of the circuit",) if used else ())
    return Output(
        found.to_dict(),
        [shown],
        lambda: of_plots("maps:role_maps_figure")(found, used),
        frame=found.frame,
    )


def _strongest(found: Any) -> Iterator[tuple[tuple[int, int], str]]:
    """Yield each head with its strongest attention to positions other than its own."""
    every: dict[tuple[int, int], list[tuple[float, str]]] = {}
    for source, shares in found.sources():
        for (layer, head, number), share in np.ndenumerate(shares):
            role = found.roles[number]
            if source not in (str(role), "itself") and not np.isnan(share):
                words = f"{source} → {role} {share:.2f}"
                every.setdefault((layer, head), []).append((share, words))
    for at, known in sorted(every.items()):
        yield at, ", ".join(words for _, words in sorted(known, reverse=True)[:STRONGEST])


def _one_example(asked: Asked, example: int) -> Output:
    from hopscope.circuits.ablator import EXAMPLES
    from hopscope.circuits.export import circuitsvis
    from hopscope.plots.maps import example_figure

    refuse_unused("with --example", "--examples", "--circuit-file")
    if not 0 <= example < VIEWABLE:
        raise ConfigError(f"--example is {example}; expected 0 to {VIEWABLE - 1:,}")
    study = asked.study
    # The examples of a function depend on how many it draws; these are the ones that `ablate` uses.
    examples = circuits.examples_of(study.task, max(EXAMPLES, example + 1), asked.sample)
    shown = circuitsvis(circuits.adapter_of(study.model), examples, example)

    tokens = " ".join(map(str, shown["tokens"]))
    draw = partial(example_figure, shown["attention"], shown["tokens"], f"example {example}")
    return Output(shown, [f"{tokens}\n--figure FILE draws it, --json prints it"], draw)


SAVED = (".edges.json", ".circuitsvis.json", ".safetensors", ".legacy.safetensors")
"""Endings of the files that other tools read."""


@analysis(
    128,
    option("--again", "Search again, though a circuit was found before."),
    option("--fresh N", "Number of other examples, on which the found circuit is measured.",
           type=click.IntRange(2), default=Discovery().fresh),
    option("--repeat N", "Independent searches; the share that finds a component is its stability.",
           name="searches", type=click.IntRange(1), default=1),
    option("--force", "Search even if the model has not learned its task."),
    option("--no-keep", "Do not keep the circuit with the run."),
    option("--all", "All seeds of the run's recipe, a line for each.", name="every"),
    option("--diagnose", "Also compute backup heads and restored heads."),
    of="examples that the search sees", endings=SAVED,
)  # fmt: skip
def circuit(
    asked: Asked, again: bool, every: bool, diagnose: bool, no_keep: bool, **search: Any
) -> Output:
    """Find the circuit of a model and keep it with the run, or show the one that was found before.

    The first line is the verdict. RUN may be a circuit's file (JSON). The ending of --save chooses
    the format: .json, .csv, .parquet, .edges.json (for EAP-IG and MIB), .circuitsvis.json,
    .safetensors or .legacy.safetensors (weights for TransformerLens).
    """
    search |= {"examples": asked.examples, "seed": asked.sample}
    path = Path(asked.subject.name)
    if path.suffix == ".json":
        if not path.is_file():
            raise ConfigError(f"there is no file {path}; expected a run or the file of a circuit")
        return _circuit_alone(asked, path)
    if every:
        refuse_unused("with --all", "--seed", "--figure", "--diagnose", "--no-keep")
        if asked.to.save and ending(asked.to.save, (".json", *FRAMES, *SAVED)) in SAVED:
            raise ConfigError(
                f"--save is {asked.to.save}; --all writes a table: .json, .csv, .parquet"
            )
        return circuits_of_all(asked, search, again=again)
    if diagnose:
        refuse_unused("with --diagnose", "--json")
    found = None if again else asked.subject.kept_circuit()
    if found is not None:
        needs_model = diagnose or str(asked.to.save).endswith(SAVED)
        refuse_unused("as the circuit was found before (--again searches anew)",
                      "--examples", "--sample", "--fresh", "--repeat", "--force", "--no-keep",
                      *([] if needs_model else ["--device"]))  # fmt: skip
        if differs := found.differs_from(Discovery()):
            note(f"hopscope: {differs}")
    else:
        found = _search(asked, search, keep=not no_keep)

    beside = []
    if diagnose:
        study = studies.Study(asked.study.model, asked.study.task, circuit=found)
        beside.append(f"{study.diagnose()}")
    return _circuit_output(found, asked.subject, beside)


def _circuit_alone(asked: Asked, path: Path) -> Output:
    """Show a circuit from a file, without its model."""
    refuse_unused("with a circuit's file", "--seed", "--step", "--circuit-file", "--store",
                  "--again", "--all", "--diagnose", "--examples", "--sample", "--fresh", "--task",
                  "--device")  # fmt: skip
    if asked.to.save and asked.to.save.name.endswith(SAVED):
        raise ConfigError(
            f"--save {asked.to.save} needs the model: name its run, and this "
            f"file as --circuit-file {path}"
        )
    return _circuit_output(Circuit.load(path))


def _circuit_output(
    found: Circuit, subject: Subject | None = None, beside: Sequence[Part] = ()
) -> Output:
    files = {end: partial(_export, found, subject, end) for end in SAVED} if subject else {}
    parts = [*circuit_parts(found), *beside]
    return Output(found.to_dict(), parts, found.picture, frame=found.frame, files=files)


def _export(found: Circuit, subject: Subject, ending: str, path: Path) -> None:
    """Write a file for another tool; its format depends on `ending`."""
    from hopscope.circuits.export import circuitsvis, edges, transformer_lens_weights
    from hopscope.models import Transformer

    study = subject.study()
    if ending == ".circuitsvis.json":
        shown = circuitsvis(circuits.adapter_of(study.model), circuits.examples_of(study.task, 1))
        write_bytes(path, json.dumps(shown).encode())
        return
    if not isinstance(study.model, Transformer):
        raise ConfigError(f"{ending} needs one of hopscope's own models")
    if ending == ".edges.json":
        write_bytes(path, json.dumps(edges(found, study.model)).encode())
        return
    import safetensors.torch

    weights = transformer_lens_weights(study.model, ending == ".safetensors")
    write_bytes(path, safetensors.torch.save({n: t.contiguous() for n, t in weights.items()}))


def _search(asked: Asked, search: dict[str, Any], *, keep: bool) -> Circuit:
    """Find the circuit, and keep it with the run if `keep` is true and the run is writable."""
    study, started = asked.study, time.monotonic()
    if isinstance(study, studies.RunStudy):
        _note_spike(study)
    keeps = keep and _can_keep(study)
    finding = study if keeps else studies.Study(study.model, study.task)
    found = finding.discover(**search)
    if keeps or not asked.to.save:
        kept = "saved with the run" if keeps else NOT_KEPT
        note(f"found in {time.monotonic() - started:.0f} s; {kept}")
    return found


NOT_KEPT = "not saved: --save FILE writes it to a file"


def _can_keep(study: "studies.Study") -> bool:
    """Return whether results can be kept: the study is of a run outside the gallery."""
    return isinstance(study, studies.RunStudy) and not study.run.folder.gallery


def _note_spike(study: Any) -> None:
    """Print a note if the loss is over three times that of the best late checkpoint.

    At a constant learning rate the last step may be on a spike.
    """
    calm = study.best_late_checkpoint()
    now, then = study.validation_loss(), calm.validation_loss()
    if now is not None and then is not None and now > 3 * then:
        note(
            f"note: the loss at step {study.step:,} is {now:.3f}, at {calm.step:,} it was "
            f"{then:.3f}: --step {calm.step} examines that checkpoint"
        )


@analysis(
    1024,
    option("--over-training", "Probe every checkpoint: when did each symbol become decodable?"),
    least=2,
)  # fmt: skip
def probe(asked: Asked, over_training: bool) -> Output:
    """Fit linear probes: how much of each symbol can be decoded at each role, after every layer.

    Half as many other examples score the probes. With --over-training the default is 256 examples.
    """
    refuse_unused("as no circuit is looked at", "--circuit-file")
    if over_training:
        from hopscope.circuits.probing import HISTORY_EXAMPLES

        refuse_unused("with --over-training", "--step", "--device")
        study = asked.subject.run_study("--over-training")
        count = asked.examples if given("--examples") else HISTORY_EXAMPLES
        return Output.of(study.probe_history(count, asked.sample))
    return Output.of(asked.study.probe(asked.examples, asked.sample))


@analysis(
    64,
    option("--no-keep", "Do not keep the account with the circuit."),
    least=2,
)  # fmt: skip
def patch(asked: Asked, no_keep: bool) -> Output:
    """Patch the circuit arrow by arrow: which symbol does each path move, and what do roles hold?

    The account is kept with the circuit of the run.
    """
    study = asked.study
    keeps = _can_keep(study) and not no_keep
    if isinstance(study, studies.RunStudy) and not keeps:
        study = studies.Study(study.model, study.task, circuit=study.circuit)
    found = study.patch(asked.examples, asked.sample)
    kept = "saved with the run's circuit" if keeps else NOT_KEPT
    assert found.account is not None
    return Output(
        found.to_dict(), [account_table(found), kept], found.picture, frame=found.account.frame
    )


@analysis(
    256,
    option("--head LAYER.HEAD[:ROLE]=WHAT", "Change a head (may be given several times), e.g. "
           "3.0=uniform. WHAT is where the head looks: uniform (everywhere; also where no WHAT is "
           "given), itself, previous, position (its mean attention on other examples); mean or "
           'resample (of what it brings); or paths, source>destination, such as "value '
           '0>query,key 1>value 1", with all other rows uniform (or "…/itself"). With :ROLE only '
           "the rows of that role change, e.g. 3.0:query=uniform.", multiple=True),
    option("--circuit", "Change heads of the circuit, not of the model.", name="of_circuit"),
    option("--order", "Also ask with the facts in this order: last hop first (backward), first hop "
           "first (forward), or shuffled.", choices=['backward', 'forward', 'shuffled']),
    least=2,
)  # fmt: skip
def ablate(asked: Asked, head: tuple[str, ...], of_circuit: bool, order: Any) -> Output:
    """Show the losses with heads changed, or with the facts in another order.

    Without --head and --order, change every head in turn.
    """
    from hopscope.circuits import ablator

    study = asked.study
    of_circuit = of_circuit or asked.subject.circuit_file is not None
    circuit = study.circuit if of_circuit else None
    base = circuit.patterns if circuit else {}
    adapter = circuits.adapter_of(study.model)
    if head:
        changes = ablator.asked_for(head, base)
    elif order is not None:
        changes = {}
    else:
        changes = ablator.every_head(adapter, base)
    task: Any = study.task
    if order is not None and not hasattr(task, "ordered"):
        raise ConfigError("--order is for the tasks of hopscope")
    measure = partial(ablator.ablate, adapter, circuit=circuit, examples=asked.examples,
                      seed=asked.sample)  # fmt: skip
    found = measure(task if order is None else task.ordered(order), changes)
    records = found.records()
    chances = {found.chance}
    if order is not None:
        records[0]["changed"] += f", facts {order}"
        usual = measure(task, {})
        records, chances = usual.records() + records, {usual.chance, found.chance}
    shown = ablation_table(records, f"{study.name}, {asked.examples} examples")
    return Output(
        records,
        [shown],
        lambda: of_plots("ablations:losses_figure")(records, chances, found.examples),
        frame=partial(data_frame, records),
    )


@analysis(1024, click.argument("changes", nargs=-1, metavar="[KEY=VALUE]…"), least=2, draws=False)
def evaluate(asked: Asked, changes: tuple[str, ...]) -> Output:
    """Measure a model on fresh examples: the loss of each hop with its 95 % interval.

    KEY=VALUE changes the task, e.g. `order=forward`, `chains=8` or `length=64`, to test the model
    on questions that it was not trained on. The model's shapes must allow the change. For k-hop
    only the last position is asked; its answer depends on all positions before it.
    """
    refuse_unused("as no circuit is looked at", "--circuit-file")
    study = asked.study
    model, task = _reshaped(study, changes) if changes else (study.model, study.task)
    examples = circuits.examples_of(task, asked.examples, asked.sample, "evaluation")
    progress = Progress("parts of the examples")
    ablator = circuits.Ablator(model, examples)
    losses = ablator.losses([circuits.Ablation()], progress)[0].double().cpu().numpy()
    hops = task.asked_hops() if hasattr(task, "asked_hops") else range(1, 1 + losses.shape[1])
    estimates = {f"hop {hop}": Estimate.of(losses[:, at]) for at, hop in enumerate(hops)}
    levels = [*(examples.chances or [examples.chance] * len(estimates)), examples.chance]
    if len(estimates) > 1:
        estimates["all"] = Estimate.of(losses.mean(1))
    rows = [
        {"hop": name, "loss": its.mean, "low": its.low, "high": its.high, "chance": level}
        for (name, its), level in zip(estimates.items(), levels, strict=False)
    ]

    what = f"{study.name}, {asked.examples:,} fresh examples {' '.join(changes)}".rstrip()
    return Output.table(rows, dict.fromkeys(("loss", "low", "high", "chance"), ".4f"), what)


def _reshaped(study: "studies.Study", changes: tuple[str, ...]) -> tuple[Any, Any]:
    """Return a copy of the study's model for its task with some fields changed, and that task.

    Raises ConfigError if the weights do not fit the changed task.
    """
    from hopscope.models import Transformer

    model, task = study.model, study.task
    if not isinstance(model, Transformer) or not isinstance(task, Config):
        raise ConfigError("KEY=VALUE is for the models and tasks of hopscope")
    task = changed(task, changes, "the task")
    made = Transformer(model.config, task.interface()).to(next(model.parameters()).device)
    try:
        made.load_state_dict(model.state_dict())
    except RuntimeError as error:
        raise ConfigError(
            f"{study.name} cannot read questions with {' '.join(changes)}: its weights have the "
            "shapes of the task that it was trained on"
        ) from error
    return made, task


@analysis(
    64,
    option("--interpolations N", "EAP-IG: interpolations between the inputs of a pair.",
           type=click.IntRange(1), default=5),
    option("--exact", "Also patch every single arrow, one by one (slow)."),
    least=2,
)  # fmt: skip
def baselines(asked: Asked, interpolations: int, exact: bool) -> Output:
    """Compare the circuit with EAP-IG, activation patching and direct attribution.

    The examples are the minimal pairs that `hopscope patch` uses.
    """
    switches = Switches(steps=interpolations, exact=exact)
    found = asked.study.baselines(asked.examples, asked.sample, switches)
    return Output.of(found, found.model_dump(mode="json"))
