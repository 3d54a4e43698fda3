"""What travels to a machine: a function that needs no more than Python to say what is missing.

It is nested, so that Ray sends its code and not its name: a machine without this hopscope has no
such name.
"""

from collections.abc import Callable
from inspect import unwrap

Carried = Callable[[str, str, str], str]


def shipped(*, gpus: bool, threads: int = 1) -> Carried:
    """A function of a job, the store's mark and a version, all of them text: does the job."""

    def carried(job: str, mark: str, version: str) -> str:
        import json
        import os
        import socket

        host = socket.gethostname()
        # Torch looks at it when it is imported; what else computes then keeps to it as well.
        os.environ["OMP_NUM_THREADS"] = str(json.loads(job)["threads"] or threads)
        if not gpus:
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

    bare: Carried = unwrap(carried)  # of what checks types in the tests, which does not travel
    return bare
