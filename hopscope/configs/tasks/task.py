"""`FactTask`: the interface of all tasks over facts. It needs only the config; no torch here."""

from abc import abstractmethod
from statistics import fmean
from typing import Literal, Self

from hopscope.configs.config import Config
from hopscope.configs.model import Interface
from hopscope.errors import ConfigError
from hopscope.facts import FactGraph, Role

Order = Literal["backward", "forward", "shuffled"]
"""Order of the facts in a sequence: last hop first, first hop first, or all shuffled together."""


class FactTask(Config):
    """Base of all tasks, with the methods that the rest of hopscope uses.

    Training uses the interface and the loss at chance, discovery the roles and the fact graph. No
    other code depends on the kind of task. The samplers in `hopscope.tasks` draw the examples and
    compute the losses.
    """

    @abstractmethod
    def graph(self) -> FactGraph | None:
        """The facts of one chain; None for a task that is not made of facts."""

    @abstractmethod
    def roles(self) -> tuple[Role, ...]:
        """The table of roles, which `Batch.roles.role` indexes."""

    @abstractmethod
    def interface(self) -> Interface:
        """The input and output shapes of a model for the task."""

    @abstractmethod
    def chances(self, asking: int | None = None) -> tuple[float, ...]:
        """Each loss at chance: that of the best answer that ignores how the facts connect. Only
        questions of the last `asking` positions count (default: all questions).
        """

    def chance(self) -> float:
        """The loss at chance, the mean over hops."""
        return fmean(self.chances())

    @abstractmethod
    def asked_hops(self) -> tuple[int, ...]:
        """For each loss, the number of its hop (or of its fact), from 1."""

    def chosen_hops(self) -> int | None:
        """The number of hops, if the config has such a field; names and tables of runs show it."""
        return None

    def asks_every_hop(self) -> bool | None:
        """True if the answers of all hops are asked for (implicit curriculum), False if only the
        last; None if the task has no such choice.
        """
        return None

    def labelled_positions(self) -> int | None:
        """The number of last positions whose questions the roles describe; None: all questions.

        If every position asks, one set of roles can describe only the question of the last
        position. Then this is 1, and circuits are examined on that question.
        """
        return None

    def ordered(self, order: Order) -> Self:
        """The same task with its facts in another order; raises ConfigError if not possible."""
        raise ConfigError(
            f"facts {order}: the task {getattr(self, 'kind', type(self).__name__)!r} does not "
            "choose the order of its facts; those over vectors (retrieval, induction) do"
        )

    def symbol_names(self) -> tuple[str, ...]:
        """The names of one chain's symbols, the known ones first; empty without facts."""
        graph = self.graph()
        return () if graph is None else graph.symbols

    def fact_order(self) -> tuple[int, ...] | None:
        """The numbers of the facts in the order of a sequence; None if they have no fixed order."""
        graph = self.graph()
        return None if graph is None else tuple(range(len(graph.facts)))[::-1]

    def swap_obstacle(self) -> str | None:
        """Why two chains cannot swap a symbol with all else unchanged; None if they can."""
        return "its symbols are not those of chains that stand beside one another"
