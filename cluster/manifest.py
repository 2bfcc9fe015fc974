"""The run manifest ``OUT/manifest.json``: which stages of which phases are complete, and what they left behind.

Owns resuming. Invariants: a stage is done only when its entry is there; an entry is written after
everything it names is durable, in one atomic replacement; entries are never changed; a run goes on
only under the very recipe it was started with. Phase 0 is the warm start and the evaluation before
RL; phases 1..N follow. The stages' names and order are the controller's.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from cluster.config import Recipe, config_hash, flatten, resolved
from cluster.durable import sha256_file, write_atomic
from cluster.errors import ManifestError
from cluster.versions import versions

FORMAT = 1
FILE_NAME = "manifest.json"


@dataclass(frozen=True)
class StageEntry:
    """A complete stage: its result as JSON, the SHA-256 of each file it left, seconds it took, when it ended (UTC)."""

    data: Any
    files: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    finished: str = ""


class RunManifest:
    """The manifest of one run folder, in memory and on disk."""

    def __init__(self, out: Path, header: dict[str, Any], entries: dict[tuple[int, str], StageEntry]) -> None:
        self.out = out
        self.header = header
        self._entries = entries

    @classmethod
    def open(cls, out: Path, recipe: Recipe, resume: Literal["auto", "never"] = "auto") -> RunManifest:
        """Start a manifest in an empty folder, or continue the one there.

        Raises ``ManifestError`` when a run is there and ``resume`` is ``never``, when it was made
        under another recipe (naming the keys that differ), or when it cannot be read.
        """
        path = out / FILE_NAME
        if not path.exists():
            manifest = cls(out, _new_header(recipe), {})
            manifest._write({})
            return manifest
        if resume == "never":
            raise ManifestError(
                f"{out} already holds a run; choose another --out, or use --resume auto to go on with it"
            )
        manifest = cls.read(out)
        manifest._require_recipe(recipe)
        return manifest

    @classmethod
    def read(cls, out: Path) -> RunManifest:
        """Read the manifest of a run folder without checking it against a recipe."""
        path = out / FILE_NAME
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ManifestError(f"cannot read {path}: {error}; without it the run in {out} cannot go on") from error
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            found = content.get("format") if isinstance(content, dict) else type(content).__name__
            raise ManifestError(f"{path}: expected manifest format {FORMAT}, found {found}; choose another --out")
        stages = content.pop("stages")
        entries = {
            (int(phase), stage): StageEntry(**entry)
            for phase, named in stages.items()
            for stage, entry in named.items()
        }
        return cls(out, content, entries)

    def stage_done(self, phase: int, stage: str) -> bool:
        """Return whether this stage is complete."""
        return (phase, stage) in self._entries

    def data(self, phase: int, stage: str) -> Any:
        """Return what the stage was completed with; raise ``KeyError`` where it is not complete."""
        return self.entry(phase, stage).data

    def entry(self, phase: int, stage: str) -> StageEntry:
        """Return a complete stage's entry; raise ``KeyError`` naming what is complete where this one is not."""
        try:
            return self._entries[phase, stage]
        except KeyError:
            raise KeyError(f"phase {phase} stage {stage!r} is not complete; complete are {self.stages()}") from None

    def stages(self) -> list[tuple[int, str]]:
        """Return the complete stages in the order in which they were completed."""
        return list(self._entries)

    def complete_stage(
        self, phase: int, stage: str, data: Any = None, files: Sequence[Path] = (), seconds: float = 0.0
    ) -> None:
        """Record a stage as done, durably. ``data`` is JSON; ``files`` lie under the run folder and are hashed.

        Raises ``ManifestError`` when the stage is already there, when ``data`` is not JSON, or when
        a file is missing or lies elsewhere.
        """
        if self.stage_done(phase, stage):
            raise ManifestError(f"phase {phase} stage {stage!r} is already complete; entries are never changed")
        try:
            stored = json.loads(json.dumps(data, allow_nan=False))
        except (TypeError, ValueError) as error:
            raise ManifestError(f"phase {phase} stage {stage!r}: its data is not JSON: {error}") from error
        hashes = {self._relative(file): self._hash(file) for file in files}
        entries = {**self._entries, (phase, stage): StageEntry(stored, hashes, seconds, _now())}
        self._write(entries)
        self._entries = entries

    def check_files(self, phase: int, stage: str) -> None:
        """Raise ``ManifestError`` naming the files of a stage that are gone or have changed since it was completed."""
        wrong = []
        for name, digest in self.entry(phase, stage).files.items():
            path = self.out / name
            if not path.is_file():
                wrong.append(f"{name} is gone")
            elif sha256_file(path) != digest:
                wrong.append(f"{name} has changed")
        if wrong:
            raise ManifestError(
                f"{self.out}, phase {phase} stage {stage!r}: {'; '.join(wrong)}; start again in a new --out"
            )

    @property
    def config_hash(self) -> str:
        """Hash of the recipe this run was started with."""
        return str(self.header["config_hash"])

    @property
    def seconds(self) -> dict[int, dict[str, float]]:
        """Seconds of each complete stage: ``{phase: {stage: seconds}}``."""
        table: dict[int, dict[str, float]] = {}
        for (phase, stage), entry in self._entries.items():
            table.setdefault(phase, {})[stage] = entry.seconds
        return table

    def _require_recipe(self, recipe: Recipe) -> None:
        if config_hash(recipe) == self.config_hash:
            return
        before, now = flatten(self.header["config"]), flatten(resolved(recipe))
        gone = object()
        differing = [key for key in sorted({*before, *now}) if before.get(key, gone) != now.get(key, gone)]
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
            return sha256_file(file)
        except OSError as error:
            raise ManifestError(f"cannot record {file}: {error.strerror}") from error

    def _write(self, entries: dict[tuple[int, str], StageEntry]) -> None:
        stages: dict[str, dict[str, Any]] = {}
        for (phase, stage), entry in sorted(entries.items(), key=lambda item: item[0][0]):
            stages.setdefault(str(phase), {})[stage] = vars(entry)
        write_atomic(self.out / FILE_NAME, json.dumps({**self.header, "stages": stages}, indent=1) + "\n")


def _new_header(recipe: Recipe) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "config_hash": config_hash(recipe),
        "config": resolved(recipe),
        "seeds": {"run": recipe.run.seed, "sites": recipe.sites.seed, "evaluation": recipe.run.evaluation.seed},
        "versions": versions(),
        "created": _now(),
    }


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
