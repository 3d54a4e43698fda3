"""What every position held in the course of a training, as data.

A role has come to hold a symbol where more than half of it is there after some layer: the level by
which attention along a path has emerged, too (hopscope.milestones). Numbers are measured in
`hopscope.tracing.story`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from hopscope.display import Displayed
from hopscope.errors import CircuitError
from hopscope.facts import Role, parse_role
from hopscope.milestones import HALF, crossing
from hopscope.tracing.contents import FORMAT, check_format, numbers_of, plain


@dataclass(frozen=True)
class ContentsStory(Displayed):
    """What every role held after every layer, at every checkpoint of a training."""

    roles: tuple[Role, ...]
    symbols: tuple[str, ...]
    steps: tuple[int, ...]
    """The training steps of the checkpoints."""
    own: Float[np.ndarray, "step layer role symbol"]
    """How much of each symbol of its own chain a role holds, 0 to 1."""
    losses: Float[np.ndarray, "step"]
    guess: float
    """The loss of an answer that ignores how the facts connect."""

    def __repr__(self) -> str:
        return (
            f"ContentsStory({len(self.symbols)} symbols in {len(self.roles)} roles, "
            f"{len(self.steps)} checkpoints up to step {self.steps[-1]:,})"
        )

    def emerged(self, role: Role, symbol: str) -> float | None:
        """The step at which the role first holds more than half of the symbol, after whichever
        layer holds the most.
        """
        most = np.nan_to_num(self.own[:, :, self.roles.index(role), self.symbols.index(symbol)])
        return crossing(self.steps, most.max(1))

    def learned(self) -> list[tuple[Role, str, float | None]]:
        """All that a role does not hold from the start but holds in the end, in the order in
        which it came.
        """
        found = []
        for r, role in enumerate(self.roles):
            for s, symbol in enumerate(self.symbols):
                most = np.nan_to_num(self.own[:, :, r, s])
                if most[-1].max() > HALF and most[0, 0] <= HALF:
                    found.append((role, symbol, self.emerged(role, symbol)))
        return sorted(found, key=lambda item: (item[2] or 0.0, item[0], item[1]))

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; beside the measured numbers, when each role came to hold what."""
        return {
            "format": FORMAT,
            "roles": [str(role) for role in self.roles],
            "symbols": list(self.symbols),
            "steps": list(self.steps),
            "own": plain(self.own),
            "losses": self.losses.tolist(),
            "guess": self.guess,
            "emerged": [
                {"role": str(role), "symbol": symbol, "step": step}
                for role, symbol, step in self.learned()
            ],
        }

    @classmethod
    def from_dict(cls, kept: Mapping[str, Any]) -> "ContentsStory":
        """Make a story of what `to_dict` gave; refuse anything else."""
        check_format(kept, "contents over a training")
        try:
            roles, symbols = tuple(map(parse_role, kept["roles"])), tuple(kept["symbols"])
            steps, layers = tuple(kept["steps"]), len(kept["own"][0])
            shape = (len(steps), layers, len(roles), len(symbols))
            own = numbers_of(kept["own"], shape, "own")
            losses = numbers_of(kept["losses"], (len(steps),), "losses")
            guess = float(kept["guess"])
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise CircuitError(f"these are no contents: {error!r} while reading them") from error
        return cls(roles, symbols, steps, own, losses, guess)
