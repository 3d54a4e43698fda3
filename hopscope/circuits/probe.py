"""Linear decodability, as data: how much of each symbol a linear map reads off each position.

The maps are fitted and scored by `hopscope.circuits.probing`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

import numpy as np
from jaxtyping import Float

from hopscope.circuits.pattern import Head
from hopscope.configs import FactTask
from hopscope.configs.tasks import KINDS
from hopscope.display import Displayed
from hopscope.errors import CircuitError
from hopscope.facts import Role, number_of, parse_role
from hopscope.milestones import HALF, crossing
from hopscope.store.files import read_bytes, write_bytes

FORMAT = 1
PLAIN = ("model", "measure", "fitted", "examples", "seed", "loss", "chance")
"""Fields that JSON holds unchanged."""
AT_CHANCE = 0.9
"""A model whose loss is above this share of the loss at chance answers at chance."""


@dataclass(frozen=True)
class Decodability:
    """How much of each symbol can be read, on fresh examples; NaN where a role never occurs.

    Vectors: the share of their variance that the map explains (R²). Tokens: the accuracy with every
    class counting the same, scaled so that chance is 0 and always right is 1. A symbol that is the
    same in all examples counts as 0.
    """

    own: Float[np.ndarray, "*layer role symbol"]
    """The symbols of the position's own chain."""
    half: Float[np.ndarray, "*layer role symbol"]
    """Half the 95 % interval of `own`."""
    other_chain: Float[np.ndarray, "*layer role symbol"]
    """The same symbols of another chain (NaN for a task with one chain)."""
    other_example: Float[np.ndarray, "*layer role symbol"]
    """The same symbols of another example, which no position can know: the level of noise."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, with None for NaN."""
        return {part.name: _plain(getattr(self, part.name)) for part in fields(self)}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any], shape: tuple[int, ...]) -> "Decodability":
        """What `to_dict` wrote, if the numbers have this shape."""
        return cls(*(_array(saved[part.name], shape, part.name) for part in fields(cls)))


@dataclass(frozen=True)
class Probe(Displayed):
    """Which symbols can be read at every role after every layer (0: the embedding)."""

    model: str
    """SHA-256 of the model's weights."""
    task: FactTask | None
    measure: Literal["R²", "accuracy"]
    roles: tuple[Role, ...]
    symbols: tuple[str, ...]
    stream: Decodability
    """[layer, role, symbol]: in the residual stream, as the next layer sees it."""
    heads: Decodability | None
    """[layer, head, role, symbol]: in the output of each head alone; None if the adapter does not
    show it."""
    fitted: int
    """Examples that the maps were fitted on."""
    examples: int
    """Other examples, which the maps were scored on."""
    seed: int
    loss: float
    """The model's loss on the scored examples."""
    chance: float
    """The loss at chance: of an answer that ignores how the facts connect."""

    def __repr__(self) -> str:
        return (
            f"Probe({len(self.symbols)} symbols in {len(self.roles)} roles, after 0 to "
            f"{self.layers} layers, by {self.measure})"
        )

    @property
    def layers(self) -> int:
        """The number of layers; `stream` has one entry more, since 0 is the embedding."""
        return len(self.stream.own) - 1

    @property
    def at_chance(self) -> bool:
        """True if the model answers at chance; never for a single chain, where the loss at chance
        is 0.
        """
        return 0 < AT_CHANCE * self.chance < self.loss

    def share(self, role: Role | str, symbol: str, layer: int) -> float:
        """How much of a symbol of its own chain can be read at a role after a layer, 0 to 1."""
        if not 0 <= layer <= self.layers:
            raise CircuitError(f"layer is {layer}; expected 0 (the embedding) … {self.layers}")
        return float(self.stream.own[layer, number_of(role, self.roles), self._symbol(symbol)])

    def decodable(self, role: Role | str, layer: int) -> frozenset[str]:
        """The symbols of which more than half can be read at a role after a layer."""
        return frozenset(s for s in self.symbols if self.share(role, s, layer) > HALF)

    def first(self, role: Role | str, symbol: str) -> int:
        """After how many layers more than half of the symbol can first be read at a role."""
        shares = self.stream.own[:, number_of(role, self.roles), self._symbol(symbol)]
        above = np.flatnonzero(shares > HALF)
        if not len(above):
            raise CircuitError(
                f"{symbol} is never decodable at {role}: {np.nanmax(shares, initial=0):.2f} of it "
                f"at most, expected more than {HALF:g}"
            )
        return int(above[0])

    def added(self, head: Head, role: Role | str) -> frozenset[str]:
        """The symbols that are decodable in a head's output at a role, and were not decodable there
        before the layer.
        """
        if self.heads is None:
            raise CircuitError(
                "the outputs of single heads are not known of this model: its adapter has no "
                "`added`"
            )
        layers, heads = self.heads.own.shape[:2]
        layer, number = head
        if not (0 <= layer < layers and 0 <= number < heads):
            raise CircuitError(
                f"there is no head {layer}.{number}: layers are 0 … {layers - 1}, heads "
                f"0 … {heads - 1}"
            )
        shares = self.heads.own[layer, number, number_of(role, self.roles)]
        found = frozenset(s for s, share in zip(self.symbols, shares, strict=True) if share > HALF)
        return found - self.decodable(role, layer)

    def _symbol(self, symbol: str) -> int:
        if symbol not in self.symbols:
            known = ", ".join(self.symbols)
            raise CircuitError(f"there is no symbol {symbol!r} here; the symbols are {known}")
        return self.symbols.index(symbol)

    def save(self, path: Path | str) -> None:
        """Write the probe as a JSON file, which `Probe.load` reads."""
        write_bytes(Path(path), json.dumps(self.to_dict(), ensure_ascii=False).encode())

    @classmethod
    def load(cls, path: Path | str) -> "Probe":
        """Read a probe from a file that `save` wrote."""
        try:
            saved = json.loads(read_bytes(Path(path)))
        except (ValueError, RecursionError) as error:
            raise CircuitError(f"{path} is not JSON: expected what Probe.save wrote") from error
        return cls.from_dict(saved)

    def to_dict(self) -> dict[str, Any]:
        """The probe as dictionaries, lists, numbers and strings, with None for NaN."""
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
    def from_dict(cls, saved: Mapping[str, Any]) -> "Probe":
        """Make a probe of what `to_dict` gave; refuse anything else."""
        _check_format(saved)
        try:
            roles, symbols = tuple(map(parse_role, saved["roles"])), tuple(saved["symbols"])
            cells, layers = (len(roles), len(symbols)), len(saved["stream"]["own"])
            heads = saved["heads"]
            if heads is not None:
                count = len(heads["own"][0]) if layers > 1 else 0
                heads = Decodability.from_dict(heads, (layers - 1, count, *cells))
            return cls(
                task=saved["task"] and KINDS[saved["task"]["kind"]](**saved["task"]),
                roles=roles,
                symbols=symbols,
                stream=Decodability.from_dict(saved["stream"], (layers, *cells)),
                heads=heads,
                **{name: saved[name] for name in PLAIN},
            )
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise CircuitError(f"this is not a probe: {error!r} while reading it") from error


@dataclass(frozen=True)
class ProbeHistory(Displayed):
    """Which symbols could be read at every role after every layer, at every checkpoint."""

    roles: tuple[Role, ...]
    symbols: tuple[str, ...]
    steps: tuple[int, ...]
    """The training steps of the checkpoints."""
    own: Float[np.ndarray, "step layer role symbol"]
    """How much of each symbol of its own chain can be read at a role, 0 to 1."""
    losses: Float[np.ndarray, "step"]
    chance: float
    """The loss at chance: of an answer that ignores how the facts connect."""

    def __repr__(self) -> str:
        return (
            f"ProbeHistory({len(self.symbols)} symbols in {len(self.roles)} roles, "
            f"{len(self.steps)} checkpoints up to step {self.steps[-1]:,})"
        )

    def emerged(self, role: Role, symbol: str) -> float | None:
        """The step at which more than half of the symbol could first be read at a role, in the
        layer that has the most of it.
        """
        shares = self.own[:, :, self.roles.index(role), self.symbols.index(symbol)]
        return crossing(self.steps, np.nan_to_num(shares).max(1))

    def learned(self) -> list[tuple[Role, str, float | None]]:
        """Every symbol that is decodable at a role in the end, and not in its embedding at the
        start: role, symbol and step, in the order in which they emerged.
        """
        shares = np.nan_to_num(self.own)
        learned = np.argwhere((shares[-1].max(0) > HALF) & (shares[0, 0] <= HALF))
        found = [
            (role, symbol, self.emerged(role, symbol))
            for role, symbol in ((self.roles[r], self.symbols[s]) for r, s in learned)
        ]
        return sorted(found, key=lambda item: (item[2] or 0.0, item[0], item[1]))

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, with the step at which each symbol became decodable at each role."""
        return {
            "format": FORMAT,
            "roles": [str(role) for role in self.roles],
            "symbols": list(self.symbols),
            "steps": list(self.steps),
            "own": _plain(self.own),
            "losses": self.losses.tolist(),
            "chance": self.chance,
            "emerged": [
                {"role": str(role), "symbol": symbol, "step": step}
                for role, symbol, step in self.learned()
            ],
        }

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> "ProbeHistory":
        """Make a history of what `to_dict` gave; refuse anything else."""
        _check_format(saved)
        try:
            roles, symbols = tuple(map(parse_role, saved["roles"])), tuple(saved["symbols"])
            steps = tuple(saved["steps"])
            shape = (len(steps), len(saved["own"][0]), len(roles), len(symbols))
            own = _array(saved["own"], shape, "own")
            losses = _array(saved["losses"], (len(steps),), "losses")
            return cls(roles, symbols, steps, own, losses, float(saved["chance"]))
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise CircuitError(f"this is not a probe: {error!r} while reading it") from error


def _check_format(saved: object) -> None:
    found = saved.get("format") if isinstance(saved, Mapping) else None
    if found != FORMAT:
        raise CircuitError(
            f"a probe of format {found!r} cannot be read; this version reads format {FORMAT}"
        )


def _plain(numbers: np.ndarray) -> Any:
    """Nested lists, rounded to what the measurement is good for."""
    rounded = np.round(numbers.astype(float), 5)
    return np.where(np.isnan(rounded), np.array(None), rounded).tolist()


def _array(saved: Any, shape: tuple[int, ...], what: str) -> np.ndarray:
    """The saved numbers, if they have this shape and are not infinite."""
    found = np.array(saved, dtype=float)
    if found.shape != shape:
        raise ValueError(f"{what} has shape {found.shape}, expected {shape}")
    if np.isinf(found).any():
        raise ValueError(f"{what} has numbers that are not finite")
    return found
