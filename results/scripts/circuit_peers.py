"""auto-circuit's ACDC and edge attribution patching on planted models, for circuit_tools.py.

The model becomes a TransformerLens model whose embedding is the input map; edges between
components at a position (wires) are translated back into heads and rows.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from known_circuits import Case, Found, Head, Row, Score, grade, heads_of, rows_of
from torch import Tensor, nn

from hopscope.configs import VectorTask
from hopscope.facts import Role
from hopscope.models import Transformer
from hopscope.models.layers import Affine
from hopscope.models.transformer import Block
from hopscope.tasks import Batch, dataset

EAP_BATCH = 16
CUTS = 60
"""Sizes of a circuit that are tried for scores, in even ratios."""
TAUS = tuple(10.0**-exponent for exponent in range(2, 8))
"""Thresholds of ACDC, in mean squared error."""
TAU = 1e-3
"""The one that a large model gets: with it, most models are graded best."""
SAME = 1e-3
"""Outputs this close are those of the same model. Without noise they are within 1e-6; with it,
scores of some thousand nearly tie, and the rounding of float32 alone moves answers by 2e-4."""

Input = Literal["Q", "K", "V", "end"]


@dataclass(frozen=True)
class Wire:
    """An edge between components at a position; no source is the input, no target the output."""

    source: Head | None
    target: Head | None
    into: Input
    position: int


def live(wires: Iterable[Wire], layers: int, length: int, read: int) -> dict[Head, set[int]]:
    """Positions at which a head writes something that came from the input and gets to the output.

    What enters a head by keys or values can leave it at any later position.
    """
    kept = list(wires)
    reached, used = _reached(kept, layers, length), _used(kept, layers, length - read)
    both = {head: places & used.get(head, set()) for head, places in reached.items()}
    return {head: places for head, places in both.items() if places}


def _reached(wires: Sequence[Wire], layers: int, length: int) -> dict[Head, set[int]]:
    """Where heads write something that came from the input."""
    reached: dict[Head, set[int]] = {}
    for layer in range(layers):
        for wire in wires:
            if wire.target is None or wire.target[0] != layer:
                continue
            if wire.source is None or wire.position in reached.get(wire.source, ()):
                after = wire.position + 1 if wire.into == "Q" else length
                reached.setdefault(wire.target, set()).update(range(wire.position, after))
    return reached


def _used(wires: Sequence[Wire], layers: int, first: int) -> dict[Head, set[int]]:
    """Where heads write something that gets to the output, which is read from the first on."""
    used: dict[Head, set[int]] = {}

    def arrives(wire: Wire) -> bool:
        if wire.target is None:
            return wire.position >= first
        there = used.get(wire.target, set())
        if wire.into == "Q":
            return wire.position in there
        return wire.position <= max(there, default=-1)

    for layer in reversed(range(layers)):
        for wire in wires:
            if wire.source is not None and wire.source[0] == layer and arrives(wire):
                used.setdefault(wire.source, set()).add(wire.position)
    return used


def rows_at(
    places: dict[Head, set[int]], positions: dict[Role, set[int]], enough: float
) -> set[Row]:
    """Rows of which more than a share of the role's positions is live."""
    return {
        (*head, role)
        for head, live_at in places.items()
        for role, own in positions.items()
        if len(live_at & own) > enough * len(own)
    }


def best(found: Sequence[set[Any]], true: set[Any]) -> tuple[Score, int]:
    """The best grade of all, and whose it is."""
    grades = [grade(each, true) for each in found]
    number = max(range(len(grades)), key=lambda n: grades[n].f1)
    return grades[number], number


class InputMap(nn.Module):
    """An embedding of vectors."""

    def __init__(self, source: Affine) -> None:
        super().__init__()
        self.source = source

    def forward(self, inputs: Tensor) -> Tensor:
        embedded: Tensor = self.source(inputs)
        return embedded


class NoPositions(nn.Module):
    """Positions are part of the vectors."""

    def forward(self, inputs: Tensor, *_: object) -> Tensor:
        return inputs.new_zeros(1)


@torch.no_grad()
def hooked(model: Transformer) -> Any:
    """The same model in TransformerLens."""
    from transformer_lens import HookedTransformer, HookedTransformerConfig

    config, interface = model.config, model.interface
    assert isinstance(model.input, Affine)
    twin = HookedTransformer(
        HookedTransformerConfig(
            n_layers=config.layers, n_heads=config.heads, d_model=config.d_model,
            d_head=config.head_width, n_ctx=interface.length, d_vocab=1,
            d_vocab_out=interface.outputs, attn_only=True, normalization_type=None,
            use_attn_result=True, use_split_qkv_input=True, device="cpu",
        )
    )  # fmt: skip
    twin.embed, twin.pos_embed = InputMap(model.input), NoPositions()
    for block, copy in zip(model.blocks, twin.blocks, strict=True):
        assert isinstance(block, Block)
        copy_attention(block, copy.attn, config.heads)
    twin.unembed.W_U.copy_(model.head.weight.T)
    twin.unembed.b_U.copy_(model.head.bias)
    return twin


def copy_attention(block: Block, copy: Any, heads: int) -> None:
    attention = block.attention
    for letter, source in zip(
        "QKV", (attention.query, attention.key, attention.value), strict=True
    ):
        getattr(copy, f"W_{letter}").copy_(source.weight.unflatten(0, (heads, -1)).mT)
        if source.bias is not None:
            getattr(copy, f"b_{letter}").copy_(source.bias.unflatten(0, (heads, -1)))
    copy.W_O.copy_(attention.out.weight.T.unflatten(0, (heads, -1)))
    copy.b_O.copy_(attention.out.bias)


class Peers:
    """auto-circuit's tools on one model."""

    def __init__(self, case: Case, examples: int) -> None:
        from auto_circuit.utils.graph_utils import patchable_model

        self.grown = grown = case.grown
        self.batch = dataset(grown.task, 0, examples, "validation")
        interface = grown.model.interface
        self.length, self.read = interface.length, interface.read
        twin = hooked(grown.model)
        with torch.no_grad():
            outputs = twin(self.batch.inputs)[:, -self.read :]
            self.parity = float((outputs - grown.model(self.batch.inputs)).abs().max())
        if self.parity > SAME:
            raise SystemExit(f"{case.name}: outputs differ by {self.parity:.1e}")
        self.model = patchable_model(
            twin, factorized=True, seq_len=self.length, separate_qkv=True, slice_output=None
        )
        # The slices on offer are the last position and all but the first; we read the last few.
        self.model.out_slice = (slice(None), slice(-self.read, None))
        # A set's order changes from process to process, and with it what ACDC finds.
        self.model.edges = sorted(self.model.edges, key=lambda e: (e.name, e.seq_idx))

    def acdc(self, examples: int, edges: int) -> Found:
        """Mean squared error between the outputs with and without an edge; with more edges than
        said, at one threshold.
        """
        from auto_circuit.prune_algos.ACDC import acdc_prune_scores

        taus = TAUS if len(self.model.edges) <= edges else (TAU,)
        pairs = self._pairs(examples, examples, squared=True)
        kept, times = [], []
        for tau in taus:
            begun = time.perf_counter()
            scores = acdc_prune_scores(
                self.model, pairs, None, tao_exps=[0], tao_bases=[tau], faithfulness_target="mse"
            )
            times.append(time.perf_counter() - begun)
            kept.append([wire for wire, score in self._scored(scores) if score == torch.inf])
        settings = [f"tau {tau:.0e}" for tau in taus]
        return self._graded(sorted(times)[len(times) // 2], kept, settings)

    def eap(self, squared: bool, steps: int | None) -> Found:
        """Gradients with respect to the masks of the edges: at the model itself, or integrated."""
        from auto_circuit.prune_algos.mask_gradient import mask_gradient_prune_scores

        pairs = self._pairs(len(self.batch), EAP_BATCH, squared)
        begun = time.perf_counter()
        scores = mask_gradient_prune_scores(
            self.model, pairs, None, grad_function="logit",
            answer_function="mse" if squared else "avg_diff",
            mask_val=None if steps else 0.0, integrated_grad_samples=steps,
        )  # fmt: skip
        seconds = time.perf_counter() - begun
        ranked = sorted(self._scored(scores), key=lambda each: -abs(each[1]))
        wires = [wire for wire, score in ranked if score]
        sizes = sorted({round(len(wires) ** (n / (CUTS - 1))) for n in range(CUTS)})
        return self._graded(seconds, [wires[:n] for n in sizes], [f"{n} edges" for n in sizes])

    def _pairs(self, examples: int, size: int, squared: bool) -> list[Any]:
        """Examples, the next ones to corrupt them, and what the answers are held against.

        That is the answers themselves, for their squared error; or the numbers of the outputs that
        should be 1, and of those that would be for the corrupt example.
        """
        from auto_circuit.data import PromptPairBatch

        clean, targets = self.batch.inputs[:examples], self.batch.targets[:examples]
        corrupt = clean.roll(1, 0)
        first = targets.shape[-1] * torch.arange(targets.shape[-2])
        answers = targets.flatten(-2) if squared else first + targets.argmax(-1)
        wrong = answers.roll(1, 0)
        parts = zip(*(each.split(size) for each in (clean, corrupt, answers, wrong)), strict=True)
        return [PromptPairBatch(number, 0, *part) for number, part in enumerate(parts)]

    def _scored(self, scores: dict[str, Tensor]) -> Iterator[tuple[Wire, float]]:
        listed = {name: tensor.tolist() for name, tensor in scores.items()}
        for edge in self.model.edges:
            score: Any = listed[edge.dest.module_name]
            for index in edge.patch_idx:
                score = score[index]
            yield _wire(edge), score

    def _graded(
        self, seconds: float, circuits: Sequence[Sequence[Wire]], settings: Sequence[str]
    ) -> Found:
        layers = self.grown.model.config.layers
        places = [live(wires, layers, self.length, self.read) for wires in circuits]
        heads, at = best([set(each) for each in places], heads_of(self.grown.paths))
        notes: list[tuple[str, object]] = [("edges", len(self.model.edges))]
        notes += [("parity", self.parity), ("for_heads", settings[at])]
        positions = role_positions(self.grown.task, self.batch)
        if positions is None:
            return Found(seconds, heads, notes=(*notes, ("rows", "roles stand at no fixed place")))
        rows, chosen = best(
            [rows_at(each, positions, enough) for enough in (0.0, 0.5) for each in places],
            rows_of(self.grown.paths),
        )
        notes.append(("for_rows", settings[chosen % len(places)]))
        return Found(seconds, heads, rows, notes=tuple(notes))


def role_positions(task: VectorTask, batch: Batch) -> dict[Role, set[int]] | None:
    """Where each role stands, if it stands there in every example."""
    first = batch.roles.role[0]
    if (batch.roles.role != first).any():
        return None
    table = task.roles()
    return {
        role: set((first == number).nonzero()[:, 0].tolist()) for number, role in enumerate(table)
    }


def _wire(edge: Any) -> Wire:
    source = None if edge.src.head_idx is None else (edge.src.layer - 1, edge.src.head_idx)
    if edge.dest.head_idx is None:
        return Wire(source, None, "end", edge.seq_idx)
    into = edge.dest.name[-1]
    return Wire(source, (edge.dest.layer - 1, edge.dest.head_idx), into, edge.seq_idx)
