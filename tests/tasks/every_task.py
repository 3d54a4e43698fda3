"""Every kind of task, in several settings, what its first examples are, and one that is easy."""

from hopscope.configs import MQAR, ConditionalRetrieval, Induction, KHop, Retrieval, Task


def one_hot(hops: int, chains: int = 4) -> Retrieval:
    """Retrieval of symbols none of which looks like another."""
    symbols = chains * (hops + 1)
    return Retrieval(hops=hops, chains=chains, symbols="one-hot", dim=max(4, symbols + symbols % 2))


FIRST_EXAMPLES: list[tuple[Task, str]] = [
    (Retrieval(), "0ec23e6834decb3d"),
    (
        Retrieval(
            hops=2, chains=3, dim=6, symbols="sphere", position="pair", order="shuffled",
            curriculum=False, base=10,
        ),
        "2c527c2216e4df04",
    ),
    (Retrieval(hops=2, chains=2, dim=6, symbols="one-hot", order="forward"), "30bc79968ab30308"),
    (Induction(), "a7538557da3aab35"),
    (ConditionalRetrieval(), "489da81e30c90a7d"),
    (ConditionalRetrieval(decoys=2, order="shuffled"), "8a78f08b50275ee0"),
    (KHop(), "00acef99920383f7"),
    (KHop(hops=3, alphabet=4, length=20, curriculum=False), "15da64b1bb49549d"),
    (MQAR(), "133ed54d171d9246"),
    (
        MQAR(pairs=3, queries=2, alphabet=17, length=20, power=1.0, filler="blank"),
        "b34676affb9ab355",
    ),
]  # fmt: skip
"""Tasks, and a hash of their first examples as they were when the task was added."""

TASKS = [task for task, _ in FIRST_EXAMPLES]
