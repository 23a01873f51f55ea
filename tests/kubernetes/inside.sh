#!/bin/sh
# In a pod: what doctor says, and runs. Prints what each said between its marks, which pods_test.py reads.
# usage: inside.sh TIER STEP...
tier=$1
shift
# A volume may be written by all; what a report lies in may not.
mkdir -m 700 own && cd own || exit
export HOME=$PWD/home GIT_CONFIG_NOSYSTEM=1
mkdir home www
echo heard >www/hello
httpd -p 127.0.0.1:8080 -h "$PWD/www"

# NAME COMMAND...
step() {
  name=$1
  shift
  echo "@begin $name"
  "$@" 2>&1
  echo "@end $name $?"
}

checkout() {
  git -c init.defaultBranch=main init -q "$1"
  for file in a.txt gone.txt; do echo "content of $file" >"$1/$file"; done
  git -C "$1" add .
  git -C "$1" -c user.name=t -c user.email=t@localhost commit -qm one
}

# NAME [OPTION...] -- COMMAND...: a run in the tier, and its record.
run() {
  name=$1
  shift
  checkout "co-$name"
  step "$name" agentic-ci run --isolation "$tier" --workdir "co-$name" --report-dir "report-$name" "$@"
  step "$name.record" cat "report-$name/run.json"
}

web_policy() {
  cat >policy.yml <<POLICY
version: 1
network_policies:
  web:
    endpoints:
      - {host: host.openshell.internal, port: 8080, protocol: rest, enforcement: enforce, access: read-only}
    binaries:
      - {path: /usr/bin/busybox}
POLICY
}

everyday() {
  web_policy
  # shellcheck disable=SC2016 # The agent's shell expands it.
  run everyday --policy policy.yml -- sh -ec '
    echo more >>a.txt; rm gone.txt
    echo "web=$(wget -q -O - http://host.openshell.internal:8080/hello)"
    echo "elsewhere=$(wget -q -T 5 -O - http://elsewhere.example.com/hello 2>/dev/null)"
    echo "shadow=$(cat /etc/shadow 2>/dev/null)"
    git status --short'
  step everyday.changes cat report-everyday/changes.json
}

for one; do
  case $one in
    doctor)
      step doctor agentic-ci doctor
      step doctor.json agentic-ci doctor --json
      ;;
    default)
      checkout co-default
      step default agentic-ci run --workdir co-default --report-dir report-default -- echo started
      ;;
    everyday) everyday ;;
    bash-bomb) run bash-bomb --pids 64 --timeout 20s -- bash -c 'f() { f | f & }; f' ;;
    sh-bomb) run sh-bomb --pids 64 --timeout 20s -- sh -c 'f() { f | f & }; f' ;;
    forks) run forks --pids 64 --timeout 20s -- kernel_probe fork 200 ;;
    few-forks) run few-forks --pids 64 --timeout 20s -- kernel_probe fork 20 ;;
    unlimited-forks) run unlimited-forks --timeout 20s -- kernel_probe fork 200 ;;
    memory) run memory --memory 64MiB --timeout 60s -- dd if=/dev/zero of=/dev/null bs=200M count=50 ;;
    large) run large --timeout 60s -- dd if=/dev/zero of=/dev/null bs=600M count=10 ;;
    neighbours)
      # Two runs at once, of which one is out of memory while the other waits for a file of the web server.
      web_policy
      run waits --policy policy.yml --timeout 120s -- sh -c \
        'echo begun; until wget -q -O - http://host.openshell.internal:8080/go; do sleep 0.2; done' >waits.out &
      until grep -q '^begun' waits.out; do sleep 0.1; done
      run large --timeout 60s -- dd if=/dev/zero of=/dev/null bs=600M count=10
      echo went >www/go
      wait $!
      cat waits.out
      ;;
    await-go) while [ ! -e ../go ]; do sleep 0.1; done ;;
  esac
done
step left find /tmp /builds -maxdepth 3 -name 'agentic-ci-scratch*'
echo '@done'
