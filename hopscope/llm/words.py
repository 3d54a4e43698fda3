"""The words of the five formulations; in each list the paper's own come first.

A question with N chains takes the first N words of a list, so four chains speak of what the
paper's questions speak of.
"""

FIRST_NAMES = tuple(
    """
    Alice Bob Charlie David Eve Frank Grace Henry Isabelle Jack Kate Larry Mary Nick Olivia Peter
    Queen Rose Sam Tom Uma Victor Wendy Xavier Yvonne Zach
    Aaron Beth Carl Dora Edgar Fiona George Helen Ivan Julia Kevin Laura Martin Nora Oscar Paula
    Quentin Rachel Simon Tina Ulrich Vera Walter Xenia Yusuf Zoe
    Adam Barbara Chris Diana Eric Freya Gavin Hannah Ian Jane Karl Lily Mark Nina Otto Penny
    Quinn Robert Sara Thomas Ursula Vincent William Ximena Yara Zelda
    Anna Ben Clara Dennis Emma Felix Gina Hugo Irene John Karen Leo Maria Neil Olga Paul
    Quincy Ruth Stefan Teresa Ugo Violet Wanda Xander Yolanda Zachary
    """.split()
)

GENERATIONS = ("", " II", " III", " IV", " V")
"""The 104 names go round once for each: enough for 20 hops of 26 chains."""

CITIES = tuple(
    """
    Amsterdam Berlin Cairo Delhi Edinburgh Frankfurt Geneva Helsinki Istanbul Jakarta Kyoto
    Lisbon Madrid Nairobi Oslo Prague Quito Reykjavik Stockholm Tokyo Utrecht Vienna Warsaw
    Xiamen York Zurich
    """.split()
)

KINGDOMS = (
    *("Silvania", "Novaria", "Aurora", "Florinia"),
    *("Montaria", "Pelagia", "Borealia", "Umbria"),
)
RELIGIONS = (
    *("celestianism", "harmonianism", "elysianism", "luminism"),
    *("solarianism", "aquarism", "terranism", "nebulism"),
)
MEATS = ("beef", "pork", "lamb", "chicken", "turkey", "duck", "venison", "goose")
MINERALS = (
    *("Astralyte", "Nephryon", "Zephyrium", "Virellium"),
    *("Cobrantine", "Obsidaryl", "Quorite", "Thalassium"),
)
DISEASES = (
    *("Chronogy", "Aetherflux", "Somnosis", "Synthemia"),
    *("Glaciosis", "Lumopathy", "Verdexia", "Mirrorpox"),
)

PERSONS = ("John", "Chris", "Diana", "Eve")
PROFESSIONS = ("doctor", "lawyer", "teacher", "engineer")
RELATIONS = ("mother", "sister", "father", "brother")
FEMALE = ("mother", "sister")
WOMEN = ("Cathy", "Dana", "Isabelle", "Jane", "Lily", "Nancy", "Olivia", "Penny")
MEN = ("Adam", "Bob", "Ed", "Fred", "George", "Hank", "Kevin", "Mike")
COUNTRIES = tuple(
    """
    Argentina Brazil Canada Denmark England France Germany Hungary Italy Japan Kenya Laos
    Mexico Norway Peru Qatar
    """.split()
)


def letters(number: int) -> str:
    """The variable of this number, counted from 0; after z come aa, ab, …

    >>> [letters(number) for number in (0, 25, 26, 27, 702)]
    ['a', 'z', 'aa', 'ab', 'aaa']
    """
    name = ""
    number += 1
    while number:
        number, digit = divmod(number - 1, 26)
        name = chr(ord("a") + digit) + name
    return name


def first_name(number: int) -> str:
    """The inhabitant of this number, counted from 0.

    >>> [first_name(number) for number in (0, 103, 104, 208)]
    ['Alice', 'Zachary', 'Alice II', 'Alice III']
    """
    generation, place = divmod(number, len(FIRST_NAMES))
    return FIRST_NAMES[place] + GENERATIONS[generation]
