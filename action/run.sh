#!/usr/bin/env bash
# Runs the agent with the action's inputs (INPUTS, JSON); writes the step's summary and outputs.
set -euo pipefail

# The policy is the base's, and a checkout often is one other commit alone: a pull request's merge commit, or the head
# that a workflow_run or a comment is about.
checkout=${WORKDIR:-.}
if [[ ${BASE_SHA:-} =~ ^[0-9a-f]{40,64}$ ]] && git -C "$checkout" rev-parse 2>/dev/null &&
  ! git -C "$checkout" cat-file -e "$BASE_SHA^{commit}" 2>/dev/null; then
  git -C "$checkout" fetch --quiet --no-tags --depth=1 origin "$BASE_SHA" ||
    echo "::warning title=agentic-ci::the base commit is not in the checkout and could not be fetched"
fi
exec "$BINARY" action
