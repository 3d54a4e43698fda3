"""`Probe`: how well linear maps decode each symbol at each position, as data.

`hopscope.circuits.probing` fits and scores the maps.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import PlainSerializer, PlainValidator, model_validator

from hopscope.circuits.pattern import Head
from hopscope.configs import Config, Task
from hopscope.display import Displayed, data_frame
from hopscope.errors import CircuitError
from hopscope.facts import Role, number_of, parse_role
from hopscope.milestones import HALF, crossing
from hopscope.shapes import Float
from hopscope.store.files import read_bytes, write_bytes

FORMAT: Literal[1] = 1
AT_CHANCE = 0.9
"""A model whose loss is above this share of the loss at chance answers at chance."""


def _array(saved: Any) -> np.ndarray:
    try:
        return np.array(saved, dtype=float)
    except TypeError as error:
        raise ValueError("expected nested lists of numbers") from error


def _plain(numbers: np.ndarray) -> Any:
    """Nested lists, rounded to the precision of the measurement, with None for NaN."""
    rounded = np.round(numbers, 5)
    return np.where(np.isnan(rounded), np.array(None), rounded).tolist()


def _symbol(symbol: str, symbols: Sequence[str]) -> int:
    """The index of a symbol; raises CircuitError if it is not there."""
    if symbol not in symbols:
        known = ", ".join(symbols)
        raise CircuitError(f"there is no symbol {symbol!r} here; the symbols are {known}")
    return symbols.index(symbol)


def _role(given: Role | str) -> Role:
    return parse_role(given) if isinstance(given, str) else given


Shares = Annotated[
    Float[np.ndarray, "*place role symbol"], PlainValidator(_array), PlainSerializer(_plain)
]
"""An array over places (layer, or layer and head), roles and symbols; NaN is None in JSON."""
Named = Annotated[Role, PlainValidator(_role), PlainSerializer(str)]
"""A role, saved in JSON by its name."""


class Decodability(Config):
    """How decodable each symbol is, on fresh examples; NaN if a role never occurs.

    For vectors this is the share of their variance that the map explains (R²). For tokens it is the
    accuracy with equal weights for all classes, scaled so that chance is 0 and perfect accuracy
    is 1. A symbol that is the same in all examples gets 0.
    """

    own: Shares
    """The symbols of the position's own chain."""
    half: Shares
    """Half the width of the 95 % interval of `own`."""
    other_chain: Shares
    """The same symbols of another chain (NaN for a task with one chain)."""
    other_example: Shares
    """The same symbols of another example, which no position can contain: the noise level."""


class Probe(Displayed, Config):
    """Which symbols are decodable at every role after every layer (0: the embedding)."""

    format: Literal[1] = FORMAT
    model: str
    """SHA-256 of the model's weights."""
    task: Task | None
    measure: Literal["R²", "accuracy"]
    roles: tuple[Named, ...]
    symbols: tuple[str, ...]
    stream: Decodability
    """[layer, role, symbol]: in the residual stream, as the next layer sees it."""
    heads: Decodability | None
    """[layer, head, role, symbol]: in the output of each head alone; None if the adapter has no
    `added`, or heads were not probed."""
    fitted: int
    """The number of examples on which the maps were fitted."""
    examples: int
    """The number of other examples, on which the maps were scored."""
    seed: int
    loss: float
    """The model's loss on the scored examples."""
    chance: float
    """The loss of an answer that ignores how the facts connect."""

    @model_validator(mode="after")
    def _check_shapes(self) -> "Probe":
        cells = (len(self.roles), len(self.symbols))
        for part, axes in ((self.stream, 3), (self.heads, 4)):
            for name, shares in part or ():
                if shares.ndim != axes or shares.shape[-2:] != cells:
                    raise ValueError(
                        f"{name} has shape {shares.shape}, expected {cells} at its end"
                    )
        return self

    def __repr__(self) -> str:
        return (
            f"Probe(symbols: {len(self.symbols)}, roles: {len(self.roles)}, after 0 to "
            f"{self.layers} layers, by {self.measure})"
        )

    __str__ = __repr__

    @property
    def layers(self) -> int:
        """The number of layers; `stream` has one entry more, since 0 is the embedding."""
        return len(self.stream.own) - 1

    @property
    def at_chance(self) -> bool:
        """True if the model answers at chance or worse; never for a single chain, where the loss at
        chance is 0.
        """
        return 0 < AT_CHANCE * self.chance < self.loss

    def share(self, role: Role | str, symbol: str, layer: int) -> float:
        """How decodable a symbol of the own chain is at a role after `layer` layers, 0 to 1."""
        if not 0 <= layer <= self.layers:
            raise CircuitError(f"layer is {layer}; expected 0 (the embedding) … {self.layers}")
        place = number_of(role, self.roles), _symbol(symbol, self.symbols)
        return float(self.stream.own[layer, *place])

    def decodable(self, role: Role | str, layer: int) -> frozenset[str]:
        """The symbols that are more than half decodable at a role after `layer` layers."""
        return frozenset(s for s in self.symbols if self.share(role, s, layer) > HALF)

    def first(self, role: Role | str, symbol: str) -> int:
        """The number of layers after which a symbol is first more than half decodable at a role;
        raises CircuitError if it never is.
        """
        shares = self.stream.own[:, number_of(role, self.roles), _symbol(symbol, self.symbols)]
        above = np.flatnonzero(shares > HALF)
        if not len(above):
            raise CircuitError(
                f"{symbol} is never decodable at {role}: {np.nanmax(shares, initial=0):.2f} of it "
                f"at most, expected more than {HALF:g}"
            )
        return int(above[0])

    def added(self, head: Head, role: Role | str) -> frozenset[str]:
        """The symbols that are decodable in a head's output at a role, but were not decodable in
        the stream before the layer.
        """
        if self.heads is None:
            raise CircuitError(
                "the outputs of single heads are unknown: this model's adapter has no `added`"
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

    def save(self, path: Path | str) -> None:
        """Write the probe as a JSON file, which `Probe.load` reads."""
        write_bytes(Path(path), json.dumps(self.to_dict(), ensure_ascii=False).encode())

    @classmethod
    def load(cls, path: Path | str) -> "Probe":
        """Read a probe from a file that `save` wrote."""
        return cls.from_json(read_bytes(Path(path)))

    def frame(self) -> Any:
        """A data frame (pandas) for the residual stream, with a row for each layer, role (that
        occurs) and symbol.
        """
        return data_frame(
            {"layer": layer, "role": str(role), "symbol": symbol}
            | {name: float(shares[layer, r, s]) for name, shares in self.stream}
            for layer in range(self.layers + 1)
            for r, role in enumerate(self.roles)
            for s, symbol in enumerate(self.symbols)
            if not np.isnan(self.stream.own[layer, r, s])
        )

    def to_dict(self) -> dict[str, Any]:
        """The probe as dictionaries, lists, numbers and strings, with None for NaN."""
        return self.model_dump(mode="json")


class ProbeHistory(Displayed, Config):
    """Which symbols are decodable at every role after every layer, at every checkpoint."""

    format: Literal[1] = FORMAT
    roles: tuple[Named, ...]
    symbols: tuple[str, ...]
    steps: tuple[int, ...]
    """The training steps of the checkpoints."""
    own: Shares
    """[step, layer, role, symbol]: how decodable each symbol of the own chain is at a role, 0 to 1.
    """
    losses: tuple[float, ...]
    chance: float
    """The loss of an answer that ignores how the facts connect."""

    def __repr__(self) -> str:
        return (
            f"ProbeHistory(symbols: {len(self.symbols)}, roles: {len(self.roles)}, "
            f"{len(self.steps)} checkpoints up to step {self.steps[-1]:,})"
        )

    __str__ = __repr__

    def emerged(self, role: Role | str, symbol: str) -> float | None:
        """The step at which a symbol first became more than half decodable at a role, in the layer
        where it is most decodable at that step; None if it never did.
        """
        shares = self.own[:, :, number_of(role, self.roles), _symbol(symbol, self.symbols)]
        return crossing(self.steps, np.nan_to_num(shares).max(1))

    def at_end(self, role: Role | str, symbol: str) -> float:
        """How decodable a symbol is at a role at the last checkpoint, in the layer where it is most
        decodable.
        """
        place = number_of(role, self.roles), _symbol(symbol, self.symbols)
        return float(np.nanmax(self.own[-1, :, *place]))

    def learned(self) -> list[tuple[Role, str, float | None]]:
        """Role, symbol and step for every symbol that is decodable at some checkpoint, but not in
        the embedding at the start, in the order in which they emerged.
        """
        shares = np.nan_to_num(self.own)
        learned = np.argwhere((shares.max((0, 1)) > HALF) & (shares[0, 0] <= HALF))
        found = [
            (role, symbol, self.emerged(role, symbol))
            for role, symbol in ((self.roles[r], self.symbols[s]) for r, s in learned)
        ]
        return sorted(found, key=lambda item: (item[2] or 0.0, item[0], item[1]))

    def frame(self) -> Any:
        """A data frame (pandas) with a row for each checkpoint, layer, role (that occurs) and
        symbol.
        """
        return data_frame(
            {
                "step": self.steps[t],
                "layer": layer,
                "role": str(self.roles[r]),
                "symbol": self.symbols[s],
                "own": float(share),
            }
            for (t, layer, r, s), share in np.ndenumerate(self.own)
            if not np.isnan(share)
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, with the step at which each symbol became decodable at each role."""
        emerged = [
            {"role": str(role), "symbol": symbol, "step": step}
            for role, symbol, step in self.learned()
        ]
        return {**self.model_dump(mode="json"), "emerged": emerged}
