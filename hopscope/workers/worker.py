"""A worker: a process that does jobs, one line of JSON each, until there are no more.

Its parent writes jobs to its standard input, and reads a line of reports for each. If that input
ends while a job is done, the parent is gone: the job then ends with a checkpoint, as after SIGTERM.
"""

import json
import os
import queue
import signal
import sys
import threading
import warnings
from collections.abc import Iterable
from contextlib import suppress
from typing import TextIO

from hopscope.errors import RunWarning
from hopscope.machine import keep_pages
from hopscope.workers.job import Job, Report, done


def main() -> None:
    """Do the jobs that come, and tell how they went."""
    keep_pages()
    # What libraries print must not come between the reports.
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    with suppress(BrokenPipeError), replies:  # nobody to be told is left; the store knows it all
        _work(replies)


def _work(replies: TextIO) -> None:
    jobs: queue.Queue[str | None] = queue.Queue()
    busy = threading.Event()
    threading.Thread(target=_receive, args=(sys.stdin, jobs, busy), daemon=True).start()
    while (line := jobs.get()) is not None:
        text = json.dumps([report.model_dump(mode="json") for report in _reports(line)])
        replies.write(f"{text}\n")
        replies.flush()
        busy.clear()


def _receive(lines: Iterable[str], jobs: "queue.Queue[str | None]", busy: threading.Event) -> None:
    for line in lines:
        busy.set()  # from when it is here, not from when it is begun: starting up takes seconds
        jobs.put(line)
    jobs.put(None)
    if busy.is_set():
        os.kill(os.getpid(), signal.SIGTERM)


def _reports(line: str) -> list[Report]:
    """What became of a job, with what it warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        first, *others = done(Job.from_json(line))
    notes = []
    for each in caught:
        if issubclass(each.category, RunWarning):
            notes.append(str(each.message))
        else:
            sys.stderr.write(f"{each.message}\n")
    return [first.model_copy(update={"notes": tuple(notes)}), *others]


if __name__ == "__main__":
    main()
