"""The episode loop: what the agent is told, what is recorded, and what a failure becomes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest

from environments.browserless.environment import BrowserlessEnvironment
from environments.environment import Environment, Grant
from judges.answers import with_answer
from judges.milestones import Acted
from judges.of_milestones.recorded import action_of, milestones_of_record
from policy.client import Completion, PolicyClient, Sampling
from policy.formats import get_format
from policy.prompts import Prompt, PromptFormat, PromptTooLong
from policy.settings import PolicySettings
from policy.tokenizer import TextTokenizer
from policy.tokenizer_training import train_tokenizer
from records import failure_codes as codes
from records.deadline import Deadline
from records.environment import Action, Element, Observation, Verdict
from records.episodes import NO_POLICY, Milestone, Source, Step, Task, Termination, Trajectory
from records.failures import EpisodeFailed, Failure, FailureCode, FailureKind
from rollout_workers.agent import PolicyAgent
from rollout_workers.episode import play, settle
from rollout_workers.scripted_agent import ScriptedAgent, record_demonstration
from rollout_workers.settings import RolloutSettings
from rollout_workers.spec import EpisodeSpec
from sites.app import create_app
from sites.experts import Intent
from sites.tasks import task_set
from telemetry import meter
from telemetry.prometheus_sink import PrometheusSink

TASK = Task(
    task_id="t1",
    sites=("shop",),
    intent="Open the lamp",
    start_url="__SHOP__/",
    evaluation={},
    template="shop.open",
    split="train",
    horizon=2,
    max_steps=4,
    milestones=(
        Milestone("on the lamp's page", {"url": "__SHOP__/lamp"}),
        Milestone("pressed Lamp", {"acted": {"kind": "click", "name": "Lamp"}}),
    ),
)
SPEC = EpisodeSpec("e1", TASK, Source.ROLLOUT, phase=3, seed=11)
SETTINGS = RolloutSettings()
CLICK, BACK, EXIT = 'do(action="Click", element="0")', "go_backward()", 'exit(message="done")'


class CharacterTokenizer:
    """One id a character; enough of a tokenizer for a loop that never looks into one."""

    stop_ids = (0,)
    bos_id = None

    def encode(self, text: str) -> list[int]:
        return [ord(c) for c in text]

    def decode(self, ids: Sequence[int]) -> str:
        return "".join(chr(i) for i in ids)


@dataclass
class PlainFormat:
    """Writes down exactly what it was given, so that a test can read a prompt back."""

    name: str = "plain"
    thinking: bool = False

    def build(self, tokenizer, *, intent, history, observation, feedback, max_prompt_tokens, milestones=()) -> Prompt:  # type: ignore[no-untyped-def]
        past = [[tokenizer.decode([i for i in h.action_ids if i]), h.feedback] for h in history]
        ids = tokenizer.encode(json.dumps({"intent": intent, "past": past, "page": observation, "feedback": feedback}))
        if len(ids) > max_prompt_tokens:
            raise PromptTooLong(f"{len(ids)} tokens, the limit is {max_prompt_tokens}")
        return Prompt(np.asarray(ids, dtype=np.int32), truncated_tokens=5)

    def action_ids(self, tokenizer: CharacterTokenizer, action_text: str) -> list[int]:
        return [*tokenizer.encode(action_text), 0]

    def action_text(self, tokenizer: CharacterTokenizer, action_ids: Sequence[int]) -> str:
        return tokenizer.decode([i for i in action_ids if i])


@dataclass
class Replies:
    """A policy that says given things, and remembers what it was asked."""

    texts: list[str]
    asked: list[tuple[str, Sampling, str]] = field(default_factory=list)
    delay_s: float = 0.0

    async def complete(self, prompt_ids: Sequence[int], sampling: Sampling, *, episode: str) -> Completion:
        await asyncio.sleep(self.delay_s)
        self.asked.append(("".join(chr(i) for i in prompt_ids), sampling, episode))
        ids = (*(ord(c) for c in self.texts[len(self.asked) - 1]), 0)
        return Completion(ids, tuple(-0.25 for _ in ids), version=6, finish_reason="stop")


def page(url: str, *names: str, feedback: str | None = None) -> Observation:
    elements = tuple(Element(i, "link", name) for i, name in enumerate(names))
    text = "\n".join(f"link {e.name} {e.element_id}" for e in elements)
    return Observation(text, url, url, " ".join(names), elements, feedback)


@dataclass
class TwoPages:
    """A world of two pages; ``on_step`` may misbehave instead."""

    on_step: Callable[[Action], None] | None = None
    step_delay_s: float = 0.0
    judged: list[str | None] = field(default_factory=list)
    actions: list[Action] = field(default_factory=list)
    verdict_error: EpisodeFailed | None = None

    async def reset(
        self,
        task: Task,
        *,
        seed: int = 0,
        episode_id: str = "",
        deadline: Deadline | None = None,
        grant: Grant | None = None,
    ) -> Observation:
        return page("__SHOP__/", "Lamp", "Chair")

    async def step(self, action: Action, deadline: Deadline | None = None) -> Observation:
        await asyncio.sleep(self.step_delay_s)
        self.actions.append(action)
        if self.on_step:
            self.on_step(action)
        if action.element_id is not None and action.element_id > 1:
            return page("__SHOP__/", "Lamp", "Chair", feedback=f"there is no element {action.element_id}")
        return page("__SHOP__/lamp", "Home") if action.kind == "click" else page("__SHOP__/", "Lamp", "Chair")

    async def evaluate(self, answer: str | None, deadline: Deadline | None = None) -> Verdict:
        if self.verdict_error:
            raise self.verdict_error
        self.judged.append(answer)
        return Verdict(1.0 if answer == "done" else 0.0, ("string_match: 'done'",))

    async def screenshot(self, deadline: Deadline | None = None) -> bytes | None:
        return b"png"

    async def close(self) -> None:
        return None


async def run_episode(
    env: Environment,
    policy: PolicyClient,
    prompt_format: PromptFormat,
    tokenizer: CharacterTokenizer,
    spec: EpisodeSpec,
    settings: RolloutSettings,
    limits: PolicySettings,
) -> Trajectory:
    """Let a policy play one episode to its verdict."""
    agent = PolicyAgent(policy, prompt_format, tokenizer, spec, top_p=settings.top_p, limits=limits)  # type: ignore[arg-type]
    return (await settle(await play(env, agent, spec, settings, writer=agent.writer), spec.task)).trajectory


async def run(
    env: TwoPages,
    policy: Replies,
    spec: EpisodeSpec = SPEC,
    settings: RolloutSettings = SETTINGS,
    tokens: int = 4000,
    policy_s: float = 90.0,
) -> Trajectory:
    limits = PolicySettings(max_prompt_tokens=tokens, deadline_s=policy_s)
    return await run_episode(env, policy, PlainFormat(), CharacterTokenizer(), spec, settings, limits)


def asked(policy: Replies, index: int) -> dict[str, object]:
    return dict(json.loads(policy.asked[index][0]))


async def test_an_episode_records_what_the_policy_saw_and_said() -> None:
    env, policy = TwoPages(), Replies([CLICK, EXIT])
    trajectory = await run(env, policy)
    assert (trajectory.outcome, trajectory.failure, trajectory.termination) == (1.0, None, Termination.EXIT)
    assert (trajectory.answer, trajectory.policy_version, trajectory.phase) == ("done", 6, 3)
    first, second = trajectory.steps
    assert first.prompt_ids.tolist() == [ord(c) for c in policy.asked[0][0]]
    assert first.action_ids.tolist() == [*map(ord, CLICK), 0]
    assert first.logprobs.tolist() == [-0.25] * (len(CLICK) + 1)
    assert (first.url, second.url) == ("__SHOP__/", "__SHOP__/lamp")
    assert (first.element, second.element) == ("link Lamp", None)
    assert first.truncated_tokens == 5
    assert env.judged == ["done"]


async def test_only_what_the_environment_is_asked_counts_among_the_seconds_of_its_steps() -> None:
    """A click of two; unread text and an exit leave the page alone, and are steps all the same."""
    sink = PrometheusSink()
    meter.install(sink, "run")
    try:
        await run(TwoPages(), Replies([CLICK, "click the lamp", EXIT]))
    finally:
        meter.install(None)
    lines = [line for line in sink.text().splitlines() if not line.startswith("#")]
    seconds = [line for line in lines if line.startswith("waymark_step_seconds_count")]
    steps = [float(line.split()[-1]) for line in lines if line.startswith("waymark_steps_total")]
    assert [float(line.split()[-1]) for line in seconds] == [1.0]
    assert sum(steps) == 3


async def test_milestones_belong_to_the_state_before_the_action_and_stay_reached() -> None:
    trajectory = await run(TwoPages(), Replies([CLICK, BACK, EXIT]))
    assert [step.milestones for step in trajectory.steps] == [(False, False), (True, True), (True, True)]
    assert trajectory.final_milestones == (True, True)


@pytest.mark.parametrize(("answer", "reached"), [("done", True), ("finished", False)])
async def test_the_answer_of_a_question_is_its_last_milestone_as_played_and_as_recorded(
    answer: str, reached: bool
) -> None:
    asked = {"eval_types": ["string_match"], "reference_answers": {"exact_match": "done"}}
    question = with_answer(replace(TASK, evaluation=asked))
    played = await run(TwoPages(), Replies([CLICK, f'exit(message="{answer}")']), replace(SPEC, task=question))
    assert [step.milestones for step in played.steps] == [(False, False, False), (True, True, False)]
    assert played.final_milestones == (True, True, reached)
    assert played.outcome == float(reached)
    assert milestones_of_record(played, question.milestones)[-1, -1] == reached


@pytest.mark.parametrize("refused", [False, True])
async def test_an_action_that_was_refused_reaches_no_milestone_as_played_and_as_recorded(refused: bool) -> None:
    class Covered(TwoPages):
        async def step(self, action: Action, deadline: Deadline | None = None) -> Observation:
            seen = await super().step(action, deadline)
            return replace(seen, refused=refused) if action.kind == "click" else seen

    clicked = Milestone("the lamp is clicked", {"acted": {"kind": "click", "name": "Lamp"}})
    task = replace(TASK, milestones=(clicked,))
    played = await run(Covered(), Replies([CLICK, "nonsense", BACK, EXIT]), replace(SPEC, task=task))
    assert [step.refused for step in played.steps] == [refused, False, False, False]
    assert [step.milestones for step in played.steps] == [(False,), *[(not refused,)] * 3]
    assert milestones_of_record(played, task.milestones)[:, 0].tolist() == [False, *[not refused] * 4]


async def test_text_that_is_not_an_action_costs_a_step_and_is_told_to_the_agent() -> None:
    env, policy = TwoPages(), Replies(["click the lamp", CLICK, EXIT])
    trajectory = await run(env, policy)
    assert trajectory.steps[0].parse_error is not None
    assert trajectory.steps[0].feedback is None
    assert trajectory.steps[1].feedback == trajectory.steps[0].parse_error
    assert asked(policy, 1)["feedback"] == trajectory.steps[0].parse_error
    assert asked(policy, 1)["page"] == asked(policy, 0)["page"]
    assert asked(policy, 2)["past"] == [["click the lamp", trajectory.steps[0].parse_error], [CLICK, None]]
    assert asked(policy, 2)["feedback"] is None
    assert [action.kind for action in env.actions] == ["click"]


async def test_the_environments_feedback_reaches_the_agent_once() -> None:
    policy = Replies(['do(action="Click", element="9")', "nonsense", CLICK, EXIT])
    trajectory = await run(TwoPages(), policy)
    assert trajectory.steps[1].feedback == "there is no element 9"
    assert trajectory.steps[2].feedback == trajectory.steps[1].parse_error
    assert trajectory.steps[0].element is None
    assert trajectory.steps[1].milestones == (False, False)


async def test_running_out_of_steps_is_judged_without_an_answer() -> None:
    env = TwoPages()
    trajectory = await run(env, Replies([BACK] * 9))
    assert trajectory.termination is Termination.MAX_STEPS
    assert len(trajectory.steps) == TASK.max_steps
    assert env.judged == [None]
    assert trajectory.outcome == 0.0


ENDED = replace(SETTINGS, final_state=True)


@pytest.mark.parametrize("last", [CLICK, BACK, "click the lamp", 'do(action="Click", element="9")', EXIT])
async def test_the_final_state_is_the_one_in_which_the_policy_would_be_asked_next(last: str) -> None:
    """An episode that may go on for one more action is asked in the state that the shorter one ends in."""
    env, policy, longer = TwoPages(), Replies([CLICK, last]), Replies([CLICK, last, EXIT])
    short = replace(SPEC, task=replace(TASK, max_steps=2))
    trajectory = await run(env, policy, short, ENDED)
    state = trajectory.final_state
    assert state is not None
    assert (len(policy.asked), len(trajectory.steps)) == (2, 2), "nobody is asked about it"
    assert len(env.actions) == (1 if last in (EXIT, "click the lamp") else 2), "and nothing is done for it"
    if last == EXIT:
        # The page stays; the exit is in the history.
        told = json.loads("".join(map(chr, state.prompt_ids)))
        assert told["past"] == [[CLICK, None], [EXIT, None]]
        assert (state.url, state.observation) == (trajectory.steps[1].url, trajectory.steps[1].observation)
        assert (state.feedback, state.truncated_tokens) == (None, 5)
        return
    (*_, following) = (await run(TwoPages(), longer, settings=ENDED)).steps
    assert state.prompt_ids.dtype == np.int32
    for name in ("url", "observation", "feedback", "truncated_tokens"):
        assert getattr(state, name) == getattr(following, name)
    assert state.prompt_ids.tolist() == following.prompt_ids.tolist()


async def test_a_final_state_is_recorded_where_it_is_asked_for_learned_from_and_has_room() -> None:
    assert (await run(TwoPages(), Replies([EXIT]))).final_state is None
    assert (await run(TwoPages(), Replies([EXIT]), settings=ENDED)).final_state is not None
    evaluation = replace(SPEC, source=Source.EVALUATION)
    assert (await run(TwoPages(), Replies([EXIT]), evaluation, ENDED)).final_state is None
    full = await run(TwoPages(), Replies(["x" * 300, CLICK]), settings=ENDED, tokens=250)
    assert (len(full.steps), full.outcome, full.final_state) == (1, 0.0, None)
    crashed = await run(TwoPages(on_step=boom), Replies([CLICK]), settings=ENDED)
    assert (crashed.outcome, crashed.final_state) == (None, None)


async def test_a_higher_limit_changes_nothing_of_what_came_before_it() -> None:
    """So one evaluation tells success at each limit (``analysis.interactions``)."""
    said = [CLICK, BACK, "nonsense", CLICK, BACK, CLICK, BACK, EXIT]
    short, long = Replies(said), Replies(said)
    formatted = get_format("waymark", instructions=True)
    limits, tokenizer = PolicySettings(max_prompt_tokens=4000), CharacterTokenizer()
    played = [
        await run_episode(TwoPages(), policy, formatted, tokenizer, spec, SETTINGS, limits)
        for policy, spec in ((short, SPEC), (long, replace(SPEC, task=replace(TASK, max_steps=2 * TASK.max_steps))))
    ]
    assert [len(episode.steps) for episode in played] == [4, 8]
    assert short.asked == long.asked[:4]
    assert [episode.outcome for episode in played] == [0.0, 1.0]


async def test_an_exit_without_a_message_is_an_empty_answer_not_a_missing_one() -> None:
    env = TwoPages()
    await run(env, Replies(["exit()"]))
    assert env.judged == [""]


def boom(action: Action) -> None:
    raise EpisodeFailed(Failure(codes.BROWSER_CRASHED, "gone"))


async def test_a_failure_below_leaves_no_outcome_and_keeps_the_steps() -> None:
    trajectory = await run(
        TwoPages(on_step=lambda a: boom(a) if a.kind == "go_backward" else None), Replies([CLICK, BACK])
    )
    assert trajectory.outcome is None
    assert trajectory.failure == Failure(codes.BROWSER_CRASHED, "gone")
    assert trajectory.termination is None
    assert len(trajectory.steps) == 1


async def test_a_judge_that_fails_is_not_a_reward_of_zero() -> None:
    env = TwoPages(verdict_error=EpisodeFailed(Failure(FailureCode("judge_down", FailureKind.JUDGE))))
    trajectory = await run(env, Replies([EXIT]))
    assert trajectory.outcome is None
    assert trajectory.failure is not None
    assert trajectory.failure.kind is FailureKind.JUDGE


@pytest.mark.parametrize(
    ("settings", "env", "policy", "code", "kind"),
    [
        (replace(SETTINGS, step_deadline_s=0.02), TwoPages(step_delay_s=5), Replies([CLICK]), "step_timeout", "infra"),
        (SETTINGS, TwoPages(), Replies([CLICK], delay_s=5), "deadline", "policy"),
        (
            replace(SETTINGS, episode_deadline_s=0.05),
            TwoPages(step_delay_s=0.03),
            Replies([BACK] * 9),
            "episode_deadline",
            "infra",
        ),
    ],
)
async def test_every_wait_ends(settings: RolloutSettings, env: TwoPages, policy: Replies, code: str, kind: str) -> None:
    trajectory = await asyncio.wait_for(run(env, policy, settings=settings, policy_s=0.5), 2)
    assert trajectory.failure is not None
    assert (trajectory.failure.code.name, trajectory.failure.kind) == (code, kind)


async def test_errors_that_nobody_typed_are_not_hidden() -> None:
    def bug(action: Action) -> None:
        raise TimeoutError("a bug's own time-out, not our deadline")

    with pytest.raises(TimeoutError, match="bug"):
        await run(TwoPages(on_step=bug), Replies([CLICK]))


async def test_an_instruction_that_does_not_fit_is_the_tasks_failure() -> None:
    trajectory = await run(TwoPages(), Replies([CLICK]), tokens=10)
    assert trajectory.failure is not None
    assert (trajectory.failure.kind, trajectory.failure.code.name) == (FailureKind.TASK, "prompt_too_long")


async def test_an_agent_that_fills_its_own_context_is_judged_where_it_stands() -> None:
    env = TwoPages()
    trajectory = await run(env, Replies(["x" * 300, CLICK]), tokens=250)
    assert (trajectory.termination, trajectory.outcome, env.judged) == (Termination.MAX_STEPS, 0.0, [None])


async def test_sampling_seeds_depend_on_seed_episode_and_step_only() -> None:
    def seeds(policy: Replies) -> list[int]:
        return [sampling.seed for _, sampling, _ in policy.asked]

    one, again, other = Replies([CLICK, EXIT]), Replies([CLICK, EXIT]), Replies([CLICK, EXIT])
    await asyncio.gather(run(TwoPages(), one), run(TwoPages(step_delay_s=0.01), again))
    await run(TwoPages(), other, replace(SPEC, episode_id="e2"))
    assert seeds(one) == seeds(again)
    assert len({*seeds(one), *seeds(other)}) == 4
    assert all(episode == "e1" for _, _, episode in one.asked)


async def test_screenshots_are_kept_on_demand_only() -> None:
    saved: list[tuple[str, int, bytes]] = []

    def save(episode_id: str, index: int, png: bytes) -> str:
        saved.append((episode_id, index, png))
        return f"{episode_id}/{index}.png"

    async def steps(spec: EpisodeSpec) -> tuple[Step, ...]:
        agent = PolicyAgent(Replies([CLICK, EXIT]), PlainFormat(), CharacterTokenizer(), spec)  # type: ignore[arg-type]
        return (await play(TwoPages(), agent, spec, SETTINGS, save_screenshot=save)).trajectory.steps

    assert [s.screenshot for s in await steps(SPEC)] == [None, None]
    assert [s.screenshot for s in await steps(replace(SPEC, screenshots=True))] == ["e1/0.png", "e1/1.png"]
    assert saved == [("e1", 0, b"png"), ("e1", 1, b"png")]


async def demonstrated(intents: list[Intent], env: Environment | None = None) -> Trajectory:
    def expert() -> Generator[Intent, Observation, None]:
        for intent in intents:
            _ = yield intent

    spec = replace(SPEC, source=Source.DEMONSTRATION)
    agent = ScriptedAgent(expert(), PlainFormat(), CharacterTokenizer(), spec)  # type: ignore[arg-type]
    return (await play(env or TwoPages(), agent, spec, SETTINGS)).trajectory


async def test_a_demonstration_records_the_tokens_that_cloning_trains_on() -> None:
    trajectory = await demonstrated([Intent("click", "Lamp"), Intent("exit", argument="done")])
    assert (trajectory.outcome, trajectory.source) == (1.0, Source.DEMONSTRATION)
    first = trajectory.steps[0]
    assert first.action_text == '# Element: Lamp\ndo(action="Click", element="0")'
    assert first.action_ids.tolist() == [*map(ord, first.action_text), 0]
    assert (first.policy_version, first.logprobs.tolist()) == (NO_POLICY, [0.0] * len(first.action_ids))
    assert "Lamp" in "".join(map(chr, first.prompt_ids))


@pytest.mark.parametrize(
    ("intents", "code"),
    [([Intent("click", "Sofa")], "demonstrator_lost"), ([Intent("click", "Lamp")], "demonstrator_ended")],
)
async def test_a_demonstrator_that_is_lost_is_the_tasks_failure(intents: list[Intent], code: str) -> None:
    trajectory = await demonstrated(intents)
    assert trajectory.outcome is None
    assert trajectory.failure is not None
    assert (trajectory.failure.kind, trajectory.failure.code.name) == (FailureKind.TASK, code)


@pytest.mark.parametrize("intents", [[Intent("click", "Sofa")], [Intent("click", "Lamp")]])
async def test_a_demonstrator_is_not_blamed_for_a_site_that_is_gone(intents: list[Intent]) -> None:
    gone = EpisodeFailed(Failure(codes.SITE_SESSION_LOST, "the sites' server was restarted"))
    trajectory = await demonstrated(intents, TwoPages(verdict_error=gone))
    assert trajectory.failure == gone.failure


async def test_an_expert_solves_a_real_task_and_leaves_what_cloning_needs(tmp_path: Path) -> None:
    task = task_set(0, ("shop",), "train", 1)[0]
    spec = EpisodeSpec("d0", task, Source.DEMONSTRATION, phase=0, seed=1)
    tokenizer = TextTokenizer.load(train_tokenizer([CLICK, EXIT, task.intent] * 8, 600, tmp_path))
    env = BrowserlessEnvironment(create_app(0))
    trajectory = await record_demonstration(env, get_format("waymark"), tokenizer, spec, SETTINGS)
    assert (trajectory.outcome, trajectory.termination) == (1.0, Termination.EXIT)
    assert len(trajectory.steps) == task.horizon
    assert trajectory.final_milestones == (True,) * 4
    for step in trajectory.steps:
        assert step.action_ids[-1] == tokenizer.stop_ids[0]
        assert tokenizer.decode(step.action_ids[:-1].tolist()) == step.action_text
        assert task.intent in tokenizer.decode(step.prompt_ids.tolist())


THINKING = get_format("waymark", thinking=True)


def thought(words: str, answer: str) -> str:
    return f"<think>{words}</think><answer>{answer}</answer>"


async def thought_about(replies: list[str]) -> tuple[Trajectory, Replies, TwoPages]:
    """What a policy that thinks plays, with what it was asked and what was done."""
    env, policy, limits = TwoPages(), Replies(replies), PolicySettings(max_prompt_tokens=4000)
    trajectory = await run_episode(env, policy, THINKING, CharacterTokenizer(), SPEC, SETTINGS, limits)
    return trajectory, policy, env


async def test_a_thought_is_kept_in_the_ids_and_in_the_context_and_only_the_answer_is_the_action() -> None:
    replies = [thought(f"not {EXIT} but the lamp <answer>{BACK}</answer>", CLICK), thought("done", EXIT)]
    trajectory, policy, env = await thought_about(replies)
    assert [action.kind for action in env.actions] == ["click"]
    assert [step.action_text for step in trajectory.steps] == [CLICK, EXIT]
    assert ["".join(map(chr, step.action_ids[:-1])) for step in trajectory.steps] == replies
    assert ["".join(map(chr, step.prompt_ids)) for step in trajectory.steps] == [asked for asked, *_ in policy.asked]
    assert f"\n{replies[0]}\0" in policy.asked[1][0], "the whole reply stands in the next prompt, by its ids"
    assert (trajectory.success, [step.parse_error for step in trajectory.steps]) == (True, [None, None])


@pytest.mark.parametrize(
    "reply", [CLICK, f"<think>x<answer>{CLICK}</answer>", f"{thought('x', CLICK)} and", "<think>x"]
)
async def test_a_reply_without_its_form_costs_a_step_is_told_and_reads_as_no_action(reply: str) -> None:
    trajectory, policy, env = await thought_about([reply, thought("so", EXIT)])
    first, second = trajectory.steps
    assert env.actions == []
    assert (first.action_text, first.element) == ("", None)
    assert "a reply is <think>" in str(first.parse_error)
    assert second.feedback == first.parse_error
    assert f"! {first.parse_error}" in policy.asked[1][0]
    assert f"\n{reply}\0" in policy.asked[1][0]
    assert action_of(first) == Acted(""), "readers of records see nothing of what stood in the thought"


async def test_an_expert_that_thinks_solves_the_same_task_with_its_remarks_in_the_thought(tmp_path: Path) -> None:
    task = task_set(0, ("shop",), "train", 1)[0]
    spec = EpisodeSpec("d0", task, Source.DEMONSTRATION, phase=0, seed=1)
    tokenizer = TextTokenizer.load(train_tokenizer([CLICK, EXIT, task.intent] * 8, 600, tmp_path))
    app, limits = create_app(0), PolicySettings(max_prompt_tokens=3000)
    thinking, plain = [
        await record_demonstration(BrowserlessEnvironment(app), written, tokenizer, spec, SETTINGS, limits)
        for written in (THINKING, get_format("waymark"))
    ]
    assert (thinking.outcome, plain.outcome) == (1.0, 1.0)
    remarks = 0
    for step, same in zip(thinking.steps, plain.steps, strict=True):
        said = tokenizer.decode(step.action_ids[:-1].tolist())
        *above, call = same.action_text.split("\n")
        assert said == "\n".join(["<think>", *above, "</think>", "<answer>", call, "</answer>"])
        assert (step.action_text, step.element, step.milestones) == (call, same.element, same.milestones)
        remarks += len(above)
    assert remarks > 0
    whole = [step.action_ids.tolist() for step in thinking.steps]
    last = thinking.steps[-1].prompt_ids.tolist()
    for ids in whole[:-1]:
        assert any(last[i : i + len(ids)] == ids for i in range(len(last))), "thoughts stay in the context"


async def test_demonstrations_in_a_format_with_the_milestone_state_show_it_as_a_policy_will_see_it(
    tmp_path: Path,
) -> None:
    task = task_set(0, ("shop",), "train", 1)[0]
    spec = EpisodeSpec("d0", task, Source.DEMONSTRATION, phase=0, seed=1)
    tokenizer = TextTokenizer.load(train_tokenizer([CLICK, EXIT, task.intent] * 8, 600, tmp_path))
    app, limits = create_app(0), PolicySettings(max_prompt_tokens=3000)
    with_state, without = [
        await record_demonstration(BrowserlessEnvironment(app), get_format(name), tokenizer, spec, ENDED, limits)
        for name in ("waymark_milestones", "waymark")
    ]
    assert with_state.outcome == 1.0
    assert len({step.milestones for step in with_state.steps}) > 1
    assert with_state.final_state is not None
    assert without.final_state is not None
    assert tokenizer.decode(without.final_state.prompt_ids.tolist()).count("exit(") == 1
    ended = tokenizer.decode(with_state.final_state.prompt_ids.tolist())
    done = [f"+ {milestone.description}" for milestone in task.milestones]
    assert ended.endswith("\n".join(["Milestones:", *done, "Action:", ""])), "the milestones after the last action"
    for step, plain in zip(with_state.steps, without.steps, strict=True):
        bare = tokenizer.decode(plain.prompt_ids.tolist()).removesuffix("\nAction:\n")
        following = step.milestones.index(False) if False in step.milestones else len(step.milestones)
        marks = ["+" if done else ">" if i == following else "-" for i, done in enumerate(step.milestones)]
        state = [f"{mark} {milestone.description}" for mark, milestone in zip(marks, task.milestones, strict=True)]
        said = tokenizer.decode(step.prompt_ids.tolist())
        assert said == "\n".join([bare, "Milestones:", *state, "Action:", ""])
        assert (step.action_ids == plain.action_ids).all()
