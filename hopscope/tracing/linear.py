"""Linear maps from many inputs to many targets: ridge regression in closed form.

All targets of one place share its Gram matrix, whose eigenvectors are found once; then every
penalty costs a division. For each group of targets the penalty is taken that generalised
cross-validation likes best (Golub, Heath & Wahba 1979), on the examples of the fit alone.

A classifier of tokens is the same map to one number for each class, followed by Fisher's linear
discriminants in the space of these numbers: which gives the discriminants of the inputs
themselves (Hastie, Tibshirani & Buja 1994), for one small matrix more.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

PENALTIES = tuple(10.0**power for power in range(-7, 3))
"""Ridge penalties that are tried, in mean squares of an input."""
TINY = 1e-9
"""A share below which a variance counts as none."""


class Moments:
    """Sums over rows, from which maps are fitted; rows may come in several lots."""

    def __init__(self, width: int, groups: int, size: int) -> None:
        self.rows = 0
        self.sum_x = torch.zeros(width, dtype=torch.float64)
        self.sum_y = torch.zeros(groups, size, dtype=torch.float64)
        self.square_y = torch.zeros(groups, dtype=torch.float64)
        self.gram = torch.zeros(width, width, dtype=torch.float64)
        self.cross = torch.zeros(width, groups, size, dtype=torch.float64)

    def add(
        self,
        x: Float[Tensor, "row width"],
        y: Float[Tensor, "row group size"] | Int[Tensor, "row group"],
    ) -> None:
        """Add more rows to the sums from which the map is fitted; the number of a class is as good
        as a target that is 1 there, and else 0.
        """
        x = x.double()
        self.rows += len(x)
        self.sum_x += x.sum(0)
        self.gram += x.T @ x
        if y.is_floating_point():
            self._add_numbers(x, y.double())
        else:
            self._add_classes(x, y)

    def _add_numbers(self, x: Tensor, y: Float[Tensor, "row group size"]) -> None:
        self.sum_y += y.sum(0)
        self.square_y += y.square().sum((0, 2))
        self.cross += (x.T @ y.flatten(1)).view_as(self.cross)

    def _add_classes(self, x: Tensor, y: Int[Tensor, "row group"]) -> None:
        self.sum_y += by_class(torch.ones(y.shape), y, self.sum_y.shape[1])
        self.square_y += len(y)
        for group, classes in enumerate(y.T):
            self.cross[:, group].index_add_(1, classes, x.T)


def by_class(
    values: Float[Tensor, "row group"], classes: Int[Tensor, "row group"], size: int
) -> Float[Tensor, "group size"]:
    """The sum of the values of each class."""
    sums = torch.zeros(values.shape[1], size, dtype=torch.float64)
    return sums.scatter_add_(1, classes.T, values.double().T)


@dataclass(frozen=True)
class Fit:
    """Maps x ↦ (x - mean) @ weight + middle, for every group of targets."""

    mean: Float[Tensor, "width"]
    weight: Float[Tensor, "width group size"]
    middle: Float[Tensor, "group size"]
    penalty: Float[Tensor, "group"]
    """The ridge penalty of each group, in the units of the Gram matrix."""

    def __call__(self, x: Float[Tensor, "row width"]) -> Float[Tensor, "row group size"]:
        flat = (x.double() - self.mean) @ self.weight.flatten(1)
        return flat.view(-1, *self.middle.shape) + self.middle


def ridge(moments: Moments) -> Fit:
    """The map of every group, each with the penalty that suits it best."""
    rows, mean, middle = moments.rows, moments.sum_x / moments.rows, moments.sum_y / moments.rows
    gram = moments.gram - rows * mean[:, None] * mean
    cross = moments.cross - rows * mean[:, None, None] * middle
    square = moments.square_y - rows * middle.square().sum(-1)
    values, vectors = torch.linalg.eigh(gram)
    values = values.clamp_min(0)
    turned = torch.einsum("ie,igs->egs", vectors, cross)
    penalties = torch.tensor(PENALTIES, dtype=torch.float64) * values.mean().clamp_min(TINY)
    best = penalties[_scores(values, turned, square, (rows, penalties)).argmin(0)]
    shrunk = turned / (values[:, None, None] + best[:, None])
    return Fit(mean, torch.einsum("ie,egs->igs", vectors, shrunk), middle, best)


def _scores(
    values: Float[Tensor, "width"],
    turned: Float[Tensor, "width group size"],
    square: Float[Tensor, "group"],
    tried: tuple[int, Float[Tensor, "penalty"]],
) -> Float[Tensor, "penalty group"]:
    """Generalised cross-validation: the error of the fit, over the square of what is left free."""
    rows, penalties = tried
    e, p = values[:, None], penalties[None]
    gain = (e + 2 * p) / (e + p).square()
    error = square[None] - torch.einsum("ep,eg->pg", gain, turned.square().sum(-1))
    free = 1 - (1 + (e / (e + p)).sum(0)) / rows
    return error.clamp_min(0) / free.clamp_min(TINY).square()[:, None]


def discriminants(moments: Moments) -> Fit:
    """Linear scores of every class, when the targets are one-hot: equally likely classes, one
    spread around the means of all.
    """
    fit = ridge(moments)
    rows = moments.rows
    gram = moments.gram - rows * fit.mean[:, None] * fit.mean
    count = moments.sum_y
    means = moments.cross / count.clamp_min(1) - fit.mean[:, None, None]
    means = torch.where(count > 0, means, 0.0)
    weights, middles = [], []
    for group in range(moments.sum_y.shape[0]):
        weight, mean, share = fit.weight[:, group], means[:, group], count[group] / rows
        within = gram / rows - (share * mean) @ mean.T
        floor = TINY + 1e-6 * ((gram @ weight) * weight).sum(0).mean() / rows
        # With W = weight and S = within, (WᵀSW + floor)⁻¹ is a matrix of classes; what it does to
        # the means takes one of inputs, W(WᵀSW + floor)⁻¹Wᵀ = WWᵀ(SWWᵀ + floor)⁻¹.
        outer = weight @ weight.T
        found = outer @ torch.linalg.solve(within @ outer + floor * torch.eye(len(outer)), mean)
        weights.append(found)
        middles.append(-0.5 * (mean * found).sum(0).masked_fill(share == 0, torch.inf))
    return Fit(fit.mean, torch.stack(weights, 1), torch.stack(middles), fit.penalty)
