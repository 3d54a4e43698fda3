"""What stands at every position: the residual stream after each layer, and what heads add to it."""

from collections.abc import Iterator

import torch
from jaxtyping import Float
from torch import Tensor

from hopscope.circuits import budget
from hopscope.circuits.adapters import CallbackModel
from hopscope.circuits.engine import Adapter, Additive, Brought, Heads, as_model, forward, streams
from hopscope.circuits.exam import Exam
from hopscope.errors import CircuitError

Place = tuple[int, int | None]
"""A layer (0: what enters the first) and its stream, or one head of it."""


class Streams:
    """Walks a adapter through examples, and shows what stands where."""

    def __init__(self, adapter: Adapter | CallbackModel, heads: bool) -> None:
        self.adapter = adapter
        self.heads = adapter if heads and isinstance(adapter, Additive) else None
        """The adapter, if single heads are to be shown and can be."""

    def chunks(self, exam: Exam) -> Iterator[slice]:
        """So many examples at a time as memory allows."""
        adapter = self.adapter
        width = 0
        if not isinstance(adapter, CallbackModel):
            width = adapter.embed(exam.inputs[:1].to(adapter.device)).shape[-1]
        one = budget.AT_ONCE * adapter.heads * exam.length**2 + budget.WIDTHS * exam.length * width
        size = max(1, budget.CALL_BYTES // (budget.FLOAT * one))
        for start in range(0, len(exam), size):
            yield slice(start, min(start + size, len(exam)))

    def places(self, inputs: Tensor) -> Iterator[tuple[Place, Float[Tensor, "batch seq width"]]]:
        """Every place, and what stands there; the streams as whatever comes next sees them."""
        inputs = inputs.to(self.adapter.device)
        if isinstance(self.adapter, CallbackModel):
            yield from _handed_out(self.adapter, inputs)
            return
        adapter, mixed = self.adapter, []

        def attend(layer: int, heads: Heads) -> Brought:
            mixed.append(as_model(layer, heads))
            return mixed[-1]

        x = adapter.embed(inputs)
        yield (0, None), adapter.normed(x)
        for layer, after in enumerate(streams(adapter, x, attend)):
            if self.heads is not None:
                for head, ways in enumerate(_ways(self.heads, layer, mixed[layer])):
                    yield (layer + 1, head), mixed[layer][:, head] @ ways
            yield (layer + 1, None), adapter.normed(after)

    def loss(self, exam: Exam) -> float:
        """The mean loss of the model's answers."""
        parts = [self._answers(exam, some) for some in self.chunks(exam)]
        return float(exam.marks(torch.cat(parts)).mean())

    def _answers(self, exam: Exam, some: slice) -> Tensor:
        adapter, inputs = self.adapter, exam.inputs[some].to(self.adapter.device)
        if isinstance(adapter, CallbackModel):
            return adapter.outputs(inputs, lambda _, pattern: pattern).cpu()
        x = forward(adapter, adapter.embed(inputs))
        return adapter.unembed(x[:, -exam.read_of(adapter.answers_at()) :]).cpu()


def _ways(
    adapter: Additive, layer: int, mixed: Float[Tensor, "batch head seq d_head"]
) -> list[Float[Tensor, "d_head d_head"]]:
    """For each head, a map from what it carries to coordinates of what it adds: distances are
    the same, and there are d_head numbers instead of d_model.
    """
    heads, width = mixed.shape[1], mixed.shape[-1]
    nothing = mixed.new_zeros(1, heads, width, width)
    base = adapter.added(layer, nothing)[0]
    found = []
    for head in range(heads):
        each = nothing.clone()
        each[0, head] = torch.eye(width, device=mixed.device, dtype=mixed.dtype)
        left, sizes, _ = torch.linalg.svd(
            (adapter.added(layer, each)[0] - base).float(), full_matrices=False
        )
        found.append((left * sizes).to(mixed.dtype))
    return found


def _handed_out(adapter: CallbackModel, inputs: Tensor) -> Iterator[tuple[Place, Tensor]]:
    if adapter.streams is None:
        raise CircuitError(
            "this model's residual stream is not handed out: give CallbackModel a function "
            "`streams` from inputs to the stream before the first layer and after each"
        )
    streams = list(adapter.streams(inputs))
    if len(streams) != adapter.layers + 1:
        raise CircuitError(
            f"streams gave {len(streams)} residual streams; expected {adapter.layers + 1}: before "
            "the first layer, and after each"
        )
    for layer, x in enumerate(streams):
        yield (layer, None), torch.nn.functional.layer_norm(x.float(), x.shape[-1:])
