"""What the tokenizer promises to prompts, and to a small model that must copy what it reads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tokenizers import Tokenizer, models

from policy.tokenizer import TextTokenizer
from policy.tokenizer_training import BOS, END_OF_ACTION, GLUE, PAD, train_tokenizer

TEXTS = [
    'do(action="Type", argument="$5 (each)", element="100")',
    'exit(message="")',
    'exit(message="it\'s 12,345.60")',
    "\n\n  two  spaces\tand\r\nlines \n",
    "Größe ½ 日本語 😀 \x00\x7f",
    'say "hello" ("1") $x\n9 lives',
    "",
]


@pytest.mark.parametrize("text", TEXTS)
def test_any_text_comes_back_unchanged(tokenizer: TextTokenizer, text: str) -> None:
    assert tokenizer.decode(tokenizer.encode(text)) == text


@pytest.mark.parametrize("number", range(100))
def test_an_element_id_is_one_token_and_the_same_in_page_and_action(tokenizer: TextTokenizer, number: int) -> None:
    page = tokenizer.encode(f"button Add {number}")
    action = tokenizer.encode(f'do(action="Click", element="{number}")')
    assert len(action) == 3
    assert action[1] == page[-1]
    assert tokenizer.encode(f'do(action="Type", argument="x", element="{number}")')[-2] == page[-1]


def test_a_name_has_the_same_ids_wherever_it_stands(tokenizer: TextTokenizer) -> None:
    name = tokenizer.encode(" Red desk lamp")
    assert len(name) == 3

    def holds(text: str) -> bool:
        ids = tokenizer.encode(text)
        return any(ids[i : i + 3] == name for i in range(len(ids)))

    assert holds("link Red desk lamp 2")
    assert holds("Price\nRed desk lamp")
    assert holds('Buy the "Red desk lamp" now')
    assert holds("# Element: Red desk lamp\n")
    assert holds('do(action="Type", argument="Red desk lamp", element="3")')
    assert holds('exit(message="Red desk lamp")')


def test_a_click_with_its_comment_costs_few_tokens(tokenizer: TextTokenizer) -> None:
    ids = tokenizer.encode('# Element: Add to cart\ndo(action="Click", element="42")')
    assert len(ids) == 1 + 3 + 1 + 1 + 1


@pytest.mark.parametrize("control", [PAD, BOS, END_OF_ACTION])
def test_a_page_that_spells_a_control_token_stays_text(tokenizer: TextTokenizer, control: str) -> None:
    text = f"link {control} 3\n{control}{control}"
    ids = tokenizer.encode(text)
    assert tokenizer.control_ids.isdisjoint(ids)
    assert tokenizer.decode(ids) == text


def test_stop_tokens_that_are_not_marked_special_are_out_of_reach_of_text_too() -> None:
    bare = Tokenizer(models.BPE(vocab={c: i for i, c in enumerate("<stop> ab")}, merges=[]))
    bare.add_tokens(["<stop>"])
    stop = bare.token_to_id("<stop>")
    assert bare.encode("a<stop>b").ids.count(stop) == 1
    tokenizer = TextTokenizer(bare, stop_ids=[stop], bos_id=None, pad_id=stop)
    ids = tokenizer.encode("a<stop>b<stop>")
    assert stop not in ids
    assert [bare.id_to_token(i) for i in ids] == list("a<stop>b<stop>")


def test_control_tokens_show_when_decoded(tokenizer: TextTokenizer) -> None:
    assert tokenizer.decode([tokenizer.pad_id]) == PAD
    assert tokenizer.decode(tokenizer.stop_ids) == END_OF_ACTION


def test_stop_ids_come_from_the_generation_settings_first(tokenizer_dir: Path, tmp_path: Path) -> None:
    for file in tokenizer_dir.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": [7, 8]}))
    plain, changed = TextTokenizer.load(tokenizer_dir), TextTokenizer.load(tmp_path)
    assert changed.stop_ids == (7, 8, *plain.stop_ids)
    assert changed.digest != plain.digest


def test_training_twice_gives_the_same_tokenizer(corpus: list[str], tokenizer: TextTokenizer, tmp_path: Path) -> None:
    assert TextTokenizer.load(train_tokenizer(corpus, 700, tmp_path)).digest == tokenizer.digest


def test_a_stray_glue_is_not_shown(tokenizer: TextTokenizer) -> None:
    assert tokenizer.decode(tokenizer.encode(f"a{GLUE}b")) == "ab"


def test_a_vocabulary_that_is_too_small_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="vocab_size must be at least"):
        train_tokenizer(["a b"], 300, tmp_path)


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        TextTokenizer.load(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match=r"tokenizer\.json"):
        TextTokenizer.load(tmp_path)


def test_prompts_need_neither_torch_nor_transformers() -> None:
    code = (
        "import sys, policy.formats, policy.formats_webrl, policy.tokenizer_training, policy.publication; "
        "sys.exit(bool({'torch', 'transformers', 'ray'} & set(sys.modules)))"
    )
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=240, env=env).returncode == 0
