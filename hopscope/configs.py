"""Every knob of hopscope: frozen, validated, unknown keys refused; no torch here.

A config is plain data. The identity of a run is the SHA-256 of its experiment's canonical
JSON, so two people who write the same experiment get the same run. Paper sections (§) refer
to Musat (ICLR 2025).
"""

import hashlib
import json
import math
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from hopscope.errors import ConfigError
from hopscope.facts import FactGraph, chain_of_facts, parse_facts

Positive = Annotated[int, Field(ge=1)]


class Config(BaseModel):
    """Base of all configs: immutable data that refuses what it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)

    def __init__(self, **fields: object) -> None:
        try:
            super().__init__(**fields)
        except ValidationError as error:
            raise ConfigError(_one_line(type(self).__name__, error)) from error

    def canonical_json(self) -> str:
        """The one spelling of this config: sorted keys, no spaces, defaults written out."""
        return json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """The inverse of canonical_json; unknown keys and bad values are a ConfigError."""
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            raise ConfigError(_one_line(cls.__name__, error)) from error


def _one_line(name: str, error: ValidationError) -> str:
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"])
    what = first["msg"].removeprefix("Value error, ")
    if first["type"] == "extra_forbidden":
        what = "unknown field; see `hopscope presets` for the fields there are"
    elif first["type"] != "value_error":
        what = f"{what}, got {first['input']!r}"
    more = "" if error.error_count() == 1 else f" (and {error.error_count() - 1} more)"
    return f"{name}{'.' if place else ''}{place}: {what}{more}"


class VectorTask(Config):
    """What the tasks over real-valued vectors share."""

    chains: Positive = 4
    """Number N of chains interleaved in every sequence (§6: 4)."""
    dim: Positive = 4
    """Symbol dimension K, even (§6: 4)."""
    symbols: Literal["gaussian", "sphere", "one-hot"] = "gaussian"
    """How a symbol's vector is drawn: i.i.d. standard normal (§6), the same scaled to unit
    length, or distinct one-hot vectors."""
    position: Literal["token", "pair"] = "token"
    """Does each token have its own positional code (§6), or all tokens of a fact the same
    (the reading under which Theorem 1 is proved)?"""
    base: Annotated[float, Field(gt=1)] = 10_000.0
    """Base of the rotary frequencies (Su et al.: 10000, which gives 1 and 0.01 for K = 4)."""
    order: Literal["backward", "forward", "shuffled"] = "backward"
    """Order of the facts: last hop first (§6), first hop first, or all shuffled together.
    The queries always come last."""
    curriculum: bool = True
    """Implicit curriculum (§7): ask for every hop's value, not for the last alone."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.dim % 2:
            raise ValueError(
                f"dim is {self.dim}; a rotary code pairs cosines and sines: make it even"
            )
        wanted = self.chains * self.symbols_per_chain()
        if self.symbols == "one-hot" and self.dim < wanted:
            raise ValueError(
                f"dim is {self.dim}; {wanted} distinct one-hot symbols need dim >= {wanted}"
            )
        return self

    def graph(self) -> FactGraph:
        """The facts of one chain."""
        raise NotImplementedError

    @property
    def decoy_count(self) -> int:
        """Decoys per chain of each fact with several keys."""
        return 0

    def joint_facts(self) -> list[int]:
        """The facts with several keys, by number."""
        return [number for number, fact in enumerate(self.graph().facts) if len(fact.keys) > 1]

    def symbols_per_chain(self) -> int:
        """Symbols of one chain, and values of its decoys."""
        return len(self.graph().symbols) + len(self.joint_facts()) * self.decoy_count


class Retrieval(VectorTask):
    """Retrieval over D hops (§6). Two chains, D = 2, shuffled inside each hop::

        b1 b2 · a1 a2 · a0 a1 · b0 b1 · b0 · a0
        └── last hop ──┘ └── first hop ─┘ └ queries ┘      targets: (b1 b2), (a1 a2)

    The model reads both queries and answers with x_1 … x_D of each query's chain (implicit
    curriculum), or with x_D alone.
    """

    kind: Literal["retrieval"] = "retrieval"
    hops: Positive = 3
    """Number D of look-ups from x_0 to x_D (§8: 3, §7: 5, §9: 4)."""

    def graph(self) -> FactGraph:
        return chain_of_facts(self.hops)


class Induction(VectorTask):
    """Induction: retrieval with a single hop (Olsson et al. 2022). Two chains::

        b0 b1 · a0 a1 · a0 · b0          targets: a1, b1

    Two causal layers suffice, and one does not.
    """

    kind: Literal["induction"] = "induction"

    def graph(self) -> FactGraph:
        return chain_of_facts(1)


class ConditionalRetrieval(VectorTask):
    """Retrieval where a look-up may need several earlier results (§3.1). One chain of three::

        x y z · a y · a x · a            targets: x, y, z
        └ triple ┘                       (x, y) together lead to z

    Any acyclic set of look-ups is a task: write one fact per entry, `"x,y->z"`. With
    `decoys = m` every fact with several keys gets m more per chain, which share its first key
    but take the other keys from the next m chains; then one key alone no longer tells the value.
    """

    kind: Literal["conditional"] = "conditional"
    facts: tuple[str, ...] = ("a->x", "a->y", "x,y->z")
    """The look-ups of one chain, each `key[,key…]->value`."""
    decoys: Annotated[int, Field(ge=0)] = 0
    """Facts per chain that share the first key of a fact with several keys."""

    @model_validator(mode="after")
    def _decoys_have_chains(self) -> Self:
        if self.decoys >= self.chains:
            raise ValueError(
                f"decoys is {self.decoys}; they borrow keys of other chains: at most "
                f"chains - 1 = {self.chains - 1}"
            )
        return self

    def graph(self) -> FactGraph:
        return parse_facts(self.facts)

    @property
    def decoy_count(self) -> int:
        return self.decoys


class KHop(Config):
    """k-hop induction over tokens (Sanford et al. 2024). Every position asks.

    One hop from a position goes to its token's previous occurrence and takes the token after
    it; the next hop starts from that token, where it stands::

        position   0 1 2 3 4 5
        token      c a b a c a         the last a: hop 1 → c (after the a at 3), hop 2 → a (after
                                       the c at 0)

    Where a hop finds no earlier occurrence, its answer (and that of later hops) is the extra
    class "none".
    """

    kind: Literal["khop"] = "khop"
    hops: Positive = 2
    """Number k of previous-occurrence hops."""
    alphabet: Annotated[int, Field(ge=2)] = 8
    """Number of different tokens."""
    length: Annotated[int, Field(ge=2)] = 32
    """Tokens per sequence."""
    curriculum: bool = True
    """Ask for every hop's answer (implicit curriculum), not for the k-th alone."""


Task = Annotated[Retrieval | Induction | ConditionalRetrieval | KHop, Field(discriminator="kind")]


class Model(Config):
    """A GPT-2-style pre-norm transformer."""

    layers: Positive = 4
    """Number of blocks (§7: 1–8, §8: 12, §9: 24)."""
    heads: Positive = 4
    """Attention heads per layer (§7: 8, §8, §9: 1)."""
    d_model: Positive = 128
    """Width of the residual stream (§7, §8: 128, §9: 512)."""
    d_head: Positive | None = None
    """Width of one head; unset: d_model / heads (§9: 16)."""
    mlp: bool = True
    """Is there a feed-forward layer after attention (§9: no)?"""
    d_mlp: Positive | None = None
    """Hidden width of the feed-forward layer; unset: 4 × d_model, as in GPT-2."""
    causal: bool = True
    """Causal attention, as in GPT-2, or bidirectional."""
    norm: Literal["layer", "none"] = "layer"
    """Layer normalisation before each sublayer and the output (§7.1), or none."""
    init: Literal["gpt2", "fan-in"] = "gpt2"
    """Block matrices: normal with std 0.02 and residual outputs / √(2·layers) (gpt2), or
    std 1/√inputs (fan-in). Biases start at zero. The paper does not say."""
    input_std: Annotated[float, Field(gt=0)] | None = None
    """Std of the input map; unset: 1/√inputs, 0.35 for K = 4. At 0.02 the loss stays at its
    plateau for thousands of steps. For tokens, std of the embedding; unset: 0.02."""

    @model_validator(mode="after")
    def _heads_divide(self) -> Self:
        if self.d_head is None and self.d_model % self.heads:
            raise ValueError(
                f"heads is {self.heads} and d_model {self.d_model}, which {self.heads} does "
                "not divide: choose a divisor or set d_head"
            )
        return self

    @property
    def head_width(self) -> int:
        return self.d_head or self.d_model // self.heads

    @property
    def mlp_width(self) -> int:
        return self.d_mlp or 4 * self.d_model


class Interface(Config):
    """What a model is plugged into: the shapes at its two ends, and nothing of the task."""

    tokens: bool
    """Are inputs token numbers (embedded) or vectors (mapped linearly)?"""
    inputs: Positive
    """Input numbers per position, or the size of the vocabulary."""
    length: Positive
    """Positions per sequence."""
    read: Positive
    """How many of the last positions are read out."""
    outputs: Positive
    """Output numbers per read position."""


class Training(Config):
    """How a model is trained."""

    steps: Positive = 3_000
    """Optimiser steps (§7: 10,000, §8: 24,000, §9: 6,400)."""
    batch: Positive = 128
    """Examples per step (§7: 512, §8: 128, §9: 256)."""
    examples: Positive = 2**18
    """Size of the finite training set (§7: 2^20, §8, §9: 262k)."""
    lr: Annotated[float, Field(gt=0)] = 1e-3
    """Learning rate of AdamW (§7.1: 1e-3)."""
    schedule: Literal["constant", "cosine"] = "constant"
    """Learning rate after warm-up: constant (§7.1), or down to zero on a cosine."""
    warmup: Annotated[int, Field(ge=0)] = 0
    """Steps over which the learning rate rises linearly from zero (the paper names none)."""
    weight_decay: Annotated[float, Field(ge=0)] = 0.1
    """Decoupled weight decay on every parameter (§7.1: 0.1)."""
    betas: tuple[float, float] = (0.9, 0.999)
    """Decay rates of AdamW's two moments (Kingma's defaults; the paper names none)."""
    precision: Literal["float32", "bf16", "auto"] = "auto"
    """Arithmetic of forward and backward: float32, bf16 with float32 master weights, or bf16
    where the processor computes it natively."""
    validate_every: Positive = 100
    """Steps between validations; each of the last 100 steps is validated as well (§7.1)."""
    validation_examples: Positive = 512
    """Examples of each validation, from a stream of their own."""
    checkpoint_every: Positive = 500
    """Steps between checkpoints (§9: 80)."""
    checkpoint_at: tuple[Positive, ...] = ()
    """Further steps at which a checkpoint is written."""

    def checkpoint_steps(self) -> tuple[int, ...]:
        """All steps at which a checkpoint is due: the untrained model first, the last step last."""
        regular = range(0, self.steps, self.checkpoint_every)
        extra = (step for step in self.checkpoint_at if step < self.steps)
        return tuple(sorted({0, *regular, *extra, self.steps}))

    def rate(self, step: int) -> float:
        """The learning rate of the 0-based step."""
        if step < self.warmup:
            return self.lr * (step + 1) / self.warmup
        if self.schedule == "constant":
            return self.lr
        progress = (step - self.warmup) / max(1, self.steps - self.warmup)
        return self.lr * 0.5 * (1 + math.cos(math.pi * progress))


class Experiment(Config):
    """One training: a task, a model, how it is trained, and the seeds.

    Several seeds train as one fleet of models of one shape. Each member gets the data and
    the initial weights it would get alone.
    """

    task: Task = Retrieval()
    model: Model = Model()
    training: Training = Training()
    seeds: Annotated[tuple[Annotated[int, Field(ge=0, lt=2**31)], ...], Field(min_length=1)] = (0,)
    """One model per seed; the seed fixes initial weights, training set and order."""

    @model_validator(mode="after")
    def _seeds_differ(self) -> Self:
        if len(set(self.seeds)) < len(self.seeds):
            raise ValueError(f"seeds are {self.seeds}: each may appear once")
        return self

    def digest(self) -> str:
        return hashlib.sha256(self.canonical_json().encode()).hexdigest()

    def run_name(self) -> str:
        """What the run folder is called: readable, and unique by the digest at its end."""
        hops = getattr(self.task, "hops", None)
        task = self.task.kind if hops is None else f"{self.task.kind}-d{hops}"
        return f"{task}-l{self.model.layers}h{self.model.heads}-{self.digest()[:10]}"
