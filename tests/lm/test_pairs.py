"""Minimal pairs, and patches between them: those of the whole model, by hooks."""

from collections.abc import Callable
from copy import deepcopy
from functools import partial
from random import Random
from typing import Any

import pytest
import torch
from calling import Patch
from slow import hooked
from solving import solved
from tokenizers import Regex, pre_tokenizers, processors
from torch import Tensor
from transformers import ByT5Tokenizer

from hopscope.circuits.adapters import DecoderAdapter
from hopscope.configs import Prompts
from hopscope.errors import LmError
from hopscope.facts import parse_role
from hopscope.lm.model import LanguageModel
from hopscope.lm.pairs import (
    LAST,
    NEW,
    Cut,
    Unreadable,
    _check_donor,
    binding,
    exchange_names,
    exchanges,
    pairs,
    role_table,
    unpaired,
)
from hopscope.lm.patching import (
    PairBatch,
    at_role,
    in_batches,
    interchanged,
    lens,
    random_rows,
)
from hopscope.lm.prompts import question, question_lines, render

TWO = Prompts(formulation="equations", hops=2)


@pytest.fixture(scope="module")
def cut(planted: Callable[[bool], LanguageModel]) -> LanguageModel:
    return planted(True)


def test_pairs_differ_in_the_words_exchanged_alone(cut: LanguageModel) -> None:
    table = role_table(TWO)
    places = {
        "x0": {"key 0", "query"}, "x1": {"value 0", "key 1"}, "x2": {"value 1"},
        "x1…": {"value 0"},
    }  # fmt: skip
    found = pairs(cut, TWO, 0, 0, 6)
    assert [its.index for its in found] == list(range(6))
    for its in found:
        assert {*its.donors} == {*places, LAST, NEW}
        for name, theirs in places.items():
            donor = its.donors[name]
            changed = [n for n, (a, b) in enumerate(zip(its.tokens, donor, strict=True)) if a != b]
            assert {str(table[its.roles[n]]) for n in changed} == theirs
            assert {its.chains[n] for n in changed} == {0, 1}
        assert len({its.answer, *its.others.values()}) == 2
        for name in places:
            assert len(its.thirds(name)) == 2


def test_every_token_has_its_role(cut: LanguageModel) -> None:
    table, asked = role_table(TWO), question(TWO, 0, 1)
    (its,) = pairs(cut, TWO, 0, 1, 1)
    words = [cut.tokenizer.decode([token]) for token in its.tokens]
    told = [
        (word, str(table[role]))
        for word, role, chain in zip(words, its.roles, its.chains, strict=True)
        if chain == 0 and table[role].kind in ("key", "value", "query", "answer")
    ]
    symbols = [(asked.prompt[s.start : s.end], str(s.role)) for s in asked.spans
               if s.chain == asked.chain]  # fmt: skip
    assert told == [*symbols, (":", "answer")]
    lines = [word for word, role in zip(words, its.roles, strict=True)
             if table[role] == parse_role("line 1")]  # fmt: skip
    assert lines == ["=", "\n"] * 4
    opened = TWO.model_copy(update={"opening": True})
    (its,) = pairs(cut, opened, 0, 0, 1)
    table = role_table(opened)
    words = [cut.tokenizer.decode([token]) for token in its.tokens]
    told = [
        word for word, role in zip(words, its.roles, strict=True) if str(table[role]) == "opening"
    ]
    assert told[1:4] == ["value", "of", words[its.roles.index(table.index(parse_role("query")))]]


def test_an_end_that_the_tokenizer_adds_to_every_text_is_left_out(cut: LanguageModel) -> None:
    ending = deepcopy(cut.tokenizer)
    end = [("<end>", ending.eos_token_id)]
    its = processors.TemplateProcessing(single="$A <end>", special_tokens=end)
    ending.backend_tokenizer.post_processor = its
    assert ending.encode("a") == [*cut.tokenizer.encode("a"), ending.eos_token_id]
    again = LanguageModel(cut.model, ending, cut.name, "raw", 4)
    assert pairs(again, TWO, 0, 0, 2) == pairs(cut, TWO, 0, 0, 2)


def test_a_question_whose_symbols_stand_in_no_token_of_their_own_is_refused(
    cut: LanguageModel,
) -> None:
    joining = deepcopy(cut.tokenizer)
    words = Regex(r"\w = \w|\w+|\S|\n")
    joining.backend_tokenizer.pre_tokenizer = pre_tokenizers.Split(words, "removed", invert=True)
    for hops in (1, 2):
        prompts = Prompts(formulation="equations", hops=hops)
        joined = LanguageModel(cut.model, joining, "joining", "raw", 4)
        for read in (pairs, unpaired):
            with pytest.raises(LmError, match="joining's tokenizer joins two symbols in one token"):
                read(joined, prompts, 0, 0, 2)
    larger = deepcopy(cut.model)
    larger.config.vocab_size = len(ByT5Tokenizer())
    slow = LanguageModel(larger, ByT5Tokenizer(), "bytes", "raw", 4)
    slow.room = None
    with pytest.raises(LmError, match="bytes's tokenizer does not say where its tokens stand"):
        pairs(slow, TWO, 0, 0, 2)


def test_a_donor_that_changes_other_words_is_refused() -> None:
    """As an article does that follows the word after it."""
    prompts = Prompts(formulation="relatives")
    line, value = (role_table(prompts).index(parse_role(name)) for name in ("line 0", "value 0"))
    (made, *_) = exchanges(prompts, question_lines(prompts, 0, 0), 0)
    own = Cut((1, 2), (line, value), (0, 0))
    _check_donor("x", made, own, Cut((1, 3), (line, value), (0, 0)), prompts)
    with pytest.raises(Unreadable, match="changes the words beside them"):
        _check_donor("x", made, own, Cut((4, 3), (line, value), (0, 0)), prompts)


THREE = Prompts(formulation="equations", hops=2, chains=3)
REFUSED = [
    ("letters", "a b|c|d e f|g|h|a", "into different numbers of tokens; expected"),
    ("numbers", "0|1 2|3 0 1", "planted's tokenizer cuts '[^']*' into . tokens and '[^']*'"),
    ("numbers", "0 1 2|0 1 3|0 2 2", "the answers '0 1 3' and '0 1 2' begin with the same"),
]


def test_what_cannot_be_paired_is_one_line(cut: LanguageModel, monkeypatch: Patch) -> None:
    for kind, text, why in REFUSED:
        words = text.split("|")
        with monkeypatch.context() as changed:
            if kind == "letters":
                changed.setattr("hopscope.lm.drawing.variable_name", words.__getitem__)
            else:
                changed.setattr("hopscope.lm.drawing._numbers", lambda _, its=words: its)
            with pytest.raises(LmError, match=f"0 of 8 questions of equations-d2-n3 .*{why}") as no:
                pairs(cut, THREE, 0, 0, 2)
            assert len(str(no.value).splitlines()) == 1
    # A name of two tokens: its chain is nobody's partner, and is not asked about.
    words = ["a b", "c", "d", "e", "f", "g"]
    monkeypatch.setattr("hopscope.lm.drawing.variable_name", words.__getitem__)
    found = pairs(cut, THREE, 0, 0, 4)
    assert len(found) == 4
    assert [its.index for its in found] != list(range(4))


EVERY = [
    TWO,
    Prompts(formulation="lives-with", hops=2),
    *(Prompts(formulation=name) for name in ("kingdoms", "functions", "relatives")),
]


def test_a_symbol_is_exchanged_wherever_it_stands_or_as_a_value_alone() -> None:
    told = question_lines(TWO, 0, 0)
    own = question(TWO, 0, 0).prompt
    for partner in {0, 1, 2, 3} - {told.chain}:
        found = {its.name: its for its in exchanges(TWO, told, partner)}
        assert set(found) == {"x0", "x1", "x2", "x1…"}
        for name, its in found.items():
            donor = render(TWO, its.drawn, 0).prompt
            changed = [a != b for a, b in zip(own, donor, strict=True)]
            assert sum(changed) == {"x0": 3, "x1": 4, "x2": 2, "x1…": 2}[name]
            right = question(TWO, 0, 0).correct
            assert solved(own) == right
            assert solved(donor) == (its.answer if name in ("x2", "x1…") else right)
            assert its.answer != right


def test_every_formulation_has_its_exchanges() -> None:
    for prompts in EVERY:
        symbols = prompts.graph().symbols
        assert exchange_names(prompts)[: len(symbols)] == symbols
        for index in range(8):
            told, asked = question_lines(prompts, 3, index), question(prompts, 3, index)
            for its in exchanges(prompts, told, (told.chain + 1) % prompts.chains):
                assert its.answer in asked.acceptable
                donor = render(prompts, its.drawn, index).prompt
                assert (donor == asked.prompt) == (its.words[0] == its.words[1])


@pytest.mark.parametrize("hops", [1, 2, 3])
def test_three_ways_to_the_last_line_have_three_answers(hops: int) -> None:
    for formulation in ("equations", "lives-with"):
        prompts = Prompts(formulation=formulation, hops=hops)
        for index in range(8):
            told = question_lines(prompts, 1, index)
            made = binding(prompts, told, (told.chain + 1) % 4)
            right = question(prompts, 1, index).correct
            assert len({right, made.position, made.word, made.pointer, made.new}) == 5
            own, donor, outside = (
                render(prompts, each, index) for each in (told, made.drawn, made.outside)
            )
            assert solved(donor.prompt) == made.pointer == donor.correct
            assert solved(outside.prompt) == made.new
            assert made.new not in own.acceptable
            lines = [line for line in told.lines if line.fact == hops - 1]
            theirs = [line for line in made.drawn.lines if line.fact == hops - 1]
            place = next(n for n, line in enumerate(theirs) if line.value == made.pointer)
            assert lines[place].value == made.position
            word = theirs[place].keys
            assert next(line.value for line in lines if line.keys == word) == made.word
    assert binding(Prompts(formulation="functions"), question_lines(EVERY[3], 0, 0), 1) is None
    three = Prompts(formulation="equations", hops=1, chains=3)
    assert binding(three, question_lines(three, 0, 0), 1) is None


NAMES = exchange_names(TWO)


@pytest.fixture(scope="module")
def local(make_tiny: Callable[..., LanguageModel]) -> LanguageModel:
    return make_tiny("raw", 1)


@pytest.fixture(scope="module")
def batch(local: LanguageModel) -> PairBatch:
    return PairBatch(DecoderAdapter(local.model), pairs(local, TWO, 0, 0, 3), len(role_table(TWO)))


@torch.no_grad()
def logits(local: LanguageModel, tokens: Tensor) -> Tensor:
    return local.model(tokens).logits[:, -1]


@torch.no_grad()
def entering(local: LanguageModel, module: Any, tokens: Tensor) -> Tensor:
    kept: list[Tensor] = []
    with hooked(module, lambda x: kept.append(x) or x):
        local.model(tokens)
    return kept[0]


def marks(batch: PairBatch, name: str, patched: Tensor, clean: Tensor) -> Tensor:
    """The numbers by their definition, of logits."""
    rows = []
    for row, pair in enumerate(batch.pairs):
        told = []
        for its in (patched[row], clean[row]):
            third = its[list(pair.thirds(name))].mean()
            own, other = its[pair.answer], its[pair.others[name]]
            loss = -torch.log_softmax(its[list(pair.acceptable)], -1)
            own_loss = loss[pair.acceptable.index(pair.answer)]
            told.append(torch.stack([other - third, own - third, own_loss]))
        logs, model = patched[row].log_softmax(-1), clean[row].log_softmax(-1)
        same = torch.tensor(float(logs.argmax() == model.argmax()) - 1)
        kl = torch.nn.functional.kl_div(logs, model, log_target=True, reduction="sum")
        rows.append(torch.cat([told[0] - told[1], torch.stack([kl, same])]))
    return torch.stack(rows).double()


def close(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-3)


def test_a_role_s_stream_is_replaced(local: LanguageModel, batch: PairBatch) -> None:
    clean = logits(local, batch.tokens)
    after = [*local.model.model.layers, local.model.model.norm]
    moved = 0
    for n, name in enumerate(NAMES):
        for layer, module in enumerate(after):
            theirs = entering(local, module, batch.donors[name])
            for role in range(batch.roles):
                at = (batch.role == role)[:, :, None]
                with hooked(module, lambda x, at=at, new=theirs: torch.where(at, new, x)):
                    patched = logits(local, batch.tokens)
                expected = marks(batch, name, patched, clean)
                with torch.no_grad():
                    close(at_role(batch, layer, role, NAMES)[n], expected)
                moved += bool(expected.abs().max() > 1e-3)
    assert moved > 20


def test_rows_are_the_donor_s_question_by_question(local: LanguageModel, batch: PairBatch) -> None:
    circuit = torch.zeros(2, 4, batch.roles, dtype=torch.bool)
    for row in ((0, 1, 1), (1, 2, batch.roles - 1), (1, 3, 0)):
        circuit[row] = True
    draws = torch.rand(3, *circuit.shape, generator=torch.Generator().manual_seed(0)) < 0.2
    every = torch.ones_like(circuit)
    same = [its.expand(3, *its.shape) for its in (circuit, ~circuit, every, ~every)]
    donor = torch.stack([*same, draws])  # the last is another one for each question
    clean, size, name = logits(local, batch.tokens), local.model.config.head_dim, "x1…"
    with torch.no_grad():
        found = interchanged(batch, name, donor)
    modules = [layer.self_attn.o_proj for layer in local.model.model.layers]
    theirs = [entering(local, module, batch.donors[name]) for module in modules]
    for variant, chosen in enumerate(donor):
        changes = []
        for layer, new in enumerate(theirs):
            at = torch.stack([
                chosen[n, layer][:, role].T.repeat_interleave(size, -1)
                for n, role in enumerate(batch.role)
            ])  # fmt: skip
            changes.append(lambda x, at=at, new=new: torch.where(at, new, x))
        with hooked(modules[0], changes[0]), hooked(modules[1], changes[1]):
            expected = marks(batch, name, logits(local, batch.tokens), clean)
        close(found[variant], expected)
    assert not found[3].any()


def test_random_rows_are_of_the_same_layers_and_never_the_circuit_s() -> None:
    """What a layer lacks is drawn from the others: a smaller control would look weaker."""
    few, full = [(0, 0, 2), (0, 1, 2), (1, 3, 5)], [(0, 0, 0), (0, 1, 0), (0, 2, 0)]
    some, others = ([random_rows(2, 4, rows, Random(n)) for n in range(50)] for rows in (few, full))
    assert all(sorted(row[0] for row in each) == [0, 0, 1] for each in some)
    assert all({role for _, _, role in each} == {2, 5} for each in some)
    assert not {row for each in some for row in each} & {*few}
    assert {len({*each}) for each in others} == {3}
    assert {row for each in others for row in each} == {(0, 3, 0), *((1, h, 0) for h in range(4))}
    assert all((0, 3, 0) in each for each in others)
    assert random_rows(1, 4, full, Random(0)) == []


def test_the_lens_is_the_model_s_own_end(local: LanguageModel, batch: PairBatch) -> None:
    with torch.no_grad():
        found = lens(batch, [0, 1, 2])
        streams = [entering(local, module, batch.tokens)
                   for module in (*local.model.model.layers, local.model.model.norm)]  # fmt: skip
        table = role_table(TWO)
        for row, pair in enumerate(batch.pairs):
            for role, name in enumerate(map(str, table)):
                places = enumerate(zip(pair.roles, pair.chains, strict=True))
                mine = [n for n, (its, chain) in places if its == role and chain == 0]
                for layer, stream in enumerate(streams):
                    own = local.model.lm_head(local.model.model.norm(stream[row, mine[-1]]))
                    for n, words in enumerate(pair.candidates.values()):
                        chance, rank = found[n, role, layer, row].tolist()
                        expected = torch.softmax(own[list(words)], 0)[0]
                        assert chance == pytest.approx(float(expected), abs=1e-5), name
                        assert rank == int((own > own[words[0]]).sum())


def test_where_memory_runs_out_batches_are_halved(local: LanguageModel, batch: PairBatch) -> None:
    sizes: list[int] = []

    def measure(some: PairBatch, most: int = 1) -> list[int]:
        sizes.append(len(some.pairs))
        if len(some.pairs) > most:
            raise torch.OutOfMemoryError
        return [pair.index for pair in some.pairs]

    asked = (batch.adapter, batch.pairs, batch.roles)
    assert in_batches(*asked, measure) == [pair.index for pair in batch.pairs]
    assert sizes == [3, 1, 2, 1, 1]
    with pytest.raises(LmError, match="one question of .* tokens does not fit into the memory of"):
        in_batches(*asked, partial(measure, most=0))
