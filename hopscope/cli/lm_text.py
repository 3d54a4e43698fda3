"""Text of benchmarks, heads and circuits of language models for the terminal."""

from typing import TYPE_CHECKING, Any

import numpy as np

from hopscope.cli.tables import Part, circuit_parts
from hopscope.lm.results import BenchRun, Result, best_heads, results
from hopscope.plots.piece import Piece, pieces_of

if TYPE_CHECKING:
    from hopscope.lm.findings import LmCircuitRun, LmFindings
    from hopscope.lm.heads import HeadScores, SwitchedOff


def bench_parts(run: BenchRun) -> list[Part]:
    """Return a table with a row for every kind of question."""
    rows = [
        (
            each.kind, _count(each), _number(each.accuracy),
            " … ".join(map(_number, each.interval or ())) or "–", f"{each.chance:.3f}",
            f"{each.best:.3f}", f"{each.first:.3f}", f"{each.acceptance:.3f}",
            _number(each.tries, 1),
        )
        for each in results(run.folder)
    ]  # fmt: skip
    columns = ["questions", "count", "accuracy", "95 %", "chance", "best", "first try",
               "acceptable", "tries"]  # fmt: skip
    manifest = run.folder.manifest
    stopped = "" if manifest.complete else " (stopped)"
    title = f"{run.name}: {manifest.step:,} answers in {manifest.seconds:.0f} s{stopped}"
    return [Piece(title, columns, rows)] if rows else [title]


def _count(result: Result) -> str:
    """Return the number of questions, and of those with an acceptable answer if there are fewer."""
    all_, over = f"{result.count}", f"{result.accuracy_over} of {result.count}"
    return all_ if result.accuracy_over == result.count else over


def _number(value: float | None, digits: int = 3) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def findings_parts(found: "LmFindings") -> list[Part]:
    """Return the findings of each phase, and the circuit."""
    title = f"{found.recipe.model} on {found.recipe.prompts.label}: {found.answered}"
    return [title, *pieces_of(found), *circuit_parts(found.circuit)]


def circuit_run_parts(run: "LmCircuitRun") -> list[Part]:
    """Return the findings of a complete run; of a stopped one, its progress."""
    manifest = run.folder.manifest
    if manifest.complete:
        return findings_parts(run.findings)
    done = f"{manifest.step:,} of {run.recipe.steps:,} measured in {manifest.seconds:.0f} s"
    return [f"{run.name}: {done}: `{run.folder.command('resume')}`"]


def share_rows(run: "LmCircuitRun") -> list[dict[str, Any]]:
    """Return how far answers follow the patched stream at each role before each layer: a row for
    each exchange, role and layer.
    """
    found = run.findings
    return [
        {"exchange": name, "role": str(found.roles[role]), "layer": layer, **share.model_dump()}
        for name, by_role in found.shares.items()
        for role, by_layer in enumerate(by_role)
        for layer, share in zip(found.layers, by_layer, strict=True)
    ]


def heads_piece(scores: "HeadScores") -> Piece:
    """Return a table of the best heads of each route."""
    rows = []
    for number, best in enumerate(best_heads(scores.as_data())):
        place = number, best["layer"], best["head"]
        rows.append(
            (best["route"], best["purpose"], f"{best['layer']}.{best['head']}",
             f"{best['own']:.3f}", f"{best['others']:.3f}", f"{best['threshold']:.3f}",
             str(best["beyond"]), _difference(scores.right[place], scores.error[place]))
        )  # fmt: skip
    columns = ["route", "purpose", "head", "own", "others", "chance", "beyond", "right − wrong"]
    title = f"{scores.model} on {scores.kind}: {scores.correct} of {scores.questions} correct"
    remark = (
        "head: the best of all, layer.head; own, others: its attention to the asked chain and to "
        "another; chance: what own − others must exceed (by chance alone, some head does on some "
        "route in 5 % of such tables); beyond: heads that do; ±: one standard error"
    )
    return Piece(title, columns, rows, (remark,))


def _difference(right: float, error: float) -> str:
    if np.isnan(right):
        return "–"
    return f"{right:+.3f}" + ("" if np.isnan(error) else f" ± {error:.3f}")


def effect_text(off: "SwitchedOff | None") -> str:
    """Return the accuracy with heads switched off as text (None: no head was found)."""
    if off is None:
        return "No head looks anything up beyond chance: nothing to switch off."
    names = ", ".join(f"{layer}.{head}" for layer, head in off.heads)
    lines = [
        f"Accuracy on {off.questions} other questions:",
        f"  the model                                  {off.model}",
        f"  without {names}: {off.without}",
    ]
    if off.random is None:
        lines.append("  without as many others: the model does not have as many")
    else:
        lines += [
            f"  without as many random others              {off.random}",
            f"  lost more than without those, paired       {off.more}",
        ]
    return "\n".join(lines)
