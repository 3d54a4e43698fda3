"""Find how a language model comes to its answers, phase by phase, as the work of a run.

    answers    does it answer better than at chance? If not, there is nothing to find
    roles      the stream at one role, before one layer, is the donor's; the logit lens; and how the
               last look-up finds its line
    heads      where a role gains, what each head brings there is the donor's
    paths      for the rows that count: from which role, and what later heads take of it
    proof      fresh questions: the circuit's rows are the donor's; all others; all; random ones
    elsewhere  the same on another formulation

Rows are committed piece by piece. What a phase measures depends on the recipe and the rows of
earlier phases alone, so a run that was killed and resumed ends with the same rows.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from random import Random
from typing import Any

import torch
from torch import Tensor

from hopscope.circuits.engine import Adapter, record
from hopscope.circuits.examples import Examples
from hopscope.circuits.patching import Pairs, Patching, chunks_of, replaceable
from hopscope.configs import LmCircuit, Prompts
from hopscope.errors import RunMismatch
from hopscope.lm.findings import WAYS, Cell, LmFindings, check_answers
from hopscope.lm.model import LanguageModel, load
from hopscope.lm.pairs import Paired, followed, names, pairs, proving, role_table
from hopscope.lm.patching import (
    LOSS,
    Batch,
    at_role,
    batches,
    by_head,
    interchanged,
    lens,
    random_rows,
)
from hopscope.lm.rows import ROWS, Row, RowStepper, numbers, of_phase, rows_of
from hopscope.runs.runner import complete
from hopscope.runs.stepper import MakeStepper, Watcher
from hopscope.store import RunFolder, Store
from hopscope.tasks import Roles

PIECE = 4
"""Questions that are measured between two commits."""
PATCHED = LOSS + 1
"""The numbers of an answer that are kept of a patch; a proof keeps all."""


def prepare(recipe: LmCircuit, device: str) -> MakeStepper:
    """The stepper of a circuit's run, with a model that is on this machine."""
    local = load(recipe.model, recipe.dtype, device, recipe.template, max_tokens=1)
    return lambda folder: search(recipe, local, folder)


def find_circuit(
    recipe: LmCircuit,
    local: Callable[[], LanguageModel],
    store: Store | str | None = None,
    watcher: Watcher | None = None,
) -> RunFolder:
    """Find the circuit in a model of your own, or continue where the run was; returns the complete
    run. The model is only made if there is something to measure.
    """
    store = store if isinstance(store, Store) else Store(store)
    made = None if store.has_complete(recipe) else local()
    return complete(recipe, lambda folder: search(recipe, made or local(), folder), store, watcher)


def search(recipe: LmCircuit, local: LanguageModel, folder: RunFolder) -> RowStepper:
    """The stepper of a circuit's run: measures what is not measured yet."""
    adapter = replaceable(local.model)
    stepper = RowStepper(folder, ROWS, rows_of, adapter.device, recipe.dtype)
    stepper.pieces = CircuitSearch(recipe, local, adapter, stepper.rows, folder.name).pieces()
    return stepper


class CircuitSearch:
    """Everything that is measured to find one circuit. `rows` grow as it is measured."""

    def __init__(
        self,
        recipe: LmCircuit,
        local: LanguageModel,
        adapter: Adapter,
        rows: list[Row],
        name: str,
    ) -> None:
        self.recipe, self.local, self.adapter, self.rows = recipe, local, adapter, rows
        self.run_name, self.names = name, followed(recipe)
        self.digest = adapter.digest()

    def pieces(self) -> Iterator[list[Row]]:
        """The rows that are not measured yet, phase by phase, piece by piece."""
        if any(row["model"] != self.digest for row in of_phase(self.rows, "answers")):
            raise RunMismatch(
                f"{self.run_name} was begun with other weights than {self.local.name} has now: "
                f"`hopscope rm {self.run_name}` and measure again"
            )
        measures = {
            "answers": self.answers,
            "roles": self.by_role,
            "heads": self.by_head,
            "paths": self.by_path,
            "proof": self.proof,
            "elsewhere": lambda batch: self._exchanged(batch, self._prompts("elsewhere")),
        }
        for phase, count in self.recipe.phases:
            self.earlier = LmFindings(self.recipe, list(self.rows))
            done = len(of_phase(self.rows, phase))
            if phase == "roles" and not done:
                self._check()
            if done < count:
                asked, prompts = self._pairs(phase)[done:], self._prompts(phase)
                for rows in self._measured(asked, prompts, measures[phase]):
                    yield [{"phase": phase, **row} for row in rows]

    def _check(self) -> None:
        """Refuse, before any patch, a model that answers either formulation at chance."""
        rows = of_phase(self.rows, "answers")
        check_answers(self.recipe, self.recipe.prompts, rows, self.names)
        if (other := self.recipe.elsewhere) is not None:
            exchanged = proving(other)
            pieces = self._measured(
                self._pairs("elsewhere"), other, lambda batch: self.answers(batch, exchanged)
            )
            check_answers(self.recipe, other, [row for rows in pieces for row in rows], exchanged)

    def _pairs(self, phase: str) -> list[Paired]:
        count = dict(self.recipe.phases)[phase]
        if phase not in ("proof", "elsewhere"):
            return self._first[:count]
        start = self._first[-1].index + 1 if phase == "proof" else 0
        return pairs(self.local, self._prompts(phase), self.recipe.seeds[0], start, count)

    @cached_property
    def _first(self) -> list[Paired]:
        recipe = self.recipe
        return pairs(self.local, recipe.prompts, recipe.seeds[0], 0, recipe.questions)

    def _prompts(self, phase: str) -> Prompts:
        """The kind of questions of a phase."""
        other = self.recipe.elsewhere if phase == "elsewhere" else None
        return other or self.recipe.prompts

    @cached_property
    def _cells(self) -> list[Cell]:
        return self.earlier.gaining

    @cached_property
    def _peaks(self) -> list[Cell]:
        return self.earlier.peaks

    def _measured(
        self,
        asked: Sequence[Paired],
        prompts: Prompts,
        measure: Callable[[Batch], list[Row]],
    ) -> Iterator[list[Row]]:
        """A row for each question, in the order of the questions, piece by piece."""
        for first in range(0, len(asked), PIECE):
            found: list[Row] = []
            with torch.no_grad():
                piece = asked[first : first + PIECE]
                for batch in batches(self.adapter, piece, len(role_table(prompts))):
                    rows = zip(batch.pairs, measure(batch), strict=True)
                    found += [{"index": pair.index, **row} for pair, row in rows]
            yield sorted(found, key=lambda row: row["index"])

    def answers(self, batch: Batch, exchanged: Sequence[str] = ()) -> list[Row]:
        """How the model answers the questions, unpatched."""
        shape = [self.adapter.layers, self.adapter.heads]
        return _rows(
            batch,
            model=[self.digest] * len(batch.pairs),
            shape=[shape] * len(batch.pairs),
            acceptable=[len(pair.answers.acceptable) for pair in batch.pairs],
            right=batch.right(),
            clean=_clean(batch, exchanged or self.names),
        )

    def by_role(self, batch: Batch) -> list[Row]:
        """Each role's stream before each layer, the logit lens there, and the last look-up."""
        layers = self.earlier.layers
        moved = torch.stack(
            [
                torch.stack([at_role(batch, layer, role, self.names) for layer in layers])
                for role in range(batch.roles)
            ]
        )[..., :PATCHED]  # fmt: skip  [role, layer, name, batch, mark]
        return _rows(
            batch,
            clean=_clean(batch, self.names),
            moved=[numbers(each) for each in moved.permute(3, 2, 0, 1, 4)],
            lens=[numbers(each) for each in lens(batch, layers).movedim(3, 0)],
            last=_last_look_up(batch, layers),
        )

    def by_head(self, batch: Batch) -> list[Row]:
        """The row of each head, where roles gain."""
        moved, attention = [], []
        for layer, role, exchanged in self._cells:
            names_ = [self.names[n] for n in exchanged]
            moved.append(by_head(batch, layer, role, names_)[..., :PATCHED].movedim(2, 0))
            attention.append(batch.attention(layer)[:, :, role].cpu())
        each = range(len(batch.pairs))
        return _rows(
            batch,
            cells=[self._cells for _ in each],
            clean=_clean(batch, self.names),
            moved=[[numbers(cell[n]) for cell in moved] for n in each],
            attention=[[numbers(cell[n]) for cell in attention] for n in each],
        )

    def by_path(self, batch: Batch) -> list[Row]:
        """What the rows that count bring from each role, and what later heads take of it."""
        symbols, follows = self.recipe.prompts.graph().symbols, self.earlier.sites
        sites = list(follows)
        moved = torch.zeros(len(symbols), len(sites), len(WAYS), 2, len(batch.pairs)).double()
        for number, symbol in enumerate(symbols):
            some = [n for n, site in enumerate(sites) if symbol in follows[site]]
            if not some:
                continue
            asked = as_pairs(self.recipe.prompts, batch, symbol)
            most = max(Counter(sites[n].layer for n in some).values())
            chunks = chunks_of(self.adapter, asked.examples, most * len(WAYS))
            variants = [(n, symbol) for n in some]
            parts = [Patching(self.adapter, asked, sites, c).moved(variants, WAYS) for c in chunks]
            marks = torch.cat([part[1] for part in parts], 3)[..., 0]
            moved[number, some] = marks.permute(2, 1, 0, 3)
        return _rows(
            batch,
            sites=[[str(site) for site in sites]] * len(batch.pairs),
            clean=_clean(batch, symbols),
            moved=[numbers(each) for each in moved.movedim(-1, 0)],
        )

    def proof(self, batch: Batch) -> list[Row]:
        """The circuit exchanged, and alone; and what roles hold where they hold most."""
        rows = self._exchanged(batch, self.recipe.prompts)
        holds = [
            at_role(batch, layer, role, [self.names[n] for n in exchanged])
            for layer, role, exchanged in self._peaks
        ]
        for number, row in enumerate(rows):
            row["cells"] = self._peaks
            row["held"] = [numbers(marks) for cell in holds for marks in cell[:, number, :PATCHED]]
        return rows

    def _exchanged(self, batch: Batch, prompts: Prompts) -> list[Row]:
        """How answers move if these rows are the donor's: the circuit's, all others, all, and
        random ones; then each row of the circuit alone.
        """
        table, own = role_table(prompts), self.earlier.roles
        rows = sorted(
            (row.layer, row.head, table.index(own[row.role]))
            for row, _ in self.earlier.chosen
            if own[row.role] in table
        )
        shape = (self.adapter.layers, self.adapter.heads, len(table))
        circuit = torch.zeros(shape, dtype=torch.bool)
        for row in rows:
            circuit[row] = True
        variants = [circuit, ~circuit, torch.ones_like(circuit), torch.zeros_like(circuit)]
        donor = torch.stack(variants)[:, None].repeat(1, len(batch.pairs), 1, 1, 1)
        for number, pair in enumerate(batch.pairs):
            rng = Random(self.recipe.seeds[0] * 1_000_003 + pair.index)  # noqa: S311
            for row in random_rows(shape, rows, rng):
                donor[(-1, number, *row)] = True
        exchanged = proving(prompts)
        moved = torch.stack([interchanged(batch, name, donor) for name in exchanged])
        single = torch.zeros(len(moved), len(rows), len(batch.pairs), PATCHED).double()
        for number, row in enumerate(rows):
            alone = torch.zeros_like(donor[:1])
            alone[(0, slice(None), *row)] = True
            for n, name in enumerate(exchanged):
                single[n, number] = interchanged(batch, name, alone)[0, :, :PATCHED]
        return _rows(
            batch,
            right=batch.right(),
            clean=_clean(batch, names(prompts)),
            moved=[numbers(each) for each in moved.movedim(2, 0)],
            rows=[numbers(each) for each in single.movedim(2, 0)],
        )


def _rows(batch: Batch, **columns: Sequence[Any]) -> list[Row]:
    """A row for each question, of columns with an entry for each question."""
    return [{name: column[n] for name, column in columns.items()} for n in range(len(batch.pairs))]


def _clean(batch: Batch, exchanged: Sequence[str]) -> list[dict[str, list[float]]]:
    """The numbers of the own answers, for each question and exchange."""
    marks = batch.clean(exchanged)[..., :PATCHED]
    return [
        {name: numbers(marks[n, row]) for n, name in enumerate(exchanged)}
        for row in range(len(batch.pairs))
    ]


def _last_look_up(batch: Batch, layers: Sequence[int]) -> list[list[list[float]] | None]:
    """For each question and layer, if the stream where the answer is given is the donor's: the
    probability among the acceptable answers of the own one, of those by position, by word and by
    pointer; and of the new answer, if the donor has that.
    """
    found: dict[int, list[list[float]]] = {n: [] for n, pair in enumerate(batch.pairs) if pair.last}
    if found:
        some = Batch(batch.adapter, [batch.pairs[n] for n in found], batch.roles)
        look_ups = [pair.last for pair in some.pairs if pair.last]
        donors = [
            record(batch.adapter, torch.tensor(tokens, device=some.tokens.device)).streams
            for tokens in ([each.donor for each in look_ups], [each.outside for each in look_ups])
        ]
    for layer in layers if found else ():
        end = some.onward(layer, torch.stack([streams[layer][:, -1:] for streams in donors]))
        logits = batch.adapter.unembed(end.flatten(0, 1))[:, -1].float().unflatten(0, (2, -1))
        for row, (n, look_up) in enumerate(zip(found, look_ups, strict=True)):
            acceptable = list(batch.pairs[n].answers.acceptable)
            shares = logits[0, row, acceptable].softmax(-1)
            new = logits[1, row, [*acceptable, look_up.new]].softmax(-1)[-1]
            found[n].append(numbers([
                *(shares[acceptable.index(token)].cpu() for token in look_up.answers), new.cpu()
            ]))  # fmt: skip
    return [found.get(n) for n, _ in enumerate(batch.pairs)]


def as_pairs(prompts: Prompts, batch: Batch, name: str) -> Pairs:
    """The pairs of one exchange in the form of `hopscope.circuits`; the last position answers."""
    answers = [pair.answers for pair in batch.pairs]
    examples = Examples(
        inputs=batch.tokens,
        roles=Roles(batch.role, batch.chain),
        table=role_table(prompts),
        losses=_Losses([(each.own,) for each in answers]),
        chance=1.0,
        read=1,
    )
    return Pairs(
        examples=examples,
        other=_Losses([(each.others[name],) for each in answers]),
        third=_Losses([each.thirds(name) for each in answers]),
        counterfactuals={name: batch.donors[name]},
        hops=(len(prompts.graph().facts),),
    )


class _Losses:
    """The mean logit of some tokens, negative: losses, up to what all answers have in common."""

    def __init__(self, tokens: Sequence[tuple[int, ...]]) -> None:
        self.tokens = tokens

    def __call__(self, outputs: Tensor) -> Tensor:
        last = outputs[..., -1, :].float()
        rows = [last[..., n, list(some)].mean(-1) for n, some in enumerate(self.tokens)]
        return -torch.stack(rows, -1)[..., None]
