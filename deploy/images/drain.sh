#!/bin/sh
# What a pod of a worker group does when it must go (its preStop hook), within SECONDS. Usage: waymark-drain SECONDS
# Ray starts nothing more on this node and takes its loss for a preemption. The run's driver sees that: rollout workers
# here get no further episode, and end when they have finished or handed back what they play. Then Ray ends too; sooner,
# it would take the workers along.
last=15 # of SECONDS: what Ray's own end may take
stay=$(($1 > last ? $1 - last : 0))
ends=$(($(date +%s) + stay))
ray drain-node --reason DRAIN_NODE_REASON_PREEMPTION --reason-message "its pod must go" \
    --deadline-remaining-seconds "$stay" || ends=0 # nobody hears of it: the cluster or the node is gone already
plays() { grep -aqs '^ray::.*RolloutWorker' "${PROC:-/proc}"/[0-9]*/cmdline; }
while [ "$(date +%s)" -lt "$ends" ] && plays; do sleep 1; done
exec ray stop --grace-period "$last"
