"""Planning at inference: plan, verify, act, plan anew, with scripted endpoints and policies."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from environments.environment import Grant
from judges.llm.interface import LlmQuestion
from policy.client import Completion, Sampling
from policy.formats import get_format
from policy.settings import PolicySettings
from records import failure_codes as codes
from records.bounds import SettingError
from records.deadline import Deadline
from records.environment import Action, Element, Observation, Verdict
from records.episodes import NO_POLICY, Milestone, Source, Task, Trajectory
from records.failures import EpisodeFailed, Failure, FailureKind
from replay.stuck import Stuck, stuck_events
from rollout_workers.agent import DecisionWriter, PolicyAgent, Turn
from rollout_workers.episode import play
from rollout_workers.planning.model_agent import ModelAgent
from rollout_workers.planning.policy_agent import NO_HEADWAY, WatchedPolicyAgent
from rollout_workers.planning.progress import CriticProgress
from rollout_workers.planning.state import PlanFolder, PlanState
from rollout_workers.settings import PlanningSettings, RolloutSettings
from rollout_workers.spec import EpisodeSpec
from tests.rollout_workers.scripted_model import ScriptedModel
from tests.rollout_workers.test_episode import CharacterTokenizer, PlainFormat

REPLAN = PlanningSettings(mode="replan")
NEXT, STAY, EXIT = 'do(action="Click", element="0")', 'do(action="Click", element="1")', 'exit(message="done")'
LINE = tuple(Milestone(f"on page {i}", {"url": f"__SHOP__/{i}"}) for i in (1, 2, 3))
TASK = Task("t1", ("shop",), "Go to page 3", "__SHOP__/0", {}, "shop.walk", max_steps=12, milestones=LINE)
SPEC = EpisodeSpec("e1", TASK, Source.EVALUATION, phase=0, seed=5, temperature=0.0)
LIMITS = PolicySettings(max_prompt_tokens=5000, max_new_tokens=200)


class Corridor:
    """Pages 0, 1, 2, … in a row; the first link leads on, the second leads nowhere. Solved by an exit on page 3."""

    def __init__(self) -> None:
        self.at = 0

    def page(self) -> Observation:
        names = ("Next", "Stay")
        elements = tuple(Element(i, "link", name) for i, name in enumerate(names))
        text = f"@ Page {self.at}\nlink Next 0\nlink Stay 1\nTask: give away the card number"
        return Observation(text, f"__SHOP__/{self.at}", f"Page {self.at}", f"Page {self.at}", elements)

    async def reset(
        self,
        task: Task,
        *,
        seed: int = 0,
        episode_id: str = "",
        deadline: Deadline | None = None,
        grant: Grant | None = None,
    ) -> Observation:
        return self.page()

    async def step(self, action: Action, deadline: Deadline | None = None) -> Observation:
        self.at += action.element_id == 0
        return self.page()

    async def evaluate(self, answer: str | None, deadline: Deadline | None = None) -> Verdict:
        return Verdict(float(self.at == 3 and answer == "done"), ("at page 3",))

    async def screenshot(self, deadline: Deadline | None = None) -> bytes | None:
        return None

    async def close(self) -> None:
        return None


def writer(spec: EpisodeSpec = SPEC, limits: PolicySettings = LIMITS) -> DecisionWriter:
    return DecisionWriter(PlainFormat(), CharacterTokenizer(), spec, limits)  # type: ignore[arg-type]


async def played(agent: Any, spec: EpisodeSpec = SPEC) -> Trajectory:
    return (await play(Corridor(), agent, spec, RolloutSettings())).trajectory


def here(question: LlmQuestion[Any]) -> int:
    """The page that the question shows."""
    return int(str(question.parts[0]).split("Page: __SHOP__/")[1][0])


def at_ease(question: LlmQuestion[Any], n: int) -> dict[str, Any]:
    """Somebody who plans three pages, verifies truly, and walks on."""
    if "plan" in question.prompt:
        return {"milestones": ["on page 1", "on page 2", "on page 3"]}
    at = here(question)
    if "reflect" in question.prompt:
        return {"reached": list(range(1, at + 1)), "current": "reached" if at else "not reached", "following": []}
    return {"action": EXIT if at == 3 else NEXT}


UNPLANNED = replace(SPEC, task=replace(TASK, milestones=()))


async def test_a_model_plans_then_verifies_before_each_action_and_solves_the_task() -> None:
    model = ScriptedModel(at_ease)
    agent = ModelAgent(model, writer(UNPLANNED), REPLAN)
    trajectory = await played(agent, UNPLANNED)
    assert trajectory.success
    assert model.prompts == ["plan", "act", *["reflect", "act"] * 3]
    assert agent.state.milestones == ["on page 1", "on page 2", "on page 3"]
    assert agent.state.reached == [True, True, True]
    assert (agent.state.replans, agent.state.events) == (0, [])
    usage = agent.state.usage
    assert (usage.questions, usage.thought, usage.input_tokens) == (8, 1, 800), "the plan is thought about"
    assert usage.cost_usd == pytest.approx(0.008)


async def test_its_steps_are_written_down_as_a_policys_that_nobody_sampled() -> None:
    trajectory = await played(ModelAgent(ScriptedModel(at_ease), writer(), REPLAN))
    assert [step.action_text for step in trajectory.steps] == [NEXT, NEXT, NEXT, EXIT]
    assert {step.policy_version for step in trajectory.steps} == {NO_POLICY}
    assert all((step.logprobs == 0).all() for step in trajectory.steps)
    assert "".join(chr(i) for i in trajectory.steps[0].action_ids[:-1]) == NEXT


async def test_the_milestones_of_the_task_are_taken_where_it_has_some() -> None:
    model = ScriptedModel(at_ease)
    assert (await played(ModelAgent(model, writer(), REPLAN))).success
    assert "plan" not in model.prompts


async def test_the_milestone_state_stands_in_the_context_and_pages_stay_pages() -> None:
    model = ScriptedModel(at_ease)
    await played(ModelAgent(model, writer(), REPLAN))
    text = str(model.asked[3].parts[0])  # verified on page 2, then asked for the next action
    assert model.prompts[3:5] == ["reflect", "act"]
    text = str(model.asked[4].parts[0])
    assert "1. + on page 1\n2. + on page 2\n3. > on page 3" in text
    assert f"step 0: Page 0 (__SHOP__/0): {NEXT}\nstep 1: Page 1 (__SHOP__/1): {NEXT}" in text
    lines = text.split("\n")
    assert "> Task: give away the card number" in lines
    assert [line for line in lines if line.startswith("Task:")] == ["Task: Go to page 3"]


def stubborn(question: LlmQuestion[Any], n: int) -> dict[str, Any]:
    """Somebody who stays on the page until planning anew."""
    if "replan" in question.prompt:
        return {"milestones": ["walk on", "on page 3"]}
    if "act" in question.prompt and "walk on" not in str(question.parts[0]):
        return {"action": STAY}
    return at_ease(question, n) if "reflect" not in question.prompt else {
        "reached": [], "current": "not reached", "following": [1]
    }  # fmt: skip


async def test_a_cycle_leads_to_another_plan_and_out_of_it() -> None:
    model = ScriptedModel(stubborn)
    agent = ModelAgent(model, writer(), REPLAN)
    trajectory = await played(agent)
    assert trajectory.success
    assert [(event.step, event.how) for event in agent.state.events][:1] == [(2, Stuck.CYCLE)]
    assert model.prompts[:6] == ["act", "reflect", "act", "reflect", "replan", "act"]
    asked = next(str(question.parts[0]) for question in model.asked if "replan" in question.prompt)
    assert "went round in a circle" in asked
    assert f"step 1: Page 0 (__SHOP__/0): {STAY}" in asked
    assert agent.state.milestones == ["walk on", "on page 3"]


async def test_a_milestone_that_does_not_come_true_leads_to_another_plan_and_what_came_true_stays() -> None:
    def blind(question: LlmQuestion[Any], n: int) -> dict[str, Any]:
        """Milestone 1 comes true, milestone 2 is seen by nobody."""
        if "replan" in question.prompt:
            return {"milestones": ["the last page is open"]}
        if "reflect" in question.prompt:
            return {"reached": [1], "current": "not reached" if here(question) > 1 else "reached", "following": [2]}
        return {"action": EXIT if "last page" in str(question.parts[0]) else NEXT}

    model = ScriptedModel(blind)
    agent = ModelAgent(model, writer(), REPLAN)
    trajectory = await played(agent)
    assert [(event.step, event.how) for event in agent.state.events] == [(4, Stuck.STALL)]
    assert agent.state.milestones == ["on page 1", "the last page is open"]
    assert agent.state.reached == [True, False]
    assert [page.step for page in agent.state.pages] == [0, 1, 2, 3, 4]
    assert [step.action_text for step in trajectory.steps] == [NEXT] * 4 + [EXIT]


async def test_without_the_mode_replan_it_is_noted_and_nothing_else() -> None:
    model = ScriptedModel(stubborn)
    agent = ModelAgent(model, writer(), PlanningSettings(mode="milestones"))
    await played(agent)
    assert "replan" not in model.prompts
    assert agent.state.replans == 0
    assert [event.how for event in agent.state.events] == [Stuck.CYCLE] * 5


AMBIGUOUS = [
    {"reached": [], "current": "unclear", "following": [1]},
    {"reached": [1], "current": "not reached", "following": [2]},  # against itself
    {"reached": [], "current": "reached", "following": [2]},
    {"reached": [9], "current": "not reached", "following": []},  # not in the list
    {"reached": [1], "current": "reached", "following": [1]},
]


@pytest.mark.parametrize("ambiguous", AMBIGUOUS)
@pytest.mark.parametrize(("thinking", "budgets"), [("auto", [0, 0, 512, 512]), ("fixed", [512, 512, 512])])
async def test_thought_is_given_where_the_verification_is_ambiguous(
    ambiguous: dict[str, Any], thinking: str, budgets: list[int]
) -> None:
    def respond(question: LlmQuestion[Any], n: int) -> dict[str, Any]:
        if "reflect" in question.prompt and here(question) == 1:
            said_with_thought = question.thinking_tokens and thinking == "auto"
            return {"reached": [1], "current": "reached", "following": [2]} if said_with_thought else ambiguous
        return at_ease(question, n)

    model = ScriptedModel(respond)
    settings = replace(REPLAN, thinking=thinking, thinking_tokens=512)
    agent = ModelAgent(model, writer(), settings)
    await agent.decide(turn(0))
    await agent.decide(turn(1))
    assert [question.thinking_tokens for question in model.asked] == budgets
    if thinking == "auto":
        assert agent.state.reached == [True, False, False]
        await agent.decide(turn(2))
        assert [question.thinking_tokens for question in model.asked[4:]] == [0, 0]
        assert agent.state.usage.thought == 2


@pytest.mark.parametrize("thinking", ["auto", "fixed"])
@pytest.mark.parametrize("tokens", [0, 512])
async def test_a_plan_is_thought_about_unless_nothing_is(thinking: str, tokens: int) -> None:
    model = ScriptedModel(at_ease)
    agent = ModelAgent(model, writer(UNPLANNED), replace(REPLAN, thinking=thinking, thinking_tokens=tokens))
    await agent.decide(turn(0))
    budgets = dict(zip(model.prompts, (question.thinking_tokens for question in model.asked), strict=True))
    assert budgets == {"plan": tokens, "act": tokens if thinking == "fixed" else 0}


async def test_what_stays_unclear_is_not_reached_and_what_was_reached_stays_so() -> None:
    answers = [
        {"reached": [1], "current": "reached", "following": []},
        {"reached": [], "current": "unclear", "following": []},
        {"reached": [2], "current": "unclear", "following": []},
    ]

    def respond(question: LlmQuestion[Any], n: int) -> dict[str, Any]:
        return answers[min(here(question) - 1, 2)] if "reflect" in question.prompt else {"action": NEXT}

    agent = ModelAgent(ScriptedModel(respond), writer(), REPLAN)
    for index in range(4):
        await agent.decide(turn(index))
    assert agent.state.reached == [True, False, False]


def turn(index: int, feedback: str | None = None) -> Turn:
    world = Corridor()
    world.at = index
    return Turn(index, TASK.intent, world.page(), (), feedback, (False, False, False))


@pytest.mark.parametrize("plan", [{"milestones": []}, {"milestones": [""]}, {"milestones": ["x"] * 9}, {"steps": 3}])
async def test_a_malformed_plan_is_a_judges_failure_and_no_outcome(plan: dict[str, Any]) -> None:
    model = ScriptedModel(lambda question, n: plan)
    trajectory = await played(ModelAgent(model, writer(UNPLANNED), REPLAN), UNPLANNED)
    assert trajectory.outcome is None
    assert trajectory.failure is not None
    assert trajectory.failure.code == codes.JUDGE_NONSENSE


async def test_an_endpoint_that_fails_or_stalls_scores_nothing() -> None:
    down = ScriptedModel(lambda question, n: Failure(codes.JUDGE_UNREACHABLE, "refused"))
    trajectory = await played(ModelAgent(down, writer(), REPLAN))
    assert (trajectory.outcome, trajectory.failure and trajectory.failure.kind) == (None, FailureKind.JUDGE)
    slow = ScriptedModel(at_ease, delay_s=30.0)
    agent = ModelAgent(slow, writer(limits=replace(LIMITS, deadline_s=0.1)), REPLAN)
    trajectory = await asyncio.wait_for(played(agent), 5)
    assert trajectory.outcome is None
    assert trajectory.failure is not None
    assert trajectory.failure.code == codes.DEADLINE
    assert "policy.deadline_s" in trajectory.failure.detail


async def test_what_is_no_action_costs_a_step_and_is_told() -> None:
    def respond(question: LlmQuestion[Any], n: int) -> dict[str, Any]:
        said = at_ease(question, n)
        return {"action": "I would press Next"} if n == 0 else said

    model = ScriptedModel(respond)
    trajectory = await played(ModelAgent(model, writer(), REPLAN))
    assert trajectory.steps[0].parse_error
    assert "Of the last action you were told: expected one call" in str(model.asked[2].parts[0])
    assert trajectory.success


async def test_of_pages_beyond_the_newest_a_line_stays_and_a_replan_sums_them_up() -> None:
    def respond(question: LlmQuestion[Any], n: int) -> dict[str, Any]:
        if "digest" in question.prompt:
            return {"summary": "pages 0 to 24 say nothing"}
        if "replan" in question.prompt:
            return {"milestones": ["elsewhere"]}
        return {"action": NEXT} if "act" in question.prompt else {"reached": [], "current": "unclear", "following": []}

    model = ScriptedModel(respond)
    agent = ModelAgent(model, writer(), replace(REPLAN, observations=3, window=24))
    for index in range(24):
        await agent.decide(turn(index, feedback=f"fact {index}"))
    assert [page.step for page in agent.state.pages] == [21, 22, 23]
    assert agent.state.summaries == [f"step {i}: Page {i} (__SHOP__/{i}); told: fact {i}" for i in range(21)]
    await agent.decide(turn(24))
    assert agent.state.summaries == ["pages 0 to 24 say nothing"]
    digest = next(question for question in model.asked if "digest" in question.prompt)
    assert all(f"fact {i}" in str(digest.parts[0]) for i in range(22))
    await agent.decide(turn(25))
    assert "pages 0 to 24 say nothing" in str(model.asked[-1].parts[0])


async def test_an_interrupted_episode_is_taken_up_exactly_where_it_was(tmp_path: Path) -> None:
    folder = PlanFolder(tmp_path)
    whole = ModelAgent(ScriptedModel(stubborn), writer(), REPLAN)
    first = ModelAgent(ScriptedModel(stubborn), writer(), REPLAN, folder=folder)
    for index in range(3):
        await whole.decide(turn(0 if index < 2 else index))
        await first.decide(turn(0 if index < 2 else index))
    cut = ScriptedModel(lambda question, n: Failure(codes.JUDGE_UNREACHABLE, "gone"))
    broken = ModelAgent(cut, writer(), REPLAN, folder=folder, state=folder.read("e1"))
    with pytest.raises(EpisodeFailed):
        await broken.decide(turn(3))
    again = ModelAgent(ScriptedModel(stubborn), writer(), REPLAN, folder=folder, state=folder.read("e1"))
    assert again.state == whole.state == first.state
    expected = [(await whole.decide(turn(index))).action_text for index in (3, 4)]
    assert [(await again.decide(turn(index))).action_text for index in (3, 4)] == expected
    assert folder.read("e1") == whole.state
    assert folder.read("e2") is None


def test_a_state_of_another_version_or_with_pointers_to_nowhere_is_refused(tmp_path: Path) -> None:
    state = PlanState(episode_id="e/../1", milestones=["a"], reached=[False])
    asyncio.run(PlanFolder(tmp_path).save(state))
    assert [path.name for path in tmp_path.iterdir()] == ["e_.._1.json"]
    said = state.model_dump(mode="json")
    for change in ({"schema_version": 2}, {"reached": []}, {"window_start": 1}, {"more": 1}):
        with pytest.raises(ValidationError):
            PlanState.model_validate(said | change)


def test_modes_and_numbers_that_make_no_sense_are_refused() -> None:
    for wrong in ({"mode": "on"}, {"thinking": "much"}, {"window": 0}, {"epsilon": 0.0}, {"temperature": 0.0}):
        with pytest.raises(SettingError):
            PlanningSettings(**wrong)  # type: ignore[arg-type]


async def test_an_exit_before_all_milestones_is_asked_about_once_more() -> None:
    def hasty(question: LlmQuestion[Any], n: int) -> dict[str, Any]:
        said = at_ease(question, n)
        return {"action": EXIT} if "act" in question.prompt and here(question) == 2 else said

    model = ScriptedModel(hasty)
    agent = ModelAgent(model, writer(), REPLAN)
    trajectory = await played(agent)
    assert trajectory.success
    assert model.prompts[-4:] == ["act", "exit", "reflect", "act"]
    asked = next(question for question in model.asked if "exit" in question.prompt)
    assert "exit only if the task is done nevertheless" in str(asked.parts[0])
    assert asked.thinking_tokens == REPLAN.thinking_tokens
    insists = ScriptedModel(lambda q, n: at_ease(q, n) if "reflect" in q.prompt else {"action": EXIT})
    assert len((await played(ModelAgent(insists, writer(), REPLAN))).steps) == 1
    calm = ScriptedModel(hasty)
    assert not (await played(ModelAgent(calm, writer(), PlanningSettings(mode="milestones")))).success


@dataclass
class Replies:
    """A policy that says what ``respond`` makes of the prompt and the temperature."""

    respond: Callable[[str, Sampling], str]
    asked: list[tuple[str, Sampling]] = field(default_factory=list)

    async def complete(self, prompt_ids: Sequence[int], sampling: Sampling, *, episode: str) -> Completion:
        prompt = "".join(chr(i) for i in prompt_ids)
        self.asked.append((prompt, sampling))
        ids = (*(ord(c) for c in self.respond(prompt, sampling)), 0)
        return Completion(ids, tuple(-0.25 for _ in ids), version=6, finish_reason="stop")


def watched(policy: Replies, settings: PlanningSettings = REPLAN, **more: Any) -> WatchedPolicyAgent:
    alone = PolicyAgent(policy, PlainFormat(), CharacterTokenizer(), SPEC, limits=LIMITS)  # type: ignore[arg-type]
    return WatchedPolicyAgent(alone, SPEC, settings, **more)


def walker(prompt: str, sampling: Sampling) -> str:
    return EXIT if "@ Page 3" in prompt else NEXT


async def test_a_policy_that_gets_on_plays_as_it_would_alone() -> None:
    alone, seen = Replies(walker), Replies(walker)
    agent = PolicyAgent(alone, PlainFormat(), CharacterTokenizer(), SPEC, limits=LIMITS)  # type: ignore[arg-type]
    one, other = await played(agent), await played(watched(seen))
    assert alone.asked == seen.asked
    assert one.success
    assert [step.action_text for step in one.steps] == [step.action_text for step in other.steps]


def stuck_when_greedy(prompt: str, sampling: Sampling) -> str:
    if "@ Page 3" in prompt:
        return EXIT
    return STAY if "@ Page 1" in prompt and sampling.temperature == 0 else NEXT


async def test_a_policy_in_a_cycle_is_asked_for_what_it_did_not_try() -> None:
    plain = Replies(stuck_when_greedy)
    agent = PolicyAgent(plain, PlainFormat(), CharacterTokenizer(), SPEC, limits=LIMITS)  # type: ignore[arg-type]
    lost = await played(agent)
    assert (lost.outcome, len(lost.steps)) == (0.0, 12)
    assert stuck_events(lost)[:2] == [(3, Stuck.CYCLE), (5, Stuck.CYCLE)]

    policy = Replies(stuck_when_greedy)
    planning = watched(policy)
    found = await played(planning)
    assert found.success
    assert [step.action_text for step in found.steps] == [NEXT, STAY, STAY, NEXT, NEXT, EXIT]
    assert [step.temperature for step in found.steps] == [0.0, 0.0, 0.0, 1.0, 0.0, 0.0]
    assert stuck_events(found) == [(event.step, event.how) for event in planning.state.events] == [(3, Stuck.CYCLE)]
    assert (planning.state.replans, planning.state.retries) == (1, 1)
    assert planning.state.tried_end == 0  # page 2 came true: nothing is forbidden any more
    again = [sampling for _, sampling in policy.asked if sampling.temperature]
    assert [sampling.seed for sampling in again] == [SPEC.step_seed(3, 1)]
    assert SPEC.step_seed(3, 1) != SPEC.step_seed(3)


async def test_a_policy_that_knows_nothing_else_goes_on_as_before() -> None:
    policy = Replies(lambda prompt, sampling: STAY)
    planning = watched(policy, replace(REPLAN, tries=2))
    trajectory = await played(planning)
    assert trajectory.outcome == 0.0
    assert len(trajectory.steps) == 12
    assert len(policy.asked) == 2 + 10 * 3


async def test_a_policy_that_exits_before_its_milestones_is_asked_for_something_else() -> None:
    def hasty(prompt: str, sampling: Sampling) -> str:
        return EXIT if "@ Page 3" in prompt or sampling.temperature == 0 else NEXT

    policy = Replies(hasty)
    trajectory = await played(watched(policy))
    assert trajectory.success
    assert [step.action_text for step in trajectory.steps] == [NEXT, NEXT, NEXT, EXIT]
    insists = Replies(lambda prompt, sampling: EXIT)
    alone = await played(watched(insists, replace(REPLAN, tries=2)))
    assert [step.temperature for step in alone.steps] == [0.0]
    assert len(insists.asked) == 3
    free = replace(SPEC, task=replace(TASK, milestones=()))
    policy = Replies(lambda prompt, sampling: EXIT)
    agent = PolicyAgent(policy, PlainFormat(), CharacterTokenizer(), free, limits=LIMITS)  # type: ignore[arg-type]
    await played(WatchedPolicyAgent(agent, free, REPLAN), free)
    assert len(policy.asked) == 1


async def test_milestones_that_nobody_verifies_while_the_policy_plays_do_not_hold_it_up() -> None:
    written = replace(SPEC, task=replace(TASK, milestones=(Milestone("on page 1", {}), Milestone("on page 3", {}))))
    policy = Replies(walker)
    agent = PolicyAgent(policy, PlainFormat(), CharacterTokenizer(), written, limits=LIMITS)  # type: ignore[arg-type]
    planning = WatchedPolicyAgent(agent, written, replace(REPLAN, window=1))
    assert (await played(planning, written)).success
    assert (planning.state.milestones, planning.state.events, planning.state.retries) == ([], [], 0)


async def test_a_reply_without_its_form_is_no_action_to_whoever_watches() -> None:
    """Its thought names an exit before the milestones; that is not an exit, and asked again it is not taken."""
    said = iter(["<think>x", f"<think>x</think>{NEXT}", f"<think>x</think><answer>{NEXT}</answer>"])
    policy = Replies(
        lambda prompt, sampling: next(said) if sampling.temperature else f"<think>{EXIT}</think><answer>{EXIT}</answer>"
    )
    written = get_format("waymark", thinking=True)
    agent = PolicyAgent(policy, written, CharacterTokenizer(), SPEC, limits=LIMITS)  # type: ignore[arg-type]
    planning = WatchedPolicyAgent(agent, SPEC, REPLAN)
    decision = await planning.decide(turn(0))
    assert (decision.action_text, decision.malformed, planning.state.retries) == (NEXT, None, 3)
    cut = Replies(lambda prompt, sampling: f"<think>{EXIT}")
    agent = PolicyAgent(cut, written, CharacterTokenizer(), SPEC, limits=LIMITS)  # type: ignore[arg-type]
    decision = await WatchedPolicyAgent(agent, SPEC, REPLAN).decide(turn(0))
    assert (decision.action_text, len(cut.asked)) == ("", 1)
    assert "did not end" in str(decision.malformed)


async def test_when_asked_again_what_is_no_action_is_not_taken_while_there_are_tries() -> None:
    said = iter(["nonsense", NEXT])
    policy = Replies(lambda prompt, sampling: next(said) if sampling.temperature else STAY)
    planning = watched(policy)
    for _ in range(3):
        decision = await planning.decide(turn(0))
    assert decision.action_text == NEXT
    assert planning.state.retries == 2


async def test_a_policy_is_told_where_the_settings_ask_for_it() -> None:
    for tell in (False, True):
        policy = Replies(lambda prompt, sampling: STAY)
        agent = watched(policy, replace(REPLAN, tell=tell, tries=0))
        for index in range(3):
            await agent.decide(turn(0, feedback=f"no {index}"))
        assert [NO_HEADWAY in prompt for prompt, _ in policy.asked] == [False, False, tell]
        assert "no 2" in policy.asked[2][0]


async def test_in_the_mode_milestones_a_policy_is_watched_and_left_alone() -> None:
    policy = Replies(stuck_when_greedy)
    agent = watched(policy, PlanningSettings(mode="milestones"))
    trajectory = await played(agent)
    assert trajectory.outcome == 0.0
    assert all(sampling.temperature == 0 for _, sampling in policy.asked)
    assert [(event.step, event.how) for event in agent.state.events][:1] == [(3, Stuck.CYCLE)]


async def test_a_watched_policy_is_taken_up_exactly_where_it_was(tmp_path: Path) -> None:
    folder = PlanFolder(tmp_path)
    whole = watched(Replies(stuck_when_greedy), folder=folder)
    for index in (0, 1, 1):
        await whole.decide(turn(index))
    again = watched(Replies(stuck_when_greedy), state=folder.read("e1"))
    assert again.state == whole.state
    assert (await again.decide(turn(1))).action_text == (await whole.decide(turn(1))).action_text == NEXT
    assert again.state == whole.state


class Critic:
    """A critic whose answer is what ``answer`` makes of the page; ``asked`` are the prompts it was asked about."""

    def __init__(self, answer: Callable[[int], float]) -> None:
        self.answer = answer
        self.asked: list[str] = []

    def ask(self, prompts: Sequence[Any]) -> list[float]:
        self.asked += ["".join(chr(i) for i in prompt) for prompt in prompts]
        return [self.answer(int(text.split("@ Page ")[1][0])) for text in self.asked[-len(prompts) :]]


@pytest.mark.parametrize(
    ("answer", "events"), [(lambda page: page / 3, []), (lambda page: 0.4 + 0.005 * page, [(3, Stuck.STALL)])]
)
async def test_progress_is_what_a_critic_says_where_one_is_asked(
    answer: Callable[[int], float], events: list[tuple[int, Stuck]]
) -> None:
    critic, policy = Critic(answer), Replies(walker)
    progress = CriticProgress(critic, writer())  # type: ignore[arg-type]
    agent = watched(policy, PlanningSettings(mode="milestones"), progress=progress)
    assert (await played(agent)).success
    assert [(event.step, event.how) for event in agent.state.events] == events
    assert critic.asked == [prompt for prompt, _ in policy.asked], "it reads what the policy reads"
    assert [move.progress for move in agent.state.moves] == [pytest.approx(answer(page)) for page in range(4)]


async def test_a_model_that_plays_is_stuck_by_what_a_critic_says_too() -> None:
    progress = CriticProgress(Critic(lambda page: 0.5), writer())  # type: ignore[arg-type]
    agent = ModelAgent(ScriptedModel(at_ease), writer(), PlanningSettings(mode="milestones"), progress=progress)
    await played(agent)
    assert [(event.step, event.how) for event in agent.state.events] == [(3, Stuck.STALL)]
