"""What an observation leaves out of a page, and what it offers in vain.

Owns ``PageAudit`` and ``compare``. Pure: works on an observation and on the ``second opinion`` of the same page.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from environments.browser.page_opinion import Opinion, Target
from records.environment import Element

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class PageAudit:
    """Counts of one page; ``missing`` and ``vain`` say of single elements what they are and why.

    ``words`` are the words that a person reads, ``words_shown`` those of them in the observation.
    """

    usable: int
    found: int
    offered: int
    right: int
    elements: int
    named: int
    words: int
    words_shown: int
    chars: int
    tree_chars: int
    missing: tuple[str, ...]
    vain: tuple[str, ...]
    nameless: tuple[str, ...]
    unread: tuple[str, ...]

    @property
    def recall(self) -> float:
        """Share of what a person could use that is offered."""
        return self.found / self.usable if self.usable else 1.0

    @property
    def precision(self) -> float:
        """Share of what is offered that a person could use."""
        return self.right / self.offered if self.offered else 1.0

    @property
    def names(self) -> float:
        """Share of what is offered that has a name."""
        return self.named / self.elements if self.elements else 1.0

    @property
    def word_recall(self) -> float:
        """Share of the words that a person reads that are in the observation."""
        return self.words_shown / self.words if self.words else 1.0


def compare(text: str, elements: Sequence[Element], opinion: Opinion) -> PageAudit:
    """Hold an observation, its ``text`` and ``elements``, against the second opinion of the page."""
    groups: dict[int, list[Target]] = {}
    for target in opinion.targets:
        groups.setdefault(target.group, []).append(target)
    usable = [group for group in groups.values() if _is_usable(group)]
    missing = [group for group in usable if not any(one.offered for one in group)]
    vain = [group for group in groups.values() if any(one.offered for one in group) and not _is_right(group)]
    # Spaces between cells and blocks differ: a word is read where its letters follow each other.
    read, shown = (Counter(_WORD.findall(words.casefold())) for words in (opinion.text, text))
    letters = "".join(_WORD.findall(text.casefold()))
    unread = Counter({word: read[word] - letters.count(word) for word in read - shown}) & (read - shown)
    offered = sum(any(one.offered for one in group) for group in groups.values())
    return PageAudit(
        usable=len(usable),
        found=len(usable) - len(missing),
        offered=offered,
        right=offered - len(vain),
        elements=len(elements),
        named=sum(bool(element.name) for element in elements),
        words=read.total(),
        words_shown=read.total() - unread.total(),
        chars=len(text),
        tree_chars=opinion.tree_chars,
        missing=tuple(_reason(group) for group in missing),
        vain=tuple(_reason(group) for group in vain),
        nameless=tuple(element.role for element in elements if not element.name),
        unread=tuple(unread)[:50],
    )


def _is_usable(group: list[Target]) -> bool:
    reached = any(one.why and not one.unreached for one in group)
    return reached and not any(one.disabled for one in group)


def _is_right(group: list[Target]) -> bool:
    """Whether somebody thinks that it can be used, and a pointer may get there once what lies over it is gone."""
    return any(one.why for one in group) and any(one.unreached in ("", "covered") for one in group)


def _reason(group: list[Target]) -> str:
    words = sorted({word for one in group for word in one.why}) or ["nothing says that it can be used"]
    unreached = sorted({one.unreached for one in group if one.unreached}) if any(one.offered for one in group) else []
    return f"{group[0].wording}: {', '.join([*words, *unreached])}"
