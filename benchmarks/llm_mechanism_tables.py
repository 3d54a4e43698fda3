"""The tables and the figure of docs/llm.md on mechanisms, from the rows of a run, finished or not.

python benchmarks/llm_mechanism_tables.py RUN --store runs --figure docs/images/NAME.svg
"""

import argparse
from collections import Counter
from pathlib import Path

from markdown import table

from hopscope.llm.mechanism import LlmFindings, MechanismRun
from hopscope.llm.rows import of_phase
from hopscope.llm.weighing import counting, head_rows
from hopscope.report.mechanism import confirmed_rows, mechanism_figure, proof_rows, told_roles
from hopscope.report.saving import save_figure
from hopscope.store import Store


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run")
    parser.add_argument("--store", type=Path)
    parser.add_argument("--figure", type=Path)
    chosen = parser.parse_args()
    folder = Store(chosen.store).find(chosen.run)
    found = MechanismRun(folder).findings
    measured = Counter(row["phase"] for row in found.rows)
    print(f"{folder.name}: {found.answered}")
    print(", ".join(f"{name} {measured[name]} of {n}" for name, n in found.recipe.phases if n))
    if of_phase(found.rows, "roles"):
        roles(found)
        if chosen.figure:
            save_figure(mechanism_figure(found), chosen.figure)
    heads(found)
    for phase in ("proof", "elsewhere"):
        if proofs := found.proofs(phase):
            print(f"\n{phase}, {proofs[0].questions} questions\n")
            table(*proof_rows(proofs))
    if found.confirmed:
        print(f"\nwhat roles hold, on {found.confirmed[0].questions} fresh questions\n")
        table(*confirmed_rows(found))


def roles(found: LlmFindings) -> None:
    """For each exchange, how far the answer follows each role before each layer."""
    for name, shares in found.shares.items():
        print(f"\n{name}\n")
        rows = [
            (str(found.roles[role]), *(f"{its.mean:.2f}" for its in shares[role]))
            for role in told_roles(found)
        ]
        table(("role", *map(str, found.layers)), rows)
    print("\n" + "; ".join(found.verdict()))


def heads(found: LlmFindings) -> None:
    """The rows that count."""
    rows = counting(found.recipe, head_rows(found.recipe, found.rows))
    if rows:
        print()
        table(
            ("head", "reader", "looks at", "exchange", "the answer follows"),
            [
                (
                    f"{row.layer}.{row.head}", str(found.roles[row.role]),
                    ", ".join(str(found.roles[n]) for n in row.sources),
                    max(row.shares, key=lambda name: row.shares[name].mean), str(row.most),
                )
                for row in rows
            ],
        )  # fmt: skip


if __name__ == "__main__":
    main()
