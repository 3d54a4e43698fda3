"""Measure the circuit of a language model, phase by phase, as the steps of a run.

    answers    accuracy of the unpatched model; at chance the search ends with an error
    roles      patch the residual stream at one role before one layer; the logit lens; how the last
               look-up finds its line
    heads      where a role gains, patch the output of each head there
    paths      for the rows that count: patch by source role, and by what later heads read
    proof      on fresh questions: patch the circuit's rows; all others; all; random ones
    elsewhere  the same on another formulation

To patch is to take the activation from the donor question. Rows are committed piece by piece. The
measurements of a phase depend only on the recipe and the rows of earlier phases, so a run that was
killed and resumed ends with the same rows.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from random import Random
from typing import Any

import torch
from einops import rearrange
from torch import Tensor

from hopscope.circuits.account import WAYS
from hopscope.circuits.examples import Examples
from hopscope.circuits.patching import LossFunction, Pairs, patched
from hopscope.configs import LmCircuit, Prompts
from hopscope.lm.findings import LmFindings, check_above_chance
from hopscope.lm.model import LanguageModel, load
from hopscope.lm.pairs import (
    LAST,
    NEW,
    Paired,
    exchange_names,
    followed,
    pairs,
    proving,
    role_table,
)
from hopscope.lm.patching import (
    PIECE,
    Mark,
    PairBatch,
    at_role,
    decoder,
    in_batches,
    interchanged,
    lens,
    random_rows,
)
from hopscope.lm.rows import (
    ROWS,
    RowStepper,
    SavedRow,
    as_lists,
    of_phase,
    other_weights,
    saved_rows,
)
from hopscope.runs.stepper import MakeStepper
from hopscope.store import RunFolder
from hopscope.tasks import Roles

PATCHED = Mark.LOSS + 1
"""How many of the `Mark` numbers are kept for a patch; a proof keeps all."""


def prepare(recipe: LmCircuit, device: str) -> MakeStepper:
    """Return a function that makes the stepper of a circuit's run; loads the model."""
    local = load(recipe.model, recipe.dtype, device, recipe.template, max_tokens=1)
    return partial(search, recipe, local)


def search(recipe: LmCircuit, local: LanguageModel, folder: RunFolder) -> RowStepper:
    """Return the stepper of a circuit's run, which measures the missing rows."""
    stepper = RowStepper(folder, ROWS, saved_rows, local.device, recipe.dtype)
    stepper.pieces = CircuitSearch(recipe, local, stepper.rows, folder).pieces()
    return stepper


class CircuitSearch:
    """The measurements for one circuit. `rows` grows as they are made."""

    def __init__(
        self, recipe: LmCircuit, local: LanguageModel, rows: list[SavedRow], folder: RunFolder
    ) -> None:
        self.recipe, self.local, self.rows, self.folder = recipe, local, rows, folder
        self.names, self.adapter = followed(recipe), decoder(local)
        self.digest = self.adapter.digest()

    def pieces(self) -> Iterator[list[SavedRow]]:
        """Measure and yield the missing rows, phase by phase, in pieces."""
        if any(row["model"] != self.digest for row in of_phase(self.rows, "answers")):
            raise other_weights(self.folder, self.local.name, "measure")
        measures = {
            "answers": self.answers,
            "roles": self.by_role,
            "heads": self.by_head,
            "paths": self.by_path,
            "proof": self.proof,
            "elsewhere": lambda batch: self._exchanged(batch, self.recipe.prompts_of("elsewhere")),
        }
        for phase, count in self.recipe.phases:
            self.earlier = LmFindings(self.recipe, list(self.rows))
            done = len(of_phase(self.rows, phase))
            if phase == "roles" and not done:
                self._check()
            if done < count:
                for rows in self._measured(phase, measures[phase], done):
                    yield [{"phase": phase, **row} for row in rows]

    def _check(self) -> None:
        """Raise NotLearned, before any patch, if the model answers a formulation at chance."""
        rows = of_phase(self.rows, "answers")
        check_above_chance(self.recipe, self.recipe.prompts, rows, self.names)
        if (other := self.recipe.elsewhere) is not None:
            answers = partial(self.answers, exchanged=proving(other))
            rows = [row for rows in self._measured("elsewhere", answers) for row in rows]
            check_above_chance(self.recipe, other, rows, proving(other))

    def _pairs(self, phase: str) -> list[Paired]:
        count = dict(self.recipe.phases)[phase]
        if phase not in ("proof", "elsewhere"):
            return self._first[:count]
        start = self._first[-1].index + 1
        return pairs(self.local, self.recipe.prompts_of(phase), self.recipe.seeds[0], start, count)

    @cached_property
    def _first(self) -> list[Paired]:
        recipe = self.recipe
        return pairs(self.local, recipe.prompts, recipe.seeds[0], 0, recipe.questions)

    def _measured(
        self, phase: str, measure: Callable[[PairBatch], list[SavedRow]], done: int = 0
    ) -> Iterator[list[SavedRow]]:
        """Yield a row for each question of a phase, in order, in pieces."""
        asked, roles = self._pairs(phase)[done:], len(role_table(self.recipe.prompts_of(phase)))
        for first in range(0, len(asked), PIECE):
            piece = asked[first : first + PIECE]
            with torch.no_grad():
                rows = in_batches(self.adapter, piece, roles, measure)
            yield [{"index": pair.index, **row} for pair, row in zip(piece, rows, strict=True)]

    def answers(self, batch: PairBatch, exchanged: Sequence[str] = ()) -> list[SavedRow]:
        """Measure the answers of the unpatched model."""
        shape = [self.adapter.layers, self.adapter.heads]
        return _rows(
            batch,
            model=[self.digest] * len(batch.pairs),
            shape=[shape] * len(batch.pairs),
            acceptable=[len(pair.acceptable) for pair in batch.pairs],
            right=batch.right(),
            clean=_clean(batch, exchanged or self.names),
        )

    def by_role(self, batch: PairBatch) -> list[SavedRow]:
        """Patch each role's stream before each layer; also the logit lens and the last look-up."""
        layers = self.earlier.layers
        cells = [(layer, role) for role in range(batch.roles) for layer in layers]
        moved = torch.stack([at_role(batch, *cell, self.names) for cell in cells])[..., :PATCHED]
        moved = rearrange(
            moved, "(role layer) name batch mark -> batch name role layer mark", layer=len(layers)
        )
        return _rows(
            batch,
            clean=_clean(batch, self.names),
            moved=as_lists(moved),
            lens=as_lists(lens(batch, layers).movedim(3, 0)),
            last=_last_look_up(batch, layers),
        )

    def by_head(self, batch: PairBatch) -> list[SavedRow]:
        """Patch the output of each head in the layers and roles where roles gain."""
        moved, attention = [], []
        for layer, role, exchanged in self.earlier.gaining:
            each = [batch.these([(layer, head, role)]) for head in range(self.adapter.heads)]
            donor = torch.stack(each)[:, None].expand(-1, len(batch.pairs), -1, -1, -1)
            found = torch.stack([interchanged(batch, self.names[n], donor) for n in exchanged])
            moved.append(found[..., :PATCHED].movedim(2, 0))
            attention.append(batch.attention(layer)[:, :, role].cpu())
        questions = range(len(batch.pairs))
        return _rows(
            batch,
            cells=[self.earlier.gaining for _ in questions],
            clean=_clean(batch, self.names),
            moved=[[as_lists(cell[n]) for cell in moved] for n in questions],
            attention=[[as_lists(cell[n]) for cell in attention] for n in questions],
        )

    def by_path(self, batch: PairBatch) -> list[SavedRow]:
        """Patch the rows that count, by source role and by what later heads read (`WAYS`)."""
        symbols, follows = self.recipe.prompts.graph().symbols, self.earlier.sites
        sites = list(follows)
        moved = torch.zeros(len(symbols), len(sites), len(WAYS), 2, len(batch.pairs)).double()
        for number, symbol in enumerate(symbols):
            some = [n for n, site in enumerate(sites) if symbol in follows[site]]
            if some:
                asked = as_pairs(self.recipe.prompts, batch, symbol)
                _, marks = patched(self.adapter, asked, sites, [(n, symbol) for n in some])
                moved[number, some] = marks[..., 0].permute(2, 1, 0, 3)
        return _rows(
            batch,
            sites=[[str(site) for site in sites]] * len(batch.pairs),
            clean=_clean(batch, symbols),
            moved=as_lists(moved.movedim(-1, 0)),
        )

    def proof(self, batch: PairBatch) -> list[SavedRow]:
        """Patch the circuit and its complement; patch roles at the layers in `peaks`."""
        rows = self._exchanged(batch, self.recipe.prompts)
        holds = [
            at_role(batch, layer, role, [self.names[n] for n in exchanged])
            for layer, role, exchanged in self.earlier.peaks
        ]
        for number, row in enumerate(rows):
            row["cells"] = self.earlier.peaks
            row["held"] = [as_lists(marks) for cell in holds for marks in cell[:, number, :PATCHED]]
        return rows

    def _exchanged(self, batch: PairBatch, prompts: Prompts) -> list[SavedRow]:
        """Measure how answers move if attention rows are taken from the donor.

        These are the circuit's rows, all others, all, and random ones; then each row of the circuit
        alone.
        """
        rows = self.earlier.rows_by(role_table(prompts))
        count, exchanged = len(batch.pairs), proving(prompts)
        circuit = batch.these(rows)
        seeds = (self.recipe.seeds[0] * 1_000_003 + pair.index for pair in batch.pairs)
        shape = self.adapter.layers, self.adapter.heads
        drawn = [random_rows(*shape, rows, Random(seed)) for seed in seeds]  # noqa: S311
        same = [each.expand(count, *circuit.shape) for each in (circuit, ~circuit, circuit | True)]
        donor = torch.stack([*same, torch.stack([batch.these(each) for each in drawn])])
        moved = torch.stack([interchanged(batch, name, donor) for name in exchanged])
        single = torch.zeros(len(moved), len(rows), count, PATCHED).double()
        for number, row in enumerate(rows):
            alone = batch.these([row]).expand(1, count, *circuit.shape)
            for n, name in enumerate(exchanged):
                single[n, number] = interchanged(batch, name, alone)[0, :, :PATCHED]
        return _rows(
            batch,
            right=batch.right(),
            clean=_clean(batch, exchange_names(prompts)),
            moved=as_lists(moved.movedim(2, 0)),
            rows=as_lists(single.movedim(2, 0)),
        )


def _rows(batch: PairBatch, **columns: Sequence[Any]) -> list[SavedRow]:
    """Return a row for each question from columns with an entry for each question."""
    return [{name: column[n] for name, column in columns.items()} for n in range(len(batch.pairs))]


def _clean(batch: PairBatch, exchanged: Sequence[str]) -> list[dict[str, list[float]]]:
    """Return the `Mark` numbers without a patch, for each question and exchange."""
    marks = batch.clean(exchanged)[..., :PATCHED]
    return [
        {name: as_lists(marks[n, row]) for n, name in enumerate(exchanged)}
        for row in range(len(batch.pairs))
    ]


def _last_look_up(batch: PairBatch, layers: Sequence[int]) -> list[list[list[float]] | None]:
    """Patch the stream at the answer's position before each layer; return probabilities.

    For each question (None without these donors) and layer: the probabilities, among the acceptable
    answers, of the own answer and of those by position, by word and by pointer; and the probability
    of the new answer with the donor `NEW`.
    """
    if LAST not in batch.donors:
        return [None for _ in batch.pairs]
    found: list[list[list[float]] | None] = []
    donors = [batch.given(name).streams for name in (LAST, NEW)]
    logs = torch.stack(
        [
            batch.logs(
                batch.onward(layer, torch.stack([streams[layer][:, -1:] for streams in donors]))
            )
            for layer in layers
        ]
    )  # fmt: skip  [layer, donor, batch, vocabulary]
    for row, pair in enumerate(batch.pairs):
        acceptable, (*bound, new) = list(pair.acceptable), pair.bound
        shares = logs[:, 0, row, acceptable].softmax(-1)
        own = [acceptable.index(token) for token in (pair.answer, *bound)]
        others = logs[:, 1, row, [*acceptable, new]].softmax(-1)
        found.append(as_lists(torch.cat([shares[:, own], others[:, -1:]], -1).cpu()))
    return found


def as_pairs(prompts: Prompts, batch: PairBatch, name: str) -> Pairs:
    """Convert the pairs of one exchange for `hopscope.circuits`; the last position answers."""
    examples = Examples(
        inputs=batch.tokens,
        roles=Roles(batch.role, batch.chain),
        table=role_table(prompts),
        losses=_losses([(pair.answer,) for pair in batch.pairs]),
        chance=1.0,
        read=1,
    )
    return Pairs(
        examples=examples,
        other=_losses([(pair.others[name],) for pair in batch.pairs]),
        third=_losses([pair.thirds(name) for pair in batch.pairs]),
        counterfactuals={name: batch.donors[name]},
        hops=(len(prompts.graph().facts),),
    )


def _losses(tokens: Sequence[tuple[int, ...]]) -> LossFunction:
    """Return a function for the negative mean logit of some tokens of each question.

    It is a loss up to a constant that all answers share.
    """

    def of(outputs: Tensor) -> Tensor:
        last = outputs[..., -1, :].float()
        rows = [last[..., n, list(some)].mean(-1) for n, some in enumerate(tokens)]
        return -torch.stack(rows, -1)[..., None]

    return of
