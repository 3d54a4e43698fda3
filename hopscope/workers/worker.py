"""A worker: a process that does jobs, one line of JSON each, until there are no more.

It reads jobs from its standard input, and writes a line of reports for each. If that input ends
during a job, its parent is gone: the job then ends with a checkpoint, as after SIGTERM.
"""

import os
import queue
import signal
import sys
import threading
from contextlib import suppress

from hopscope.machine import keep_pages
from hopscope.workers.job import do_remote


def main() -> None:
    """Do the jobs that come, and write how they ended."""
    keep_pages()
    # What libraries print must not come between the reports.
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    jobs: queue.Queue[str | None] = queue.Queue()
    busy = threading.Event()
    threading.Thread(target=_receive, args=(jobs, busy), daemon=True).start()
    with suppress(BrokenPipeError), replies:  # nobody is left to read them; the store has it all
        while (line := jobs.get()) is not None:
            replies.write(f"{do_remote(line)}\n")
            replies.flush()
            busy.clear()


def _receive(jobs: "queue.Queue[str | None]", busy: threading.Event) -> None:
    for line in sys.stdin:
        busy.set()  # at its arrival, not when it is begun: importing torch takes seconds
        jobs.put(line)
    jobs.put(None)
    if busy.is_set():
        os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
