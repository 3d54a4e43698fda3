"""The measures of the MIB benchmark (Mueller et al. 2025) on models with known circuits.

    python benchmarks/mib.py [--hops 1 2 3 4] [--examples 16] [--gallery demo] > results/mib.jsonl
    python benchmarks/mib.py --table results/mib.jsonl

A JSON row for each model, method and setting of the switches. *CPR* and *CMD* are areas under the
faithfulness f and under |1 - f|, by trapezoids over the shares of arrows .001 .002 .005 .01 .02 .05
.1 .2 .5 1, linear in the share; *AUROC* is that of the known circuit's arrows at the same shares.
f = (score - score with everything ablated) / (score of the model - score with everything ablated).

All methods rank the same arrows (layer, head, roles of destination and source, own or other chain)
on the same minimal pairs. Arrows without a score come last, by their index.

* `circuit`: the circuit that `discover` finds; an arrow's score is the share of the gap that is
  lost without its component.
* `ACDC`: arrows are removed from the last layer to the first, if f changes by less than tau; an
  arrow's score is the largest tau at which it stays. A row for each tau, and one for the order.
* `EAP-IG, one score`: one score for all answers and symbols together, as published; otherwise an
  arrow's score is its largest for any answer and symbol.

`difference` is the largest difference between the package's numbers and those of this file, which
computes orders, sums, areas and the ablated model with separate code (numpy, and a plain forward
pass).
"""

import argparse
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rows import print_row, print_table, read_rows
from torch import Tensor

import hopscope
from hopscope.circuits import Adapter, CallbackModel, Circuit, adapter_of, discover
from hopscope.circuits.baselines import Attribution, held_against, largest
from hopscope.circuits.patching import Pairs, pairs_of
from hopscope.circuits.ranking import Arrow, Baselines, Ranking, Switches, arrows_of
from hopscope.configs import ConditionalRetrieval, Retrieval, VectorTask
from hopscope.machine import cores, processor
from hopscope.models import Transformer
from hopscope.models.planted import planted

SHARES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
TAUS = (0.003, 0.01, 0.03, 0.1, 0.3)
SEED = 3
"""The seed of the minimal pairs; circuits are found with seed 0."""
SWITCHES = (
    Switches(exact=True),
    Switches(exact=True, rest="mean"),
    Switches(exact=True, signed=True),
    Switches(exact=True, greedy=True),
    Switches(exact=True, steps=50),
)
Place = tuple[int, ...]


class Plain:
    """Faithfulness of sets of arrows, computed without the package's code."""

    def __init__(self, model: Transformer, pairs: Pairs, rest: str) -> None:
        self.model, self.pairs, roles = model, pairs, pairs.examples.roles
        role, chain = roles.role.long(), roles.chain
        self.at = (
            role[:, :, None],
            role[:, None, :],
            (chain[:, :, None] != chain[:, None, :]).long(),
        )
        self.own = pairs.examples.inputs
        others = [*pairs.counterfactuals.values()] if rest == "counterfactual" else []
        self.there = [self._walk(other)[1] for other in others] or [self._means()]
        nothing = np.zeros(self.shape, dtype=bool)
        self.empty, self.all = self._score(nothing), self._score(~nothing)

    @property
    def shape(self) -> tuple[int, ...]:
        count = len(self.pairs.examples.table)
        return (self.model.config.layers, self.model.config.heads, count, count, 2)

    def faithfulness(self, kept: np.ndarray) -> float:
        return (self._score(kept) - self.empty) / (self.all - self.empty)

    def _walk(
        self, inputs: Tensor, change: Callable[[int, Tensor], Tensor] = lambda _, x: x
    ) -> tuple[Tensor, list[Tensor]]:
        """The outputs, and the contribution of every position to every other in each layer."""
        x, found, heads = self.model.enter(inputs), [], range(self.model.config.heads)
        for layer, block in enumerate(self.model.blocks):
            pattern: Tensor = block.pattern(x, inputs.shape[1], heads)  # type: ignore[operator]
            values: Tensor = block.values(x)  # type: ignore[operator]
            found.append(change(layer, pattern[..., None] * values[:, :, None]))
            x = block.write(x, found[-1].sum(3))  # type: ignore[operator]
        return self.model.leave(x[:, -self.model.interface.read :]), found

    def _means(self) -> list[Tensor]:
        """The means of arrows. Each position of a role gets the mean of an arrow, divided equally
        among its sources.
        """
        found = []
        destination, source, other = (each.expand(*self.at[2].shape) for each in self.at)
        code = (destination * self.shape[3] + source) * 2 + other
        for brought in self._walk(self.own)[1]:
            mean = torch.zeros_like(brought)
            for number in code.unique().tolist():
                here = code == number
                positions = (self.pairs.examples.roles.role == number // (2 * self.shape[3])).sum()
                total = brought.movedim(1, -1)[here].sum(0) / positions
                parts = here.sum(-1).clamp_min(1)[:, :, None].expand_as(here)[here]
                mean.movedim(1, -1)[here] = total / parts[:, None, None]
            found.append(mean)
        return found

    @torch.no_grad()
    def _score(self, kept: np.ndarray) -> float:
        chosen, total = torch.from_numpy(kept), 0.0
        for there in self.there:

            def change(layer: int, brought: Tensor, there: list[Tensor] = there) -> Tensor:
                stays = chosen[layer][:, *self.at].transpose(0, 1)
                return torch.where(stays[..., None], brought, there[layer])

            outputs, _ = self._walk(self.own, change)
            own, other = (
                f(outputs).double() for f in (self.pairs.examples.losses_of, self.pairs.other)
            )
            total += float((other - own).sum()) / len(self.there)
        return total


def measured(
    plain: Plain, order: list[Place], possible: int, truth: set[Place] | None
) -> dict[str, Any]:
    """The curve and the measures of an order of arrows."""
    curve, hits = [], []
    for share in SHARES:
        best = order[: int(share * possible)]
        kept = np.zeros(plain.shape, dtype=bool)
        for at in best:
            kept[at] = True
        curve.append(plain.faithfulness(kept))
        hits.append((len(best), len({*best} & (truth or set()))))
    found = {
        "cpr": float(np.trapezoid(curve, SHARES)),
        "cmd": float(np.trapezoid(np.abs(1 - np.array(curve)), SHARES)),
        "curve": [round(f, 3) for f in curve],
    }
    if truth:
        true = [0, *(hit / len(truth) for _, hit in hits), 1]
        false = [0, *((size - hit) / (possible - len(truth)) for size, hit in hits), 1]
        found["auroc"] = float(np.trapezoid(true, false))
    return found


def ordered(plain: Plain, scores: Mapping[Place, float], switches: Switches) -> list[Place]:
    """Places, the highest score first (equal scores: by their index)."""
    order = sorted(
        scores, key=lambda at: (-(scores[at] if switches.signed else abs(scores[at])), at)
    )
    if not switches.greedy:
        return order
    roles = plain.pairs.examples.roles.role
    answers = {*roles[:, -plain.model.interface.read :].unique().tolist()}
    taken: list[Place] = []
    while True:
        reached = (
            at for at in order
            if at[2] in answers or any(t[0] > at[0] and at[2] in t[2:4] for t in taken)
        )  # fmt: skip
        if (best := next(reached, None)) is None:
            return taken
        order.remove(best)
        taken.append(best)


def acdc(plain: Plain, possible: list[Place], tau: float) -> set[Place]:
    """The arrows that stay if each arrow is removed, from the last layer to the first, whose
    removal changes f by less than tau.
    """
    kept = np.zeros(plain.shape, dtype=bool)
    for at in possible:
        kept[at] = True
    now = plain.faithfulness(kept)
    for at in sorted(possible, reverse=True):
        kept[at] = False
        without = plain.faithfulness(kept)
        if abs(now - without) < tau:
            now = without
        else:
            kept[at] = True
    return {at for at in possible if kept[at]}


def rows(
    name: str, model: Transformer, task: VectorTask, known: Any, examples: int
) -> Iterator[dict[str, Any]]:
    """All rows for one model; `known` are its true paths, if it was planted."""
    adapter, pairs = adapter_of(model), pairs_of(task, examples, SEED)
    assert not isinstance(adapter, CallbackModel)
    found = discover(model, task)
    arrows = arrows_of(found) if known is None else tuple(
        Arrow(p.layer, p.head, p.destination, p.source) for p in known
    )  # fmt: skip
    scores, possible = scores_of(adapter, pairs, SWITCHES[0].steps)
    about = {
        "benchmark": "mib", "model": name, "examples": examples, "possible": len(possible),
        "arrows": len(arrows), "known": known is not None,
        "seeds": {"search": 0, "pairs": SEED},
        "machine": f"{processor()}, {cores()} cores", "threads": torch.get_num_threads(),
    }  # fmt: skip
    for switches in SWITCHES:
        begun = time.process_time()
        if switches.steps != SWITCHES[0].steps:
            scores, _ = scores_of(adapter, pairs, switches.steps)
        plain = Plain(model, pairs, switches.rest)
        truth = {place(pairs, arrow) for arrow in arrows} & {*possible}
        about |= {"switches": switches.model_dump(exclude={"exact"})}
        package = held_against(adapter, pairs, arrows, switches)
        rankings = {each.method: each for each in package.rankings}
        methods = {**scores, "circuit": by_circuit(found, pairs, possible)}
        if switches == SWITCHES[0]:
            stays = dict.fromkeys(possible, 0.0)
            for tau in TAUS:
                left = acdc(plain, possible, tau)
                stays |= dict.fromkeys(left, tau)
                yield {**about, "method": f"ACDC, tau {tau}", **as_set(plain, left, truth)}
            methods["ACDC"] = stays
        yield {
            **about,
            "method": "circuit, as a set",
            **as_set(plain, circuit_places(found, pairs) & {*possible}, truth),
        }
        for method, its in methods.items():
            order = ordered(plain, its, switches)
            mine = measured(plain, order, len(possible), truth if known is not None else None)
            row = {**about, "method": method, **rounded(mine)}
            if method in rankings:
                row |= graded(package, rankings[method])
                row["difference"] = difference(package, rankings[method], mine)
            yield {**row, "cpu_seconds": round(time.process_time() - begun, 1)}


@torch.no_grad()
def scores_of(
    adapter: Adapter, pairs: Pairs, steps: int
) -> tuple[dict[str, dict[Place, float]], list[Place]]:
    """The scores of every possible arrow by each method of the package, not rounded."""
    attribution = Attribution(adapter, pairs)
    possible = attribution.possible().bool()
    places = [tuple(at) for at in possible.nonzero().tolist()]
    every = [Arrow(at[0], at[1], pairs.examples.table[at[2]], pairs.examples.table[at[3]],
                   ("own", "others")[at[4]]) for at in places]  # fmt: skip
    raw = {
        "EAP-IG": attribution.by_gradient(steps),
        "activation patching": attribution.patched(),
        "direct logit attribution": attribution.direct(),
        "every arrow patched": attribution.patched(every),
    }
    tensors = {method: largest(each.nan_to_num(0.0)) for method, each in raw.items()}
    tensors["EAP-IG, one score"] = raw["EAP-IG"].nan_to_num(0.0).sum((0, 1))
    return {
        method: {at: float(each[at]) for at in places} for method, each in tensors.items()
    }, places


def by_circuit(found: Circuit, pairs: Pairs, possible: list[Place]) -> dict[Place, float]:
    """For each arrow, the share of the gap that is lost without its component; 0 outside of the
    circuit.
    """
    scores = dict.fromkeys(possible, 0.0)
    for each in found.components:
        lost = max(1e-9, each.lost.mean if each.lost else 0.0)
        for at in {*possible} & circuit_places(
            found.model_copy(update={"components": (each,)}), pairs
        ):
            scores[at] = max(scores[at], lost)
    return scores


def circuit_places(found: Circuit, pairs: Pairs) -> set[Place]:
    return {place(pairs, arrow) for arrow in arrows_of(found)}


def place(pairs: Pairs, arrow: Arrow) -> Place:
    """The index of an arrow."""
    roles = pairs.examples.number(arrow.destination), pairs.examples.number(arrow.source)
    return (arrow.layer, arrow.head, *roles, int(arrow.chain == "others"))


def as_set(plain: Plain, arrows: set[Place], truth: set[Place]) -> dict[str, Any]:
    """Results for a set of arrows without an order."""
    kept = np.zeros(plain.shape, dtype=bool)
    for at in arrows:
        kept[at] = True
    hits = len(arrows & truth)
    return {
        "kept": len(arrows),
        "faithfulness": round(plain.faithfulness(kept), 3),
        "arrow_precision": round(hits / max(1, len(arrows)), 3),
        "arrow_recall": round(hits / len(truth), 3),
    }


def graded(package: Baselines, ranking: Ranking) -> dict[str, Any]:
    """Precision and recall at the best threshold, chosen with knowledge of the circuit."""
    found: dict[str, Any] = {"faithfulness": round(ranking.as_many.faithfulness, 3)}
    for by in ("arrow", "row"):
        if ranking.grades(package.circuit, by):
            grade = ranking.best(package.circuit, by)
            found |= {
                f"{by}_precision": round(grade.precision, 3),
                f"{by}_recall": round(grade.recall, 3),
            }
    return found


def difference(package: Baselines, ranking: Ranking, mine: Mapping[str, Any]) -> float:
    """The largest difference between the package's areas and those of this file."""
    theirs = package.measures(ranking)._asdict()
    both = [(its, mine[name]) for name, its in theirs.items() if its is not None and name in mine]
    return float(f"{max(abs(one - other) for one, other in both):.1e}")


def rounded(numbers: Mapping[str, Any]) -> dict[str, Any]:
    return {name: round(its, 4) if isinstance(its, float) else its for name, its in numbers.items()}


def models(chosen: argparse.Namespace) -> Iterator[tuple[str, Transformer, VectorTask, Any]]:
    """Planted models with their paths, and models of the gallery."""
    tasks: dict[str, VectorTask] = {
        f"planted, {hops} hop{'s' * (hops > 1)}": Retrieval(
            hops=hops, chains=4, dim=4 * (hops + 1), symbols="one-hot"
        )
        for hops in chosen.hops
    }
    tasks["planted, conditional"] = ConditionalRetrieval(
        chains=2, decoys=0, dim=8, symbols="one-hot"
    )
    for name, task in tasks.items():
        grown = planted(task)
        yield name, grown.model, task, grown.paths
    for name in chosen.gallery:
        study = hopscope.load(f"gallery/{name}")
        yield f"gallery/{name}", study.model, study.task, None


def shown(path: Path) -> None:
    """Print CPR, CMD and AUROC of every method and model, with the default switches."""
    usual = Switches().model_dump(exclude={"exact"})
    cells = {
        (row["method"], row["model"]): " / ".join(
            f"{row[key]:.2f}" for key in ("cpr", "cmd", "auroc") if key in row
        )
        for row in read_rows(path)
        if row["switches"] == usual and "cpr" in row
    }
    names = list(dict.fromkeys(name for _, name in cells))
    print_table(
        ("CPR / CMD / AUROC", *names),
        [
            (method, *(cells[method, name] for name in names))
            for method in dict.fromkeys(method for method, _ in cells)
        ],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hops", nargs="*", type=int, default=[1, 2, 3, 4])
    parser.add_argument("--examples", type=int, default=16)
    parser.add_argument("--gallery", nargs="*", default=["demo"])
    parser.add_argument("--table", type=Path)
    chosen = parser.parse_args()
    if chosen.table:
        shown(chosen.table)
        return
    torch.set_num_threads(1)
    for model in models(chosen):
        for row in rows(*model, chosen.examples):
            print_row(row)


if __name__ == "__main__":
    main()
