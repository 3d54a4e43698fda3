"""The page's reader of safetensors gives the numbers that were written, and checks every place."""

import base64
import json
from typing import Any

import torch
from safetensors.torch import save

READ = """async ([module, text]) => {
  const { readSafetensors } = await import(module);
  const bytes = Uint8Array.from(atob(text), (one) => one.charCodeAt(0));
  try {
    const { metadata, tensors } = readSafetensors(bytes.buffer);
    const plain = [...tensors].map(([name, it]) => [name, it.shape, [...it.data].map(String)]);
    return { metadata, plain };
  } catch (error) {
    return error.message;
  }
}"""


def read(page: Any, site: str, file: bytes) -> Any:
    page.goto(f"{site}/blank")
    return page.evaluate(READ, ["/safetensors.js", base64.b64encode(file).decode()])


def raw(header: object, data: bytes = b"", length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(text) if length is None else length).to_bytes(8, "little") + text + data


def entry(dtype: str = "F32", shape: object = (1,), to: int = 4) -> dict[str, object]:
    return {"x": {"dtype": dtype, "shape": shape, "data_offsets": [0, to]}}


def test_every_type_and_every_half(page: Any, site: str) -> None:
    bits = torch.arange(1 << 16, dtype=torch.int32).to(torch.int16)
    written = {
        "half": bits.view(torch.float16),
        "brain": bits.clone().view(torch.bfloat16),
        "single": torch.tensor([[0.1, -2.5], [1e-40, 3e38]]),
        "double": torch.tensor([0.1], dtype=torch.float64),
        "long": torch.tensor([-(2**53) + 1, 7]),
        "int": torch.tensor([-5, 6], dtype=torch.int32),
        "short": torch.tensor([-5], dtype=torch.int16),
        "byte": torch.tensor([200, 0], dtype=torch.uint8),
        "truth": torch.tensor([True, False]),
        "number": torch.tensor(2.5),
        "none": torch.zeros(0, 3),
        "__proto__": torch.tensor([1.0]),
    }
    found = read(page, site, save(written, {"said": "</script>"}))
    assert found["metadata"] == {"said": "</script>"}
    assert {name for name, _, _ in found["plain"]} == set(written)
    for name, shape, data in found["plain"]:
        assert shape == list(written[name].shape)
        expected = written[name].flatten().double()
        numbers = torch.tensor([float(n) for n in data], dtype=torch.float64)
        assert torch.equal(numbers.nan_to_num(nan=12345), expected.nan_to_num(nan=12345))


DAMAGED = (
    (b"1234567", "7 bytes; a safetensors file has at least 8"),
    (raw(b"{}", length=3), "said to have 3 bytes; the file has 2"),
    (raw(b"{}", length=2**63), "said to have 9223372036854776000 bytes"),
    (raw(b"{x"), "the header is no JSON"),
    (raw([1]), "no table of tensors"),
    (raw(entry("F8")), "x has numbers of type F8"),
    (raw(entry("toString")), "x has numbers of type toString"),
    (raw(entry(shape="1")), "x has no shape and place"),
    (raw(entry(shape=[-1])), "x has no shape and place"),
    (raw({"x": None}), "x has numbers of type undefined"),
    (raw(entry(shape=[2])), "x has 4 bytes; its shape [2] of F32 takes 8"),
    (raw(entry(), b"123"), "x ends at byte 4; the file has 3"),
    (save({"x": torch.tensor([2**60])}), "the whole number 1152921504606846976"),
)


def test_a_damaged_file_is_refused_in_one_line(page: Any, site: str) -> None:
    for file, said in DAMAGED:
        found = read(page, site, file)
        assert isinstance(found, str), file
        assert said in found, file
        assert "\n" not in found, file
