"""A worker process: reads jobs from stdin and writes reports to stdout, a line of JSON each.

If stdin ends during a job, the parent has died: the job then stops with a checkpoint, as after
SIGTERM.
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
    """Do jobs until stdin ends."""
    keep_pages()
    # Output of libraries goes to stderr, so that stdout has only reports.
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    jobs: queue.Queue[str | None] = queue.Queue()
    busy = threading.Event()
    threading.Thread(target=_receive, args=(jobs, busy), daemon=True).start()
    with suppress(BrokenPipeError), replies:  # the parent has died
        while (line := jobs.get()) is not None:
            reports = do_remote(line)
            busy.clear()  # before the parent can send the next job
            replies.write(f"{reports}\n")
            replies.flush()


def _receive(jobs: "queue.Queue[str | None]", busy: threading.Event) -> None:
    for line in sys.stdin:
        busy.set()  # already here: importing torch for the job takes seconds
        jobs.put(line)
    jobs.put(None)
    if busy.is_set():
        os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
