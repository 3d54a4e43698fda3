"""Heads and circuits of language models in the terminal."""

from typing import TYPE_CHECKING, Any

import numpy as np

from hopscope.cli.output import prose, say
from hopscope.cli.tables import print_circuit, show, table

if TYPE_CHECKING:
    from hopscope.lm.findings import LmCircuitRun, LmFindings
    from hopscope.lm.heads import HeadScores, SwitchedOff


def print_findings(found: "LmFindings") -> None:
    """What was found, phase by phase, and the circuit."""
    from hopscope.plots.pieces import lm_findings

    say("", f"{found.recipe.model} on {found.recipe.prompts.label}: {found.answered}")
    show(lm_findings(found))
    print_circuit(found.circuit)
    say()


def print_run(run: "LmCircuitRun") -> None:
    """What became of a run; of one that was stopped, how far it came."""
    manifest = run.folder.manifest
    if manifest.complete:
        print_findings(run.findings)
    else:
        steps = run.recipe.steps
        say(f"{run.name}: {manifest.step:,} of {steps:,} measured in {manifest.seconds:.0f} s: "
            f"`{run.folder.command('resume')}`")  # fmt: skip


def circuit_rows(run: "LmCircuitRun") -> list[dict[str, Any]]:
    """How far answers follow each role, a row for each layer and exchange."""
    found = run.findings
    return [
        {"exchange": name, "role": str(found.roles[role]), "layer": layer, **share.model_dump()}
        for name, by_role in found.shares.items()
        for role, by_layer in enumerate(by_role)
        for layer, share in zip(found.layers, by_layer, strict=True)
    ]


def print_heads(scores: "HeadScores") -> None:
    """For each route its best heads."""
    from hopscope.lm.results import best_heads

    rows = []
    for number, best in enumerate(best_heads(scores.as_data())):
        place = number, best["layer"], best["head"]
        rows.append(
            (best["route"], best["purpose"], f"{best['layer']}.{best['head']}",
             f"{best['own']:.3f}", f"{best['others']:.3f}", f"{best['threshold']:.3f}",
             best["beyond"], _difference(scores.right[place], scores.error[place]))
        )  # fmt: skip
    columns = ["route", "purpose", "head", "own", "others", "chance", "beyond", "right − wrong"]
    title = f"{scores.model} on {scores.kind}: {scores.correct} of {scores.questions} correct"
    table(columns, rows, title=title)
    prose(
        "head: the best of all, layer.head; own, others: its attention to the asked chain and to "
        "another; chance: what own − others must exceed; beyond: heads that do"
    )


def _difference(right: float, error: float) -> str:
    if np.isnan(right):
        return "–"
    return f"{right:+.3f}" + ("" if np.isnan(error) else f" ± {error:.3f}")


def print_effect(off: "SwitchedOff | None") -> None:
    """Accuracy with heads switched off."""
    if off is None:
        say("", "No head looks anything up beyond chance: nothing to switch off.")
        return
    names = ", ".join(f"{layer}.{head}" for layer, head in off.heads)
    say("", f"Accuracy on {off.questions} other questions:")
    say(f"  the model                                  {off.model}")
    say(f"  without {names}: {off.without}")
    if off.random is None:
        say("  without as many others: the model has not as many")
        return
    say(f"  without as many random others              {off.random}")
    say(f"  lost more than without those, paired       {off.more}")
