"""`DecoderAdapter`: any decoder of transformers that uses its attention interface.

The adapter works on a copy of the model that shares all weights, with our own attention function.
The copy's layers are replaced by stand-ins, and called one by one with the arguments that the model
itself passes to each (masks, rotary angles). So the model's own code computes the embedding, and
the outputs from the stream that the last stand-in returns. Norms, soft caps, sinks, scales and
experts are the model's. The given model is never changed.
"""

import copy
import inspect
import warnings
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, replace
from threading import RLock
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from hopscope.circuits.adapters.blocks import Projecting, Shared, shared_by
from hopscope.circuits.adapters.proof import ProvedAdapter
from hopscope.circuits.engine import (
    Brought,
    Chosen,
    HeadKeys,
    Projected,
    Queries,
    Stream,
    Weights,
    check_one_device,
    check_tokens,
    of_chosen,
)
from hopscope.errors import CircuitError, RunWarning

NAME = "hopscope"
"""The name under which our attention function is registered in transformers."""
WINDOWS = {
    "sliding_attention": "sliding_window",
    "chunked_attention": "attention_chunk_size",
    "local": "window_size",
}
"""Kinds of layers with an attention window, and the config field with its width."""
KEPT = 64
"""The most ranges of positions for which the arguments of layers are cached."""
ROWS = 8
"""With at least this many examples, what looks like padding is not so by chance."""

_Attend = Callable[[Brought, Brought, Brought, "_Weigh"], Brought]
_ATTEND: ContextVar[_Attend] = ContextVar("attend")


def _attention(  # noqa: PLR0913, PLR0917
    _module: Any,
    query: Brought,
    key: Shared,
    value: Shared,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    softcap: float | None = None,
    s_aux: Tensor | None = None,
    **_: Any,
) -> tuple[Tensor, None]:
    """The attention function that transformers calls; the heads' outputs come from the function in
    `_ATTEND`.
    """
    key, value = shared_by(query, key), shared_by(query, value)
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    weigh = _Weigh(scale, attention_mask, softcap, s_aux)
    brought = _ATTEND.get()(query, key, value, weigh)
    return brought.transpose(1, 2).contiguous(), None


@dataclass(frozen=True)
class _Weigh:
    """Computes a layer's attention from queries and keys, in float32."""

    scale: float
    mask: Tensor | None
    cap: float | None
    sinks: Tensor | None

    def __call__(self, query: Queries, key: HeadKeys, chosen: Chosen) -> Weights:
        scores = query.float() @ key.float().mT * self.scale
        if self.cap is not None:
            scores = torch.tanh(scores / self.cap) * self.cap
        if self.mask is not None:
            mask = of_chosen(self.mask, chosen)[..., -query.shape[2] :, : key.shape[2]]
            scores = scores + mask.float()
        if self.sinks is not None:
            sinks = of_chosen(self.sinks.reshape(1, -1, 1, 1).float(), chosen)
            sinks = sinks.expand(*scores.shape[:-1], 1)
            return torch.cat([scores, sinks], -1).softmax(-1)[..., :-1].to(query.dtype)
        return scores.softmax(-1).to(query.dtype)


class _StandIn(nn.Module):
    """Replaces a layer: it saves the arguments of the call, and returns a given stream."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = [layer]  # in a list, so that it is not registered as a submodule
        self.arguments: tuple[tuple[Any, ...], dict[str, Any]] = ((), {})
        self.stream: Tensor | None = None
        self.returned: Tensor | None = None

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.__dict__["layer"][0], name)

    def forward(self, hidden_states: Tensor, *arguments: Any, **named: Any) -> Tensor:
        self.stream, self.arguments = hidden_states, (arguments, named)
        return hidden_states if self.returned is None else self.returned


class DecoderAdapter(ProvedAdapter):
    """An adapter for a decoder of transformers, with or without a language-model head."""

    causal = True
    most = 4
    """A decoder is called without a mask, so it hides the same in all examples."""

    def __init__(self, model: Any) -> None:
        self.model = self.module = model
        check_one_device(model)
        _check_decoder(model)
        self.plain, twin = _twin(model), _twin(model)
        self.layers_of = _take_layers(twin)
        self.stand_ins = [_StandIn(layer) for layer in self.layers_of]
        self.shell = _with_layers(twin, self.layers_of, self.stand_ins)
        self.layers = len(self.layers_of)
        config = model.config.get_text_config(decoder=True)
        self.heads, self.vocabulary = config.num_attention_heads, config.vocab_size
        self.places = getattr(config, "max_position_embeddings", None)
        self.windows = windows_of(config)
        self.pads = _pads_of(config)
        self._made = _parameters(model)
        self._arguments: dict[tuple[int, int], list[tuple[tuple[Any, ...], dict[str, Any]]]] = {}
        self._turn = RLock()
        """Guards the stand-ins, which hold the arguments of one call at a time."""

    def embed(self, inputs: Tensor) -> Stream:
        self._check_padding(inputs)
        return super().embed(inputs)

    def enter(self, inputs: Tensor) -> Stream:
        if _parameters(self.model) != self._made:
            raise CircuitError(
                "the model was changed (a module or parameter was replaced, or it was moved or "
                "cast) while it was examined: examine it again, or make the adapter again"
            )
        check_tokens(inputs, self.vocabulary, self.places)
        return self._embedded(inputs)

    def expected(self, inputs: Tensor) -> Tensor:
        """The outputs of the given model."""
        return self._outputs(self.plain(inputs, use_cache=False))

    def _prove(self, inputs: Tensor, x: Stream) -> None:
        super()._prove(inputs, x)
        # A few families declare a window that they do not use. A window that hides no position from
        # the last one is none.
        for layer, size in [*self.windows.items()]:
            weigh = self.project(layer, x[:1]).weigh
            assert isinstance(weigh, _Weigh)
            if size < inputs.shape[1] and (weigh.mask is None or weigh.mask[0, 0, -1, 0] == 0):
                del self.windows[layer]

    def project(self, layer: int, x: Stream) -> Projected:
        return self._projected(layer, x)

    def project_after(self, layer: int, x: Stream, before: Projected) -> Projected:
        """The same as `project` if `x` has only the last positions; keys and values of all earlier
        positions are those of `before`. The rows of `before` are repeated if `x` has more rows.
        """
        first, times = before.key.shape[2] - x.shape[1], len(x) // len(before.key)
        last = self._projected(layer, x, first)
        key, values = (
            torch.cat([known[:, :, :first].repeat(times, 1, 1, 1), new], 2)
            for known, new in ((before.key, last.key), (before.values, last.values))
        )
        return replace(last, key=key, values=values, weigh=before.weigh)

    def _projected(self, layer: int, x: Stream, first: int = 0) -> Projected:
        """Run a layer up to its attention, for the positions of `x`, which start at `first`."""

        def stop(query: Brought, key: Brought, value: Brought, weigh: _Weigh) -> Brought:
            raise Projecting(Projected(x, query, key, value, weigh))

        try:
            self._run(layer, x, stop, first)
        except Projecting as done:
            return done.heads
        raise CircuitError(_refusal(self.model))

    def finish(self, layer: int, x: Stream, brought: Brought) -> Stream:
        """Rows longer than the longest examples are split into several rows, since a layer computes
        each position on its own here.
        """
        most = max(self.longest, 1)
        if x.shape[1] <= most:
            return self._run(layer, x, lambda *_: brought)
        rows, seq = x.shape[:2]
        missing = -seq % most
        padded = torch.cat([x, x.new_zeros(rows, missing, x.shape[2])], 1)
        shape = (rows * (padded.shape[1] // most), most)
        more = brought.new_zeros(*brought.shape[:2], missing, brought.shape[3])
        laid = torch.cat([brought, more], 2).transpose(1, 2).reshape(*shape, *brought.shape[1:4:2])
        out = self._run(layer, padded.reshape(*shape, -1), lambda *_: laid.transpose(1, 2))
        return out.reshape(*padded.shape)[:, :seq]

    def added(self, layer: int, brought: Brought) -> Stream:
        """The layer's output for a zero stream, without its MLP and its norms. If a layer
        normalises what its heads add, this is what they add before normalisation.
        """
        module = self.layers_of[layer]
        hooks = [each.register_forward_hook(_silent) for each in module.children()]
        try:
            x = self._embedded(torch.zeros(1, 1, dtype=torch.long, device=self.device))
            shape = (len(brought), brought.shape[2], x.shape[-1])
            return self._run(layer, brought.new_zeros(shape), lambda *_: brought)
        finally:
            for hook in hooks:
                hook.remove()

    def unembed(self, x: Stream) -> Tensor:
        last = self.stand_ins[-1]
        tokens = torch.zeros(x.shape[:2], dtype=torch.long, device=x.device)
        with self._turn:
            last.returned = x
            try:
                out = self.shell(input_ids=tokens, use_cache=False)
            finally:
                last.returned = None
        return self._outputs(out)

    def _run(self, layer: int, x: Stream, attend: _Attend, first: int = 0) -> Stream:
        """Call a layer with the arguments that the model passes to it for these positions."""
        arguments, named = self._handed(first, x.shape[1])[layer]
        token = _ATTEND.set(attend)
        try:
            out = self.layers_of[layer](x, *arguments, **named)
        finally:
            _ATTEND.reset(token)
        found: Tensor = out[0] if isinstance(out, tuple) else out
        return found

    def _handed(self, first: int, length: int) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
        """The arguments, besides the stream, that the model passes to each layer for an example
        with these positions (cached).
        """
        with self._turn:
            if (first, length) not in self._arguments:
                if len(self._arguments) >= KEPT:
                    self._arguments.clear()
                tokens = torch.zeros(1, length, dtype=torch.long, device=self.device)
                self._embedded(tokens, first)
                self._arguments[first, length] = [its.arguments for its in self.stand_ins]
            return self._arguments[first, length]

    def _embedded(self, inputs: Tensor, first: int = 0) -> Stream:
        """The stream before the first layer, for inputs at positions from `first` on."""
        named: dict[str, Any] = {"use_cache": False}
        if "logits_to_keep" in inspect.signature(self.shell.forward).parameters:
            named["logits_to_keep"] = 1
        if first:
            positions = torch.arange(first, first + inputs.shape[1], device=inputs.device)
            named["position_ids"] = positions[None]
        with self._turn:
            try:
                self.shell(input_ids=inputs, **named)
            except (TypeError, ValueError, IndexError) as error:  # layers return more than a stream
                reason = str(error).partition("\n")[0]
                raise CircuitError(f"{_other_layers(self.model)} ({reason})") from error
            x = self.stand_ins[0].stream
        if x is None:
            replaced = any("forward" in vars(module) for module in self.model.modules())
            raise CircuitError((_replaced if replaced else _refusal)(self.model))
        if x.dim() != 3:
            raise CircuitError(_other_layers(self.model))
        return x

    def _check_padding(self, inputs: Tensor) -> None:
        """Raise CircuitError if examples start with different numbers of the padding token. For the
        BOS and EOS tokens only warn: tokenizers may pad with them, but they may be task symbols.
        """
        for token, name in list(self.pads.items()):
            padded = (inputs == token)[:, :-1]  # texts may end in the EOS token
            leading = padded.int().cummin(1).values
            if len(leading.sum(1).unique()) < 2 or not bool((padded == leading).all()):
                continue
            text = (
                f"examples begin with different numbers of token {token}, and no attention mask is "
                f"used: give one length, or pad on the right (if {token} is a symbol of the task, "
                f"set {name} of model.config to None)"
            )
            if name == "pad_token_id":
                raise CircuitError(text)
            if len(inputs) >= ROWS:
                warnings.warn(text, RunWarning, stacklevel=2)
                del self.pads[token]  # warn only once

    def _outputs(self, found: Any) -> Tensor:
        """The logits in the model's return value, or without a head the last stream."""
        out: Tensor | None = getattr(found, "logits", getattr(found, "last_hidden_state", None))
        if out is None:
            raise CircuitError(
                f"{type(self.model).__name__} returns a {type(found).__name__}; expected one with "
                "logits or last_hidden_state: load it with another head (AutoModelForCausalLM)"
            )
        return out


def _check_decoder(model: Any) -> None:
    """Raise CircuitError unless the model is a decoder with attention that can be prescribed."""
    name, config = type(model).__name__, model.config.get_text_config(decoder=True)
    if model.config.is_encoder_decoder:
        raise CircuitError(f"{name} has an encoder and a decoder; expected a decoder alone")
    if "chunked_attention" in (getattr(config, "layer_types", None) or ()):
        raise CircuitError(
            f"some layers of {name} attend within chunks of positions, and even attention within "
            "them cannot be prescribed: use CallbackModel"
        )
    if not hasattr(config, "num_attention_heads"):
        raise CircuitError(f"{name} has no attention heads; expected a decoder with attention")


def windows_of(config: Any) -> dict[int, int]:
    """For each layer with a window, the number of tokens that a position sees, including itself.

    A config keeps any field that it is given. The model uses a window only if the config's class
    declares its field.
    """
    kinds = getattr(config, "layer_types", None) or getattr(config, "attention_layers", None)
    every = enumerate(kinds or ["sliding_attention"] * config.num_hidden_layers)
    fields = {layer: WINDOWS.get(kind, "") for layer, kind in every}
    sizes = {
        layer: getattr(config, field)
        for layer, field in fields.items()
        if hasattr(type(config), field)
    }
    return {layer: size for layer, size in sizes.items() if size and size > 0}


def _twin(model: Any) -> Any:
    """A copy of a model that shares all of its tensors, without dropout."""
    with _Shared():
        twin = copy.deepcopy(model, {id(its): its for its in model.parameters()})
    twin.config.return_dict = True
    return twin.eval()


class _Shared(TorchFunctionMode):
    """Makes deepcopy share tensors. (Parameters are shared through deepcopy's memo.)"""

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return args[0] if function is Tensor.__deepcopy__ else function(*args, **(kwargs or {}))


def _refusal(model: Any) -> str:
    return (
        f"{type(model).__name__} does not use transformers' attention interface, so its "
        "attention cannot be replaced: use CallbackModel, or load it in "
        "TransformerLens"
    )


def _replaced(model: Any) -> str:
    return (
        f"a forward in this {type(model).__name__} was replaced (as by torch.compile), so that its "
        "layers cannot be run one by one: give the model as it was before"
    )


def _other_layers(model: Any) -> str:
    return (
        f"{type(model).__name__} does not pass one stream [example, position, width] from layer to "
        "layer, so its layers cannot be run one by one: use CallbackModel"
    )


def _take_layers(twin: Any) -> list[nn.Module]:
    """The layers of a decoder: the longest ModuleList of modules that each contain an attention."""
    from transformers import AttentionInterface
    from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS, AttentionMaskInterface

    AttentionInterface.register(NAME, _attention)
    AttentionMaskInterface.register(NAME, ALL_MASK_ATTENTION_FUNCTIONS["eager"])
    if not twin._can_set_attn_implementation():  # noqa: SLF001 (else it warns, and goes on)
        raise CircuitError(_refusal(twin))
    twin.set_attn_implementation(NAME)
    lists = [list(m) for m in twin.modules() if isinstance(m, nn.ModuleList) and len(m)]
    layers = [its for its in lists if all(_attends(each) for each in its)]
    if not layers:
        raise CircuitError(_refusal(twin))
    return max(layers, key=len)


def _attends(layer: nn.Module) -> bool:
    return any(hasattr(module, "layer_idx") for module in layer.modules())


def _silent(module: nn.Module, inputs: tuple[Any, ...], out: Any) -> Any:
    """A forward hook that leaves only a layer's attention: norms return their input, and an MLP
    returns zeros.
    """
    if _attends(module) or next(module.parameters(), None) is None:
        return out
    if "norm" in type(module).__name__.lower():
        return inputs[0]
    return (torch.zeros_like(out[0]), *out[1:]) if isinstance(out, tuple) else torch.zeros_like(out)


def _with_layers(twin: Any, layers: list[nn.Module], stand_ins: list[_StandIn]) -> Any:
    """The copy of the model with its layers replaced by stand-ins."""
    for module in twin.modules():
        for name, child in module.named_children():
            if isinstance(child, nn.ModuleList) and list(child) == layers:
                setattr(module, name, nn.ModuleList(stand_ins))
                return twin
    raise CircuitError(_refusal(twin))


def _pads_of(config: Any) -> dict[int, str]:
    """The tokens with which examples may be padded (PAD, BOS, EOS), each with its name in the
    config (the last one, if it has several).
    """
    found: dict[Any, str] = {}
    for name in ("pad_token_id", "bos_token_id", "eos_token_id"):
        tokens = getattr(config, name, None)
        found |= dict.fromkeys(tokens if isinstance(tokens, list) else [tokens], name)
    return {token: name for token, name in found.items() if isinstance(token, int)}


def _parameters(model: Any) -> list[tuple[int, torch.dtype, torch.device]]:
    """Identity, dtype and device of every parameter."""
    return [(id(its), its.dtype, its.device) for its in model.parameters()]
