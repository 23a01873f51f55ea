# SPDX-License-Identifier: Apache-2.0
"""What the suites take from package registries: fetched before the first of them, and kept for the next checkout.

A registry that stumbles is asked three times; then that is one line at the beginning, and not a failure in the middle.
"""
import contextlib
import hashlib
import os
import pathlib
import subprocess
import tempfile
import time

from suites import BUILD, ROOT

TRIES = 3
PAUSE_SECONDS = 5
AGENTS = sorted((ROOT / 'policies/agents').glob('*.yml'))
# Directory in build/: what says what belongs there, and the commands that put it there; {} stands for the directory.
WANTED = {
    'agents': (['tests/agents/install', *AGENTS],
               [['tests/agents/install', '{}', name] for name in (*(path.stem for path in AGENTS), 'node')]),
    'actions': (['tests/action/install'], [['tests/action/install', '{}', name] for name in ('actionlint', 'zizmor', 'act')]),
    'gitlab-ci-local': (['tests/component/install'], [['tests/component/install', '{}']]),
    'github-service': (['tests/services/github/install', 'tests/services/github/package.json'],
                       [['tests/services/github/install', '{}']]),
    'sigstore': (['tests/sigstore/install', 'tests/sigstore/package.json'], [['tests/sigstore/install', '{}']]),
    'renovate': (['tests/upgrades/install'], [['tests/upgrades/install', '{}']]),
    'sbom-tools': (['tests/build/install'], [['tests/build/install', '{}']]),
    'parity-quick': (['tests/parity/projects.yml', 'tests/parity/fetch.py'], [['tests/parity/fetch.py', '{}', '--quick']]),
    'kubernetes-schemas': (['tests/eval/install'], [['tests/eval/install', '{}']]),
    'programs': (['tests/programs/install'],
                 [['tests/programs/install', '{}', name] for name in ('inspect', 'harbor', 'deepagents')]),
    'sigstore-python': (['tests/programs/install'], [['tests/programs/install', '{}', 'sigstore']]),
    'openshell-python': (['tests/programs/install'], [['tests/programs/install', '{}', 'openshell']]),
    'identity-libraries': (['tests/programs/install'], [['tests/programs/install', '{}', 'libraries']]),
    'typescript': (['tests/sigstore/install', 'tests/programs/package.json'],
                   [['tests/sigstore/install', '{}', 'tests/programs/package.json']]),
    'sigstore-programs': (['tests/attest/install'], [['tests/attest/install', '{}']]),
    'telemetry': (['tests/telemetry/install', 'tests/telemetry/collector/main.go'], [['tests/telemetry/install', '{}']]),
    'gitlab-client': (['tests/services/gitlab/install'], [['tests/services/gitlab/install']]),
}
# Files of an image or of a guest have owners.
if os.geteuid() == 0:
    WANTED['agent-image'] = (['images/agent/build', 'images/agent/policy.yaml'],
                             [['sh', '-c', '[ -e {0} ] || images/agent/build base {0}']])
    WANTED['machines'] = (['tools/machine.py'], [['python3', 'tools/machine.py', '{}', 'amd64']])


def cache():
    """Where what was fetched is kept, for every checkout of this user."""
    named = os.environ.get('AGENTIC_CI_TESTS_CACHE')
    if named:
        return pathlib.Path(named)
    # Not in a home: root's is closed to the agents of its own runs.
    return pathlib.Path('/var/cache' if os.geteuid() == 0 else os.path.expanduser('~/.cache')) / 'agentic-ci-tests'


def kept(name, sources):
    """The directory of the cache for build/NAME, as these sources have it."""
    digest = hashlib.sha256(b''.join((ROOT / source).read_bytes() for source in sources)).hexdigest()[:12]
    return cache() / f'{name}-{digest}'


def copy(source, target):
    """Makes `target` the tree of `source`, by hard links where that can be; whole, or not at all."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as fresh:
        for how in (['-al'], ['-a']):
            done = subprocess.run(['cp', *how, source, f'{fresh}/{how[0]}'], stderr=subprocess.DEVNULL)
            if done.returncode == 0:
                with contextlib.suppress(OSError):  # Another checkout was quicker.
                    os.rename(f'{fresh}/{how[0]}', target)
                return


def fetch(command):
    """Why `command` failed each time; nothing if it did not."""
    for left in reversed(range(TRIES)):
        done = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode == 0:
            return ''
        if left:
            time.sleep(PAUSE_SECONDS)
    return (done.stderr + done.stdout).strip()


def everything():
    """Fetches all that is not there yet. One line for what cannot be had, with the last words about it."""
    missing = []
    for name, (sources, commands) in WANTED.items():
        place, known = BUILD / name, kept(name, sources)
        if not place.exists() and known.exists():
            copy(known, place)
        before = len(missing)
        for command in commands:
            why = fetch([word.format(place) for word in command])
            if why:
                missing.append(f'{" ".join(command[:1] + command[2:])}: {why.splitlines()[-1]}')
        if place.exists() and not known.exists() and len(missing) == before:
            copy(place, known)
    return missing
