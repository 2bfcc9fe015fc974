"""What a manifest must keep to start and to be safe, by name: KubeRay 1.7's own rules, then Kubernetes', then ours.

Owns ``RULES``. A schema does not know these: the operator refuses a manifest that breaks one of the first, and one that
breaks another never starts, or starts with a door open. A rule returns a sentence for each breach.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import yaml

from tests.deploy.manifests import (
    ROOT,
    Document,
    Group,
    clusters,
    groups,
    jobs,
    of_kind,
    pods,
    quantity,
    selects,
    workers,
)

Rule = Callable[[list[Document]], Iterator[str]]
RULES: dict[str, Rule] = {}

USERS_SECRETS = {"waymark-redis"}
"""Secrets that a user makes first; docs/guides/kubernetes.md says how."""
_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_MANAGED = ("RAY_CLUSTER_NAME", "RAY_CLUSTER_NAMESPACE", "RAY_CLOUD_INSTANCE_ID", "RAY_NODE_TYPE_NAME", "FQ_RAY_IP")
_SOURCES = {
    "secretKeyRef": "Secret",
    "secretRef": "Secret",
    "configMapKeyRef": "ConfigMap",
    "configMapRef": "ConfigMap",
}
_STOP_MARGIN_S = 20.0
"""A drained pod's processes end within their limit, and the pod a moment later."""
_LOST = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
"""What Kubernetes taints a machine with that it hears no more of."""
_LONGEST_TOLERATION_S = 60
"""Ray's processes end by themselves when their head was silent for so long: waiting longer saves nothing."""
_SUBMITTER_NOTICES_S = 600
"""Within what a submitter has to see that its job is gone; docs/guides/kubernetes.md has the operator wait an hour."""


def rule(function: Rule) -> Rule:
    RULES[function.__name__] = function
    return function


def breaches(documents: list[Document]) -> dict[str, list[str]]:
    """Return what is wrong, by rule; where a group has no container, nothing else is looked at."""
    empty = list(every_group_has_a_container(documents))
    if empty:
        return {every_group_has_a_container.__name__: empty}
    found = {name: list(check(documents)) for name, check in RULES.items()}
    return {name: sentences for name, sentences in found.items() if sentences}


# KubeRay's own (ray-operator/controllers/ray/utils/validation.go of v1.7.0).


@rule
def names_are_short_labels(documents: list[Document]) -> Iterator[str]:
    for kind, longest in (("RayCluster", 53), ("RayJob", 47)):
        for document in of_kind(documents, kind):
            name = document["metadata"]["name"]
            if len(name) > longest or not _LABEL.fullmatch(name):
                yield f"{kind} {name!r} is no DNS label of at most {longest} characters"


@rule
def every_group_has_a_container(documents: list[Document]) -> Iterator[str]:
    yield from (f"{group.name} has no container" for group in groups(documents) if not group.containers)


@rule
def replicas_lie_between_their_bounds(documents: list[Document]) -> Iterator[str]:
    for cluster in clusters(documents):
        for group in workers(cluster):
            least, most = group.spec["minReplicas"], group.spec["maxReplicas"]
            if not 0 <= least <= group.spec.get("replicas", least) <= most:
                yield f"{group.name}: 0 <= {least} <= replicas <= {most} does not hold"


@rule
def autoscaler_v2_is_on_and_said_once(documents: list[Document]) -> Iterator[str]:
    for cluster in clusters(documents):
        if not cluster.get("enableInTreeAutoscaling") or cluster["autoscalerOptions"].get("version") != "v2":
            yield "enableInTreeAutoscaling and autoscalerOptions.version v2 belong together"
        if "RAY_enable_autoscaler_v2" in Group("head", cluster["headGroupSpec"]).environment:
            yield "RAY_enable_autoscaler_v2 says again what autoscalerOptions.version says"
        if any(variable["name"] == "KUBERAY_GEN_AUTOSCALER_START_CMD" for variable in _autoscaler_env(cluster)):
            yield "KUBERAY_GEN_AUTOSCALER_START_CMD is KubeRay's to set"


def _autoscaler_env(cluster: Document) -> list[Document]:
    return cluster["autoscalerOptions"].get("env", [])


@rule
def idle_times_are_not_negative(documents: list[Document]) -> Iterator[str]:
    for cluster in clusters(documents):
        for holder in (cluster["autoscalerOptions"], *cluster["workerGroupSpecs"]):
            if holder.get("idleTimeoutSeconds", 0) < 0:
                yield f"idleTimeoutSeconds {holder['idleTimeoutSeconds']}"


@rule
def scaled_pods_are_never_restarted(documents: list[Document]) -> Iterator[str]:
    for group in groups(documents):
        if group.pod.get("restartPolicy", "Never") != "Never":
            yield f"{group.name}: autoscaler v2 takes restartPolicy Never alone"


@rule
def scaled_groups_are_not_suspended(documents: list[Document]) -> Iterator[str]:
    yield from (f"{group.name} is suspended" for group in groups(documents) if group.spec.get("suspend"))


@rule
def resources_are_said_once(documents: list[Document]) -> Iterator[str]:
    for group in groups(documents):
        if group.spec.get("resources") and {"num-cpus", "num-gpus", "memory", "resources"} & {*group.start}:
            yield f"{group.name}: resources and rayStartParams both say them"


@rule
def labels_of_nodes_are_no_start_parameter(documents: list[Document]) -> Iterator[str]:
    yield from (f"{group.name}: rayStartParams.labels" for group in groups(documents) if "labels" in group.start)


@rule
def tokens_need_a_named_version_of_ray(documents: list[Document]) -> Iterator[str]:
    for cluster in clusters(documents):
        version = re.fullmatch(r"(\d+)\.(\d+)\.(\d+)", str(cluster.get("rayVersion", "")))
        if not version or tuple(map(int, version.groups())) < (2, 52, 0):
            yield f"rayVersion {cluster.get('rayVersion')!r}: token authentication needs 2.52.0 or later"


@rule
def redis_is_named_in_its_options_alone(documents: list[Document]) -> Iterator[str]:
    for cluster in clusters(documents):
        head = Group("head", cluster["headGroupSpec"])
        doubled = {"RAY_REDIS_ADDRESS", "REDIS_PASSWORD", "REDIS_USERNAME"} & {*head.environment}
        yield from (f"{name} belongs into gcsFaultToleranceOptions" for name in doubled)
        if {"redis-password", "redis-username"} & {*head.start}:
            yield "redis' account belongs into gcsFaultToleranceOptions"


@rule
def kuberays_own_variables_are_not_set(documents: list[Document]) -> Iterator[str]:
    for group in groups(documents):
        yield from (f"{group.name}: {name} is KubeRay's to set" for name in _MANAGED if name in group.environment)


@rule
def a_job_has_one_cluster(documents: list[Document]) -> Iterator[str]:
    for job in jobs(documents):
        if ("rayClusterSpec" in job) == bool(job.get("clusterSelector", {}).get("ray.io/cluster")):
            yield "either rayClusterSpec or clusterSelector's ray.io/cluster"
        if "upgradeStrategy" in job.get("rayClusterSpec", {}):
            yield "a job's cluster takes no upgradeStrategy"


@rule
def submission_modes_exist(documents: list[Document]) -> Iterator[str]:
    for job in jobs(documents):
        mode = job.get("submissionMode", "K8sJobMode")
        if mode not in ("K8sJobMode", "HTTPMode", "InteractiveMode", "SidecarMode"):
            yield f"submissionMode {mode!r}"
        if mode == "SidecarMode" and ({"submitterPodTemplate", "submitterConfig"} & {*job} or "clusterSelector" in job):
            yield "SidecarMode takes neither a submitter's settings nor a clusterSelector"


@rule
def a_job_is_retried_with_a_cluster_of_its_own(documents: list[Document]) -> Iterator[str]:
    for job in jobs(documents):
        limit = job.get("backoffLimit", 0)
        if limit < 0 or (limit and ("clusterSelector" in job or job.get("submissionMode") == "InteractiveMode")):
            yield f"backoffLimit {limit}"


@rule
def a_refused_run_may_end_its_retries(documents: list[Document]) -> Iterator[str]:
    """``cluster.rayjob`` lowers the limit of the RayJob that its first word names, by the head's account."""
    rights = {role["metadata"]["name"]: role["rules"] for role in of_kind(documents, "Role")}
    for job in of_kind(documents, "RayJob"):
        if not job["spec"].get("backoffLimit") or "rayClusterSpec" not in job["spec"]:
            continue
        name, head = job["metadata"]["name"], Group("head", job["spec"]["rayClusterSpec"]["headGroupSpec"])
        if job["spec"]["entrypoint"].split()[:4] != ["python", "-m", "cluster.rayjob", name]:
            yield f"the entrypoint of RayJob {name} is not python -m cluster.rayjob {name}"
        needed = {"apiGroups": ["ray.io"], "resources": ["rayjobs"], "resourceNames": [name], "verbs": ["patch"]}
        account = {"kind": "ServiceAccount", "name": head.pod.get("serviceAccountName")}
        if not any(
            needed in rights.get(bound["roleRef"]["name"], []) and account.items() <= subject.items()
            for bound in of_kind(documents, "RoleBinding")
            for subject in bound["subjects"]
        ):
            yield f"the head's account may not lower the backoffLimit of RayJob {name}"


@rule
def a_time_to_live_needs_a_shutdown(documents: list[Document]) -> Iterator[str]:
    for job in jobs(documents):
        lives = job.get("ttlSecondsAfterFinished", 0)
        if lives < 0 or (lives and not job.get("shutdownAfterJobFinishes")):
            yield f"ttlSecondsAfterFinished {lives} without shutdownAfterJobFinishes"
        if job.get("suspend") and not job.get("shutdownAfterJobFinishes"):
            yield "suspend without shutdownAfterJobFinishes"


@rule
def deadlines_are_positive(documents: list[Document]) -> Iterator[str]:
    for job in jobs(documents):
        for name in ("activeDeadlineSeconds", "preRunningDeadlineSeconds"):
            if job.get(name, 1) <= 0:
                yield f"{name} {job[name]}"


@rule
def runtime_environments_are_mappings(documents: list[Document]) -> Iterator[str]:
    for job in jobs(documents):
        try:
            read = yaml.safe_load(job.get("runtimeEnvYAML", "{}"))
        except yaml.YAMLError as error:
            yield f"runtimeEnvYAML: {error}"
            continue
        if not isinstance(read, dict):
            yield "runtimeEnvYAML is no mapping"
        elif "PYTHONPATH" in read.get("env_vars", {}):
            yield "runtimeEnvYAML sets PYTHONPATH, which the driver's session sets itself: Ray refuses to merge them"


# Kubernetes' own, beyond its schema.


@rule
def budgets_of_rays_pods_are_numbers(documents: list[Document]) -> Iterator[str]:
    for budget in of_kind(documents, "PodDisruptionBudget"):
        spec, name = budget["spec"], budget["metadata"]["name"]
        if not isinstance(spec.get("minAvailable"), int) or "maxUnavailable" in spec:
            yield f"budget {name}: without a controller's scale only a number for minAvailable is understood"


@rule
def every_role_but_browsers_has_a_budget(documents: list[Document]) -> Iterator[str]:
    """Browsers hand their episodes back, and a budget of one pod keeps the only one until the run ends."""
    budgets = [budget["spec"]["selector"] for budget in of_kind(documents, "PodDisruptionBudget")]
    for group in groups(documents):
        has = any(selects(budget, group.labels) for budget in budgets)
        if has == (group.name == "browser"):
            yield f"{group.name}: {'a' if has else 'no'} disruption budget selects its pods"


@rule
def selectors_find_pods(documents: list[Document]) -> Iterator[str]:
    every = [labels for _, labels, _ in pods(documents)]
    selecting = [(d, d["spec"]["selector"]) for d in of_kind(documents, "PodDisruptionBudget", "PodMonitor")]
    selecting += [(d, d["spec"]["podSelector"]) for d in of_kind(documents, "NetworkPolicy")]
    selecting += [(d, {"matchLabels": d["spec"]["selector"]}) for d in of_kind(documents, "Service")]
    for document, selector in selecting:
        if not any(selects(selector, labels) for labels in every):
            yield f"{document['kind']} {document['metadata']['name']} selects no pod"


@rule
def what_a_pod_names_is_there(documents: list[Document]) -> Iterator[str]:
    for name, _, pod in pods(documents):
        for kind, named in _named(pod):
            if not any(d["metadata"]["name"] == named for d in of_kind(documents, kind)) and named not in USERS_SECRETS:
                yield f"{name}: no {kind} {named}"


@rule
def what_a_pod_names_has_no_other_name_here(documents: list[Document]) -> Iterator[str]:
    """Kustomize appends a hash to what it generates and follows none in a RayJob; what is optional may be missing."""
    there = {d["metadata"]["name"] for d in of_kind(documents, "ConfigMap")}
    for name, _, pod in pods(documents):
        for container in pod["containers"]:
            for source in container.get("envFrom", []):
                named = source.get("configMapRef", {}).get("name", "")
                hashed = [one for one in there if named and re.fullmatch(re.escape(named) + "-[a-z0-9]{10}", one)]
                if hashed and named not in there:
                    yield f"{name}: names {named}, which is {hashed[0]} here"


def _named(pod: Document) -> Iterator[tuple[str, str]]:
    """Yield kind and name of all that a pod cannot start without."""
    if "serviceAccountName" in pod:
        yield "ServiceAccount", pod["serviceAccountName"]
    for volume in pod.get("volumes", []):
        if "persistentVolumeClaim" in volume:
            yield "PersistentVolumeClaim", volume["persistentVolumeClaim"]["claimName"]
        if "configMap" in volume and not volume["configMap"].get("optional"):
            yield "ConfigMap", volume["configMap"]["name"]
    for container in pod["containers"]:
        sources = [source for variable in container.get("env", []) for source in [variable.get("valueFrom", {})]]
        for source in (*sources, *container.get("envFrom", [])):
            for kind, keys in (
                ("Secret", ("secretKeyRef", "secretRef")),
                ("ConfigMap", ("configMapKeyRef", "configMapRef")),
            ):
                for key in keys:
                    if key in source and not source[key].get("optional"):
                        yield kind, source[key]["name"]


@rule
def mounts_have_volumes(documents: list[Document]) -> Iterator[str]:
    claimed = {
        claim["metadata"]["name"]
        for workload in of_kind(documents, "StatefulSet")
        for claim in workload["spec"].get("volumeClaimTemplates", [])
    }
    for name, _, pod in pods(documents):
        there = {volume["name"] for volume in pod.get("volumes", [])} | claimed
        for container in pod["containers"]:
            missing = {mount["name"] for mount in container.get("volumeMounts", [])} - there
            yield from (f"{name}: {volume} is mounted and is no volume" for volume in missing)


# Ours.


@rule
def the_three_groups_are_there(documents: list[Document]) -> Iterator[str]:
    for cluster in clusters(documents):
        names = [group.name for group in workers(cluster)]
        if names != ["browser", "policy", "learner"]:
            yield f"worker groups are {', '.join(names)}"


@rule
def each_group_offers_its_role(documents: list[Document]) -> Iterator[str]:
    """A role finds its group by a resource of the group's name, which its actors ask a little of."""
    for cluster in clusters(documents):
        for group in workers(cluster):
            try:
                offered = json.loads(json.loads(group.start.get("resources", '""')) or "{}")
            except (ValueError, TypeError):  # a mapping, where Ray takes a text in which one is
                offered = {}
            if list(offered) != [group.name] or offered[group.name] < 100:
                yield f"{group.name}: its rayStartParams.resources offer {offered or 'nothing that Ray can read'}"


@rule
def ray_is_the_version_that_was_tested(documents: list[Document]) -> Iterator[str]:
    pinned = re.search(r"^ray==(.+)$", Path(ROOT / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE)
    assert pinned is not None
    for cluster in clusters(documents):
        if cluster.get("rayVersion") != pinned[1]:
            yield f"rayVersion is {cluster.get('rayVersion')}, constraints.txt has {pinned[1]}"


@rule
def the_cluster_asks_for_a_token(documents: list[Document]) -> Iterator[str]:
    for cluster in clusters(documents):
        if cluster.get("authOptions", {}).get("mode") != "token":
            yield "authOptions.mode is not token"


@rule
def no_actor_runs_on_the_head(documents: list[Document]) -> Iterator[str]:
    for cluster in clusters(documents):
        if cluster["headGroupSpec"].get("rayStartParams", {}).get("num-cpus") != "0":
            yield "the head offers CPUs to actors"


@rule
def shared_memory_is_large_enough(documents: list[Document]) -> Iterator[str]:
    for group in groups(documents):
        disk = group.volume_at("/dev/shm").get("emptyDir", {})
        size = quantity(disk.get("sizeLimit", 0)) if disk.get("medium") == "Memory" else 0
        if "object-store-memory" not in group.start:
            yield f"{group.name}: without object-store-memory Ray takes 30 % of the memory, on disk if /dev/shm is less"
        if size < max(2**30, quantity(group.start.get("object-store-memory", 0))):
            yield f"{group.name}: /dev/shm is no memory of 1 GiB or more that holds the object store"
        if size > quantity(group.ray["resources"]["limits"]["memory"]) / 2:
            yield f"{group.name}: /dev/shm counts as the container's memory, and may take more than half of it"


@rule
def everybody_has_the_run_folder(documents: list[Document]) -> Iterator[str]:
    shared = {
        claim["metadata"]["name"]
        for claim in of_kind(documents, "PersistentVolumeClaim")
        if "ReadWriteMany" in claim["spec"]["accessModes"]
    }
    for group in groups(documents):
        if group.volume_at("/runs").get("persistentVolumeClaim", {}).get("claimName") not in shared:
            yield f"{group.name}: no volume of many readers and writers at /runs"


@rule
def every_pod_has_the_recipe(documents: list[Document]) -> Iterator[str]:
    """Where there is one: the driver reads it, and so does ``waymark doctor --role ROLE`` in any pod."""
    for group in groups(documents):
        source = group.volume_at("/etc/waymark").get("configMap", {})
        if source != {"name": "waymark-recipe", "optional": True}:
            yield f"{group.name}: the recipe is not at /etc/waymark, or must be"


@rule
def a_drain_fits_into_the_grace_period(documents: list[Document]) -> Iterator[str]:
    for cluster in clusters(documents):
        for group in workers(cluster):
            command = group.ray.get("lifecycle", {}).get("preStop", {}).get("exec", {}).get("command", [])
            if len(command) != 2 or command[0] != "waymark-drain" or not command[1].isdecimal():
                yield f"{group.name}: its preStop hook is not waymark-drain SECONDS"
            elif float(command[1]) + _STOP_MARGIN_S > group.pod.get("terminationGracePeriodSeconds", 30):
                yield f"{group.name}: a drain of {command[1]} s does not fit into the grace period"


@rule
def pods_leave_a_lost_machine_soon(documents: list[Document]) -> Iterator[str]:
    """Kubernetes gives a pod 300 s that says nothing, as long as KubeRay looks for a head that is silent."""
    of_jobs = [("submitter", job["submitterPodTemplate"]["spec"]) for job in jobs(documents)]
    for name, pod in [*((group.name, group.pod) for group in groups(documents)), *of_jobs]:
        for taint in _LOST:
            stays = [
                t.get("tolerationSeconds", float("inf"))
                for t in pod.get("tolerations", [])
                if (t.get("key"), t.get("operator"), t.get("effect")) == (taint, "Exists", "NoExecute")
            ]
            if len(stays) != 1 or not 0 < stays[0] <= _LONGEST_TOLERATION_S:
                yield f"{name}: stays bound to a machine with {taint} for {stays or 'the 300 s of Kubernetes'}"


@rule
def a_submitter_sees_that_its_head_is_gone(documents: list[Document]) -> Iterator[str]:
    """It waits for a line of the log, and hears nothing of a machine that is lost: no keepalive ends its connection."""
    for job in jobs(documents):
        if "rayClusterSpec" not in job:
            continue  # the cluster's Redis knows the job, and KubeRay ends it
        probe = job["submitterPodTemplate"]["spec"]["containers"][0].get("livenessProbe", {})
        asked = " ".join(probe.get("exec", {}).get("command", []))
        if not re.search(r"\bray job status\b.*\$RAY_DASHBOARD_ADDRESS\b.*\$RAY_JOB_SUBMISSION_ID\b", asked):
            yield "the submitter's livenessProbe does not ask the head about the job"
        elif probe.get("periodSeconds", 10) * probe.get("failureThreshold", 3) > _SUBMITTER_NOTICES_S:
            yield f"the submitter takes more than {_SUBMITTER_NOTICES_S} s to see that its job is gone"
        if job.get("submitterConfig", {}).get("backoffLimit", 2) < 10:
            yield "the submitter's tries are over before the head is back"


@rule
def a_stopped_job_may_end_by_itself(documents: list[Document]) -> Iterator[str]:
    for cluster in clusters(documents):
        head = Group("head", cluster["headGroupSpec"])
        wait = float(head.environment.get("RAY_JOB_STOP_WAIT_TIME_S", {}).get("value", 3))
        if not 30 <= wait <= head.pod.get("terminationGracePeriodSeconds", 30) - _STOP_MARGIN_S:
            yield f"a stopped job has {wait:g} s to write its summary"


@rule
def requests_are_limits(documents: list[Document]) -> Iterator[str]:
    """Ray takes a container's limit of CPUs for its own number, and a memory above the request may be taken away."""
    for group in groups(documents):
        resources = group.ray["resources"]
        if resources["requests"] != resources["limits"] or quantity(resources["limits"]["cpu"]) % 1:
            yield f"{group.name}: requests and limits differ, or its CPUs are no whole number"


@rule
def pods_run_as_a_user_without_rights(documents: list[Document]) -> Iterator[str]:
    for name, labels, pod in pods(documents):
        if labels.get("app.kubernetes.io/component") == "site":
            continue  # WebArena's images are what they are
        own = pod.get("securityContext", {})
        if (
            not own.get("runAsNonRoot")
            or not own.get("runAsUser")
            or own.get("seccompProfile") != {"type": "RuntimeDefault"}
        ):
            yield f"{name}: its pod may run as root, or without a seccomp profile"
        for container in pod["containers"]:
            context = container.get("securityContext", {})
            dropped = context.get("capabilities", {}).get("drop")
            if context.get("allowPrivilegeEscalation") is not False or dropped != ["ALL"] or context.get("privileged"):
                yield f"{name}: {container['name']} may gain rights"


@rule
def nothing_of_the_machine_is_shared(documents: list[Document]) -> Iterator[str]:
    for name, _, pod in pods(documents):
        if {"hostNetwork", "hostPID", "hostIPC"} & {*pod} or any("hostPath" in v for v in pod.get("volumes", [])):
            yield f"{name}: shares the machine's network, processes or files"


@rule
def only_the_head_may_ask_kubernetes(documents: list[Document]) -> Iterator[str]:
    for name, _, pod in pods(documents):
        if name != "head" and ("serviceAccountName" in pod or pod.get("automountServiceAccountToken", True)):
            yield f"{name}: has an account's token"


@rule
def images_are_pinned(documents: list[Document]) -> Iterator[str]:
    for name, _, pod in pods(documents):
        for container in pod["containers"]:
            if not re.search(r":(?!latest$)[\w.\-]+$|@sha256:[0-9a-f]{64}$", container["image"]):
                yield f"{name}: {container['image']} may be another image tomorrow"


@rule
def everything_is_denied_that_is_not_listed(documents: list[Document]) -> Iterator[str]:
    policies = [policy["spec"] for policy in of_kind(documents, "NetworkPolicy")]
    for name, labels, _ in pods(documents):
        types = {t for spec in policies if selects(spec["podSelector"], labels) for t in spec["policyTypes"]}
        if types != {"Ingress", "Egress"}:
            yield f"{name}: no network policy limits what enters and what leaves it"


BROWSERS_REACH = {"head", "policy", "site"}


@rule
def browsers_reach_sites_and_policy_alone(documents: list[Document]) -> Iterator[str]:
    """Beside the head, without which there is no Ray, and the cluster's names."""
    everywhere = {labels.get("app.kubernetes.io/component", name): labels for name, labels, _ in pods(documents)}
    browser = next((group.labels for group in groups(documents) if group.name == "browser"), {})
    for policy in of_kind(documents, "NetworkPolicy"):
        if not selects(policy["spec"]["podSelector"], browser):
            continue
        for door in policy["spec"].get("egress", []):
            names = [port["port"] for port in door.get("ports", [])]
            if not door.get("to"):
                yield f"{policy['metadata']['name']} lets browsers reach everything"
            for peer in door.get("to", []):
                if names == [53, 53]:
                    continue
                reached = {c for c, labels in everywhere.items() if selects(peer.get("podSelector", {}), labels)}
                if "ipBlock" in peer or "namespaceSelector" in peer or reached - BROWSERS_REACH:
                    yield f"{policy['metadata']['name']} lets browsers reach {', '.join(sorted(reached)) or peer}"


@rule
def whoever_opens_pages_reaches_the_sites(documents: list[Document]) -> Iterator[str]:
    """Workers play on them, and the driver opens tasks' first pages itself, for milestones and the critic's band."""
    sites = [
        (name, labels, port.get("name", port["containerPort"]))
        for name, labels, pod in pods(documents)
        if labels.get("app.kubernetes.io/component") == "site"
        for container in pod["containers"]
        for port in container["ports"]
    ]
    for group in groups(documents):
        if group.name in ("head", "browser"):
            closed = [name for name, labels, port in sites if not _is_open(documents, group.labels, labels, port)]
            yield from (f"{group.name} pods do not reach {name}" for name in closed)


@rule
def whoever_opens_pages_has_the_accounts(documents: list[Document]) -> Iterator[str]:
    """Of the sites, that is, which the same two log in to."""
    for group in groups(documents):
        secrets = [source.get("secretRef", {}).get("name") for source in group.ray.get("envFrom", [])]
        has, needs = "waymark-accounts" in secrets, group.name in ("head", "browser")
        if has != needs:
            yield f"{group.name} pods {'lack' if needs else 'need not have'} the sites' accounts"


@rule
def a_broadcast_reaches_every_server(documents: list[Document]) -> Iterator[str]:
    """Its group's processes, learner and servers alike, meet at a port that is free and connect to one another."""
    of_role = {group.name: group.labels for group in groups(documents)}
    for first, second in (("learner", "policy"), ("policy", "learner"), ("policy", "policy")):
        if not _is_open(documents, of_role.get(first, {}), of_role.get(second, {})):
            yield f"{first} pods do not reach {second} pods at every port"


def _is_open(
    documents: list[Document], source: dict[str, str], target: dict[str, str], port: str | int | None = None
) -> bool:
    """Whether network policies let pods with the labels ``source`` connect to those with ``target``.

    ``port`` is one of the container's, by its name where it has one; None asks for every port.
    """
    policies = [policy["spec"] for policy in of_kind(documents, "NetworkPolicy")]
    ways = (("egress", "to", source, target), ("ingress", "from", target, source))
    return all(
        any(
            _takes(door, peers, other, port)
            for spec in policies
            if selects(spec["podSelector"], own)
            for door in spec.get(side, [])
        )
        for side, peers, own, other in ways
    )


def _takes(door: Document, peers: str, labels: dict[str, str], port: str | int | None) -> bool:
    pods_of_ours = [peer["podSelector"] for peer in door.get(peers, []) if {*peer} == {"podSelector"}]
    every = "ports" not in door or port in [one["port"] for one in door["ports"]]
    return every and any(selects(selector, labels) for selector in pods_of_ours)


@rule
def a_site_belongs_to_one_deployment(documents: list[Document]) -> Iterator[str]:
    """It is reached by services of its own, gives itself their address, and the driver may replace its pods."""
    sites = [d for d in of_kind(documents, "StatefulSet") if "webarena/deployment" in d["metadata"].get("labels", {})]
    rules = [rule for role in of_kind(documents, "Role") for rule in role["rules"] if "patch" in rule["verbs"]]
    replaced = {name for rule in rules for name in rule.get("resourceNames", [])}
    services = {d["metadata"]["name"]: d["spec"]["selector"] for d in of_kind(documents, "Service")}
    for site in sites:
        name, template = site["metadata"]["name"], site["spec"]["template"]
        to_it = {
            s for s, chosen in services.items() if selects({"matchLabels": chosen}, template["metadata"]["labels"])
        }
        if to_it != {name}:
            yield f"{name}: the services {sorted(to_it)} lead to it"
        told = {v["name"]: v["value"] for c in template["spec"]["containers"] for v in c.get("env", [])}
        if told.get("SITE_HOST", _host(name)) != _host(name):
            yield f"{name}: its pages give themselves the host {told['SITE_HOST']}"
        if name not in replaced:
            yield f"{name}: nobody may replace its pods"


def _host(service: str) -> str:
    return f"{service}.waymark.svc.cluster.local"


@rule
def addresses_lead_to_services(documents: list[Document]) -> Iterator[str]:
    ports = {(d["metadata"]["name"], p["port"]) for d in of_kind(documents, "Service") for p in d["spec"]["ports"]}
    for held in of_kind(documents, "ConfigMap"):
        for text in held["data"].values():
            for name, port in re.findall(r"http://([a-z0-9-]+)\.waymark\.svc\.cluster\.local:(\d+)", text):
                if (name, int(port)) not in ports:
                    yield f"{held['metadata']['name']}: no Service {name} with port {port}"


@rule
def redis_is_the_heads_alone(documents: list[Document]) -> Iterator[str]:
    for policy in of_kind(documents, "NetworkPolicy"):
        if policy["metadata"]["name"] == "redis":
            peers = [peer for door in policy["spec"]["ingress"] for peer in door.get("from", [{}])]
            if peers != [{"podSelector": {"matchLabels": {"app.kubernetes.io/component": "head"}}}]:
                yield "others than the head reach Redis"


@rule
def a_run_lies_in_the_run_folder(documents: list[Document]) -> Iterator[str]:
    for job in jobs(documents):
        words = job["entrypoint"].split()
        words = words[4:] if words[:3] == ["python", "-m", "cluster.rayjob"] else words[1:]
        out = words[words.index("--out") + 1] if "--out" in words else ""
        if words[:1] != ["train"] or not out.startswith("/runs/"):
            yield f"{job['entrypoint']!r} does not train into /runs"
