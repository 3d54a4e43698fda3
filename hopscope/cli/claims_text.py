"""Claims and variants in the terminal: both papers compared with the measurements."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from hopscope.cli.output import prose, say, say_json, warn, width
from hopscope.cli.tables import print_parts, table
from hopscope.errors import ConfigError, ResultsError
from hopscope.facts import symbol_name
from hopscope.papers.claim import Claim
from hopscope.papers.cost import in_flop
from hopscope.papers.judge import Finding, out_of
from hopscope.papers.musat.circuit_claims import CLAIMS, VariantModels, by_variant
from hopscope.papers.musat.variants import VARIANTS, chosen
from hopscope.papers.permutation import permutation_test
from hopscope.papers.registry import Registry
from hopscope.papers.results import Results
from hopscope.plots.layout import clauses, continued, hanging, wrapped
from hopscope.plots.piece import Piece

VERDICT_COLOURS: Mapping[str, str] = {
    "reproduced": "32",
    "not reproduced": "31",
    "depends on an open choice": "33",
    "at smaller scale": "33",
    "needs larger models": "33",
    "not enough seeds": "2",
    "not measured": "2",
}
"""Terminal colour codes (green, red, yellow, dim) of verdicts, in the order of printing."""

LISTS = ("ours", "evidence", "cost")
"""Parts of a claim whose clauses are printed on separate lines; other parts are prose."""


def show_claims(pattern: str, papers: Registry, results: Results, *, json: bool) -> int:
    """Print the claims whose names begin with `pattern`; return 2 if results are unreadable."""
    judged = papers.judged(pattern, results)
    if json:
        say_json([_fields(claim, finding) for claim, finding in judged])
    elif len(judged) == 1 and pattern:
        _print_whole(*judged[0])
    else:
        _print_table(judged)
    return _complain([claim for claim, _ in judged], results)


def _complain(judged: Sequence[Claim], results: Results) -> int:
    """Print a warning for every unreadable file of results; return the exit code (0 if none)."""
    code = 0
    of_all = {name for claim in judged for name in claim.sources}
    for name in sorted(of_all & results.experiments.keys()):
        try:
            results.measured(name)
        except ResultsError as error:
            warn(error)
            code = error.exit_code
    return code


def _fields(claim: Claim, finding: Finding) -> dict[str, Any]:
    names = ("id", "origin", "says", "where", "paper", "how")
    said = {name: getattr(claim, name) for name in names}
    said["experiments"] = claim.sources
    why = claim.why(finding)
    return said | asdict(finding) | {"why": asdict(why) if why else None}


def _print_table(judged: Sequence[tuple[Claim, Finding]]) -> None:
    """Print one or two lines for each claim, grouped by verdict."""
    for verdict, colour in VERDICT_COLOURS.items():
        found = [claim for claim, finding in judged if finding.verdict == verdict]
        rows = [(claim.id, claim.says) for claim in found]
        if rows:
            ours = sum(claim.origin == "ours" for claim in found)
            head = f"{verdict}: {len(rows)}{f', {ours} of which are ours' * (ours > 0)}"
            table((head, ""), rows, colours={head: colour})
            say()
    prose("`hopscope papers claims NAME`: the paper's value, ours, and the evidence")


def _print_whole(claim: Claim, finding: Finding) -> None:
    """Print all about one claim, each part as a separate paragraph."""
    why = claim.why(finding)
    parts = {
        "verdict": finding.verdict,
        "says so": "hopscope, and not the paper" if claim.origin == "ours" else "",
        "where": claim.where,
        "paper": claim.paper,
        "ours": finding.ours,
        "evidence": finding.evidence,
        "chance": "" if finding.chance is None else f"p = {finding.chance:.2g} (permutation test)",
        "notes": "; ".join(finding.notes),
        "why": why.says if why else "",
        "cost": "; ".join(finding.cost),
        "how": claim.how,
        "from": ", ".join(claim.sources),
    }
    margin = max(map(len, parts)) + 2
    say(claim.id, *wrapped(claim.says, width()), "")
    for name, text in parts.items():
        pieces = clauses(text) if name in LISTS else [text]
        lines = [line for one in pieces for line in hanging(one, width() - margin)]
        for number, line in enumerate(lines if text else ()):
            say(f"{'' if number else name:<{margin}}{line}")
    if why:
        say("", "command that shows why:", *continued(why.command, width()))


def show_variants(words: Sequence[str], results: Results, *, json: bool) -> None:
    """Print the variants that match these words; if only one matches, also its claims."""
    wanted = chosen(" ".join(words).split())  # a variant's name may be one quoted argument
    names = [each.name for each in VARIANTS if wanted.items() <= dict(each).items()]
    if not names:
        raise ConfigError(
            f"no variant that is tried has {' and '.join(words)}: `hopscope papers "
            "claims --variants` lists them"
        )
    every = [run for name in CLAIMS[0].sources for run in results.measured(name).values()]
    found = by_variant(row for run in every for row in run.rows)
    rows = [_row(name, one) for name in names for one in found if one.variant == name]
    tried = {one.variant for one in found}
    rows += [_row(name, None) for name in names if name not in tried]
    if json:
        say_json(rows)
        return
    whole = len(names) == 1
    print_parts(_variant_pieces(rows, whole))
    if not whole:
        say()
        print_parts(_permutation_pieces([one for one in found if one.variant in names]))


def _row(name: str, one: VariantModels | None) -> dict[str, Any]:
    """Return the measurements of a variant's models; None or empty for an untrained variant."""
    rows = one.rows if one else ()
    return {
        "variant": name,
        "steps": one.steps if one else None,
        "losses": [row.loss for row in rows],
        "learned": {row.seed: row.learned_at for row in rows},
        "heads": one.heads if one else [],
        "holds": one.right() if one else {},
        "flop": one.flop if one else None,
    }


def _loss(loss: float) -> str:
    """Return the loss with three decimals, or with one significant digit if it is under 0.001.

    >>> _loss(0.0123), _loss(0.00041)
    ('0.012', '0.0004')
    """
    return f"{loss:.3f}" if loss >= 0.001 else f"{loss:.1g}"


def _variant_pieces(rows: list[dict[str, Any]], whole: bool) -> list[Piece]:
    """Return a table with a line for each variant.

    With `whole`, also return tables of the variant's claims and of its models.
    """
    shown = [
        (
            row["variant"],
            "" if row["steps"] is None else f"{row['steps']:,}",
            " ".join(map(_loss, row["losses"])) or "not yet",
            " ".join(f"{paths}+{others}" for paths, others in row["heads"]),
            _all(row),
            "" if row["flop"] is None else in_flop(row["flop"]),
        )
        for row in rows
    ]
    pieces = [
        Piece("", ("variant", "steps", "losses at the end", "heads", "claims", "each"), shown)
    ]
    for row in rows:
        if whole and row["losses"]:
            of = len(row["losses"])
            claims = [(name, f"{held} of {of}") for name, held in row["holds"].items()]
            pieces.append(Piece("", ("claim", f"holds, {row['steps']:,} steps"), claims))
            pieces.append(_steps_piece(row["learned"]))
    remarks = (
        "heads: those of the circuit with a path, and those without",
        "claims: how many of them hold for all models",
        "`hopscope papers run musat/variants` trains what is missing",
    )
    return [*pieces, Piece(lines=remarks)]


def _permutation_pieces(found: list[VariantModels]) -> list[Piece]:
    """Return a table with a line for each claim: does it depend on the variant or on the seed?"""
    steps = Counter(each.steps for each in found if each.of_the_paper).most_common(1)
    alike = [each for each in found if each.of_the_paper and each.steps == steps[0][0]]
    if len(alike) < 2:
        return []
    rows = []
    outcomes = [each.outcomes() for each in alike]
    for name in outcomes[0]:
        known = [each[name] for each in outcomes]
        right, models = sum(each.right for each in known), sum(each.count for each in known)
        whole = sum(each.holds for each in known)
        of_each = [each.by_seed for each in known]
        chance = f"{permutation_test(of_each):.2g}" if all(of_each) else "–"
        rows.append((name, out_of(right, models), out_of(whole, len(known)), chance))
    shares = (
        f"models, variants: for how many it holds after {steps[0][0]:,} steps (a variant: for all "
        "its models); facts shuffled are no variant of the paper"
    )
    chances = (
        "p: how likely models of one variant would agree as well, if variants made no difference "
        "(permutation test)"
    )
    return [Piece("", ("claim", "models", "variants", "p"), rows, (shares, chances))]


def _steps_piece(learned: dict[int, tuple[int | None, ...]]) -> Piece:
    """Return a table of the step at which each model learned each hop."""
    hops = max(map(len, learned.values()))
    named = [f"{symbol_name(f'x{hop + 1}')} learned at step" for hop in range(hops)]
    rows = [
        (f"{seed}", *("never" if step is None else f"{step:,}" for step in steps))
        for seed, steps in learned.items()
    ]
    return Piece("", ("seed", *named), rows)


def _all(row: dict[str, Any]) -> str:
    """Return how many claims hold for every model of a variant, as "3 of 5"; empty if none."""
    held = row["holds"].values()
    return f"{sum(count == len(row['losses']) for count in held)} of {len(held)}" if held else ""
