"""What arrows carry, against a model run with its edits by hand."""

from typing import Any

import pytest
import torch
from torch import Tensor

from hopscope.circuits.carrying import Site
from hopscope.circuits.parts import Estimate
from hopscope.configs import Retrieval
from hopscope.facts import Role
from hopscope.models import Transformer
from hopscope.tracing.pairs import Pairs, pairs_of
from hopscope.tracing.patching import cargo


def by_hand(model: Transformer, pairs: Pairs, site: Site, symbol: str, way: str) -> Tensor:
    """One site, one symbol, one way: the model with its own edits, or layer by layer."""
    exam = pairs.exam
    own, donor = _heads(model, exam.inputs), _heads(model, pairs.donors[symbol])
    looks = model.attention(exam.inputs), model.attention(pairs.donors[symbol])
    change = torch.zeros_like(own[site.layer][:, site.heads[0]])
    for example in range(len(exam)):
        roles, chains = exam.roles.role[example].tolist(), exam.roles.chain[example].tolist()
        for row, role in enumerate(roles):
            if exam.table[role] not in site.readers:
                continue
            for source, other in enumerate(roles):
                mine = chains[source] == chains[row] and exam.table[other] == site.source
                if site.source is None or mine:
                    for sign, its, look in ((1, donor, looks[1]), (-1, own, looks[0])):
                        weight = look[site.layer, example, site.heads[0], row, source]
                        change[example, row] += (
                            sign * weight * _values(its)[site.layer][example, site.heads[0], source]
                        )
    return _outputs(model, exam.inputs, site, change, way)


def _heads(model: Transformer, inputs: Tensor) -> Any:
    """What heads carry in each layer, and their values beside it."""
    x, values, mixed = model.enter(inputs), [], []
    for layer, block in enumerate(model.blocks):
        values.append(block.values(x))  # type: ignore[operator]
        pattern = block.look(x, x.shape[1], range(model.config.heads))  # type: ignore[operator]
        mixed.append(pattern @ values[-1])
        x = model.layer(layer, x)
    return _Heads(mixed, values)


class _Heads(list[Tensor]):
    def __init__(self, mixed: list[Tensor], values: list[Tensor]) -> None:
        super().__init__(mixed)
        self.values = values


def _values(its: _Heads) -> list[Tensor]:
    return its.values


def _outputs(model: Transformer, inputs: Tensor, site: Site, change: Tensor, way: str) -> Tensor:
    clean = model.attention(inputs)

    def heads(layer: int, mixed: Tensor) -> Tensor:
        if layer != site.layer:
            return mixed
        edited = mixed.clone()
        edited[:, site.heads[0]] += change[:, -mixed.shape[-2] :]
        return edited

    def frozen(layer: int, pattern: Tensor) -> Tensor:
        return clean[layer][..., -pattern.shape[-2] :, :]

    if way == "all":
        return model(inputs, heads=heads)
    if way == "values":
        return model(inputs, heads=heads, attention=frozen)
    # A second model walks beside the one with frozen attention, and lends its queries or keys.
    x = y = model.enter(inputs)
    for layer in range(site.layer + 1):
        own = model.blocks[layer]
        mixed = own.look(y, y.shape[1], range(model.config.heads)) @ own.values(y)  # type: ignore[operator]
        y, x = own.write(y, heads(layer, mixed)), own.write(y, mixed)  # type: ignore[operator]
    plain = x
    for layer in range(site.layer + 1, model.config.layers):
        block = model.blocks[layer]
        lent = x + y - plain
        norm, attention = block.attention_norm, block.attention  # type: ignore[union-attr]
        query = attention.query(norm(lent if way == "queries" else x))  # type: ignore[operator, union-attr]
        key = attention.key(norm(lent if way == "keys" else x))  # type: ignore[operator, union-attr]
        width, length = model.config.head_width, x.shape[1]
        pattern = torch.zeros(len(x), model.config.heads, length, length)
        for head in range(model.config.heads):
            part = slice(head * width, (head + 1) * width)
            for row in range(length):
                scores = (query[:, row, None, part] * key[:, : row + 1, part]).sum(-1)
                pattern[:, head, row, : row + 1] = (scores / width**0.5).softmax(-1)
        x = block.write(x, pattern @ block.values(x))  # type: ignore[operator]
        y = block.write(y, clean[layer] @ block.values(y))  # type: ignore[operator]
        plain = block.write(plain, clean[layer] @ block.values(plain))  # type: ignore[operator]
    return model.leave(x[:, -model.interface.read :])


SITES = [
    Site(layer=0, heads=(1,), readers=(Role("value", 0),), source=Role("key", 0)),
    Site(layer=1, heads=(0,), readers=(Role("query"), Role("value", 1))),
    Site(layer=2, heads=(1,), readers=(Role("query"),), source=Role("value", 0)),
]


@pytest.mark.slow
@pytest.mark.parametrize("way", ["all", "values", "queries", "keys"])
def test_all_sites_together_are_each_by_hand(
    way: str, random_model: Transformer, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = Retrieval(hops=2, chains=2, dim=6, symbols="one-hot")
    pairs = pairs_of(task, 3)
    monkeypatch.setattr("hopscope.tracing.patching.check_answers", lambda *_: None)
    monkeypatch.setattr("hopscope.tracing.patching.KEPT", 0.0)
    monkeypatch.setattr("hopscope.tracing.patching.share_of", _ratio)
    found = cargo(random_model, pairs, SITES)
    with torch.no_grad():
        outputs = random_model(pairs.exam.inputs)
        plain = pairs.marks(outputs[None])[:, 0]
        sure = pairs.other(outputs) - pairs.exam.losses(outputs)
        for site, its in zip(SITES, found, strict=True):
            for symbol in task.symbol_names():
                its_outputs = by_hand(random_model, pairs, site, symbol, way)
                moved = pairs.marks(its_outputs[None])[:, 0] - plain
                for column, hop in enumerate(pairs.hops):
                    move = next(
                        m for m in its.moves if (m.symbol, m.way, m.hop) == (symbol, way, hop)
                    )
                    expected = [_ratio(sure[:, column], part[:, column]).mean for part in moved]
                    assert move.share.mean == pytest.approx(expected[0], abs=2e-4)
                    assert move.left.mean == pytest.approx(-expected[1], abs=2e-4)


def _ratio(sure: Tensor, moved: Tensor) -> Any:
    share = float(moved.sum() / sure.sum())
    return Estimate(mean=share, low=share, high=share)
