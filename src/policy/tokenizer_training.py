"""Train the tiny preset's tokenizer on strings from the sites.

Owns ``train_tokenizer``. Byte-level BPE, so any text encodes, arranged so that a small model can
copy what it reads: a word or a number of up to two digits is the *same* token after a space, after
a quote, a bracket or a currency sign, and at a line's start. To that end a character that glues
(``GLUE``) takes the place of the missing space: ``"12"`` is read as ``"GLUE 12"``, and decoding drops
glue and space together. Frequent pieces of the action grammar are single tokens. Imports no torch.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from policy.tokenizer import TOKENIZER_FILE

PAD, BOS, END_OF_ACTION = "<|pad|>", "<|begin|>", "<|end of action|>"
GLUE = "\ufdd0"
"""A Unicode noncharacter: HTML forbids it, so no page holds it."""

_GLUED_AFTER = '"$(\n'
_DIGITS = "0123456789"
_PIECES = rf" ?\p{{L}}+| ?[0-9]{{1,2}}|\n{GLUE}?| ?[^\s\p{{L}}0-9]+|\s"
_WITHOUT_NUMBERS = re.compile(rf"[0-9]+|[{re.escape(_GLUED_AFTER)}](?=[^\W\d_])")

ARGUMENT_ACTIONS = ("Type", "Search", "Select Dropdown Option", "Switch Tab")
ELEMENT_ACTIONS = ("Click", "Hover", "Right Click")
PLAIN_ACTIONS = ("Scroll Down", "Scroll Up", "Press Enter", "Wait")
CALLS = tuple(f'do(action="{name}")' for name in PLAIN_ACTIONS) + ("go_backward()", "go_forward()")
OPENINGS = (
    *(f'do(action="{name}", element="' for name in ELEMENT_ACTIONS),
    *(f'do(action="{name}", argument="' for name in ARGUMENT_ACTIONS),
    'exit(message="',
)
FRAME_TEXTS = ("# Element:", "# Note:", '")', "Task:", "\nPage:\n", "\nAction:\n")
"""Texts that are one token each besides the calls: the action's frame and the prompt's."""


def grammar_texts() -> list[str]:
    """Return the texts that become single tokens; those that open a string come with and without glue."""
    openings = [*OPENINGS, '", element="']
    starts = [*CALLS, *OPENINGS]
    texts = [*FRAME_TEXTS, *CALLS, *openings, *(text + GLUE for text in openings)]
    # After a comment line the call follows a newline, which belongs to the token.
    texts += ["\n" + text for text in starts] + ["\n" + text + GLUE for text in OPENINGS]
    return texts


def train_tokenizer(corpus: Iterable[str], vocab_size: int, directory: str | Path) -> Path:
    """Train on ``corpus`` and save to ``directory`` in the files that Hugging Face models carry.

    Args:
        corpus: observations, instructions and actions, as the policy will see them.
        vocab_size: upper bound of the number of tokens, everything included.
        directory: where to write; made if it is not there.

    Returns:
        The directory, which ``TextTokenizer.load`` reads.

    Raises:
        ValueError: ``vocab_size`` leaves no room for learned words.
    """
    fixed = _fixed_merges()
    grammar = grammar_texts()
    learned_size = vocab_size - len(fixed) - len(grammar) - 3
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    if learned_size <= len(alphabet):
        needed = vocab_size - learned_size + len(alphabet) + 1
        raise ValueError(f"vocab_size must be at least {needed}, found {vocab_size}")
    vocab, merges = _learn(corpus, learned_size, alphabet)
    for left, right in fixed:
        vocab.setdefault(left + right, len(vocab))
    tokenizer = _assemble(models.BPE(vocab=vocab, merges=[*fixed, *merges]))
    tokenizer.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in (PAD, BOS, END_OF_ACTION)])
    tokenizer.add_tokens([AddedToken(t, special=False, normalized=True) for t in grammar])
    return _save(tokenizer, Path(directory))


def _assemble(model: models.BPE) -> Tokenizer:
    tokenizer = Tokenizer(model)
    glued = rf"(?<=[{re.escape(_GLUED_AFTER)}])(?=[\p{{L}}0-9])"
    tokenizer.normalizer = normalizers.Replace(Regex(glued), GLUE + " ")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_PIECES), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.Sequence(
        [decoders.ByteLevel(), decoders.Replace(GLUE + " ", ""), decoders.Replace(GLUE, "")]
    )
    return tokenizer


def _learn(corpus: Iterable[str], size: int, alphabet: list[str]) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """Learn word merges; numbers and glued places are kept out, because their merges are fixed."""
    learner = _assemble(models.BPE())
    learner.normalizer = normalizers.Sequence([])
    trainer = trainers.BpeTrainer(
        vocab_size=size, initial_alphabet=sorted(alphabet), min_frequency=2, show_progress=False
    )
    learner.train_from_iterator(_words_only(corpus), trainer)
    state = json.loads(learner.to_str())["model"]
    return state["vocab"], [(left, right) for left, right in state["merges"]]


def _words_only(corpus: Iterable[str]) -> Iterator[str]:
    for text in corpus:
        yield _WITHOUT_NUMBERS.sub("\n ", text)


def _fixed_merges() -> list[tuple[str, str]]:
    """Return the merges that rank before all learned ones: numbers 0-99 with their space, and glue with its sign."""
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)

    def spelled(text: str) -> str:
        return byte_level.pre_tokenize_str(text)[0][0]

    space, glue = spelled(" "), spelled(GLUE)
    pairs = [(a, b) for a, b in product(_DIGITS, repeat=2)]
    pairs += [(space, a + b) for a, b in product(_DIGITS, repeat=2)] + [(space, a) for a in _DIGITS]
    pairs += [(glue[:1], glue[1:2]), (glue[:2], glue[2:3])]
    pairs += [(spelled(sign), glue) for sign in _GLUED_AFTER]
    pairs += [(space, spelled(sign) + glue) for sign in _GLUED_AFTER if sign != "\n"]
    return pairs


def _save(tokenizer: Tokenizer, directory: Path) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(directory / TOKENIZER_FILE))
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": BOS,
        "eos_token": END_OF_ACTION,
        "pad_token": PAD,
        "clean_up_tokenization_spaces": False,
    }
    text = json.dumps(settings, indent=2, sort_keys=True) + "\n"
    (directory / "tokenizer_config.json").write_text(text, encoding="utf-8")
    return directory
