#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`policy explain` says of every place that a run's plan opens what the plan says, for each policy of the examples.

usage: explain_test.py BINARY SOURCE_DIRECTORY [NAME...]
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import tally
from tally import check

SOURCE = pathlib.Path(sys.argv[2])
GIT = ['git', '-c', 'user.name=a', '-c', 'user.email=a@example.com', '-c', 'init.defaultBranch=main']
CONFIG = """\
tasks:
  review: {agent: claude-code, provider: anthropic, prompt: "Look at it."}
  test: {agent: command, command: ["true"]}
ecosystems: [ruby]
"""
LOCK = 'GEM\n  remote: https://gems.example.com/\n  specs:\n    rake (13.0.0)\n'


def run(directory, *arguments):
    return tally.run(directory, *arguments, PATH=f'{directory.parent}/bin:{os.environ["PATH"]}', ANTHROPIC_API_KEY='sk-test-0123456789')


def explains(directory, place, *options):
    status, text = run(directory, 'policy', 'explain', *options, place)
    check(status in (0, 77), f'{place}: {text}')
    return status == 0


def try_policy(top, policy):
    directory = top / 'checkout'
    (directory / '.agentic-ci').mkdir(parents=True)
    (directory / '.agentic-ci/openshell-policy.yml').write_text(policy)
    (directory / '.agentic-ci/config.yml').write_text(CONFIG)
    (directory / 'Gemfile.lock').write_text(LOCK)
    for arguments in (['init', '-q'], ['remote', 'add', 'origin', 'https://forge.example.com/acme/shop.git'], ['add', '.'],
                      ['commit', '-qm', 'first']):
        subprocess.run([*GIT, *arguments], cwd=directory, check=True)
    status, plan = run(directory, 'run', '--task', 'review', '--plan-only')
    check(status == 0, plan)
    places = re.findall(r'^endpoint +([^ *]+:\d+) ', plan, re.M)
    check(any(place.startswith('gems.example.com') for place in places), f'the registry is planned: {plan}')
    for place in places:
        check(explains(directory, place), f'the plan opens {place}, explain does not')
    check(not explains(directory, 'elsewhere.example.net:443'), 'explain opens what the plan does not')
    # The model is the task's, the registry the configuration's: neither is the policy's own.
    check(not explains(directory, 'gems.example.com:443', '--bare'), '--bare looks at the configuration')
    if 'api.anthropic.com:443' in places and 'anthropic' not in policy:
        check(not explains(directory, 'api.anthropic.com:443', '--task', 'test'), '--task is not taken')
    check('no task called' in run(directory, 'policy', 'explain', '--task', 'x', 'a.example:1')[1], 'an unknown task')


def main():
    names = sys.argv[3:]
    policies = sorted(SOURCE.glob('examples/*/.agentic-ci/openshell-policy.yml')) + sorted(SOURCE.glob('examples/policies/*.yml'))
    for path in policies:
        name = str(path.relative_to(SOURCE))
        if names and not any(one in name for one in names):
            continue
        with tempfile.TemporaryDirectory(prefix='explain-') as top:
            program = pathlib.Path(top, 'bin/claude')
            program.parent.mkdir()
            program.write_text('#!/bin/sh\n')
            program.chmod(0o755)
            before = tally.failed
            try_policy(pathlib.Path(top), path.read_text())
            if tally.failed > before:
                print('in', name)
    return tally.finish()


if __name__ == '__main__':
    sys.exit(main())
