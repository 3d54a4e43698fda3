"""Arrays and words travel in one file."""

import numpy as np

from hopscope.web.tensors import packed, unpacked


def test_arrays_and_words_come_back() -> None:
    arrays = {"a": np.arange(6, dtype=np.float16).reshape(2, 3).T, "b": np.array([1], np.int32)}
    data = packed(arrays, {"nan": [(float("inf"),)], "text": "·"})
    found, words = unpacked(data)
    assert words == {"nan": [[None]], "text": "·"}
    assert found["a"].dtype == np.float16
    np.testing.assert_array_equal(found["a"], arrays["a"])
    assert unpacked(packed(arrays))[1] is None
