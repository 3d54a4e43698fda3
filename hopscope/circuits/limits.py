"""What counts as solved."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from hopscope.configs import Discovery
from hopscope.errors import CircuitError


@dataclass(frozen=True)
class Limits:
    """The task is solved by a low mean loss without a hop that fails."""

    mean: float
    """The highest mean over hops at which the task still counts as solved."""
    hop: Float[np.ndarray, "hop"]
    """The highest loss of each single hop at which the task still counts as solved."""

    @classmethod
    def of(cls, clean: Float[np.ndarray, "hop"], guess: float, settings: Discovery) -> "Limits":
        """The limits for a model with these losses, where guessing has that one."""
        mean = max(settings.low_factor * float(clean.mean()), settings.low_share * guess)
        return cls(mean, np.maximum(settings.hop_factor * clean, settings.hop_share * guess))

    def keep(self, losses: Float[np.ndarray, "*variant hop"]) -> Bool[np.ndarray, "*variant"]:
        """True where the task is solved."""
        if losses.shape[-1] != len(self.hop):
            raise CircuitError(
                f"the exam has losses of {losses.shape[-1]} hops on some examples and of "
                f"{len(self.hop)} on others: give every draw the same hops"
            )
        return np.asarray((losses.mean(-1) <= self.mean) & (losses <= self.hop).all(-1))
