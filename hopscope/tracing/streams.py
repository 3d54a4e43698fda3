"""What stands at every position: the residual stream after each layer, and what heads add to it."""

from collections.abc import Iterator

import torch
from jaxtyping import Float
from torch import Tensor

from hopscope.circuits import budget
from hopscope.circuits.exam import Exam
from hopscope.circuits.subject import Dissected, Subject, Whole
from hopscope.errors import CircuitError

Place = tuple[int, int | None]
"""A layer (0: what enters the first) and its stream, or one head of it."""


class Streams:
    """Walks a subject through examples, and shows what stands where."""

    def __init__(self, subject: Subject | Whole, heads: bool) -> None:
        self.subject = subject
        self.heads = subject if heads and isinstance(subject, Dissected) else None
        """The subject, if single heads are to be shown and can be."""

    def chunks(self, exam: Exam) -> Iterator[slice]:
        """So many examples at a time as memory allows."""
        subject = self.subject
        width = 0
        if not isinstance(subject, Whole):
            width = subject.enter(exam.inputs[:1].to(subject.device)).shape[-1]
        one = budget.AT_ONCE * subject.heads * exam.length**2 + budget.WIDTHS * exam.length * width
        size = max(1, budget.CALL_BYTES // (budget.FLOAT * one))
        for start in range(0, len(exam), size):
            yield slice(start, min(start + size, len(exam)))

    def places(self, inputs: Tensor) -> Iterator[tuple[Place, Float[Tensor, "batch seq width"]]]:
        """Every place, and what stands there; the streams as whatever comes next sees them."""
        inputs = inputs.to(self.subject.device)
        if isinstance(self.subject, Whole):
            yield from _handed_out(self.subject, inputs)
            return
        x = self.subject.enter(inputs)
        yield (0, None), _seen(self.subject, 0, x)
        for layer in range(self.subject.layers):
            mixed = brought(self.subject, layer, x)
            if self.heads is not None:
                for head, ways in enumerate(_ways(self.heads, layer, mixed)):
                    yield (layer + 1, head), mixed[:, head] @ ways
            x = self.subject.write(layer, x, mixed)
            yield (layer + 1, None), _seen(self.subject, layer + 1, x)

    def loss(self, exam: Exam) -> float:
        """The mean loss of the model's answers."""
        parts = [self._answers(exam, some) for some in self.chunks(exam)]
        return float(exam.marks(torch.cat(parts)).mean())

    def _answers(self, exam: Exam, some: slice) -> Tensor:
        subject, inputs = self.subject, exam.inputs[some].to(self.subject.device)
        if isinstance(subject, Whole):
            return subject.outputs(inputs, lambda _, pattern: pattern).cpu()
        x = subject.enter(inputs)
        for layer in range(subject.layers):
            x = subject.write(layer, x, brought(subject, layer, x))
        return subject.leave(x[:, -exam.read_of(subject.answers_at()) :]).cpu()


def brought(subject: Subject, layer: int, x: Tensor) -> Float[Tensor, "batch head seq d_head"]:
    """What a layer's heads carry."""
    return subject.look(layer, x, x.shape[1], range(subject.heads)) @ subject.values(layer, x)


def _seen(subject: Subject, number: int, x: Tensor) -> Tensor:
    """The stream as whatever comes next sees it; a layer norm, where the subject does not say."""
    if isinstance(subject, Dissected):
        return subject.seen(number, x)
    return torch.nn.functional.layer_norm(x, x.shape[-1:])


def _ways(
    subject: Dissected, layer: int, mixed: Float[Tensor, "batch head seq d_head"]
) -> list[Float[Tensor, "d_head d_head"]]:
    """For each head, a map from what it carries to coordinates of what it adds: distances are
    the same, and there are d_head numbers instead of d_model.
    """
    heads, width = mixed.shape[1], mixed.shape[-1]
    nothing = mixed.new_zeros(1, heads, width, width)
    base = subject.added(layer, nothing)[0]
    found = []
    for head in range(heads):
        each = nothing.clone()
        each[0, head] = torch.eye(width, device=mixed.device, dtype=mixed.dtype)
        left, sizes, _ = torch.linalg.svd(
            (subject.added(layer, each)[0] - base).float(), full_matrices=False
        )
        found.append((left * sizes).to(mixed.dtype))
    return found


def _handed_out(subject: Whole, inputs: Tensor) -> Iterator[tuple[Place, Tensor]]:
    if subject.streams is None:
        raise CircuitError(
            "this model's residual stream is not handed out: give Whole a function `streams` from "
            "inputs to the stream before the first layer and after each"
        )
    streams = list(subject.streams(inputs))
    if len(streams) != subject.layers + 1:
        raise CircuitError(
            f"streams gave {len(streams)} residual streams; expected {subject.layers + 1}: before "
            "the first layer, and after each"
        )
    for layer, x in enumerate(streams):
        yield (layer, None), torch.nn.functional.layer_norm(x.float(), x.shape[-1:])
