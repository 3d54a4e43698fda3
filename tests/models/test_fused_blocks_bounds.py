"""The kernels read nothing beyond the end of a tensor: there lies a page that cannot be read.

Whoever does is ended by the system, so they are called in a process of their own.
"""

import subprocess
import sys
from pathlib import Path

import pytest
from backends import BACKENDS

from hopscope.models import native

CALLS = """
import ctypes, itertools, mmap, sys
import torch
from hopscope.configs import Model
from hopscope.models import native
from hopscope.models.transformer import Block

PAGE, NONE, owned = mmap.PAGESIZE, 0, []
libc = ctypes.CDLL(None)

def numbers(*shape):
    size = 2 * torch.Size(shape).numel()
    whole = -(-size // PAGE) * PAGE
    memory = mmap.mmap(-1, whole + PAGE)
    begin = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    assert libc.mprotect(ctypes.c_void_p(begin + whole), ctypes.c_size_t(PAGE), NONE) == 0
    owned.append(memory)
    x = torch.frombuffer(memory, dtype=torch.bfloat16, count=size // 2, offset=whole - size)
    return x.view(shape).copy_(torch.randn(shape)).requires_grad_()

def call_all():
    shapes = (4, 64), (1, 128), (4, 192), (8, 128)
    for (heads, width), causal in itertools.product(shapes, (True, False)):
        block = Block((), Model(layers=1, heads=heads, d_model=width, causal=causal)).bfloat16()
        for parameter in block.parameters():
            parameter.data = numbers(*parameter.shape).detach()
        for seq in (1, 15, 17, 28, 31, 65, 128, 257):
            x = numbers(1, seq, width)
            block.mlp_sublayer(x).backward(numbers(1, seq, width))
            for read in {seq, seq // 2 + 1} if seq <= 128 else ():
                block.attention_sublayer(x, read).backward(numbers(1, read, width))

for backend in sys.argv[1:]:
    with native.using(backend):
        call_all()
    print(backend)
"""


@pytest.mark.skipif(not BACKENDS, reason="no kernels in C")
def test_nothing_is_read_beyond_the_end() -> None:
    done = subprocess.run(
        [sys.executable, "-c", CALLS, *BACKENDS], capture_output=True, text=True, check=False,
        cwd=Path(native.__file__).parents[2], timeout=600,
    )  # fmt: skip
    assert (done.returncode, done.stdout.split()) == (0, BACKENDS), done.stderr
