"""What every task answers about itself. All of it is arithmetic on a config; no torch here."""

from abc import abstractmethod
from statistics import fmean
from typing import Literal, Self

from hopscope.configs.config import Config
from hopscope.configs.model import Interface
from hopscope.errors import ConfigError
from hopscope.facts import FactGraph, Role

Order = Literal["backward", "forward", "shuffled"]
"""Order of the facts in a sequence: last hop first, first hop first, or all together."""


class FactTask(Config):
    """Base of all tasks: the questions that the rest of hopscope asks of a task.

    Training asks for the interface and the loss at chance, discovery for the roles and the fact
    graph. Nothing else needs to know which task it has. The samplers in `hopscope.tasks` draw the
    examples and compute the losses.
    """

    @abstractmethod
    def graph(self) -> FactGraph | None:
        """The facts of one chain; None for a task that is not made of facts."""

    @abstractmethod
    def roles(self) -> tuple[Role, ...]:
        """The table of roles: what `Batch.roles.role` indexes."""

    @abstractmethod
    def interface(self) -> Interface:
        """The shapes of the model that can be trained on the task."""

    @abstractmethod
    def chances(self, asking: int | None = None) -> tuple[float, ...]:
        """Each loss at chance: that of the best answer that ignores how the facts connect, to the
        questions of the last `asking` positions (default: to all questions).
        """

    def chance(self) -> float:
        """The loss at chance, the mean over hops."""
        return fmean(self.chances())

    @abstractmethod
    def asked_hops(self) -> tuple[int, ...]:
        """For each loss, the hop it belongs to (of facts without hops, the fact), from 1."""

    def chosen_hops(self) -> int | None:
        """The number of hops, where the config chooses it; names and tables of runs show it."""
        return None

    def asks_every_hop(self) -> bool | None:
        """Is every hop's answer asked for (implicit curriculum), or the last one's alone? None:
        the task leaves no choice.
        """
        return None

    def labelled_positions(self) -> int | None:
        """How many of the last positions ask the questions that the roles describe.

        None: every question. Where each position asks, one set of roles can describe the question
        of the last position alone; then it is 1, and circuits are examined on that question.
        """
        return None

    def ordered(self, order: Order) -> Self:
        """The same questions with their facts in another order, where that can be chosen."""
        raise ConfigError(
            f"facts {order}: the task {getattr(self, 'kind', type(self).__name__)!r} does not "
            "choose the order of its facts; those over vectors (retrieval, induction) do"
        )

    def symbol_names(self) -> tuple[str, ...]:
        """The names of one chain's symbols, the known ones first; none without facts."""
        graph = self.graph()
        return () if graph is None else graph.symbols

    def fact_order(self) -> tuple[int, ...] | None:
        """The facts by number, as they follow one another in a sequence; None: in any order."""
        graph = self.graph()
        return None if graph is None else tuple(range(len(graph.facts)))[::-1]

    def swap_obstacle(self) -> str | None:
        """Why chains cannot swap a symbol while all else stays as it is; None if they can."""
        return "its symbols are not those of chains that stand beside one another"
