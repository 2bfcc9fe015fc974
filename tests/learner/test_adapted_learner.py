"""The learner with adapters on one backbone: it learns, goes on, publishes and exports as with whole models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from learner.batching import collate
from learner.critics import predict
from learner.dataset import decisions, states
from learner.errors import CheckpointError
from learner.language_model import hidden_states
from learner.logprobs import score_samples
from learner.settings import ActorSettings, AdapterSettings, CloneSettings, CriticSettings, LearnerSettings
from learner.trainer import Learner
from policy.engine import GenerationEngine
from policy.models import load_causal_lm
from policy.weights import put_weights, read_weights
from records.episodes import Trajectory
from tests.learner.phases import run_phase
from tests.learner.test_trainer import BAD, GOOD, bandit, logprob
from tests.model_families import FAMILIES, SEEING, Family, save

CRITIC = CriticSettings(learning_rate=3e-3, epochs=2, batch_steps=16, pretrain_learning_rate=3e-3, pretrain_epochs=10)
SETTINGS = LearnerSettings(
    clone=CloneSettings(learning_rate=1e-2, updates=20, batch_steps=8),
    actor=ActorSettings(learning_rate=2e-3, epochs=2, batch_steps=16, beta=0.5),
    value=CRITIC,
    potential=CRITIC,
    micro_batch_tokens=256,
    adapters=AdapterSettings(rank=4, alpha=8.0, backbone_dtype="float32"),
)
HALF = replace(SETTINGS, precision="bfloat16", adapters=replace(SETTINGS.adapters, backbone_dtype="bfloat16"))
Make = Callable[..., Trajectory]


@pytest.fixture(scope="module", params=[*FAMILIES.values(), SEEING], ids=lambda family: family.name)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    family: Family = request.param
    return save(family, tmp_path_factory.mktemp("model") / "named")


def trained(learner: Learner) -> dict[str, torch.Tensor]:
    """Every tensor that training may change."""
    modules = {"actor": learner.actor, **{name: critic.model for name, critic in learner.critics.items()}}
    return {f"{name}.{own}": t.clone() for name, module in modules.items() for own, t in module.state_dict().items()}


def frozen(learner: Learner) -> dict[str, torch.Tensor]:
    return {n: t.clone() for n, t in learner.actor.model.state_dict().items() if "lora_" not in n}


@pytest.mark.parametrize("settings", [SETTINGS, HALF], ids=["float32", "bfloat16"])
def test_cloning_and_phases_learn_and_leave_the_backbone(
    settings: LearnerSettings, folder: Path, trajectory: Make
) -> None:
    learner, data = Learner(settings, folder), bandit(trajectory, 16)
    backbone, losses = frozen(learner), dict[int, float]()
    before = logprob(learner, GOOD) - logprob(learner, BAD)
    for phase in (1, 2, 3):
        metrics = run_phase(learner, data, [], phase_index=phase)
    assert logprob(learner, GOOD) - logprob(learner, BAD) > before + 0.2
    assert metrics.critics["value"].ratings["auc"] is not None
    learner.clone(data, on_update=losses.__setitem__)
    assert min(losses[k] for k in range(16, 21)) < 0.7 * losses[1]
    assert all(torch.equal(tensor, backbone[name]) for name, tensor in frozen(learner).items())
    assert all(bool(torch.isfinite(tensor).all()) for tensor in trained(learner).values())


def test_one_update_is_that_of_a_plain_loop_with_peft(model_dir: Path, trajectory: Make) -> None:
    from peft import PeftModel

    data = bandit(trajectory, 8)
    settings = replace(SETTINGS, clone=replace(SETTINGS.clone, updates=1, batch_steps=16, warmup_share=0.0))
    learner = Learner(settings, model_dir)
    start = Learner(settings, model_dir).export(model_dir.parent / "start") / "adapter"
    model = PeftModel.from_pretrained(load_causal_lm(model_dir), str(start), is_trainable=True)
    optimiser = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-2 * 0.5, weight_decay=0.0)
    total, tokens = torch.zeros(()), 0
    for sample in decisions(data):
        ids = torch.from_numpy(np.concatenate([sample.prompt_ids, sample.action_ids]).astype(np.int64))
        logits = model(input_ids=ids[None]).logits[0, len(sample.prompt_ids) - 1 : -1]
        taken = ids[len(sample.prompt_ids) :]
        total = total - torch.log_softmax(logits, dim=-1).gather(1, taken[:, None]).sum()
        tokens += len(taken)
    (total / tokens).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), settings.clone.max_grad_norm)
    optimiser.step()

    learner.clone(data)
    own = learner.actor.kept.state_dict()
    theirs = {n.replace(".default.", "."): t for n, t in model.state_dict().items() if "lora_" in n}
    assert own.keys() == theirs.keys()
    # AdamW's first step is the sign of the gradient: where that is rounding, the step may be any.
    apart = [float((own[name] - theirs[name]).abs().mean()) for name in own]
    assert max(apart) < 1e-4


def test_a_learner_goes_on_where_it_was_stopped_bit_for_bit(folder: Path, trajectory: Make, tmp_path: Path) -> None:
    settings = replace(HALF, reference="warm_start")
    undisturbed, resumed = Learner(settings, folder), Learner(settings, folder)
    data = bandit(trajectory, 8)
    undisturbed.clone(data)
    run_phase(undisturbed, data, [], 1)
    undisturbed.save(tmp_path / "checkpoint")
    resumed.load(tmp_path / "checkpoint")
    for learner in (undisturbed, resumed):
        run_phase(learner, data, [], 2)
    expected = trained(undisturbed)
    assert all(torch.equal(tensor, expected[name]) for name, tensor in trained(resumed).items())
    assert logprob(resumed, GOOD) == logprob(undisturbed, GOOD)


def test_a_checkpoint_holds_adapters_and_heads_alone(model_dir: Path, tmp_path: Path) -> None:
    learner = Learner(SETTINGS, model_dir)
    folder = learner.save(tmp_path / "checkpoint")
    size = sum(file.stat().st_size for file in folder.iterdir() if file.suffix == ".safetensors")
    assert size < 4 * 1.2 * sum(tensor.numel() for tensor in trained(learner).values()) + 2**14


def test_a_checkpoint_of_another_backbone_or_of_whole_models_is_refused(model_dir: Path, tmp_path: Path) -> None:
    other_dir = tmp_path / "other"
    other = load_causal_lm(model_dir)
    with torch.no_grad():
        other.get_input_embeddings().weight.mul_(1.01)
    other.save_pretrained(other_dir)
    whole = replace(SETTINGS, adapters=AdapterSettings())
    Learner(SETTINGS, other_dir).save(tmp_path / "of_another")
    Learner(whole, model_dir).save(tmp_path / "whole")
    Learner(SETTINGS, model_dir).save(tmp_path / "adapted")
    learner = Learner(SETTINGS, model_dir)
    before = trained(learner)
    for name in ("of_another", "whole"):
        with pytest.raises(CheckpointError, match="made for adapters on the backbone"):
            learner.load(tmp_path / name)
    assert all(torch.equal(tensor, before[name]) for name, tensor in trained(learner).items())
    with pytest.raises(CheckpointError, match="here it is none: whole models"):
        Learner(whole, model_dir).load(tmp_path / "adapted")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_what_is_published_makes_a_server_say_what_the_learner_says(
    dtype: str, folder: Path, trajectory: Make, tmp_path: Path
) -> None:
    settings = replace(SETTINGS, adapters=replace(SETTINGS.adapters, backbone_dtype=dtype))
    learner, server = Learner(settings, folder), load_causal_lm(folder, dtype=dtype)
    gap = 2e-5 if dtype == "float32" else 0.05
    data = bandit(trajectory, 8)
    for version in (1, 2):
        learner.clone(data)
        put_weights(server, read_weights(learner.publish(tmp_path, version)))
        scores = GenerationEngine(server, ()).score([3, 4, 30], GOOD)
        expected = learner.probe(np.array([3, 4, 30]), np.array(GOOD))
        np.testing.assert_allclose(scores, expected, atol=gap)
    assert (tmp_path / "actor-000002.safetensors").stat().st_size < 2**17


def test_a_head_in_bfloat16_adds_no_rounding_of_its_own(folder: Path, trajectory: Make) -> None:
    """What the states say is read as a head of the same weights in float32 would read it, under autocast too."""
    learner = Learner(HALF, folder)
    samples = decisions(bandit(trajectory, 4))
    found = score_samples(learner.actor, samples, learner.compute)
    head = learner.actor.model.get_output_embeddings()
    batch = collate(samples, learner.actor.device)
    with torch.no_grad(), learner.compute.autocast():
        states = learner.actor(lambda model, batch: hidden_states(model.base_model, batch)[batch.at], batch)
    expected = torch.log_softmax(states.float() @ head.weight.float().T, dim=-1).gather(1, batch.targets[:, None])
    np.testing.assert_allclose(np.concatenate(found), expected.squeeze(1).numpy(), atol=1e-5)


def test_what_is_exported_is_a_whole_model_and_beside_it_the_adapter(
    folder: Path, trajectory: Make, tmp_path: Path
) -> None:
    from peft import PeftModel

    learner = Learner(SETTINGS, folder)
    learner.clone(bandit(trajectory, 8))
    exported = learner.export(tmp_path / "trained")
    expected = learner.probe(np.array([3, 4, 30]), np.array(GOOD))
    whole = load_causal_lm(exported)
    by_peft = PeftModel.from_pretrained(load_causal_lm(folder), str(exported / "adapter"))
    for model in (whole, by_peft.get_base_model()):
        scores = GenerationEngine(model, ()).score([3, 4, 30], GOOD)
        np.testing.assert_allclose(scores, expected, atol=2e-5)
    assert type(whole) is type(load_causal_lm(folder))


def test_critics_start_like_the_cloned_actor_with_a_head_that_says_half(model_dir: Path, trajectory: Make) -> None:
    learner, data = Learner(SETTINGS, model_dir), bandit(trajectory, 4)
    learner.clone(data)
    batch = collate(states(data), learner.actor.device)
    for critic in learner.critics.values():
        for (name, own), (other, of_actor) in zip(
            critic.model.backbone.state_dict().items(), learner.actor.kept.state_dict().items(), strict=True
        ):
            assert name == other
            assert torch.equal(own, of_actor)
        assert set(torch.sigmoid(critic.model(batch)).tolist()) == {0.5}


def test_activations_computed_again_give_the_same_update(model_dir: Path, trajectory: Make) -> None:
    learners = [Learner(replace(SETTINGS, recompute=again), model_dir) for again in (False, True)]
    for learner in learners:
        run_phase(learner, bandit(trajectory, 8), [], 1)
    plain, again = (trained(learner) for learner in learners)
    for name, tensor in plain.items():
        torch.testing.assert_close(again[name], tensor)


def test_adapters_in_upper_layers_learn_and_critics_share_what_lies_below(model_dir: Path, trajectory: Make) -> None:
    settings = replace(SETTINGS, adapters=replace(SETTINGS.adapters, layers=1))
    learner, data = Learner(settings, model_dir), bandit(trajectory)
    learner.clone(data)
    before = logprob(learner, GOOD) - logprob(learner, BAD)
    for phase in (1, 2):
        run_phase(learner, data, [], phase_index=phase)
    assert logprob(learner, GOOD) - logprob(learner, BAD) > before + 0.1
    models = [critic.model for critic in learner.critics.values()]
    runs: list[int] = []
    lowest, highest = learner.actor.model.get_decoder().layers
    lowest.mlp.register_forward_hook(lambda *_: runs.append(0))
    highest.mlp.register_forward_hook(lambda *_: runs.append(1))
    together = predict(models, states(data[:2]), learner.compute)
    assert sorted(runs) == [0, 1, 1]
    for model, answers in zip(models, together, strict=True):
        (alone,) = predict([model], states(data[:2]), learner.compute)
        np.testing.assert_array_equal(answers, alone)
