"""What the benchmark of context compression counts, worked by hand."""

from __future__ import annotations

import numpy as np

from benchmarks.context_tokens import CONTEXT, READ, TRAINED, EpisodeTokens


def test_an_episode_of_three_steps_worked_by_hand() -> None:
    # A task of 10 tokens, pages of 100, 50 and 30, replies of 4, 6 and 2; the prompt before ends where the page stood.
    compressed = np.array([10 + 100, 10 + 4 + 50, 10 + 4 + 6 + 30])
    one = EpisodeTokens(np.array([100, 50, 30]), compressed, np.array([0, 10, 14]), np.array([4, 6, 2]))
    assert one.whole.tolist() == [110, 64 + 100, 50 + 150]
    short, long = one.per_step(whole=False), one.per_step(whole=True)
    assert (short[CONTEXT], long[CONTEXT]) == (224 / 3, 474 / 3)
    assert (short[READ], long[READ]) == ((110 + 54 + 36) / 3, 200 / 3)
    # Whole, the learner reads everything once: the task, three pages, three replies.
    assert (short[TRAINED], long[TRAINED]) == ((200 + 12) / 3, (10 + 180 + 12) / 3)


def test_without_pages_there_is_nothing_to_compress() -> None:
    one = EpisodeTokens(np.array([100, 50]), np.array([110, 64]), np.array([0, 10]), np.array([4, 6])).without_pages
    assert one.whole.tolist() == one.compressed.tolist() == [10, 14]
