"""From which layer on does a language model's circuit keep the answer, if all other heads are the
donor's from there on?

    python results/scripts/lm_circuit_alone.py RUN --store runs --questions 16 \
        --layers 0 12 16 18 20 22

A circuit alone fails where heads of earlier layers, which it reads, are no part of it. So all heads
but the circuit's rows are the donor's in the layers from L on; and, to compare, all heads. A JSON
row for each exchange and L: how far answers go to the donor's. RUN is a finished one of
`hopscope lm circuit`; questions are those of its proof. Needs the model.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from hopscope.circuits.adapters import adapter_of
from hopscope.circuits.components import Estimate
from hopscope.circuits.engine import Adapter
from hopscope.circuits.patching import has_answers
from hopscope.lm.findings import LmCircuitRun
from hopscope.lm.model import load
from hopscope.lm.pairs import Paired, pairs, proving, role_table
from hopscope.lm.patching import Mark, PairBatch, in_batches, interchanged
from hopscope.lm.rows import of_phase
from hopscope.store import Store


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("run")
    parser.add_argument("--store", type=Path)
    parser.add_argument("--questions", type=int, default=16)
    parser.add_argument("--layers", type=int, nargs="+", required=True)
    chosen = parser.parse_args()
    found = LmCircuitRun(Store(chosen.store).find(chosen.run)).findings
    recipe = found.recipe
    local = load(recipe.model, recipe.dtype, "auto", recipe.template, max_tokens=1)
    subject = adapter_of(local.model)
    assert isinstance(subject, Adapter)
    first = of_phase(found.rows, "proof")[0]["index"]
    asked = pairs(local, recipe.prompts, recipe.seeds[0], first, chosen.questions)
    shape = (subject.layers, subject.heads, len(role_table(recipe.prompts)))
    circuit = torch.zeros(shape, dtype=torch.bool)
    for row in found.rows_by(found.roles):
        circuit[row] = True
    later = torch.stack([torch.arange(shape[0]) >= layer for layer in chosen.layers])
    every = later[:, :, None, None].expand(-1, *shape)
    variants = torch.cat([every & ~circuit, every])
    for name in proving(recipe.prompts):
        told = followed(subject, asked, name, variants)
        halves = (told[: len(later)], told[len(later) :])
        for layer, spared, all_ in zip(chosen.layers, *halves, strict=True):
            both = {"all_but_circuit": spared, "all": all_}
            found = {its: share.model_dump() if share else None for its, share in both.items()}
            row = {"exchange": name, "from_layer": layer, "questions": len(asked)}
            print(json.dumps(row | found), flush=True)


@torch.no_grad()
def followed(
    subject: Adapter, asked: Sequence[Paired], name: str, variants: Tensor
) -> list[Estimate | None]:
    """How far answers go to the donor's if these rows [variant, layer, head, role] are; None: not
    measured.
    """

    def measure(batch: PairBatch) -> list[tuple[Tensor, Tensor]]:
        clean = batch.clean([name])[0]
        donor = variants[:, None].expand(-1, len(batch.pairs), *variants.shape[1:])
        moved = interchanged(batch, name, donor)[..., Mark.FOLLOWS]
        return list(zip(clean[:, Mark.OWN] - clean[:, Mark.FOLLOWS], moved.unbind(1), strict=True))

    found = in_batches(subject, asked, variants.shape[-1], measure)
    sure, moved = (torch.stack(each) for each in zip(*found, strict=True))
    own = has_answers(sure)
    return [Estimate.of_ratio(its.numpy(), sure.numpy()) if own else None for its in moved.T]


if __name__ == "__main__":
    main()
