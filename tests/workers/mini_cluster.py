"""A Ray of two small machines, in a process of its own: `python mini_cluster.py FOLDER`.

It writes its token there and, when it is ready, its address; it replaces a machine that died, and
ends when its input does. GPUs are numbers only.
"""

import os
import secrets
import select
import sys
from pathlib import Path
from typing import Any

MACHINE = {"num_cpus": 1, "num_gpus": 4, "include_log_monitor": False}


def main(folder: Path) -> None:
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 0, "include_dashboard": False, "no_monitor": True}
    cluster: Any = Cluster(initialize_head=True, head_node_args=head)
    for _ in range(2):
        cluster.add_node(**MACHINE)
    (folder / "new").write_text(cluster.address)
    (folder / "new").rename(folder / "address")
    while not select.select([sys.stdin], [], [], 0.5)[0]:
        for node in [node for node in cluster.worker_nodes if died(node)]:
            cluster.remove_node(node, allow_graceful=False)
            cluster.add_node(**MACHINE)
    cluster.shutdown()


def died(node: Any) -> bool:
    return "raylet" in {name for name, _ in node.dead_processes()}


def closed(folder: Path) -> None:
    """Only who may read the token may use it."""
    token = folder / "token"
    token.touch(0o600)
    token.write_text(secrets.token_hex(32))
    os.environ |= {
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": str(token),
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_TMPDIR": str(folder),
    }


if __name__ == "__main__":
    closed(Path(sys.argv[1]))
    main(Path(sys.argv[1]))
