#!/usr/bin/env bash
# Runs the agent with the action's inputs (INPUTS, JSON); writes the step's summary and outputs.
set -euo pipefail
# shellcheck source=SCRIPTDIR/git.sh
. "$(dirname "${BASH_SOURCE[0]}")/git.sh"

# A pull request's policy is that of its base branch as it is now: neither the event nor GitHub's merge commit says where
# that is. The checkout's origin may be a fork, which has a branch of that name as well.
fetch_branch() {
  local remote=$GITHUB_SERVER_URL/$GITHUB_REPOSITORY branch=refs/heads/$1 commit name tip=
  git --git-dir="$repository" update-ref -d refs/agentic-ci/base || return 1
  # git lists every ref whose name ends so.
  while read -r commit name; do
    [[ $name != "$branch" ]] || tip=$commit
  done < <(git_with_token ls-remote -- "$remote" "$branch")
  [[ -n $tip ]] && fetch_commit "$remote" "$tip" && git --git-dir="$repository" update-ref refs/agentic-ci/base "$tip"
}

# The policy is the base's, and a checkout often is one other commit alone: a pull request's merge commit, or the head
# that a workflow_run or a comment is about.
fetch_base() {
  local commit=${BASE_SHA:-} remote=origin
  if [[ -z ${GITEA_ACTIONS:-}${FORGEJO_ACTIONS:-} && -n ${BASE_REF:-} ]]; then
    if [[ $GITHUB_EVENT_NAME != pull_request_target ]]; then
      fetch_branch "$BASE_REF"
      return
    fi
    commit=$GITHUB_SHA remote=$GITHUB_SERVER_URL/$GITHUB_REPOSITORY
  fi
  [[ ! $commit =~ ^[0-9a-f]{40,64}$ ]] || fetch_commit "$remote" "$commit"
}

checkout=${WORKDIR:-.}
if find_repository "$checkout"; then
  fetch_base || echo "::warning title=agentic-ci::the base could not be fetched"
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
