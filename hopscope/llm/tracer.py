"""Find how a language model comes to its answers, as the work of a run.

    answers    does it answer better than by guessing, also what proves the circuit? If not, there
               is nothing to find
    roles      the residual stream at one role, before one layer, is the donor's; and the logit lens
    heads      where a role gains, what each head brings there is the donor's
    paths      for the rows that count: from which role, and what later heads take of it
    proof      fresh questions: the circuit's rows are the donor's; or all else is
    elsewhere  the same on another formulation

Rows are committed piece by piece. What a phase measures follows from the recipe and the rows of
earlier phases, so a run that was killed ends with the rows of one left alone.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property

import torch
from jaxtyping import Float
from torch import Tensor

from hopscope.circuits.adapters import adapter_of
from hopscope.circuits.engine import Adapter
from hopscope.configs import LlmMechanism, Prompts
from hopscope.errors import ConfigError, LlmError, RunMismatch
from hopscope.llm.assembling import circuit_rows
from hopscope.llm.exchange import names, proving
from hopscope.llm.lens import lens
from hopscope.llm.local import LocalModel
from hopscope.llm.models import load
from hopscope.llm.packed import pack
from hopscope.llm.pairs import Paired, pairs, role_table
from hopscope.llm.patches import Rerun, at_role, by_head, by_role, met, proofs
from hopscope.llm.paths import path_rows
from hopscope.llm.rows import PART, ROWS, Measured, line, numbers, of_phase, rows_of
from hopscope.llm.walking import MARKS, Batch, batches
from hopscope.llm.weighing import Cell, cells, check_answers, check_sure, followed, peaks
from hopscope.runs.runner import complete
from hopscope.runs.stepper import Losses, MakeStepper, Watcher
from hopscope.store import RunFolder, Store

CHECKED = {"heads": ("roles", "mapped"), "paths": ("heads", "searched")}  # were these enough?
PIECE = 4  # questions that are measured between two commits


def prepare(recipe: LlmMechanism, device: str) -> MakeStepper:
    """What begins the patching of a model that is there."""
    if device not in ("auto", "cpu"):
        raise ConfigError(f"device is {device!r}; language models are patched on the processor")
    model, tokenizer = load(recipe.model, recipe.precision, "sdpa")
    # Answers are not sampled: a prompt and the answers that are spelled need room, no more.
    pack(model)
    local = LocalModel(model, tokenizer, recipe.model, recipe.template, max_tokens=1)
    return lambda folder: Tracer(recipe, local, folder)


def trace(
    recipe: LlmMechanism,
    local: Callable[[], LocalModel],
    store: Store | str | None = None,
    watcher: Watcher | None = None,
) -> RunFolder:
    """Find the mechanism in a model of one's own, or finish finding it; if that is complete, return
    its run. The model is only made if there is something to measure.
    """
    store = store if isinstance(store, Store) else Store(store)
    there = None if store.has_complete(recipe) else local()
    return complete(recipe, lambda folder: Tracer(recipe, there or local(), folder), store, watcher)


class Tracer:
    """What is still to be measured of one mechanism."""

    def __init__(self, recipe: LlmMechanism, local: LocalModel, folder: RunFolder) -> None:
        adapter = adapter_of(local.model)
        if not isinstance(adapter, Adapter):
            raise LlmError(
                f"{local.name} cannot be walked head by head: there is no adapter for it"
            )
        self.recipe, self.local, self.adapter, self.folder = recipe, local, adapter, folder
        self.rows = rows_of(folder)
        self.step = self.kept = len(self.rows)
        self.device, self.precision = torch.device("cpu"), recipe.precision
        self.planned = range(1, recipe.steps + 1)
        self.names = followed(recipe)
        self.layers = [*range(0, adapter.layers, recipe.tracing.every), adapter.layers]
        self.roles = len(role_table(recipe.prompts))
        self.pieces = self._pieces()

    def advance(self) -> Losses:
        """Measure a piece of the questions."""
        with torch.no_grad():
            phase, piece = next(self.pieces)
            found = PHASES[phase](self, piece)
        self.rows += [{"phase": phase, **row} for row in found]
        self.step += len(found)
        return {}

    def files(self) -> Mapping[str, bytes]:
        """The rows since the last commit."""
        new = self.rows[self.kept :]
        files = {f"{PART}{self.kept:08d}.jsonl": "".join(map(line, new)).encode()}
        self.kept = self.step
        return files

    def merged(self) -> tuple[Mapping[str, bytes], tuple[str, ...]]:
        """All rows as one file, and the names of the parts that it takes the place of."""
        whole = "".join(map(line, rows_of(self.folder)))
        return {ROWS: whole.encode()}, tuple(self.folder.files(PART))

    def _pieces(self) -> Iterator[tuple[str, list[Paired]]]:
        """What is still to be measured, phase by phase."""
        self._check_weights()
        for phase, count in self.recipe.phases:
            done = len(of_phase(self.rows, phase))
            if phase == "roles" and not done:
                self._check_answers()
            if before := CHECKED.get(phase):
                check_sure(self.recipe, of_phase(self.rows, before[0]), self.names, before[1])
            asked = self._pairs(phase)[:count] if done < count else []
            for first in range(done, count, PIECE):
                yield phase, asked[first : first + PIECE]

    def _check_answers(self) -> None:
        """Refuse what the model guesses: also the questions of the proofs, before any patch."""
        its, names_ = self.recipe, self.names
        check_answers(its, its.prompts, of_phase(self.rows, "answers"), names_, "questions")
        rows = self._asked("proof", its.prompts, names_)
        check_answers(its, its.prompts, rows, names_, "proved")
        if its.elsewhere is not None:
            names_ = proving(its.elsewhere)
            rows = self._asked("elsewhere", its.elsewhere, names_)
            check_answers(its, its.elsewhere, rows, names_, "proved-elsewhere")

    def _asked(self, phase: str, prompts: Prompts, its: Sequence[str]) -> list[Measured]:
        """The questions of a phase, answered and not patched; nothing of it is kept."""
        asked, found = self._pairs(phase), []
        for first in range(0, len(asked), PIECE):
            piece = asked[first : first + PIECE]
            found += self._each(piece, lambda batch: self._answers(batch, its), prompts)
        return found

    def _pairs(self, phase: str) -> list[Paired]:
        its, seed, count = self.recipe, self.recipe.seeds[0], dict(self.recipe.phases)[phase]
        if phase == "proof":
            return pairs(self.local, its.prompts, seed, self._first[-1].index + 1, count)
        if phase == "elsewhere":
            assert its.elsewhere is not None
            return pairs(self.local, its.elsewhere, seed, 0, count)
        return self._first

    @cached_property
    def digest(self) -> str:
        """The hash of the model's weights."""
        return self.adapter.digest()

    def _check_weights(self) -> None:
        """Refuse another model than the one that the rows are of."""
        if any(row["model"] != self.digest for row in of_phase(self.rows, "answers")):
            raise RunMismatch(
                f"{self.folder.name} was begun with other weights than {self.local.name} has now: "
                f"`hopscope rm {self.folder.name}` and measure again"
            )

    @cached_property
    def _first(self) -> list[Paired]:
        return pairs(
            self.local, self.recipe.prompts, self.recipe.seeds[0], 0, self.recipe.questions
        )

    @cached_property
    def _cells(self) -> list[Cell]:
        return cells(self.recipe, self.rows, self.layers)

    @cached_property
    def _peaks(self) -> list[Cell]:
        return peaks(self.recipe, self.rows, self.layers)

    def answers(self, piece: Sequence[Paired]) -> list[Measured]:
        """How the questions are answered as they are."""
        return self._each(piece, lambda batch: self._answers(batch, self.names))

    def _answers(self, batch: Batch, its: Sequence[str]) -> list[Measured]:
        clean = batch.clean(its)
        right = batch.right()
        return [
            {
                "model": self.digest,
                "shape": [self.adapter.layers, self.adapter.heads],
                "acceptable": len(pair.answers.acceptable),
                "right": right[row],
                "clean": self._clean(clean, its, row),
            }
            for row, pair in enumerate(batch.pairs)
        ]

    def by_role(self, piece: Sequence[Paired]) -> list[Measured]:
        """Every role's stream before every layer, and what the logit lens sees there."""
        return self._each(piece, self._by_role)

    def _by_role(self, batch: Batch) -> list[Measured]:
        clean, moved = batch.clean(self.names), by_role(batch, self.layers, self.names)
        seen = lens(batch, self.layers, range(self.roles))
        return [
            {
                "clean": self._clean(clean, self.names, row),
                "moved": numbers(moved[:, :, :, row]),
                "lens": numbers(seen[:, :, :, row]),
            }
            for row in range(len(batch.pairs))
        ]

    def by_head(self, piece: Sequence[Paired]) -> list[Measured]:
        """Every head's row, where roles gain."""
        return self._each(piece, self._by_head)

    def _by_head(self, batch: Batch) -> list[Measured]:
        clean = batch.clean(self.names)
        moved = [
            by_head(batch, layer, role, [self.names[n] for n in its])
            for layer, role, its in self._cells
        ]
        return [
            {
                "cells": self._cells,
                "clean": self._clean(clean, self.names, row),
                "moved": [numbers(its[:, :, row]) for its in moved],
                "looks": [
                    numbers(batch.own.looks[layer][row, :, role]) for layer, role, _ in self._cells
                ],
            }
            for row in range(len(batch.pairs))
        ]

    def by_path(self, piece: Sequence[Paired]) -> list[Measured]:
        """What the rows that count bring from each role, and what later heads take of it."""
        return self._each(piece, lambda batch: path_rows(self.recipe, self.rows, batch))

    def proof(self, piece: Sequence[Paired]) -> list[Measured]:
        """The circuit knocked out, and alone; and what roles hold where they hold most."""
        return self._each(piece, lambda batch: self._proof(batch, self.recipe.prompts))

    def elsewhere(self, piece: Sequence[Paired]) -> list[Measured]:
        """The circuit on another formulation."""
        other = self.recipe.elsewhere
        assert other is not None
        return self._each(piece, lambda batch: self._proof(batch, other), other)

    def _proof(self, batch: Batch, prompts: Prompts) -> list[Measured]:
        every = names(prompts)
        clean, moved, right = batch.clean(every), self._proved(batch, prompts), batch.right()
        told: list[Measured] = [
            {
                "right": right[row],
                "clean": self._clean(clean, every, row),
                "moved": numbers(moved[:, :, row]),
            }
            for row in range(len(batch.pairs))
        ]
        if prompts == self.recipe.prompts:
            places = [
                (layer, role, [self.names[n] for n in its]) for layer, role, its in self._peaks
            ]
            held = [at_role(batch, *its) for its in places]
            for row, its in enumerate(told):
                its["cells"] = self._peaks
                its["held"] = [numbers(mark) for cell in held for mark in cell[:, row]]
        return told

    def _proved(self, batch: Batch, prompts: Prompts) -> Float[Tensor, "name variant batch mark"]:
        """How answers move; not a number for the random draws that a question does not meet."""
        table, own, its = role_table(prompts), role_table(self.recipe.prompts), self.recipe.tracing
        rows = [
            (layer, head, table.index(own[role]))
            for layer, head, role in circuit_rows(self.recipe, self.rows)
            if own[role] in table
        ]
        shape = (self.adapter.layers, self.adapter.heads, len(table))
        every = proofs(shape, rows, its.draws, self.recipe.seeds[0])
        chosen = [met(pair.index, its.draws, its.met or its.draws) for pair in batch.pairs]
        donor = torch.stack([every[some] for some in chosen], 1)
        exchanged = proving(prompts)
        found = torch.full((len(exchanged), len(every), len(chosen), MARKS), torch.nan).double()
        for number, name in enumerate(exchanged):
            moved = Rerun(donor).marks(batch, name)
            for row, some in enumerate(chosen):
                found[number, some, row] = moved[:, row]
        return found

    def _each(
        self,
        piece: Sequence[Paired],
        measure: Callable[[Batch], list[Measured]],
        prompts: Prompts | None = None,
    ) -> list[Measured]:
        """A row for each question of a piece, in the order of the questions."""
        roles = len(role_table(prompts or self.recipe.prompts))
        found: list[Measured] = []
        for batch in batches(self.adapter, piece, roles):
            measured = measure(batch)
            found += [
                {"index": pair.index, **row}
                for pair, row in zip(batch.pairs, measured, strict=True)
            ]
        return sorted(found, key=lambda row: row["index"])

    def _clean(self, clean: torch.Tensor, its: Sequence[str], row: int) -> dict[str, list[float]]:
        return {name: numbers(clean[n, row]) for n, name in enumerate(its)}


PHASES: dict[str, Callable[[Tracer, Sequence[Paired]], list[Measured]]] = {
    "answers": Tracer.answers,
    "roles": Tracer.by_role,
    "heads": Tracer.by_head,
    "paths": Tracer.by_path,
    "proof": Tracer.proof,
    "elsewhere": Tracer.elsewhere,
}
