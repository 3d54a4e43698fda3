"""What travels to a machine: one function that needs nothing but Python to say that it cannot go on.

It is nested, so that Ray sends its code and not its name: a machine without this hopscope has no
such name.
"""

from collections.abc import Callable

Carried = Callable[[str, str, str], str]


def shipped(gpus: float, cpus: float) -> Carried:
    """A function of a job, the store's mark and a version, all of them text: does the job."""
    threads = str(max(1, int(cpus)))
    blind = not gpus

    def carried(job: str, mark: str, version: str) -> str:
        import json
        import os
        import socket

        host = socket.gethostname()
        os.environ["OMP_NUM_THREADS"] = threads  # read when torch is imported
        if blind:
            os.environ["CUDA_VISIBLE_DEVICES"] = ""  # what nobody asked for, nobody gets
        try:
            import hopscope
        except ImportError as error:
            return json.dumps({"refused": f"node {host} has no hopscope ({error}): install it"})
        if hopscope.__version__ != version:
            words = f"node {host} has hopscope {hopscope.__version__}, this is {version}"
            return json.dumps({"refused": f"{words}: install the same one on every node"})
        from hopscope.workers.arrival import arrived

        return arrived(job, mark)

    return carried
