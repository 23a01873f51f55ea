#!/usr/bin/env bash
# A comment's job starts on the default branch: checks out the head of the pull request that the comment is on, for the agent to
# work on what was commented. The policy and the configuration stay those of the default branch.
set -euo pipefail
# shellcheck source=SCRIPTDIR/git.sh
. "$(dirname "${BASH_SOURCE[0]}")/git.sh"

refuse() {
  local reason="$1; to work on another commit, give the checkout ref: refs/pull/$NUMBER/head"
  echo "reason=$reason" >>"$GITHUB_OUTPUT"
  echo "::error title=agentic-ci::$reason"
  exit 77
}

[[ $NUMBER =~ ^[0-9]+$ ]] || refuse "not a pull request's number"
find_repository "${WORKDIR:-.}" || exit 0  # The run says so.
in_repository() { git --git-dir="$repository" --work-tree="$(dirname -- "$repository")" -c core.hooksPath=/dev/null "$@"; }
# Another commit was checked out on purpose.
[[ $(in_repository rev-parse HEAD) == "$GITHUB_SHA" ]] || exit 0

# Only a commit that a branch of the repository itself has: nothing of a fork's gets into a job that may have secrets.
remote=$GITHUB_SERVER_URL/$GITHUB_REPOSITORY head='' own=''
refs=$(git_with_token ls-remote -- "$remote" "refs/pull/$NUMBER/head" 'refs/heads/*') || refuse "cannot list the branches of $remote"
head=$(awk -v ref="refs/pull/$NUMBER/head" '$2 == ref {print $1}' <<<"$refs")
own=$(awk -v head="$head" '$1 == head && $2 ~ /^refs\/heads\// {print "yes"; exit}' <<<"$refs")
[[ $head =~ ^[0-9a-f]{40,64}$ ]] || refuse "pull request $NUMBER has no head at $remote"
[[ -n $own ]] || refuse "the head of pull request $NUMBER is no branch of $GITHUB_REPOSITORY: it is a fork's, or was deleted"
fetch_commit "$remote" "$head" || refuse "cannot fetch the head of pull request $NUMBER"
in_repository checkout --quiet --detach --no-recurse-submodules "$head" ||
  refuse "the head of pull request $NUMBER cannot be checked out over what earlier steps have changed"
echo "agentic-ci: checked out $head, the head of pull request $NUMBER"
