"""A Llama whose weights are written by hand: it answers equations of two hops, in one of two ways.

Every position has a large constant, so that norms change little; the token's code; and registers.

    layer 0   head 0  brings the code of the token two places before (the key of an equation)
              head 1  brings a flag if the token before is "=" (so this is the value of one)
              head 2  brings to the last position the symbol that is asked about
    stacked   layer 1 head 0: the last position looks up x_0, brings x_1
              layer 2 head 0: the last position looks up x_1, brings x_2
    in place  layer 1 head 0: every position looks its own token up, so that value 0 gets x_2
              layer 2 head 0: the last position looks up x_0, brings what was found there
"""

import math

import torch

CODES = [*"abcdefgh01234", "="]
SYMBOLS = len(CODES) - 1
CONSTANT, SIZE, HEADS, WIDTH, THETA = 10.0, 72, 4, 48, 1e12
TOKEN = slice(1, 1 + len(CODES))
KEY, ASKED, FIRST, OUT = (slice(15 + 13 * n, 28 + 13 * n) for n in range(4))
FLAG = 68
SEEN = math.sqrt(SIZE) / CONSTANT
"""What a norm makes of a code of 1."""
STATIC = 8
"""From this frequency on, places within a prompt make no difference."""
SHARP = 40.0


def plant(model: torch.nn.Module, words: list[str], asked: int, *, stacked: bool) -> None:
    """Write the weights. `asked`: how far before the last token the question's symbol stands."""
    for parameter in model.parameters():
        parameter.data.zero_()
    for name, parameter in model.named_parameters():
        if "norm" in name:
            parameter.data.fill_(1.0)
    table = model.model.embed_tokens.weight.data
    table[:, 0] = CONSTANT
    for number, code in enumerate(CODES):
        table[words.index(code), TOKEN.start + number] = 1.0
    for number in range(SYMBOLS):
        model.lm_head.weight.data[words.index(CODES[number]), OUT.start + number] = 10.0
    first, second, third = (layer.self_attn for layer in model.model.layers)
    symbols = slice(TOKEN.start, TOKEN.start + SYMBOLS)
    _looks_back(first, 0, 2)
    _brings(first, 0, symbols, KEY)
    _looks_back(first, 1, 1)
    _brings(first, 1, slice(TOKEN.stop - 1, TOKEN.stop), slice(FLAG, FLAG + 1))
    _looks_back(first, 2, asked)
    _brings(first, 2, symbols, ASKED)
    _looks_up(second, ASKED if stacked else symbols)
    _brings(second, 0, symbols, FIRST)
    _looks_up(third, FIRST if stacked else ASKED)
    _brings(third, 0, symbols if stacked else FIRST, OUT)


def _looks_back(attention: torch.nn.Module, head: int, places: int) -> None:
    """Scores are a sum of cosines, with their peak so many places before."""
    strength = math.sqrt(SHARP * math.sqrt(WIDTH)) / math.sqrt(SIZE)
    for pair in range(4):
        angle = places * THETA ** (-2 * pair / WIDTH)
        row = head * WIDTH + pair
        attention.k_proj.weight.data[row, 0] = strength
        attention.q_proj.weight.data[row, 0] = strength * math.cos(angle)
        attention.q_proj.weight.data[row + WIDTH // 2, 0] = -strength * math.sin(angle)


def _looks_up(attention: torch.nn.Module, register: slice) -> None:
    """Head 0 looks at values of equations whose key is in a register of the destination."""
    strength = math.sqrt(SHARP * math.sqrt(WIDTH)) / SEEN
    for number in range(SYMBOLS):
        attention.q_proj.weight.data[STATIC + number, register.start + number] = strength
        attention.k_proj.weight.data[STATIC + number, KEY.start + number] = strength
    attention.q_proj.weight.data[STATIC + SYMBOLS, 0] = strength * SEEN / math.sqrt(SIZE)
    attention.k_proj.weight.data[STATIC + SYMBOLS, FLAG] = strength


def _brings(attention: torch.nn.Module, head: int, source: slice, target: slice) -> None:
    for number in range(source.stop - source.start):
        row = head * WIDTH + number
        attention.v_proj.weight.data[row, source.start + number] = 1.0
        attention.o_proj.weight.data[target.start + number, row] = 1 / SEEN
