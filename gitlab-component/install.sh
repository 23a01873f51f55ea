# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# Sets $binary: AGENTIC_CI_PATH, or the release whose SHA-256 is listed below. Nothing is made executable before its hash
# was compared. tools/generate takes the list from action/checksums.txt and puts what follows into both templates.

set -eu

fail() {
  printf 'agentic-ci: error: %s\n' "$2" >&2
  exit "$1"
}

# Prints the host of a URL, with the port; nothing for one that is not understood.
host_of() { printf '%s\n' "$1" | sed -nE 's,^https?://([A-Za-z0-9.-]+(:[0-9]+)?)([/?#].*)?$,\1,p'; }

# generated: checksums begin
checksums='
'
# generated: checksums end

if [ -n "${AGENTIC_CI_PATH:-}" ]; then
  case $AGENTIC_CI_PATH in */*) binary=$AGENTIC_CI_PATH ;; *) binary=./$AGENTIC_CI_PATH ;; esac
  if ! [ -f "$binary" ] || ! [ -x "$binary" ]; then fail 66 "path: no executable file $AGENTIC_CI_PATH"; fi
else
  [ "$(uname -s)" = Linux ] || fail 69 'agentic-ci runs on Linux only'
  command -v curl >/dev/null || fail 78 "curl is missing in the job's image"
  version=${AGENTIC_CI_VERSION#v}
  asset=agentic-ci-$version-linux-$(uname -m)
  sum=$(printf '%s' "$checksums" |
    awk -v asset="$asset" '$1 ~ /^[0-9a-f]+$/ && length($1) == 64 && $2 == asset {print $1}')
  [ "${#sum}" = 64 ] || fail 77 "$asset has no checksum in this commit of the component; give path:"
  url=${AGENTIC_CI_DOWNLOAD_URL%/}/v$version/$asset
  case $url in http://127.0.0.1[:/]* | http://localhost[:/]*) protocol='=http' ;; *) protocol='=https' ;; esac
  directory=$(mktemp -d)
  trap 'rm -rf "$directory"' EXIT
  binary=$directory/agentic-ci
  # Redirects lead to the same host or one below it, and from github.com to GitHub's storage: nowhere else is asked.
  host=$(host_of "$url")
  at=$url
  hops=0
  while [ -n "$at" ]; do
    next=$(curl -q --fail --silent --show-error --proto "$protocol" --retry 3 --connect-timeout 20 --max-time 300 \
      --max-filesize 104857600 --output "$binary" --write-out '%{redirect_url}' -- "$at") ||
      fail 75 "cannot fetch $at; give path: a binary of your own, or download-url: a mirror that this machine reaches"
    [ -z "$next" ] || case "$host $(host_of "$next")" in
      " "*) fail 77 "$url leads to $next, and is not https://HOST/PATH itself: nothing says which host it may lead to" ;;
      "$host $host" | "$host "*".$host" | "github.com "*.githubusercontent.com) ;;
      *) fail 77 "$url leads to another host: $next" ;;
    esac
    hops=$((hops + 1))
    [ "$hops" -le 5 ] || fail 77 "$url leads to ever more addresses"
    at=$next
  done
  [ "$(sha256sum <"$binary" | cut -d ' ' -f 1)" = "$sum" ] ||
    fail 77 "$url is not what this commit of the component pins"
  chmod 0755 "$binary"
fi
