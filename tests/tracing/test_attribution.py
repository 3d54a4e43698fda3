"""Attribution of answers to arrows, against patching by hand and by finite differences."""

import pytest
import torch
from torch import Tensor, nn

from hopscope.circuits import Dissected, Encoder, subject_of
from hopscope.configs import Retrieval
from hopscope.models import Transformer
from hopscope.tracing.attribution import CHAINS, Attribution
from hopscope.tracing.baselines import held_against
from hopscope.tracing.pairs import Pairs, pairs_of
from hopscope.tracing.ranking import Arrow

TASK = Retrieval(hops=2, chains=2, dim=6, symbols="one-hot")


@pytest.fixture
def pairs(monkeypatch: pytest.MonkeyPatch) -> Pairs:
    # A random model has no answers of its own; arithmetic is held to all the same.
    monkeypatch.setattr("hopscope.tracing.attribution.check_answers", lambda *_: None)
    monkeypatch.setattr("hopscope.tracing.attribution.has_answers", lambda _: torch.tensor(True))
    return pairs_of(TASK, 5, 0)


def encoder() -> Encoder:
    """A model from elsewhere, whose attention is far from even."""
    torch.manual_seed(3)
    layer = nn.TransformerEncoderLayer(16, 2, 32, 0.0, "gelu", batch_first=True, norm_first=True)
    inside = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    shape = TASK.interface()
    enter, leave = nn.Linear(shape.inputs, 16), nn.Linear(16, shape.outputs)
    with torch.no_grad():
        leave.weight.mul_(4)
        for each in inside.layers:
            each.self_attn.in_proj_weight.mul_(3)  # type: ignore[operator, union-attr]
    return Encoder(inside, enter=enter, leave=leave, causal=True)


@pytest.fixture(params=["ours", "from elsewhere"])
def subject(request: pytest.FixtureRequest, random_model: Transformer) -> Dissected:
    found = subject_of(random_model) if request.param == "ours" else encoder()
    assert isinstance(found, Dissected)
    return found


def onward(subject: Dissected, x: Tensor, layer: int) -> Tensor:
    """The stream behind a layer."""
    pattern = subject.look(layer, x, x.shape[1], range(subject.heads))
    return subject.write(layer, x, pattern @ subject.values(layer, x))


def outputs(subject: Dissected, x: Tensor, added: tuple[int, Tensor] | None = None) -> Tensor:
    """The model from what enters its first layer on, with more brought in one layer."""
    for layer in range(subject.layers):
        pattern = subject.look(layer, x, x.shape[1], range(subject.heads))
        mixed = pattern @ subject.values(layer, x)
        if added is not None and layer == added[0]:
            mixed = mixed + added[1]
        x = subject.write(layer, x, mixed)
    return subject.leave(x[:, -TASK.interface().read :])


def distance(pairs: Pairs, answers: Tensor) -> Tensor:
    """How much nearer the other chain's symbols are than the own one's, for each hop."""
    marks = pairs.marks(answers[None])[:, 0]
    return (marks[0] - marks[1]).sum(0)


def changes(subject: Dissected, pairs: Pairs, symbol: str, arrow: Arrow) -> Tensor:
    """What the donor brings more along an arrow [batch, head, seq, d_head], place by place."""
    exam, both = pairs.exam, []
    for inputs in (pairs.donors[symbol], exam.inputs):
        x = subject.enter(inputs)
        for layer in range(arrow.layer):
            x = onward(subject, x, layer)
        pattern = subject.look(arrow.layer, x, x.shape[1], range(subject.heads))
        values = subject.values(arrow.layer, x)
        both.append((pattern[:, arrow.head], values[:, arrow.head]))
    found = torch.zeros(len(exam), subject.heads, exam.length, both[0][1].shape[-1])
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


@torch.no_grad()
def test_gradients_are_what_small_patches_do(subject: Dissected, pairs: Pairs) -> None:
    """EAP-IG: the answers' slope along what an arrow brings more, at inputs between the two."""
    attribution = Attribution(subject, pairs)
    found = attribution.by_gradient(steps=2)
    small = 0.02  # losses are float32, and their differences must be told from rounding
    for arrow in some_arrows(attribution):
        for number, symbol in enumerate(pairs.donors):
            change, slopes = changes(subject, pairs, symbol, arrow), []
            own, donor = (subject.enter(x) for x in (pairs.exam.inputs, pairs.donors[symbol]))
            for part in (0.25, 0.75):
                x = own + part * (donor - own)
                ends = [
                    distance(pairs, outputs(subject, x, (arrow.layer, sign * small * change)))
                    for sign in (1, -1)
                ]
                slopes.append((ends[0] - ends[1]) / (2 * small))
            wanted = torch.stack(slopes).mean(0) / (2 * attribution.sure)
            mine = found[number, :, *at(pairs, arrow)]
            assert torch.allclose(mine, wanted, atol=5e-4, rtol=0.02), arrow
    assert found.abs().max() > 0.1


@torch.no_grad()
def test_what_goes_straight_to_the_output_and_what_is_patched(
    subject: Dissected, pairs: Pairs
) -> None:
    attribution = Attribution(subject, pairs)
    arrows = some_arrows(attribution)
    direct, patched = attribution.direct(), attribution.patched(arrows)
    own = subject.enter(pairs.exam.inputs)
    plain = distance(pairs, outputs(subject, own))
    end = own
    for layer in range(subject.layers):
        end = onward(subject, end, layer)
    for arrow in arrows:
        for number, symbol in enumerate(pairs.donors):
            change = changes(subject, pairs, symbol, arrow)
            moved = distance(pairs, outputs(subject, own, (arrow.layer, change))) - plain
            wanted = moved / (2 * attribution.sure)
            assert torch.allclose(patched[number, :, *at(pairs, arrow)], wanted, atol=1e-5), arrow
            more = subject.added(arrow.layer, change) - subject.added(arrow.layer, 0 * change)
            read = subject.leave((end + more)[:, -TASK.interface().read :])
            wanted = (distance(pairs, read) - plain) / (2 * attribution.sure)
            assert torch.allclose(direct[number, :, *at(pairs, arrow)], wanted, atol=1e-5), arrow
    assert direct.abs().max() > 0.01
    assert patched.abs().max() > 0.01


@torch.no_grad()
def test_a_hop_without_answers_of_its_own_has_no_score(
    random_model: Transformer, pairs: Pairs, monkeypatch: pytest.MonkeyPatch
) -> None:
    first_alone = torch.tensor([True, False])
    monkeypatch.setattr("hopscope.tracing.attribution.has_answers", lambda _: first_alone)
    subject = subject_of(random_model)
    assert isinstance(subject, Dissected)
    attribution = Attribution(subject, pairs)
    for scores in (attribution.direct(), attribution.patched(), attribution.by_gradient(1)):
        assert scores[:, 0].isfinite().all()
        assert scores[:, 1].isnan().all()
    for ranking in held_against(subject, pairs, (), steps=1).rankings:
        assert {its.hop for its in ranking.scored} == {1}
