"""How a language model comes to its answer: what was found, as a run keeps it and as data.

The question that the paper leaves open is put to it: does the position that asks hold x_1 before it
holds x_2 (look-ups are stacked there), or is x_2 looked up where x_1 stands (in place), so that the
asking position takes it from there?
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from hopscope.circuits.circuit import Circuit
from hopscope.circuits.components import Estimate
from hopscope.configs import LlmMechanism
from hopscope.display import Displayed
from hopscope.facts import Role
from hopscope.llm.assembling import ALL, ALONE, circuit_of
from hopscope.llm.exchange import proving
from hopscope.llm.pairs import role_table
from hopscope.llm.rows import Measured, of_phase, rows_of
from hopscope.llm.verdict import LookUps
from hopscope.llm.weighing import (
    Answered,
    answered,
    estimate,
    followed,
    role_shares,
    surety,
)
from hopscope.store import RunFolder

KNOCKED, DRAWN = 0, 3
"""The variants of a proof: the circuit knocked out; from there on, random rows."""


@dataclass(frozen=True)
class Proof:
    """One exchange, on fresh questions."""

    name: str
    knocked: Estimate
    """How far answers follow the circuit's rows, brought from the donor; all else is as it is."""
    random: tuple[float, ...]
    """The same of as many random rows, draw by draw; draws that cannot be measured are absent."""
    drawn: Estimate
    """The same of random rows, of all draws that a question met."""
    alone: Estimate
    """How far answers follow the donor if all is brought from there but the circuit's rows: 0 if
    these are enough."""
    everything: Estimate
    """The same if all is brought from there."""
    questions: int

    @property
    def beaten(self) -> int:
        """How many random draws move the answers at least as far."""
        return sum(each >= self.knocked.mean for each in self.random)


@dataclass(frozen=True)
class Confirmed:
    """What a role holds before a layer, on fresh questions."""

    exchange: str
    role: Role
    layer: int
    share: Estimate
    questions: int


@dataclass(frozen=True)
class Seen:
    """What the logit lens sees: [role][layer], not a number where a role is not."""

    probability: np.ndarray
    rank: np.ndarray


@dataclass(frozen=True)
class LlmFindings(Displayed):
    """Everything that the rows of a run come to."""

    recipe: LlmMechanism
    rows: Sequence[Measured]

    def __repr__(self) -> str:
        return f"LlmFindings({self.recipe.model} on {self.recipe.prompts.label}: {self.answered})"

    @cached_property
    def answered(self) -> Answered:
        """How the model answers."""
        return answered(of_phase(self.rows, "answers"))

    @property
    def roles(self) -> tuple[Role, ...]:
        """The roles of tokens."""
        return role_table(self.recipe.prompts)

    @cached_property
    def layers(self) -> list[int]:
        """The layers before which streams were patched; the last is behind all."""
        layers = of_phase(self.rows, "answers")[0]["shape"][0]
        return [*range(0, layers, self.recipe.tracing.every), layers]

    @cached_property
    def shares(self) -> dict[str, list[list[Estimate]]]:
        """For each exchange, role and layer, how far answers follow the stream there; an exchange
        after which no answer can be measured is absent.
        """
        return role_shares(self.recipe, self.rows)

    @cached_property
    def lens(self) -> dict[str, Seen]:
        """What the logit lens sees of each symbol."""
        values = np.array([row["lens"] for row in of_phase(self.rows, "roles")], dtype=float)
        symbols = [fact.value for fact in self.recipe.prompts.graph().facts]
        return {
            symbol: Seen(values[:, n, ..., 0].mean(0), np.median(values[:, n, ..., 1], axis=0))
            for n, symbol in enumerate(symbols)
        }

    @cached_property
    def circuit(self) -> Circuit:
        """The circuit, with its account."""
        return circuit_of(self.recipe, self.rows)

    def proofs(self, phase: str = "proof") -> list[Proof]:
        """The circuit on fresh questions, or (elsewhere) on another formulation; exchanges after
        which no answer can be measured are absent.
        """
        rows = of_phase(self.rows, phase)
        prompts = self.recipe.prompts if phase == "proof" else self.recipe.elsewhere
        if not rows or prompts is None:
            return []
        found = []
        moved = np.array([row["moved"] for row in rows], dtype=float)[..., 0]
        for number, name in enumerate(proving(prompts)):
            sure, its = surety(rows, name), moved[:, number]
            draws = its[:, DRAWN:]
            random = tuple(share.mean for one in draws.T if (share := estimate(sure, one)))
            knocked, alone, everything = (estimate(sure, its[:, n]) for n in (KNOCKED, ALONE, ALL))
            drawn = estimate(sure, np.nanmean(draws, 1))
            if knocked and drawn and alone and everything:
                found.append(Proof(name, knocked, random, drawn, alone, everything, len(rows)))
        return found

    @cached_property
    def confirmed(self) -> list[Confirmed]:
        """What roles hold, on the fresh questions of the proof."""
        rows, all_names = of_phase(self.rows, "proof"), followed(self.recipe)
        found = []
        cells = [(*cell, n) for *cell, its in (rows[0]["cells"] if rows else ()) for n in its]
        for number, (layer, role, n) in enumerate(cells):
            sure = surety(rows, all_names[n])
            share = estimate(sure, np.array([row["held"][number][0] for row in rows], dtype=float))
            if share:
                found.append(Confirmed(all_names[n], self.roles[role], layer, share, len(rows)))
        return sorted(found, key=lambda its: (its.exchange, self.roles.index(its.role)))

    @property
    def look_ups(self) -> LookUps:
        """Which symbols roles hold, and so how look-ups are made."""
        return LookUps(self.recipe.prompts.graph(), self.roles, self.layers, self.shares)

    def verdict(self) -> list[str]:
        """In words: are look-ups stacked where the question is asked, or made in place?"""
        return self.look_ups.told()

    def to_dict(self) -> dict[str, Any]:
        """Everything as dictionaries, lists and numbers, ready for JSON."""
        return {
            "model": self.recipe.model,
            "questions": self.recipe.prompts.label,
            "answered": {"right": self.answered.right, "of": self.answered.count,
                         "interval": self.answered.interval, "guessing": self.answered.guessing},
            "roles": [str(role) for role in self.roles],
            "layers": self.layers,
            "follows": {
                name: [[each.model_dump() for each in by_layer] for by_layer in by_role]
                for name, by_role in self.shares.items()
            },
            "lens": {
                symbol: {"probability": its.probability.tolist(), "rank": its.rank.tolist()}
                for symbol, its in self.lens.items()
            },
            "verdict": self.verdict(),
            "confirmed": [
                {"exchange": its.exchange, "role": str(its.role), "layer": its.layer,
                 "share": its.share.model_dump(), "questions": its.questions}
                for its in self.confirmed
            ],
            "circuit": self.circuit.to_dict(),
            "proof": [_told(each) for each in self.proofs()],
            "elsewhere": [_told(each) for each in self.proofs("elsewhere")],
        }  # fmt: skip


def _told(proof: Proof) -> dict[str, Any]:
    shares = ("knocked", "drawn", "alone", "everything")
    return {
        "exchange": proof.name,
        **{name: getattr(proof, name).model_dump() for name in shares},
        "random": list(proof.random),
        "questions": proof.questions,
    }


@dataclass(frozen=True)
class MechanismRun(Displayed):
    """A mechanism on disk: its recipe, and what was measured so far."""

    folder: RunFolder

    def __repr__(self) -> str:
        return f"MechanismRun({self.name!r})"

    @property
    def name(self) -> str:
        """The name of the run in its store."""
        return self.folder.name

    @property
    def recipe(self) -> LlmMechanism:
        """The recipe that the run is made from."""
        return self.folder.recipe_as(LlmMechanism)

    @property
    def findings(self) -> LlmFindings:
        """What the rows come to."""
        return LlmFindings(self.recipe, rows_of(self.folder))
