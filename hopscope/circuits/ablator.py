"""A model on its examples, and every loss that is measured with heads changed."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from hopscope.circuits.ablation import Ablation, Carried, Change
from hopscope.circuits.adapters import AnyModel, CallbackModel, OwnAdapter, adapter_of
from hopscope.circuits.attention import patterns
from hopscope.circuits.engine import Adapter, check_attention, check_finite
from hopscope.circuits.exam import Exam
from hopscope.circuits.painter import Painter
from hopscope.circuits.pattern import Head, Pattern
from hopscope.circuits.progress import Progress
from hopscope.circuits.walk import Walk
from hopscope.errors import CircuitError


class Ablator:
    """A adapter and an exam, and everything measured on them with heads changed."""

    def __init__(self, model: AnyModel, exam: Exam) -> None:
        if not isinstance(exam, Exam):
            raise CircuitError(
                f"an Ablator takes an Exam, as exam_of(task, 128) makes; got {type(exam).__name__}"
            )
        adapter = adapter_of(model)
        self.adapter, self.exam = adapter, exam.on(adapter.device)
        self.painter = Painter(self.exam, adapter.causal)
        self.read = exam.read_of(adapter.answers_at())
        if exam.read is not None and self.read < exam.read:
            raise CircuitError(
                f"the loss looks at the last {exam.read} positions; this model answers at "
                f"{self.read}: examine it on fewer"
            )
        self._walk: Walk | None = None
        if not isinstance(adapter, CallbackModel):
            self._walk = Walk(adapter, self.exam, self.painter, self.read)
        self._checked = False

    @property
    def at_once(self) -> int:
        """How many ablations cost less together than one after the other."""
        return 1 if self._walk is None else self._walk.at_once

    @torch.no_grad()
    def losses(
        self,
        ablations: Sequence[Ablation],
        progress: Progress | None = None,
        ask: Callable[[], None] = lambda: None,
    ) -> Float[Tensor, "variant batch hop"]:
        """The loss of every example and hop under every ablation. `ask` is called between layers;
        what it raises ends the measurement.
        """
        if isinstance(ablations, Ablation) or not len(ablations):
            raise CircuitError("losses are asked for a list of ablations, of at least one")
        for ablation in ablations:
            self._check(ablation)
        self._check_attention()
        found = {}
        for number, its in self._each(ablations, ask):
            found[number] = its
            if progress is not None:
                progress.at(len(found), len(ablations))
        losses = torch.stack([found[number] for number in range(len(ablations))])
        self._check_finite(ablations, losses)
        return losses

    def _check_finite(self, ablations: Sequence[Ablation], losses: Tensor) -> None:
        """Refuse what is no number: the model's own loss, or that under an ablation."""
        fine = torch.isfinite(losses).flatten(1).all(1).tolist()
        if all(fine):
            return
        untouched = Ablation()
        first = ablations[fine.index(False)]
        if first != untouched:
            self.losses([untouched])
            raise CircuitError(
                f"with {_told(first)} the loss is not a finite number, though the model's own is: "
                "numbers overflow there; change other heads, or mark answers by a loss that stays "
                "finite"
            )
        check_finite(losses[ablations.index(first)], "the model's loss")

    def _each(
        self, ablations: Sequence[Ablation], ask: Callable[[], None]
    ) -> Iterator[tuple[int, Tensor]]:
        """The number of each ablation, and its losses."""
        if self._walk is not None:
            yield from self._walk.losses(ablations, ask)
            return
        for number, ablation in enumerate(ablations):
            ask()
            yield number, self._whole(ablation)

    def _whole(self, ablation: Ablation) -> Float[Tensor, "batch hop"]:
        """One ablation from the first layer to the last."""

        def edit(layer: int, pattern: Tensor) -> Tensor:
            pattern = pattern.clone()
            for head, change in ablation.at(layer):
                if isinstance(change, Carried):
                    raise CircuitError(
                        "what heads carry cannot be replaced through a CallbackModel: replace "
                        "their attention, or cut the model into blocks (BlockAdapter)"
                    )
                pattern[:, head] = self.painter.attention(change, pattern[:, head])
            return pattern

        assert isinstance(self.adapter, CallbackModel)
        return self.exam.marks(self.adapter.outputs(self.exam.inputs, edit))

    def check_paths(self, changes: Mapping[Head, Change]) -> None:
        """Refuse rows that are to read a role of their chain which no example lets them see: they
        would stay where they are, which is another ablation.
        """
        for (layer, head), change in changes.items():
            for role, target in change.targets if isinstance(change, Pattern) else ():
                if target.when or any(source.where != "own" for source in target.every):
                    continue
                spots = self.painter.spots(role, self.exam.length)
                if len(spots) and not bool(self.painter.drawn(target, spots)[1].any()):
                    raise CircuitError(
                        f"{layer}.{head}: {role} cannot look at {target}, which comes after it in "
                        "every example, and attention is causal"
                    )

    def _check_attention(self) -> None:
        """Refuse, when it is first asked, a model from elsewhere whose attention is none."""
        if isinstance(self.adapter, CallbackModel):
            self.adapter.check(self.exam.inputs)
        elif not self._checked and type(self.adapter) is not OwnAdapter:
            for layer, pattern in enumerate(patterns(self.adapter, self.exam.inputs[:2])):
                check_attention(layer, pattern, self.adapter.causal)
        self._checked = True

    def _check(self, ablation: Ablation) -> None:
        for head, _ in ablation.changes:
            check_head(self.adapter, head)


def _told(ablation: Ablation) -> str:
    """The first change of an ablation, and how many others there are."""
    (layer, head), change = ablation.changes[0]
    what = change.instead if isinstance(change, Carried) else str(change)
    others = len(ablation.changes) - 1
    return f"{layer}.{head} {what[:60]}{f' (and {others} more)' if others else ''}"


def check_head(adapter: Adapter | CallbackModel, head: Head) -> None:
    """Refuse a head (layer, head) that the model does not have."""
    if not (0 <= head[0] < adapter.layers and 0 <= head[1] < adapter.heads):
        raise CircuitError(
            f"there is no head {head[0]}.{head[1]}; this model has layers 0 … "
            f"{adapter.layers - 1} with heads 0 … {adapter.heads - 1}"
        )
