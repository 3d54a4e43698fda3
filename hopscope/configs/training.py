"""`Training`: how a transformer is trained. Sections (§) refer to Musat (ICLR 2025)."""

import math
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from hopscope.configs.config import Config, Positive, Real, Unlimited, Whole

Decay = Annotated[Real, Field(ge=0, lt=1)]

FINAL_STEPS = 100
"""A final loss is the mean over this many last steps (§7.1)."""
MOST_MOMENTS = 2**22
"""The most validations or checkpoints of a training; they are all listed before the start."""


class Training(Config):
    """How a model is trained."""

    steps: Positive = 3_000
    """Optimiser steps (§7: 10,000, §8: 24,000, §9: 6,400)."""
    batch: Positive = 128
    """Examples per step (§7: 512, §8: 128, §9: 256)."""
    examples: Annotated[Unlimited, Field(ge=1, le=2**40)] = 2**18
    """Size of the finite training set (§7: 2^20, §8, §9: 262k)."""
    lr: Annotated[Real, Field(gt=0)] = 1e-3
    """Learning rate of AdamW (§7.1: 1e-3)."""
    optimiser: Literal["adamw", "muon"] = "adamw"
    """adamw (§7.1), or muon: Muon (Jordan et al. 2024) for the matrices of blocks and AdamW for all
    other parameters. Muon's updates are scaled to AdamW's size, so that both use `lr`."""
    schedule: Literal["constant", "cosine"] = "constant"
    """Learning rate after warm-up: constant (§7.1), or a cosine down to zero."""
    warmup: Annotated[Whole, Field(ge=0)] = 0
    """Steps over which the learning rate rises linearly from zero (the paper names none)."""
    weight_decay: Annotated[Real, Field(ge=0)] = 0.1
    """Decoupled weight decay on every parameter (§7.1: 0.1)."""
    betas: tuple[Decay, Decay] = (0.9, 0.999)
    """Decay rates of AdamW's two moments (Kingma's defaults; the paper names none)."""
    precision: Literal["float32", "bf16", "auto"] = "auto"
    """Precision of forward and backward passes: float32, bf16 (with float32 master weights), or
    auto (bf16 if the processor computes it natively)."""
    validate_every: Positive = 100
    """Steps between validations. Each checkpoint and each of the last 100 steps is also validated
    (§7.1)."""
    validation_examples: Positive = 512
    """Number of examples in each validation, drawn from a separate stream."""
    checkpoint_every: Positive = 500
    """Steps between checkpoints (§9: 80)."""
    checkpoint_at: tuple[Positive, ...] = ()
    """Additional steps at which a checkpoint is written, up to the last step."""

    @model_validator(mode="after")
    def _few_moments(self) -> Self:
        for name in ("validate_every", "checkpoint_every"):
            moments = self.steps // getattr(self, name)
            if moments > MOST_MOMENTS:
                raise ValueError(
                    f"steps is {self.steps:,} and {name} {getattr(self, name):,}: that is "
                    f"{moments:,} times, expected at most {MOST_MOMENTS:,}: make {name} larger"
                )
        return self

    @model_validator(mode="after")
    def _checkpoints_within(self) -> Self:
        last = max(self.checkpoint_at, default=0)
        if last > self.steps:
            raise ValueError(
                f"checkpoint_at has step {last:,}, but the training has {self.steps:,} steps: "
                "leave that step out, or make steps larger"
            )
        return self

    @property
    def steps_per_epoch(self) -> float:
        """The number of steps in one pass over the training set."""
        return self.examples / self.batch

    def checkpoint_steps(self) -> tuple[int, ...]:
        """All steps with a checkpoint, from 0 (the untrained model) to the last step."""
        regular = range(0, self.steps, self.checkpoint_every)
        return tuple(sorted({0, *regular, *self.checkpoint_at, self.steps}))

    def warnings(self) -> list[str]:
        """A line for each setting that needs more steps than the training has."""
        found = (
            f"warm-up takes {self.warmup:,} steps and the training has {self.steps:,}: it ends "
            f"before its rate is {self.lr:g}"
        )
        return [found] if self.warmup > self.steps else []

    def validation_steps(self) -> frozenset[int]:
        """All steps after which the model is validated."""
        final = range(max(0, self.steps - FINAL_STEPS) + 1, self.steps + 1)
        return frozenset(
            {*range(0, self.steps, self.validate_every), *self.checkpoint_steps(), *final}
        )

    def rate(self, step: int) -> float:
        """The learning rate of the 0-based step."""
        if step < self.warmup:
            return self.lr * (step + 1) / self.warmup
        if self.schedule == "constant":
            return self.lr
        progress = (step - self.warmup) / max(1, self.steps - self.warmup)
        return self.lr * 0.5 * (1 + math.cos(math.pi * progress))
