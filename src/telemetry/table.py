"""Every metric of a run, once: its name, type, unit, labels and where it is recorded.

Owns the table; sinks, dashboard, alerts and the guide are made from it. Invariants: a label has listed
values, or names that settings and code give, at most ``Label.most`` of them; none is taken from a page or a model.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from records.episodes import Source, Termination
from records.failures import FailureKind
from records.roles import Role

OTHER = "other"
"""What a label says in place of a value that it may not have."""


class Type(StrEnum):
    """What Prometheus makes of a metric."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Place(StrEnum):
    """The processes that record a metric; those of Ray's actors reach Prometheus through Ray, as ``ray_NAME``."""

    WORKER = "rollout worker"
    SERVER = "policy server"
    JUDGE = "judge service"
    DRIVER = "driver"
    SITES = "sites"


_ON_RAY = frozenset({Place.WORKER, Place.SERVER, Place.JUDGE})


@dataclass(frozen=True, slots=True)
class Label:
    """A label with its ``values``; where it has none they are names from settings or code, ``most`` of them."""

    name: str
    values: tuple[str, ...] = ()
    most: int = 64


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric; ``text`` ends its help line, ``buckets`` are a histogram's upper bounds in its unit."""

    name: str
    type: Type
    unit: str
    place: Place
    text: str
    labels: tuple[Label, ...] = ()
    buckets: tuple[float, ...] = field(default=())

    @property
    def series(self) -> str:
        """Its name in Prometheus, without a histogram's ``_bucket``, ``_sum`` and ``_count``."""
        prefix = "ray_" if self.place in _ON_RAY else ""
        return f"{prefix}{self.name}{'_total' if self.type is Type.COUNTER else ''}"


RUN = Label("run")
"""The name of the run's folder, which every metric has."""
_ENVIRONMENT = Label("environment")
_SOURCE = Label("source", tuple(Source))
_MODEL = Label("model")
_SERVER = Label("server")
_SITE = Label("site")

_WAIT_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_LONG_S = (1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1200.0)

_TABLE: list[Metric] = []


def _metric(
    name: str, kind: Type, unit: str, place: Place, text: str, *labels: Label, buckets: tuple[float, ...] = ()
) -> Metric:
    _TABLE.append(Metric(f"waymark_{name}", kind, unit, place, text, labels, buckets))
    return _TABLE[-1]


def _counter(name: str, unit: str, place: Place, text: str, *labels: Label) -> Metric:
    return _metric(name, Type.COUNTER, unit, place, text, *labels)


def _gauge(name: str, unit: str, place: Place, text: str, *labels: Label) -> Metric:
    return _metric(name, Type.GAUGE, unit, place, text, *labels)


def _seconds(name: str, place: Place, text: str, *labels: Label, buckets: tuple[float, ...] = _WAIT_S) -> Metric:
    return _metric(f"{name}_seconds", Type.HISTOGRAM, "seconds", place, text, *labels, buckets=buckets)


STEPS = _counter(
    "steps", "steps", Place.WORKER, "Steps played, by whether their text was an action.",
    _ENVIRONMENT, _SOURCE, Label("action", ("read", "unread")),
)  # fmt: skip
ROLLOUT_STEPS = _counter(
    "rollout_steps", "steps", Place.WORKER,
    "Steps of rollouts that are durable, by how many versions their policy was behind the one that learns from them.",
    _ENVIRONMENT, Label("staleness", ("0", "1")),
)  # fmt: skip
PROMPT_TOKENS = _counter("prompt_tokens", "tokens", Place.WORKER, "Tokens of prompts.", _ENVIRONMENT, _SOURCE)
ACTION_TOKENS = _counter("action_tokens", "tokens", Place.WORKER, "Tokens of actions.", _ENVIRONMENT, _SOURCE)
EPISODES = _counter(
    "episodes", "episodes", Place.WORKER, "Episodes with a verdict that are durable, by how they ended.",
    _ENVIRONMENT, _SOURCE, Label("end", tuple(Termination)), Label("outcome", ("success", "failure")),
)  # fmt: skip
ATTEMPT_FAILURES = _counter(
    "attempt_failures", "attempts", Place.WORKER, "Attempts at an episode without a verdict, by their failure.",
    _ENVIRONMENT, _SOURCE, Label("kind", tuple(FailureKind)), Label("code", most=128),
)  # fmt: skip
EPISODE_SECONDS = _seconds(
    "episode", Place.WORKER, "From the reset to the verdict.", _ENVIRONMENT, _SOURCE, buckets=_LONG_S
)
RESET_SECONDS = _seconds("reset", Place.WORKER, "One reset.", _ENVIRONMENT)
STEP_SECONDS = _seconds("step", Place.WORKER, "One action in the environment.", _ENVIRONMENT)
POLICY_SECONDS = _seconds("policy", Place.WORKER, "One decision as the worker waits for it.", _ENVIRONMENT, _SOURCE)
JUDGE_SECONDS = _seconds("judge", Place.WORKER, "One verdict.", _ENVIRONMENT)
SHARD_SECONDS = _seconds("shard", Place.WORKER, "Until a finished episode is durable.", _ENVIRONMENT)

SERVED_VERSION = _gauge("served_version", "phase", Place.SERVER, "Version of the weights that it serves.", _SERVER)
SERVER_QUEUE = _gauge(
    "server_requests", "requests", Place.SERVER, "Requests that run and that wait.",
    _SERVER, Label("state", ("running", "waiting")),
)  # fmt: skip
SERVER_TOKENS = _counter(
    "server_tokens", "tokens", Place.SERVER, "Tokens read, those of them that were kept, and tokens made.",
    _SERVER, Label("part", ("prompt", "kept", "new")),
)  # fmt: skip

JUDGE_QUESTIONS = _counter(
    "judge_questions", "questions", Place.JUDGE, "Questions to a language model, by where the answer came from.",
    _MODEL, Label("answer", ("model", "cache", "none")),
)  # fmt: skip
JUDGE_REQUESTS = _counter("judge_requests", "requests", Place.JUDGE, "Requests sent to a language model.", _MODEL)
JUDGE_RETRIES = _counter("judge_retries", "requests", Place.JUDGE, "Requests that were sent again.", _MODEL)
JUDGE_NONSENSE = _counter("judge_nonsense", "replies", Place.JUDGE, "Replies that do not fit.", _MODEL)
JUDGE_TOKENS = _counter(
    "judge_tokens", "tokens", Place.JUDGE, "Tokens of a language model.", _MODEL, Label("part", ("input", "output"))
)
JUDGE_COST = _counter("judge_cost_usd", "US dollars", Place.JUDGE, "Paid for a language model.", _MODEL)
JUDGE_REQUEST_SECONDS = _seconds("judge_request", Place.JUDGE, "One request to a language model.", _MODEL)

PHASE = _gauge("phase", "phase", Place.DRIVER, "The phase that runs.")
STAGE = _gauge("stage", "1 or 0", Place.DRIVER, "1 for the stage that runs.", Label("stage"))
STAGE_SECONDS = _gauge(
    "stage_seconds", "seconds", Place.DRIVER, "How long the newest stage of a kind took.", Label("stage")
)
QUEUE = _gauge(
    "stage_episodes", "episodes", Place.DRIVER, "Episodes of the stage that runs, by what became of them.",
    Label("state", ("pending", "leased", "completed", "failed")),
)  # fmt: skip
WORKERS = _gauge("workers", "workers", Place.DRIVER, "Rollout workers that take episodes.")
AWAITED_NODES = _gauge(
    "processes_without_node", "processes", Place.DRIVER, "Processes of a role that wait for a node.",
    Label("role", (Role.LEARNER, Role.SERVER, Role.WORKER)),
)  # fmt: skip
WORKER_LOSSES = _counter("worker_losses", "workers", Place.DRIVER, "Rollout workers that died or hung.")
REPLAY = _gauge(
    "replay", "episodes or shards", Place.DRIVER, "What the replay buffer holds.", Label("part", ("episodes", "shards"))
)
REPLAYED = _gauge("replayed_episodes", "episodes", Place.DRIVER, "Earlier successes that the newest phase learns from.")
LOSS = _gauge(
    "loss", "nats or squared error", Place.DRIVER, "The newest loss of a model.",
    Label("model", ("actor", "value", "potential")),
)  # fmt: skip
UPDATES = _gauge(
    "learner_updates", "updates", Place.DRIVER, "Updates of the training that runs.",
    Label("state", ("done", "planned")),
)  # fmt: skip
LEARNED_TOKENS = _gauge("learner_tokens", "tokens", Place.DRIVER, "Tokens that the training that runs learned from.")
SUCCESS = _gauge("success_share", "share", Place.DRIVER, "Held-out success of the newest evaluation.", Label("split"))
PUBLISHED_VERSION = _gauge("published_version", "phase", Place.DRIVER, "Version that was published last.")
PROBE_GAP = _gauge(
    "probe_gap_nats",
    "nats",
    Place.DRIVER,
    "Largest gap of a server's log-probabilities to the learner's.",
    _SERVER,
)

SITE_REQUESTS = _counter(
    "site_requests", "requests", Place.SITES, "Requests to an embedded site, by the class of the answer's status.",
    _SITE, Label("status", ("1xx", "2xx", "3xx", "4xx", "5xx")),
)  # fmt: skip
SITE_SECONDS = _seconds("site", Place.SITES, "One answer of an embedded site.", _SITE)
SITE_SESSIONS = _gauge("site_sessions", "sessions", Place.SITES, "Open sessions.")

METRICS: tuple[Metric, ...] = tuple(_TABLE)
"""All of them, in the order of the guide."""


def table_page() -> str:
    """Return the table as Markdown."""
    rows = [
        f"| `{m.series}` | {m.type} | {m.unit} | {', '.join(map(_label_text, m.labels))} | {m.place} | {m.text} |"
        for m in METRICS
    ]
    head = ["| metric | type | unit | labels beside `run` | recorded by | what it says |", "|---|---|---|---|---|---|"]
    return "\n".join([*head, *rows])


def _label_text(label: Label) -> str:
    return f"`{label.name}`" + (f" ({', '.join(label.values)})" if label.values else f" (at most {label.most})")
