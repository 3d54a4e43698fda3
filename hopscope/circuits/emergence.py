"""`Emergence`: attention along each path of a circuit at every checkpoint, as data.

It gives two kinds of events, whose rules are in `hopscope.milestones`. A path has emerged where its
attention first passes one half (the paper's §9); attention is known at checkpoints only, and
interpolated linearly between them. A hop is learned at a step that is determined from the training
losses, which are known at every step; `hopscope show` prints the same step. The numbers are
measured in `hopscope.circuits.tracking`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hopscope.display import Displayed, data_frame, plain
from hopscope.errors import CircuitError
from hopscope.facts import parse_role
from hopscope.milestones import HALF, crossing
from hopscope.shapes import Float
from hopscope.theory import Path


@dataclass(frozen=True)
class Emergence(Displayed):
    """Attention along every path, and the loss of every hop, at every checkpoint."""

    paths: tuple[Path, ...]
    """The circuit's paths. If a row follows a relation or looks at the position before, the path's
    source is a role with that name (for a relation followed twice `hop 2`)."""
    steps: tuple[int, ...]
    """The training steps of the checkpoints."""
    attention: Float[np.ndarray, "path step"]
    """Mean attention along each path; NaN if the path applies in no example (then it is not
    measured)."""
    losses: Float[np.ndarray, "step hop"]
    """The loss of every hop at every checkpoint, on the examples that attention was averaged
    over."""
    chance: float
    """The loss of an answer that ignores how the facts connect."""
    steps_per_epoch: float | None
    """Training steps in one pass over the training set, if known."""
    learned_at: tuple[int | None, ...] | None = None
    """The step at which each hop was learned (None: never), according to the training losses; None
    if the losses are not known.
    """
    hops: tuple[int, ...] | None = None
    """The number of the hop, from 1, that each loss belongs to; None: 1, 2, … in order."""
    examples: int | None = None
    """The number of examples over which attention and losses are averaged, if known."""

    @property
    def asked(self) -> tuple[int, ...]:
        """The number of the hop, from 1, that each loss belongs to."""
        return self.hops or tuple(range(1, self.losses.shape[1] + 1))

    def __repr__(self) -> str:
        known = sum(step is not None for _, step in self.order)
        return (
            f"Emergence({known} of {len(self.paths)} paths emerged, {len(self.steps)} checkpoints "
            f"up to step {self.steps[-1]:,})"
        )

    def __str__(self) -> str:
        lines = [repr(self)]
        for path, _ in self.order:
            first, last = self.between(path) or (None, None)
            since = f"between steps {first:,} and" if first is not None else "by step"
            when = f"emerged {since} {last:,}" if last is not None else "never emerged"
            lines.append(
                f"  {path.layer}.{path.head}  {path.source} → {path.destination}  ({when})"
            )
        for hop, step in zip(self.asked, self.learned_at or (), strict=False):
            learned = "never learned" if step is None else f"learned at step {step:,}"
            lines.append(f"  hop {hop}  ({learned})")
        return "\n".join(lines)

    def emerged(self, path: Path) -> float | None:
        """The step at which attention along the path first passes one half; None if never."""
        if path not in self.paths:
            raise CircuitError(f"{path} is not a path of this circuit")
        return crossing(self.steps, self.attention[self.paths.index(path)])

    def between(self, path: Path) -> tuple[int | None, int] | None:
        """The checkpoints between which attention along the path first passes one half: `emerged`
        is interpolated between them. The first is None if attention is above from the first
        checkpoint on; None if it never is.
        """
        above = np.flatnonzero(self.attention[self.paths.index(path)] > HALF)
        if not len(above):
            return None
        return (self.steps[above[0] - 1] if above[0] else None), self.steps[above[0]]

    def learned(self, hop: int) -> int | None:
        """The step at which a hop (from 1) was learned; None if it never was."""
        if self.learned_at is None:
            raise CircuitError(
                "when hops were learned is unknown, because this training saved no losses: "
                "attention and losses at its checkpoints are in `attention` and `losses`"
            )
        if hop not in self.asked:
            raise CircuitError(f"hop is {hop}; this task asks {', '.join(map(str, self.asked))}")
        return self.learned_at[self.asked.index(hop)]

    def epoch(self, step: int | float | None) -> float | None:
        """A step as a number of passes over the training set; None if that is not known."""
        if step is None or self.steps_per_epoch is None:
            return None
        return step / self.steps_per_epoch

    @property
    def order(self) -> list[tuple[Path, float | None]]:
        """The paths with the steps at which they emerged, earliest first; those that never emerged
        (None) come last, and those that are not measured are left out.
        """
        measured = ~np.isnan(self.attention).any(1)
        when = [
            (path, self.emerged(path))
            for path, its in zip(self.paths, measured, strict=True)
            if its
        ]
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
        """Plain data for JSON, including when each path emerged."""
        return {
            "steps": list(self.steps),
            "steps_per_epoch": self.steps_per_epoch,
            "chance": self.chance,
            "losses": self.losses.tolist(),
            "learned_at": None if self.learned_at is None else list(self.learned_at),
            **({} if self.hops is None else {"hops": list(self.hops)}),
            **({} if self.examples is None else {"examples": self.examples}),
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
        """The emergence that `to_dict` wrote (`hops` and `examples` may be missing)."""
        learned, hops = kept["learned_at"], kept.get("hops")
        paths = tuple(
            Path(p["layer"], p["head"], parse_role(p["destination"]), parse_role(p["source"]))
            for p in kept["paths"]
        )
        return cls(
            paths=paths,
            steps=tuple(kept["steps"]),
            attention=np.array([p["attention"] for p in kept["paths"]], dtype=float),
            losses=np.array(kept["losses"]),
            chance=kept["chance"],
            steps_per_epoch=kept["steps_per_epoch"],
            learned_at=None if learned is None else tuple(learned),
            hops=None if hops is None else tuple(hops),
            examples=kept.get("examples"),
        )
