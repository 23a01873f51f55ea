#!/usr/bin/env bash
# What the scripts beside it need of git; they source it.
set -euo pipefail

# The job's token is given to these commands alone, for the forge alone, and in place of one that the checkout has kept: the
# forge refuses a request with two.
git_with_token() {
  local header=http.$GITHUB_SERVER_URL/.extraheader
  GIT_TERMINAL_PROMPT=0 GIT_CONFIG_COUNT=2 GIT_CONFIG_KEY_0=$header GIT_CONFIG_VALUE_0='' GIT_CONFIG_KEY_1=$header \
    GIT_CONFIG_VALUE_1="AUTHORIZATION: basic $(printf 'x-access-token:%s' "$TOKEN" | base64 -w 0)" \
    git --git-dir="$repository" "$@"
}

# Fetches the commit $2 of the remote $1 if it is not there. A full history is not cut off.
fetch_commit() {
  local depth=--depth=1
  git --git-dir="$repository" cat-file -e "$2^{commit}" 2>/dev/null && return
  [[ $(git --git-dir="$repository" rev-parse --is-shallow-repository) == true ]] || depth=
  git_with_token fetch --quiet --no-tags --no-recurse-submodules $depth "$1" "$2"
}

# The `.git` nearest above, which no commit can contain. git itself also takes a directory with the files of a bare
# repository for one, and runs what its configuration says; a pull request can add those.
find_repository() {
  local at
  at=$(CDPATH='' cd -- "$1" 2>/dev/null && pwd -P) || return 1
  until [[ -e $at/.git ]]; do
    [[ $at != / ]] || return 1
    at=$(dirname -- "$at")
  done
  repository=$at/.git
}
