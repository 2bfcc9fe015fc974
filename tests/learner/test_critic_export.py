"""An exported critic answers as the critic itself, alone and in a batch, in a process without torch."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
import torch

from learner.checkpoints import write_checkpoint
from learner.critic_export import PlainCritic, answers_of, errors_alone, export_onnx, load_critic
from learner.errors import CheckpointError
from learner.models import WholeModels
from learner.settings import LearnerSettings
from policy.potential import FILES, FORMAT, MANIFEST, ExportedCritic, PotentialModel
from records.episodes import IntArray

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def checkpoint(model_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    critic = WholeModels(LearnerSettings(), model_dir).critic("potential", 0)
    # Its answers in 8 bits differ by 0.022 with these weights; with some others by more than 0.05.
    torch.nn.init.normal_(critic.head[-1].weight, generator=torch.Generator().manual_seed(2))
    return write_checkpoint(tmp_path_factory.mktemp("run") / "phase-001", {"potential": critic}, {}, {"phases": 1})


@pytest.fixture(scope="module")
def critic(model_dir: Path, checkpoint: Path) -> PlainCritic:
    return load_critic("potential", model_dir, checkpoint)


@pytest.fixture(scope="module")
def exported(critic: PlainCritic, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exported")
    export_onnx(critic, folder)
    files = {name: sha256((folder / name).read_bytes()).hexdigest() for name in FILES.values()}
    manifest = ExportedCritic(FORMAT, "potential", "hash", "phase-001", "", files, 0, {}, {})
    (folder / MANIFEST).write_text(json.dumps(asdict(manifest)))
    return folder


def prompts() -> list[IntArray]:
    rng = np.random.default_rng(0)
    return [rng.integers(3, 60, size).astype(np.int32) for size in (1, 7, 40, 3)]


def test_answers_are_the_critics_own_alone_and_side_by_side(critic: PlainCritic, exported: Path) -> None:
    own = answers_of(critic, prompts())
    assert np.ptp(own) > 0.05
    for precision, error in (("float32", 1e-5), ("int8", 0.05)):
        model = PotentialModel(exported, precision)  # type: ignore[arg-type]
        assert model.ask(prompts()) == pytest.approx(own, abs=error)
        assert [float(model.ask([prompt])[0]) for prompt in prompts()] == pytest.approx(list(own), abs=error)
    assert len(PotentialModel(exported).ask([])) == 0


def test_the_critic_is_the_learners(model_dir: Path, checkpoint: Path, critic: PlainCritic) -> None:
    from safetensors.torch import load_file

    from learner.batching import Sample
    from learner.critics import predict
    from learner.optimiser import Compute

    learners = WholeModels(LearnerSettings(), model_dir).critic("potential", 1)
    learners.load_state_dict(load_file(checkpoint / "potential.safetensors"))
    samples = [Sample(prompt, np.zeros(0, np.int32)) for prompt in prompts()]
    (answers,) = predict([learners], samples, Compute(device=torch.device("cpu"), max_tokens=64))
    assert answers_of(critic, prompts()) == pytest.approx(answers, abs=1e-5)


def test_only_the_export_of_8_bits_multiplies_in_8_bits(exported: Path) -> None:
    found = {precision: b"MatMulInteger" in (exported / name).read_bytes() for precision, name in FILES.items()}
    assert found == {"float32": False, "int8": True}
    assert (exported / FILES["int8"]).stat().st_size < (exported / FILES["float32"]).stat().st_size


def test_the_exporters_warnings_are_not_told(
    critic: PlainCritic, tmp_path: Path, caplog: pytest.LogCaptureFixture, recwarn: pytest.WarningsRecorder
) -> None:
    logging.getLogger("torch").addHandler(caplog.handler)
    try:
        export_onnx(critic, tmp_path)
    finally:
        logging.getLogger("torch").removeHandler(caplog.handler)
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == []
    assert [str(warning.message) for warning in recwarn] == []


def test_its_errors_are_told_and_raised_and_warnings_are_told_again_afterwards(
    caplog: pytest.LogCaptureFixture,
) -> None:
    exporter = logging.getLogger("torch.onnx._internal.exporter")

    def broken_export() -> None:
        with errors_alone():
            exporter.warning("a package is missing")
            exporter.error("an operator is missing")
            raise RuntimeError("no such operator")

    exporter.addHandler(caplog.handler)
    try:
        with pytest.raises(RuntimeError, match="no such operator"):
            broken_export()
        exporter.warning("after the export")
    finally:
        exporter.removeHandler(caplog.handler)
    assert caplog.messages[0] == "an operator is missing"
    assert "a package is missing" not in caplog.messages
    assert "after the export" in caplog.messages


def test_it_is_asked_without_torch(exported: Path) -> None:
    code = (
        "import sys, numpy; from pathlib import Path; from policy.potential import PotentialModel; "
        f"print(PotentialModel(Path({str(exported)!r})).ask([numpy.arange(3, 9, dtype=numpy.int32)])); "
        "assert not {'torch', 'onnx'} & set(sys.modules)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60, env=environment)


def test_a_file_that_was_changed_is_not_run(exported: Path, tmp_path: Path) -> None:
    for name in (*FILES.values(), MANIFEST):
        (tmp_path / name).write_bytes((exported / name).read_bytes())
    with (tmp_path / FILES["int8"]).open("ab") as file:
        file.write(b"x")
    with pytest.raises(ValueError, match="not the file that critic.json names"):
        PotentialModel(tmp_path)
    PotentialModel(tmp_path, "float32")
    (tmp_path / MANIFEST).write_text("{}")
    with pytest.raises(ValueError, match="not an exported critic"):
        PotentialModel(tmp_path)


def test_a_checkpoint_of_something_else_is_refused(model_dir: Path, tmp_path: Path) -> None:
    other = write_checkpoint(tmp_path / "other", {"potential": torch.nn.Linear(2, 3)}, {}, {"phases": 1})
    with pytest.raises(CheckpointError, match="adapters are not exported"):
        load_critic("potential", model_dir, other)
    with pytest.raises(CheckpointError, match="no value"):
        load_critic("value", model_dir, other)
