"""A phase of MiRA as a plain loop over Hugging Face models: what the learner is measured against.

Owns the loop: batches padded on the right with an attention mask, rows in the order drawn, logits of every token in
float32. Data, batches, credit, losses and optimiser are the learner's own, so that both do the same work and end with
the same numbers. ``every_logit`` False applies the output layer to actions' tokens alone.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from transformers import AutoModelForCausalLM

from learner.algorithms import resolve
from learner.batching import Indices, Sample, epoch_batches
from learner.credit import assign_credit
from learner.critic_kinds import CRITICS
from learner.critics import Critic
from learner.data_choices import MASKS
from learner.dataset import decisions, episode_numbers, per_trajectory, states, with_verdict
from learner.language_model import LanguageModel
from learner.losses import squared_regression
from learner.optimiser import adamw
from learner.phase_batch import PhaseBatch
from learner.policy_terms import PolicyTerms
from learner.settings import LearnerSettings
from policy.adapters import AdapterShape, attach_adapter, linear_modules
from policy.models import load_causal_lm
from records.episodes import FloatArray, Trajectory

Numbers = dict[str, float]


@dataclass(frozen=True)
class Padded:
    """B samples of up to L tokens: ids and mask (B, L), and the actions' targets (M,) with the places before them."""

    input_ids: Tensor
    attention_mask: Tensor
    rows: Tensor
    columns: Tensor
    targets: Tensor
    last_prompt: Tensor


class PlainLearner:
    """An actor and MiRA's two critics; ``rows`` samples go through a model at once."""

    def __init__(self, settings: LearnerSettings, model_dir: str | Path, rows: int, every_logit: bool = True) -> None:
        torch.set_num_threads(settings.threads)
        self.settings, self.rows, self.every_logit = settings, rows, every_logit
        self.device = torch.device(settings.device)
        self.actor = AutoModelForCausalLM.from_pretrained(str(model_dir), dtype=torch.float32).to(self.device).eval()
        self.heads: dict[str, nn.Module] = {}
        self.backbones: dict[str, nn.Module] = {}
        for name, kind in CRITICS.items():
            # The same head as the learner's critic has, on a backbone with transformers' own attention.
            of_learner = Critic.from_actor(LanguageModel(copy.deepcopy(self.actor)), settings.seed + kind.number - 1)
            self.heads[name], self.backbones[name] = of_learner.head, copy.deepcopy(self.actor.base_model)

    def phase(self, trajectories: Sequence[Trajectory], phase: int) -> Numbers:
        """Score, train both critics and the actor; return the last epochs' losses and mean gradient norms."""
        algorithm = resolve(self.settings)
        batch = PhaseBatch.of(trajectories, [], phase)
        samples = decisions(batch.trajectories)
        numbers: Numbers = {"score": float(sum(score.sum() for score in self.score(samples)))}
        for name in CRITICS:
            numbers |= self._train_critic(name, batch.trajectories, phase)
        batch = batch.with_answers({name: self.ask(name, batch.trajectories) for name in CRITICS})
        chosen = np.flatnonzero(MASKS[algorithm.data](batch, self.settings))
        advantages = assign_credit(batch, algorithm, self.settings).at(chosen).advantages.steps
        return numbers | self._train_actor([samples[i] for i in chosen], episode_numbers(batch.trajectories)[chosen],
                                           advantages, phase)  # fmt: skip

    @torch.no_grad()
    def score(self, samples: Sequence[Sample]) -> list[FloatArray]:
        """Return the log-probabilities (A,) of each sample's action."""
        scores: list[FloatArray] = []
        for part in self._parts(np.arange(len(samples))):
            tokens, _ = self._logprobs([samples[i] for i in part])
            ends = np.cumsum([len(samples[i].action_ids) for i in part])
            scores += np.split(tokens.cpu().numpy(), ends[:-1])
        return scores

    @torch.no_grad()
    def ask(self, critic: str, trajectories: Sequence[Trajectory]) -> list[FloatArray]:
        """Return the critic's answers (T,) for each trajectory."""
        samples = states(trajectories)
        parts = [self._critic(critic, [samples[i] for i in part]) for part in self._parts(np.arange(len(samples)))]
        return per_trajectory(torch.sigmoid(torch.cat(parts)).cpu().numpy(), trajectories)

    def _train_critic(self, name: str, trajectories: Sequence[Trajectory], phase: int) -> Numbers:
        kind, settings = CRITICS[name], self.settings
        own = kind.settings(settings)
        data = [t for t in with_verdict(trajectories) if kind.learns_from(t, settings)]
        samples = states(data)
        targets = torch.from_numpy(np.asarray(kind.targets(data, settings), dtype=np.float32)).to(self.device)
        model = nn.ModuleList([self.backbones[name], self.heads[name]])
        optimiser = adamw(model, own.learning_rate, own.weight_decay)
        generator = np.random.default_rng([settings.seed, phase, kind.number])
        losses, norms = [], []
        for _ in range(own.epochs):
            losses.clear()
            for chosen in epoch_batches(episode_numbers(data), own.batch_steps, generator, settings.shuffle):
                optimiser.zero_grad(set_to_none=True)
                total = 0.0
                for part in self._parts(chosen):
                    logits = self._critic(name, [samples[i] for i in part])
                    loss = kind.loss(logits, targets[part]).sum() / len(chosen)
                    loss.backward()
                    total += float(loss.detach())
                norms.append(float(nn.utils.clip_grad_norm_(model.parameters(), own.max_grad_norm)))
                optimiser.step()
                losses.append(total * len(chosen))
        return {f"{name} loss": sum(losses) / len(samples), f"{name} gradient": float(np.mean(norms))}

    def _train_actor(self, samples: Sequence[Sample], episodes: Indices, advantages: FloatArray, phase: int) -> Numbers:
        own, settings = self.settings.actor, self.settings
        scores = [float(score.sum(dtype=np.float64)) for score in self.score(samples)]
        reference = torch.tensor(scores, device=self.device)
        gains = torch.from_numpy(np.asarray(advantages, dtype=np.float32)).to(self.device)
        optimiser = adamw(self.actor, own.learning_rate, own.weight_decay)
        generator = np.random.default_rng([settings.seed, phase, 3])
        losses, norms = [], []
        for _ in range(own.epochs):
            for chosen in epoch_batches(episodes, own.batch_steps, generator, settings.shuffle):
                optimiser.zero_grad(set_to_none=True)
                total = 0.0
                for part in self._parts(chosen):
                    tokens, rows = self._logprobs([samples[i] for i in part])
                    actions = torch.zeros(len(part), device=self.device).index_add(0, rows, tokens)
                    one = torch.ones(len(part), device=self.device)
                    terms = PolicyTerms(actions, reference[part], gains[part], one, own.beta, "sum")
                    loss = squared_regression(terms).sum() / len(chosen)
                    loss.backward()
                    total += float(loss.detach())
                norms.append(float(nn.utils.clip_grad_norm_(self.actor.parameters(), own.max_grad_norm)))
                optimiser.step()
                losses.append(total)
        if not all(map(math.isfinite, norms)):
            raise FloatingPointError("the plain loop's gradient is not finite")
        last = losses[-(len(losses) // own.epochs) :]
        return {"actor loss": float(np.mean(last)), "actor gradient": float(np.mean(norms))}

    def _parts(self, chosen: Indices) -> Iterator[Indices]:
        for at in range(0, len(chosen), self.rows):
            yield chosen[at : at + self.rows]

    def _logprobs(self, samples: Sequence[Sample]) -> tuple[Tensor, Tensor]:
        """Return (M,) log-probabilities of action tokens, and their samples' rows."""
        batch = pad(samples, self.device)
        if self.every_logit:
            logits = self.actor(batch.input_ids, attention_mask=batch.attention_mask, use_cache=False).logits.float()
            logprobs = torch.log_softmax(logits, dim=-1)[batch.rows, batch.columns]
        else:
            base = self.actor.base_model(batch.input_ids, attention_mask=batch.attention_mask, use_cache=False)
            hidden = base.last_hidden_state[batch.rows, batch.columns]
            logprobs = torch.log_softmax(self.actor.get_output_embeddings()(hidden).float(), dim=-1)
        return logprobs.gather(1, batch.targets[:, None]).squeeze(1), batch.rows

    def _critic(self, name: str, samples: Sequence[Sample]) -> Tensor:
        batch = pad(samples, self.device)
        output = self.backbones[name](batch.input_ids, attention_mask=batch.attention_mask, use_cache=False)
        read = output.last_hidden_state[torch.arange(len(samples), device=self.device), batch.last_prompt]
        logits: Tensor = self.heads[name](read.float()).squeeze(-1)
        return logits.float()


class PlainAdapters(PlainLearner):
    """The same with LoRA adapters by peft on one frozen backbone, switched by hand, and its own checkpointing."""

    def __init__(self, settings: LearnerSettings, model_dir: str | Path, rows: int) -> None:
        torch.set_num_threads(settings.threads)
        self.settings, self.rows, self.every_logit = settings, rows, True
        self.device, own = torch.device(settings.device), settings.adapters
        self.actor = load_causal_lm(model_dir, dtype=own.backbone_dtype, device=settings.device)
        self.actor.train()  # or transformers keeps every activation; there is no dropout
        self.actor.gradient_checkpointing_enable()
        self._modules = linear_modules(self.actor, own.layers, own.modules)
        width = int(self.actor.get_output_embeddings().weight.shape[1])
        self.heads, self.backbones = {}, dict.fromkeys(CRITICS, self.actor.base_model)
        for name in ("actor", *CRITICS):
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(settings.seed)  # as the learner draws them
                attach_adapter(self.actor, AdapterShape(own.rank, own.alpha, self._modules), name)
        for name, kind in CRITICS.items():
            self.heads[name] = Critic(nn.Module(), width, settings.seed + kind.number - 1).head.to(self.device)

    def score(self, samples: Sequence[Sample]) -> list[FloatArray]:
        """See ``PlainLearner``."""
        self._activate("actor")
        return super().score(samples)

    def ask(self, critic: str, trajectories: Sequence[Trajectory]) -> list[FloatArray]:
        """See ``PlainLearner``."""
        self._activate(critic)
        return super().ask(critic, trajectories)

    def _train_critic(self, name: str, trajectories: Sequence[Trajectory], phase: int) -> Numbers:
        self._activate(name)
        return super()._train_critic(name, trajectories, phase)

    def _activate(self, name: str) -> None:
        for module in self._modules:
            self.actor.get_submodule(module).set_adapter(name)


def pad(samples: Sequence[Sample], device: torch.device | str = "cpu") -> Padded:
    """Pad ``samples`` on the right."""
    width = max(sample.length for sample in samples)
    ids = np.zeros((len(samples), width), dtype=np.int64)
    mask = np.zeros_like(ids)
    rows, columns, targets = [], [], []
    for row, sample in enumerate(samples):
        ids[row, : sample.length] = sample.read_ids
        mask[row, : sample.length] = 1
        start, count = len(sample.prompt_ids) - 1, len(sample.action_ids)
        rows.append(np.full(count, row))
        columns.append(np.arange(start, start + count))
        targets.append(sample.action_ids)
    flat = [torch.from_numpy(np.concatenate(parts).astype(np.int64)) for parts in (rows, columns, targets)]
    last = torch.tensor([len(sample.prompt_ids) - 1 for sample in samples])
    parts = [torch.from_numpy(ids), torch.from_numpy(mask), *flat, last]
    return Padded(*(part.to(device) for part in parts))
