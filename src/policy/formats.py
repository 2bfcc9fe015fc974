"""Prompt formats by name: the compact ``waymark`` format, and ``chat``, which says the same as turns of a dialogue.

Owns the registry, both formats, and each with the milestone state; what formats share, and their invariants, is in
``policy.prompts``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from policy.chat_marks import CHAT_FILE, ChatMarks
from policy.formats_webrl import WebRLFormat
from policy.prompts import MilestoneMark, PastAction, PromptFormat, without_stop
from policy.replies import END_OF_THOUGHT, TAG, THINK, answer_of, encode_reply, reply_said, reply_with
from policy.settings import FORMATS, PolicySettings
from policy.tokenizer import TextTokenizer

_SETTING = """You operate a web browser to carry out a task. Each turn you see the current page,
one line an element; the line of an element that you can act on ends with its number.
"""
_REMARKS = """# Element: the name of the element you act on (this line only for actions on an element)
# Note: what you will need of this page later (only where you will; of earlier pages you see your own lines alone)
"""
_ACTIONS = """do(action="Click", element="number")  (also Hover, Right Click)
do(action="Type", argument="text", element="number")  (Search types and presses Enter)
do(action="Select Dropdown Option", argument="option", element="number")
do(action="Press Enter")  (also Scroll Down, Scroll Up, Wait); do(action="Switch Tab", argument="tab number")
go_backward() or go_forward()
exit(message="the answer, or empty where the task asks for none")
"""
INSTRUCTIONS = f"{_SETTING}Reply with one action and nothing else:\n{_REMARKS}{_ACTIONS}"
THINKING_INSTRUCTIONS = f"""{_SETTING}Think first, then act. Your reply has these two parts and nothing else:
<think>what the page shows, what is still to be done, and which action comes next and why
{_REMARKS}</think>
<answer>one action</answer>
Only the answer is carried out; you will see your own replies again, so think in few words. The actions are:
{_ACTIONS}"""

_FRAMED = re.compile(
    r"^(?=[^\S\n]*((task|page|action)[^\S\n]*:|!|\#[^\S\n]*(element|note)[^\S\n]*:|</?(think|answer)>|"
    r"(do|exit|go_backward|go_forward)[^\S\n]*\())",
    re.IGNORECASE | re.MULTILINE,
)
"""Where a line begins as the task, the cue, feedback or an action does."""
_FRAMED_MILESTONES = re.compile(rf"{_FRAMED.pattern}|^(?=[^\S\n]*milestones[^\S\n]*:)", _FRAMED.flags)
"""The same, and where one begins as the milestone state does."""
_TAGGED = re.compile(rf"^(?!> )(?=.*{TAG.pattern})", re.MULTILINE)
"""Where a line begins that holds a tag of a reply, unless it is marked already."""


@dataclass(frozen=True)
class WaymarkFormat(PromptFormat):
    """Waymark's compact format: task, earlier actions, the last feedback, the page, and the cue to act.

    With ``instructions`` the prompt opens with a description of the grammar, for models that were
    not trained on it. With ``thinking`` a reply is a thought and one action (``policy.replies``), and stays whole in
    the history.
    """

    name: ClassVar[str] = "waymark"
    framed: ClassVar[re.Pattern[str]] = _FRAMED
    instructions: bool = False
    thinking: bool = False

    @property
    def opening(self) -> str:
        """What the first prompt opens with."""
        wanted = THINKING_INSTRUCTIONS if self.thinking else INSTRUCTIONS
        return wanted if self.instructions else ""

    def before_page(
        self, tokenizer: TextTokenizer, intent: str, history: Sequence[PastAction], feedback: str | None
    ) -> list[int]:
        """Return the ids of the task, of each action with what it was answered, and of the latest feedback."""
        ids = tokenizer.encode(f"{self.opening}Task: {_one_line(intent)}\n")
        for past, following in zip(history, [*history, None][1:], strict=True):
            ids += past.action_ids
            if not past.action_ids or past.action_ids[-1] not in tokenizer.stop_ids:
                ids += tokenizer.encode("\n")
            if following is not None and past.feedback:
                ids += tokenizer.encode(_feedback_line(past.feedback))
        if feedback:
            ids += tokenizer.encode(_feedback_line(feedback))
        return [*ids, *tokenizer.encode("\nPage:\n")]

    def after_page(self, tokenizer: TextTokenizer) -> list[int]:
        """Return the ids of the cue."""
        return tokenizer.encode("\nAction:\n")

    def opened(self, tokenizer: TextTokenizer) -> str:
        """Return what of a reply the cue says already."""
        return ""

    def as_page(self, observation: str) -> str:
        """Return the observation as any format does; where replies think, each line with a tag is marked too."""
        page = super().as_page(observation)
        return _TAGGED.sub("> ", page) if self.thinking else page

    def action_ids(self, tokenizer: TextTokenizer, action_text: str) -> list[int]:
        """Return the ids of an action that did not come from the policy; its remarks are the thought."""
        if not self.thinking:
            return super().action_ids(tokenizer, action_text)
        return self._reply_ids(tokenizer, reply_with(action_text))

    def response_ids(self, tokenizer: TextTokenizer, response: str) -> list[int]:
        """Return the ids of what another agent said; its own thought stays."""
        if not self.thinking:
            return super().response_ids(tokenizer, response)
        return self._reply_ids(tokenizer, reply_said(response))

    def _reply_ids(self, tokenizer: TextTokenizer, reply: str) -> list[int]:
        return [*encode_reply(tokenizer, reply, self.opened(tokenizer)), tokenizer.stop_ids[0]]

    def action_text(self, tokenizer: TextTokenizer, action_ids: Sequence[int]) -> str:
        """Return the action that a reply takes, without its thought; raise ``ReplyError`` where it takes none."""
        said = super().action_text(tokenizer, action_ids)
        return answer_of(self.opened(tokenizer) + said) if self.thinking else said


class MilestoneState(PromptFormat):
    """Adds the milestone state to a format, between the page and the cue: what is reached, what is next, what is left.

    It stands below the page, so that an episode's prompts still begin alike.
    """

    def milestone_state(self, tokenizer: TextTokenizer, milestones: Sequence[MilestoneMark]) -> list[int]:
        """Return the ids of one line for each milestone; none for a task without milestones."""
        if not milestones:
            return []
        following = next((i for i, milestone in enumerate(milestones) if not milestone.reached), len(milestones))
        marks = ("+" if m.reached else ">" if i == following else "-" for i, m in enumerate(milestones))
        lines = (f"{mark} {_one_line(m.description)}" for mark, m in zip(marks, milestones, strict=True))
        return tokenizer.encode("\n".join(["", "Milestones:", *lines]))


@dataclass(frozen=True)
class WaymarkMilestonesFormat(MilestoneState, WaymarkFormat):
    """The compact format with the milestone state."""

    name: ClassVar[str] = "waymark_milestones"
    framed: ClassVar[re.Pattern[str]] = _FRAMED_MILESTONES


PAST_PAGE = "(an earlier page)"


@dataclass(frozen=True)
class ChatFormat(WaymarkFormat):
    """A dialogue as the model was trained on it: pages are the user's turns, actions the assistant's.

    The first turn has the task. An earlier page is a stand-in, so that a prompt holds one page however long the episode
    is, and begins as the prompt before it did. The marks of turns are ids of the model's own chat template.
    """

    name: ClassVar[str] = "chat"

    def begin(self, tokenizer: TextTokenizer) -> list[int]:
        """Return no ids: the template's own opening has the begin mark, where it has one."""
        return []

    def before_page(
        self, tokenizer: TextTokenizer, intent: str, history: Sequence[PastAction], feedback: str | None
    ) -> list[int]:
        """Return the ids of all turns before the current one, and of its words before the page."""
        marks = _chat_marks(tokenizer)
        told = [None, *(past.feedback for past in history[:-1]), feedback] if history else [feedback]
        words = ["".join([_feedback_line(line) if line else "", "Page:\n"]) for line in told]
        words[0] = f"{self.opening}Task: {_one_line(intent)}\n{words[0]}"
        ids = list(marks.opening)
        for past, said in zip(history, words, strict=False):
            ids += [*tokenizer.encode(said + PAST_PAGE), *marks.reply]
            ids += [*without_stop(tokenizer, past.action_ids), *marks.user]
        return [*ids, *tokenizer.encode(words[-1])]

    def after_page(self, tokenizer: TextTokenizer) -> list[int]:
        """Return the ids that end the user's turn and open the assistant's."""
        return list(_chat_marks(tokenizer).cue)

    def opened(self, tokenizer: TextTokenizer) -> str:
        """Return the thought's beginning where the template's cue has it: the tag, and what stands behind it."""
        cue = tokenizer.decode(_chat_marks(tokenizer).cue)
        begins = cue.rfind(THINK)
        return cue[begins:] if begins > cue.rfind(END_OF_THOUGHT) else ""


@dataclass(frozen=True)
class ChatMilestonesFormat(MilestoneState, ChatFormat):
    """A dialogue whose current turn ends with the milestone state."""

    name: ClassVar[str] = "chat_milestones"
    framed: ClassVar[re.Pattern[str]] = _FRAMED_MILESTONES


def _chat_marks(tokenizer: TextTokenizer) -> ChatMarks:
    if tokenizer.chat is None:
        raise ValueError(f"a chat prompt needs a policy folder with {CHAT_FILE}, which a run with this format makes")
    return tokenizer.chat


def get_format(name: str, *, instructions: bool = False, thinking: bool = False) -> PromptFormat:
    """Return a prompt format by name, one of ``FORMATS``; ``webrl`` has no instructions to add.

    Raises:
        ValueError: no format has this name, or ``webrl`` is asked to think.
    """
    if name == WebRLFormat.name:
        if thinking:
            raise ValueError("replies in the prompt format 'webrl' do not think; choose another or leave thinking off")
        return WebRLFormat()
    for kind in (WaymarkFormat, WaymarkMilestonesFormat, ChatFormat, ChatMilestonesFormat):
        if name == kind.name:
            return kind(instructions=instructions, thinking=thinking)
    raise ValueError(f"prompt format must be {' or '.join(map(repr, FORMATS))}, found {name!r}")


def format_of(settings: PolicySettings) -> PromptFormat:
    """Return the prompt format that a policy's settings ask for."""
    return get_format(settings.prompt_format, instructions=settings.instructions, thinking=settings.thinking)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _feedback_line(text: str) -> str:
    return f"! {_one_line(text)}\n"
