"""The page's reader of files of arrays gives the numbers that were written."""

import base64
import gzip
from typing import Any

import torch
from safetensors.torch import save

READ = """async (text) => {
  const { unpacked } = await import("/safetensors.js");
  const bytes = Uint8Array.from(atob(text), (one) => one.charCodeAt(0));
  try {
    const { about, tensors } = unpacked(bytes.buffer);
    return [about, [...tensors].map(([name, it]) => [name, it.shape, [...it.data].map(String)])];
  } catch (error) {
    return error.message;
  }
}"""


def read(blank: Any, file: bytes) -> Any:
    return blank.evaluate(READ, base64.b64encode(file).decode())


def test_every_type_and_every_half(blank: Any) -> None:
    bits = torch.arange(1 << 16, dtype=torch.int32).to(torch.int16)
    written = {
        "half": bits.view(torch.float16),
        "single": torch.tensor([[0.1, -2.5], [1e-40, 3e38]]),
        "double": torch.tensor([0.1], dtype=torch.float64),
        "long": torch.tensor([-(2**53) + 1, 7]),
        "int": torch.tensor([-5, 6], dtype=torch.int32),
        "short": torch.tensor([-5], dtype=torch.int16),
        "whole": torch.tensor([65535], dtype=torch.uint16),
        "number": torch.tensor(2.5),
        "none": torch.zeros(0, 3),
    }
    about, found = read(blank, save(written, {"json": '{"said": "</script>"}'}))
    assert about == {"said": "</script>"}
    assert {name for name, _, _ in found} == set(written)
    for name, shape, data in found:
        assert shape == list(written[name].shape)
        expected = written[name].flatten().double()
        numbers = torch.tensor([float(n) for n in data], dtype=torch.float64)
        assert torch.equal(numbers.nan_to_num(nan=12345), expected.nan_to_num(nan=12345))


def test_numbers_that_are_not_known_are_refused_in_one_line(blank: Any) -> None:
    found = read(blank, save({"x": torch.tensor([True])}))
    assert found.startswith("x has numbers of type BOOL; known are F64,F32,F16")


UNZIP = """async (text) => {
  Blob.prototype.stream = () => { throw new DOMException("", "NotReadableError"); };
  const { unzipped } = await import("/safetensors.js");
  return [...new Uint8Array(await unzipped(text))];
}"""


def test_a_page_is_unzipped_where_no_blob_can_be_read(page: Any, site: str) -> None:
    """As in WebKit, in the worker of a page from a file."""
    page.goto(f"{site}/blank")
    file = bytes(range(256))
    assert page.evaluate(UNZIP, base64.b64encode(gzip.compress(file)).decode()) == [*file]
