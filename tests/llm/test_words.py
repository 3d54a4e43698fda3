"""The lists of words: as many as promised, none of them twice."""

from hopscope.configs.prompts import MOST_CHAINS
from hopscope.llm import words


def test_the_lists_hold_as_many_words_as_promised() -> None:
    lists = (words.KINGDOMS, words.RELIGIONS, words.MEATS, words.MINERALS, words.DISEASES)
    assert {len(some) for some in lists} == {MOST_CHAINS["kingdoms"]}
    assert len(set().union(*map(set, lists))) == 5 * MOST_CHAINS["kingdoms"]
    assert len(words.CITIES) == MOST_CHAINS["lives-with"]
    people = {words.first_name(number) for number in range(20 * len(words.CITIES))}
    assert len(people | set(words.CITIES)) == 21 * len(words.CITIES)
    assert len(words.PERSONS) == len(words.PROFESSIONS) == MOST_CHAINS["relatives"]
    assert not set(words.PERSONS) & {*words.WOMEN, *words.MEN}
