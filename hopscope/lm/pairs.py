"""Minimal pairs of questions: a question and its donors, as tokens with their roles.

A donor is the question with two words exchanged, those that the chain asked about and a partner
have for a symbol:

    x1    wherever they stand: value of one fact, key of the next. The answer stays the same; a
          model that takes one for the other while all else stays as it is answers for the partner.
    x1…   in the value of its fact alone: from there on the chain is the partner's, and so is the
          answer.

For symbols that the question gives there is only the first kind; for the last symbol both are the
same. One more donor shows how the last look-up finds its line (`Binding`).

A pair is refused if the exchange would change more than the two words: if a tokenizer cuts two
words, or two answers, into different numbers of tokens, or an article follows a word. Then another
partner is tried, and if no partner is left, another question.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import takewhile
from typing import NamedTuple, TypeVar

from hopscope.configs import LmCircuit
from hopscope.configs.prompts import Prompts
from hopscope.errors import LmError
from hopscope.facts import Fact, FactGraph, Role
from hopscope.lm.drawing import CITIES, FIRST_NAMES, Line, QuestionLines
from hopscope.lm.model import LanguageModel, Tokens
from hopscope.lm.prompts import Question, question, question_lines, render

T = TypeVar("T")
ANSWER, OPENING, OTHER = Role("answer"), Role("opening"), Role("other")
ON = "…"
"""After the name of a symbol: only the value of its fact is exchanged."""
LAST, NEW = "last look-up", "last look-up, new answer"
"""The names of the two donors of a `Binding`."""
TRIED = 4
"""Questions that are tried for each one that is wanted, before the search for them ends."""


class Unreadable(Exception):
    """A question that cannot be paired, or whose answers no first token tells apart."""


@dataclass(frozen=True)
class Exchange:
    """One exchange: the lines of its donor, and the answer."""

    name: str
    drawn: QuestionLines
    words: tuple[str, str]
    """The two words that change places, that of the chain asked about first."""
    answer: str
    """The answer of a model that takes the partner's symbol for the chain's own."""


def exchange_names(prompts: Prompts) -> tuple[str, ...]:
    """All exchanges of these questions."""
    graph = prompts.graph()
    return (*graph.symbols, *(f"{fact.value}{ON}" for fact in graph.facts[:-1]))


def proving(prompts: Prompts) -> tuple[str, ...]:
    """The exchanges after which the answer is the partner's: one for each fact."""
    *between, last = prompts.graph().facts
    return (*(f"{fact.value}{ON}" for fact in between), last.value)


def followed(recipe: LmCircuit) -> tuple[str, ...]:
    """The exchanges that a run makes."""
    known = () if recipe.tracing.given else recipe.prompts.graph().known
    return tuple(name for name in exchange_names(recipe.prompts) if name not in known)


def exchanges(prompts: Prompts, lines: QuestionLines, partner: int) -> Iterator[Exchange]:
    """All exchanges with a partner."""
    graph = prompts.graph()
    own, other = (replace(lines, chain=chain).words(graph) for chain in (lines.chain, partner))
    for name in exchange_names(prompts):
        symbol = name.removesuffix(ON)
        words = own[symbol], other[symbol]
        given = {**own, symbol: other[symbol]} if symbol in graph.known else own
        alone = _exchanged(graph, lines.lines, symbol, words, ("value",))
        changed = alone if name.endswith(ON) else _exchanged(graph, lines.lines, symbol, words)
        answer = _followed(graph, alone, given)
        yield Exchange(name, replace(lines, lines=changed), words, answer)


def _exchanged(
    graph: FactGraph,
    lines: tuple[Line, ...],
    symbol: str,
    words: tuple[str, str],
    kinds: Sequence[str] = ("key", "value"),
) -> tuple[Line, ...]:
    """The lines with two words of a symbol exchanged, as keys, as values or as both; in decoys
    too.
    """
    swap = dict(zip(words, reversed(words), strict=True))

    def at(kind: str, name: str, word: str) -> str:
        return swap.get(word, word) if name == symbol and kind in kinds else word

    def changed(line: Line, fact: Fact) -> Line:
        keys = (at("key", *each) for each in zip(fact.keys, line.keys, strict=True))
        return replace(line, keys=tuple(keys), value=at("value", fact.value, line.value))

    return tuple(changed(line, graph.facts[line.fact]) for line in lines)


def _followed(graph: FactGraph, lines: tuple[Line, ...], given: Mapping[str, str]) -> str:
    """The answer, looked up line after line from the words that the question gives."""
    table = {(line.fact, line.keys): line.value for line in lines}
    words = {name: given[name] for name in graph.known}
    for number, fact in enumerate(graph.facts):
        words[fact.value] = table[number, tuple(words[key] for key in fact.keys)]
    return words[graph.facts[-1].value]


@dataclass(frozen=True)
class Binding:
    """A donor whose last look-up has another word, in another place, with another answer.

    The stream where the answer is given comes from the donor; what the answer becomes shows by
    which of the three the model looks it up.
    """

    drawn: QuestionLines
    outside: QuestionLines
    """The same with an answer that is not a word of the own question: a model that has the answer
    itself gives it, a model that has a pointer to it cannot."""
    position: str
    """The answer in the same place: of the line with the number that it has in the donor."""
    word: str
    """The answer to the same word: of the line whose key the donor looks up."""
    pointer: str
    """The donor's own answer."""
    new: str
    """The answer of `outside`."""


NEW_ANSWER: dict[str, Callable[[int], str]] = {
    "equations": str,
    "lives-with": lambda chains: CITIES[chains % len(CITIES)],
    "kingdoms": lambda chains: FIRST_NAMES[chains],
}
"""A word for an answer that a question of so many chains does not have."""


def binding(prompts: Prompts, lines: QuestionLines, partner: int) -> Binding | None:
    """The donor of the last look-up; None if there are fewer than four chains, or if that look-up
    needs more than one word.
    """
    if prompts.formulation not in NEW_ANSWER or prompts.chains < 4:
        return None
    graph, own = prompts.graph(), lines.chain
    last, fact = len(graph.facts) - 1, graph.facts[-1]
    of_chain = {line.chain: line for line in lines.lines if line.fact == last}
    order = [(partner + n) % prompts.chains for n in range(prompts.chains)]
    word, place, pointed = [of_chain[n] for n in order if n != own][:3]
    (key,), two = fact.keys, (word.keys[0], place.keys[0])
    moved = _exchanged(graph, lines.lines, key, two, ("key",))
    moved = _exchanged(graph, moved, fact.value, (place.value, pointed.value))
    asked = place.chain  # the line in that place has the word now
    if last:
        two = of_chain[own].keys[0], word.keys[0]
        moved = _by_chain(_exchanged(graph, moved, key, two, ("value",)), last)
        asked = own
    new = NEW_ANSWER[prompts.formulation](prompts.chains)
    outside = tuple(
        replace(line, value=new) if (line.fact, line.value) == (last, pointed.value) else line
        for line in moved
    )
    return Binding(
        QuestionLines(moved, asked),
        QuestionLines(outside, asked),
        place.value,
        word.value,
        pointed.value,
        new,
    )


def _by_chain(lines: tuple[Line, ...], last: int) -> tuple[Line, ...]:
    """The lines, with each line of the last fact in the chain that leads to its key."""
    leads = {line.value: line.chain for line in lines if line.fact == last - 1}
    return tuple(
        replace(line, chain=leads[line.keys[0]]) if line.fact == last else line for line in lines
    )


@dataclass(frozen=True)
class Answers:
    """The first tokens in which answers differ; their common beginning is part of the prompt."""

    own: int
    others: Mapping[str, int]
    """The partner's answer, for each exchange."""
    acceptable: tuple[int, ...]
    bound: tuple[int, ...] = ()
    """The answers to the last look-up by position, by word and by pointer, and the new one; empty
    if it needs several words, or if its donors cannot be made."""

    def thirds(self, name: str) -> tuple[int, ...]:
        """The answers of the chains that have no part in an exchange."""
        return tuple(n for n in self.acceptable if n not in (self.own, self.others[name]))


class Cut(NamedTuple):
    """A question as tokens, each with its role and its chain."""

    tokens: Tokens
    roles: tuple[int, ...]
    """Numbers in `role_table`."""
    chains: tuple[int, ...]
    """0 is asked about, 1 is the partner."""


@dataclass(frozen=True)
class Paired:
    """One question and its donors, all of the same length, which differ in the words exchanged."""

    index: int
    tokens: Tokens
    roles: tuple[int, ...]
    chains: tuple[int, ...]
    answers: Answers
    donors: Mapping[str, Tokens] = field(default_factory=dict)
    """For each exchange, and for the last look-up if it is bound; empty if nothing is patched."""
    candidates: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """For each symbol of the chain, its token, then those of the other chains."""


@cache
def role_table(prompts: Prompts) -> tuple[Role, ...]:
    """The roles of tokens: those of the facts, the rest of each fact's line, and the question."""
    spans = {span.role for span in question(prompts, 0, 0).spans}
    decoys = sorted(role for role in spans if role.kind.startswith("decoy"))
    lines = [Role("line", number) for number, _ in enumerate(prompts.graph().facts)]
    opening = [OPENING] if prompts.opening else []
    return (*prompts.graph().roles, *decoys, *lines, *opening, OTHER, ANSWER)


def pairs(
    local: LanguageModel, prompts: Prompts, seed: int, start: int, count: int
) -> list[Paired]:
    """So many pairs, of the first questions from number `start` on that can be paired."""

    def first_partner(index: int) -> Paired:
        """The question, paired with the first chain that it can be paired with."""
        lines, whys = question_lines(prompts, seed, index), list[Unreadable]()
        for step in range(1, prompts.chains):
            partner = lines.chain + 1 + (index // prompts.chains + step) % (prompts.chains - 1)
            try:
                return _paired(local, prompts, lines, index, partner % prompts.chains)
            except Unreadable as error:
                whys.append(error)
        raise whys[0]

    return first_made(first_partner, start, count, f"questions of {prompts.label} can be paired")


def unpaired(
    local: LanguageModel, prompts: Prompts, seed: int, start: int, count: int
) -> list[Paired]:
    """The first questions from number `start` on that can be read, without donors."""

    def read(index: int) -> Paired:
        each = question(prompts, seed, index)
        common, first, _ = first_tokens(local, each)
        own = cut(local, prompts, each, (each.chain + 1) % prompts.chains, common)
        return Paired(index, *own, Answers(first[each.correct], {}, tuple(first.values())))

    return first_made(read, start, count, f"questions of {prompts.label} can be read")


def first_made(make: Callable[[int], T], start: int, count: int, what: str) -> list[T]:
    """What is made of the first questions from number `start` on; those that are Unreadable are
    left out.
    """
    made: list[T] = []
    why: Unreadable | None = None
    for index in range(start, start + TRIED * count):
        try:
            made.append(make(index))
        except Unreadable as error:
            why = why or error
        if len(made) == count:
            return made
    raise LmError(f"{len(made)} of {TRIED * count} {what}, and {count} are needed: {why}")


def _paired(
    local: LanguageModel, prompts: Prompts, lines: QuestionLines, index: int, partner: int
) -> Paired:
    graph, asked = prompts.graph(), render(prompts, lines, index)
    right, made = asked.correct, list(exchanges(prompts, lines, partner))
    common, first, lengths = first_tokens(local, asked)
    for each in made:
        if each.answer == right:
            raise Unreadable(f"the exchange of {each.name} leaves the answer {right!r}")
        if lengths[each.answer] != lengths[right]:
            raise Unreadable(
                f"{local.name}'s tokenizer cuts {right!r} into {lengths[right]} tokens and "
                f"{each.answer!r} into {lengths[each.answer]}; expected as many"
            )

    def read(changed: QuestionLines) -> Cut:
        return cut(local, prompts, render(prompts, changed, index), partner, common)

    own, donors = read(lines), {}
    for each in made:
        donor = read(each.drawn)
        _check_donor(local.name, each, own, donor, prompts)
        donors[each.name] = donor.tokens
    bound: tuple[int, ...] = ()
    if (last := binding(prompts, lines, partner)) is not None:
        both = {LAST: read(last.drawn).tokens, NEW: read(last.outside).tokens}
        if {len(own.tokens)} == {len(tokens) for tokens in both.values()}:
            bound = _bound(local, last, render(prompts, last.outside, index), common, first)
            donors |= both if bound else {}
    others = {each.name: first[each.answer] for each in made}
    answers = Answers(first[right], others, tuple(first.values()), bound)
    candidates = {
        fact.value: _values(own, role_table(prompts).index(Role("value", number)))
        for number, fact in enumerate(graph.facts)
    }
    rest = (token for token in answers.acceptable if token != answers.own)
    candidates[graph.facts[-1].value] = (answers.own, *rest)
    return Paired(index, *own, answers, donors, candidates)


def _values(own: Cut, role: int) -> tuple[int, ...]:
    """The first token of a role in each chain."""
    first: dict[int, int] = {}
    for token, its_role, chain in zip(*own, strict=True):
        if its_role == role:
            first.setdefault(chain, token)
    return tuple(first[chain] for chain in sorted(first))


def _bound(
    local: LanguageModel, made: Binding, outside: Question, common: Tokens, first: Mapping[str, int]
) -> tuple[int, ...]:
    """The first tokens of `Answers.bound`; none if the new answer has no first token of its own."""
    spelled = local.spellings(local.text(outside.prompt, outside.opening), made.new)[0]
    new = spelled[len(common) : len(common) + 1]
    known = (*first.values(), local.tokenizer.unk_token_id)
    if spelled[: len(common)] != common or not new or new[0] in known:
        return ()
    return first[made.position], first[made.word], first[made.pointer], *new


def first_tokens(
    local: LanguageModel, asked: Question
) -> tuple[Tokens, dict[str, int], dict[str, int]]:
    """The common beginning of all acceptable answers; for each answer, its first token after that,
    and its number of tokens. A question whose answers no first token tells apart is Unreadable.
    """
    text = local.text(asked.prompt, asked.opening)
    spelled = {answer: local.spellings(text, answer)[0] for answer in asked.acceptable}
    shared = zip(*spelled.values(), strict=False)
    common = tuple(each[0] for each in takewhile(lambda each: len(set(each)) == 1, shared))
    first: dict[int, str] = {}
    for answer, tokens in spelled.items():
        if len(tokens) == len(common) or tokens[len(common)] in first:
            twin = first.get(tokens[len(common)]) if len(tokens) > len(common) else "another"
            raise Unreadable(f"the answers {answer!r} and {twin!r} begin with the same tokens")
        first[tokens[len(common)]] = answer
    lengths = {answer: len(tokens) for answer, tokens in spelled.items()}
    return common, {answer: token for token, answer in first.items()}, lengths


def _check_donor(name: str, made: Exchange, own: Cut, donor: Cut, prompts: Prompts) -> None:
    """Refuse a donor that is not the question with two words exchanged."""
    one, other = made.words
    if len(own.tokens) != len(donor.tokens) or own.roles != donor.roles:
        raise Unreadable(
            f"{name}'s tokenizer cuts {one!r} and {other!r} into different numbers of tokens; "
            "expected as many, so that all else stays in its place"
        )
    table = role_table(prompts)
    both = zip(own.roles, own.tokens, donor.tokens, strict=True)
    changed = {table[role].kind for role, a, b in both if a != b}
    if changed & {"line", "other", "answer"}:
        raise Unreadable(f"exchanging {one!r} and {other!r} changes the words beside them")


def cut(
    local: LanguageModel, prompts: Prompts, asked: Question, partner: int, common: Tokens
) -> Cut:
    """The tokens of a question, with the role and the chain of each. A question with two symbols in
    one token is Unreadable.
    """
    if not local.tokenizer.is_fast:
        raise LmError(
            f"{local.name}'s tokenizer does not say where its tokens stand; only fast tokenizers "
            "can be read"
        )
    text, table = local.text(asked.prompt, asked.opening), role_table(prompts)
    begin = text.index(asked.prompt)
    opening = len(text) - len(asked.opening) if asked.opening else len(text)
    tokens = local.tokens(text)
    encoded = local.tokenizer(
        text, add_special_tokens=local.template == "raw", return_offsets_mapping=True
    )
    order = {asked.chain: 0, partner: 1}
    for chain in range(prompts.chains):
        order.setdefault(chain, len(order))
    found = []
    for first, last in encoded["offset_mapping"][: len(tokens)]:
        symbols, lines = (
            [span for span in spans if first - begin < span.end and last - begin > span.start]
            for spans in (asked.spans, asked.lines)
        )
        if len(symbols) > 1:
            raise Unreadable(f"{local.name}'s tokenizer joins two symbols in one token")
        inside = ((span.role, order[span.chain]) for span in (*symbols, *lines))
        found.append(next(inside, (OPENING if last > opening else OTHER, 0)))
    found += [(OPENING if prompts.opening else OTHER, 0)] * len(common)
    found[-1] = (ANSWER, 0)
    roles, chains = zip(*found, strict=True)
    return Cut((*tokens, *common), tuple(map(table.index, roles)), chains)
