"""The tasks over facts, and the list of all tasks. Sections (§) refer to Musat (ICLR 2025).

A task is a frozen config with the methods of `FactTask`. To add a task, write a module in this
package and add its class to `Task`; docs/extending/task.md has the details.
"""

from typing import Annotated, get_args

from pydantic import Field

from hopscope.configs.tasks.khop import KHop
from hopscope.configs.tasks.mqar import MQAR
from hopscope.configs.tasks.task import FactTask, Order
from hopscope.configs.tasks.vector import ConditionalRetrieval, Induction, Retrieval, VectorTask

Task = Annotated[
    Retrieval | Induction | ConditionalRetrieval | KHop | MQAR, Field(discriminator="kind")
]

TASK_KINDS: dict[str, type[Task]] = {
    kind.model_fields["kind"].default: kind for kind in get_args(get_args(Task)[0])
}
"""Every task by its kind."""

__all__ = [
    "MQAR",
    "TASK_KINDS",
    "ConditionalRetrieval",
    "FactTask",
    "Induction",
    "KHop",
    "Order",
    "Retrieval",
    "Task",
    "VectorTask",
]
