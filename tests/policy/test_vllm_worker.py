"""A worker of vLLM takes a published file or refuses it, and holds no copy of it. A stand-in plays the model."""

from __future__ import annotations

import errno
import hashlib
import importlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

import policy.vllm.inside as inside
from learner.models import WholeModels
from learner.settings import LearnerSettings
from policy.adapters import Adapter, AdapterShape
from policy.broadcast_sender import BroadcastSender
from policy.checkpoint_names import other_names
from policy.published_weights import PublishedWeights
from policy.vllm.inside.waymark_weights import View
from policy.weights import own_tensors, write_adapter, write_weights
from tests.model_families import EXPERTS, FAMILIES, SEEING, Family, save

MIB = 2**20
LIMIT_S = 30.0
EMBEDDING = "model.embed_tokens.weight"


@dataclass
class Model:
    """Loads nothing; keeps what it was handed, and can fail at a tensor."""

    fails_at: str = ""
    taken: dict[str, torch.Tensor] = field(default_factory=dict)

    def load_weights(self, weights: Iterable[tuple[str, torch.Tensor]]) -> None:
        for name, tensor in weights:
            if name == self.fails_at:
                raise OSError("the device is gone")
            self.taken[name] = tensor

    def named_modules(self) -> Iterator[tuple[str, object]]:
        return iter(())


@pytest.fixture
def extension(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The class of the workers' extension, in a process that has no vLLM."""
    config, reload = ModuleType("vllm.config"), ModuleType("vllm.model_executor.model_loader.reload")
    config.set_current_vllm_config = lambda _: nullcontext()  # type: ignore[attr-defined]
    reload.initialize_layerwise_reload = lambda _: None  # type: ignore[attr-defined]
    reload.finalize_layerwise_reload = lambda *_: None  # type: ignore[attr-defined]
    for module in (config, reload):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.syspath_prepend(str(Path(inside.__file__).parent))
    monkeypatch.delitem(sys.modules, "waymark_worker", raising=False)
    yield importlib.import_module("waymark_worker").WorkerExtension
    sys.modules.pop("waymark_worker", None)


@pytest.fixture
def worker(extension: Any, tmp_path: Path) -> Callable[..., Any]:
    def made(model: Model, rank: int = 0, folder: Path = tmp_path / "no-model") -> Any:
        found = extension()
        found.vllm_config = None
        found.model_config = SimpleNamespace(model=str(folder), hf_text_config=SimpleNamespace())
        found.model_runner = SimpleNamespace(get_model=lambda: model)
        found.device, found.rank = torch.device("cpu"), rank
        return found

    return made


def published(folder: Path, tensors: dict[str, torch.Tensor]) -> PublishedWeights:
    return write_weights(tensors, folder / "weights.safetensors", 1)


def own_memory() -> int:
    """Bytes of this process that are no file's pages, which the kernel could take back and others share."""
    words = Path("/proc/self/status").read_text().split()
    return int(words[words.index("RssAnon:") + 1]) * 1024


def test_a_worker_that_has_taken_a_file_holds_no_copy_of_it(worker: Callable[..., Any], tmp_path: Path) -> None:
    size = 64 * MIB
    weights = published(tmp_path, {f"model.layers.{i}.w": torch.full((size // 4,), float(i)) for i in range(4)})
    one, other = Model(), Model()
    before = own_memory()
    for taking in (worker(one), worker(other)):
        assert taking.waymark_take_weights(weights.path, weights.checksum) == {"refused": ""}
    assert sorted(one.taken) == sorted(other.taken) == [f"model.layers.{i}.w" for i in range(4)]
    assert [float(one.taken[f"model.layers.{i}.w"].sum()) for i in range(4)] == [i * size / 4 for i in range(4)]
    assert own_memory() - before < size, "two workers hold four tensors each, and none of them is their own"


def test_what_is_broadcast_is_held_once_by_each_worker(worker: Callable[..., Any], tmp_path: Path) -> None:
    weights = published(tmp_path, {"w": torch.arange(float(MIB))})
    models, sender = [Model(), Model()], BroadcastSender("cpu", "127.0.0.1")
    first, _ = sender.invite(Path(weights.path), ["cpu", "cpu"], LIMIT_S)
    workers = [worker(model, rank) for rank, model in enumerate(models)]
    with ThreadPoolExecutor(2) as threads:
        said = [threads.submit(one.waymark_take_weights, first, weights.checksum) for one in workers]
        sender.send(Path(weights.path))
        assert [one.result(LIMIT_S) for one in said] == [{"refused": ""}] * 2
    assert all(torch.equal(model.taken["w"], torch.arange(float(MIB))) for model in models)


def test_a_file_that_was_not_published_is_refused_before_the_model_is_touched(
    worker: Callable[..., Any], tmp_path: Path
) -> None:
    weights = published(tmp_path, {"w": torch.ones(8)})
    torn = tmp_path / "torn"
    torn.write_bytes(Path(weights.path).read_bytes()[:-4])
    of_torn = hashlib.sha256(torn.read_bytes()).hexdigest()
    taking = worker(model := Model())
    for place, checksum, why in (
        (weights.path, "0" * 64, "expected checksum 000000000000…, found"),
        (str(tmp_path / "nowhere"), weights.checksum, "cannot read"),
        ("no\0path", weights.checksum, "null"),
        (str(torn), of_torn, "not a safetensors file"),
        ("broadcast://host/", weights.checksum, "no invitation"),
    ):
        assert why in taking.waymark_take_weights(place, checksum)["refused"]
    assert model.taken == {}


def test_a_name_that_means_another_file_by_the_time_it_is_read_changes_nothing(
    worker: Callable[..., Any], extension: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = published(tmp_path, {"w": torch.ones(8)})
    other = write_weights({"w": torch.zeros(8)}, tmp_path / "other.safetensors", 2)
    digest = hashlib.file_digest

    def replaced(*words: Any) -> Any:
        found = digest(*words)
        Path(other.path).replace(weights.path)
        return found

    monkeypatch.setattr(hashlib, "file_digest", replaced)
    taking = worker(model := Model())
    assert taking.waymark_take_weights(weights.path, weights.checksum) == {"refused": ""}
    assert model.taken["w"].tolist() == [1.0] * 8


def test_what_goes_wrong_while_tensors_are_loaded_is_no_refusal(worker: Callable[..., Any], tmp_path: Path) -> None:
    weights = published(tmp_path, {"a": torch.ones(8), "b": torch.ones(8)})
    taking = worker(model := Model(fails_at="b"))
    with pytest.raises(OSError, match="the device is gone"):
        taking.waymark_take_weights(weights.path, weights.checksum)
    assert list(model.taken) == ["a"], "half of it: a server that answered now would resume with it"


def test_a_head_that_the_models_files_repeat_is_the_embedding_that_is_published(
    worker: Callable[..., Any], tmp_path: Path
) -> None:
    (folder := tmp_path / "model").mkdir()
    save_file({EMBEDDING: torch.ones(4, 2), "lm_head.weight": torch.ones(4, 2)}, folder / "model.safetensors")
    weights = published(tmp_path, {EMBEDDING: torch.full((4, 2), 3.0)})
    taking = worker(model := Model(), folder=folder)
    assert taking.waymark_take_weights(weights.path, weights.checksum) == {"refused": ""}
    assert model.taken["lm_head.weight"].tolist() == model.taken[EMBEDDING].tolist() == [[3.0, 3.0]] * 4
    misfit = write_weights({EMBEDDING: torch.ones(2, 2)}, tmp_path / "misfit.safetensors", 2)
    assert "of another shape" in taking.waymark_take_weights(misfit.path, misfit.checksum)["refused"]


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (folder := tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def adapter(folder: Path) -> PublishedWeights:
    """A published adapter of one layer."""
    layer, shape = "model.layers.0.q_proj", AdapterShape(2, 4.0, ("model.layers.0.q_proj",))
    names = [f"base_model.model.{layer}.lora_{part}.weight" for part in "AB"]
    tensors = {names[0]: torch.ones(2, 8), names[1]: torch.ones(8, 2)}
    return write_adapter(Adapter(shape, tensors), folder / "adapter.safetensors", 1)


def test_an_adapter_is_laid_out_until_it_is_forgotten_or_the_next_one_is(
    worker: Callable[..., Any], tmp_path: Path, temporary: Path
) -> None:
    weights, taking, other = adapter(tmp_path), worker(Model()), temporary / "waymark-adapter-of-another"
    (other / "inside").mkdir(parents=True)
    said = [taking.waymark_lay_out_adapter(weights.path, weights.checksum) for _ in range(2)]
    assert [one["refused"] for one in said] == ["", ""]
    left = Path(said[1]["folder"])
    assert sorted(temporary.iterdir()) == sorted([other, left]), "nobody waits for the first one any more"
    assert sorted(file.name for file in left.iterdir()) == ["adapter_config.json", "adapter_model.safetensors"]
    taking.waymark_forget_folders([str(left), str(other), said[0]["folder"]])
    assert list(temporary.iterdir()) == [other], "a worker removes its own"


def test_an_adapter_that_cannot_be_laid_out_leaves_nothing_and_is_refused(
    worker: Callable[..., Any], tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    weights = adapter(tmp_path)
    monkeypatch.setattr(shutil, "copyfileobj", full)
    said = worker(Model()).waymark_lay_out_adapter(weights.path, weights.checksum)
    assert said == {"refused": "cannot lay an adapter out: No space left on device"}
    assert list(temporary.iterdir()) == []


HOLDING = """
import sys, tempfile
from pathlib import Path
sys.path.insert(0, sys.argv[1])
tempfile.tempdir = sys.argv[2]
from waymark_folders import lay_out
print(lay_out(lambda folder: (folder / "file").write_text("whole")), flush=True)
sys.stdin.read()
"""


def test_what_a_dead_worker_left_is_swept_and_what_a_live_one_holds_is_not(
    extension: Any, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = [sys.executable, "-c", HOLDING, str(Path(inside.__file__).parent), str(temporary)]
    pipe = subprocess.PIPE
    holders = [subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True) for _ in range(2)]
    try:
        dead, live = (Path((holder.stdout or sys.stdin).readline().strip()) for holder in holders)
        (elsewhere := temporary / "another-folder").mkdir()
        (link := temporary / "waymark-adapter-link").symlink_to(elsewhere)
        holders[0].kill()
        holders[0].wait(LIMIT_S)
        importlib.reload(sys.modules[extension.__module__])
        assert sorted(temporary.iterdir()) == sorted([live, elsewhere, link])
        assert (live / "file").read_text() == "whole"
    finally:
        for holder in holders:
            holder.kill()
            holder.communicate(timeout=LIMIT_S)


def trained(folder: Path) -> WholeModels:
    """A learner's models whose actor is not what it was loaded as."""
    models = WholeModels(LearnerSettings(), folder)
    with torch.no_grad():
        for number, tensor in enumerate(own_tensors(models.actor.model).values()):
            tensor.add_(torch.linspace(0.5, 1.5, tensor.numel()).reshape(tensor.shape) + number)
    return models


@pytest.mark.parametrize("family", [*FAMILIES.values(), SEEING, EXPERTS], ids=lambda family: family.name)
def test_a_worker_hands_on_each_tensor_as_the_models_own_files_would_hold_it(
    worker: Callable[..., Any], tmp_path: Path, family: Family
) -> None:
    folder = save(family, tmp_path / "model")
    models = trained(folder)
    weights = models.publish(tmp_path / "weights.safetensors", 1)
    expected = load_file(models.export(tmp_path / "trained") / "model.safetensors")
    sender = BroadcastSender("cpu", "127.0.0.1")
    (invitation,) = sender.invite(Path(weights.path), ["cpu"], LIMIT_S)
    with ThreadPoolExecutor(1) as thread:
        sending = thread.submit(sender.send, Path(weights.path))
        for place in (weights.path, invitation):
            taking = worker(model := Model(), folder=folder)
            assert taking.waymark_take_weights(place, weights.checksum) == {"refused": ""}
            assert model.taken.keys() == expected.keys() == load_file(folder / "model.safetensors").keys()
            assert all(torch.equal(model.taken[name], tensor) for name, tensor in expected.items())
        sending.result(LIMIT_S)


@pytest.mark.parametrize("family", [SEEING, EXPERTS], ids=lambda family: family.name)
def test_a_tensor_under_another_name_than_the_files_have_is_refused(
    worker: Callable[..., Any], tmp_path: Path, family: Family
) -> None:
    folder = save(family, tmp_path / "model")
    actor = WholeModels(LearnerSettings(), folder).actor.model
    own = own_tensors(actor)
    views = other_names(actor, own)
    assert views is not None
    name = next(name for name in views if name.endswith("down_proj.weight"))
    cut = View(views[name].source, (views[name].shape[0], 1), views[name].stride, views[name].offset)
    gone = {other: view for other, view in views.items() if other != name}
    for wrong, why in (
        (None, "unknown ['model."),
        ({**gone, f"{name}_1": views[name]}, f"unknown ['{name}_1'], missing ['{name}']"),
        (gone, f"missing ['{name}']"),
        ({**views, name: cut}, f"of another shape ['{name}']"),
    ):
        weights = write_weights(own, tmp_path / "weights.safetensors", 1, views=wrong)
        taking = worker(model := Model(), folder=folder)
        assert why in taking.waymark_take_weights(weights.path, weights.checksum)["refused"]
        assert model.taken == {}


@pytest.mark.parametrize(
    "told",
    [
        "[]",
        "not a list",
        json.dumps({"a": ["gone", [8], [1], 0]}),
        json.dumps({"a": ["w", [8], [1], 1]}),
        json.dumps({"a": ["w", [8], [-1], 7]}),
        json.dumps({"a": ["w", [8], [1, 1], 0]}),
        json.dumps({"a": ["w", [8], "x", 0]}),
    ],
)
def test_names_that_a_file_tells_wrongly_are_refused(worker: Callable[..., Any], tmp_path: Path, told: str) -> None:
    save_file({"w": torch.ones(8), "x": torch.ones(8)}, tmp_path / "weights", {"views": told})
    checksum = hashlib.sha256((tmp_path / "weights").read_bytes()).hexdigest()
    taking = worker(model := Model())
    assert "tells its names wrongly" in taking.waymark_take_weights(str(tmp_path / "weights"), checksum)["refused"]
    assert model.taken == {}


def test_files_that_hold_the_model_in_another_form_are_not_read(worker: Callable[..., Any], tmp_path: Path) -> None:
    (folder := tmp_path / "model").mkdir()
    save_file({"w": torch.ones(8)}, folder / "model-00001-of-00001.safetensors")
    index = {"weight_map": {"w": "model-00001-of-00001.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    save_file({"layers.0.attention.wq.weight": torch.ones(8)}, folder / "consolidated.safetensors")
    weights = published(tmp_path, {"w": torch.zeros(8)})
    taking = worker(model := Model(), folder=folder)
    assert taking.waymark_take_weights(weights.path, weights.checksum) == {"refused": ""}
    assert model.taken["w"].tolist() == [0.0] * 8
