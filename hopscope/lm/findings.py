"""Findings computed from the rows of a run: maps, look-ups, the circuit and its proof.

How far answers follow is a share: from the own answer (0) to the partner's (1). Its interval is
that of a ratio (delta method), by Student's t over the questions. Where many cells are reported
together (roles by layers by exchanges; the rows of a circuit), each has the level 5 % / cells
(Bonferroni): with a probability of 95 % all intervals contain the true values.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from math import log
from typing import Any

import numpy as np

from hopscope import intervals
from hopscope.circuits.account import WAYS, Account, Decodable, Effect, Patched, Site
from hopscope.circuits.circuit import Circuit
from hopscope.circuits.components import Component, ComponentKind, Estimate, Losses, Score
from hopscope.circuits.patching import SURE
from hopscope.circuits.pattern import AS_IN_MODEL, Source, Target
from hopscope.configs import Config, LmCircuit, Prompts
from hopscope.display import Displayed
from hopscope.errors import NotLearned
from hopscope.facts import Role
from hopscope.lm.look_ups import ASKING, BY, LookUps
from hopscope.lm.pairs import ANSWER, ON, followed, proving, role_table
from hopscope.lm.patching import AttentionRow, Mark, other_rows
from hopscope.lm.rows import SavedRow, column, of_phase, saved_rows
from hopscope.milestones import HALF
from hopscope.runs.view import PlainRun

CIRCUIT, REST, EVERYTHING, RANDOM = range(4)
"""Which rows a proof takes from the donor: the circuit's, all others, all, or random ones."""
LOOKS = 0.1
"""A source role with at least this share of a row's attention is patched separately."""

Cell = tuple[int, int, list[int]]
"""A layer, a role, and the indices of the exchanges with which it is patched."""


@dataclass(frozen=True)
class Answered:
    """The accuracy of the unpatched model."""

    right: int
    count: int
    chance: float

    @classmethod
    def of(cls, rows: Sequence[SavedRow]) -> "Answered":
        """Count the right answers in some rows."""
        return cls(
            right=sum(row["right"] for row in rows),
            count=len(rows),
            chance=float(np.mean([1 / row["acceptable"] for row in rows])),
        )

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the share of right answers."""
        return intervals.share(self.right, self.count)

    def __str__(self) -> str:
        low, high = self.interval
        return (
            f"{self.right} of {self.count} answered right ({low:.2f} … {high:.2f}; chance "
            f"{self.chance:.2f})"
        )


def sureties(rows: Sequence[SavedRow], exchanges: Sequence[str]) -> dict[str, np.ndarray]:
    """Return for each exchange and question the logit of the own answer minus the partner's.

    An exchange is absent if the own answers are not clearly preferred: then a share of the way to
    the partner's answer has no meaning.
    """
    found = {}
    for name in exchanges if len(rows) > 1 else ():
        clean = np.array([row["clean"][name] for row in rows], dtype=float)
        sure = clean[:, Mark.OWN] - clean[:, Mark.FOLLOWS]
        if sure.sum() > SURE * np.abs(sure).sum():
            found[name] = sure
    return found


def check_above_chance(
    recipe: LmCircuit, prompts: Prompts, rows: Sequence[SavedRow], exchanged: Sequence[str]
) -> None:
    """Raise NotLearned if the model answers these questions at chance, or cannot be patched."""
    answers = Answered.of(rows)
    if answers.interval[0] <= answers.chance:
        raise NotLearned(
            f"{recipe.model} answers {prompts.label} at chance: {answers}: ask for fewer hops, for "
            "an opening or another formulation, or take another model"
        )
    sure = sureties(rows, exchanged)
    if unsure := [name for name in exchanged if name not in sure]:
        raise NotLearned(
            f"{recipe.model} is as near to the partner's answer as to its own on {len(rows)} "
            f"questions of {prompts.label} ({', '.join(unsure)}): ask more of them"
        )


class Proof(Config):
    """One exchange on fresh questions: how far answers follow the donor if some attention rows are
    taken from it (0: not at all, 1: completely).
    """

    exchange: str
    circuit: Estimate
    """The circuit's rows: how far the circuit is *necessary* for the answer."""
    random: Estimate | None
    """As many other rows, drawn again for each question: in the same layers and roles if these have
    enough. None if the model has too few.
    """
    more: Estimate | None
    """How much further answers follow the circuit than random rows (paired difference)."""
    rest: Estimate
    """All rows but the circuit's: 0 if the circuit is *sufficient* for the answer."""
    everything: Estimate
    questions: int


class Confirmed(Config):
    """How far answers follow a role's patched stream before a layer, on fresh questions."""

    exchange: str
    role: Role
    layer: int
    share: Estimate
    questions: int


@dataclass(frozen=True)
class Lens:
    """Results of the logit lens: [role, layer], NaN for a role that does not occur."""

    probability: np.ndarray
    rank: np.ndarray


@dataclass(frozen=True)
class HeadRow:
    """One attention row, and how far answers follow if only its output is patched."""

    layer: int
    head: int
    destination: Role
    shares: dict[str, Estimate]
    """For each exchange that the row was patched with and whose effect can be measured."""
    sources: dict[Role, float]
    """The roles of the own chain with a share of at least `LOOKS` of the row's attention."""

    @property
    def most(self) -> Estimate:
        """The largest of the shares."""
        return max(self.shares.values(), key=lambda share: share.mean)

    def site(self, source: Role | None = None) -> Site:
        """Return the site of the row's whole output, or of the part from one source."""
        return Site(
            layer=self.layer, heads=(self.head,), destinations=(self.destination,), source=source
        )


@dataclass(frozen=True)
class LmFindings(Displayed):
    """All findings from the rows of a run, which may be incomplete."""

    recipe: LmCircuit
    rows: Sequence[SavedRow]

    def __repr__(self) -> str:
        return f"LmFindings({self.recipe.model} on {self.recipe.prompts.label}: {self.answered})"

    @cached_property
    def answered(self) -> Answered:
        """The accuracy of the unpatched model."""
        return Answered.of(of_phase(self.rows, "answers"))

    @property
    def roles(self) -> tuple[Role, ...]:
        """The roles of tokens."""
        return role_table(self.recipe.prompts)

    @cached_property
    def exchanges(self) -> tuple[str, ...]:
        """The names of the run's exchanges."""
        return followed(self.recipe)

    @cached_property
    def layers(self) -> list[int]:
        """The layers before which streams were patched; the last entry is after all layers."""
        layers = of_phase(self.rows, "answers")[0]["shape"][0]
        return [*range(0, layers, self.recipe.tracing.every), layers]

    @cached_property
    def shares(self) -> dict[str, list[list[Estimate]]]:
        """How far answers follow the patched stream at a role before a layer.

        Indexed [exchange][role][layer]; exchanges whose effect cannot be measured are absent.
        """
        rows, found = of_phase(self.rows, "roles"), {}
        for name, sure in sureties(rows, self.exchanges).items():
            moved = column(rows, "moved")[..., Mark.FOLLOWS]  # [question, exchange, role, layer]
            found[name] = [
                [Estimate.of_ratio(layer, sure, moved[0].size) for layer in role.T]
                for role in moved[:, self.exchanges.index(name)].swapaxes(0, 1)
            ]
        return found

    @cached_property
    def lens(self) -> dict[str, Lens]:
        """The logit lens of each symbol."""
        values = column(of_phase(self.rows, "roles"), "lens")
        return {
            fact.value: Lens(values[:, n, ..., 0].mean(0), np.median(values[:, n, ..., 1], axis=0))
            for n, fact in enumerate(self.recipe.prompts.graph().facts)
        }

    @cached_property
    def last_look_up(self) -> dict[str, list[Estimate]]:
        """The probability of the answer found by position, word or pointer, with a patched stream.

        Indexed [position, word or pointer][layer]; empty if it was not measured.
        """
        found = [row["last"] for row in of_phase(self.rows, "roles") if row.get("last")]
        if len(found) < 2:
            return {}
        values = np.array(found, dtype=float)  # [question, layer, own position word pointer new]
        pointer = values[..., 3] - values[..., 4]
        by = dict(zip(BY, (values[..., 1], values[..., 2], pointer), strict=True))
        cells = len(BY) * values.shape[1]
        return {name: [Estimate.of(layer, cells) for layer in each.T] for name, each in by.items()}

    @property
    def look_ups(self) -> LookUps:
        """How look-ups are made, from the symbols that roles hold."""
        graph = self.recipe.prompts.graph()
        return LookUps(graph, self.roles, self.layers, self.shares, self.last_look_up)

    def verdict(self) -> list[str]:
        """Return lines on how look-ups are made (stacked or in place), and how the last one is."""
        return self.look_ups.in_words()

    @cached_property
    def gaining(self) -> list[Cell]:
        """The layers and roles at which the share of an exchange rises; their heads are patched."""
        return self._cells(
            (layer, role, name)
            for name, shares in self.shares.items()
            for role, by_layer in enumerate(shares)
            for steps, (before, after) in zip(
                pairwise(self.layers), pairwise(by_layer), strict=True
            )
            if after.mean - before.mean >= self.recipe.tracing.gains
            for layer in range(*steps)
        )

    @cached_property
    def peaks(self) -> list[Cell]:
        """The layer of each role and exchange that is patched again on fresh questions.

        This is the last layer at which a role holds its own word, or the first at which it holds a
        symbol that was moved to it. A role of the question that holds nothing has its best layer.
        """
        known, found = self.recipe.prompts.graph().known, []
        for name in (name for name in self.shares if name not in known):
            for role, by_layer in enumerate(self.shares[name]):
                above = [n for n, share in enumerate(by_layer) if share.mean > HALF]
                if above:
                    best = above[-1] if above[0] == 0 else above[0]
                else:
                    best = max(range(1, len(by_layer)), key=lambda n: by_layer[n].mean)
                if above or self.roles[role] in ASKING:
                    found.append((self.layers[best], role, name))
        return self._cells(found)

    def _cells(self, found: Iterable[tuple[int, int, str]]) -> list[Cell]:
        """Group (layer, role, exchange) by layer and role, sorted."""
        cells: dict[tuple[int, int], list[int]] = defaultdict(list)
        for layer, role, name in found:
            cells[layer, role].append(self.exchanges.index(name))
        return [(*cell, cells[cell]) for cell in sorted(cells)]

    @cached_property
    def strongest(self) -> list[HeadRow]:
        """At most `tracing.most` attention rows, strongest first, that count.

        A row counts if its share is at least `tracing.counts`, with an interval above 0.

        This is a search: its intervals are not corrected for the number of rows tried. The effect
        of the chosen rows is measured on the fresh questions of the proof.
        """
        rows, its = of_phase(self.rows, "heads"), self.recipe.tracing
        sure, attention = sureties(rows, self.exchanges), column(rows, "attention")
        found = []
        for cell, (layer, role, exchanged) in enumerate(rows[0]["cells"] if rows else ()):
            names = [self.exchanges[n] for n in exchanged]
            moved = np.array([row["moved"][cell] for row in rows], dtype=float)[..., Mark.FOLLOWS]
            for head, looks in enumerate(attention[:, cell].mean(0)):
                by_name = zip(names, moved[:, :, head].T, strict=True)
                shares = {
                    name: Estimate.of_ratio(each, sure[name])
                    for name, each in by_name
                    if name in sure
                }
                by_role = zip(self.roles, looks, strict=True)
                sources = {source: float(look) for source, look in by_role if look >= LOOKS}
                row = HeadRow(layer, head, self.roles[role], shares, sources)
                if shares and row.most.mean >= its.counts and row.most.low > 0:
                    found.append(row)
        return sorted(found, key=lambda row: -row.most.mean)[: its.most]

    @cached_property
    def sites(self) -> dict[Site, set[str]]:
        """The sites of the strongest rows, with the symbols whose exchange the answer follows.

        Each row has a site for its whole output, and one for each source role.
        """
        found: dict[Site, set[str]] = {}
        for row in self.strongest:
            follows = {name.removesuffix(ON) for name in self._followed(row)}
            found |= {row.site(source): follows for source in (None, *row.sources)}
        return found

    def _followed(self, row: HeadRow) -> set[str]:
        """Return the exchanges that answers follow if only this row is patched."""
        counts = self.recipe.tracing.counts
        return {name for name, share in row.shares.items() if share.mean >= counts}

    @cached_property
    def effects(self) -> dict[Site, Patched]:
        """The effects of patching each site."""
        rows, graph = of_phase(self.rows, "paths"), self.recipe.prompts.graph()
        moved = column(rows, "moved")  # [question, symbol, site, way, two]
        own, found = sureties(rows, graph.symbols), {}
        for number, site in enumerate(self.sites):
            effects = []
            for symbol, sure in own.items():
                for w, way in enumerate(WAYS):
                    follow, stay = moved[:, graph.symbols.index(symbol), number, w].T
                    share, left = (Estimate.of_ratio(its, sure) for its in (follow, -stay))
                    effects.append(
                        Effect(symbol=symbol, way=way, hop=len(graph.facts), share=share, left=left)
                    )
            found[site] = Patched(site=site, moves=tuple(each for each in effects if each.kept))
        return found

    @cached_property
    def chosen(self) -> list[HeadRow]:
        """The rows of the circuit in order, with only the sources whose patch has an effect.

        The circuit is built backwards from the answer: a row belongs to it if a later row of the
        circuit moves something from the role to which it writes.
        """
        below = {ANSWER: self.layers[-1]}
        """The layer below which a role is still needed."""
        found = []
        for row in sorted(self.strongest, key=lambda row: -row.layer):
            if row.layer >= below.get(row.destination, 0):
                continue
            sources = {
                source: look
                for source, look in row.sources.items()
                if any(
                    move.left.mean >= self.recipe.tracing.counts
                    for move in self.effects[row.site(source)].moves
                )
            }
            below = dict.fromkeys(sources, row.layer) | below
            found.append(replace(row, sources=sources))
        place = self.roles.index
        return sorted(found, key=lambda row: (row.layer, row.head, place(row.destination)))

    def rows_by(self, table: Sequence[Role]) -> list[AttentionRow]:
        """Return the circuit's rows with indices of roles in `table`; leave out absent roles."""
        return sorted(
            (row.layer, row.head, table.index(row.destination))
            for row in self.chosen
            if row.destination in table
        )

    @cached_property
    def circuit(self) -> Circuit:
        """The circuit, with its scores on fresh questions."""
        first = of_phase(self.rows, "answers")[0]
        layers, heads = first["shape"]
        losses, score = self._proved()
        return Circuit(
            model=first["model"],
            task=None,
            roles=self.roles,
            layers=layers,
            heads=heads,
            components=tuple(self._component(number) for number, _ in enumerate(self.chosen)),
            losses=losses,
            scores=(score,),
            account=Account(
                decodable=self._decodable(layers),
                patched=tuple(self.effects.values()),
                examples=self.recipe.tracing.searched,
                asked=self._asked,
            ),
        )

    @property
    def _asked(self) -> dict[str, int]:
        """The only symbol that is asked for (the last), with its number of hops."""
        facts = self.recipe.prompts.graph().facts
        return {facts[-1].value: len(facts)}

    def _component(self, number: int) -> Component:
        """Return one row as a component, with its target and its loss on fresh questions.

        `lost` is the largest share of an exchange's gap that is lost if the row is taken from the
        donor. The row is weak if answers follow it for no exchange. A row that brings only what the
        proof does not exchange (x0, or x1 as a key) is not tested: `lost` is None.
        """
        row = self.chosen[number]
        whole = sum(row.sources.values())
        parts = tuple((Source("own", role), look / whole) for role, look in row.sources.items())
        proof, names = of_phase(self.rows, "proof"), proving(self.recipe.prompts)
        cells = len(self.chosen) * len(names)
        moved = column(proof, "rows")[:, :, number]  # [question, exchange, mark]
        rises, gaps = moved[..., Mark.LOSS], column(proof, "moved")[:, :, EVERYTHING, Mark.LOSS]
        lost = [Estimate.ratio(*each, cells) for each in zip(rises.T, gaps.T, strict=True)]
        follows = [
            Estimate.of_ratio(moved[:, names.index(name), Mark.FOLLOWS], sure, cells)
            for name, sure in sureties(proof, names).items()
        ]
        tested = not self._followed(row).isdisjoint(names)
        weak = tested and not any(each.low > 0 for each in follows)
        return Component(
            layer=row.layer,
            heads=(row.head,),
            destinations=(row.destination,),
            target=Target(parts) if parts else AS_IN_MODEL,
            kind="weak" if weak else self._kind(row),
            lost=max(
                filter(None, lost if tested else ()), key=lambda each: each.mean, default=None
            ),
        )

    def _kind(self, row: HeadRow) -> ComponentKind | None:
        """Return "moves" if a row acts by its values, "routes" if by later queries or keys."""
        whole = self.effects[row.site()]
        if any(share.mean > 0 for share in whole.moved(self._asked).values()):
            return "moves"
        return "routes" if whole.routes("queries") or whole.routes("keys") else None

    def _proved(self) -> tuple[Losses, Score]:
        """Return the losses and the score of the circuit, from the rows of the proof.

        Losses are among the acceptable answers: of the model, of the circuit alone (all other rows
        are taken from the donor), and with all rows taken from the donor.
        """
        rows = of_phase(self.rows, "proof")
        model = np.array([next(iter(row["clean"].values()))[Mark.LOSS] for row in rows])
        moved = column(rows, "moved")
        exchanged = model[:, None, None] + moved[..., Mark.LOSS]  # [question, exchange, variant]
        rest, gap = moved[:, :, REST].mean(1), moved[:, :, EVERYTHING, Mark.LOSS].mean(1)
        losses = Losses(
            model=(float(model.mean()),),
            prescribed=None,
            computed=(float(exchanged[..., REST].mean()),),
            ablated=(float(exchanged[..., EVERYTHING].mean()),),
            chance=log(1 / self.answered.chance),
        )
        return losses, Score(
            attention="computed",
            rest="interchange",
            recovered=Estimate.ratio(gap - rest[:, Mark.LOSS], gap),
            agreement=Estimate.of(rest[:, Mark.KL]),
            same_answer=Estimate.of_shares(1 + rest[:, Mark.SAME]),
        )

    def _decodable(self, layers: int) -> Decodable:
        """Return how far answers follow the stream at each role, for each symbol.

        A layer that was not patched has the shares of the last patched layer before it.
        """
        symbols = tuple(s for s in self.recipe.prompts.graph().symbols if s in self.shares)
        at = np.searchsorted(self.layers, range(layers + 1), side="right") - 1
        shape = len(symbols), len(self.roles), len(self.layers)
        follows = [[each.mean for each in role] for s in symbols for role in self.shares[s]]
        shares = np.reshape(follows, shape).clip(0, 1)[..., at].T  # [layer, role, symbol]
        return Decodable(roles=self.roles, symbols=symbols, shares=shares.tolist())

    def proofs(self, phase: str = "proof") -> list[Proof]:
        """Return the proofs on fresh questions, or ("elsewhere") on another formulation.

        Exchanges whose effect cannot be measured are absent.
        """
        rows, names = of_phase(self.rows, phase), proving(self.recipe.prompts_of(phase))
        chosen = self.rows_by(self.roles)
        layers, heads = of_phase(self.rows, "answers")[0]["shape"]
        alike = len(other_rows(layers, heads, chosen)) >= len(chosen)
        found = []
        for name, sure in sureties(rows, names).items():
            moved = column(rows, "moved")[:, names.index(name), :, Mark.FOLLOWS]
            circuit, rest, everything, random = (Estimate.of_ratio(each, sure) for each in moved.T)
            more = Estimate.of_ratio(moved[:, CIRCUIT] - moved[:, RANDOM], sure)
            found.append(
                Proof(exchange=name, circuit=circuit, random=random if alike else None,
                      more=more if alike else None, rest=rest, everything=everything,
                      questions=len(rows))
            )  # fmt: skip
        return found

    @cached_property
    def confirmed(self) -> list[Confirmed]:
        """The shares of `peaks`, measured on the fresh questions of the proof."""
        rows = of_phase(self.rows, "proof")
        cells = [(*cell, n) for *cell, some in (rows[0]["cells"] if rows else ()) for n in some]
        sure, held = sureties(rows, self.exchanges), column(rows, "held")
        found = [
            Confirmed(exchange=name, role=self.roles[role], layer=layer, questions=len(rows),
                      share=Estimate.of_ratio(held[:, n, Mark.FOLLOWS], sure[name], len(cells)))
            for n, (layer, role, exchange) in enumerate(cells)
            if (name := self.exchanges[exchange]) in sure
        ]  # fmt: skip
        return sorted(found, key=lambda each: (each.exchange, self.roles.index(each.role)))

    def to_dict(self) -> dict[str, Any]:
        """Return all findings as dictionaries, lists and numbers for JSON."""
        answered = self.answered
        return {
            "model": self.recipe.model,
            "questions": self.recipe.prompts.label,
            "answered": {"right": answered.right, "of": answered.count,
                         "interval": answered.interval, "chance": answered.chance},
            "roles": [str(role) for role in self.roles],
            "layers": self.layers,
            "follows": {
                name: [_dumped(by_layer) for by_layer in by_role]
                for name, by_role in self.shares.items()
            },
            "last look-up": {by: _dumped(shares) for by, shares in self.last_look_up.items()},
            "lens": {
                symbol: {"probability": seen.probability.tolist(), "rank": seen.rank.tolist()}
                for symbol, seen in self.lens.items()
            },
            "verdict": self.verdict(),
            "confirmed": [
                {**each.model_dump(), "role": str(each.role)} for each in self.confirmed
            ],
            "circuit": self.circuit.to_dict(),
            "proof": _dumped(self.proofs()),
            "elsewhere": _dumped(self.proofs("elsewhere")),
        }  # fmt: skip


def _dumped(configs: Sequence[Config]) -> list[dict[str, Any]]:
    return [each.model_dump() for each in configs]


@dataclass(frozen=True, repr=False)
class LmCircuitRun(PlainRun):
    """The run of a language model's circuit: its recipe, and the measurements so far."""

    @property
    def recipe(self) -> LmCircuit:
        """The recipe of the run."""
        return self.folder.recipe_as(LmCircuit)

    @property
    def findings(self) -> LmFindings:
        """The findings from the rows so far."""
        return LmFindings(self.recipe, saved_rows(self.folder))
