"""Seconds and memory for drawing a whole training set.

python benchmarks/dataset.py [--hops 5] [--log2-examples 20]
"""

import argparse
import resource
import time

import torch
from rows import print_row

from hopscope.configs import Retrieval
from hopscope.tasks import dataset, examples, sampler_of


def peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hops", type=int, default=5)
    parser.add_argument("--log2-examples", type=int, default=20)
    chosen = parser.parse_args()
    task, count = Retrieval(hops=chosen.hops), 2**chosen.log2_examples
    examples(sampler_of(task), 0, torch.arange(8))
    before = peak_bytes()
    begun = time.perf_counter()
    batch = dataset(task, 0, count)
    seconds = time.perf_counter() - begun
    tensors = (batch.inputs, batch.targets, batch.roles.role, batch.roles.chain)
    needed = sum(tensor.nbytes for tensor in tensors)
    row = {
        "benchmark": "dataset",
        "hops": chosen.hops,
        "examples": count,
        "seconds": round(seconds, 2),
        "tensors_gb": round(needed / 1e9, 3),
        "peak_over_tensors": round((peak_bytes() - before) / needed, 3),
        "peak_over_tensors_with_python_and_torch": round(peak_bytes() / needed, 3),
        "threads": torch.get_num_threads(),
    }
    print_row(row)


if __name__ == "__main__":
    main()
