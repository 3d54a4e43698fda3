"""When the paths of a circuit appeared, as data: attention along each, checkpoint by checkpoint.

Two events are told, each by its own rule (`hopscope.milestones`) and from its own rows. A path has
emerged where its attention, which is known at checkpoints alone and interpolated linearly between
them, first passes one half (the paper's §9). A hop is learned at the step that the losses of the
training say, which are known at every step: the same step that `hopscope show` prints. The numbers
are measured in `hopscope.circuits.tracking`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hopscope.display import Displayed, data_frame, plain
from hopscope.errors import CircuitError
from hopscope.facts import parse_role
from hopscope.milestones import crossing
from hopscope.shapes import Float
from hopscope.theory import Path


@dataclass(frozen=True)
class Emergence(Displayed):
    """Attention along every path, and the loss of every hop, at every checkpoint."""

    paths: tuple[Path, ...]
    """The circuit's paths; of rows that follow a relation or look at the position before, the
    source is a role with that name (of a relation followed twice: `hop 2`)."""
    steps: tuple[int, ...]
    """The training steps of the checkpoints."""
    attention: Float[np.ndarray, "path step"]
    """Not a number where a path applies in none of the examples; such a path never emerges."""
    losses: Float[np.ndarray, "step hop"]
    """The loss of every hop at every checkpoint, on the examples that attention was averaged
    over."""
    chance: float
    """The loss of an answer that ignores how the facts connect."""
    steps_per_epoch: float | None
    """Training steps that go over the training set once, if that is known."""
    learned_at: tuple[int | None, ...] | None = None
    """The step at which each hop was learned (None: it never was), as the losses of the training
    say; None if those are not known.
    """
    hops: tuple[int, ...] | None = None
    """The hop that each loss is the loss of, from 1; None: of one hop after the other."""

    @property
    def asked(self) -> tuple[int, ...]:
        """The hop that each loss is the loss of."""
        return self.hops or tuple(range(1, self.losses.shape[1] + 1))

    def __repr__(self) -> str:
        known = sum(step is not None for _, step in self.order)
        return (
            f"Emergence({known} of {len(self.paths)} paths emerged, {len(self.steps)} checkpoints "
            f"up to step {self.steps[-1]:,})"
        )

    def emerged(self, path: Path) -> float | None:
        """The step at which attention along the path first passes one half."""
        if path not in self.paths:
            raise CircuitError(f"{path} is no path of this circuit")
        return crossing(self.steps, self.attention[self.paths.index(path)])

    def learned(self, hop: int) -> int | None:
        """The step at which a hop (from 1) was learned; None if it never was."""
        if self.learned_at is None:
            raise CircuitError(
                "when hops were learned is not known, as this training kept no losses: attention "
                "and losses at its checkpoints are in `attention` and `losses`"
            )
        if hop not in self.asked:
            raise CircuitError(f"hop is {hop}; this task asks {', '.join(map(str, self.asked))}")
        return self.learned_at[self.asked.index(hop)]

    def epoch(self, step: int | float | None) -> float | None:
        """The same moment in passes over the training set."""
        if step is None or self.steps_per_epoch is None:
            return None
        return step / self.steps_per_epoch

    @property
    def order(self) -> list[tuple[Path, float | None]]:
        """The paths as they emerged; last those that never did."""
        when = [(path, self.emerged(path)) for path in self.paths]
        return sorted(when, key=lambda item: (item[1] is None, item[1] or 0.0, item[0]))

    def frame(self) -> Any:
        """A data frame (pandas) with a row for each path and checkpoint."""
        return data_frame(
            {
                "path": str(path),
                "layer": path.layer,
                "head": path.head,
                "step": step,
                "attention": a,
            }
            for path, row in zip(self.paths, self.attention, strict=True)
            for step, a in zip(self.steps, row.tolist(), strict=True)
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; beside the measured numbers, when each path emerged."""
        return {
            "steps": list(self.steps),
            "steps_per_epoch": self.steps_per_epoch,
            "chance": self.chance,
            "losses": self.losses.tolist(),
            "learned_at": None if self.learned_at is None else list(self.learned_at),
            **({} if self.hops is None else {"hops": list(self.hops)}),
            "paths": [
                {
                    "layer": path.layer,
                    "head": path.head,
                    "destination": str(path.destination),
                    "source": str(path.source),
                    "attention": plain(self.attention[number].tolist()),
                    "emerged_at_step": self.emerged(path),
                    "emerged_at_epoch": self.epoch(self.emerged(path)),
                }
                for number, path in enumerate(self.paths)
            ],
        }

    @classmethod
    def from_dict(cls, kept: Mapping[str, Any]) -> "Emergence":
        """What `to_dict` wrote, in this version or an earlier one (which kept no `learned_at`)."""
        learned, hops = kept.get("learned_at"), kept.get("hops")
        paths = tuple(
            Path(p["layer"], p["head"], parse_role(p["destination"]), parse_role(p["source"]))
            for p in kept["paths"]
        )
        return cls(
            paths=paths,
            steps=tuple(kept["steps"]),
            attention=np.array([p["attention"] for p in kept["paths"]]),
            losses=np.array(kept["losses"]),
            chance=kept["chance"],
            steps_per_epoch=kept["steps_per_epoch"],
            learned_at=None if learned is None else tuple(learned),
            hops=None if hops is None else tuple(hops),
        )
