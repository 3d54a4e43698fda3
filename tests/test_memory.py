"""What was used longest ago goes first, and what is too large is not kept."""

from hopscope.memory import Memory


def test_the_oldest_goes_first() -> None:
    memory, made = Memory(10), []

    def get(key: str, size: int = 4) -> str:
        def make() -> str:
            made.append(key)
            return key.upper()

        return memory.get(key, make, lambda _: size)

    assert [get("a"), get("b"), get("a"), get("c")] == ["A", "B", "A", "C"]
    assert made == ["a", "b", "c"]
    assert [memory.known(key) for key in "abc"] == ["A", None, "C"]
    assert memory.held == 8
    get("large", 11)
    assert (memory.known("large"), memory.held) == (None, 8)
