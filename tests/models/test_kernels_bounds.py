"""The kernels read nothing beyond the end of a tensor: there lies a page that cannot be read.

Whoever does is ended by the system, so they are called in a process of their own.
"""

import subprocess
import sys
from pathlib import Path

import pytest
from kernel_paths import PATHS

from hopscope.models import compiled

CALLS = """
import ctypes, itertools, mmap, sys
import torch
from hopscope.models import compiled, halves, kernels

PAGE, NONE, kept = mmap.PAGESIZE, 0, []
libc = ctypes.CDLL(None)

def numbers(*shape):
    size = 2 * torch.Size(shape).numel()
    whole = -(-size // PAGE) * PAGE
    memory = mmap.mmap(-1, whole + PAGE)
    begin = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    assert libc.mprotect(ctypes.c_void_p(begin + whole), ctypes.c_size_t(PAGE), NONE) == 0
    kept.append(memory)
    x = torch.frombuffer(memory, dtype=torch.bfloat16, count=size // 2, offset=whole - size)
    return x.view(shape).copy_(torch.randn(shape)).requires_grad_()

def call_all():
    for rows, (ins, outs) in itertools.product((1, 17, 31, 65, 257), ((64, 64), (128, 384))):
        x, weight, bias = numbers(1, rows, ins), numbers(outs, ins), numbers(outs)
        kernels.affine(x, weight, bias).backward(numbers(1, rows, outs))
        down = numbers(ins, outs), numbers(ins)
        kernels.mlp(x, (weight, bias), down).backward(numbers(1, rows, ins))
        gain, shift = numbers(ins), numbers(ins)
        kernels.norm(x, gain, shift, 1e-5).backward(numbers(1, rows, ins))
        vectors, square = [numbers(ins) for _ in range(5)], [numbers(ins, ins) for _ in range(4)]
        pairs = list(zip(square, vectors))
        for read in (rows, rows // 2 + 1):
            if rows > 128:
                continue
            heads = halves.Heads(2, True, read, 1e-5)
            maps = pairs[0], square[1], pairs[2], pairs[3]
            halves.attention(x, (gain, shift), maps, heads).backward(numbers(1, read, ins))
        halves.mlp(x, (gain, shift), (weight, bias), down, 1e-5).backward(numbers(1, rows, ins))
    for seq, width, causal in itertools.product((1, 15, 28, 44, 128), (16, 48, 128), (True, False)):
        kernels.attend(numbers(1, seq, 6 * width), None, 2, causal).backward(
            numbers(1, seq, 2 * width)
        )
        read = seq // 2 + 1
        kernels.attend(
            numbers(1, seq, 4 * width), numbers(1, read, 2 * width), 2, causal
        ).backward(numbers(1, read, 2 * width))

for path in sys.argv[1:]:
    with compiled.using(path):
        call_all()
    print(path)
"""


@pytest.mark.skipif(not PATHS, reason="no kernels in C")
def test_nothing_is_read_beyond_the_end() -> None:
    done = subprocess.run(
        [sys.executable, "-c", CALLS, *PATHS], capture_output=True, text=True, check=False,
        cwd=Path(compiled.__file__).parents[2],
    )  # fmt: skip
    assert (done.returncode, done.stdout.split()) == (0, PATHS), done.stderr
