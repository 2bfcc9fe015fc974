"""Every code of a failure, once: its kind and its remedy.

Owns the codes. Invariant: no two have one name. A remedy continues the sentence "What to do: ...".
"""

from __future__ import annotations

from records.failures import FailureCode, FailureKind


def _infra(name: str, remedy: str) -> FailureCode:
    return FailureCode(name, FailureKind.INFRA, remedy)


def _task(name: str, remedy: str) -> FailureCode:
    return FailureCode(name, FailureKind.TASK, remedy)


def _policy(name: str, remedy: str) -> FailureCode:
    return FailureCode(name, FailureKind.POLICY, remedy)


def _judge(name: str, remedy: str) -> FailureCode:
    return FailureCode(name, FailureKind.JUDGE, remedy)


_MACHINE = "look at the free memory and the load of the rollout machines"
_SITE_UP = "look at the site server: is it up, and does it answer on its port?"
_TASK_FILE = "correct the task, or leave it out"
_FEWER = "lower rollout.contexts_per_worker"

# The browser and its pages.
BROWSER_LAUNCH_FAILED = _infra(
    "browser_launch_failed", "run `waymark doctor`: Chromium does not start on the rollout machines"
)
BROWSER_CRASHED = _infra("browser_crashed", _MACHINE)
BROWSER_ERROR = _infra("browser_error", "read what Playwright said, in the last failure's detail")
PAGE_MEMORY = _infra(
    "page_memory", "look at the page that the failure names, and raise browser.page_memory_mb if it needs so much"
)
PAGE_FLOOD = _infra(
    "page_flood", "look at the page that the failure names: it says more than the browser's driver can take"
)
PAGE_TOO_LARGE = _infra("page_too_large", "look at the page that the failure names; its text is beyond every limit")
PAGE_SCRIPT_FAILED = _infra("page_script_failed", "look at the page that the failure names, and report it")
PAGE_REPLY_MALFORMED = _infra(
    "page_reply_malformed", "look at the page that the failure names: a script of it speaks in our script's place"
)
POPUP_STORM = _infra("popup_storm", "look at the page that the failure names: it opens tabs without end")
PAGES_MISSING = _infra("pages_missing", "run `make setup`, which installs MiniWoB++'s pages")

# An episode's deadlines.
STEP_TIMEOUT = _infra("step_timeout", f"{_FEWER}, or raise the deadline that the failure names")
EPISODE_DEADLINE = _infra("episode_deadline", f"{_FEWER}, or raise rollout.episode_deadline_s")

# The sites.
SITE_UNREACHABLE = _infra("site_unreachable", _SITE_UP)
SITE_ERROR = _infra("site_error", "look at the log of the sites: they answer with server errors")
SITE_TIMEOUT = _infra("site_timeout", "look at the load of the sites: they answer too late")
SITE_CONTROL_REFUSED = _infra("site_control_refused", "end other servers on the sites' port, and start again")
SITE_SESSION_LOST = _infra("site_session_lost", "look at the log of the sites: was their server restarted?")
SITE_API_REFUSED = _infra("site_api_refused", "look at the account of the sites' administrator and its rights")
SITE_API_UNEXPECTED = _infra(
    "site_api_unexpected", "look at the version of the sites: their interface answers otherwise"
)
LOGIN_FAILED = _infra("login_failed", "look at the sites' accounts (`waymark check RECIPE`) and their log-in pages")
SESSION_EXPIRED = _infra(
    "session_expired",
    "look at how long the sites keep a session, and raise environments.webarena.login_margin_s; a back office ends "
    "other sessions of an account at each log-in unless admin/security/admin_account_sharing is 1",
)
RESET_FAILED = _infra("reset_failed", "look at the reset server or command of the deployment that the failure names")
LEASE_LOST = _infra("lease_lost", "raise environments.webarena.lease_hold_s, or give the episodes less to do")

# Rollout workers.
WORKER_NOT_STARTED = _infra("worker_not_started", "look at the workers' logs: what did they fail to build?")
WORKER_DIED = _infra(
    "worker_died", "look at the free memory of the rollout machines, and lower rollout.contexts_per_worker"
)
PREEMPTED = _infra("preempted", "nothing: its node went away, and the episode is played again without counting")
WORKER_HUNG = _infra("worker_hung", f"{_FEWER}, or raise rollout.hang_timeout_s on a busy machine")
WORKER_STALLED = _infra("worker_stalled", f"{_FEWER}, or raise rollout.loop_lag_limit_s on a busy machine")
NODE_SERVICE_LOST = _infra(
    "node_service_lost", "look at the workers' logs: what they play on does not start, or not answer, on their node"
)
NOT_SENT = _infra("not_sent", "look at the workers' logs: they take no further episodes")
SHARD_NOT_WRITTEN = _infra("shard_not_written", "make room on the disk that holds the run folder")
RUN_FOLDER_NOT_SHARED = _infra(
    "run_folder_not_shared",
    "mount the run folder on the node that the failure names, or name the nodes that have it in "
    "run.resources.rollout_nodes",
)
INTERRUPTED = _infra("interrupted", "look at the workers' logs: why did the episode not come to its end?")
CANCELLED = _infra("cancelled", "nothing: the worker was told to stop")
UNEXPECTED = _infra("unexpected", "read the workers' logs and report it: it is a mistake of Waymark's or of a plug-in")
FAILURE_BUDGET_EXCEEDED = _infra("failure_budget_exceeded", "see why the run stopped")
STALLED = _infra("stalled", "look at the workers' logs: nothing moved any more")

# Tasks.
BAD_START_URL = _task("bad_start_url", _TASK_FILE)
UNKNOWN_SITE = _task("unknown_site", _TASK_FILE)
UNKNOWN_PAGE = _task("unknown_page", _TASK_FILE)
UNKNOWN_FUNCTION = _task("unknown_function", _TASK_FILE)
EVALUATION_INVALID = _task("evaluation_invalid", _TASK_FILE)
EVALUATION_URL_REFUSED = _task("evaluation_url_refused", _TASK_FILE)
LOCATOR_NEEDS_BROWSER = _task("locator_needs_browser", "play it in a real browser")
NEEDS_BROWSER = _task("needs_browser", "play it in the environment `embedded`")
MALFORMED_MILESTONE = _task("malformed_milestone", _TASK_FILE)
PROMPT_TOO_LONG = _task("prompt_too_long", "raise policy.max_prompt_tokens")
NO_SITE = _task("no_site", "give a deployment that has the task's sites, and a reset if the task changes them")
HOSTS_CLASH = _task("hosts_clash", "give the sites different host names")
NO_DEMONSTRATOR = _task("no_demonstrator", "leave it out of the demonstrations: its template has no expert")
DEMONSTRATOR_LOST = _task("demonstrator_lost", "look at the template's expert: what it looks for is not on the page")
DEMONSTRATOR_ENDED = _task("demonstrator_ended", "let the template's expert end with an exit")

# The policy.
NO_POLICY = _policy("no_policy", "give the workers a policy")
DEADLINE = _policy("deadline", "look at the policy servers: are they up, and fast enough for policy.deadline_s?")
REQUEST_REFUSED = _policy("request_refused", "lower policy.max_prompt_tokens, or serve a model with a longer context")
SERVERS_LOST = _policy(
    "servers_lost", "look at the logs of the policy servers, and start the same command again to bring them back"
)
WRONG_VERSION = _policy(
    "wrong_version", "start the same command again, which publishes the weights to every policy server"
)

# Judges.
NO_JUDGE = _judge("no_judge", "configure an LLM judge, or leave the tasks out that need one")
JUDGE_DEADLINE = _judge("judge_deadline", "look at the evaluators and judge endpoints: verdicts come too late")
JUDGE_UNREACHABLE = _judge("judge_unreachable", "bring the judge's endpoint back")
JUDGE_TIMEOUT = _judge("judge_timeout", "choose a faster judge, or lower the number of episodes at a time")
JUDGE_ERROR = _judge("judge_error", "read what the judge's client raised, in the last failure's detail")
JUDGE_NONSENSE = _judge("judge_nonsense", "choose a judge model that answers yes or no")
NO_LABEL = _judge("no_label", "see which judge failed in the stage `label`, and label the rest: `waymark judge label`")
JUDGE_LIMITED = _judge("judge_limited", "lower the model's requests_per_minute in judges.llm.models, or ask for more")
JUDGE_REFUSED = _judge(
    "judge_refused",
    "look at the model's name, address and key in judges.llm.models, or at the token of judges.trained.url",
)
JUDGE_BLOCKED = _judge("judge_blocked", "ask a model whose provider does not block this content, or leave the task out")
JUDGE_OTHER_MODEL = FailureCode(
    "judge_other_model",
    FailureKind.JUDGE,
    "serve the model of judges.trained.folder at judges.trained.url, and start the same command again",
    ends_run=True,
)
JUDGE_BUDGET = FailureCode(
    "judge_budget",
    FailureKind.JUDGE,
    "raise judges.llm.budget_usd or budget_tokens and start the same command again, or ask a cheaper model",
    ends_run=True,
)
