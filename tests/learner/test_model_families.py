"""Models of the families that users bring: loaded, asked in their dialogue, trained, published, resumed, exported."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, PreTrainedModel

from cluster.run_folder.named_model import copy_model
from cluster.run_folder.policy_folder import require_unchanged
from learner.settings import ActorSettings, CriticSettings, LearnerSettings
from learner.trainer import Learner
from policy.client import Sampling
from policy.engine import GenerationEngine, GenerationRequest, GenerationResult
from policy.formats import get_format
from policy.models import load_causal_lm
from policy.prompts import PastAction
from policy.settings import PolicySettings
from policy.tokenizer import TextTokenizer
from policy.weights import put_weights, read_weights
from records.episodes import Trajectory
from tests.learner.phases import run_phase
from tests.model_families import EXPERTS, FAMILIES, SEEING, Family, save

CRITIC = CriticSettings(learning_rate=1e-3, epochs=1, batch_steps=8)
SETTINGS = LearnerSettings(
    actor=ActorSettings(learning_rate=1e-3, epochs=1, batch_steps=8), value=CRITIC, potential=CRITIC
)
PAGE = "@ Lamps\nlink Home 0\nsearchbox Search 1\nbutton Add to cart 42\n" + "link Red desk lamp 2\n" * 12
CHAT = get_format("chat")


@dataclass(frozen=True)
class Policy:
    """A run's policy folder, and what is served of it."""

    folder: Path
    text: TextTokenizer
    served: PreTrainedModel

    @property
    def engine(self) -> GenerationEngine:
        return GenerationEngine(self.served, self.text.stop_ids)

    def prompt(self, episode: int, past: list[PastAction]) -> list[int]:
        """A prompt of a dialogue that is longer than the window of layers with one."""
        built = CHAT.build(self.text, intent=f"Buy lamp {episode}", history=past, observation=PAGE, feedback=None,
                           max_prompt_tokens=1500)  # fmt: skip
        ids: list[int] = built.ids.tolist()
        return ids

    def replies(self, prompts: list[list[int]]) -> list[GenerationResult]:
        """What the served model says to each prompt."""
        engine, done = self.engine, {}
        for number, ids in enumerate(prompts):
            engine.submit(GenerationRequest(number, tuple(ids), Sampling(max_new_tokens=6, seed=number)))
        while engine.running or engine.waiting:
            done |= {result.request_id: result for result in engine.step()}
        return [done[number] for number in range(len(prompts))]


@pytest.fixture(scope="module", params=[*FAMILIES.values(), SEEING, EXPERTS], ids=lambda family: family.name)
def policy(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Policy:
    """The model of a family, taken as a run takes it."""
    family: Family = request.param
    out = tmp_path_factory.mktemp("run")
    named = save(family, out / "named")
    copy_model(PolicySettings(model=str(named), prompt_format="chat"), {}, out / "policy")
    require_unchanged(out / "policy")
    return Policy(out / "policy", TextTokenizer.load(out / "policy"), load_causal_lm(out / "policy"))


@pytest.fixture
def episodes(policy: Policy, trajectory: Callable[..., Trajectory]) -> list[Trajectory]:
    """Episodes of two steps that the model played; every other one is a success."""
    first = policy.replies([policy.prompt(i, []) for i in range(4)])
    prompts = [policy.prompt(i, [PastAction(reply.action_ids)]) for i, reply in enumerate(first)]
    second = policy.replies(prompts)
    return [
        trajectory(
            [(policy.prompt(i, []), first[i].action_ids), (prompts[i], second[i].action_ids)],
            outcome=float(i % 2),
            episode_id=f"e{i}",
            reached=[0, 2, 4] if i % 2 else [0, 0, 0],
        )
        for i in range(4)
    ]


def test_the_learner_gives_the_log_probabilities_of_the_engine(policy: Policy) -> None:
    learner = Learner(SETTINGS, policy.folder)
    prompts = [policy.prompt(i, []) for i in range(3)]
    for ids, reply in zip(prompts, policy.replies(prompts), strict=True):
        found = learner.probe(np.array(ids), np.array(reply.action_ids))
        np.testing.assert_allclose(found, reply.logprobs, atol=2e-5)


def test_a_reply_ends_where_the_model_ends_its_turn(policy: Policy) -> None:
    """Of two models that say the same the one whose likeliest token is the end of its turn stops there."""
    end, prompt = policy.text.stop_ids[0], policy.prompt(0, [])
    model = load_causal_lm(policy.folder)
    head = model.get_output_embeddings()
    with torch.no_grad():
        bias = torch.zeros(head.weight.shape[0])
        bias[end] = 100.0
        head.bias = torch.nn.Parameter(bias)
    engine = GenerationEngine(model, policy.text.stop_ids)
    engine.submit(GenerationRequest(0, tuple(prompt), Sampling(max_new_tokens=6, temperature=0.0)))
    (reply,) = engine.step()
    assert (reply.action_ids, reply.finish_reason) == ((end,), "stop")


def test_a_phase_trains_and_its_weights_are_what_a_server_then_has(
    policy: Policy, episodes: list[Trajectory], tmp_path: Path
) -> None:
    learner = Learner(SETTINGS, policy.folder)
    before = {name: tensor.clone() for name, tensor in learner.actor.model.state_dict().items()}
    run_phase(learner, episodes, [], 1)
    after = learner.actor.model.state_dict()
    assert all(bool(torch.isfinite(tensor).all()) for tensor in after.values())
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    read = {
        name for name, _ in learner.actor.model.named_parameters() if not ("vision" in name or "multi_modal" in name)
    }
    assert read <= changed

    server = load_causal_lm(policy.folder)
    put_weights(server, read_weights(learner.publish(tmp_path, 1)))
    served = server.state_dict()
    assert served.keys() == after.keys()
    assert all(torch.equal(served[name], after[name]) for name in after)
    step = episodes[0].steps[1]
    scores = GenerationEngine(server, policy.text.stop_ids).score(step.prompt_ids.tolist(), step.action_ids.tolist())
    np.testing.assert_allclose(scores, learner.probe(step.prompt_ids, step.action_ids), atol=2e-5)


def test_a_learner_goes_on_where_it_was_stopped(policy: Policy, episodes: list[Trajectory], tmp_path: Path) -> None:
    undisturbed, resumed = Learner(SETTINGS, policy.folder), Learner(SETTINGS, policy.folder)
    run_phase(undisturbed, episodes, [], 1)
    undisturbed.save(tmp_path / "checkpoint")
    resumed.load(tmp_path / "checkpoint")
    for learner in (undisturbed, resumed):
        run_phase(learner, episodes, [], 2)
    expected = undisturbed.actor.model.state_dict()
    assert all(torch.equal(tensor, expected[name]) for name, tensor in resumed.actor.model.state_dict().items())


def test_what_is_exported_is_such_a_model_again(policy: Policy, tmp_path: Path) -> None:
    folder = Learner(SETTINGS, policy.folder).export(tmp_path / "trained")
    exported = TextTokenizer.load(folder)
    assert (exported.digest, exported.chat, exported.stop_ids) == (
        policy.text.digest, policy.text.chat, policy.text.stop_ids,
    )  # fmt: skip
    other = AutoModelForCausalLM.from_pretrained(folder)
    expected = policy.served.state_dict()
    assert all(torch.equal(tensor, expected[name]) for name, tensor in other.state_dict().items())
    assert type(other) is type(policy.served)
