"""Settings of the policy: which model, how it reads and answers, how it is served.

Owns ``PolicySettings`` and ``TinyShape``. Imports neither torch nor ray, so the command line stays fast.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from records.bounds import SettingError, above, at_least, one_of, require, times
from records.stores.address import check_uri, is_uri
from records.stores.store import StoreError

DEVICE = re.compile(r"cpu|mps|cuda(:\d{1,3})?")
"""Torch devices that a recipe may name."""
PLANES = ("file", "broadcast")
"""How published weights come to the servers (``policy.data_planes``)."""
DTYPE_BYTES = {"float32": 4, "bfloat16": 2}
"""Bytes of one served weight, by ``policy.dtype``."""
_REVISION = re.compile(r"|\w[\w./-]{0,199}")
TINY = "tiny"
"""The name of the preset that is built here, in place of a model."""
FORMATS = ("waymark", "waymark_milestones", "chat", "chat_milestones", "webrl")
"""Prompt formats that a recipe may name."""
SMALLEST_VOCABULARY = 531
"""Tokens that the tiny tokenizer has before it learns any: bytes, digits, the grammar, markers."""


@dataclass(frozen=True)
class TinyShape:
    """Sizes of the ``tiny`` preset's decoder; the defaults make 0.84 M parameters with 1,536 tokens."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    width: int = 128
    """Size of the hidden state."""
    layers: int = 3
    """Number of decoder layers."""
    heads: int = 4
    """Attention heads; each is ``width // heads`` wide."""
    key_value_heads: int = 4
    """Heads of keys and values; must divide ``heads``."""
    mlp_width: int = 384
    """Inner size of the feed-forward part."""
    vocab_size: int = 1536
    """Upper bound of the trained tokenizer's size, in tokens."""
    context_tokens: int = 2048
    """Longest prompt and reply together, in tokens."""
    initializer_std: float = 0.02
    """Standard deviation of the initial weights."""
    induction_heads: bool = False
    """Begin with heads that copy: that find where the last tokens stood before (docs/decisions/0182)."""

    def __post_init__(self) -> None:
        """Refuse sizes that make no decoder; rotary positions turn pairs of a head's numbers."""
        at_least(self, 1, "width", "layers", "heads", "key_value_heads", "mlp_width", "context_tokens")
        at_least(self, SMALLEST_VOCABULARY, "vocab_size")
        above(self, 0, "initializer_std")
        pairs = f"a multiple of twice heads ({self.heads}), so that each head has an even width"
        require(self.width % (2 * self.heads) == 0, "width", pairs, self.width)
        dividing = f"a divisor of heads ({self.heads})"
        require(self.heads % self.key_value_heads == 0, "key_value_heads", dividing, self.key_value_heads)
        room = self.layers >= 2 and self.key_value_heads == self.heads >= 4 and self.width // self.heads >= 16
        wanted = "two layers, four heads with keys of their own (key_value_heads) and 16 numbers a head, or false"
        require(room or not self.induction_heads, "induction_heads", wanted, self.induction_heads)


@dataclass(frozen=True)
class PolicySettings:
    """The policy model and its servers."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}
    operational: ClassVar[tuple[str, ...]] = (
        "publication", "weights_store", "hang_timeout_s", "attempt_timeout_s", "deadline_s", "publish_timeout_s",
    )  # fmt: skip
    unset: ClassVar[Mapping[str, object]] = {"thinking": False}

    model: str = TINY
    """What the run starts from: ``tiny`` (built from ``tiny`` below), or the model in a folder or on the Hugging Face
    hub, as it is (docs/guides/models.md)."""
    revision: str = ""
    """Commit, tag or branch of a model on the hub; empty takes the newest commit. A run keeps to what it began with."""
    tiny: TinyShape = field(default_factory=TinyShape)
    """Sizes of the preset; used where ``model`` is ``tiny``."""
    dtype: str = "float32"
    """Precision of the served weights: ``float32`` or ``bfloat16``."""
    device: str = "cpu"
    """Torch device of the servers."""
    prompt_format: str = "waymark"
    """``waymark`` (compact), ``chat`` (turns by the model's own chat template, for models trained on dialogue),
    ``waymark_milestones`` or ``chat_milestones`` (the same with the milestone state, docs/guides/planning.md), or
    ``webrl`` (for checkpoints of that lineage)."""
    instructions: bool = False
    """Open each prompt but a ``webrl`` one with a description of the actions, for models not trained on them."""
    thinking: bool = False
    """Replies think first: ``<think>a thought</think><answer>one action</answer>``. Thoughts stay in later prompts and
    are learned from like actions (docs/guides/webagent-r1.md); not with ``webrl``."""
    max_prompt_tokens: int = 512
    """Longest prompt; beyond it the page loses its last lines."""
    max_new_tokens: int = 64
    """Longest reply, the stop token included."""
    backend: str = "torch"
    """What serves the policy: ``torch``, ``vllm``, or the name or ``module:name`` of your own."""
    options: object = field(default_factory=dict)
    """The backend's own settings, see ``policy.options``."""
    publication: str = "file"
    """How weights come to the servers: each reads the ``file`` where the run keeps it, or the learner sends it to all
    of them at once by ``broadcast`` (docs/guides/vllm.md)."""
    weights_store: str = ""
    """A store of the run's own for published weights, for servers that do not see the run folder: a folder, or an
    address such as ``s3://bucket/folder``. Empty: they are where the run is."""
    hang_timeout_s: float = 30.0
    """Silence, in seconds, after which a server is killed and started afresh; well below ``deadline_s``."""
    attempt_timeout_s: float = 20.0
    """Longest wait for one attempt at a completion, in seconds."""
    deadline_s: float = 90.0
    """Longest wait for a completion with all its retries, in seconds; covers a server's restart."""
    publish_timeout_s: float = 120.0
    """Longest wait for one server to take new weights and answer the probe, in seconds."""
    probe_tolerance: float | None = None
    """Largest difference of one log-probability between learner and server that a publication accepts, in nats; unset
    is 0.001 where both compute in ``float32``, else 0.25."""
    probe_mean_tolerance: float | None = None
    """The same of all the probes' log-probabilities on average; unset is 0.0001 where both compute in ``float32``, else
    0.05."""

    def __post_init__(self) -> None:
        """Refuse choices that do not exist, counts and waits of nothing."""
        one_of(self, "dtype", tuple(DTYPE_BYTES))
        one_of(self, "prompt_format", FORMATS)
        webrl = "false with prompt_format 'webrl', whose replies are actions alone"
        require(not self.thinking or self.prompt_format != "webrl", "thinking", webrl, self.thinking)
        hub = "empty, or a commit, tag or branch of the model on the Hugging Face hub"
        require(_REVISION.fullmatch(self.revision) is not None, "revision", hub, self.revision)
        require(DEVICE.fullmatch(self.device) is not None, "device", "cpu, cuda, cuda:N or mps", self.device)
        require(
            self.model != "", "model", "tiny, a policy folder, or a model's name on the Hugging Face hub", self.model
        )
        one_of(self, "publication", PLANES)
        _check_store(self.weights_store, self.publication)
        require(self.backend != "", "backend", "the name of a policy backend, or module:name", self.backend)
        at_least(self, 1, "max_prompt_tokens", "max_new_tokens")
        for limit in ("probe_tolerance", "probe_mean_tolerance"):
            if getattr(self, limit) is not None:
                above(self, 0, limit)
        times(self)

    @property
    def dialogue(self) -> bool:
        """Whether prompts are turns by the model's own chat template."""
        return self.prompt_format.startswith("chat")

    @property
    def shows_milestones(self) -> bool:
        """Whether prompts show the milestone state."""
        return self.prompt_format.endswith("_milestones")


def _check_store(place: str, publication: str) -> None:
    """Refuse a store of weights that is none, or that nobody reads."""
    require(not place or publication == "file", "weights_store", "empty where publication is broadcast", place)
    if is_uri(place):
        try:
            check_uri(place)
        except StoreError as error:
            raise SettingError("weights_store", str(error)) from error
