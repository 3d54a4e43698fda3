"""A page on what every arrow of a circuit moves, and which symbols are decodable at every role.

    python benchmarks/travels.py gallery/transformer-a > notes/travels/transformer-a.md
    python benchmarks/travels.py RUN --store STORE --called "transformer B" > PAGE.md

The page is for one model. It uses the model's circuit (searched for if none is saved with the run),
patching of every component, and linear probes of every position after every layer.
"""

import argparse

from rows import print_table

import hopscope
from hopscope.circuits.circuit_patching import patch_circuit
from hopscope.circuits.contradictions import accounted_for, contradictions
from hopscope.plots.account import account_table
from hopscope.plots.words import added_table, probe_remarks, probe_table
from hopscope.study import RunStudy


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("model")
    reader.add_argument("--store")
    reader.add_argument("--called", help="what the page calls it; unset: the model's name")
    chosen = reader.parse_args()
    study = hopscope.load(chosen.model, store=chosen.store)
    print(f"# How the answer travels in {chosen.called or chosen.model}\n")
    store = " --store STORE" if chosen.store else ""
    print(
        f"Seed {study.seed}, after {study.step:,} steps. Written by `python benchmarks/travels.py "
        f"{chosen.model}{store}`, not by hand. What is measured, and how: "
        "[probes](../../docs/probe.md)."
    )
    print_arrows(study)
    print_positions(study)


def print_arrows(study: RunStudy) -> None:
    """Print what every arrow moves, measured by patching."""
    circuit = study.circuit if study.has_circuit else study.discover()
    circuit = patch_circuit(study.model, circuit, study.task)
    print("\n## What every arrow brings\n")
    arrows = account_table(circuit)
    print_table(arrows.columns, arrows.rows)
    assert circuit.account is not None
    print(
        f"\nOver {circuit.account.examples} minimal pairs. What is carried is the share of an "
        "answer that moves with the symbol, ± half its 95 % interval. Rows without a path are "
        "followed by what they fetch, behind “…”. Losses in the last column are the model's on "
        "these pairs, which are other examples than those of its loss below: as it is, with the "
        "rows' mean at each position in place of what they bring, and with one mean for all "
        "positions."
    )
    print(
        f"\n{len(accounted_for(circuit))} of {len(circuit.components)} components have a causal "
        f"account. The model's loss is {circuit.losses.mean('model'):.4f}; its circuit's with "
        f"prescribed attention is {circuit.losses.mean('prescribed'):.4f}.\n"
    )
    for each in contradictions(circuit):
        print(f"* {each}")


def print_positions(study: RunStudy) -> None:
    """Print which symbols are decodable after every layer, and which heads add them."""
    found = study.probe()
    print("\n## Which symbols can be read\n")
    for table in (probe_table(found), added_table(found)):
        print_table(table.columns, table.rows)
        print()
    for line in probe_remarks(found):
        print(f"* {line}")


if __name__ == "__main__":
    main()
