#!/usr/bin/env bash
# Says how a run ended that could not say so itself: the binary was refused, or the run was killed.
set -euo pipefail

conclusion=lost
reason='the run was killed before it could write its report'
if [[ $INSTALLED != success ]]; then
  conclusion=setup-failed
  reason='agentic-ci could not be installed'
fi
if [[ -n ${HEAD_REASON:-} ]]; then
  conclusion=refused
  reason=$HEAD_REASON
fi
printf '%s\n' "conclusion=$conclusion" "reason=$reason" >>"$GITHUB_OUTPUT"
printf '## agentic-ci: %s\n\n%s\n' "$conclusion" "${reason^}." >>"${GITHUB_STEP_SUMMARY:-/dev/null}"
[[ -n ${HEAD_REASON:-} ]] || echo "::error title=agentic-ci::$reason"
