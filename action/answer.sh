#!/usr/bin/env bash
# Answers a command in a comment where the person looks. usage: answer.sh seen|done
# What the token may not write is left out with a notice: neither is the result.
set -euo pipefail

api=$GITHUB_API_URL/repos/$GITHUB_REPOSITORY/issues
send() {
  curl -q --fail --silent --show-error --max-time 30 --output /dev/null --header "Authorization: Bearer $TOKEN" \
    --header 'Accept: application/vnd.github+json' --header 'X-GitHub-Api-Version: 2022-11-28' --header 'Content-Type: application/json' \
    --data @- -- "$1" 2>&1 || echo "::notice title=agentic-ci::the comment was not answered: $1"
}

[[ $COMMENT =~ ^[0-9]+$ && $NUMBER =~ ^[0-9]+$ ]] || exit 0
if [[ $1 == seen ]]; then
  send "$api/comments/$COMMENT/reactions" <<<'{"content":"eyes"}'
  exit 0
fi

# The result is a comment that a later run updates. One that is younger than the command stands below it already.
[[ $RESULT =~ ^https?://[A-Za-z0-9._:/%-]+#issuecomment-([0-9]+)$ ]] || exit 0
((BASH_REMATCH[1] < COMMENT)) || exit 0
[[ $LOGIN =~ ^[A-Za-z0-9][A-Za-z0-9._-]*$ && $CONCLUSION =~ ^[a-z-]+$ ]] || exit 0
send "$api/$NUMBER/comments" <<<"{\"body\":\"@$LOGIN: ${CONCLUSION/success/done}. [The result]($RESULT) is in the comment above.\"}"
