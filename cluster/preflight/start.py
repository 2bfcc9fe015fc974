"""The policy that a run starts from and the devices that it is computed on, looked at before anything is loaded.

Owns ``check_start`` and ``check_devices``. Files are looked for, the weights' index is read and no weights are, and no
GPU is touched.
Imports neither torch nor Ray: a process of its own builds the model where its names are compared.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

from cluster.errors import MissingError, RunError
from cluster.placement import EVERYWHERE, LEARNER, SERVER
from cluster.preflight.machine import Machine
from cluster.recipe.recipe import Recipe
from cluster.run_folder.named_data import misfits, named_report, start_tokenizer
from cluster.run_folder.policy_folder import require_shipped
from learner.algorithms import LOSS_NEEDS, resolve, value_is_chance
from policy.backend import backend_of
from policy.chat_template import chat_marks_of, has_chat_template
from policy.hub import names_folder
from policy.settings import TINY, PolicySettings
from policy.tokenizer import TextTokenizer
from records.checks import Check, Status
from records.durable import open_file, read_text
from records.stores.address import open_store
from records.stores.store import StoreError

_NEEDED = ("config.json", "tokenizer.json", "*.safetensors")
_PICKLED = ("*.bin", "*.pt", "*.pth", "*.ckpt")
_INDEX = "model.safetensors.index.json"
_TOKENS_TO_THINK = 256
"""Fixed: below it the thoughts of a language model are cut short."""
_BUILD_LIMIT_S = 120.0
"""Fixed: importing transformers takes up to 20 s on a busy machine, and a model without numbers a few more."""
_LFS_POINTER = b"version https://git-lfs"


def check_start(recipe: Recipe) -> list[Check]:
    """The policy that the recipe names is there, and it names only one; nothing is looked for where a run makes one."""
    start = _tiny(recipe) if recipe.policy.model == TINY else _named(recipe)
    more = (*_thinking(recipe), *_data(recipe), *_weights_store(recipe.policy))
    return [*_revision(recipe.policy), *start, *_phases(recipe), *_narrowed(recipe), *more]


def check_devices(recipe: Recipe, machine: Machine, roles: Collection[str] = EVERYWHERE) -> list[Check]:
    """The devices that the recipe names for what runs here are on this machine, and Ray is told of GPUs."""
    backend, options = backend_of(recipe.policy)
    servers, resources = backend.processes(options), recipe.run.resources
    devices = [
        ("policy.device", SERVER, recipe.policy.device, "policy.options.gpus", servers.gpus if servers.count else 1.0),
        ("learner.device", LEARNER, recipe.learner.device, "run.resources.learner_gpus", resources.learner_gpus),
    ]
    found = []
    for name, role, device, setting, declared in devices:
        if role in roles and device != "cpu":
            found.append(_device(name, device, machine))
        anyones = device == "cuda" and machine.gpus > 1  # who names one, as cuda:1, has chosen
        if device != "cpu" and not declared and (resources.address or anyones):
            found.append(_undeclared(name, device, setting))
    return found


def _tiny(recipe: Recipe) -> list[Check]:
    """A ``tiny`` has learned something, or is about to."""
    start = recipe.warm_start
    if recipe.policy.dialogue:
        found = f"{recipe.policy.prompt_format}, but tiny has no chat template"
        return [Check("policy.prompt_format", Status.FAIL, found, "choose waymark, or name a model with one")]
    if start.checkpoint and (start.clone != "always" or start.data):
        advice = "name a folder that Waymark exported, or leave it empty to clone"
        there = _folder("warm_start.checkpoint", recipe.checkpoint_path, (*_NEEDED, "checksums.json"), advice)
        if there.status is not Status.OK:
            return [there]
        reads = _reads(recipe.policy, recipe.checkpoint_path, "warm_start.checkpoint")
        return [there, *(_changed(recipe.checkpoint_path) or reads)]
    if start.clone == "never":
        found = "nothing is cloned onto tiny, and no checkpoint is named: its weights would be random"
        return [Check("warm_start.clone", Status.FAIL, found, "choose auto, or name warm_start.checkpoint")]
    return _fits(recipe.policy, recipe.policy.tiny.context_tokens, "policy.tiny.context_tokens")


def _changed(checkpoint: Path) -> list[Check]:
    """The checkpoint's files are those that were exported, or the run would end when it copies them."""
    try:
        require_shipped(checkpoint)
    except MissingError as error:
        found, _, advice = str(error).partition("; ")
        return [Check("warm_start.checkpoint", Status.FAIL, found.removeprefix("warm_start.checkpoint "), advice)]
    return []


def _named(recipe: Recipe) -> list[Check]:
    """The named model is there, is the only start, and learns from demonstrations where the algorithm needs it."""
    checks = [_model(recipe.policy)]
    if names_folder(recipe.policy.model) and checks[0].status is Status.OK:
        checks += [*_reads(recipe.policy, Path(recipe.policy.model), "policy.model"), *_dialogue(recipe.policy)]
        checks += _published_names(recipe, Path(recipe.policy.model))
    if recipe.warm_start.checkpoint:
        found = f"policy.model names {recipe.policy.model} to start from, and this {recipe.warm_start.checkpoint}"
        checks.append(
            Check("warm_start.checkpoint", Status.FAIL, found, "set one of them: this to '', or that to tiny")
        )
    if not recipe.clones and not resolve(recipe.learner).needs_phases:
        found = f"learner.algorithm {recipe.learner.algorithm} ends with cloning, but a named model is taken as it is"
        checks.append(Check("warm_start.clone", Status.WARN, found, "set it to always to clone demonstrations onto it"))
    return checks


def _published_names(recipe: Recipe, folder: Path) -> list[Check]:
    """Servers that know a whole model by the names in its files can be given it under them."""
    backend, _ = backend_of(recipe.policy)
    if recipe.learner.adapters.rank or not backend.names_of_files:
        return []
    name, served = "policy.model", f"policy.backend {recipe.policy.backend}"
    command = [sys.executable, "-m", "policy.checkpoint_names", str(folder)]
    try:
        looked = subprocess.run(command, capture_output=True, text=True, timeout=_BUILD_LIMIT_S)
    except subprocess.TimeoutExpired:
        found = f"whether {served} takes what is trained of {folder} was not seen within {_BUILD_LIMIT_S:g} s"
        return [Check(name, Status.WARN, found, "the first publication tells")]
    if looked.returncode:
        found = f"{folder} cannot be built: {looked.stderr.strip().rpartition(chr(10))[2][:300]}"
        return [Check(name, Status.WARN, found, "look at its config.json; the learner would fail likewise")]
    if misfit := looked.stdout.strip():
        found = f"{served} cannot take what is trained of {folder}: {misfit}"
        advice = "train adapters (learner.adapters.rank), or choose policy.backend torch"
        return [Check(name, Status.FAIL, found, advice)]
    return []


def _phases(recipe: Recipe) -> list[Check]:
    """The algorithm learns from the phases that there are, and has the critic that their curriculum asks."""
    algorithm = resolve(recipe.learner)
    checks = []
    if recipe.run.phases and not algorithm.needs_phases:
        found = f"{recipe.run.phases}, and learner.algorithm {algorithm.name} ends with cloning"
        checks.append(
            Check("run.phases", Status.FAIL, found, "set it to 0, or choose an algorithm that learns from rollouts")
        )
    elif recipe.run.phases and recipe.curriculum.value_band and "value" not in algorithm.critics:
        found = f"true, which asks a value critic, and learner.algorithm {algorithm.name} has none"
        advice = "set it to false, or choose an algorithm with an advantage"
        checks.append(Check("curriculum.value_band", Status.FAIL, found, advice))
    elif recipe.run.phases and not value_is_chance(recipe.learner):
        for name, value, otherwise in _takes_chances(recipe):
            found = (
                f"{value}, which takes V for the chance of success, and V learns a return (learner.value_target "
                f"{recipe.learner.value_target}), which is another number for a long task that is sure to be solved"
            )
            advice = f"set learner.value_target to outcome, or this to {otherwise}"
            checks.append(Check(name, Status.FAIL, found, advice))
    return checks


def _takes_chances(recipe: Recipe) -> list[tuple[str, str, str]]:
    """Return the settings that compare V with a chance of success, what they are, and what they could be instead."""
    band = ("curriculum.value_band", "true", "false")
    data, by_chance = resolve(recipe.learner).data, "value" in resolve(recipe.learner).data_choice.asks
    by_instruction = ("learner.data", data, "rollouts_and_replay")
    return [*([band] if recipe.curriculum.value_band else []), *([by_instruction] if by_chance else [])]


def _narrowed(recipe: Recipe) -> list[Check]:
    """A loss that compares with what the sampler said is given all that the sampler chose from."""
    algorithm, top_p = resolve(recipe.learner), recipe.rollout.top_p
    if top_p == 1 or not recipe.run.phases or not LOSS_NEEDS[algorithm.policy_loss].on_policy:
        return []
    found = f"{top_p:g}, and the log-probabilities that the loss of {algorithm.name} compares with are of all tokens"
    return [Check("rollout.top_p", Status.FAIL, found, "set it to 1, or choose a loss without a ratio")]


def _thinking(recipe: Recipe) -> list[Check]:
    """A policy that is to think has the room for it, and knows how to reply."""
    policy, checks = recipe.policy, []
    if not policy.thinking:
        return []
    if policy.max_new_tokens < _TOKENS_TO_THINK:
        found = f"{policy.max_new_tokens}, of which policy.thinking needs most: a reply that is cut short is no action"
        advice = f"set it to {_TOKENS_TO_THINK} or more; WebAgent-R1 has 1,024"
        checks.append(Check("policy.max_new_tokens", Status.WARN, found, advice))
    if not recipe.clones and not policy.instructions:
        found = "false, and nothing is cloned: a policy that has not learned how to think aloud is not told either"
        checks.append(Check("policy.instructions", Status.WARN, found, "set it to true, unless it has learned that"))
    return checks


def _weights_store(policy: PolicySettings) -> list[Check]:
    """There is a client for the store of weights; the store itself is asked when the run publishes."""
    if not policy.weights_store:
        return []
    try:
        store = open_store(policy.weights_store)
    except StoreError as error:
        return [Check("policy.weights_store", Status.FAIL, str(error), "install it, or correct the address")]
    return [Check("policy.weights_store", Status.OK, f"published weights are put into {store.uri}")]


def _data(recipe: Recipe) -> list[Check]:
    """The imported data is there, and was made for the policy that learns from it."""
    if not recipe.warm_start.data:
        return []
    name, policy = "warm_start.data", recipe.policy
    try:
        report = named_report(recipe)
        of_hub = policy.model != TINY and not names_folder(policy.model)
        found = misfits(report, recipe, None if of_hub else start_tokenizer(recipe))
    except (RunError, OSError, ValueError) as error:
        return [Check(name, Status.FAIL, str(error), "make it with `waymark data import`, for this recipe")]
    if found:
        return [Check(name, Status.FAIL, "; ".join(found), "import it again with this recipe")]
    held = f"{report.episodes} episodes, {report.successes} of them solved, {report.steps} steps"
    if "potential" in resolve(recipe.learner).critics:
        held += "; they tell of no milestones, so that the potential critic begins untaught"
        return [Check(name, Status.WARN, held, "the first phases teach it")]
    return [Check(name, Status.OK, held)]


def _reads(policy: PolicySettings, folder: Path, name: str) -> list[Check]:
    """The model's tokenizer can be read, and its context holds the longest prompt with its reply."""
    try:
        TextTokenizer.load(folder)
        config = json.loads(read_text(folder / "config.json"))
        context = config.get("text_config", config).get("max_position_embeddings")
    except (OSError, ValueError, AttributeError, RecursionError) as error:
        return [Check(name, Status.FAIL, f"{folder} cannot be read: {error}", "name another model folder")]
    return _fits(policy, context, f"the context of {folder}") if isinstance(context, int) else []


def _fits(policy: PolicySettings, context: int, whose: str) -> list[Check]:
    longest = policy.max_prompt_tokens + policy.max_new_tokens
    if longest <= context:
        return []
    found = f"{longest} with policy.max_new_tokens, but {whose} holds {context} tokens"
    return [Check("policy.max_prompt_tokens", Status.FAIL, found, "set them so that their sum fits")]


def _dialogue(policy: PolicySettings) -> list[Check]:
    """A chat template makes a dialogue where one is asked for, and is not forgotten."""
    name, folder = "policy.prompt_format", Path(policy.model)
    try:
        if policy.dialogue:
            chat_marks_of(folder, thinking=policy.thinking)
        elif policy.prompt_format == "waymark" and has_chat_template(folder):
            found = f"waymark, but {folder} has a chat template: the model was trained on dialogue"
            return [Check(name, Status.WARN, found, "set it to chat")]
    except (OSError, ValueError) as error:
        return [Check(name, Status.FAIL, str(error), "look at the model's tokenizer_config.json and chat template")]
    return []


def _revision(policy: PolicySettings) -> list[Check]:
    if not policy.revision or (policy.model != TINY and not names_folder(policy.model)):
        return []
    found = f"{policy.revision}, but {policy.model} is no model on the Hugging Face hub and has none"
    return [Check("policy.revision", Status.FAIL, found, "leave it empty, or name a model on the hub")]


def _model(policy: PolicySettings) -> Check:
    """Look at a model's folder, or at what can only be a model's name on the hub."""
    if names_folder(policy.model):
        advice = "name a folder with these files, a model on the Hugging Face hub, or tiny"
        return _folder("policy.model", Path(policy.model), _NEEDED, advice)
    found = f"{policy.model} is no folder here, so it is taken for a model on the Hugging Face hub"
    if not policy.revision:
        found += ", at its newest commit when the run begins (policy.revision is empty)"
    return Check("policy.model", Status.WARN, found, "the hub is asked when the run starts")


def _folder(name: str, folder: Path, needed: tuple[str, ...], advice: str) -> Check:
    if not folder.is_dir():
        return Check(name, Status.FAIL, f"{folder} is not a folder", advice)
    missing = [pattern for pattern in needed if not _files(folder, pattern)]
    if missing:
        pickled = [path.name for pattern in _PICKLED for path in _files(folder, pattern)]
        found = f"{folder} has no {', '.join(missing)}"
        if "*.safetensors" in missing and pickled:
            found += f"; its weights are pickled ({pickled[0]}), which Waymark never loads: convert them to safetensors"
        return Check(name, Status.FAIL, found, advice)
    damaged = _not_downloaded(folder)
    if damaged:
        return Check(name, Status.FAIL, f"{folder}: {damaged}", "download the model again, whole")
    return Check(name, Status.OK, str(folder))


def _files(folder: Path, pattern: str) -> list[Path]:
    return sorted(path for path in folder.glob(pattern) if path.is_file())


def _not_downloaded(folder: Path) -> str:
    """Return what of the weights is not there although others of their files are, or an empty text."""
    for path in _files(folder, "*.safetensors"):
        with open_file(path) as file:
            if file.read(len(_LFS_POINTER)) == _LFS_POINTER:
                return f"{path.name} is a pointer of Git LFS, not the file itself"
    if not (folder / _INDEX).is_file():
        return ""
    try:
        shards = set(json.loads(read_text(folder / _INDEX))["weight_map"].values())
        gone = sorted(name for name in shards if not (folder / name).is_file())
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        return f"{_INDEX} cannot be read: {type(error).__name__}: {error}"
    return f"{_INDEX} names {', '.join(gone)}, which is not there" if gone else ""


def _undeclared(name: str, device: str, setting: str) -> Check:
    advice = f"set {setting} to 1, or to a share such as 0.5 where learner and server are to share one"
    said = f"{device}, but {setting} is 0: Ray places it anywhere, and on one machine all take the first GPU"
    return Check(name, Status.FAIL, said, advice)


def _device(name: str, device: str, machine: Machine) -> Check:
    if device == "mps":
        status = Status.OK if sys.platform == "darwin" else Status.FAIL
        return Check(name, status, f"mps, on {sys.platform}", "only macOS has mps: choose cpu or cuda")
    if int(device.partition(":")[2] or 0) < machine.gpus:
        return Check(name, Status.OK, device)
    found = f"{device}, but this machine has {machine.gpus} NVIDIA GPUs that this process may use"
    return Check(name, Status.FAIL, found, "choose cpu, or look at the driver and at CUDA_VISIBLE_DEVICES")
