"""Many ablations of a module that is cut into its blocks.

Those that agree up to a block share what comes out of it. Of a block only the attention is known,
and not what its heads carry; so each of the others runs through whole blocks, from the first in
which it differs.
"""

from collections.abc import Callable, Iterator, Sequence

from jaxtyping import Float
from torch import Tensor

from hopscope.circuits import budget
from hopscope.circuits.ablation import Ablation, Carried, Changes
from hopscope.circuits.budget import Kept
from hopscope.circuits.exam import Exam
from hopscope.circuits.mechanism import Mechanism
from hopscope.circuits.painter import Painter
from hopscope.circuits.subject import Blocks, Whole
from hopscope.errors import CircuitError

Found = Iterator[tuple[int, Float[Tensor, "batch hop"]]]
Prefix = tuple[Changes, ...]
"""The changes in all blocks so far."""


class BlockWalk:
    """A module in blocks and an exam, and what is kept between one walk and the next."""

    at_once = 1

    def __init__(self, whole: Whole, blocks: Blocks, exam: Exam, painter: Painter) -> None:
        self.whole, self.blocks, self.exam, self.painter = whole, blocks, exam, painter
        self._streams = Kept(budget.STREAM_BYTES)
        self._ask: Callable[[], None] = lambda: None

    def losses(
        self, ablations: Sequence[Ablation], ask: Callable[[], None] = lambda: None
    ) -> Found:
        """The number of each ablation, and the loss of every example and hop under it."""
        self._ask = ask
        layers = range(self.whole.layers)
        changes = [[ablation.at(number) for number in layers] for ablation in ablations]
        yield from self._onward((), self.blocks.enter(self.exam.inputs), dict(enumerate(changes)))

    def _onward(self, prefix: Prefix, x: Tensor, members: dict[int, list[Changes]]) -> Found:
        """From a block to the end; those that agree in it go through it together."""
        number = len(prefix)
        if number == self.whole.layers:
            losses = self.exam.marks(self.blocks.leave(x))
            yield from ((member, losses) for member in members)
            return
        parted: dict[Changes, dict[int, list[Changes]]] = {}
        for member, changes in members.items():
            parted.setdefault(changes[number], {})[member] = changes
        for mine, some in parted.items():
            onward = (*prefix, mine)
            after = self._streams.get(onward)
            if after is None:
                after = self._through(number, x, mine)
                self._streams.put(onward, after)
            yield from self._onward(onward, after, some)

    def _through(self, number: int, x: Tensor, changes: Changes) -> Tensor:
        """What comes out of a block whose heads are changed."""
        self._ask()
        asked: list[int] = []

        def edit(pattern: object) -> Tensor:
            asked.append(number)
            edited = self.whole.handed_out(number, pattern, self.exam.inputs)
            return edited_by(changes, edited, self.painter)

        after = self.blocks.block(number, x, edit)
        if asked != [number]:
            raise CircuitError(
                f"block {number} handed out its attention {len(asked)} times; expected once"
            )
        return after


def edited_by(
    changes: Changes, pattern: Float[Tensor, "batch head seq seq"], painter: Painter
) -> Float[Tensor, "batch head seq seq"]:
    """A layer's attention with some heads changed."""
    if changes:
        pattern = pattern.clone()
    for head, change in changes:
        if isinstance(change, Carried):
            raise CircuitError(
                "what heads carry cannot be replaced through a whole model's function: replace "
                "their attention, or write an adapter that walks"
            )
        assert isinstance(change, Mechanism)
        pattern[:, head] = painter.attention(change, pattern[:, head])
    return pattern
