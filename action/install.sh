#!/usr/bin/env bash
# Gives the step output `path`: the input `path`, or the release asset whose SHA-256 stands in
# checksums.txt. Nothing is made executable before its hash was compared, also not a cached one.
set -euo pipefail

fail() {
  echo "::error title=agentic-ci::${2//[$'\r\n']/ }"
  exit "$1"
}

done_with() {
  echo "path=$1" >>"$GITHUB_OUTPUT"
  exit 0
}

# Redirects lead to the same host or one below it, and from github.com to GitHub's storage: nowhere else is asked.
fetch() {
  local at=$url next host
  host=$(host_of "$url")
  for _ in 1 2 3 4 5; do
    next=$(curl -q --fail --silent --show-error --proto "$protocol" --retry 3 --connect-timeout 20 --max-time 300 \
      --max-filesize 104857600 --output "$mine" --write-out '%{redirect_url}' -- "$at") ||
      fail 75 "cannot fetch $at; give path: a binary of your own, or download-url: a mirror that this machine reaches"
    [[ -n $next ]] || return 0
    case "$host $(host_of "$next")" in
      " "*) fail 77 "$url leads to $next, and is not https://HOST/PATH itself: nothing says which host it may lead to" ;;
      "$host $host" | "$host "*".$host" | "github.com "*.githubusercontent.com) at=$next ;;
      *) fail 77 "$url leads to another host: $next" ;;
    esac
  done
  fail 77 "$url leads to ever more addresses"
}

# Of a URL, with the port; nothing of one that is not understood.
host_of() { sed -nE 's,^https?://([A-Za-z0-9.-]+(:[0-9]+)?)([/?#].*)?$,\1,p' <<<"$1"; }

matches() { echo "$sum  $1" | sha256sum --check --status; }

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
[[ ${BINARY_PATH:-}${VERSION:-}${DOWNLOAD_URL:-} != *[$'\r\n']* ]] || fail 64 "an input of several lines"

if [[ -n ${BINARY_PATH:-} ]]; then
  [[ -f $BINARY_PATH && -x $BINARY_PATH ]] || fail 66 "path: no executable file $BINARY_PATH"
  done_with "$(realpath -- "$BINARY_PATH")"
fi

[[ $(uname -s) == Linux ]] || fail 69 "agentic-ci runs on Linux only"
version=${VERSION#v}
[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.]+)?$ ]] || fail 64 "version: not a version: $VERSION"
asset=agentic-ci-$version-linux-$(uname -m)
sum=$(awk -v asset="$asset" '$1 ~ /^[0-9a-f]+$/ && length($1) == 64 && $2 == asset {print $1}' "$here/checksums.txt")
[[ $sum =~ ^[0-9a-f]{64}$ ]] || fail 77 "$asset has no checksum in action/checksums.txt of this commit; give path:"

url=${DOWNLOAD_URL:-}
if [[ -z $url ]]; then
  # The context is empty in some nested uses; the folder the runner checks actions out to is not.
  repository=${ACTION_REPOSITORY:-}
  [[ -n $repository || ! $here =~ /_actions/([^/]+/[^/]+)/ ]] || repository=${BASH_REMATCH[1]}
  [[ -n $repository ]] || fail 78 "cannot tell where this action comes from; give path: or download-url:"
  url=$GITHUB_SERVER_URL/$repository/releases/download
fi
url=${url%/}/v$version/$asset
protocol='=https'
[[ ! $url =~ ^http://(127\.0\.0\.1|localhost)[:/] ]] || protocol='=http'

cached=${RUNNER_TOOL_CACHE:-$RUNNER_TEMP}/agentic-ci/$version/$asset
mine=$(mktemp -d "$RUNNER_TEMP/agentic-ci.XXXXXX")/agentic-ci
# The copy is compared, not the cached file: somebody else may write to the cache.
if [[ ! -f $cached ]] || ! cp -- "$cached" "$mine" || ! matches "$mine"; then
  fetch
  matches "$mine" || fail 77 "$url is not what action/checksums.txt pins"
  { mkdir -p "${cached%/*}" && cp -- "$mine" "$cached.$$" && mv -- "$cached.$$" "$cached"; } 2>/dev/null ||
    echo "agentic-ci: not cached in ${cached%/*}"
fi
chmod 0755 "$mine"
done_with "$mine"
