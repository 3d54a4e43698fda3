"""How much of each circuit has a causal account, and what contradicts what?

    python results/scripts/accounts.py gallery/demo gallery/planted … >> results/accounts.jsonl
    hopscope train demo --seeds 0 1 2 3 4 5 6 7 8 9 --threads 1 --store STORE
    python results/scripts/accounts.py RUN --store STORE >> results/accounts.jsonl  # all seeds
    python results/scripts/accounts.py --table

A row per model: its loss, the components of its circuit by what their account says (they bring
symbols; they tell a place; they bring nothing but a constant; none), of rows that form no path what
is fetched there, and from where (`without_paths`), and every contradiction between probes,
patching, discovery and theory, with its reason where one is known. A circuit that is not kept with
its run is searched for.
"""

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hopscope
from hopscope.circuits import Account, Circuit
from hopscope.circuits.circuit_patching import patch_circuit
from hopscope.circuits.contradictions import accounted_for, contradictions
from hopscope.study import RunStudy

RESULTS = Path(__file__).parents[1] / "accounts.jsonl"
KINDS = ("symbols", "place", "constant", "none")


def main() -> None:
    destination = argparse.ArgumentParser(description=__doc__)
    destination.add_argument("models", nargs="*")
    destination.add_argument("--store")
    destination.add_argument("--seeds", type=int, nargs="*", help="unset: all of a fleet")
    destination.add_argument("--examples", type=int, default=64)
    destination.add_argument("--table", action="store_true")
    chosen = destination.parse_args()
    if chosen.table:
        show()
    for name in chosen.models:
        for study in members(name, chosen):
            print(json.dumps(row(name, study, chosen.examples), ensure_ascii=False), flush=True)


def members(name: str, chosen: argparse.Namespace) -> Iterator[RunStudy]:
    study = hopscope.load(name, store=chosen.store)
    for seed in chosen.seeds or study.recipe.seeds:
        yield hopscope.load(name, seed=seed, store=chosen.store)


def row(name: str, study: RunStudy, examples: int) -> dict[str, Any]:
    """One model: what is known of the components of its circuit."""
    begun = time.process_time()
    circuit = study.circuit if study.has_circuit else study.discover()
    searched = time.process_time()
    circuit = patch_circuit(study.model, circuit, study.task, examples)
    account, known = circuit.account, accounted_for(circuit)
    assert account is not None
    kinds = dict.fromkeys(KINDS, 0)
    for each in circuit.components:
        mean = account.mean_of(each)
        kinds["symbols" if mean is None else mean.brings if each in known else "none"] += 1
    return {
        "benchmark": "accounts", "model": name, "seed": study.seed, "examples": examples,
        "loss": circuit.losses.mean("model"), "circuit": circuit.losses.mean("prescribed"),
        "components": len(circuit.components), "accounted": len(known), **kinds,
        "without_paths": without_paths(circuit, account),
        "without": [f"{each.name} {circuit.described(each)} ({each.kind})"
                    for each in circuit.components if each not in known],
        "contradictions": [{"what": each.what, "reason": each.reason}
                           for each in contradictions(circuit)],
        "search_cpu_seconds": round(searched - begun, 1),
        "account_cpu_seconds": round(time.process_time() - searched, 1),
    }  # fmt: skip


def without_paths(circuit: Circuit, account: Account) -> dict[str, list[str]]:
    """What each component without a path fetches, and from where, or else what it tells."""
    found = {}
    for each in circuit.components:
        if not each.paths:
            fetched = [
                f"{its.site.arrow}: {', '.join(its.symbols)}" for its in account.fetched(each)
            ]
            mean = account.mean_of(each)
            told: list[str] = [] if mean is None else [mean.brings]
            found[f"{each.name} {circuit.described(each)}"] = fetched or told
    return found


def show() -> None:
    """The rows as a table."""
    rows = [json.loads(line) for line in RESULTS.read_text().splitlines()]
    lines = [
        (f"{row['model']}, seed {row['seed']}", f"{row['loss']:.4f}", f"{row['circuit']:.4f}",
         row["components"], row["accounted"], *(row[kind] for kind in KINDS[:3]),
         len(row["contradictions"]), sum(bool(its["reason"]) for its in row["contradictions"]))
        for row in rows
    ]  # fmt: skip
    head = ("model", "loss", "circuit", "components", "with an account", "symbols", "place",
            "constant", "contradictions", "with a reason")  # fmt: skip
    for line in (head, ["---"] * len(head), *lines):
        print("| " + " | ".join(map(str, line)) + " |")


if __name__ == "__main__":
    main()
