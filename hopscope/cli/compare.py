"""`hopscope compare`: two runs side by side."""

import click

from hopscope.cli.options import RUNS, store_option
from hopscope.cli.results import Destination, Output, reporting
from hopscope.cli.subject import find
from hopscope.store import Store


@reporting(
    click.argument("first", metavar="RUN", shell_complete=RUNS),
    click.argument("second", metavar="RUN", shell_complete=RUNS),
    store_option,
    frame=False,
)
def compare(_: Destination, first: str, second: str, store: Store) -> Output:
    """Show two runs of one kind side by side: the settings in which they differ, the losses of each
    hop, and what their circuits share (those kept, of the first model of each).
    """
    pair = find(first, store), find(second, store)  # asked before torch is loaded
    from hopscope.study import compare as compared

    return Output.of(compared(*pair, store))
