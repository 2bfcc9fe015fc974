"""The plan knows what a model of any size takes: counted by the shapes in its files, part by part, before a run."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import replace
from math import prod
from pathlib import Path

import pytest

from cluster.preflight.machine import Machine, smallest_gpu_mb
from cluster.preflight.plan import Plan, ProcessPlan, make_plan, planned
from cluster.recipe.evaluated import as_evaluated
from cluster.recipe.recipe import Recipe, build_recipe, load_recipe
from learner.memory import learner_memory
from learner.settings import AdapterSettings, LearnerSettings
from policy.backend import backend_of
from policy.model_size import ModelSize, ModelSizeUnknown, size_in_folder, size_of, size_of_tiny
from policy.settings import TinyShape

MACHINE = Machine(cores=2, memory_mb=8000, available_mb=7000, shared_memory_mb=4000, gpus=0)
LARGE = dataclasses.replace(MACHINE, memory_mb=1_000_000, available_mb=1_000_000)
LLAMA_8B = {
    "model.embed_tokens.weight": (128_256, 4096),
    "lm_head.weight": (128_256, 4096),
    "model.norm.weight": (4096,),
    **{
        f"model.layers.{i}.{part}.weight": shape
        for i in range(32)
        for part, shape in {
            "input_layernorm": (4096,), "post_attention_layernorm": (4096,),
            "self_attn.q_proj": (4096, 4096), "self_attn.k_proj": (1024, 4096),
            "self_attn.v_proj": (1024, 4096), "self_attn.o_proj": (4096, 4096),
            "mlp.gate_proj": (14_336, 4096), "mlp.up_proj": (14_336, 4096), "mlp.down_proj": (4096, 14_336),
        }.items()
    },
}  # fmt: skip


def write_headers(folder: Path, shapes: dict[str, tuple[int, ...]], dtype: str = "BF16") -> Path:
    """Write a model of two files whose headers say ``shapes`` and whose weights are holes that take no disk."""
    folder.mkdir(exist_ok=True)
    names, where = list(shapes), {}
    for file, chosen in {"model-1.safetensors": names[::2], "model-2.safetensors": names[1::2]}.items():
        end, header = 0, {}
        for name in chosen:
            start, end = end, end + 2 * prod(shapes[name])
            header[name] = {"dtype": dtype, "shape": shapes[name], "data_offsets": [start, end]}
        text = json.dumps({"__metadata__": {"format": "pt"}, **header}).encode()
        (folder / file).write_bytes(len(text).to_bytes(8, "little") + text)
        with (folder / file).open("r+b") as weights:
            weights.truncate(8 + len(text) + end)
        where |= dict.fromkeys(chosen, file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": where}))
    return folder


@pytest.fixture(scope="module")
def llama_8b(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_headers(tmp_path_factory.mktemp("llama") / "8b", LLAMA_8B)


@pytest.fixture(scope="module")
def size(llama_8b: Path) -> ModelSize:
    return size_in_folder(llama_8b)


def mib(settings: LearnerSettings, size: ModelSize, *, on_gpu: bool) -> dict[str, int]:
    return {part.name: part.mib for part in learner_memory(settings, size, 576) if part.on_gpu is on_gpu}


def process(plan: Plan, name: str) -> ProcessPlan:
    return next(entry for entry in plan.processes if entry.name == name)


def test_a_model_is_counted_by_its_files_headers_alone(llama_8b: Path, size: ModelSize) -> None:
    files = list(llama_8b.glob("*.safetensors"))
    assert sum(file.stat().st_size for file in files) > 16 * 10**9
    assert sum(file.stat().st_blocks * 512 for file in files) < 10**6
    assert size == ModelSize(
        parameters=8_030_261_248, own_head=128_256 * 4096, vocabulary=128_256, width=4096, layers=32,
        queries=32 * 4096, keys_values=32 * 2048, mlp=32 * 14_336, norms=65 * 4096,
    )  # fmt: skip
    # 8,030,261,248 without the output layer's 525,336,576, and with 4096 x 4096 + 4096 and 4096 + 1 of a critic's head.
    assert size.critic_parameters == 7_521_710_081


BY_HAND = {
    # 8,030,261,248 + 2 x 7,521,710,081 = 23,073,681,410 are trained: 4 bytes of each, 4 and 8, in MiB.
    "weights": 88_020,
    "gradients": 88_020,
    "optimiser": 176_039,
    # 4 x 266,240 + 4 x (2 x 4,096 x 32 + 131,072 + 4 x 458,752) + 4 x (2 x 131,072 + 65,536) = 11,288,576 bytes for
    # each of 4,096 tokens.
    "activations": 44_096,
    # 12 x 128,256 bytes x 130 tokens, of which 2^24 entries are there at once.
    "logits": 191,
    # 4 x 8,030,261,248 bytes.
    "files": 30_634,
    "process": 400,
}


def test_the_learners_parts_are_those_worked_by_hand(size: ModelSize) -> None:
    assert mib(LearnerSettings(), size, on_gpu=False) == BY_HAND
    assert mib(LearnerSettings(), size, on_gpu=True) == {}


def test_on_a_gpu_the_host_holds_the_model_while_it_is_loaded_and_no_checkpoint(size: ModelSize) -> None:
    settings = LearnerSettings(device="cuda", reference="warm_start")
    assert mib(settings, size, on_gpu=False) == {"files": BY_HAND["files"], "process": 400}
    of_gpu = {name: BY_HAND[name] for name in ("weights", "gradients", "optimiser", "activations", "logits")}
    assert mib(settings, size, on_gpu=True) == {**of_gpu, "reference": 30_634}


def test_each_of_eight_ranks_holds_an_eighth_and_what_it_gathers(size: ModelSize) -> None:
    settings = LearnerSettings(device="cuda", precision="bfloat16", reference="warm_start", ranks=8)
    # Embedding and output layer are 2 x 525,336,576 parameters, r; each of 32 layers is 218,112,128, y, norms included:
    # 2 (r + 2 y) + 2 (r + y) + 4 r bytes.
    eighths = {"weights": 11_003, "gradients": 11_003, "optimiser": 22_005, "reference": 3830, "gathered": 9265}
    assert mib(settings, size, on_gpu=True) == {**eighths, "activations": 24_128, "logits": 191}
    # 8 x 8,030,261,248 bytes by one rank at a time: an eighth of them is counted for each.
    assert mib(settings, size, on_gpu=False) == {"files": 7659, "process": 400}


def test_a_recipe_with_more_ranks_than_gpus_is_refused_by_name(size: ModelSize) -> None:
    machine = Machine(cores=64, memory_mb=2_000_000, available_mb=2_000_000, shared_memory_mb=None, gpus=4)
    ranks = ["learner.ranks=8", "learner.device=cuda", "run.resources.learner_gpus=1"]
    plan = make_plan(build_recipe({}, ranks), machine, size)
    assert process(plan, "learner").count == 8
    needed = "GPUs: the plan needs 8, 8 of them for learner.ranks 8, this machine has 4"
    assert f"{needed}; see run.resources and policy.options" in plan.missing
    for shared in ("run.resources.learner_gpus=0.5", "run.resources.address=auto"):
        (line,) = [line for line in make_plan(build_recipe({}, [*ranks[:2], shared]), machine).missing if "one" in line]
        assert line.startswith(
            "GPUs: each rank of learner.ranks 8 needs one of its own, run.resources.learner_gpus is 0"
        )


def test_half_precision_halves_activations_in_part_and_copies_the_weights_of_one_model(size: ModelSize) -> None:
    # 4 x 266,240 + 2 x 2,228,224 + 4 x 327,680 = 6,832,128 bytes a token; 2 x 8,030,261,248 bytes.
    changed = {"activations": 26_688, "bf16 copies": 15_317}
    assert mib(LearnerSettings(precision="bfloat16"), size, on_gpu=False) == {**BY_HAND, **changed}


def test_an_algorithm_without_critics_trains_one_model(size: ModelSize) -> None:
    # 4 x 8,030,261,248 bytes.
    assert mib(LearnerSettings(algorithm="sft"), size, on_gpu=False)["weights"] == 30_634


def test_a_sample_longer_than_a_micro_batch_is_one_by_itself(size: ModelSize) -> None:
    parts = {part.name: part.mib for part in learner_memory(LearnerSettings(), size, longest=8192)}
    assert (parts["activations"], parts["logits"]) == (2 * 44_096, 191)


GEMMA_12B = {
    "language_model.model.embed_tokens.weight": (262_208, 3840),
    "language_model.model.norm.weight": (3840,),
    "vision_tower.all.weight": (417_000_000,),
    **{
        f"language_model.model.layers.{i}.{part}.weight": shape
        for i in range(48)
        for part, shape in {
            "input_layernorm": (3840,), "post_attention_layernorm": (3840,),
            "pre_feedforward_layernorm": (3840,), "post_feedforward_layernorm": (3840,),
            "self_attn.q_proj": (4096, 3840), "self_attn.k_proj": (2048, 3840),
            "self_attn.v_proj": (2048, 3840), "self_attn.o_proj": (3840, 4096),
            "self_attn.q_norm": (256,), "self_attn.k_norm": (256,),
            "mlp.gate_proj": (15_360, 3840), "mlp.up_proj": (15_360, 3840), "mlp.down_proj": (3840, 15_360),
        }.items()
    },
}  # fmt: skip


def test_the_recipe_of_one_h200_fits_on_it_with_vllm_beside_the_learner() -> None:
    machine = replace(LARGE, cores=16, memory_mb=128 * 1024, gpus=1, gpu_memory_mb=143_771)
    recipe = load_recipe(Path("cluster/recipes/h200.yaml"))
    size = size_of(GEMMA_12B)
    assert 12.1e9 < size.parameters < 12.3e9
    plan = make_plan(recipe, machine, size)
    assert (plan.missing, plan.warnings) == ((), ())
    held = {part.name: part.mib for part in process(plan, "learner").parts if part.on_gpu}
    assert held["backbone"] > 20_000
    assert sum(held.values()) < 50_000
    whole = replace(recipe.learner, adapters=AdapterSettings())
    assert any("GPU memory" in line for line in make_plan(replace_learner(recipe, whole), machine, size).missing)


def test_the_recipe_of_eight_h200_trains_whole_models_on_six_of_them() -> None:
    machine = replace(LARGE, cores=64, memory_mb=1024 * 1024, gpus=8, gpu_memory_mb=143_771)
    recipe = load_recipe(Path("cluster/recipes/8xh200.yaml"))
    plan = make_plan(recipe, machine, size_of(GEMMA_12B))
    assert (plan.missing, plan.warnings) == ((), ())
    learner = process(plan, "learner")
    assert (learner.count, learner.gpus, process(plan, "policy server").count) == (6, 1, 2)
    assert 90_000 < sum(part.mib for part in learner.parts if part.on_gpu) < 130_000
    alone = replace_learner(recipe, replace(recipe.learner, ranks=1))
    assert any("GPU memory: the learner" in line for line in make_plan(alone, machine, size_of(GEMMA_12B)).missing)


def replace_learner(recipe: Recipe, learner: LearnerSettings) -> Recipe:
    return recipe.model_copy(update={"learner": learner})


def test_adapters_leave_one_frozen_backbone_and_little_to_train(size: ModelSize) -> None:
    adapters = AdapterSettings(rank=32)
    settings = LearnerSettings(adapters=adapters, precision="bfloat16", recompute=True, device="cuda")
    # 32 x (7 x 131,072 + 2 x 131,072 + 65,536 + 3 x 458,752) = 83,886,080 in an adapter, 16,785,409 in a head:
    # 3 x 83,886,080 + 2 x 16,785,409 = 285,229,058 are trained.
    found = mib(settings, size, on_gpu=True)
    assert found == {
        "backbone": 15_317,
        "weights": 1_089,
        "gradients": 1_089,
        "optimiser": 2_177,
        # 2 x 83,886,080 bytes.
        "bf16 copies": 160,
        # 2 x 4096 x 35 + (4 x 266,240 + 2 x 2,555,904) / 32 + 2 x 14 x 32 = 480,640 bytes for each of 4,096 tokens.
        "activations": 1_878,
        "logits": 191,
        # 4 x 128,256 x 4096 bytes.
        "head": 2_004,
    }
    # 4 x 8,030,261,248 bytes for an export.
    assert mib(settings, size, on_gpu=False) == {"files": 30_634, "process": 400}
    all_layers = replace(settings, recompute=False)
    upper_half = replace(all_layers, adapters=replace(adapters, layers=16))
    whole, part = (mib(chosen, size, on_gpu=True)["activations"] for chosen in (all_layers, upper_half))
    assert part == pytest.approx(whole / 2, rel=1e-3)


def test_a_torch_server_holds_weights_and_slots_in_the_served_precision(size: ModelSize) -> None:
    recipe = build_recipe({}, ["policy.dtype=bfloat16", "policy.device=cuda"])
    backend, options = backend_of(recipe.policy)
    parts = {part.name: part for part in backend.memory(recipe.policy, options, size, size.parameters)}
    assert {name: part.mib for name, part in parts.items()} == {
        "weights": 15_317,
        # 16 slots and 8 kept prompts of 640 tokens (576 in blocks of 128) x 65,536 x 2 bytes.
        "keys and values": 1920,
        # 4,096 x (65,536 + 4 x 14,336) x 2 + 16 x 16 x 128,256 x 4 bytes.
        "prefill": 1086,
        "files": 61_267,
        "process": 400,
    }
    assert {name for name, part in parts.items() if part.on_gpu} == {"weights", "keys and values", "prefill"}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], {"weights": 15_317, "keys and values": 3072, "files": 30_634}),
        # On each of two GPUs half, and of keys and values no less than 576 x 65,536 x 2 bytes in all. Both workers read
        # the pages of one file of 4 x 8,030,261,248 bytes; each holds for itself what a broadcast brings.
        (["policy.options.gpus=2"], {"weights": 7_659, "keys and values": 36, "files": 30_634}),
        (
            ["policy.options.gpus=2", "policy.publication=broadcast"],
            {"weights": 7_659, "keys and values": 36, "files": 61_267},
        ),
        (["policy.publication=broadcast"], {"weights": 15_317, "keys and values": 3072, "files": 30_634}),
        (["policy.options.urls=[http://elsewhere:8000]"], {}),
    ],
)
def test_vllm_takes_what_it_is_told(options: list[str], expected: dict[str, int], size: ModelSize) -> None:
    recipe = build_recipe(
        {}, ["policy.backend=vllm", "policy.dtype=bfloat16", "policy.options.kv_cache_gib=3", *options]
    )
    backend, settings = backend_of(recipe.policy)
    assert {part.name: part.mib for part in backend.memory(recipe.policy, settings, size, size.parameters)} == expected


def test_a_model_too_large_for_the_machine_is_missing_before_anything_starts(llama_8b: Path) -> None:
    recipe = build_recipe({}, [f"policy.model={llama_8b}"])
    (missing,) = planned(recipe, MACHINE).missing
    assert missing.startswith("memory: the plan needs ")
    assert "choose a smaller model" in missing
    assert process(planned(recipe, MACHINE), "learner").memory_mb == sum(BY_HAND.values())


def test_an_evaluation_needs_no_learner(size: ModelSize) -> None:
    words = ["learner.device=cuda", "learner.ranks=4", "run.resources.learner_gpus=1", "policy.options.gpus=1"]
    recipe = build_recipe({}, ["policy.backend=vllm", *words])
    machine = dataclasses.replace(LARGE, gpus=2, gpu_memory_mb=80_000)
    assert any("GPUs: the plan needs 5" in line for line in make_plan(recipe, machine, size).missing)
    evaluated = as_evaluated(recipe, policy=Path("trained"), split="test")
    plan = make_plan(evaluated, machine, size, learns=False)
    assert plan.missing == ()
    snapshot = process(plan, "snapshot")
    # 4 bytes for each of 8.03e9 parameters, on the GPU, and as many on the host while it is loaded.
    assert {part.name: (part.mib, part.on_gpu) for part in snapshot.parts} == {
        "weights": (30_634, True), "files": (30_634, False), "process": (400, False),
    }  # fmt: skip
    assert (snapshot.count, snapshot.memory_mb) == (1, 31_034)


def test_no_part_is_left_out_of_what_must_fit(size: ModelSize) -> None:
    plan = make_plan(Recipe(), LARGE, size)
    exact = dataclasses.replace(LARGE, memory_mb=plan.memory_mb, available_mb=plan.memory_mb)
    assert make_plan(Recipe(), exact, size).missing == ()
    for name in ("learner", "policy server"):
        assert process(plan, name).memory_mb == sum(part.mib for part in process(plan, name).parts)
        for part in process(plan, name).parts:
            short = dataclasses.replace(exact, memory_mb=plan.memory_mb - part.mib)
            assert make_plan(Recipe(), short, size).missing, f"{name} without its {part.name}"


def test_settings_that_say_less_than_the_parts_are_named(size: ModelSize) -> None:
    said = make_plan(Recipe(), LARGE, size).warnings
    assert [line.split()[1] for line in said] == ["run.resources.learner_memory_mb", "policy.options.memory_mb"]
    needed = {name: process(make_plan(Recipe(), LARGE, size), name).memory_mb for name in ("learner", "policy server")}
    assert all(str(need) in line for need, line in zip(needed.values(), said, strict=True))
    corrected = build_recipe(
        {},
        [
            f"run.resources.learner_memory_mb={needed['learner']}",
            f"policy.options.memory_mb={needed['policy server']}",
        ],
    )
    assert make_plan(corrected, LARGE, size).warnings == ()
    elsewhere = build_recipe({}, ["run.resources.address=auto"])
    assert (make_plan(elsewhere, MACHINE, size).missing, make_plan(elsewhere, MACHINE, size).warnings) == ((), said)


def test_what_a_gpu_cannot_hold_is_missing(size: ModelSize) -> None:
    trains = sum(BY_HAND[name] for name in ("weights", "gradients", "optimiser", "activations", "logits"))
    serves = 15_317 + 1920 + 1086
    recipe = build_recipe(
        {}, ["learner.device=cuda", "policy.device=cuda", "policy.dtype=bfloat16", "policy.options.servers=2"]
    )

    def missing(gpus: int, gpu_mb: int | None) -> int:
        machine = dataclasses.replace(LARGE, gpus=gpus, gpu_memory_mb=gpu_mb)
        return sum(line.startswith("GPU memory") for line in make_plan(recipe, machine, size).missing)

    shared = trains + 2 * serves
    assert [missing(1, mb) for mb in (shared, shared - 1, None)] == [0, 1, 0]
    assert [missing(3, mb) for mb in (trains, trains - 1, serves, serves - 1)] == [0, 1, 1, 2]
    nearly = dataclasses.replace(LARGE, gpus=3, gpu_memory_mb=trains)
    assert any(line.startswith("GPU memory: the learner") for line in make_plan(recipe, nearly, size).warnings)


def test_the_smallest_visible_gpu_counts() -> None:
    table = "0, GPU-a, 143771\n1, GPU-b, 81559\n2, GPU-c, [N/A]\n"
    assert smallest_gpu_mb(table, None) == 81_559
    assert smallest_gpu_mb(table, "0") == smallest_gpu_mb(table, "GPU-a") == 143_771
    assert smallest_gpu_mb(table, "2") is None
    assert smallest_gpu_mb("no devices were found", None) is None


def test_for_tiny_nothing_changes_but_that_parts_are_shown() -> None:
    for recipe in (Recipe(), build_recipe({}, ["warm_start.checkpoint=cluster/recipes/tiny-cloned"])):
        by_settings, by_parts = make_plan(recipe, MACHINE), planned(recipe, MACHINE)
        assert (by_parts.memory_mb, by_parts.missing, by_parts.warnings) == (by_settings.memory_mb, (), ())
        assert process(by_parts, "learner").parts


def test_the_tiny_preset_has_the_size_that_its_files_have() -> None:
    assert size_of_tiny(TinyShape(vocab_size=2047, layers=4, induction_heads=True)) == size_in_folder(
        Path("cluster/recipes/tiny-cloned")
    )


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("model.safetensors", b""),
        ("model.safetensors", b"version https://git-lfs.github.com/spec/v1"),
        ("model.safetensors", b"\x02\0\0\0\0\0\0\0[]"),
        ("model.safetensors", b'\x21\0\0\0\0\0\0\0{"x":{"dtype":"F32","shape":[-1]}}'),
        ("model.safetensors.index.json", b'{"weight_map": {"x": "gone.safetensors"}}'),
        ("model.safetensors.index.json", b"[]"),
    ],
)
def test_a_size_that_cannot_be_read_is_said_to_be_unknown(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ModelSizeUnknown, match="cannot be read"):
        size_in_folder(tmp_path)
    recipe = build_recipe({}, [f"policy.model={tmp_path}"])
    plan = planned(recipe, MACHINE)
    assert "is not known" in plan.warnings[-1]
    assert (plan.memory_mb, plan.missing) == (make_plan(recipe, MACHINE).memory_mb, ())


def test_a_quantised_model_and_one_of_another_build_are_unknown(tmp_path: Path) -> None:
    with pytest.raises(ModelSizeUnknown, match="quantised"):
        size_in_folder(write_headers(tmp_path / "packed", {"model.layers.0.mlp.up_proj.qweight": (8, 8)}, "I32"))
    with pytest.raises(ModelSizeUnknown, match="Llama, Qwen or Gemma"):
        size_of({"transformer.wte.weight": (100, 8)})
    with pytest.raises(ModelSizeUnknown, match="Llama, Qwen or Gemma"):
        size_of({**LLAMA_8B, "model.layers.0.mlp.experts.0.up_proj.weight": (8, 8)})


def test_a_model_on_the_hub_is_asked_for_its_headers(monkeypatch: pytest.MonkeyPatch, size: ModelSize) -> None:
    import huggingface_hub
    from huggingface_hub.utils import SafetensorsFileMetadata, SafetensorsRepoMetadata, TensorInfo

    asked: list[tuple[str, str | None]] = []

    def answer(name: str, *, revision: str | None, timeout: float) -> SafetensorsRepoMetadata:
        asked.append((name, revision))
        tensors = {n: TensorInfo(dtype="BF16", shape=list(s), data_offsets=(0, 0)) for n, s in LLAMA_8B.items()}
        file = SafetensorsFileMetadata(metadata={}, tensors=tensors)
        return SafetensorsRepoMetadata(metadata=None, sharded=False, weight_map={}, files_metadata={"model": file})

    recipe = build_recipe({}, ["policy.model=organisation/llama-8b", "policy.revision=abc"])
    monkeypatch.setattr(huggingface_hub, "get_safetensors_metadata", answer)
    assert planned(recipe, LARGE) == make_plan(recipe, LARGE, size)
    assert asked == [("organisation/llama-8b", "abc")]

    def nothing(name: str, **options: object) -> None:
        raise ConnectionError("no network here")

    monkeypatch.setattr(huggingface_hub, "get_safetensors_metadata", nothing)
    assert "the hub does not tell" in planned(recipe, LARGE).warnings[-1].replace("Hugging Face ", "")


def test_a_broadcast_between_processes_that_may_share_a_gpu_is_refused_before_anything_is_loaded() -> None:
    machine = replace(LARGE, cores=64, memory_mb=1024 * 1024, gpus=8, gpu_memory_mb=143_771)
    for name, refused in (("h200", True), ("8xh200", False)):
        recipe = load_recipe(Path(f"cluster/recipes/{name}.yaml"), ["policy.publication=broadcast"])
        missing = make_plan(recipe, machine, size_of(GEMMA_12B)).missing
        assert [line for line in missing if "set it to file" in line] == list(missing)
        assert bool(missing) == refused
