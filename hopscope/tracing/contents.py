"""What every position holds, as data: how much of each symbol can be read off the residual stream.

A linear map is fitted from the stream at the positions of a role to a symbol of the same chain, and
marked on other examples. Numbers are measured in `hopscope.tracing.reading`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any, Literal

import numpy as np
from jaxtyping import Float

from hopscope.circuits.ablation import Head
from hopscope.configs import FactTask
from hopscope.configs.tasks import KINDS
from hopscope.display import Displayed
from hopscope.errors import CircuitError
from hopscope.facts import Role, number_of, parse_role
from hopscope.milestones import HALF
from hopscope.store.files import read_bytes, write_bytes

FORMAT = 1
PARTS = ("own", "half", "other", "chance")
"""The arrays of `Held` that contents of every task have."""
PLAIN = ("model", "measure", "fitted", "examples", "seed", "loss", "guess")
"""Fields that JSON holds as they are."""
GUESSES = 0.9
"""A model whose loss is above this share of guessing answers at guessing level."""

Measure = Literal["R²", "accuracy"]


@dataclass(frozen=True)
class Held:
    """How much of each symbol is there, on fresh examples; NaN where a role never occurs.

    1 is all of it, 0 nothing: of vectors the share of their variance that the map explains (R²), of
    tokens how far the accuracy, each class counting the same, is on its way from guessing to 1.
    Of a symbol that is the same in all examples nothing is there that could be told: 0.
    """

    own: Float[np.ndarray, "*layer role symbol"]
    """How much is there of the symbols of the position's own chain."""
    half: Float[np.ndarray, "*layer role symbol"]
    """Half the 95 % interval of `own`."""
    other: Float[np.ndarray, "*layer role symbol"]
    """How much is there of the same symbols of another chain (NaN for a task with one chain)."""
    chance: Float[np.ndarray, "*layer role symbol"]
    """How much seems to be there of the same symbols of another example, which no position can
    know: the level of noise."""
    log_loss: Float[np.ndarray, "*layer role symbol"] | None = None
    """The log-loss of the classifiers for `own`, in nats (classes count alike, one temperature);
    None for vectors."""

    def with_axes(self, axes: tuple[int, ...]) -> "Held":
        """The same numbers, with these axes in place of the first."""

        def split(numbers: np.ndarray) -> np.ndarray:
            return numbers.reshape(*axes, *numbers.shape[1:])

        log_loss = None if self.log_loss is None else split(self.log_loss)
        numbers = {part: split(getattr(self, part)) for part in PARTS}
        return Held(**numbers, log_loss=log_loss)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, with None for NaN."""
        kept = {part: plain(getattr(self, part)) for part in PARTS}
        return kept | {"log_loss": None if self.log_loss is None else plain(self.log_loss)}

    @classmethod
    def from_dict(cls, kept: Mapping[str, Any], shape: tuple[int, ...]) -> "Held":
        """What `to_dict` wrote, if the numbers have this shape."""
        numbers = {part: numbers_of(kept[part], shape, part) for part in PARTS}
        log_loss = kept["log_loss"]
        found = None if log_loss is None else numbers_of(log_loss, shape, "log_loss")
        return cls(**numbers, log_loss=found)


@dataclass(frozen=True)
class Contents(Displayed):
    """What every role holds after every layer (0: what the model is given)."""

    model: str
    """SHA-256 of the model's weights."""
    task: FactTask | None
    measure: Measure
    roles: tuple[Role, ...]
    symbols: tuple[str, ...]
    stream: Held
    """[layer, role, symbol]: in the residual stream, as what comes after the layer sees it."""
    heads: Held | None
    """[layer, head, role, symbol]: in what each head adds there, alone; None if the model does not
    tell."""
    fitted: int
    """Examples the maps were fitted on."""
    examples: int
    """Examples that the maps were marked on; none of them was fitted on."""
    seed: int
    loss: float
    """The model's loss on the marked examples."""
    guess: float
    """The loss of an answer that ignores how the facts connect."""

    def __repr__(self) -> str:
        return (
            f"Contents({len(self.symbols)} symbols in {len(self.roles)} roles, after 0 to "
            f"{self.layers} layers, by {self.measure})"
        )

    @property
    def layers(self) -> int:
        """The number of layers; `stream` has one entry more, since 0 is what the model is given."""
        return len(self.stream.own) - 1

    @property
    def guesses(self) -> bool:
        """True if the model answers no better than one that ignores how the facts connect; never
        of a single chain, where that one is always right.
        """
        return 0 < GUESSES * self.guess < self.loss

    def share(self, role: Role | str, symbol: str, layer: int) -> float:
        """How much of the symbol of its own chain a role holds after a layer, 0 to 1."""
        if not 0 <= layer <= self.layers:
            raise CircuitError(
                f"layer is {layer}; expected 0 (what the model is given) … {self.layers}"
            )
        return float(self.stream.own[layer, self._role(role), self._symbol(symbol)])

    def held(self, role: Role | str, layer: int) -> frozenset[str]:
        """The symbols of which more than half is there."""
        return frozenset(s for s in self.symbols if self.share(role, s, layer) > HALF)

    def first(self, role: Role | str, symbol: str) -> int:
        """After how many layers the role first holds more than half of the symbol."""
        shares = self.stream.own[:, self._role(role), self._symbol(symbol)]
        above = np.flatnonzero(shares > HALF)
        if not len(above):
            raise CircuitError(
                f"{role} never holds {symbol}: {np.nanmax(shares, initial=0):.2f} of it at most, "
                f"where more than {HALF:g} would count"
            )
        return int(above[0])

    def written(self, head: Head, role: Role | str) -> frozenset[str]:
        """The symbols of which more than half is in what a head adds at a role, alone."""
        if self.heads is None:
            raise CircuitError(
                "what heads add alone is not known of this model: its adapter has no `added`"
            )
        layers, heads = self.heads.own.shape[:2]
        layer, number = head
        if not (0 <= layer < layers and 0 <= number < heads):
            raise CircuitError(
                f"there is no head {layer}.{number}: layers are 0 … {layers - 1}, heads "
                f"0 … {heads - 1}"
            )
        shares = self.heads.own[layer, number, self._role(role)]
        return frozenset(s for s, share in zip(self.symbols, shares, strict=True) if share > HALF)

    def brought(self, head: Head, role: Role | str) -> frozenset[str]:
        """The symbols that a head writes at a role and that this did not hold before the layer."""
        return self.written(head, role) - self.held(role, head[0])

    def _role(self, role: Role | str) -> int:
        return number_of(role, self.roles)

    def _symbol(self, symbol: str) -> int:
        if symbol not in self.symbols:
            known = ", ".join(self.symbols)
            raise CircuitError(f"there is no symbol {symbol!r} here; the symbols are {known}")
        return self.symbols.index(symbol)

    def save(self, path: FilePath | str) -> None:
        """Write the contents as a JSON file, which `Contents.load` reads."""
        write_bytes(FilePath(path), self.to_bytes())

    def to_bytes(self) -> bytes:
        """The bytes of the file that `save` writes."""
        return json.dumps(self.to_dict(), ensure_ascii=False).encode()

    def to_dict(self) -> dict[str, Any]:
        """The contents as dictionaries, lists, numbers and strings, with None for NaN."""
        return {
            "format": FORMAT,
            "task": None if self.task is None else self.task.model_dump(mode="json"),
            "roles": [str(role) for role in self.roles],
            "symbols": list(self.symbols),
            "stream": self.stream.to_dict(),
            "heads": None if self.heads is None else self.heads.to_dict(),
            **{name: getattr(self, name) for name in PLAIN},
        }

    @classmethod
    def load(cls, path: FilePath | str) -> "Contents":
        """Read contents from a file that `save` wrote."""
        try:
            kept = json.loads(read_bytes(FilePath(path)))
        except (ValueError, RecursionError) as error:
            raise CircuitError(f"{path} is not JSON: expected what Contents.save wrote") from error
        return cls.from_dict(kept)

    @classmethod
    def from_dict(cls, kept: Mapping[str, Any]) -> "Contents":
        """Make contents of what `to_dict` gave; refuse anything else."""
        check_format(kept, "contents")
        try:
            task = kept["task"] and KINDS[kept["task"]["kind"]](**kept["task"])
            roles, symbols = tuple(map(parse_role, kept["roles"])), tuple(kept["symbols"])
            cells = (len(roles), len(symbols))
            layers = len(kept["stream"]["own"])
            heads = kept["heads"]
            of_heads = None
            if heads is not None:
                count = len(heads["own"][0]) if layers > 1 else 0
                of_heads = Held.from_dict(heads, (layers - 1, count, *cells))
            stream = Held.from_dict(kept["stream"], (layers, *cells))
            rest = {name: kept[name] for name in PLAIN}
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise CircuitError(f"these are no contents: {error!r} while reading them") from error
        return cls(task=task, roles=roles, symbols=symbols, stream=stream, heads=of_heads, **rest)


def check_format(kept: Mapping[str, Any], what: str) -> None:
    """Refuse what a newer hopscope wrote, and what is something else."""
    found = kept.get("format") if isinstance(kept, Mapping) else None
    if found != FORMAT:
        raise CircuitError(
            f"{what} of format {found!r} cannot be read; this version reads format {FORMAT}"
        )


def plain(numbers: np.ndarray) -> Any:
    """Nested lists, rounded to what the measurement is good for."""
    rounded = np.round(numbers.astype(float), 5)
    return np.where(np.isnan(rounded), np.array(None), rounded).tolist()


def numbers_of(kept: Any, shape: tuple[int, ...], what: str) -> np.ndarray:
    """The numbers that were kept, if they have this shape and are none too large."""
    found = np.array(kept, dtype=float)
    if found.shape != shape:
        raise ValueError(f"{what} has shape {found.shape}, expected {shape}")
    if np.isinf(found).any():
        raise ValueError(f"{what} has numbers that are not finite")
    return found
