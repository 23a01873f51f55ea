# SPDX-License-Identifier: Apache-2.0
"""The probes of docs/reference/containment.md: each answered in the sandbox as the table says, and outside not refused."""
import json
import os
import shutil
import subprocess
import sys

from harness import FIXTURES, PLACE, ROOT, Case, git, write

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE + '/containment')
import outside  # noqa: E402
import probes  # noqa: E402
import table  # noqa: E402

PYTHON = '/usr/bin/python3'
IDENTITY = 'root' if ROOT else 'user'
POLICY = '''version: 1
filesystem_policy:
  include_workdir: true
  read_only: [/usr, /etc, {shown}, {setuid}]
  read_write: [/tmp]
'''


class Containment(Case):
    maxDiff = None

    def setUp(self):
        super().setUp()
        self.feature('python3', os.path.exists(PYTHON), 'it tries everything')
        self.feature('root', FIXTURES, 'what is exposed must lie outside /tmp')
        place = PLACE + '/scratch/' + self.marker
        for name in ('shown', 'hidden'):
            os.makedirs(f'{place}/{name}')
        self.addCleanup(shutil.rmtree, place)
        shutil.copytree(HERE + '/containment', self.checkout, dirs_exist_ok=True)
        self.outside = outside.Outside(place + '/hidden', place + '/shown', self.checkout, PLACE + '/setuid/id')
        self.addCleanup(self.outside.__exit__)
        self.probes = table.every_probe()

    def inside(self, tier):
        policy = self.policy(POLICY.format(shown=self.outside.shown, setuid=PLACE + '/setuid'))
        report = f'{self.dir}/report-of-{tier}'
        write(self.checkout + '/facts.json', json.dumps(dict(self.outside.facts, report=report)))
        # The gates refuse what is written in the checkout.
        run = lambda: self.run_agent(PYTHON, 'probes.py', 'facts.json', code=77, kind='refused', report=report, options=[
            '--policy', policy, '--isolation', tier], env={'JOB_TOKEN': outside.CANARY}).out
        return self.outside.answers(self.probes, run)

    def test_each_probe_is_stopped_in_tier_namespaces(self):
        self.assertEqual(table.wrong(self.probes, 'namespaces', IDENTITY, self.inside('namespaces')), [])

    def test_each_probe_is_stopped_in_tier_landlock(self):
        self.assertEqual(table.wrong(self.probes, 'landlock', IDENTITY, self.inside('landlock')), [])

    def test_each_control_succeeds(self):
        write(self.checkout + '/facts.json', json.dumps(dict(self.outside.facts, report=self.dir)))
        run = lambda: subprocess.run([PYTHON, 'probes.py', 'facts.json', 'control'], cwd=self.checkout, capture_output=True,
                                     text=True, env={'JOB_TOKEN': outside.CANARY, 'PATH': '/usr/bin'}, timeout=120).stdout
        self.assertEqual(table.wrong_controls(self.probes, IDENTITY, self.outside.answers(self.probes, run)), [])
