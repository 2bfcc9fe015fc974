"""The run's manifests: ``OUT/manifest.json`` says what run it is, one manifest a stage what is complete.

Owns resuming. Invariants: a stage is done only when its manifest is there (``cluster.run_folder.stage_files``), which
is written after everything it names is durable; none is ever changed; a run goes on only under its own recipe, of which
operational settings may differ, and the code it was last played with. Phase 0 is the warm start and the evaluation
before RL; phases 1..N follow. The stages' names and order are the controller's.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypedDict, cast

from cluster.demonstrated import demonstrated_sites
from cluster.errors import ManifestError
from cluster.recipe.recipe import Recipe, config_hash, flatten, identity, resolved
from cluster.run_folder.durable import digests_as_written, sha256_file, write_atomic
from cluster.run_folder.named_data import data_record, require_same_data
from cluster.run_folder.named_model import model_record, require_same_model
from cluster.run_folder.resume import Resume
from cluster.run_folder.stage_files import StageEntry, scan_stages, write_stage
from cluster.run_folder.stage_results import R, StageResult, read_result
from cluster.run_folder.starts import note_start, require_same_code, start_files
from cluster.run_folder.versions import versions
from records.durable import read_json
from records.stores.lease import KEY as LEASE
from records.stores.lease import LeaseLost

FORMAT = 6
FILE_NAME = "manifest.json"
_PARTS = ("checkpoints", "episodes", "labels", "policy", "stages", "trained", "weights")
"""Fixed: what a run would write over, or remove what is in it."""
_OF_A_START = ("run.lock", "learner.lock", "driver.log", LEASE)
"""What is there before the run's header."""
_OF_A_VOLUME = "lost+found"
_SHOWN = 3


class RunHeader(TypedDict):
    """What ``OUT/manifest.json`` says: the resolved recipe with its hash, its seeds and versions.

    ``model`` and ``data`` are what the run depends on of the model and the imported data that the recipe names; see
    ``cluster.run_folder.named_model`` and ``named_data``.
    """

    format: int
    config_hash: str
    config: dict[str, Any]
    model: dict[str, str]
    data: dict[str, str]
    seeds: dict[str, int]
    versions: dict[str, str | None]
    created: str


class RunManifest:
    """The manifests of one run folder, in memory and on disk."""

    def __init__(self, out: Path, header: RunHeader, entries: Sequence[StageEntry], last: str) -> None:
        self.out = out
        self.header = header
        self._entries = {(entry.phase, entry.stage): entry for entry in entries}
        self._last = last
        self._start = len(start_files(out))
        self.fence: Callable[[], object] = lambda: None
        """Called before a manifest is written; raises where another driver has the run by now."""
        self.commit: Callable[[], object] = lambda: None
        """Called when a manifest or a start was written; makes it durable where the run is in a store."""

    @classmethod
    def open(cls, out: Path, recipe: Recipe, resume: Resume = Resume.AUTO) -> RunManifest:
        """Start a run in a folder that has nothing of one, or continue the one there.

        Raises ``ManifestError`` when the folder has parts of a run and no manifest; when a run is there and
        ``resume`` is ``never``; when it was made under another
        recipe, or with other code and ``resume`` is not ``other-code`` (naming what differs); or when its
        manifests cannot be read.
        """
        path = out / FILE_NAME
        if not path.exists():
            _require_no_parts(out)
            write_atomic(path, json.dumps(_new_header(recipe), indent=1) + "\n")
        elif resume is Resume.NEVER:
            raise ManifestError(
                f"{out} already holds a run; choose another --out, or use --resume auto to go on with it"
            )
        manifest = cls.read(out)
        manifest._require_recipe(recipe)
        require_same_model(recipe.policy, manifest.header["model"])
        require_same_data(recipe, manifest.header["data"])
        if resume is not Resume.OTHER_CODE:
            require_same_code(out)
        return manifest

    @classmethod
    def read(cls, out: Path) -> RunManifest:
        """Read the manifests of a run folder without checking them against a recipe."""
        header = read_header(out)
        return cls(out, header, *_read_stages(out))

    def reload(self) -> None:
        """Read the stages again, where more or fewer of them may be there than before; raise as ``read`` does."""
        entries, self._last = _read_stages(self.out)
        self._entries = {(entry.phase, entry.stage): entry for entry in entries}

    @property
    def start(self) -> int:
        """The number of this start of the run's command."""
        return self._start

    @property
    def last(self) -> str:
        """The SHA-256 of the newest stage's manifest, that of the run's header where no stage is complete."""
        return self._last

    def note_start(self, recipe: Recipe) -> int:
        """Note that the run is started or goes on from here, and with which other settings than at first.

        Returns:
            The start's number.
        """
        before = flatten(self.header["config"])
        changed = {key: value for key, value in flatten(resolved(recipe)).items() if before.get(key) != value}
        self._start = note_start(self.out, changed)
        self.commit()
        return self._start

    def stage_done(self, phase: int, stage: str) -> bool:
        """Return whether this stage is complete."""
        return (phase, stage) in self._entries

    def result(self, phase: int, kind: type[R]) -> R:
        """Return what the phase's stage of this kind left; raise ``KeyError`` where it is not complete."""
        found = self.entry(phase, kind.stage).result
        if not isinstance(found, kind):
            raise KeyError(f"phase {phase} stage {kind.stage!r} left {type(found).__name__}, expected {kind.__name__}")
        return found

    def results(self, kind: type[R], up_to: int) -> list[R]:
        """Return what the stages of this kind left, in their order, of all phases up to one."""
        return [one.result for one in self._entries.values() if isinstance(one.result, kind) and one.phase <= up_to]

    def entry(self, phase: int, stage: str) -> StageEntry:
        """Return a complete stage's entry; raise ``KeyError`` naming what is complete where this one is not."""
        try:
            return self._entries[phase, stage]
        except KeyError:
            raise KeyError(f"phase {phase} stage {stage!r} is not complete; complete are {self.stages()}") from None

    def entries(self) -> list[StageEntry]:
        """Return the entries of the complete stages in the order in which they were completed."""
        return list(self._entries.values())

    def stages(self) -> list[tuple[int, str]]:
        """Return the complete stages in the order in which they were completed."""
        return list(self._entries)

    def complete_stage(self, phase: int, result: StageResult, files: Sequence[Path] = (), seconds: float = 0.0) -> None:
        """Record a stage as done, durably. ``files`` lie under the run folder and are hashed, unless they were already.

        Raises ``ManifestError`` when the stage is already there, when its result cannot be read back, or when
        a file is missing or lies elsewhere.
        """
        stage = result.stage
        if self.stage_done(phase, stage):
            raise ManifestError(f"phase {phase} stage {stage!r} is already complete; entries are never changed")
        try:
            stored = read_result(phase, stage, result.to_json())
        except (TypeError, ValueError) as error:
            raise ManifestError(f"phase {phase} stage {stage!r}: its result is not JSON: {error}") from error
        hashes = {self._relative(file): self._hash(file) for file in files}
        entry = StageEntry(phase, stored, hashes, seconds, _now(), self._start, self._last)
        self.fence()
        try:
            self._last = write_stage(self.out, len(self._entries), entry)
        except OSError as error:
            if error.errno not in {errno.ENOTEMPTY, errno.EEXIST}:
                raise
            raise LeaseLost(f"{self.out}: phase {phase} {stage} was recorded by another driver meanwhile") from error
        self._entries[phase, stage] = entry
        self.commit()

    @property
    def config_hash(self) -> str:
        """Hash of the recipe this run was started with."""
        return self.header["config_hash"]

    @property
    def seconds(self) -> dict[int, dict[str, float]]:
        """Seconds of each complete stage: ``{phase: {stage: seconds}}``."""
        table: dict[int, dict[str, float]] = {}
        for (phase, stage), entry in self._entries.items():
            table.setdefault(phase, {})[stage] = entry.seconds
        return table

    def _require_recipe(self, recipe: Recipe) -> None:
        before, now = identity(recipe, self.header["config"]), identity(recipe)
        gone = object()
        differing = [key for key in sorted({*before, *now}) if before.get(key, gone) != now.get(key, gone)]
        if not differing:
            return
        lines = [
            f"  {key}: was {before.get(key, 'not there')!r}, is {now.get(key, 'not there')!r}" for key in differing
        ]
        raise ManifestError(
            f"{self.out} holds a run of another recipe; these settings differ:\n" + "\n".join(lines) + "\n"
            "put them back to go on with that run, or choose another --out for a new one"
        )

    def _relative(self, file: Path) -> str:
        try:
            return file.resolve().relative_to(self.out.resolve()).as_posix()
        except ValueError as error:
            raise ManifestError(f"{file} is not under the run folder {self.out}") from error

    def _hash(self, file: Path) -> str:
        try:
            return digests_as_written(file.parent).get(file.name) or sha256_file(file)
        except OSError as error:
            raise ManifestError(f"cannot record {file}: {error.strerror}") from error


def require_own_folder(out: Path) -> None:
    """Raise ``ManifestError`` where a folder has content of others, or of a run that lacks its header.

    A start that was interrupted may have left nothing but its locks, its lease and its log: with these it is a run's,
    whatever lies beside them. Hidden files, and what an empty volume has, are no content.
    """
    if not out.is_dir() or (out / FILE_NAME).exists():
        return
    _require_no_parts(out)
    found = sorted(path.name for path in out.iterdir() if not path.name.startswith(".") and path.name != _OF_A_VOLUME)
    if found and not {*found} & {*_OF_A_START}:
        shown = ", ".join([*found[:_SHOWN], *(["…"] if len(found) > _SHOWN else [])])
        raise ManifestError(
            f"{out}: has {shown} and nothing of a run, which has its folder for itself; name a new or an empty folder "
            "in --out"
        )


def _require_no_parts(out: Path) -> None:
    if found := [name for name in _PARTS if (out / name).exists()]:
        raise ManifestError(
            f"{out}: has {', '.join(found)} and no {FILE_NAME}, so that it is no run that could go on, and these might "
            "be lost; choose another --out, or move them away"
        )


def read_header(out: Path) -> RunHeader:
    """Return what ``OUT/manifest.json`` says; raise ``ManifestError`` where there is none that can be used."""
    path = out / FILE_NAME
    try:
        content = read_json(path)
    except (FileNotFoundError, NotADirectoryError) as error:
        is_what = "holds no run" if out.is_dir() else "is a file" if os.path.exists(out) else "is not there"
        raise ManifestError(f"{out} {is_what}: expected the folder of a run, in which {FILE_NAME} lies") from error
    except (OSError, ValueError) as error:
        raise ManifestError(
            f"cannot read {path}: {error}; restore it from a copy, for without it the run cannot go on; what it has "
            "trained and reported is in the folder all the same"
        ) from error
    if content.get("format") != FORMAT:
        found = content.get("format")
        raise ManifestError(f"{path}: expected manifest format {FORMAT}, found {found}; choose another --out")
    if missing := [name for name in RunHeader.__annotations__ if name not in content]:
        raise ManifestError(f"{path}: has no {', '.join(missing)}; restore it from a copy, or choose another --out")
    return cast(RunHeader, content)


def changed_files(out: Path, entry: StageEntry) -> list[str]:
    """Return what is wrong with the files of a stage, one phrase for each file that is gone or has changed."""
    wrong = []
    for name, digest in entry.files.items():
        path = out / name
        if not path.is_file():
            wrong.append(f"{name} is gone")
        elif sha256_file(path) != digest:
            wrong.append(f"{name} has changed")
    return wrong


def _read_stages(out: Path) -> tuple[list[StageEntry], str]:
    """Return the entries of the complete stages and the newest one's SHA-256; raise where the chain is broken."""
    entries, last, faults = scan_stages(out, sha256_file(out / FILE_NAME))
    if faults:
        raise ManifestError(
            f"the run in {out} cannot go on: {faults[0].subject}: {faults[0].found}; restore it from a copy, or "
            "start in a new --out (`waymark audit` lists everything that is wrong)"
        )
    return entries, last


def _new_header(recipe: Recipe) -> RunHeader:
    return {
        "format": FORMAT,
        "config_hash": config_hash(recipe),
        "config": resolved(recipe),
        "model": model_record(recipe.policy),
        "data": data_record(recipe),
        "seeds": {
            "run": recipe.run.seed,
            "sites": demonstrated_sites(recipe).seed,
            "evaluation": recipe.run.evaluation.seed,
        },
        "versions": versions(),
        "created": _now(),
    }


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
