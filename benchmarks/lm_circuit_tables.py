"""The tables and the figure on circuits in docs/lm.md, from a run that may be unfinished.

python benchmarks/lm_circuit_tables.py RUN --store runs --figure docs/images/NAME.svg
"""

import argparse
from collections import Counter
from pathlib import Path

from rows import print_table

from hopscope.lm.findings import LmCircuitRun, LmFindings
from hopscope.lm.rows import of_phase
from hopscope.plots.lm_circuit import lm_circuit_figure
from hopscope.plots.lm_words import confirmed_table, proof_table, shown_roles
from hopscope.plots.saving import save_figure
from hopscope.store import Store


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run")
    parser.add_argument("--store", type=Path)
    parser.add_argument("--figure", type=Path)
    chosen = parser.parse_args()
    folder = Store(chosen.store).find(chosen.run)
    found = LmCircuitRun(folder).findings
    measured = Counter(row["phase"] for row in found.rows)
    print(f"{folder.name}: {found.answered}")
    print(", ".join(f"{name} {measured[name]} of {n}" for name, n in found.recipe.phases if n))
    if of_phase(found.rows, "roles"):
        roles(found)
        if chosen.figure:
            save_figure(lm_circuit_figure(found), chosen.figure)
    heads(found)
    for phase in ("proof", "elsewhere"):
        if proofs := found.proofs(phase):
            print(f"\n{phase}, {proofs[0].questions} questions\n")
            table = proof_table(proofs, found.recipe.prompts)
            print_table(table.columns, table.rows)
    if found.confirmed:
        print(f"\nwhat roles hold, on {found.confirmed[0].questions} fresh questions\n")
        table = confirmed_table(found)
        print_table(table.columns, table.rows)


def roles(found: LmFindings) -> None:
    """Print, for each exchange, how far the answer follows each role before each layer."""
    for name, shares in found.shares.items():
        print(f"\n{name}\n")
        rows = [
            (str(found.roles[role]), *(f"{its.mean:.2f}" for its in shares[role]))
            for role in shown_roles(found)
        ]
        print_table(("role", *map(str, found.layers)), rows)
    print("\n" + "; ".join(found.verdict()))


def heads(found: LmFindings) -> None:
    """Print the strongest rows of heads."""
    rows = found.strongest
    if rows:
        print()
        print_table(
            ("head", "destination", "looks at", "exchange", "the answer follows"),
            [
                (
                    f"{row.layer}.{row.head}", str(row.destination),
                    ", ".join(map(str, row.sources)),
                    max(row.shares, key=lambda name: row.shares[name].mean), str(row.most),
                )
                for row in rows
            ],
        )  # fmt: skip


if __name__ == "__main__":
    main()
