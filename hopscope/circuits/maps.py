"""`RoleMaps`: the mean attention of every head from one role to another, as data.

Chains are shuffled in every example, so attention is averaged over the positions of a role, not
over fixed positions. The averages are computed in `hopscope.circuits.attention`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from hopscope.display import Displayed, data_frame
from hopscope.errors import CircuitError
from hopscope.facts import Role, number_of, parse_role
from hopscope.shapes import Float

MAP_KINDS = ("own", "others", "itself", "previous")


@dataclass(frozen=True)
class RoleMaps(Displayed):
    """Mean attention of every head between roles; NaN where a role never occurs."""

    roles: tuple[Role, ...]
    """The roles, in the order of the axes *destination* and *source*."""
    own: Float[np.ndarray, "layer head destination source"]
    """Attention to positions of the destination's own chain (on the diagonal, to the position
    itself)."""
    others: Float[np.ndarray, "layer head destination source"]
    """Attention to the positions of all other chains together."""
    itself: Float[np.ndarray, "layer head destination"]
    """Attention of a destination to its own position."""
    previous: Float[np.ndarray, "layer head destination"]
    """Attention to the position right before the destination, whatever its role; the mean over
    the positions that have one before them."""
    along: Mapping[str, Float[np.ndarray, "layer head destination"]] = field(default_factory=dict)
    """Attention to where each relation of the task leads, by its name (`hop`, `hop ×2`); the mean
    over the positions from which it leads somewhere."""

    def __repr__(self) -> str:
        layers, heads = self.own.shape[:2]
        return f"RoleMaps({layers} layers × {heads} heads, {len(self.roles)} roles)"

    def between(
        self,
        destination: Role | str,
        source: Role | str,
        kind: Literal["own", "others"] = "own",
    ) -> Float[np.ndarray, "layer head"]:
        """The attention of every head from one role to another, in the same chain ("own") or in all
        other chains together ("others").
        """
        if kind not in ("own", "others"):
            raise CircuitError(f"kind is {kind!r}; expected own (chain) or others")
        cell = number_of(destination, self.roles), number_of(source, self.roles)
        found: np.ndarray = getattr(self, kind)[:, :, *cell]
        return found

    def score(self, relation: str) -> Float[np.ndarray, "layer head"]:
        """The attention of every head to where a relation leads, from the destination role for
        which it is largest. For the relation `induction` this is the induction score; `previous`
        gives the attention to the position before.
        """
        known = {"previous": self.previous, **self.along}
        if relation not in known:
            raise CircuitError(
                f"there is no relation {relation!r} here; the relations are {', '.join(known)}: "
                "draw others by an OwnTask (repeated_tokens draws induction)"
            )
        found: np.ndarray = np.nanmax(known[relation], -1)
        return found

    def frame(self) -> Any:
        """A data frame (pandas) with a row for each head, destination and source."""
        return data_frame(
            {"layer": layer, "head": head, "destination": str(role), "source": name, "share": share}
            for name, shares in self.sources()
            for (layer, head, number), share in np.ndenumerate(shares)
            for role in (self.roles[number],)
            if not np.isnan(share)
        )

    def sources(self) -> Iterator[tuple[str, Float[np.ndarray, "layer head destination"]]]:
        """Everything that a head can look at, by name, with the attention of each head to it."""
        for number, role in enumerate(self.roles):
            yield str(role), self.own[..., number]
            yield f"{role} of other chains", self.others[..., number]
        yield from {"itself": self.itself, "previous": self.previous, **self.along}.items()

    def to_dict(self, digits: int | None = None) -> dict[str, Any]:
        """Plain data for JSON, rounded to `digits` decimals if given."""

        def plain(numbers: np.ndarray) -> list[Any]:
            found: list[Any] = (numbers if digits is None else np.round(numbers, digits)).tolist()
            return found

        along = {name: plain(numbers) for name, numbers in self.along.items()}
        return {
            "roles": [str(role) for role in self.roles],
            **{kind: plain(getattr(self, kind)) for kind in MAP_KINDS},
            **({"along": along} if along else {}),
        }

    @classmethod
    def from_dict(cls, kept: Mapping[str, Any]) -> "RoleMaps":
        """The role maps that `to_dict` wrote."""
        values = {kind: np.array(kept[kind], dtype=np.float32) for kind in MAP_KINDS}
        along = {name: np.array(its, np.float32) for name, its in kept.get("along", {}).items()}
        return cls(tuple(parse_role(role) for role in kept["roles"]), along=along, **values)
