#!/usr/bin/env bash
# Posts the report. A token that may not comment (on a fork's pull request it only reads) is no failure:
# the step's summary and the annotations say everything the comment would.
set -euo pipefail

# What the task of the configuration wants posted.
what=()
if [[ ${WHAT:-} == none ]]; then exit 0; fi
if [[ -n ${WHAT:-} ]]; then what=(--what "$WHAT"); fi
if [[ -n ${TASK:-} ]]; then what+=(--task "$TASK"); fi

status=0
env -u GITHUB_STEP_SUMMARY "$BINARY" post "${what[@]}" "$REPORT_DIR" || status=$?  # The run wrote the summary.
if [[ $status == 77 ]]; then
  echo "::warning title=agentic-ci::no comment: the token may not write to this pull request; the report is in the step's summary"
  exit 0
fi
exit "$status"
