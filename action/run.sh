#!/usr/bin/env bash
# Runs the agent with the action's inputs (INPUTS, JSON); writes the step's summary and outputs.
set -euo pipefail

# The policy is the base's, and a checkout often is one other commit alone: a pull request's merge commit, or the head
# that a workflow_run or a comment is about. The checkout has no credentials (persist-credentials: false), so the job's
# token is given to this one command, for the forge alone.
fetch_base() {
  GIT_TERMINAL_PROMPT=0 GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0="http.$GITHUB_SERVER_URL/.extraheader" \
    GIT_CONFIG_VALUE_0="AUTHORIZATION: basic $(printf 'x-access-token:%s' "$TOKEN" | base64 -w 0)" \
    git --git-dir="$repository" fetch --quiet --no-tags --no-recurse-submodules --depth=1 origin "$BASE_SHA"
}

# The `.git` nearest above, which no commit can contain. git itself also takes a directory with the files of a bare
# repository for one, and runs what its configuration says; a pull request can add those.
find_repository() {
  local at
  at=$(CDPATH='' cd -- "$1" 2>/dev/null && pwd -P) || return 1
  until [[ -e $at/.git ]]; do
    [[ $at != / ]] || return 1
    at=$(dirname -- "$at")
  done
  repository=$at/.git
}

checkout=${WORKDIR:-.}
if [[ ${BASE_SHA:-} =~ ^[0-9a-f]{40,64}$ ]] && find_repository "$checkout" &&
  ! git --git-dir="$repository" cat-file -e "$BASE_SHA^{commit}" 2>/dev/null; then
  fetch_base || echo "::warning title=agentic-ci::the base commit is not in the checkout and could not be fetched"
fi
# The run asks the forge who may start it; the agent gets neither variable. Gitea answers such a question only to those who
# administer the repository, which a job's token does not.
if [[ -z ${GITEA_ACTIONS:-}${FORGEJO_ACTIONS:-} ]]; then
  export GITHUB_TOKEN=${GITHUB_TOKEN:-${TOKEN:-}}
fi
unset TOKEN
# GitHub's own machines refuse user namespaces to ordinary users, offer sudo, and are discarded after the job. Only there, the
# one setting that `agentic-ci doctor` names is changed; the runner itself stays without privileges.
if [[ ${RUNNER_ENVIRONMENT:-} == github-hosted ]]; then
  setting=$("$BINARY" doctor --workdir "$checkout" 2>/dev/null |
    sed -n 's/^ *for more: sudo sysctl -w \([a-z_.]*=[0-9]*\)$/\1/p' | head -n 1) || true
  if [[ -n $setting ]] && sudo -n sysctl -qw "$setting"; then
    echo "::notice title=agentic-ci::$setting was set on this runner, for user namespaces"
  fi
fi
exec "$BINARY" action
