"""Arrows that are kept: everything, nothing, and some, against a walk position by position."""

from copy import deepcopy

import pytest
import torch

from hopscope.circuits import Whole, exam_of, subject_of
from hopscope.models import Transformer
from hopscope.models.planted import Planted
from hopscope.tracing.kept import KeptArrows


@torch.no_grad()
def test_all_arrows_are_the_model_and_none_knows_an_answer(two_hops: Planted) -> None:
    exam, subject = exam_of(two_hops.task, 32), subject_of(two_hops.model)
    assert not isinstance(subject, Whole)
    kept = KeptArrows(subject, exam)
    everything = torch.ones(kept.means.shape[:-1], dtype=torch.bool)
    assert kept.share(everything) == 1
    assert kept.share(~everything) < 0.1
    truth = ~everything
    for path in two_hops.paths:
        truth[path.layer, path.head, exam.number(path.reader), exam.number(path.source), 0] = True
    assert kept.share(truth) > 0.99


@torch.no_grad()
def test_the_rest_brings_its_mean(random_model: Transformer, two_hops: Planted) -> None:
    exam, subject = exam_of(two_hops.task, 4), subject_of(random_model)
    assert not isinstance(subject, Whole)
    kept = KeptArrows(subject, exam)
    shape = kept.means.shape[:-1]
    chosen = torch.rand(shape, generator=torch.Generator().manual_seed(0)) < 0.5
    heads, roles = random_model.config.heads, exam.roles
    brought = torch.zeros_like(kept.means)
    # Means are of the model as it is; then the same walk again, with them in place.
    for mean in (True, False):
        x = random_model.enter(exam.inputs)
        for layer, block in enumerate(random_model.blocks):
            pattern = block.look(x, exam.length, range(heads))  # type: ignore[operator]
            values = block.values(x)  # type: ignore[operator]
            mixed = torch.zeros_like(values)
            for b, i, j in torch.cartesian_prod(
                torch.arange(len(exam)), *[torch.arange(exam.length)] * 2
            ).tolist():
                r, s = int(roles.role[b, i]), int(roles.role[b, j])
                c = int(roles.chain[b, i] != roles.chain[b, j])
                what = pattern[b, :, i, j, None] * values[b, :, j]
                if mean:
                    brought[layer, :, r, s, c] += what / (roles.role == r).sum()
                    mixed[b, :, i] += what
                else:
                    mixed[b, :, i] += what * chosen[layer, :, r, s, c, None]
            if not mean:
                rest = (brought[layer] * ~chosen[layer][..., None]).sum((2, 3))
                mixed += rest[:, roles.role.long()].transpose(0, 1)
            x = block.write(x, mixed)  # type: ignore[operator]
    loss = float(exam.marks(random_model.leave(x[:, -random_model.interface.read :])).mean())
    assert torch.allclose(kept.means, brought, atol=1e-5)
    wanted = (exam.guess - loss) / (exam.guess - kept.clean)
    assert abs(kept.share(chosen) - wanted) < 1e-3


@torch.no_grad()
def test_arrows_are_kept_in_the_arithmetic_of_the_model_and_where_it_is(
    two_hops: Planted, random_model: Transformer
) -> None:
    exam = exam_of(two_hops.task, 8)

    def means_and_loss(of: torch.dtype) -> tuple[torch.Tensor, float]:
        kept = KeptArrows(subject_of(deepcopy(random_model).to(of)), exam)  # type: ignore[arg-type]
        chosen = torch.rand(kept.means.shape[:-1], generator=torch.Generator().manual_seed(0)) < 0.5
        return kept.means, kept.share(chosen)

    means, share = means_and_loss(torch.float32)
    for dtype, near in ((torch.bfloat16, 0.05), (torch.float16, 0.05), (torch.float64, 1e-4)):
        its_means, its_share = means_and_loss(dtype)
        assert torch.allclose(its_means, means, atol=near * float(means.abs().max())), dtype
        assert abs(its_share - share) < near, dtype
    # Tensors on the device `meta` have no numbers, but meet only there: answers cannot leave.
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor"):
        KeptArrows(subject_of(deepcopy(random_model).to("meta")), exam)  # type: ignore[arg-type]
