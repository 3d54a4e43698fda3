"""One training step: examples, forward, backward, optimiser.

A trainer trains one model, or a fleet whose members are stacked along a model axis and share every
operation.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from hopscope.configs import Experiment, Split
from hopscope.models import Transformer
from hopscope.tasks import Batch, Sampler, examples, hop_losses, sampler_of, total, visited
from hopscope.training.device import DTYPES
from hopscope.training.graph import RecordedUpdate
from hopscope.training.optimisers import OPTIMISERS, Optimiser
from hopscope.training.weights import FlatWeights

DRAWING = {"cpu": 2**21, "cuda": 2**26}
"""The bytes of examples drawn at once, for several steps, since drawing few takes as long as
drawing many."""


class Trainer:
    """The model or fleet of an experiment, its optimiser, and the number of steps taken."""

    def __init__(self, experiment: Experiment, device: torch.device, precision: str) -> None:
        self.experiment, self.device, self.precision = experiment, device, precision
        self.step = 0
        self.host_seeds = torch.tensor(experiment.seeds)
        self.seeds = self.host_seeds.to(device)
        self.sampler = sampler_of(experiment.task, device)
        self.model = initial_model(experiment).to(device)
        self.weights = FlatWeights(self.model, DTYPES[precision])
        training = experiment.training
        self.optimiser: Optimiser = OPTIMISERS[training.optimiser](self.weights, training)
        rows = torch.arange(training.validation_examples, device=device)
        self.held_out = self._examples(rows.expand(len(self.seeds), -1), "validation")
        self.replays = device.type == "cuda"
        self.ahead = steps_ahead(self.sampler, training.batch * len(self.seeds), device.type)
        self._drawn: tuple[int, Batch] | None = None
        self._recorded: RecordedUpdate | None = None

    def advance(self) -> Float[Tensor, "model hop"]:
        """Take one step; return the losses of its batch before the update."""
        batch = self._batch(self.step)
        self.optimiser.set_rate(self.experiment.training.rate(self.step))
        self.step += 1
        if not self.replays:
            return self.update(batch)
        if self._recorded is None:
            touched = [self.weights.master.data, *self.optimiser.tensors()]
            self._recorded = RecordedUpdate(self.update, batch, touched)
        return self._recorded(batch)

    def update(self, batch: Batch) -> Float[Tensor, "model hop"]:
        """Forward, backward and optimiser for the given examples."""
        self.weights.refresh()
        losses = self._losses(batch)
        # The sum over models gives each member the gradient that it would have alone.
        total(losses).sum().backward()
        self.weights.collect()
        self.optimiser.step()
        return losses.detach()

    @torch.no_grad()
    def validate(self) -> Float[Tensor, "model hop"]:
        """The losses on the held-out examples with the current weights."""
        self.weights.refresh()
        return self._losses(self.held_out)

    @torch.no_grad()
    def restore(self, weights: dict[str, Tensor], moments: dict[str, Tensor], step: int) -> None:
        """Restore the state after `step`."""
        self.weights.load(weights)
        for name, part in self.optimiser.state().items():
            part.copy_(moments[name])
        self.optimiser.resume(step)
        self.step = step

    def _losses(self, batch: Batch) -> Float[Tensor, "model hop"]:
        outputs = self.model(batch.inputs)
        losses = hop_losses(self.experiment.task, outputs, batch)
        return losses if self.model.fleet else losses[None]

    def _batch(self, step: int) -> Batch:
        """The examples of a step. The examples of several steps are drawn together."""
        training, size = self.experiment.training, self.experiment.training.batch
        number, place = divmod(step, self.ahead)
        if self._drawn is None or self._drawn[0] != number:
            count = size * self.ahead
            # On the CPU: cycle walking takes a data-dependent number of rounds, which would
            # synchronise the GPU.
            index = visited(self.host_seeds, number, count, training.examples)
            self._drawn = number, self._examples(index.to(self.device), "train")
        return self._drawn[1].part(slice(size * place, size * (place + 1)))

    def _examples(self, index: Int[Tensor, "model batch"], split: Split) -> Batch:
        seeds = self.seeds[:, None].expand_as(index).flatten()
        batch = examples(self.sampler, seeds, index.flatten(), split)
        return batch.stacked(len(self.seeds)) if self.model.fleet else batch


def steps_ahead(sampler: Sampler, rows: int, device: str) -> int:
    """The number of steps, of `rows` examples each, whose examples are drawn at once."""
    return max(1, DRAWING[device] // (rows * sampler.example_bytes))


def initial_model(experiment: Experiment) -> Transformer:
    """The untrained model (or fleet, if there are several seeds) of an experiment."""
    interface = experiment.task.interface()
    if len(experiment.seeds) > 1:
        return Transformer(experiment.model, interface, models=experiment.seeds)
    return Transformer.seeded(experiment.model, interface, experiment.seeds[0])
