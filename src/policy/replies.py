"""Replies that think before they act: a thought and one action, each between tags of its own.

Owns the form of such a reply (WebAgent-R1, arXiv 2505.16421, table 6), reading it and writing it. Invariants: what is
read is exactly one answer after one thought, or it is refused; nothing in a thought is ever read as an action; an
action that is written reads back as itself, whatever page text its remarks and arguments quote.
"""

from __future__ import annotations

import re

from policy.tokenizer import TextTokenizer

THINK, END_OF_THOUGHT, ANSWER, END_OF_ANSWER = "<think>", "</think>", "<answer>", "</answer>"
TAGS: tuple[str, ...] = (THINK, END_OF_THOUGHT, ANSWER, END_OF_ANSWER)
"""The tags in the order in which a reply has them."""
TAG = re.compile("</?(?:think|answer)>")
_FORM = "a reply is <think>a thought</think><answer>one action</answer>"


class ReplyError(ValueError):
    """A reply is not in its form; the message is one line, written for the agent."""


def answer_of(reply: str) -> str:
    """Return the answer, without white space around it; the thought ends at the first tag that ends one.

    Raises:
        ReplyError: there is no thought, no end of it, or something else after it than one answer.
    """
    text = reply.strip()
    if not text.startswith(THINK):
        raise ReplyError(f"{_FORM}; yours does not begin with a thought")
    _, ended, rest = text.partition(END_OF_THOUGHT)
    if not ended:
        raise ReplyError(f"{_FORM}; your thought did not end: think in fewer words")
    answer = rest.strip()
    if not answer.startswith(ANSWER):
        raise ReplyError(f"{_FORM}; your thought was not followed by an answer")
    if not answer.endswith(END_OF_ANSWER):
        found = "nothing may follow the answer" if END_OF_ANSWER in answer else "your answer did not end"
        raise ReplyError(f"{_FORM}; {found}")
    inner = answer.removeprefix(ANSWER).removesuffix(END_OF_ANSWER)
    if TAG.search(inner):
        raise ReplyError(f"{_FORM}, with each tag once; in a quoted text write \\u003c for the sign <")
    return inner.strip()


def reply_with(action_text: str) -> str:
    """Return the reply that takes an action: the remarks above its call are the thought, the rest is the answer.

    Tags in it stay words: those of a remark lose their signs, in the call ``<`` is written as an escape.
    """
    lines = action_text.strip().split("\n")
    remarks = next((i for i, line in enumerate(lines) if not line.lstrip().startswith("#")), len(lines))
    thought = (TAG.sub(lambda tag: tag[0][1:-1], line) for line in lines[:remarks])
    call = TAG.sub(lambda tag: f"\\u003c{tag[0][1:]}", "\n".join(lines[remarks:]))
    return "\n".join([THINK, *thought, END_OF_THOUGHT, ANSWER, call, END_OF_ANSWER])


def reply_said(response: str) -> str:
    """Return what another agent said as a reply: one with a thought as it is, else as ``reply_with`` writes it.

    A thought that was opened by the agent's prompt begins with its tag again.
    """
    if END_OF_THOUGHT not in response:
        return reply_with(response)
    text = response.strip()
    return text if text.startswith(THINK) else f"{THINK}\n{text}"


def encode_reply(tokenizer: TextTokenizer, reply: str, opened: str = "") -> list[int]:
    """Return the ids of a reply without what the prompt's cue has ``opened`` of it.

    A tag that is a control token of the tokenizer is that token where it is the reply's own, and text elsewhere.
    """
    tags, text = TAGS, reply
    if opened:
        tags, text = TAGS[1:], reply.removeprefix(opened if reply.startswith(opened) else THINK)
    ids: list[int] = []
    waiting = ""
    for tag in tags:
        before, found, after = text.partition(tag)
        if not found:
            break
        waiting, text = waiting + before, after
        control = tokenizer.control_id(tag)
        if control is None:
            waiting += tag
        else:
            ids += [*tokenizer.encode(waiting), control]
            waiting = ""
    return ids + tokenizer.encode(waiting + text)
