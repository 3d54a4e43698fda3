"""Find heads of a language model that look facts up, by their attention between roles.

A head that looks up fact d attends from a role that knows the key (the query, or the value of an
earlier fact) to the key or value of fact d *of the same chain*. Its attention to the same role in
the other chains is the control: the same place in the prompt, the same kind of word, another chain.

The best heads are then switched off (their output is set to zero) on fresh questions.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any

import numpy as np
import torch
from einops import rearrange
from jaxtyping import Bool, Float
from torch import Tensor

from hopscope.circuits.components import Estimate
from hopscope.circuits.pattern import Head
from hopscope.circuits.progress import Progress
from hopscope.configs import Config, Prompts
from hopscope.display import Displayed
from hopscope.facts import FactGraph, Role
from hopscope.intervals import standard_error
from hopscope.lm.model import LanguageModel
from hopscope.lm.pairs import ANSWER, role_table, unpaired
from hopscope.lm.patching import AttentionRow, Mark, PairBatch, decoder, in_batches, random_rows
from hopscope.lm.prompts import Question, question

DEALS = 500
"""Number of random draws of the chain asked about, for the distribution of scores by chance."""
LEVEL = 0.05
"""The share of these draws in which any head passes its threshold on any route."""


@dataclass(frozen=True)
class RoleRoute:
    """A route of attention from one role to another, and its purpose."""

    destination: Role
    source: Role
    purpose: str

    def __str__(self) -> str:
        return f"{self.source} → {self.destination}"


def routes(graph: FactGraph, backwards: Collection[int] = ()) -> list[RoleRoute]:
    """Return the routes by which a model may read facts to answer.

    Within each fact: from the role printed later to the one printed earlier (the key; the value for
    a fact in `backwards`). Look-ups: from the value that leads to the fact, or from the question.
    Last: from the answer to each key and value.
    """
    known = graph.query_roles
    source = dict(zip(graph.known, known, strict=True))
    found = []
    for number, fact in enumerate(graph.facts):
        value = Role("value", number)
        for slot, name in enumerate(fact.keys):
            key = Role("key", number, slot)
            ends = (key, value) if number in backwards else (value, key)
            found.append(RoleRoute(*ends, "within a fact"))
            starts = dict.fromkeys((source[name], *known))
            found += [RoleRoute(each, to, "look-up") for each in starts for to in (key, value)]
        source[fact.value] = value
    found += [
        RoleRoute(ANSWER, Role(kind, number), "answer")
        for number in range(len(graph.facts))
        for kind in ("key", "value")
    ]
    return list(dict.fromkeys(found))


def printed_backwards(asked: Question) -> set[int]:
    """Return the facts whose value is printed before their key."""
    first: dict[tuple[str, int], int] = {}
    for span in asked.spans:
        if span.chain == asked.chain:
            first.setdefault((span.role.kind, span.role.fact), span.start)
    facts = {fact for kind, fact in first if kind == "value"}
    return {fact for fact in facts if first["value", fact] < first["key", fact]}


@dataclass(frozen=True)
class HeadScores(Displayed):
    """Attention along each route, of every head, averaged over questions."""

    model: str
    kind: str
    routes: tuple[RoleRoute, ...]
    own: Float[np.ndarray, "route layer head"]
    """Attention to the role in the chain asked about."""
    others: Float[np.ndarray, "route layer head"]
    """Attention to the same role in the other chains, averaged over them."""
    threshold: Float[np.ndarray, "route"]
    """For each route, a head is significant if own - others exceeds this value (`thresholds`). In
    5 % of models without look-ups at least one head passes on any route."""
    right: Float[np.ndarray, "route layer head"]
    """own - others over correctly answered questions, minus that over the others; NaN if all or
    none are answered correctly."""
    error: Float[np.ndarray, "route layer head"]
    """The standard error of `right`."""
    questions: int
    correct: int

    def __repr__(self) -> str:
        return f"HeadScores({self.model} on {self.kind}: {self.questions} questions)"

    @property
    def score(self) -> Float[np.ndarray, "route layer head"]:
        """`own` - `others`: the extra attention of each head to the chain asked about."""
        return np.asarray(self.own - self.others)

    @property
    def significant(self) -> Bool[np.ndarray, "route layer head"]:
        """True where the score exceeds the threshold of its route."""
        return np.asarray(self.score > self.threshold[:, None, None])

    def as_data(self) -> dict[str, Any]:
        """The scores as dictionaries, lists and numbers, ready for JSON."""
        names = ("own", "others", "threshold", "right", "error")
        known = names if 0 < self.correct < self.questions else names[:3]
        numbers = {name: np.round(getattr(self, name), 6).tolist() for name in known}
        along = [{"route": str(each), "purpose": each.purpose} for each in self.routes]
        counts = {"questions": self.questions, "correct": self.correct}
        return {"model": self.model, "kind": self.kind, "routes": along, **counts, **numbers}

    def as_retrieval_heads(self) -> dict[str, list[float]]:
        """Return the scores in the format of Retrieval_Head (Wu et al. 2024).

        Each "layer-head" has a list with one score: the largest over all look-ups and answers, at
        least 0.
        """
        peak = np.clip(self.score[self._looking_up], 0, None).max(axis=0)
        return {
            f"{layer}-{head}": [round(float(s), 6)] for (layer, head), s in np.ndenumerate(peak)
        }

    def best(self, count: int) -> list[Head]:
        """The heads with the largest significant score on any look-up or answer."""
        peak = np.where(self.significant, self.score, 0.0)[self._looking_up].max(axis=0)
        order = np.argsort(-peak, axis=None)[:count]
        heads = [divmod(int(place), peak.shape[1]) for place in order]
        return [head for head in heads if peak[head] > 0]

    @property
    def _looking_up(self) -> list[int]:
        return [n for n, route in enumerate(self.routes) if route.purpose != "within a fact"]


@torch.no_grad()
def head_scores(local: LanguageModel, prompts: Prompts, count: int, seed: int = 0) -> HeadScores:
    """Measure the attention of all heads along all routes, on the first questions of a seed."""
    adapter = decoder(local)
    along = routes(prompts.graph(), printed_backwards(question(prompts, seed, 0)))
    roles = role_table(prompts)
    ends = [[roles.index(each.destination), roles.index(each.source)] for each in along]
    progress, asked = Progress("questions read"), list[tuple[np.ndarray, bool]]()

    def read(batch: PairBatch) -> list[tuple[np.ndarray, bool]]:
        its = list(zip(_along(batch, ends, prompts.chains), batch.right(), strict=True))
        asked.extend(its)
        progress.at(len(asked), count)
        return its

    found = in_batches(adapter, unpaired(local, prompts, seed, 0, count), len(roles), read)
    attention, right = zip(*found, strict=True)
    table, correct = np.stack(attention), np.array(right)
    score = _score(table, np.zeros(count, int))
    generator = np.random.default_rng(seed)
    by_chance = [
        _score(table, generator.integers(table.shape[1], size=count)).mean(0).max((1, 2))
        for _ in range(DEALS)
    ]
    own = table[:, 0]
    return HeadScores(
        model=local.name,
        kind=prompts.label,
        routes=tuple(along),
        own=own.mean(0),
        others=(own - score).mean(0),
        threshold=thresholds(np.stack(by_chance)),
        right=_mean(score[correct]) - _mean(score[~correct]),
        error=np.hypot(standard_error(score[correct]), standard_error(score[~correct])),
        questions=count,
        correct=int(correct.sum()),
    )


def _score(
    table: Float[np.ndarray, "question chain route layer head"], own: np.ndarray
) -> Float[np.ndarray, "question route layer head"]:
    """Return the attention to one chain in each question, minus the mean over the others."""
    chosen = table[np.arange(len(own)), own]
    rest = (table.sum(axis=1) - chosen) / (table.shape[1] - 1)
    return np.asarray(chosen - rest)


def thresholds(by_chance: Float[np.ndarray, "draw route"]) -> Float[np.ndarray, "route"]:
    """Return a threshold for each route, from the best head's score in random draws.

    In 5 % of draws at least one of all routes exceeds its threshold, and each route does so about
    equally often: every route is measured in its own standard deviations (Westfall & Young 1993).
    """
    mean, spread = by_chance.mean(0), by_chance.std(0)
    largest = ((by_chance - mean) / np.where(spread > 0, spread, 1)).max(1)
    return np.asarray(mean + spread * np.quantile(largest, 1 - LEVEL, method="higher"))


def _along(
    batch: PairBatch, ends: Sequence[Sequence[int]], chains: int
) -> Float[np.ndarray, "batch chain route layer head"]:
    """Return the attention from the asked chain's roles to each chain's, along each route."""
    destinations, sources = zip(*ends, strict=True)
    found = [
        batch.attention(layer, chain)[:, :, destinations, sources].double().cpu().numpy()
        for chain in range(chains)
        for layer in range(batch.adapter.layers)
    ]
    order = "(chain layer) batch head route -> batch chain route layer head"
    return rearrange(np.stack(found), order, chain=chains)


def _mean(values: np.ndarray) -> np.ndarray:
    return np.asarray(values.mean(0) if len(values) else np.full(values.shape[1:], np.nan))


class SwitchedOff(Config):
    """The probability of the correct answer among the acceptable ones with heads switched off.

    The questions are not those that were used to choose the heads.
    """

    heads: tuple[Head, ...]
    questions: int
    model: Estimate
    without: Estimate
    random: Estimate | None
    """With as many other heads switched off, drawn again for each question: of the same layers if
    these have enough. None if the model has too few heads.
    """
    more: Estimate | None
    """How much more is lost without these heads than without random ones (paired difference)."""


@torch.no_grad()
def switch_off(
    local: LanguageModel,
    prompts: Prompts,
    heads: Sequence[Head],
    start: int,
    count: int,
    seed: int = 0,
) -> SwitchedOff:
    """Measure answers without these heads, on `count` questions from number `start` on."""
    adapter, roles = decoder(local), len(role_table(prompts))
    rows, shares, progress = [(*head, 0) for head in heads], [], Progress("questions without heads")
    for number, each in enumerate(unpaired(local, prompts, seed, start, count)):
        drawn = random_rows(adapter.layers, adapter.heads, rows, Random(seed + number))  # noqa: S311
        shares += in_batches(adapter, [each], roles, partial(_shares, (rows, drawn)))
        progress.at(number + 1, count)
    model, without, random = np.array(shares).T
    return SwitchedOff(
        heads=tuple(heads),
        questions=count,
        model=Estimate.of_shares(model),
        without=Estimate.of_shares(without),
        random=Estimate.of_shares(random) if drawn else None,
        more=Estimate.of(random - without) if drawn else None,
    )


def _shares(variants: Sequence[Sequence[AttentionRow]], batch: PairBatch) -> list[list[float]]:
    """Return for each question the probability of the correct answer: of the model, and with each
    of these sets of heads switched off.
    """
    off = torch.stack([batch.these(rows).any(-1) for rows in variants])[..., None, None]
    off = off.to(batch.adapter.device)

    def silenced(layer: int, part: slice, brought: Tensor) -> Tensor:
        return brought.masked_fill(off[part, layer], 0)

    first = min(layer for rows in variants for layer, _, _ in rows)
    begin = batch.own.streams[first].expand(len(variants), -1, -1, -1)
    logs = torch.cat([batch.model[None], batch.logs(batch.onward(first, begin, silenced))])
    shares: list[list[float]] = batch.marks(logs)[..., Mark.LOSS].neg().exp().T.tolist()
    return shares
