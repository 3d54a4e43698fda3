"""`CallbackModel`: any module whose attention can be read and replaced by a callback.

If a module passed something other than its attention, or ignored the return value, the circuit
found would not be the model's, without any visible error. So both are checked first.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from threading import RLock
from typing import Any, ParamSpec, TypeVar

import torch
from torch import Tensor, nn

from hopscope.circuits.adapters.decoder import windows_of
from hopscope.circuits.engine import (
    Examined,
    Weights,
    check_attention,
    check_one_device,
    check_same,
)
from hopscope.errors import CircuitError
from hopscope.models import AttentionEdit

P = ParamSpec("P")
T = TypeVar("T")
FUSED = "fused kernels (sdpa, flash) keep it to themselves; load the model with eager attention"
SHAPE_HINT = "is that the module's shape (layers, heads)?"
ROWS = 64
"""At most this many rows of a layer are checked, evenly spaced."""


class CallbackModel(Examined):
    """Any module, run as a whole, with a callback for its attention.

    `forward(inputs, attention)` must call `attention(layer, weights)` in every layer, with weights
    [batch, head, query, key], and continue with the return value. The whole module is run for
    every ablation, and the outputs of heads cannot be replaced. The model answers at the last
    `answers` positions (None: at all that the examples read). `streams(inputs)` returns the
    residual streams [batch, seq, d_model] before the first layer and after each layer; only probes
    need it.
    """

    def __init__(
        self,
        forward: Callable[[Tensor, AttentionEdit], Tensor],
        module: nn.Module,
        shape: tuple[int, int],
        *,
        answers: int | None = None,
        causal: bool = True,
        streams: Callable[[Tensor], Sequence[Tensor]] | None = None,
    ) -> None:
        if min(shape) < 1:
            raise CircuitError(f"shape (layers, heads) is {shape}; expected at least one of each")
        if not isinstance(module, nn.Module):
            raise CircuitError(
                f"module is {type(module).__name__}; expected the torch module that `forward` calls"
            )
        check_one_device(module)
        turn = RLock()  # a module with hooks must not be called by two threads at once
        self.forward, self.module = _in_turn(turn, forward), module
        self.streams = None if streams is None else _in_turn(turn, streams)
        self.layers, self.heads = shape
        self.answers, self.causal = answers, causal
        self.windows: Mapping[int, int] = {}
        """For each layer with a sliding window, the number of tokens that a position sees."""
        self._known: set[int] = set()  # layers whose attention was checked
        self._checked = 0  # length of the inputs on which the module was checked

    def outputs(self, inputs: Tensor, attention: AttentionEdit) -> Tensor:
        """The outputs with edited attention. Raises CircuitError unless every layer calls the edit
        exactly once.
        """
        asked: list[int] = []

        def checked(layer: int, weights: object) -> Tensor:
            asked.append(layer)
            return attention(layer, self._handed_out(layer, weights, inputs))

        out = self.forward(inputs, checked)
        if not isinstance(out, Tensor):
            raise CircuitError(
                f"the function given to CallbackModel returned {type(out).__name__}; expected the "
                "outputs as one tensor (of transformers' models: their `.logits`)"
            )
        if out.dim() < 3:
            raise CircuitError(
                f"the function given to CallbackModel returned {list(out.shape)}; expected outputs "
                "[example, position, …], those of all positions or of the last ones"
            )
        _check_asked(asked, self.layers)
        return out

    @torch.no_grad()
    def attention(self, inputs: Tensor) -> list[Weights]:
        """The attention of every layer."""
        seen: dict[int, Tensor] = {}

        def note(layer: int, weights: Tensor) -> Tensor:
            seen[layer] = weights
            return weights

        self.outputs(inputs, note)
        return [seen[layer] for layer in range(self.layers)]

    @torch.no_grad()
    def check(self, inputs: Tensor) -> None:
        """Raise CircuitError if the module is not deterministic, or ignores the attention that the
        callback returns. Checked on the first inputs, and again on longer ones.
        """
        if inputs.shape[1] <= self._checked:
            return
        self._known.clear()
        check_same(*(self.outputs(inputs[:2], as_it_is) for _ in range(2)))
        for layer in range(self.layers):
            self._check_taken_back(inputs[:1], layer)
        self._checked = inputs.shape[1]

    def _check_taken_back(self, inputs: Tensor, layer: int) -> None:
        """Raise CircuitError if a layer ignores the returned attention in some head or row. The
        first row is not checked (if causal, it sees only itself). If only some positions have
        outputs, only heads are checked, since not every row matters then.
        """
        last = inputs.shape[1] - 1
        rows = sorted({*torch.linspace(min(1, last), last, ROWS).long().tolist()})
        heads, whole = self._ignored(inputs, layer, [(head,) for head in range(self.heads)])
        lost = [f"head {head}" for head in heads]
        if len(heads) == self.heads:
            raise CircuitError(
                f"layer {layer} does not use what `attention` returns: its outputs stay the same "
                "whatever that is. Mix the values by the returned attention"
            )
        if whole:
            numbers, _ = self._ignored(inputs, layer, [(slice(None), row) for row in rows])
            lost += [f"row {rows[number]}" for number in numbers]
        if lost:
            raise CircuitError(
                f"layer {layer} does not use all that `attention` returns: "
                f"{', '.join(lost[:4])}{' …' if lost[4:] else ''} can be anything, and the outputs "
                "stay the same. Mix the values of every head by the returned attention, in every "
                "row"
            )

    def _ignored(
        self, inputs: Tensor, layer: int, parts: Sequence[tuple[Any, ...]]
    ) -> tuple[list[int], bool]:
        """The parts of a layer's attention that can be NaN without any output being NaN, which
        means that they are ignored (NaN spreads to all that is computed from it, whatever the
        weights). Each part is tried in a separate example. Also whether all positions have outputs.
        """

        def spoiled(number: int, weights: Tensor) -> Tensor:
            if number == layer:
                weights = weights.clone()
                for example, part in enumerate(parts):
                    weights[example][part] = torch.nan
            return weights

        out = self.outputs(inputs.repeat_interleave(len(parts), 0), spoiled)
        fine = ~out.isnan().flatten(1).any(1)
        return fine.nonzero()[:, 0].tolist(), out.shape[1] == inputs.shape[1]

    def _handed_out(self, layer: int, weights: object, inputs: Tensor) -> Tensor:
        """A layer's attention, after checks of its shape and (once) of its values."""
        expected = (len(inputs), self.heads, inputs.shape[1], inputs.shape[1])
        if not isinstance(weights, Tensor) or tuple(weights.shape) != expected:
            got = tuple(weights.shape) if isinstance(weights, Tensor) else weights
            other_heads = isinstance(weights, Tensor) and len(weights.shape) == len(expected)
            raise CircuitError(
                f"layer {layer} passed {got} as attention, expected {expected} (batch, "
                f"head, query, key): {SHAPE_HINT if other_heads else FUSED}"
            )
        if layer not in self._known:
            check_attention(layer, weights, self.causal)
            self._known.add(layer)
        return weights

    def answers_at(self) -> int | None:
        return self.answers


def _in_turn(turn: AbstractContextManager[bool], run: Callable[P, T]) -> Callable[P, T]:
    def called(*arguments: P.args, **named: P.kwargs) -> T:
        with turn:
            return run(*arguments, **named)

    return called


def as_it_is(_: int, weights: Tensor) -> Tensor:
    """An edit that changes nothing."""
    return weights


def _check_asked(asked: Sequence[int], layers: int) -> None:
    """Raise CircuitError unless every layer passed its attention to the callback exactly once."""
    if sorted(set(asked)) != list(range(layers)):
        why = f"; {SHAPE_HINT}" if asked else f": {FUSED}"
        raise CircuitError(
            f"layers {sorted(set(asked))} passed their attention, expected 0 … {layers - 1}{why}"
        )
    twice = next((layer for layer in range(layers) if asked.count(layer) > 1), None)
    if twice is not None:
        raise CircuitError(
            f"layer {twice} passed its attention {asked.count(twice)} times, expected once: "
            "give every layer a number of its own, also where they share weights"
        )


def transformer_lens(bridge: Any) -> CallbackModel:
    """A TransformerLens model (version 4 or later), with hooks that are removed after each call."""
    layers, heads = bridge.cfg.n_layers, bridge.cfg.n_heads

    def forward(inputs: Tensor, attention: AttentionEdit) -> Tensor:
        def hook(layer: int) -> Callable[..., Tensor]:
            return lambda weights, **_: attention(layer, weights)

        names = [(f"blocks.{n}.attn.hook_pattern", hook(n)) for n in range(layers)]
        out: Tensor = bridge.run_with_hooks(inputs, fwd_hooks=names)
        return out

    def streams(inputs: Tensor) -> list[Tensor]:
        found: list[Tensor] = []

        def keep(stream: Tensor, **_: object) -> Tensor:
            found.append(stream)
            return stream

        names = ["blocks.0.hook_resid_pre", *(f"blocks.{n}.hook_resid_post" for n in range(layers))]
        bridge.run_with_hooks(inputs, fwd_hooks=[(name, keep) for name in names])
        return found

    causal = bridge.cfg.attention_dir == "causal"
    found = CallbackModel(forward, bridge, (layers, heads), causal=causal, streams=streams)
    config: Any = getattr(bridge.original_model, "config", None)
    if hasattr(config, "get_text_config"):  # made from a model of transformers
        found.windows = windows_of(config.get_text_config(decoder=True))
    return found
