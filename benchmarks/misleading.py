"""Circuits of models that are written by hand to mislead the verdict.

    python benchmarks/misleading.py > results/misleading.jsonl

What each model does is known (`truth`), and so is its circuit, if the task has words for it. A row
has the verdict of `discover` (default settings), its warnings, what it lacks, the components, and
the six scores: attention, rest, recovered, equal answers. `right` follows from the circuit alone:

* *explained* is right if the components are exactly those of the true circuit;
* any other verdict is right, unless the model is `plain`: look-ups that the task has words for,
  and nothing else. Those should be found.

In most models the facts are four keys (0 to 7), each before its value (8 to 15), in random order;
then comes a key whose value is asked for: `k v k v k v k v k`. The usual circuit has two look-ups.
With head 0.0 each value learns its key; with head 1.0 the query finds the value of its key.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import torch
from jaxtyping import Float, Int
from rows import print_row
from torch import Tensor, nn
from torch.nn.functional import layer_norm

from hopscope.circuits import BlockAdapter, Circuit, Drawn, Estimate, OwnTask, discover
from hopscope.circuits.adapters.blocks import BlockAttend
from hopscope.machine import processor

Registers = SimpleNamespace
Register = Float[Tensor, "example position number"]
Mask = Float[Tensor, "example position 1"]
Read = Callable[[Registers], Register]
Stream = Float[Tensor, "example position d_model"]

WIDTH = 20
"""The numbers that a register can hold, one-hot: tokens or places."""
KEYS, START = 8, 16
"""The number of keys (and of values), and the token at the start, in tasks that have one."""
NOWHERE = 18
"""What a query asks for that should find no fact: it is no token."""
SEED = 0
"""The seed of the search."""


@dataclass(frozen=True)
class Head:
    """A head that attends by `sharp` × query · key and copies the value; it reads registers."""

    query: Read
    key: Read
    value: Read = lambda r: r.token
    sharp: float = 60.0


class HandWritten(nn.Module):
    """A model whose residual stream is a row of named registers: the token and the place of each
    position, and one for the output of each head. The first layer brings nothing to the first
    position.
    """

    def __init__(
        self, *layers: dict[str, Head], answer: Read | None = None, normalised: bool = False
    ) -> None:
        super().__init__()
        self.codes = nn.Embedding.from_pretrained(torch.eye(WIDTH))
        self.layers, self.normalised = layers, normalised
        self.answer = answer or (lambda r: 10 * r.a)  # by default what the head `a` brought
        self.heads = max(map(len, layers))
        self.names = ["token", "place", *(name for layer in layers for name in layer)]

    def adapter(self) -> BlockAdapter:
        """The model for `discover`."""
        shape = len(self.layers), self.heads
        return BlockAdapter(self.embed, self.block, self.unembed, self, shape)

    def registers(self, x: Stream) -> Registers:
        """The registers by name."""
        each = x.unflatten(-1, (-1, WIDTH)).unbind(-2)
        return Registers(**dict(zip(self.names, each, strict=True)))

    def embed(self, tokens: Int[Tensor, "example position"]) -> Stream:
        """The stream before the first layer."""
        place = torch.arange(tokens.shape[1]).expand_as(tokens)
        empty = torch.zeros(*tokens.shape, WIDTH * (len(self.names) - 2))
        return torch.cat([self.codes(tokens), self.codes(place), empty], -1)

    def block(self, layer: int, x: Stream, attend: BlockAttend) -> Stream:
        """The stream after a layer; layers with fewer heads than others have idle ones, too."""
        r, named = self.registers(x), self.layers[layer]
        heads = [*named.values(), *[IDLE] * (self.heads - len(named))]
        brought = attend(
            torch.stack([head.sharp * head.query(r) for head in heads], 1),
            torch.stack([head.key(r) for head in heads], 1),
            torch.stack([head.value(r) for head in heads], 1),
            scale=1.0,
        )
        if layer == 0:  # nothing stands before the first position
            brought = brought * (1 - at(slice(1), r))[:, None]
        written = vars(r) | dict(zip(named, brought.unbind(1), strict=False))
        x = torch.cat([written[name] for name in self.names], -1)
        return layer_norm(x, x.shape[-1:]) if self.normalised else x

    def unembed(self, x: Stream) -> Float[Tensor, "example position token"]:
        """The logits of keys and values."""
        return self.answer(self.registers(x))[..., :START]


def constant(number: int, r: Registers) -> Register:
    """A register that holds this number at every position."""
    return torch.zeros_like(r.token) + torch.eye(WIDTH)[number]


def at(places: slice, r: Registers) -> Mask:
    """1 at these places, else 0."""
    return r.place[..., places].sum(-1, keepdim=True)


def with_sink(key: Read) -> Read:
    """The key, except that queries which ask for `NOWHERE` find the first position."""
    return lambda r: key(r) + constant(NOWHERE, r) * at(slice(1), r)


def after_first(r: Registers) -> Register:
    """The token; nothing at the first position."""
    return r.token * (1 - at(slice(1), r))


def facts_end_at(place: int) -> Read:
    """The token, before this place; nothing after the facts."""
    return lambda r: r.token * at(slice(place), r)


def same_number(r: Registers) -> Register:
    """Value k at key k: what an embedding can know of an answer."""
    return r.token.roll(KEYS, -1)


def nothing(r: Registers) -> Register:
    """An empty register."""
    return torch.zeros_like(r.token)


def back(steps: int) -> Head:
    """A head that attends to the position so many steps before."""
    return Head(lambda r: r.place.roll(-steps, -1), lambda r: r.place)


IDLE, EVEN = Head(nothing, nothing, nothing), Head(nothing, nothing)
PREVIOUS = {"before": back(1)}
LOOK_UP = Head(lambda r: r.token, lambda r: r.before)
USUAL = (PREVIOUS, {"a": LOOK_UP})


def two_ways(loud: bool = False) -> HandWritten:
    """Head 0.1 reads at the start whether facts are turned: then 1.1 answers, else 1.0. If `loud`,
    1.2 looks at the query's own key in the facts, and without it a wrong answer gets 40 nats more.
    """

    def query(mark: int, r: Registers) -> Register:
        holds = r.mark[..., mark, None]
        return r.token * holds + constant(NOWHERE, r) * (1 - holds)

    keys = facts_end_at(9)
    ways = {
        "a": Head(partial(query, START), with_sink(lambda r: r.before), after_first),
        "b": Head(partial(query, START + 1), with_sink(keys), lambda r: r.before),
    }
    mark = {"mark": Head(partial(constant, 0), lambda r: r.place)}
    own = {"own": Head(lambda r: r.token, keys, keys)}
    if not loud:
        return HandWritten(PREVIOUS | mark, ways, answer=lambda r: 10 * (r.a + r.b))
    return HandWritten(
        PREVIOUS | mark,
        ways | own,
        answer=lambda r: 10 * (r.a + r.b) + 40 * (r.token - r.own).roll(KEYS, -1),
    )


def by_place_if_marked() -> HandWritten:
    """Head 0.1 reads the first token: if it is a mark, 1.0 looks at place 8, else by key."""

    def query(r: Registers) -> Register:
        marked = r.mark[..., START + 1, None]
        return r.token * (1 - marked) + constant(NOWHERE, r) * marked

    mark = {"mark": Head(partial(constant, 0), lambda r: r.place)}
    key = Head(query, lambda r: r.before + constant(NOWHERE, r) * at(slice(8, 9), r))
    return HandWritten(PREVIOUS | mark, {"a": key})


def backup() -> HandWritten:
    """Head 2.0 looks up only if 1.0 brought nothing; else it attends to the start."""
    waits = Head(
        lambda r: r.token + 2 * r.a.amax(-1, keepdim=True) * constant(NOWHERE, r),
        with_sink(lambda r: r.before),
        after_first,
    )
    return HandWritten(*USUAL, {"b": waits}, answer=lambda r: 10 * (r.a + r.b))


def gated(r: Registers) -> Register:
    """What `a` says, or if it says nothing, `b`."""
    return 10 * torch.where(r.a.amax(-1, keepdim=True) > 0.5, r.a, r.b)


def cancelled(r: Registers) -> Register:
    """What `a` says; `b` and `c` cancel."""
    return 10 * (r.a - r.b + r.c)


def counted(r: Registers) -> Register:
    """The number of the value that `a` says, and one more if `count` holds a second mark."""
    value, mark = r.a[..., KEYS:START], (r.count[..., START + 1, None] > 0.04).float()
    return 10 * (mark * value.roll(1, -1) + (1 - mark) * value)


def fourth_same_number(r: Registers) -> Register:
    """What `a` says; at the fourth query what the embedding knows."""
    fourth = at(slice(11, 12), r)
    return 10 * ((1 - fourth) * r.a + fourth * same_number(r))


def candidates(facts: int) -> HandWritten:
    """Head 0.1 attends evenly to all values; an answer needs it and 1.0."""
    values = Head(
        partial(constant, NOWHERE),
        lambda r: constant(NOWHERE, r) * r.token[..., KEYS:START].sum(-1, keepdim=True),
    )
    both = PREVIOUS | {"all": values}, {"a": LOOK_UP}
    return HandWritten(*both, answer=lambda r: 10 * torch.relu(r.a + facts * r.all - 1))


def sink(share: float, speaks: bool = False) -> HandWritten:
    """The usual model, but this share of the look-up's attention is left: the start gets the rest.
    It brings nothing; or if it `speaks`, the model only answers with what it brings.
    """
    rest = 1 + math.log((1 - share) / share) / 30
    head = Head(
        lambda r: r.token + rest * constant(NOWHERE, r),
        with_sink(lambda r: r.before),
        (lambda r: r.token) if speaks else after_first,
        sharp=30,
    )

    def answer(r: Registers) -> Register:
        heard = (r.a[..., START, None] > (1 - share) / 2).float() if speaks else 1
        return 10 / share * r.a * heard

    return HandWritten(PREVIOUS, {"a": head}, answer=answer)


def beside_start(share: float) -> tuple[str, str]:
    """The true circuit of a model with a sink, of which this share is left for the look-up."""
    looks = f"{share:.2f} value 0 + {1 - share:.2f} start of all chains"
    return LOOK_UPS[0], f"1.0 {looks} → query"


def by_place() -> HandWritten:
    """Places 8 to 11 look at the places 1, 3, 5 and 7."""

    def query(r: Registers) -> Register:
        return sum(constant(2 * n + 1, r) * at(slice(8 + n, 9 + n), r) for n in range(4))

    return HandWritten({"a": Head(query, lambda r: r.place)})


def three_more(r: Registers) -> Register:
    """The key that is three more than the token."""
    return torch.cat([r.token[..., :KEYS].roll(3, -1), r.token[..., KEYS:]], -1)


def two_tokens() -> HandWritten:
    """Positions learn the token before (0.0) and the one before that (0.1); 1.0 looks up both."""

    def key(r: Registers) -> Register:
        two = r.two * (1 - at(slice(2), r))
        return torch.cat([two[..., :4], r.before[..., 4:]], -1)

    head = Head(lambda r: torch.cat([r.before[..., :4], r.token[..., 4:]], -1), key, sharp=40)
    return HandWritten(PREVIOUS | {"two": back(2)}, {"a": head})


class Facts:
    """Facts in random order, and the numbers of those that are asked for."""

    def __init__(self, examples: int, seed: int, facts: int = 4, asked: int = 1) -> None:
        self.examples, self.generator = examples, torch.Generator().manual_seed(seed)
        self.keys = self.shuffled(KEYS)[:, :facts]
        self.values = self.shuffled(KEYS)[:, :facts] + KEYS
        self.asked = self.shuffled(facts)[:, :asked]

    def shuffled(self, count: int) -> Int[Tensor, "example number"]:
        """Numbers in random order."""
        return torch.rand(self.examples, count, generator=self.generator).argsort(-1)

    def drawn(self, first: Int[Tensor, "example 1"] | None = None, **changes: Any) -> Drawn:
        """The examples: a first token (if given), the facts, and the keys that are asked for."""
        facts = torch.stack([self.keys, self.values], -1).flatten(1)
        chain = torch.arange(facts.shape[1] // 2).repeat_interleave(2).expand(self.examples, -1)
        inputs, chains = [facts, self.keys.gather(1, self.asked)], [chain, self.asked]
        roles = ["key 0", "value 0"] * (facts.shape[1] // 2) + ["query"] * self.asked.shape[1]
        if first is not None:
            inputs, roles = [first, *inputs], ["start", *roles]
            chains = [torch.full_like(first, KEYS), *chains]
        targets = self.values.gather(1, self.asked)
        drawn = Drawn(torch.cat(inputs, 1), targets, roles, torch.cat(chains, 1))
        return replace(drawn, **changes)


def plain(examples: int, seed: int, facts: int = 4) -> Drawn:
    """The value of one key."""
    return Facts(examples, seed, facts).drawn()


def after_start(examples: int, seed: int) -> Drawn:
    """The value of one key, after a first token."""
    return Facts(examples, seed).drawn(torch.full((examples, 1), START))


def known(examples: int, seed: int, share: float) -> Drawn:
    """In this share of the examples each key k has value k."""
    facts = Facts(examples, seed)
    fixed = torch.rand(examples, 1, generator=facts.generator) < share
    facts.values = torch.where(fixed, facts.keys + KEYS, facts.values)
    return facts.drawn()


def fourth_known(examples: int, seed: int) -> Drawn:
    """All four values are asked for; the key k that comes last has value k."""
    facts = Facts(examples, seed, asked=4)
    last = facts.asked[:, 3:]
    facts.values = facts.values.scatter(1, last, facts.keys.gather(1, last) + KEYS)
    return facts.drawn()


def in_order(examples: int, seed: int) -> Drawn:
    """All four values are asked for, in the order of the facts."""
    facts = Facts(examples, seed)
    facts.asked = torch.arange(4).expand(examples, -1)
    return facts.drawn()


def marked(examples: int, seed: int) -> Drawn:
    """A mark at the start (0 or 1) is added to the number of the value that is asked for."""
    facts = Facts(examples, seed)
    mark = torch.randint(2, (examples, 1), generator=facts.generator)
    value = facts.values.gather(1, facts.asked) - KEYS
    return facts.drawn(START + mark, targets=(value + mark) % KEYS)


def shifted(examples: int, seed: int) -> Drawn:
    """The key that is asked for is three more than the last token, so no role leads there. The
    third and fourth fact have roles of their own.
    """
    facts = Facts(examples, seed)
    drawn = facts.drawn(roles=["key 0", "value 0"] * 2 + ["key 1", "value 1"] * 2 + ["query"])
    query = torch.arange(9) == 8
    inputs = torch.where(query, (drawn.inputs - 3) % KEYS, drawn.inputs)
    return replace(drawn, inputs=inputs, chain=torch.where(query, 4, drawn.chain))


def errs_elsewhere(examples: int, seed: int) -> Drawn:
    """In one fifth of the examples another value than that of the key is right, and `hint` leads to
    it; in another fifth `hint` leads to a wrong value. Nothing else names these places: all
    positions are of one chain.
    """
    facts = Facts(examples, seed, facts=8)
    order = torch.randperm(examples, generator=facts.generator)[:, None] / examples
    other = (facts.asked + torch.randint(1, 8, (examples, 1), generator=facts.generator)) % 8
    right = torch.where(order < 0.2, other, facts.asked)
    lead = torch.full((examples, 17), -1)
    lead[:, -1:] = 2 * torch.where(order >= 0.8, other, right) + 1
    targets = facts.values.gather(1, right) - KEYS
    return facts.drawn(targets=targets, chain=None, relations={"hint": lead})


def turned(examples: int, seed: int, share: float, named: bool = False) -> Drawn:
    """In this share of the examples all values stand before their keys. The first token says so,
    and if `named` a condition, too.
    """
    facts = Facts(examples, seed)
    turns = torch.rand(examples, 1, generator=facts.generator) < share
    drawn = facts.drawn(START + turns.long())
    place = torch.where(turns, torch.tensor([0, 2, 1, 4, 3, 6, 5, 8, 7, 9]), torch.arange(10))
    roles = torch.tensor([STARTED.index(role) for role in drawn.roles]).expand(examples, -1)
    inputs, roles = drawn.inputs.gather(1, place), roles.gather(1, place)
    conditions = {"turned": turns[:, 0]} if named else {}
    return replace(drawn, inputs=inputs, roles=roles, conditions=conditions)


def last_if_marked(examples: int, seed: int) -> Drawn:
    """In a third of the examples the first token is a mark, and the last fact is asked for."""
    facts = Facts(examples, seed)
    marks = torch.rand(examples, 1, generator=facts.generator) < 1 / 3
    facts.asked = torch.where(marks, 3, facts.asked)
    return facts.drawn(START + marks.long())


def long_keys(examples: int, seed: int) -> Drawn:
    """Six facts with keys of two tokens, 0 to 3 and 4 to 7; the last two tokens are such a key."""
    facts = Facts(examples, seed, facts=6)
    keys = facts.shuffled(16)[:, :6]
    key = keys.gather(1, facts.asked)
    body = torch.stack([keys // 4, 4 + keys % 4, facts.values], -1).flatten(1)
    number = torch.arange(6).repeat_interleave(3).expand(examples, -1)
    return facts.drawn(
        inputs=torch.cat([body, key // 4, 4 + key % 4], 1),
        roles=["key 0", "key 0.1", "value 0"] * 6 + ["query 0", "query 1"],
        chain=torch.cat([number, facts.asked, facts.asked], 1),
    )


STARTED = ("start", "key 0", "value 0", "query")
LOOK_UPS = ("0.0 key 0 → value 0", "1.0 value 0 → query")


@dataclass(frozen=True)
class Case:
    """A model, what it does, and the examples on which its circuit is searched."""

    name: str
    truth: str
    model: HandWritten
    draw: Callable[[int, int], Drawn]
    circuit: tuple[str, ...] = ()
    """The components of the true circuit. Empty if the task has no words for what the model does,
    or if heads undo each other.
    """
    plain: bool = False
    """Whether the true circuit is all that the model does."""
    choices: int = 4
    """The number of answers of which one is guessed at chance."""
    facts: tuple[str, ...] = ("x0->x1",)
    """The facts of one chain."""

    def task(self) -> OwnTask:
        """The task for `discover`."""
        roles = self.draw(1, SEED).roles
        names = STARTED if isinstance(roles, Tensor) else tuple(dict.fromkeys(roles))
        chance = math.log(self.choices)
        return OwnTask(self.draw, roles=names, chance=chance, facts=self.facts)

    def answered_rightly(self, found: Circuit) -> bool:
        """Whether the answer is right (see the top of this file)."""
        if not found.verdict.startswith("Explained"):
            return not self.plain
        return {f"{e.name} {found.described(e)}" for e in found.components} == {*self.circuit}

    def row(self) -> dict[str, Any]:
        """The row of this model."""
        found = discover(self.model.adapter(), self.task(), seed=SEED)
        return {
            "benchmark": "misleading", "model": self.name, "truth": self.truth,
            "circuit": self.circuit, "plain": self.plain, "machine": processor(),
            "threads": torch.get_num_threads(), "seeds": {"search": SEED},
            "verdict": found.verdict, "warnings": found.warnings, "lacks": found.lacks,
            "components": [f"{e.name} {found.described(e)} ({e.kind})" for e in found.components],
            "scores": [
                [s.attention, s.rest, *map(mean, (s.recovered, s.same_answer))]
                for s in found.scores
            ],
            "losses": {
                which: round(found.losses.mean(which), 4)
                for which in ("model", "prescribed", "computed", "ablated")
            },
            "right": self.answered_rightly(found),
        }  # fmt: skip


def mean(share: Estimate | None) -> float | None:
    """The mean of a share, rounded; None if it could not be measured."""
    return None if share is None else round(share.mean, 3)


plain_case = partial(Case, plain=True)
TURNED = "1.0 answers if facts stand in order, 1.1 if they are turned; 0.1 reads at the start which"
CASES = (
    plain_case("usual", "previous, then induction", HandWritten(*USUAL), plain, LOOK_UPS),
    # Spare heads.
    plain_case("ignored head", "1.0 and 1.1 attend alike; the output of 1.0 is ignored",
               HandWritten(PREVIOUS, {"ignored": LOOK_UP, "a": LOOK_UP}), plain,
               ("0.0 key 0 → value 0", "1.1 value 0 → query")),
    plain_case("two ignored heads", "1.0, 1.1 and 1.2 attend alike; only the output of 1.2 is used",
               HandWritten(PREVIOUS, {"b": LOOK_UP, "c": LOOK_UP, "a": LOOK_UP}), plain,
               ("0.0 key 0 → value 0", "1.2 value 0 → query")),
    plain_case("backup by attention", "1.0 answers; 2.0 looks up only if 1.0 brings nothing",
               backup(), after_start, LOOK_UPS),
    Case("backup behind a gate", "1.0 answers; 2.0 looks up, but is only used without 1.0",
         HandWritten(*USUAL, {"b": LOOK_UP}, answer=gated), plain, LOOK_UPS),
    Case("heads cancel in a layer", "1.0 and 1.2 add the answer, 1.1 subtracts it",
         HandWritten(PREVIOUS, dict.fromkeys("abc", LOOK_UP), answer=cancelled), plain),
    Case("heads cancel over layers", "1.0 and 3.0 add the answer, 2.0 subtracts it",
         HandWritten(*USUAL, {"b": LOOK_UP}, {"c": LOOK_UP}, answer=cancelled), plain),
    # Look-ups that no role or relation describes, or not in all examples.
    Case("rule without a name", "1.0 looks for the key that is three more than the query",
         HandWritten(PREVIOUS, {"a": Head(three_more, lambda r: r.before)}), shifted),
    Case("hint errs elsewhere", "1.0 looks up by key; `hint` is right as often, in other examples",
         HandWritten(*USUAL, answer=lambda r: 3.33 * r.a[..., KEYS:START]), errs_elsewhere,
         choices=8),
    Case("by place", "0.0 looks at fixed places; it never reads a key", by_place(), in_order),
    Case("by place if marked", "0.1 reads a mark: then 1.0 looks at place 8, else by key",
         by_place_if_marked(), last_if_marked),
    Case("two ways", TURNED, two_ways(), partial(turned, share=0.4)),
    plain_case("two ways, condition named", TURNED, two_ways(),
               partial(turned, share=0.4, named=True),
               # The first two lines are `previous`: in these examples both lead to one place.
               ("0.0 value 0 if turned, else previous → key 0",
                "0.0 previous if turned, else key 0 → value 0",
                "0.1 start of all chains → query",
                "1.0 start of all chains if turned, else value 0 → query",
                "1.1 key 0 if turned, else start of all chains → query")),
    Case("two ways, loud head", f"{TURNED}; 1.2 removes a wrong answer of 40 nats",
         two_ways(loud=True), partial(turned, share=0.25)),
    # Answers to which embeddings or even attention contribute.
    *(Case(f"embedding answers {share:.0%}", "the embedding knows this share alone",
           HandWritten(*USUAL, answer=lambda r: 3 * same_number(r) + 6 * r.a),
           partial(known, share=share)) for share in (0.8, 0.97)),
    Case("embedding answers 60%, sure", "it knows this share, and is as sure of the others",
         HandWritten(*USUAL, answer=lambda r: 5 * same_number(r) + 10 * r.a),
         partial(known, share=0.6)),
    Case("fourth answer known", "look-ups give three answers, the embedding the fourth",
         HandWritten(*USUAL, answer=fourth_same_number), fourth_known),
    Case("mark counted", "0.1 counts marks by even attention; the count moves the answer",
         HandWritten(PREVIOUS | {"count": EVEN}, {"a": LOOK_UP}, answer=counted), marked,
         choices=8),
    *(Case(f"candidates among {n}", "0.1 attends to all values alike, 1.0 to one; both must agree",
           candidates(n), partial(plain, facts=n),
           (*LOOK_UPS, "0.1 value 0 of all chains → query"), choices=n) for n in (2, 3)),
    # Look-ups that are hard to recognise.
    *(plain_case(f"sink of {1 - share:.0%}", "usual, but 1.0 sends this share to an empty start",
                 sink(share), after_start, beside_start(share)) for share in (0.4, 0.1)),
    plain_case("sink that speaks", "a sink of 60%; without what it brings there is no answer",
               sink(0.4, speaks=True), after_start,
               (LOOK_UPS[0], "1.0 0.60 start of all chains + 0.40 value 0 → query")),
    *(plain_case(f"soft attention, {n}", "usual, but the logits of 1.0 are at most this",
                 HandWritten(PREVIOUS, {"a": replace(LOOK_UP, sharp=n)},
                             answer=lambda r: 12 * r.a), plain, LOOK_UPS) for n in (3, 2)),
    plain_case("norm after layers", "usual, with a norm of all registers after each layer",
               HandWritten(PREVIOUS, {"a": replace(LOOK_UP, sharp=20)},
                           answer=lambda r: 4 * r.a, normalised=True), plain, LOOK_UPS),
    plain_case("keys of two tokens", "0.0 looks one back and 0.1 two; 1.0 looks up both",
               two_tokens(), long_keys,
               ("0.0 key 0.1 → value 0", "0.0 query → query 1", "0.1 key 0 → value 0",
                "1.0 value 0 → query 1"), choices=6, facts=("x,y->z",)),
)  # fmt: skip


def main() -> None:
    torch.set_num_threads(1)
    for case in CASES:
        print_row(case.row())


if __name__ == "__main__":
    main()
