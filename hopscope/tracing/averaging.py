"""What a part brings that depends on no symbol: its place, or nothing but a constant.

A head that goes by position may matter without carrying anything: it tells every position where it
stands. No exchange of symbols shows that. So what its rows bring is replaced by its mean over the
examples: position by position, which leaves the place and nothing of the symbols; then over all
positions of a role, which leaves a constant.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from hopscope.circuits.carrying import Averaged, Site
from hopscope.circuits.engine import Adapter, Brought, as_model, forward
from hopscope.circuits.exam import Exam
from hopscope.circuits.parts import Estimate
from hopscope.circuits.probing import at_once
from hopscope.configs import Discovery
from hopscope.intervals import mean


@torch.no_grad()
def averaged(
    adapter: Adapter, exam: Exam, sites: Sequence[Site], settings: Discovery
) -> tuple[Averaged, ...]:
    """What is left of the answers when each site, rows of one layer, brings its mean; `settings`
    are those of the circuit that the sites are of.
    """
    if not sites:
        return ()
    parts = exam.inputs.split(at_once(adapter, exam))
    inputs = [part.to(adapter.device) for part in parts]
    clean = _losses(exam, [_answers(adapter, exam, 0, adapter.embed(its)) for its in inputs])
    losses = [_with_both(adapter, exam, site, inputs) for site in sites]
    floor, needed = settings.floor * exam.guess, settings.needed
    return tuple(
        Averaged(site=site, clean=clean, by_place=place, by_role=role, floor=floor, needed=needed)
        for site, (place, role) in zip(sites, losses, strict=True)
    )


def _with_both(
    adapter: Adapter, exam: Exam, site: Site, inputs: Sequence[Tensor]
) -> list[Estimate]:
    """The losses with the means by place, and with those by role."""
    before = [forward(adapter, adapter.embed(its), stop=site.layer) for its in inputs]
    mixed = torch.cat([as_model(site.layer, adapter.project(site.layer, x)) for x in before])
    both: tuple[int | tuple[int, int], ...] = (0, (0, 2))
    return [
        _with_means(adapter, exam, site, before, _means(exam, mixed, site, over)) for over in both
    ]


def _means(exam: Exam, mixed: Brought, site: Site, over: int | tuple[int, int]) -> Brought:
    """In the site's rows, for each reader the mean over all its rows, or over those at the same
    position; all else as it is.
    """
    heads = torch.zeros(mixed.shape[1], 1, 1, dtype=torch.bool, device=mixed.device)
    heads[list(site.heads)] = True
    found = mixed
    for role in site.readers:
        here = exam.positions(role).bool().to(mixed.device)[:, None, :, None]
        total = torch.where(here, mixed, 0.0).sum(over, keepdim=True)
        means = total / here.sum(over, keepdim=True).clamp_min(1)
        found = torch.where(here & heads, means, found)
    return found


def _with_means(
    adapter: Adapter, exam: Exam, site: Site, before: Sequence[Tensor], means: Brought
) -> Estimate:
    """The loss when the layer's heads bring this."""
    answers, layer = [], site.layer
    for x, its in zip(before, means.split(len(before[0])), strict=True):
        answers.append(_answers(adapter, exam, layer + 1, adapter.finish(layer, x, its)))
    return _losses(exam, answers)


def _answers(adapter: Adapter, exam: Exam, first: int, x: Tensor) -> Tensor:
    """What the model answers, from a layer on."""
    x = forward(adapter, x, start=first)
    return adapter.unembed(x[:, -exam.read_of(adapter.answers_at()) :])


def _losses(exam: Exam, answers: list[Tensor]) -> Estimate:
    losses = exam.marks(torch.cat(answers).cpu()).mean(-1).double().numpy()
    low, high = mean(losses)
    return Estimate(mean=float(losses.mean()), low=low, high=high)
