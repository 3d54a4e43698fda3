"""`python docs/_building/concepts.py docs/images/concepts.svg` draws the figure of concepts.md.

The circuit of the demo, without its shared steps: two previous-token heads, a head by which value 0
fetches the second hop, and the heads by which the query reads both answers.
"""

import sys
from pathlib import Path

ROLES = (("key 1", "B"), ("value 1", "C"), ("key 0", "A"), ("value 0", "B"), ("query", "A"))
"""What stands at each position of the sequence, in its order: A leads to B, B leads to C."""
HELD = (
    ("B", "C", "A", "B", "A"),
    ("B", "BC", "A", "AB", "A"),
    ("B", "BC", "A", "ABC", "A"),
    ("B", "BC", "A", "ABC", "ABC"),
)
"""What each position holds at first, and after each layer."""
ARROWS = (
    (0, 0, 1, "0.1", "routes"),
    (0, 2, 3, "0.1", "routes"),
    (1, 1, 3, "1.3", "moves"),
    (2, 3, 4, "2.0+1+2", "moves"),
)
"""Layer, source, destination, heads, what they are needed for."""
NUMBERS = ((1, 0, 4.33, 30), (2, 2, 3.34, 0), (3, 2, 1.82, 48), (4, 3, 3.35, 58))
"""The numbers that the page refers to: number, level, column, shift downwards."""
LEFT, STEP, BOTTOM, HEIGHT = 150, 135, 360, 105
COLOURS = {"A": "#0f766e", "B": "#b45309", "C": "#6d28d9"}
STYLE = """
text{font:14px system-ui,sans-serif;fill:#1f2937} .small{font-size:12px;fill:#4b5563}
.arrow{stroke:#1f2937;stroke-width:2.5;fill:none}
.routes{stroke-dasharray:6 4;stroke-width:1.8} .level{stroke:#d1d5db} #head path{fill:#1f2937}
.number{fill:#1f2937} .number+text{fill:#fff;font-weight:600;font-size:12px}
@media (prefers-color-scheme:dark){text{fill:#e5e7eb} .small{fill:#9ca3af}
.arrow{stroke:#e5e7eb} .level{stroke:#374151}
#head path,.number{fill:#e5e7eb} .number+text{fill:#111827}}
"""

HEAD = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img"
 aria-labelledby="title">
<title id="title">The circuit of two hops: roles below, layers upward</title>
<style>{style}</style>
<defs><marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7"
 orient="auto"><path d="M0 0L10 5L0 10z"/></marker></defs>"""


def x(column: float) -> float:
    return LEFT + STEP * column


def y(level: float) -> float:
    return BOTTOM - HEIGHT * level


def text(left: float, top: float, words: str, kind: str = "", anchor: str = "middle") -> str:
    style = f' class="{kind}"' if kind else ""
    return f'<text x="{left:g}" y="{top:g}" text-anchor="{anchor}"{style}>{words}</text>'


def squares(column: int, level: int) -> str:
    """The symbols that a position holds after so many layers."""
    held = HELD[level][column]
    wide = 20
    begin = x(column) - wide * len(held) / 2
    made = []
    for place, symbol in enumerate(held):
        left = begin + wide * place
        made.append(
            f'<rect x="{left + 1:g}" y="{y(level) - 9:g}" width="18" height="18" rx="3" '
            f'fill="{COLOURS[symbol]}"/>'
        )
        made.append(
            f'<text x="{left + 10:g}" y="{y(level) + 4.5:g}" text-anchor="middle" '
            f'style="fill:#fff;font-size:12px">{symbol}</text>'
        )
    return "".join(made)


def arrow(layer: int, source: int, destination: int, heads: str, kind: str) -> str:
    half = 10 * len(HELD[layer + 1][destination])
    left, bottom = x(source) + 6, y(layer) - 12
    right, top = x(destination) - half - 5, y(layer + 1) + 8
    line = (
        f'<path class="arrow {kind}" marker-end="url(#head)" '
        f'd="M{left:g} {bottom:g}L{right:g} {top:g}"/>'
    )
    name = f"head{'s' * ('+' in heads)} {heads}"
    return line + text((left + right) / 2 + 12, (bottom + top) / 2 + 18, name, "small", "start")


def number(value: int, level: int, column: float, down: float) -> str:
    left, top = x(column), y(level) + down
    return (
        f'<circle class="number" cx="{left:g}" cy="{top:g}" r="10"/>'
        f'<text x="{left:g}" y="{top + 4:g}" text-anchor="middle">{value}</text>'
    )


def figure() -> str:
    width, height = x(4) + 90, BOTTOM + 70
    made = [HEAD.format(width=width, height=height, style=STYLE)]
    levels = ("the input", "after layer 0", "after layer 1", "after layer 2")
    for level, name in enumerate(levels):
        made.append(f'<path class="level" d="M20 {y(level):g}H{width - 20:g}"/>')
        made.append(text(20, y(level) - 6, name, "small", "start"))
    for layer, source, destination, heads, kind in ARROWS:
        made.append(arrow(layer, source, destination, heads, kind))
    for level in range(len(levels)):
        made += [squares(column, level) for column in range(len(ROLES))]
    for column, (role, _) in enumerate(ROLES):
        made.append(text(x(column), BOTTOM + 34, role))
    made.append(text(x(0.5), BOTTOM + 54, "fact 1: B leads to C", "small"))
    made.append(text(x(2.5), BOTTOM + 54, "fact 0: A leads to B", "small"))
    made.append(text(x(4), BOTTOM + 54, "A leads to …?", "small"))
    made.append(text(x(4), y(3) - 18, "answers: B, C", "small"))
    made += [number(*each) for each in NUMBERS]
    return "\n".join([*made, "</svg>", ""])


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(figure(), encoding="utf-8")
    print(f"figure: {path}")
