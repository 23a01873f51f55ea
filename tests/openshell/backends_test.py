#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each backend gives what the tables of docs/reference/backends.md say, and nothing that they deny.

usage: backends_test.py BINARY TESTBED CACHE [unittest arguments]
"""
import json
import pathlib
import subprocess
import sys
import unittest

from backends import CONTROLS, FEATURES
from real import GIT, SECRET, Case, main, read


class Gives(Case):
    """Tries every feature with one backend. A refusal has one of the statuses that say so."""
    COLUMN = ''
    REFUSALS = (64, 69)
    SECRETS = ('--secret', 'TOKEN@host.openshell.internal')
    LIMITS = ('--memory', '1GiB', '--cpus', '1', '--pids', '100', '--agent-cpu', '1m', '--file-size', '1GiB', '--open-files', '200')

    def chosen(self):
        return ['--backend', 'native', '--isolation', self.COLUMN]

    def claims(self):
        """The keys of the features that this backend gives."""
        return {feature.key for feature in FEATURES if self.COLUMN in feature.given}

    def done(self, *words, **env):
        process = self.start(*words, **env)
        output, errors = process.communicate(timeout=600)
        return process.returncode, output, errors

    def accepts(self, *options, command=('true',)):
        """Whether a run with `options` is not refused; its status."""
        status, output, errors = self.done('run', *self.chosen(), '--policy', self.policy, '--report-dir', self.base + '/accepts', *options,
                                           '--', *command)
        self.assertIn(status, (0, 124, 125, *self.REFUSALS), output + errors)
        return status not in self.REFUSALS, status

    def one_run(self, found):
        script = (f'echo said; curl -sS -m 20 -H "X-Token: $TOKEN" {self.url("/t")}; curl -sS -m 20 http://denied.invalid/; '
                  'echo new >n.txt; echo ": $TOKEN"; exit 3')
        status, output, errors = self.done('run', *self.chosen(), '--policy', self.policy, '--report-dir', self.base + '/r', *self.SECRETS,
                                           '--', 'sh', '-c', script, TOKEN=SECRET)
        found['run'] = (status, 'said' in output) == (3, True)
        self.assertTrue(found['run'], output + errors)
        record = self.record('r')
        found['denials'] = [(d['host'], d['binary'].rsplit('/', 1)[-1]) for d in record['denials']] == [('denied.invalid', 'curl')]
        found['patch'] = '+new' in read(self.base + '/r/changes.patch')
        found['credential'] = self.server.seen == [('/t', SECRET)] and 'hello' in output and SECRET not in output
        controls = record['isolation']['controls']
        states = {one['name']: one['state'] for one in controls}
        for name, state in CONTROLS[self.COLUMN].items():
            self.assertIn(name, states)
            if self.NAME == 'openshell' or state != 'enforced':
                self.assertEqual((name, states[name]), (name, state), controls)
        if self.NAME == 'openshell':
            self.assertEqual(set(states), set(CONTROLS[self.COLUMN]))

    def options_of_a_run(self, found):
        found['timeout'] = self.accepts('--timeout', '2s', command=('sleep', '100'))[1] == 124
        found['output'] = self.accepts('--output', '1KiB', command=('seq', '100000'))[1] == 125
        for key, *options in (('memory', '--memory', '1GiB'), ('pids', '--pids', '50'), ('budget', '--max-requests', '5'),
                              ('plan', '--plan-only'), ('keep-policy', '--keep-policy'), ('approval', '--approval-mode', 'manual')):
            found[key] = self.accepts(*options)[0]
        (self.work / '.git/info/exclude').write_text('built\n')
        found['ignored'] = self.accepts('--apply', '--apply-ignored', command=('touch', 'built'))[0] and (self.work / 'built').exists()
        # The one that this gateway does not hold is looked for there.
        found['held'] = self.done('run', *self.chosen(), '--report-dir', self.base + '/held', '--gateway-provider', 'none', '--', 'true')[0] == 66

    def lasting(self, found):
        status, output, errors = self.done('setup', *self.chosen(), '--policy', self.policy, '--report-dir', self.base + '/s', '--env',
                                           'GREETING=hello')
        found['lasting'] = status == 0
        if 'lasting' not in self.claims():
            self.assertIn(status, self.REFUSALS, output + errors)
            return
        self.assertTrue(found['lasting'], output + errors)
        name = output.strip()
        found['environment'] = self.done('exec', '--', 'sh', '-c', 'echo $GREETING')[1] == 'hello\n'
        self.done('sandbox', 'exec', name, '--', 'cd', 'd')
        found['shell-state'] = self.done('exec', '--', 'pwd')[1].rstrip().endswith('/d')
        answer = json.loads(self.done('exec', '--json', '--', 'touch', 'made')[1])
        found['exec-changes'] = [one['kind'] for one in answer['changes']] == ['created']
        found['diff'] = 'made' in self.done('sandbox', 'diff', name)[1]
        pathlib.Path(self.base, 'given').write_text('given\n')
        found['files'] = (self.done('sandbox', 'put', name, self.base + '/given', 'given')[0] == 0 and
                          self.done('sandbox', 'get', name, 'given', '-')[1] == 'given\n')
        pathlib.Path(self.base, 'none.json').write_text('{"version": 1}')
        found['policy'] = self.done('policy', 'set', name, self.base + '/none.json')[0] == 0
        found['snapshot'] = self.done('sandbox', 'snapshot', name)[0] == 0
        found['reset'] = self.done('sandbox', 'reset', name)[0] == 0
        self.assertEqual(self.done('stop')[0], 0)

    def test_it_gives_what_the_table_says(self):
        found = {}
        self.one_run(found)
        self.options_of_a_run(found)
        self.lasting(found)
        found['elsewhere'] = self.done('sandbox', 'list', *self.chosen_gateway())[0] == 0
        self.assertEqual({key for key, given in found.items() if given}, self.claims())

    def run_requiring(self, names):
        """A run whose configuration has these names in `require`: its status, what it says, and the state of each control."""
        config = self.work / '.agentic-ci/config.yml'
        config.parent.mkdir(exist_ok=True)
        config.write_text(f'require: {json.dumps(names)}\n' if names else 'bots: ["helper[bot]"]\n')
        for words in (['add', '-A'], ['commit', '-q', '--allow-empty', '-m', 'require']):
            subprocess.run([*GIT, *words], cwd=self.work, check=True)
        status, output, errors = self.done('run', *self.chosen(), '--policy', self.policy, '--report-dir', self.base + '/r', *self.LIMITS,
                                           '--', 'echo', 'started')
        return status, output + errors, self.controls('r') if status == 0 else {}

    def test_require_takes_what_the_record_calls_enforced_and_nothing_else(self):
        schema = json.loads(self.done('config', 'schema')[1])
        names = schema['properties']['require']['items']['enum']
        self.assertGreaterEqual(len(names), 13)
        status, said, states = self.run_requiring([])
        self.assertEqual(status, 0, said)
        enforced = [name for name in names if states.get(name) == 'enforced']
        status, said, _ = self.run_requiring(enforced)
        self.assertEqual((status, 'started' in said), (0, True), said)
        # Each other name; on OpenShell, where a run takes seconds, one for each state.
        others = {states.get(name, 'absent') if self.NAME == 'openshell' else name: name for name in names if name not in enforced}
        self.assertTrue(others)
        for name in others.values():
            with self.subTest(name):
                status, said, _ = self.run_requiring([name])
                self.assertEqual(status, 69, said)
                self.assertIn(f"requires '{name}' to be enforced; here, {states.get(name, 'it is not part of this tier')}", said)
                self.assertNotIn('started', said)

    def chosen_gateway(self):
        return ['--gateway', 'https://127.0.0.1:1']


class Namespaces(Gives):
    COLUMN, NAME = 'namespaces', 'native'


class Landlock(Gives):
    COLUMN, NAME = 'landlock', 'native'

    def setUp(self):
        super().setUp()
        # Root's agent is another user here, who has to enter the directory that TMPDIR names.
        pathlib.Path(self.base).chmod(0o755)


class Toy(Gives):
    """A place of one file, toy_backend.cc: it passes what it claims, and refuses the rest."""
    COLUMN, NAME = 'toy', 'toy'
    SECRETS, LIMITS = (), ()

    def setUp(self):
        super().setUp()
        self.BIN = str(pathlib.Path(self.BIN).parent / 'tests/openshell/toy_backend')

    def chosen(self):
        return ['--backend', 'toy']

    def claims(self):
        return {'run', 'patch', 'ignored', 'timeout', 'output'}


class Local(Gives):
    COLUMN = 'local'
    LIMITS = ('--memory', '1GiB')

    @classmethod
    def setUpClass(cls):
        if not cls.INSTALLED:
            raise unittest.SkipTest('testbed: OpenShell cannot run here')

    def chosen(self):
        return ['--backend', 'openshell', *self.OPTIONS]


class Remote(Local):
    COLUMN = 'remote'

    def setUp(self):
        super().setUp()
        self.call('setup', '--name', 'gateway', '--workdir', str(self.checkout('own')), *self.options('own'))
        self.pki = str(self.state() / 'pki')
        entry = json.loads(read(next(self.state().glob('config/openshell/gateways/*/metadata.json'))))
        self.address = entry['gateway_endpoint']

    def tearDown(self):
        self.call('stop', '--name', 'gateway')
        super().tearDown()

    def chosen(self):
        return [*super().chosen(), '--gateway', self.address, '--gateway-tls', self.pki]

    def chosen_gateway(self):
        return ['--backend', 'openshell', '--gateway', self.address, '--gateway-tls', self.pki]


del Gives

if __name__ == '__main__':
    main(sys.argv)
