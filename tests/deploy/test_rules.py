"""Every example keeps every rule, and every rule refuses the mistake that it is about."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.deploy.manifests import Document, example, example_names
from tests.deploy.rules import RULES, breaches

CLUSTER, JOB, RUN = ("RayCluster", "waymark"), ("RayJob", "waymark"), ("RayJob", "waymark-first")
HEAD = ("spec", "headGroupSpec")
BROWSER, POLICY, LEARNER = (("spec", "workerGroupSpecs", number) for number in range(3))
POD, CONTAINER = ("template", "spec"), ("template", "spec", "containers", 0)
SUBMITTER = ("spec", "submitterPodTemplate", "spec")
GONE = object()


def policy(name: str) -> tuple[str, str]:
    return "NetworkPolicy", name


_FROM_HEAD = [{"from": [{"podSelector": {"matchLabels": {"app.kubernetes.io/component": "head"}}}]}]
_BROWSERS_ALONE = {"matchLabels": {"app.kubernetes.io/part-of": "waymark", "app.kubernetes.io/component": "browser"}}
_GPU_NODES = [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]
_ACCOUNTS = [{"secretRef": {"name": "waymark-accounts", "optional": True}}]

# (the rule, what is changed, where, its new value)
MISTAKES: list[tuple[str, tuple[str, str], tuple[Any, ...], Any]] = [
    ("names_are_short_labels", CLUSTER, ("metadata", "name"), "w" * 54),
    ("names_are_short_labels", JOB, ("metadata", "name"), "1st-run"),
    ("every_group_has_a_container", CLUSTER, (*BROWSER, *POD, "containers"), []),
    ("replicas_lie_between_their_bounds", CLUSTER, (*POLICY, "minReplicas"), 3),
    ("replicas_lie_between_their_bounds", CLUSTER, (*POLICY, "replicas"), 3),
    ("autoscaler_v2_is_on_and_said_once", CLUSTER, ("spec", "enableInTreeAutoscaling"), GONE),
    ("autoscaler_v2_is_on_and_said_once", CLUSTER, ("spec", "autoscalerOptions", "version"), "v1"),
    (
        "autoscaler_v2_is_on_and_said_once",
        CLUSTER,
        (*HEAD, *CONTAINER, "env"),
        [{"name": "RAY_enable_autoscaler_v2", "value": "1"}],
    ),
    (
        "autoscaler_v2_is_on_and_said_once",
        CLUSTER,
        ("spec", "autoscalerOptions", "env"),
        [{"name": "KUBERAY_GEN_AUTOSCALER_START_CMD", "value": "true"}],
    ),
    ("idle_times_are_not_negative", CLUSTER, (*BROWSER, "idleTimeoutSeconds"), -1),
    ("scaled_pods_are_never_restarted", CLUSTER, (*BROWSER, *POD, "restartPolicy"), "Always"),
    ("scaled_groups_are_not_suspended", CLUSTER, (*LEARNER, "suspend"), True),
    ("resources_are_said_once", CLUSTER, (*HEAD, "resources"), {"CPU": "4"}),
    ("labels_of_nodes_are_no_start_parameter", CLUSTER, (*BROWSER, "rayStartParams", "labels"), "role=browser"),
    ("tokens_need_a_named_version_of_ray", CLUSTER, ("spec", "rayVersion"), GONE),
    ("tokens_need_a_named_version_of_ray", CLUSTER, ("spec", "rayVersion"), "2.51.1"),
    (
        "redis_is_named_in_its_options_alone",
        CLUSTER,
        (*HEAD, *CONTAINER, "env"),
        [{"name": "RAY_REDIS_ADDRESS", "value": "redis:6379"}],
    ),
    ("redis_is_named_in_its_options_alone", CLUSTER, (*HEAD, "rayStartParams", "redis-password"), "$REDIS_PASSWORD"),
    (
        "kuberays_own_variables_are_not_set",
        CLUSTER,
        (*LEARNER, *CONTAINER, "env"),
        [{"name": "RAY_NODE_TYPE_NAME", "value": "learner"}],
    ),
    ("a_job_has_one_cluster", RUN, ("spec", "clusterSelector"), {"ray.io/cluster": ""}),
    ("a_job_has_one_cluster", JOB, ("spec", "clusterSelector"), {"ray.io/cluster": "waymark"}),
    ("a_job_has_one_cluster", JOB, ("spec", "rayClusterSpec", "upgradeStrategy"), {"type": "Recreate"}),
    ("submission_modes_exist", JOB, ("spec", "submissionMode"), "k8sJobMode"),
    ("submission_modes_exist", JOB, ("spec", "submissionMode"), "SidecarMode"),
    ("a_job_is_retried_with_a_cluster_of_its_own", RUN, ("spec", "backoffLimit"), 2),
    ("a_job_is_retried_with_a_cluster_of_its_own", JOB, ("spec", "backoffLimit"), -1),
    ("a_refused_run_may_end_its_retries", JOB, ("spec", "entrypoint"), "waymark train r.yaml --out /runs/first"),
    ("a_refused_run_may_end_its_retries", JOB, ("metadata", "name"), "another"),
    ("a_refused_run_may_end_its_retries", ("Role", "job-retries"), ("rules", 0, "resourceNames"), ["other"]),
    ("a_refused_run_may_end_its_retries", ("RoleBinding", "job-retries"), ("subjects", 0, "name"), "default"),
    ("a_time_to_live_needs_a_shutdown", JOB, ("spec", "shutdownAfterJobFinishes"), False),
    ("a_time_to_live_needs_a_shutdown", RUN, ("spec", "suspend"), True),
    ("deadlines_are_positive", JOB, ("spec", "preRunningDeadlineSeconds"), 0),
    ("runtime_environments_are_mappings", JOB, ("spec", "runtimeEnvYAML"), "pip: [torch"),
    ("runtime_environments_are_mappings", JOB, ("spec", "runtimeEnvYAML"), "- pip"),
    ("runtime_environments_are_mappings", JOB, ("spec", "runtimeEnvYAML"), "env_vars: {PYTHONPATH: /app}"),
    ("budgets_of_rays_pods_are_numbers", ("PodDisruptionBudget", "policy"), ("spec", "minAvailable"), "50%"),
    ("budgets_of_rays_pods_are_numbers", ("PodDisruptionBudget", "head"), ("spec", "maxUnavailable"), 0),
    ("every_role_but_browsers_has_a_budget", ("PodDisruptionBudget", "learner"), ("kind",), "Nothing"),
    (
        "every_role_but_browsers_has_a_budget",
        ("PodDisruptionBudget", "learner"),
        ("spec", "selector"),
        {"matchLabels": {"app.kubernetes.io/part-of": "waymark"}},
    ),
    ("selectors_find_pods", policy("learner"), ("spec", "podSelector", "matchLabels"), {"app": "learner"}),
    ("selectors_find_pods", ("Service", "redis"), ("spec", "selector"), {"app": "redis"}),
    ("selectors_find_pods", ("PodMonitor", "waymark"), ("spec", "selector", "matchLabels"), {"app": "waymark"}),
    (
        "what_a_pod_names_has_no_other_name_here",
        ("ConfigMap", "waymark-sites"),
        ("metadata", "name"),
        "waymark-sites-km886d262m",
    ),
    ("what_a_pod_names_is_there", ("ServiceAccount", "waymark-head"), ("metadata", "name"), "head"),
    ("what_a_pod_names_is_there", ("PersistentVolumeClaim", "waymark-runs"), ("metadata", "name"), "runs"),
    (
        "what_a_pod_names_is_there",
        CLUSTER,
        (*BROWSER, *CONTAINER, "envFrom"),
        [{"secretRef": {"name": "waymark-accounts"}}],
    ),
    ("mounts_have_volumes", CLUSTER, (*POLICY, *POD, "volumes"), []),
    ("the_three_groups_are_there", CLUSTER, (*POLICY, "groupName"), "vllm"),
    ("each_group_offers_its_role", CLUSTER, (*BROWSER, "rayStartParams", "resources"), GONE),
    ("each_group_offers_its_role", CLUSTER, (*BROWSER, "rayStartParams", "resources"), '{"browser": 1000}'),
    ("each_group_offers_its_role", CLUSTER, (*POLICY, "rayStartParams", "resources"), '"{\\"browser\\": 1000}"'),
    ("ray_is_the_version_that_was_tested", CLUSTER, ("spec", "rayVersion"), "2.59.0"),
    ("the_cluster_asks_for_a_token", CLUSTER, ("spec", "authOptions"), {"mode": "disabled"}),
    ("no_actor_runs_on_the_head", CLUSTER, (*HEAD, "rayStartParams"), {}),
    ("shared_memory_is_large_enough", CLUSTER, (*BROWSER, *POD, "volumes", 1, "emptyDir", "sizeLimit"), "64Mi"),
    ("shared_memory_is_large_enough", CLUSTER, (*BROWSER, *POD, "volumes", 1, "emptyDir", "medium"), GONE),
    ("shared_memory_is_large_enough", CLUSTER, (*POLICY, *POD, "volumes", 1, "emptyDir", "sizeLimit"), "100Gi"),
    ("shared_memory_is_large_enough", CLUSTER, (*BROWSER, "rayStartParams", "object-store-memory"), "4294967296"),
    ("shared_memory_is_large_enough", CLUSTER, (*HEAD, "rayStartParams", "object-store-memory"), GONE),
    ("everybody_has_the_run_folder", CLUSTER, (*LEARNER, *CONTAINER, "volumeMounts", 0, "mountPath"), "/data"),
    (
        "everybody_has_the_run_folder",
        ("PersistentVolumeClaim", "waymark-runs"),
        ("spec", "accessModes"),
        ["ReadWriteOnce"],
    ),
    ("every_pod_has_the_recipe", CLUSTER, (*BROWSER, *CONTAINER, "volumeMounts", 2, "mountPath"), "/etc"),
    ("every_pod_has_the_recipe", CLUSTER, (*LEARNER, *POD, "volumes", 2, "configMap", "optional"), GONE),
    ("a_drain_fits_into_the_grace_period", CLUSTER, (*BROWSER, *POD, "terminationGracePeriodSeconds"), GONE),
    ("a_drain_fits_into_the_grace_period", CLUSTER, (*POLICY, *CONTAINER, "lifecycle"), GONE),
    ("pods_leave_a_lost_machine_soon", CLUSTER, (*HEAD, *POD, "tolerations"), GONE),
    ("pods_leave_a_lost_machine_soon", CLUSTER, (*HEAD, *POD, "tolerations", 0, "tolerationSeconds"), 300),
    ("pods_leave_a_lost_machine_soon", CLUSTER, (*HEAD, *POD, "tolerations", 1, "tolerationSeconds"), GONE),
    ("pods_leave_a_lost_machine_soon", CLUSTER, (*POLICY, *POD, "tolerations"), _GPU_NODES),
    ("pods_leave_a_lost_machine_soon", RUN, (*SUBMITTER, "tolerations"), []),
    ("a_submitter_sees_that_its_head_is_gone", JOB, (*SUBMITTER, "containers", 0, "livenessProbe"), GONE),
    (
        "a_submitter_sees_that_its_head_is_gone",
        JOB,
        (*SUBMITTER, "containers", 0, "livenessProbe", "exec", "command"),
        ["ray", "health-check"],
    ),
    (
        "a_submitter_sees_that_its_head_is_gone",
        JOB,
        (*SUBMITTER, "containers", 0, "livenessProbe", "periodSeconds"),
        900,
    ),
    ("a_submitter_sees_that_its_head_is_gone", JOB, ("spec", "submitterConfig"), GONE),
    ("a_stopped_job_may_end_by_itself", CLUSTER, (*HEAD, *CONTAINER, "env"), []),
    ("a_stopped_job_may_end_by_itself", CLUSTER, (*HEAD, *POD, "terminationGracePeriodSeconds"), 60),
    ("requests_are_limits", CLUSTER, (*BROWSER, *CONTAINER, "resources", "requests", "cpu"), "1"),
    ("requests_are_limits", CLUSTER, (*BROWSER, *CONTAINER, "resources", "limits", "cpu"), "7500m"),
    ("pods_run_as_a_user_without_rights", CLUSTER, (*BROWSER, *POD, "securityContext", "runAsNonRoot"), GONE),
    ("pods_run_as_a_user_without_rights", CLUSTER, (*HEAD, *POD, "securityContext", "seccompProfile"), GONE),
    (
        "pods_run_as_a_user_without_rights",
        ("StatefulSet", "redis"),
        ("spec", *CONTAINER, "securityContext", "allowPrivilegeEscalation"),
        GONE,
    ),
    ("nothing_of_the_machine_is_shared", CLUSTER, (*LEARNER, *POD, "hostIPC"), True),
    (
        "nothing_of_the_machine_is_shared",
        CLUSTER,
        (*LEARNER, *POD, "volumes", 1),
        {"name": "shm", "hostPath": {"path": "/dev/shm"}},
    ),
    ("only_the_head_may_ask_kubernetes", CLUSTER, (*BROWSER, *POD, "automountServiceAccountToken"), GONE),
    ("images_are_pinned", CLUSTER, (*POLICY, *CONTAINER, "image"), "registry.example:5000/waymark-policy"),
    ("images_are_pinned", ("StatefulSet", "redis"), ("spec", *CONTAINER, "image"), "redis:latest"),
    (
        "everything_is_denied_that_is_not_listed",
        ("StatefulSet", "redis"),
        ("spec", "template", "metadata", "labels"),
        {"app": "redis"},
    ),
    ("browsers_reach_sites_and_policy_alone", policy("browser"), ("spec", "egress"), [{}]),
    (
        "browsers_reach_sites_and_policy_alone",
        policy("browser"),
        ("spec", "egress"),
        [{"to": [{"ipBlock": {"cidr": "0.0.0.0/0"}}]}],
    ),
    (
        "browsers_reach_sites_and_policy_alone",
        policy("browser"),
        ("spec", "egress"),
        [{"to": [{"podSelector": {"matchLabels": {"app.kubernetes.io/part-of": "waymark"}}}]}],
    ),
    ("whoever_opens_pages_reaches_the_sites", policy("sites"), ("spec", "ingress"), _FROM_HEAD),
    ("whoever_opens_pages_reaches_the_sites", policy("sites"), ("spec", "ingress", 0, "ports", 0, "port"), 8080),
    ("whoever_opens_pages_reaches_the_sites", policy("pages-to-sites"), ("spec", "podSelector"), _BROWSERS_ALONE),
    ("whoever_opens_pages_has_the_accounts", CLUSTER, (*HEAD, *CONTAINER, "envFrom"), []),
    ("whoever_opens_pages_has_the_accounts", CLUSTER, (*BROWSER, *CONTAINER, "envFrom"), GONE),
    ("whoever_opens_pages_has_the_accounts", CLUSTER, (*POLICY, *CONTAINER, "envFrom"), _ACCOUNTS),
    ("a_broadcast_reaches_every_server", policy("learner"), ("spec", "ingress"), _FROM_HEAD),
    ("a_broadcast_reaches_every_server", policy("policy"), ("spec", "ingress"), _FROM_HEAD),
    ("a_broadcast_reaches_every_server", policy("policy"), ("spec", "egress", 0, "ports"), [{"port": 8000}]),
    (
        "a_broadcast_reaches_every_server",
        policy("policy"),
        ("spec", "egress", 0, "to", 0, "podSelector", "matchExpressions", 0, "values"),
        ["head", "browser", "learner"],
    ),
    ("a_site_belongs_to_one_deployment", ("Service", "gitlab-b"), ("spec", "selector", "webarena/deployment"), "a"),
    ("a_site_belongs_to_one_deployment", ("Service", "gitlab"), ("spec", "selector", "webarena/deployment"), GONE),
    (
        "a_site_belongs_to_one_deployment",
        ("StatefulSet", "shopping-b"),
        ("spec", *CONTAINER, "env", 0, "value"),
        "shopping.waymark.svc.cluster.local",
    ),
    ("a_site_belongs_to_one_deployment", ("Role", "reset-sites-b"), ("rules", 1, "resourceNames"), ["shopping-b"]),
    ("addresses_lead_to_services", ("Service", "reddit-b"), ("spec", "ports", 0, "port"), 80),
    ("addresses_lead_to_services", ("Service", "wikipedia"), ("metadata", "name"), "encyclopedia"),
    ("redis_is_the_heads_alone", policy("redis"), ("spec", "ingress"), [{"ports": [{"port": 6379}]}]),
    ("a_run_lies_in_the_run_folder", JOB, ("spec", "entrypoint"), "waymark train recipe.yaml --out runs/first"),
    ("a_run_lies_in_the_run_folder", RUN, ("spec", "entrypoint"), "waymark train recipe.yaml"),
]


BROKEN = ("standing", "trial", "webarena")
"""The examples in which mistakes are made: the first that has the document."""


def has(documents: list[Document], named: tuple[str, str]) -> bool:
    return named in [(d["kind"], d["metadata"]["name"]) for d in documents]


def changed(documents: list[Document], named: tuple[str, str], path: tuple[Any, ...], value: Any) -> list[Document]:
    """Return the documents with one value changed, or taken away."""
    documents = copy.deepcopy(documents)
    holder: Any = next(d for d in documents if (d["kind"], d["metadata"]["name"]) == named)
    *way, last = path
    for key in way:
        holder = holder[key]
    if value is GONE:
        del holder[last]
    else:
        holder[last] = value
    return documents


@pytest.mark.parametrize("name", example_names())
def test_an_example_keeps_every_rule(name: str) -> None:
    assert breaches(example(name)) == {}


@pytest.mark.parametrize(("rule", "named", "path", "value"), MISTAKES)
def test_a_rule_refuses_its_mistake(rule: str, named: tuple[str, str], path: tuple[Any, ...], value: Any) -> None:
    documents = changed(next(d for d in map(example, BROKEN) if has(d, named)), named, path, value)
    assert rule in breaches(documents)


def test_every_rule_is_broken_once() -> None:
    assert {rule for rule, *_ in MISTAKES} == set(RULES)
