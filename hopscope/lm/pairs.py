"""Minimal pairs of questions: a question and its donors, as tokens with their roles.

A donor is the question with two words exchanged: the words for one symbol in the chain asked about
and in a partner chain. There are two kinds:

    x1    both words are exchanged everywhere (value of one fact, key of the next). The donor's
          answer is unchanged; but a model whose word for x1 is patched, and nothing else, gives the
          partner's answer.
    x1…   the words are exchanged only as values. From there on the chain is the partner's, and so
          is the answer.

Symbols that the question gives have only the first kind; for the last symbol both are the same. One
more donor shows how the last look-up finds its line (`Binding`).

A pair is refused if the exchange would change more than the two words: if the tokenizer splits two
words, or two answers, into different numbers of tokens, or if an article depends on the word. Then
another partner is tried, and if no partner is left, another question.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import takewhile
from typing import NamedTuple

from hopscope.configs import LmCircuit
from hopscope.configs.prompts import Prompts
from hopscope.errors import LmError
from hopscope.facts import Role
from hopscope.lm.drawing import CITIES, FIRST_NAMES, QuestionLines
from hopscope.lm.model import LanguageModel, Tokens
from hopscope.lm.prompts import Question, question, question_lines, render

ANSWER, OPENING, OTHER = Role("answer"), Role("opening"), Role("other")
ON = "…"
"""Suffix of a symbol's name: only the value of its fact is exchanged."""
LAST, NEW = "last look-up", "last look-up, new answer"
"""The names of the two donors of a `Binding`."""
TRIED = 4
"""The search for pairs ends after this many questions for each wanted one."""


class Unreadable(Exception):
    """A question that cannot be paired, or whose answers no single token distinguishes."""


@dataclass(frozen=True)
class Exchange:
    """One exchange: the lines of its donor, and the answer."""

    name: str
    drawn: QuestionLines
    words: tuple[str, str]
    """The two exchanged words; first the word of the chain asked about."""
    answer: str
    """The answer if the model uses the partner's word instead of the chain's own."""


def exchange_names(prompts: Prompts) -> tuple[str, ...]:
    """Return the names of all exchanges of these questions."""
    graph = prompts.graph()
    return (*graph.symbols, *(f"{fact.value}{ON}" for fact in graph.facts[:-1]))


def proving(prompts: Prompts) -> tuple[str, ...]:
    """Return the names of the exchanges that change the answer to the partner's: one per fact."""
    *between, last = prompts.graph().facts
    return (*(f"{fact.value}{ON}" for fact in between), last.value)


def followed(recipe: LmCircuit) -> tuple[str, ...]:
    """Return the names of the exchanges that a run makes."""
    known = () if recipe.tracing.given else recipe.prompts.graph().known
    return tuple(name for name in exchange_names(recipe.prompts) if name not in known)


def exchanges(prompts: Prompts, lines: QuestionLines, partner: int) -> Iterator[Exchange]:
    """Yield all exchanges with a partner."""
    graph = prompts.graph()
    own, other = (replace(lines, chain=chain).words(graph) for chain in (lines.chain, partner))
    for name in exchange_names(prompts):
        symbol = name.removesuffix(ON)
        words = own[symbol], other[symbol]
        given = {**own, symbol: other[symbol]} if symbol in graph.known else own
        alone = lines.exchanged(graph, symbol, words, ("value",))
        changed = alone if name.endswith(ON) else lines.exchanged(graph, symbol, words)
        answer = alone.words(graph, given)[graph.facts[-1].value]
        yield Exchange(name, changed, words, answer)


@dataclass(frozen=True)
class Binding:
    """A donor whose last look-up has another word, in another place, with another answer.

    The stream at the answer's position is patched from the donor; the answer then shows by which of
    the three the model looks it up.
    """

    drawn: QuestionLines
    outside: QuestionLines
    """The same lines with an answer that is not a word of the own question. A stream that holds the
    answer itself gives it; a stream that holds a pointer cannot."""
    position: str
    """The answer in the own question's line with the same number as the donor's last look-up."""
    word: str
    """The answer in the own question's line with the key that the donor looks up."""
    pointer: str
    """The donor's own answer."""
    new: str
    """The answer of `outside`."""


NEW_ANSWER: dict[str, Callable[[int], str]] = {
    "equations": str,
    "lives-with": lambda chains: CITIES[chains % len(CITIES)],
    "kingdoms": lambda chains: FIRST_NAMES[chains],
}
"""Makes an answer that does not occur in a question with this number of chains."""


def binding(prompts: Prompts, lines: QuestionLines, partner: int) -> Binding | None:
    """Return the donor of the last look-up.

    None if there are fewer than four chains, or if that look-up needs more than one word.
    """
    if prompts.formulation not in NEW_ANSWER or prompts.chains < 4:
        return None
    graph, own = prompts.graph(), lines.chain
    last, fact = len(graph.facts) - 1, graph.facts[-1]
    of_chain = {line.chain: line for line in lines.lines if line.fact == last}
    order = [(partner + n) % prompts.chains for n in range(prompts.chains)]
    word, place, pointed = [of_chain[n] for n in order if n != own][:3]
    (key,), two = fact.keys, (word.keys[0], place.keys[0])
    moved = lines.exchanged(graph, key, two, ("key",))
    moved = moved.exchanged(graph, fact.value, (place.value, pointed.value))
    if last:
        two = of_chain[own].keys[0], word.keys[0]
        moved = moved.exchanged(graph, key, two, ("value",))
    else:
        moved = replace(moved, chain=place.chain)  # the line in that place now has the word
    new = NEW_ANSWER[prompts.formulation](prompts.chains)
    outside = moved.exchanged(graph, fact.value, (pointed.value, new))
    return Binding(moved, outside, place.value, word.value, pointed.value, new)


class Cut(NamedTuple):
    """The tokens of a question, with the role and the chain of each."""

    tokens: Tokens
    roles: tuple[int, ...]
    """Indices in `role_table`."""
    chains: tuple[int, ...]
    """0 is the chain asked about, 1 its partner."""


@dataclass(frozen=True)
class Paired:
    """One question and its donors, which have equal length and differ only in exchanged words.

    An answer is the first token in which it differs from others; the common beginning of all
    answers is in the prompt.
    """

    index: int
    tokens: Tokens
    roles: tuple[int, ...]
    chains: tuple[int, ...]
    answer: int
    acceptable: tuple[int, ...]
    others: Mapping[str, int] = field(default_factory=dict)
    """The partner's answer, for each exchange."""
    bound: tuple[int, ...] = ()
    """The answers to the last look-up by position, by word and by pointer, and the new answer.
    Empty without a `Binding`."""
    donors: Mapping[str, Tokens] = field(default_factory=dict)
    """The donor of each exchange, and those of a `Binding`; empty if nothing is patched."""
    candidates: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """For each symbol, the token of the own chain, then those of the other chains."""

    def thirds(self, name: str) -> tuple[int, ...]:
        """Return the answers of the chains that an exchange does not involve."""
        return tuple(n for n in self.acceptable if n not in (self.answer, self.others[name]))


@cache
def role_table(prompts: Prompts) -> tuple[Role, ...]:
    """Return the roles of tokens: those of the facts, of their lines, and of the question."""
    spans = {span.role for span in question(prompts, 0, 0).spans}
    decoys = sorted(role for role in spans if role.kind.startswith("decoy"))
    lines = [Role("line", number) for number, _ in enumerate(prompts.graph().facts)]
    opening = [OPENING] if prompts.opening else []
    return (*prompts.graph().roles, *decoys, *lines, *opening, OTHER, ANSWER)


def pairs(
    local: LanguageModel, prompts: Prompts, seed: int, start: int, count: int
) -> list[Paired]:
    """Return `count` pairs, of the first questions from number `start` on that can be paired.

    Raises LmError if there are too few.
    """

    def first_partner(index: int) -> Paired:
        """Return the question, paired with the first possible partner chain."""
        lines, whys = question_lines(prompts, seed, index), list[Unreadable]()
        for step in range(1, prompts.chains):
            partner = lines.chain + 1 + (index // prompts.chains + step) % (prompts.chains - 1)
            try:
                return _paired(local, prompts, lines, index, partner % prompts.chains)
            except Unreadable as error:
                whys.append(error)
        raise whys[0]

    return _first(first_partner, start, count, f"questions of {prompts.label} can be paired")


def unpaired(
    local: LanguageModel, prompts: Prompts, seed: int, start: int, count: int
) -> list[Paired]:
    """Return the first `count` readable questions from number `start` on, without donors."""

    def read(index: int) -> Paired:
        each = question(prompts, seed, index)
        common, first, _ = first_tokens(local, each)
        own = cut(local, prompts, each, (each.chain + 1) % prompts.chains, common)
        return Paired(index, *own, first[each.correct], tuple(first.values()))

    return _first(read, start, count, f"questions of {prompts.label} can be read")


def _first(make: Callable[[int], Paired], start: int, count: int, what: str) -> list[Paired]:
    """Call `make` on question numbers from `start` on; return the first `count` results.

    Unreadable questions are left out; raises LmError if too many are.
    """
    made: list[Paired] = []
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
    acceptable = tuple(first.values())
    candidates = {
        fact.value: _values(own, role_table(prompts).index(Role("value", number)))
        for number, fact in enumerate(graph.facts)
    }
    rest = (token for token in acceptable if token != first[right])
    candidates[graph.facts[-1].value] = (first[right], *rest)
    return Paired(index, *own, first[right], acceptable, others, bound, donors, candidates)


def _values(own: Cut, role: int) -> tuple[int, ...]:
    """Return the first token of a role in each chain, in order of chains."""
    first: dict[int, int] = {}
    for token, its_role, chain in zip(*own, strict=True):
        if its_role == role:
            first.setdefault(chain, token)
    return tuple(first[chain] for chain in sorted(first))


def _bound(
    local: LanguageModel, made: Binding, outside: Question, common: Tokens, first: Mapping[str, int]
) -> tuple[int, ...]:
    """Return `Paired.bound`; empty if the first token of the new answer is not unique."""
    spelled = local.spellings(local.text(outside.prompt, outside.opening), made.new)[0]
    new = spelled[len(common) : len(common) + 1]
    known = (*first.values(), local.tokenizer.unk_token_id)
    if spelled[: len(common)] != common or not new or new[0] in known:
        return ()
    return first[made.position], first[made.word], first[made.pointer], *new


def first_tokens(
    local: LanguageModel, asked: Question
) -> tuple[Tokens, dict[str, int], dict[str, int]]:
    """Return the common beginning of all acceptable answers, and for each answer its first token
    after that and its number of tokens. Raises Unreadable if two answers share that token.
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
    """Raise Unreadable if the donor differs from the question in more than two words."""
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
    """Return the tokens of a question, with the role and the chain of each.

    Raises Unreadable if a token contains two symbols.
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
