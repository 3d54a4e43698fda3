"""`hopscope compare`: two runs side by side."""

from pathlib import Path

import click

from hopscope.cli.options import RUNS, command, options, store_option
from hopscope.cli.results import Found, Output, output_options
from hopscope.cli.subject import find
from hopscope.store import Store


@command
@click.argument("first", metavar="RUN", shell_complete=RUNS)
@click.argument("second", metavar="RUN", shell_complete=RUNS)
@options(output_options, store_option)
def compare(
    first: str, second: str, json: bool, save: Path | None, figure: Path | None,
    store: Path | None,
) -> None:  # fmt: skip
    """Show two runs of one kind side by side: the settings in which they differ, the losses of each
    hop, and what their circuits share (those kept, of the first model of each).
    """
    output = Output(json, save, figure)
    output.check(frame=False)
    pair = find(first, store), find(second, store)  # asked before torch is loaded
    from hopscope.study import compare as compared

    output.show(Found.of(compared(*pair, Store(store))))
