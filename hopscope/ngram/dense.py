"""Matrix products, large ones by torch, so that one pool of threads does all the work.

NumPy's large products have a pool of their own. While its threads wait for more, those of torch's
sparse products find no free core: with 32,000 patterns an epoch took ten times as long. Small
products take no second thread in either, and NumPy begins them sooner.
"""

import numpy as np
import torch

SMALL = 8_192
"""Numbers in an operand up to which NumPy (OpenBLAS) stays on one thread."""


def product(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The matrix product of two arrays, by NumPy if both are small and by torch otherwise."""
    if one.size <= SMALL and other.size <= SMALL:
        return np.asarray(one @ other)
    large: np.ndarray = torch.matmul(torch.from_numpy(one), torch.from_numpy(other)).numpy()
    return large
