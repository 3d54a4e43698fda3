"""Files that are no tables, or that another hopscope wrote, are one line that says what to do."""

from pathlib import Path

import pytest

from hopscope.errors import ResultsUnreadable
from hopscope.papers.row import Row
from hopscope.papers.table import FORMAT, Table
from hopscope.papers.table_file import protocol_of, read_table

NAME = "musat/depth"
HEAD = f'{{"target": "{NAME}", "protocol": "reduced", "format": {FORMAT}}}'


class Numbered(Row):
    n: int


def filled(root: Path, content: bytes) -> Path:
    path = root / "depth.jsonl"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("number", ["0", "2", '"2\\n"', "null", "[1]"])
def test_another_format_is_said(tmp_path: Path, number: str) -> None:
    path = filled(tmp_path, f'{{"format": {number}, "goal": "?"}}\n{{"loss": 1}}\n'.encode())
    with pytest.raises(
        ResultsUnreadable, match="has format .*, this hopscope .* reads 1: "
    ) as caught:
        read_table(path, NAME, (Numbered,))
    assert str(caught.value).endswith(f"`hopscope reproduce {NAME}` measures it anew")


GARBAGE = {
    "empty": b"",
    "an empty line": b"\n",
    "no JSON": b"\x1b[31mred\n",
    "no text": b"\xff\xfe\x00",
    "cut off": f'{HEAD}\n{{"loss": 0.'.encode(),
    "too deep": b"[" * 100_000,
    "no object": b"[1, 2]\n",
    "a row that is none": f"{HEAD}\n3\n".encode(),
    "no head": b'{"loss": 0.5}\n',
    "no format": HEAD.replace('"format"', '"form"').encode(),
    "an unknown field": HEAD.replace("}", ', "\\u001b[2J": 1}').encode(),
    "rows in the head": HEAD.replace("}", ', "rows": []}').encode(),
    "an unknown protocol": HEAD.replace("reduced", "grand").encode(),
    "a protocol that is a list": HEAD.replace('"reduced"', "[]").encode(),
    "of another target": HEAD.replace(NAME, "musat/fig5").encode(),
}


@pytest.mark.parametrize("kind", GARBAGE)
def test_garbage_is_one_line_that_says_what_to_do(tmp_path: Path, kind: str) -> None:
    path = filled(tmp_path, GARBAGE[kind])
    with pytest.raises(ResultsUnreadable) as caught:
        read_table(path, NAME, (Numbered,))
    text = str(caught.value)
    assert text.isprintable()
    assert text.startswith(f"{path} is no table of results")
    assert text.endswith(f"remove it, and `hopscope reproduce {NAME}` measures it anew")


def test_the_least_head_is_enough(tmp_path: Path) -> None:
    path = filled(tmp_path, f"{HEAD}\n".encode())
    assert read_table(path, NAME, (Numbered,)) == Table(NAME, "reduced", ())


def test_a_row_that_cannot_be_read_is_named_by_its_line(tmp_path: Path) -> None:
    path = filled(tmp_path, f'{HEAD}\n{{"n": 1}}\n{{"m": 1}}\n'.encode())
    with pytest.raises(ResultsUnreadable) as caught:
        read_table(path, NAME, (Numbered,))
    assert str(caught.value) == (
        f"line 3 of {path} is damaged or of another hopscope ('Numbered.n': Field required): "
        f"`hopscope reproduce {NAME}` measures it anew"
    )


@pytest.mark.parametrize(
    ("content", "protocol"),
    [
        (b'{"format": 99, "protocol": "full"}\n', "full"),
        (HEAD.encode(), "reduced"),
        (b"\xff full\n", "smoke"),
    ],
)
def test_the_protocol_is_known_of_any_format(tmp_path: Path, content: bytes, protocol: str) -> None:
    assert protocol_of(filled(tmp_path, content)) == protocol
