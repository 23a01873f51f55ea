#!/usr/bin/env bash
# Fetches the reports of the runs that the pull request's commits name, and verifies what is stated of them.
set -euo pipefail
# shellcheck source=SCRIPTDIR/git.sh
. "$(dirname "${BASH_SOURCE[0]}")/git.sh"

fail() { echo "::error title=agentic-ci::$1"; exit 78; }
[[ ${NUMBER:-} =~ ^[0-9]+$ && $BASE_SHA =~ ^[0-9a-f]{40}$ && $HEAD_SHA =~ ^[0-9a-f]{40}$ ]] ||
  fail "the event is about no pull request; start the workflow with pull_request_target"
find_repository . || fail "there is no checkout here; actions/checkout with fetch-depth: 0 makes one"
git --git-dir="$repository" cat-file -e "$HEAD_SHA^{commit}" 2>/dev/null ||
  git_with_token fetch --quiet --no-tags --no-recurse-submodules "$GITHUB_SERVER_URL/$GITHUB_REPOSITORY" "refs/pull/$NUMBER/head" ||
  fail "cannot fetch the head of pull request $NUMBER"

# A commit says which run made it. Anybody can write that; what is fetched counts only if its statement is signed.
runs=$(mktemp -d "${RUNNER_TEMP:-/tmp}/agentic-ci-runs.XXXXXX")
address=$GITHUB_SERVER_URL/$GITHUB_REPOSITORY/actions/runs/
while read -r run; do
  GH_TOKEN=$TOKEN GH_HOST=${GITHUB_SERVER_URL#*://} gh run download "$run" --repo "$GITHUB_REPOSITORY" --dir "$runs/$run" ||
    echo "::warning title=agentic-ci::the report of run $run cannot be fetched"
done < <(git --git-dir="$repository" log --format=%B "$BASE_SHA..$HEAD_SHA" |
  awk -v address="$address" '{while ((at = index($0, address)) > 0) {$0 = substr($0, at + length(address)); if (match($0, /^[0-9]+/)) print substr($0, 1, RLENGTH)}}' |
  sort -u | head -n 50)

every=()
if [[ ${EVERY_COMMIT:-} == true ]]; then every=(--every-commit); fi
exec "$BINARY" verify-run --pull-request --bundles "$runs" --policy "$POLICY" "${every[@]}"
