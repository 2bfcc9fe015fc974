"""A published file of weights in a process that loads it: proven, then read tensor by tensor.

Owns ``WeightFile``. Invariants: what is read is the open file whose bytes had the checksum, also where its name means
another one by now; nothing holds the whole of it: a tensor is a view of the file's pages, which the processes of a
machine share and the kernel may take back. Names are those of the served model's own files, which the header tells
where the learner has others for them. Linux only, as vLLM is. It imports torch and safetensors.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedRandom, BufferedReader
from math import prod
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

Shapes = dict[str, tuple[int, ...]]
Opened = BufferedReader | BufferedRandom
"""An open file, of a folder or of memory."""


VIEWS = "views"
"""Where a file's header holds what ``views_to_text`` makes, if its names are not those of the model's own files."""


class NotPublished(ValueError):
    """A file that is not what was published."""


@dataclass(frozen=True)
class View:
    """A tensor that is a part of the tensor ``source``: its shape, and its strides and offset there, in elements."""

    source: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int

    @property
    def end(self) -> int:
        """Where in its source the tensor ends, in elements; 0 where it has no element."""
        last = sum((side - 1) * step for side, step in zip(self.shape, self.stride, strict=True))
        return self.offset + last + 1 if all(self.shape) else 0

    def of(self, source: torch.Tensor) -> torch.Tensor:
        """Return the tensor, of its source."""
        return source.as_strided(self.shape, self.stride, source.storage_offset() + self.offset)


Views = Mapping[str, View]


def views_to_text(views: Views) -> str:
    """Return what a file's header holds of ``views``."""
    return json.dumps({name: [v.source, v.shape, v.stride, v.offset] for name, v in views.items()})


def views_of(text: str, stored: Shapes) -> dict[str, View]:
    """Return the views that a text holds; raise ``NotPublished`` unless they are parts of what is ``stored``."""
    try:
        views = {
            str(name): View(str(source), _sides(shape), _sides(stride), *_sides([offset]))
            for name, (source, shape, stride, offset) in json.loads(text).items()
        }
        beyond = sorted(name for name, view in views.items() if view.end > prod(stored[view.source]))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise NotPublished(f"what was published tells its names wrongly: {type(error).__name__}: {error}") from error
    if beyond:
        raise NotPublished(f"what was published tells its names wrongly: {beyond[:3]} are not within it")
    return views


def misfit_of(own: Mapping[str, tuple[int, ...]], given: Mapping[str, tuple[int, ...]]) -> str:
    """Return what keeps ``given`` from being a model's ``own`` tensors, each of them; empty where nothing does.

    Where nothing is known of its own, everything fits.
    """
    if not own:
        return ""
    unknown, missing = sorted(set(given) - set(own)), sorted(set(own) - set(given))
    other = sorted(name for name in set(own) & set(given) if own[name] != given[name])
    if not (unknown or missing or other):
        return ""
    return f"unknown {unknown[:3]}, missing {missing[:3]}, of another shape {other[:3]}"


def _sides(numbers: Any) -> tuple[int, ...]:
    sides = tuple(int(number) for number in numbers)
    if any(side < 0 for side in sides):
        raise ValueError(f"{sides} is negative")
    return sides


@dataclass(frozen=True)
class WeightFile:
    """An open file of weights: the names and shapes of its tensors, and what its header says besides."""

    shapes: Shapes
    metadata: dict[str, str]
    _open: Any
    _views: Views

    def tensor(self, name: str) -> torch.Tensor:
        """Return a tensor as a view of the file, which stays valid when the file is closed."""
        view = self._views.get(name)
        tensor: torch.Tensor = self._open.get_tensor(name if view is None else view.source)
        return tensor if view is None else view.of(tensor)


@contextmanager
def proven(content: Opened, checksum: str) -> Iterator[WeightFile]:
    """Yield the weights in the open file ``content``, which is read from its beginning.

    Raises:
        NotPublished: its SHA-256 is not ``checksum``, or it is no safetensors file.
        OSError: it cannot be read.
    """
    content.seek(0)
    found = hashlib.file_digest(content, "sha256").hexdigest()
    if found != checksum:
        raise NotPublished(f"expected checksum {checksum[:12]}…, found {found[:12]}…; publish the weights again")
    try:
        opened = safe_open(f"/proc/self/fd/{content.fileno()}", "pt")
    except SafetensorError as error:
        raise NotPublished(f"what was published is not a safetensors file: {error}") from error
    with opened as tensors:
        shapes: Shapes = {name: tuple(tensors.get_slice(name).get_shape()) for name in sorted(tensors.keys())}
        metadata = dict(tensors.metadata() or {})
        views = views_of(metadata[VIEWS], shapes) if VIEWS in metadata else {}
        yield WeightFile({name: view.shape for name, view in views.items()} or shapes, metadata, tensors, views)
