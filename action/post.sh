#!/usr/bin/env bash
# Posts the report. A token that may not comment (on a fork's pull request it only reads) is no failure:
# the step's summary and the annotations say everything the comment would.
set -euo pipefail

# What the task of the configuration wants posted. What is about a pull request is left out where the event has none.
what=()
if [[ ${WHAT:-} == none ]]; then exit 0; fi
if [[ -n ${WHAT:-} && -z ${PULL_REQUEST:-} ]]; then
  WHAT=$(tr , '\n' <<<"$WHAT" | grep -vxE 'comment|review|commits' | paste -sd ,) || exit 0
fi
if [[ -n ${WHAT:-} ]]; then what=(--what "$WHAT"); fi
if [[ -n ${TASK:-} ]]; then what+=(--task "$TASK"); fi

outputs=$(mktemp)
trap 'rm -f "$outputs"' EXIT
status=0
env -u GITHUB_STEP_SUMMARY GITHUB_OUTPUT="$outputs" "$BINARY" post "${what[@]}" "$REPORT_DIR" || status=$?  # The run wrote the summary.
cat "$outputs" >>"${GITHUB_OUTPUT:-/dev/null}"
# Where a comment could be written, the token is not what was refused.
comment=$(sed -n '/^comment-url<</{n;p;q}' "$outputs")
if [[ $status == 77 && $comment != http* ]]; then
  echo "::warning title=agentic-ci::no comment: the token may not write to this pull request; the report is in the step's summary"
  exit 0
fi
exit "$status"
