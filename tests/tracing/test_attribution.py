"""Attribution of answers to arrows, against patching by hand and by finite differences."""

import pytest
import torch
from torch import Tensor

from hopscope.circuits import Subject, Whole, subject_of
from hopscope.circuits.carrying import Site
from hopscope.configs import Retrieval
from hopscope.errors import CircuitError
from hopscope.models import Transformer
from hopscope.tracing.attribution import CHAINS, Attribution
from hopscope.tracing.pairs import Pairs, pairs_of
from hopscope.tracing.patched import Patching
from hopscope.tracing.ranking import Arrow

TASK = Retrieval(hops=2, chains=2, dim=6, symbols="one-hot")


@pytest.fixture
def pairs(monkeypatch: pytest.MonkeyPatch) -> Pairs:
    # A random model has no answers of its own; arithmetic is held to all the same.
    monkeypatch.setattr("hopscope.tracing.attribution.check_answers", lambda *_: None)
    monkeypatch.setattr("hopscope.tracing.attribution.has_answers", lambda _: torch.tensor(True))
    return pairs_of(TASK, 5, 0)


@pytest.fixture
def subject(random_model: Transformer) -> Subject:
    found = subject_of(random_model)
    assert not isinstance(found, Whole)
    return found


def outputs(model: Transformer, x: Tensor, added: tuple[int, Tensor] | None = None) -> Tensor:
    """The model from what enters its first layer on, with more brought in one layer."""
    for layer, block in enumerate(model.blocks):
        pattern = block.look(x, x.shape[1], range(model.config.heads))  # type: ignore[operator]
        mixed = pattern @ block.values(x)  # type: ignore[operator]
        if added is not None and layer == added[0]:
            mixed = mixed + added[1]
        x = block.write(x, mixed)  # type: ignore[operator]
    return model.leave(x[:, -model.interface.read :])


def distance(pairs: Pairs, answers: Tensor) -> Tensor:
    """How much nearer the other chain's symbols are than the own one's, for each hop."""
    marks = pairs.marks(answers[None])[:, 0]
    return (marks[0] - marks[1]).sum(0)


def changes(model: Transformer, pairs: Pairs, symbol: str, arrow: Arrow) -> Tensor:
    """What the donor brings more along an arrow [batch, head, seq, d_head], place by place."""
    exam, both = pairs.exam, []
    for inputs in (pairs.donors[symbol], exam.inputs):
        x = model.enter(inputs)
        for layer in range(arrow.layer):
            x = model.layer(layer, x)
        block = model.blocks[arrow.layer]
        pattern = block.look(x, x.shape[1], range(model.config.heads))  # type: ignore[operator]
        both.append((pattern[:, arrow.head], block.values(x)[:, arrow.head]))  # type: ignore[operator]
    found = torch.zeros(len(exam), model.config.heads, exam.length, both[0][1].shape[-1])
    for example in range(len(exam)):
        roles, chains = exam.roles.role[example].tolist(), exam.roles.chain[example].tolist()
        for i, j in torch.cartesian_prod(*[torch.arange(exam.length)] * 2).tolist():
            same = "own" if chains[i] == chains[j] else "others"
            at = (exam.table[roles[i]], exam.table[roles[j]], same)
            if at == (arrow.reader, arrow.source, arrow.chain):
                (there, more), (here, less) = both
                change = (
                    there[example, i, j] * more[example, j] - here[example, i, j] * less[example, j]
                )
                found[example, arrow.head, i] += change
    return found


def some_arrows(attribution: Attribution) -> list[Arrow]:
    table, every = attribution.pairs.exam.table, attribution.possible().nonzero().tolist()
    return [
        Arrow(n, h, table[r], table[s], CHAINS[c]) for n, h, r, s, c in every[:: len(every) // 9]
    ]


def at(pairs: Pairs, arrow: Arrow) -> tuple[int, ...]:
    table = pairs.exam.table
    place = (table.index(arrow.reader), table.index(arrow.source), CHAINS.index(arrow.chain))
    return (arrow.layer, arrow.head, *place)


def test_gradients_are_what_small_patches_do(
    random_model: Transformer, subject: Subject, pairs: Pairs
) -> None:
    """EAP-IG: the answers' slope along what an arrow brings more, at inputs between the two."""
    attribution = Attribution(subject, pairs)
    found = attribution.by_gradient(steps=2)
    small = 0.02  # losses are float32, and their differences must be told from rounding
    for arrow in some_arrows(attribution):
        for number, symbol in enumerate(pairs.donors):
            change, slopes = changes(random_model, pairs, symbol, arrow), []
            own, donor = (random_model.enter(x) for x in (pairs.exam.inputs, pairs.donors[symbol]))
            for part in (0.25, 0.75):
                x = own + part * (donor - own)
                ends = [
                    distance(pairs, outputs(random_model, x, (arrow.layer, sign * small * change)))
                    for sign in (1, -1)
                ]
                slopes.append((ends[0] - ends[1]) / (2 * small))
            wanted = torch.stack(slopes).mean(0) / (2 * attribution.sure)
            mine = found[number, :, *at(pairs, arrow)]
            assert torch.allclose(mine, wanted, atol=5e-4, rtol=0.02), arrow
    assert found.abs().max() > 0.1


def test_what_goes_straight_to_the_output_and_what_is_patched(
    random_model: Transformer, subject: Subject, pairs: Pairs
) -> None:
    attribution = Attribution(subject, pairs)
    arrows = some_arrows(attribution)
    direct, patched = attribution.direct(), attribution.patched(arrows)
    own = random_model.enter(pairs.exam.inputs)
    plain = distance(pairs, outputs(random_model, own))
    end = own
    for layer in range(random_model.config.layers):
        end = random_model.layer(layer, end)
    for arrow in arrows:
        for number, symbol in enumerate(pairs.donors):
            change = changes(random_model, pairs, symbol, arrow)
            moved = distance(pairs, outputs(random_model, own, (arrow.layer, change))) - plain
            wanted = moved / (2 * attribution.sure)
            assert torch.allclose(patched[number, :, *at(pairs, arrow)], wanted, atol=1e-5), arrow
            heads = random_model.blocks[arrow.layer].attention  # type: ignore[union-attr]
            more = heads.written(change) - heads.written(0 * change)  # type: ignore[operator, union-attr]
            read = random_model.leave((end + more)[:, -random_model.interface.read :])
            wanted = (distance(pairs, read) - plain) / (2 * attribution.sure)
            assert torch.allclose(direct[number, :, *at(pairs, arrow)], wanted, atol=1e-5), arrow
    assert direct.abs().max() > 0.01
    assert patched.abs().max() > 0.01


def test_a_row_that_is_patched_is_all_of_its_arrows(subject: Subject, pairs: Pairs) -> None:
    """In the last layer answers are not quite, but what is brought is, the sum of its arrows."""
    attribution = Attribution(subject, pairs)
    rows = attribution.patched()
    assert torch.equal(rows.amax((-1, -2)), rows.amin((-1, -2)))
    site = Site(layer=1, heads=(1,), readers=(pairs.exam.table[0],))
    its = Patching(subject, pairs, (site,), slice(None))
    variants = [(0, name) for name in pairs.donors]
    moved = its.moved(variants, ("all",))[1][:, 0]
    wanted = (moved[0] - moved[1]).sum(1) / (2 * attribution.sure)
    assert torch.allclose(rows[:, :, 1, 1, 0, 0, 0], wanted)


def test_a_subject_that_shows_less_is_not_attributed_to_directly(
    random_model: Transformer, pairs: Pairs
) -> None:
    class Closed:
        """Walks, and shows nothing of single heads."""

        def __init__(self, whole: object) -> None:
            self.whole = whole

        def __getattr__(self, name: str) -> object:
            if name in ("added", "match", "seen"):
                raise AttributeError(name)
            return getattr(self.whole, name)

    closed = Closed(subject_of(random_model))
    with pytest.raises(CircuitError, match="what single heads add is not known of this model"):
        Attribution(closed, pairs).direct()  # type: ignore[arg-type]
