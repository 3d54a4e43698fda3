"""Which heads of a language model look things up: attention between roles in a prompt.

A question's symbols have roles, and chains that are told beside each other. A head that looks up
fact d attends from where its key is known (the query, or the value of an earlier fact) to the
key or value of fact d *of the same chain*. What it gives the other chains' facts of the same role
is the control: same place in the prompt, same kind of word, another chain.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float

from hopscope.display import Displayed
from hopscope.errors import LlmError
from hopscope.facts import FactGraph, Role
from hopscope.intervals import standard_error
from hopscope.llm.local import LocalModel
from hopscope.llm.prompts import Question

DEALS = 200
"""How often chains are dealt anew to see what chance alone comes to."""
LEVEL = 0.05
"""Share of the deals whose best head may pass the threshold by chance."""
ANSWER = Role("answer")


@dataclass(frozen=True)
class Route:
    """From one role to another, and what going there is for."""

    reader: Role
    source: Role
    purpose: str

    def __str__(self) -> str:
        return f"{self.source} → {self.reader}"


def routes(graph: FactGraph, backwards: Collection[int] = ()) -> list[Route]:
    """What a model may read to answer: within each fact, from what is told later to what is told
    earlier (the key, or where a fact is told backwards its value); each look-up, by the value that
    leads to it or by the question itself; and at the end, what the answer reads.
    """
    known = [Role("query", slot) for slot in range(len(graph.known))]
    source = dict(zip(graph.known, known, strict=True))
    found = []
    for number, fact in enumerate(graph.facts):
        value = Role("value", number)
        for slot, name in enumerate(fact.keys):
            key = Role("key", number, slot)
            ends = (key, value) if number in backwards else (value, key)
            found.append(Route(*ends, "within a fact"))
            readers = dict.fromkeys((source[name], *known))
            found += [Route(reader, to, "look-up") for reader in readers for to in (key, value)]
        source[fact.value] = value
    found += [
        Route(ANSWER, Role(kind, number), "answer")
        for number in range(len(graph.facts))
        for kind in ("key", "value")
    ]
    return list(dict.fromkeys(found))


def told_backwards(question: Question) -> set[int]:
    """The facts whose value is printed before their key."""
    first = {
        (span.role.kind, span.role.fact): span.start
        for span in reversed(question.spans)
        if span.chain == question.chain
    }
    facts = {fact for kind, fact in first if kind == "value"}
    return {fact for fact in facts if first["value", fact] < first["key", fact]}


@dataclass(frozen=True)
class HeadScores(Displayed):
    """Attention along each route, of every head, averaged over questions."""

    model: str
    kind: str
    routes: tuple[Route, ...]
    own: Float[np.ndarray, "route layer head"]
    """Attention to the role in the chain asked about."""
    others: Float[np.ndarray, "route layer head"]
    """Attention to the same role in the other chains, averaged over them."""
    threshold: Float[np.ndarray, "route"]
    """For each route, a head is significant if own - others exceeds this: the 95 % quantile of the
    largest own - others over all heads, when the chain asked about is drawn at random in every
    question."""
    right: Float[np.ndarray, "route layer head"]
    """own - others over questions that the model answers correctly, less that over the others; not
    a number where it answers all alike.
    """
    error: Float[np.ndarray, "route layer head"]
    """The standard error of `right`; NaN where `right` is."""
    questions: int
    correct: int

    def __repr__(self) -> str:
        return f"HeadScores({self.model} on {self.kind}: {self.questions} questions)"

    @property
    def score(self) -> Float[np.ndarray, "route layer head"]:
        """`own` - `others`: how much more each head attends to the chain asked about."""
        difference: np.ndarray = self.own - self.others
        return difference

    @property
    def significant(self) -> Bool[np.ndarray, "route layer head"]:
        """True where the score exceeds the threshold of its route."""
        passed: np.ndarray = self.score > self.threshold[:, None, None]
        return passed

    def as_data(self) -> dict[str, Any]:
        """The scores as dictionaries, lists and numbers, ready for JSON."""
        names = ("own", "others", "threshold", "right", "error")
        told = names if 0 < self.correct < self.questions else names[:3]
        numbers = {name: np.round(getattr(self, name), 6).tolist() for name in told}
        along = [{"route": str(each), "purpose": each.purpose} for each in self.routes]
        counts = {"questions": self.questions, "correct": self.correct}
        return {"model": self.model, "kind": self.kind, "routes": along, **counts, **numbers}

    def as_retrieval_heads(self) -> dict[str, list[float]]:
        """In the format of Retrieval_Head (Wu et al. 2024): "layer-head" and its scores, here the
        largest over all look-ups and answers, never below zero.
        """
        chosen = [n for n, route in enumerate(self.routes) if route.purpose != "within a fact"]
        peak = np.clip(self.score[chosen], 0, None).max(axis=0)
        return {
            f"{layer}-{head}": [round(float(s), 6)] for (layer, head), s in np.ndenumerate(peak)
        }

    def best(self, count: int) -> list[tuple[int, int]]:
        """The heads with the largest significant score on any look-up or answer."""
        chosen = [n for n, route in enumerate(self.routes) if route.purpose != "within a fact"]
        peak = np.where(self.significant, self.score, 0.0)[chosen].max(axis=0)
        order = np.argsort(-peak, axis=None)[:count]
        heads = [divmod(int(place), peak.shape[1]) for place in order]
        return [head for head in heads if peak[head] > 0]


def head_scores(
    local: LocalModel, graph: FactGraph, kind: str, questions: Sequence[Question], seed: int = 0
) -> HeadScores:
    """Read every head's attention along every route."""
    along = routes(graph, told_backwards(questions[0]))
    table = np.stack([_along(local, each, along) for each in questions])  # [q, chain, route, l, h]
    right = _answered_right(local, questions)
    asked = np.array([each.chain for each in questions])
    score = _score(table, asked)
    generator = np.random.default_rng(seed)
    dealt = np.stack(
        [
            _score(table, generator.integers(table.shape[1], size=len(asked))).mean(0).max((1, 2))
            for _ in range(DEALS)
        ]
    )
    own = table[np.arange(len(asked)), asked]
    return HeadScores(
        model=local.name,
        kind=kind,
        routes=tuple(along),
        own=own.mean(0),
        others=(own - score).mean(0),
        threshold=np.quantile(dealt, 1 - LEVEL, axis=0),
        right=_mean(score[right]) - _mean(score[~right]),
        error=np.hypot(standard_error(score[right]), standard_error(score[~right])),
        questions=len(questions),
        correct=int(right.sum()),
    )


def _score(
    table: Float[np.ndarray, "question chain route layer head"], own: np.ndarray
) -> Float[np.ndarray, "question route layer head"]:
    """Attention to one chain in each question, less the mean of that to the others."""
    chains = table.shape[1]
    chosen = table[np.arange(len(own)), own]
    rest = (table.sum(axis=1) - chosen) / (chains - 1)
    difference: np.ndarray = chosen - rest
    return difference


@torch.inference_mode()
def _along(
    local: LocalModel, question: Question, along: Sequence[Route]
) -> Float[np.ndarray, "chain route layer head"]:
    """Attention from the asked chain's roles to every chain's, along each route."""
    tokens, places = located(local, question)
    step = torch.tensor([tokens], device=local.model.device)
    output = local.model(step, output_attentions=True, use_cache=False, logits_to_keep=1)
    if not output.attentions or output.attentions[0] is None:
        raise LlmError(
            f"{local.name} returns no attention: load it with eager attention "
            '(attn_implementation="eager")'
        )
    attention = torch.stack([layer[0] for layer in output.attentions]).float().cpu().numpy()
    chains = sorted({chain for chain, _ in places if chain >= 0})
    found = np.zeros((len(chains), len(along), *attention.shape[:2]))
    for number, route in enumerate(along):
        start = places[(-1 if route.reader == ANSWER else question.chain), route.reader][-1]
        for chain in chains:
            found[chain, number] = attention[:, :, start, places[chain, route.source]].sum(-1)
    return found


def located(
    local: LocalModel, question: Question
) -> tuple[list[int], dict[tuple[int, Role], list[int]]]:
    """The question's tokens, and those of every role of every chain; the answer's is chain -1."""
    text = local.text(question.prompt, question.opening)
    encoded = local.tokenizer(
        text, add_special_tokens=local.template == "raw", return_offsets_mapping=True
    )
    begin = text.index(question.prompt)
    places: dict[tuple[int, Role], list[int]] = {(-1, ANSWER): [len(encoded["input_ids"]) - 1]}
    for span in question.spans:
        start, end = begin + span.start, begin + span.end
        inside = [
            number
            for number, (first, last) in enumerate(encoded["offset_mapping"])
            if first < end and last > start
        ]
        places.setdefault((span.chain, span.role), []).extend(inside)
    return encoded["input_ids"], places


def _answered_right(
    local: LocalModel, questions: Sequence[Question]
) -> Bool[np.ndarray, "question"]:
    """Is the likeliest acceptable answer the correct one?"""
    chances = local.probabilities(
        [each.prompt for each in questions],
        [each.acceptable for each in questions],
        [each.opening for each in questions],
    )
    best = [each.acceptable[int(np.argmax(c))] for each, c in zip(questions, chances, strict=True)]
    return np.array([said == each.correct for said, each in zip(best, questions, strict=True)])


def _mean(values: np.ndarray) -> np.ndarray:
    mean: np.ndarray = values.mean(0) if len(values) else np.full(values.shape[1:], np.nan)
    return mean
