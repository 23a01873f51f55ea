#!/bin/sh
# Asks an agent that is a server of midojo's protocol `http` inside the sandbox of a cell, where everything that it does
# is recorded. COMMAND starts it on 127.0.0.1:8080. The answer alone is printed. Needs curl and jq.
#
#   agentic-ci eval run SUITE -- sh -c "$(cat ask-http.sh)" ask-http 'exec my-agent --port 8080'
#
# usage: ask-http.sh COMMAND PROMPT
set -eu
sh -c "$1" >"${TMPDIR:-/tmp}/agent-server.log" 2>&1 &
server=$!
trap 'kill "$server"' EXIT
jq -n --arg prompt "$2" '{prompt: $prompt}' |
  curl -sSf --noproxy '*' --retry 30 --retry-connrefused --retry-delay 1 -H 'content-type: application/json' \
    --data-binary @- http://127.0.0.1:8080/ |
  jq -er '.response // .output // .text'
