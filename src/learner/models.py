"""Where the learner's models come from: whole models, each a copy of its own, spread over ranks, or adapters.

Owns ``Models`` and its forms. Invariants: a reference or a critic starts from the actor as it is when it is made; a
published file is what the actor's log-probabilities come from; an exported folder holds a whole model in float32.
"""

from __future__ import annotations

import copy
import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from safetensors.torch import save_file

from learner.adapters import Adapted, AdaptedLanguageModel, SharedBackbone
from learner.algorithms import resolve
from learner.critics import Critic
from learner.language_model import LanguageModel, compute_again
from learner.logprobs import check_reading
from learner.ranks import Ranks
from learner.settings import LearnerSettings
from learner.sharding import copy_weights, gather_weights, spread, write_together
from policy.adapters import merge_adapter
from policy.checkpoint_names import other_names
from policy.models import load_causal_lm, save_policy
from policy.published_weights import PublishedWeights
from policy.weights import own_tensors, write_adapter, write_weights

_ACTOR = "actor"
_TOLERANCES = {"float32": 1e-3, "bfloat16": 0.25}
"""How far the learner's reading may be from the model's own, in nats; as ``policy.publication`` grants a server."""


class Models(Protocol):
    """The actor, and what else is made of it; ``backbone`` names what its checkpoints need besides themselves."""

    actor: LanguageModel
    backbone: str

    def reference(self) -> LanguageModel:
        """Return the actor as it is now, to compare with."""
        ...

    def critic(self, name: str, seed: int) -> Critic:
        """Return a critic on the actor's backbone as it is now, its head drawn from ``seed``."""
        ...

    def publish(self, path: Path, version: int) -> PublishedWeights:
        """Write what servers need of the actor to the file ``path``."""
        ...

    def export(self, path: str | Path) -> Path:
        """Write the actor as a policy folder."""
        ...


def models_of(settings: LearnerSettings, model_dir: str | Path, ranks: Ranks) -> Models:
    """Return the models that the settings ask for, from the policy folder ``model_dir``.

    Raises:
        ValueError: the architecture asks for more than is known here, or has no layer for an adapter.
    """
    if settings.adapters.rank:
        return AdaptedModels(settings, model_dir, ranks)
    return WholeModels(settings, model_dir) if ranks.mesh is None else SpreadModels(settings, model_dir, ranks)


class WholeModels:
    """Every model whole, in float32."""

    backbone = ""

    def __init__(self, settings: LearnerSettings, model_dir: str | Path) -> None:
        self.actor: LanguageModel = LanguageModel(load_causal_lm(model_dir, device=settings.device))
        check_reading(self.actor)
        if settings.recompute:
            compute_again(self.actor.model)
        self._model_dir = model_dir

    def reference(self) -> LanguageModel:
        """Return a copy of the actor."""
        return copy.deepcopy(self.actor)

    def critic(self, name: str, seed: int) -> Critic:
        """Return a critic on a copy of the actor's backbone."""
        return Critic.from_actor(self.actor, seed)

    def publish(self, path: Path, version: int) -> PublishedWeights:
        """Write all of the actor's weights."""
        own = own_tensors(self.actor.model)
        return write_weights(own, path, version, views=other_names(self.actor.model, own))

    def export(self, path: str | Path) -> Path:
        """Write the actor with the tokenizer that it started with."""
        return save_policy(self.actor.model, self._model_dir, path)


class SpreadModels:
    """Every model whole, in float32, its parameters spread over the ranks.

    What is spread cannot be copied, so reference and critics are made of the model before it is, once, and are brought
    to the actor's weights whenever they are asked for.
    """

    backbone = ""

    def __init__(self, settings: LearnerSettings, model_dir: str | Path, ranks: Ranks) -> None:
        self._model_dir, self._ranks = model_dir, ranks
        self.actor, self._reference, self._critics = ranks.in_turn(lambda: self._made(settings))

    def _made(self, settings: LearnerSettings) -> tuple[LanguageModel, LanguageModel | None, dict[str, Critic]]:
        whole, algorithm = WholeModels(replace(settings, device="cpu"), self._model_dir), resolve(settings)
        critics = {}
        for name in (part for critic in algorithm.critics for part in settings.critic_parts(critic)):
            critics[name] = spread(whole.critic(name, seed=0), self._ranks, settings.precision)
        reference = None
        if algorithm.reference == "warm_start":
            reference = spread(whole.reference(), self._ranks, settings.precision)
        return spread(whole.actor, self._ranks, settings.precision), reference, critics

    def reference(self) -> LanguageModel:
        """Return the one reference, with the actor's weights.

        Raises:
            ValueError: the settings ask for none.
        """
        if self._reference is None:
            raise ValueError("learner.reference is not warm_start: there is no reference to keep")
        copy_weights(self.actor, self._reference)
        return self._reference

    def critic(self, name: str, seed: int) -> Critic:
        """Return the one critic of this name, on the actor's weights and with a fresh head."""
        self._critics[name].start_again(self.actor, seed)
        return self._critics[name]

    def publish(self, path: Path, version: int) -> PublishedWeights:
        """Write all of the actor's weights, by rank 0."""
        own = own_tensors(self.actor.model)
        return write_together(own, path, version, self._ranks, other_names(self.actor.model, own))

    def export(self, path: str | Path) -> Path:
        """Write the actor with the tokenizer that it started with, by rank 0."""
        whole = load_causal_lm(self._model_dir) if self._ranks.first else None
        gather_weights(self.actor.model, whole, self._ranks)
        return Path(path) if whole is None else save_policy(whole, self._model_dir, path)


class AdaptedModels:
    """One frozen backbone; the actor, the reference and each critic are adapters on it.

    Every rank has all of them, with the same first weights by the same seeds; their gradients are shared.
    """

    def __init__(self, settings: LearnerSettings, model_dir: str | Path, ranks: Ranks) -> None:
        own = settings.adapters
        model = ranks.in_turn(lambda: load_causal_lm(model_dir, dtype=own.backbone_dtype, device=settings.device))
        check_reading(LanguageModel(model), _TOLERANCES[own.backbone_dtype])
        if settings.recompute:
            compute_again(model)
        self._shared = SharedBackbone(model, own, settings.seed, autocast=settings.precision == "bfloat16")
        self.actor: LanguageModel = AdaptedLanguageModel(self._shared, _ACTOR)
        self.backbone = _digest(Path(model_dir))
        self._model_dir, self._ranks = model_dir, ranks

    def reference(self) -> LanguageModel:
        """Return the actor as an adapter that nobody trains."""
        return AdaptedLanguageModel(self._shared, "reference", like=_ACTOR)

    def critic(self, name: str, seed: int) -> Critic:
        """Return a critic whose adapter is like the actor's."""
        width = int(self._shared.model.get_output_embeddings().weight.shape[1])
        adapted = Adapted(self._shared, name, self._shared.states, like=_ACTOR)
        return Critic(adapted, width, seed).to(self.actor.device).eval()

    def publish(self, path: Path, version: int) -> PublishedWeights:
        """Write the actor's adapter, by rank 0."""
        checksum = write_adapter(self._shared.content(_ACTOR), path, version).checksum if self._ranks.first else ""
        return PublishedWeights(version, self._ranks.all_gather_text(checksum)[0], str(path))

    def export(self, path: str | Path) -> Path:
        """Write the backbone with the adapter merged in float32, and the adapter itself, as peft reads it, inside.

        Rank 0 writes.
        """
        if not self._ranks.first:
            return Path(path)
        adapter = self._shared.content(_ACTOR).on_host()
        merged = load_causal_lm(self._model_dir)
        merge_adapter(merged, adapter)
        folder = save_policy(merged, self._model_dir, path)
        beside = folder / "adapter"
        beside.mkdir()
        (beside / "adapter_config.json").write_text(adapter.shape.to_json(), encoding="utf-8")
        save_file(dict(adapter.tensors), beside / "adapter_model.safetensors")
        return folder


def _digest(folder: Path) -> str:
    """Return the SHA-256 of what makes the model in ``folder``: its weights and their configuration."""
    digest = hashlib.sha256()
    for file in sorted([*folder.glob("*.safetensors"), folder / "config.json"]):
        with file.open("rb") as stream:
            digest.update(hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()
