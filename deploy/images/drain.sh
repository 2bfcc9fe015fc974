#!/bin/sh
# What a pod of a worker group does when it must go (its preStop hook): Ray starts nothing more on this node and takes
# its loss for a preemption, then Ray's processes here are ended, within SECONDS. Usage: waymark-drain SECONDS
ray drain-node --reason DRAIN_NODE_REASON_PREEMPTION --reason-message "its pod must go" \
    --deadline-remaining-seconds "$1" || true # a node that is gone already cannot be drained
exec ray stop --grace-period "$1"
