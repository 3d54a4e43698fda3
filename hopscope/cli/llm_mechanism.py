"""`hopscope llm mechanism`: how a language model comes to its answer."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from hopscope.cli.arguments import JsonArguments, StoreArguments, ThreadArguments
from hopscope.cli.drawing import FigureArguments, check_figures, draw, figure_path
from hopscope.cli.output import say, say_json, teller
from hopscope.configs import LlmMechanism, Prompts, Tracing
from hopscope.store import Store
from hopscope.store.files import check_files, write_bytes

if TYPE_CHECKING:
    from hopscope.llm.mechanism import LlmFindings, MechanismRun


@dataclass(frozen=True)
class LlmMechanismArguments(StoreArguments, ThreadArguments, JsonArguments, FigureArguments):
    """Which roles hold what after which layer, and which heads bring it: pairs of questions are
    patched in which two chains exchange one symbol. All is kept as it comes; a stop loses none.
    """

    model: Annotated[str, tyro.conf.arg(metavar="MODEL")] = "smollm2-135m"
    """A known model (`hopscope models`), a folder, or a GGUF file; endpoints show no weights."""
    formulation: str = "f1"
    """Which kind of question."""
    hops: int | None = None
    """Hops of equations and lives-with; unset: 5."""
    chains: int = 4
    """Chains interleaved in a question, 3 or more."""
    opening: bool = False
    """Give the answer's first words ("The value of b is")."""
    elsewhere: str | None = None
    """Prove the circuit on this formulation as well (with the same hops and roles)."""
    questions: int = 200
    """Pairs of questions whose residual streams are patched."""
    tracing: tyro.conf.OmitArgPrefixes[Tracing] = field(default_factory=Tracing)
    template: Literal["chat", "raw"] = "chat"
    """The model's chat template, or the bare prompt."""
    precision: Literal["float32", "bf16"] = "float32"
    """Arithmetic; bf16 is several times faster where processors know it."""
    sample: int = 0
    """Which questions: another number draws others."""
    figure: Path | None = None
    """Where the figure goes (.svg, .pdf or .png); unset: reports/RUN.svg."""
    out: Path | None = None
    """Also write the circuit to this file, as JSON: `circuit show` and others read it."""


def mechanism(chosen: LlmMechanismArguments) -> int:
    recipe = LlmMechanism(
        model=chosen.model,
        prompts=_prompts(chosen, chosen.formulation),
        elsewhere=_prompts(chosen, chosen.elsewhere) if chosen.elsewhere else None,
        questions=chosen.questions,
        tracing=chosen.tracing,
        template=chosen.template,
        precision=chosen.precision,
        seeds=(chosen.sample,),
    )
    path = figure_path(chosen.figure, recipe.run_name(), alone=chosen.json)
    check_figures(chosen, path)
    check_files(chosen.out)
    from hopscope.cli.display import display
    from hopscope.runs import train

    watcher = None if chosen.json else display()
    run = train(recipe, Store(chosen.store), watcher=watcher, threads=chosen.threads)
    found = run.findings
    if chosen.json:
        say_json(found.to_dict())
    else:
        print_findings(found)
    tell = teller(json_alone=chosen.json)
    if path is not None:
        from hopscope.report.mechanism import mechanism_figure

        draw(chosen, path, lambda: mechanism_figure(found), tell)
    if chosen.out:
        write_bytes(chosen.out, json.dumps(found.circuit.to_dict(), ensure_ascii=False).encode())
        tell(f"circuit: {chosen.out}")
    return 0


def _prompts(chosen: LlmMechanismArguments, formulation: str) -> Prompts:
    return Prompts.model_validate(
        {"formulation": formulation, "hops": chosen.hops,
         "chains": chosen.chains, "opening": chosen.opening}
    )  # fmt: skip


def print_findings(found: "LlmFindings") -> None:
    """What was found, phase by phase."""
    from hopscope.cli.circuit_text import print_circuit
    from hopscope.cli.tables import table
    from hopscope.report.mechanism import confirmed_rows, lens_rows, proof_rows, role_rows

    say("", f"{found.recipe.model} on {found.recipe.prompts.label}: {found.answered}")
    columns, rows = role_rows(found)
    table(columns, rows, title="how far the answer follows, before each layer (█: all the way)")
    say("", *found.verdict())
    columns, rows = lens_rows(found)
    if rows:
        table(columns, rows, title="the logit lens, where it sees a symbol by half or more")
    columns, rows = confirmed_rows(found)
    if rows:
        title = f"what roles hold, on {found.confirmed[0].questions} fresh questions"
        table(columns, rows, title=title)
    print_circuit(found.circuit)
    for phase in ("proof", "elsewhere"):
        if proofs := found.proofs(phase):
            columns, rows = proof_rows(proofs)
            where = found.recipe.elsewhere if phase == "elsewhere" else found.recipe.prompts
            label = where.label if where else ""
            title = f"how far the answer follows, on {proofs[0].questions} questions of {label}"
            table(columns, rows, title=title)
    say()


def print_mechanism(run: "MechanismRun") -> None:
    """What became of a run; of one that was stopped, how far it came."""
    manifest = run.folder.manifest
    if manifest.complete:
        print_findings(run.findings)
    else:
        steps = run.recipe.steps
        say(f"{run.name}: {manifest.step:,} of {steps:,} measured in {manifest.seconds:.0f} s: "
            f"`hopscope resume {run.name}`")  # fmt: skip


def mechanism_rows(run: "MechanismRun") -> list[dict[str, Any]]:
    """How far answers follow each role, a row for each layer and exchange."""
    found = run.findings
    return [
        {"exchange": name, "role": str(found.roles[role]), "layer": layer, **share.model_dump()}
        for name, by_role in found.shares.items()
        for role, by_layer in enumerate(by_role)
        for layer, share in zip(found.layers, by_layer, strict=True)
    ]
