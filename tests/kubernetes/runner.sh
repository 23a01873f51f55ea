#!/bin/bash
# Stands for the program of GitHub's runner in a pod: act carries out the one job that the pod is for, in the runner's work directory.
# From the environment: WORKFLOW, a file of /srv/site; EVENT, the event as JSON; SERVICE, the host and port of GitHub's API.
cd /home/runner/_work || exit
printf %s "$EVENT" >event.json
export XDG_CACHE_HOME=$PWD/cache
# What the policy allows; and GitHub's API, which agentic-ci asks over https, or on loopback.
httpd -p 127.0.0.1:8000 -h /srv/www
node /srv/forward.js "$SERVICE" 8001 &
locals=()
for action in /srv/actions/*/; do locals+=(--local-repository "$(cat "$action/.name")=${action%/}"); done
act pull_request -C /srv/site -W ".github/workflows/$WORKFLOW" -e "$PWD/event.json" -a maintainer -P agents=-self-hosted \
  --no-skip-checkout --action-offline-mode --no-cache-server "${locals[@]}" -s GITHUB_TOKEN=token-actions \
  -s ANTHROPIC_API_KEY=sk-test-0123456789 --env GITHUB_API_URL=http://127.0.0.1:8001 --env GITHUB_REPOSITORY=acme/site \
  --env GITHUB_REPOSITORY_ID=1 --env GITHUB_REF=refs/pull/7/merge --env "TEST_ARTIFACTS=$PWD/artifacts" &
act=$!
trap 'kill -INT $act' TERM
wait "$act"
status=$?
# A signal ends `wait`, and not act.
while kill -0 "$act" 2>/dev/null; do wait "$act"; status=$?; done
if [[ -d artifacts ]]; then
  echo @artifacts
  tar -C artifacts -cz . | base64
fi
exit "$status"
