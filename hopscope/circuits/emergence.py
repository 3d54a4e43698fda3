"""When the paths of a circuit appeared, as data: attention along each, checkpoint by checkpoint.

Between checkpoints attention is interpolated linearly; a path has emerged where it first passes
one half (the paper's §9). The numbers are measured in `hopscope.circuits.tracking`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from hopscope.facts import parse_role
from hopscope.milestones import HALF, crossing, learned_below
from hopscope.theory import Path

__all__ = ["HALF", "Emergence", "crossing"]


@dataclass(frozen=True)
class Emergence:
    """Attention along every path, and the loss of every hop, at every checkpoint."""

    paths: tuple[Path, ...]
    steps: tuple[int, ...]
    """The training steps of the checkpoints."""
    attention: Float[np.ndarray, "path step"]
    losses: Float[np.ndarray, "step hop"]
    guess: float
    """The loss of an answer that ignores how the facts connect."""
    steps_per_epoch: float | None
    """Training steps that go over the training set once, if that is known."""

    def emerged(self, path: Path) -> float | None:
        """The step at which attention along the path first passes one half."""
        return crossing(self.steps, self.attention[self.paths.index(path)])

    def learned(self, hop: int) -> float | None:
        """The step at which the hop is learned, between two checkpoints."""
        return crossing(self.steps, -self.losses[:, hop], -learned_below(self.guess))

    def epoch(self, step: float | None) -> float | None:
        """The same moment in passes over the training set."""
        if step is None or self.steps_per_epoch is None:
            return None
        return step / self.steps_per_epoch

    @property
    def order(self) -> list[tuple[Path, float | None]]:
        """The paths as they emerged; last those that never did."""
        when = [(path, self.emerged(path)) for path in self.paths]
        return sorted(when, key=lambda item: (item[1] is None, item[1] or 0.0, item[0]))

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; beside the measured numbers, when each path emerged."""
        return {
            "steps": list(self.steps),
            "steps_per_epoch": self.steps_per_epoch,
            "guess": self.guess,
            "losses": self.losses.tolist(),
            "paths": [
                {
                    "layer": path.layer,
                    "head": path.head,
                    "reader": str(path.reader),
                    "source": str(path.source),
                    "attention": self.attention[number].tolist(),
                    "emerged_at_step": self.emerged(path),
                    "emerged_at_epoch": self.epoch(self.emerged(path)),
                }
                for number, path in enumerate(self.paths)
            ],
        }

    @classmethod
    def from_dict(cls, kept: Mapping[str, Any]) -> "Emergence":
        """What `to_dict` wrote."""
        paths = tuple(
            Path(p["layer"], p["head"], parse_role(p["reader"]), parse_role(p["source"]))
            for p in kept["paths"]
        )
        return cls(
            paths=paths,
            steps=tuple(kept["steps"]),
            attention=np.array([p["attention"] for p in kept["paths"]]),
            losses=np.array(kept["losses"]),
            guess=kept["guess"],
            steps_per_epoch=kept["steps_per_epoch"],
        )
