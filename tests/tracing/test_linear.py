"""Linear maps in closed form, against least squares and discriminants one group at a time."""

import numpy as np
import pytest
import torch
from torch import Tensor

from hopscope.tracing.linear import PENALTIES, Fit, Moments, discriminants, ridge
from hopscope.tracing.marking import TEMPERATURES, AccuracyMarks, VarianceMarks

ROWS, WIDTH = 300, 12


def inputs() -> Tensor:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(ROWS, WIDTH, generator=generator)
    x[:, 3] = x[:, 4]  # of no full rank
    x[:, 5] = 2.0
    return x


def vectors(x: Tensor) -> Tensor:
    """Three groups: all there, half there, nothing."""
    generator = torch.Generator().manual_seed(2)
    noise = torch.randn(ROWS, 3, generator=generator)
    return torch.stack((x[:, :3], x[:, 6:9] + noise, noise.roll(1, 0)), 1)


def tokens(x: Tensor) -> Tensor:
    """Classes of unequal sizes, one of which never occurs; and classes by chance."""
    number = (x[:, 0] > 0.8).long() + 2 * (x[:, 1] > 0).long()
    chance = torch.randint(0, 5, (ROWS,), generator=torch.Generator().manual_seed(3))
    return torch.stack((number, chance), 1)


def moments(x: Tensor, y: Tensor, size: int = 5) -> Moments:
    sums = Moments(x.shape[-1], y.shape[1], y.shape[2] if y.is_floating_point() else size)
    for some in (slice(0, 100), slice(100, 101), slice(101, None)):
        sums.add(x[some], y[some])
    return sums


def slow_ridge(x: Tensor, y: Tensor, penalty: float) -> tuple[np.ndarray, np.ndarray]:
    """Least squares with a row for each penalised weight: of one group alone."""
    centred, middle = x.double().numpy(), y.double().numpy().mean(0)
    centred = centred - centred.mean(0)
    rows = np.concatenate((centred, np.sqrt(penalty) * np.eye(WIDTH)))
    wanted = np.concatenate((y.double().numpy() - middle, np.zeros((WIDTH, y.shape[-1]))))
    weight = np.linalg.lstsq(rows, wanted, rcond=None)[0]
    return weight, centred @ weight + middle


def test_every_map_is_that_of_least_squares_of_its_group_alone() -> None:
    x, y = inputs(), vectors(inputs())
    fit = ridge(moments(x, y))
    for group in range(3):
        weight, said = slow_ridge(x, y[:, group], float(fit.penalty[group]))
        assert np.allclose(fit.weight[:, group], weight, atol=1e-6)
        assert np.allclose(fit(x)[:, group], said, atol=1e-6)


def test_the_penalty_is_the_one_that_leaving_out_likes_best() -> None:
    """Generalised cross-validation, with the matrix that maps targets to fits written out."""
    x, y = inputs(), vectors(inputs())
    centred = (x - x.mean(0)).double()
    tried = [p * float(torch.linalg.eigvalsh(centred.T @ centred).mean()) for p in PENALTIES]
    fit = ridge(moments(x, y))
    for group in range(3):
        scores = []
        for penalty in tried:
            inverse = torch.linalg.inv(centred.T @ centred + penalty * torch.eye(WIDTH).double())
            hat = centred @ inverse @ centred.T + torch.full((ROWS, ROWS), 1 / ROWS).double()
            left = torch.eye(ROWS).double() - hat
            error = (left @ y[:, group].double()).square().sum()
            scores.append(float(error / (left.trace() / ROWS) ** 2))
        assert float(fit.penalty[group]) == pytest.approx(tried[int(np.argmin(scores))])
    assert fit.penalty[2] > 1e5 * fit.penalty[0]  # of nothing, nothing is made


def test_numbers_of_classes_are_as_good_as_targets_of_one_and_zero() -> None:
    x, y = inputs(), tokens(inputs())
    ours, theirs = moments(x, y), moments(x, torch.nn.functional.one_hot(y, 5).float())
    for name, value in vars(theirs).items():
        assert torch.allclose(torch.as_tensor(vars(ours)[name]), torch.as_tensor(value)), name


def test_classes_are_told_apart_as_by_discriminants_of_the_inputs() -> None:
    x, y = inputs(), tokens(inputs())
    fit = discriminants(moments(x, y))
    known = [0, 1, 2, 3]
    found = fit(x)[:, 0][:, known]
    # Fisher's discriminants, written out: one covariance within classes, classes equally likely.
    rows, number = x.double().numpy(), y[:, 0].numpy()
    means = np.stack([rows[number == c].mean(0) for c in known])
    within = sum(np.cov(rows[number == c].T, bias=True) * (number == c).mean() for c in known)
    inverse = np.linalg.pinv(within, rcond=1e-8)
    expected = rows @ inverse @ means.T - 0.5 * np.einsum("ci,ij,cj->c", means, inverse, means)
    agreed = (found.argmax(-1).numpy() == expected.argmax(-1)).mean()
    assert agreed > 0.99
    gaps = found - found[:, :1], expected - expected[:, :1]
    assert np.corrcoef(gaps[0].flatten(), gaps[1].flatten())[0, 1] > 0.999
    assert torch.isneginf(fit.middle[0, 4])  # a class that was never seen is never said


def test_the_share_of_variance_and_its_interval() -> None:
    x, y = inputs(), vectors(inputs())
    fit = ridge(moments(x, y))
    example = torch.arange(ROWS) % 50
    marks = VarianceMarks(fit, 50)
    for some in (slice(0, 7), slice(7, None)):
        marks.add(example[some], x[some], y[some])
    share, half, log_loss = marks.found()
    assert log_loss is None
    for group in range(3):
        error = (fit(x)[:, group] - y[:, group]).square().sum()
        spread = (y[:, group] - y[:, group].mean(0)).square().sum()
        assert share[group] == pytest.approx(float(1 - error / spread), abs=1e-6)
    drawn = np.random.default_rng(0).integers(0, 50, (2000, 50))
    part, whole = marks.part.numpy()[drawn, 1].sum(1), marks.whole.numpy()[drawn, 1].sum(1)
    assert half[1] == pytest.approx(1.96 * (part / whole).std(), rel=0.15)  # as a bootstrap says


def test_of_what_never_varies_nothing_is_told() -> None:
    x, example = inputs(), torch.arange(ROWS) % 50
    still = torch.full((ROWS, 1, 3), 0.1)
    only = torch.ones(ROWS, 1).long()
    for marks, y in (
        (VarianceMarks(ridge(moments(x, still)), 50), still),
        (AccuracyMarks(discriminants(moments(x, only)), 50), only),
    ):
        marks.add(example, x, y)
        share, half, _ = marks.found()
        assert (share.tolist(), half.tolist()) == ([0.0], [0.0])


def test_accuracy_counts_every_class_alike_and_begins_at_guessing() -> None:
    x, y = inputs(), tokens(inputs())
    fit = discriminants(moments(x, y))
    marks = AccuracyMarks(fit, 50)
    example = torch.arange(ROWS) % 50
    for some in (slice(0, 120), slice(120, None)):
        marks.add(example[some], x[some], y[some])
    share, half, log_loss = marks.found()
    assert log_loss is not None
    for group, classes in ((0, 4), (1, 5)):
        said, right = fit(x)[:, group].argmax(-1), y[:, group]
        hits = [float((said == right)[right == c].double().mean()) for c in right.unique()]
        assert share[group] == pytest.approx((np.mean(hits) - 1 / classes) / (1 - 1 / classes))
        assert half[group] > 0
        best = []
        for held_out in (0, 1):
            losses = np.array([
                [
                    float(torch.nn.functional.cross_entropy(
                        factor * fit(x)[mine, group], right[mine],
                        weight=_weights(right[mine], 5),
                    ))
                    for factor in TEMPERATURES
                ]
                for mine in (example % 2 == 1 - held_out, example % 2 == held_out)
            ])  # fmt: skip
            best.append(losses[1, losses[0].argmin()])
        assert log_loss[group] == pytest.approx(np.mean(best), rel=1e-6)


def _weights(right: Tensor, classes: int) -> Tensor:
    count = torch.bincount(right, minlength=classes).double()
    return torch.where(count > 0, 1 / count.clamp_min(1), 0.0)


def test_a_fit_is_one_map() -> None:
    fit = Fit(
        torch.ones(2).double(), torch.ones(2, 1, 1).double(), torch.zeros(1, 1), torch.ones(1)
    )
    assert fit(torch.tensor([[2.0, 4.0]])).item() == 4.0
