#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Renovate, with the preset, finds each thing that a repository pins of agentic-ci. It runs on the repository here (its platform
`local`) and looks up no newer versions.

usage: upgrades_test.py RENOVATE [TEST...]
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
RENOVATE = os.path.abspath(sys.argv.pop(1))
COMMIT, DIGEST = '0123456789abcdef0123456789abcdef01234567', 'sha256:' + '0123456789abcdef' * 4
WORKFLOW = f'''
on: pull_request
jobs:
  agent:
    runs-on: ubuntu-24.04
    steps:
      - uses: acme/agentic-ci@{COMMIT} # v0.1.0
        with:
          image: ghcr.io/acme/agentic-ci/agent@{DIGEST}
'''
PIPELINE = f'''
include:
  - component: gitlab.example.com/group/agentic-ci/run@{COMMIT} # v0.1.0
    inputs:
      job-image: registry.example.com:5000/ci/claude-code:1.2@{DIGEST}
'''
CONFIGURATION = f'image: "ghcr.io/acme/agentic-ci/agent-base:v0.1.0@{DIGEST}"\n'


class Upgrades(unittest.TestCase):
    def find(self, preset):
        """What Renovate finds with that preset: {(manager, name): (value, digest)}."""
        with tempfile.TemporaryDirectory() as directory:
            site = pathlib.Path(directory, 'site')
            for name, text in (('.github/workflows/agent.yml', WORKFLOW), ('.gitlab-ci.yml', PIPELINE), ('.agentic-ci/config.yml', CONFIGURATION)):
                path = site / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            for line in (['init', '-q'], ['add', '-A']):
                subprocess.run(['git', *line], cwd=site, check=True)
            run = subprocess.run(['node', RENOVATE, '--platform=local', '--dry-run=extract'], cwd=site, capture_output=True, text=True, timeout=300, env={
                'PATH': os.environ['PATH'], 'HOME': directory, 'LOG_LEVEL': 'debug', 'LOG_FORMAT': 'json', 'TMPDIR': directory,
                'RENOVATE_CONFIG_FILE': str(preset), 'http_proxy': 'http://127.0.0.1:1', 'https_proxy': 'http://127.0.0.1:1'})
        found = {}
        for line in run.stdout.splitlines():
            entry = json.loads(line)
            self.assertLess(entry.get('level', 0), 50, line)
            for manager, files in (entry.get('packageFiles') or {}).items():
                for dependency in (one for file in files for one in file['deps']):
                    found[manager, dependency['depName']] = dependency.get('currentValue'), dependency.get('currentDigest')
        return found

    def test_it_finds_the_action_the_component_and_images(self):
        found = self.find(ROOT / 'presets/renovate.json5')
        wanted = {('github-actions', 'acme/agentic-ci'): ('v0.1.0', COMMIT),
                  ('regex', 'ghcr.io/acme/agentic-ci/agent'): (None, DIGEST),
                  ('regex', 'ghcr.io/acme/agentic-ci/agent-base'): ('v0.1.0', DIGEST),
                  ('regex', 'registry.example.com:5000/ci/claude-code'): ('1.2', DIGEST),
                  ('regex', 'group/agentic-ci'): ('v0.1.0', COMMIT)}
        self.assertEqual({name: found.get(name) for name in wanted}, wanted, found)

    def test_without_the_preset_the_action_is_all_it_finds(self):
        with tempfile.NamedTemporaryFile('w', suffix='.json5') as empty:
            empty.write('{}')
            empty.flush()
            names = {name for manager, name in self.find(empty.name) if manager in ('regex', 'github-actions')}
        self.assertIn('acme/agentic-ci', names)
        self.assertNotIn('ghcr.io/acme/agentic-ci/agent-base', names)


if __name__ == '__main__':
    unittest.main(verbosity=2)
