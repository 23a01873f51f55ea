#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The real Claude Code in the real OpenShell, against a scripted model: on a gateway of the run's own, and in a sandbox that lasts.

usage: agent_test.py BINARY CLAUDE_DIRECTORY TESTBED CACHE [unittest arguments]
"""
import os
import pathlib
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / 'services/model')]
from model import Model  # noqa: E402
from real import Case, main, read  # noqa: E402

PROGRAM = os.path.join(sys.argv.pop(2), 'claude')
KEY = 'sk-test-of-openshell'
SCENARIO = {'usage': {'input': 1000, 'cacheRead': 200, 'cacheWrite': 0, 'output': 40}, 'turns': [
    {'text': 'I read.', 'action': {'read_file': {'path': 'a.txt'}}},
    {'text': 'I edit.', 'action': {'edit_file': {'path': 'a.txt', 'old': 'alpha', 'new': 'omega'}}},
    {'text': 'I run.', 'action': {'run': {'command': 'env >seen.txt; curl -sS http://denied.invalid/; :'}}},
    {'text': 'All done, said the agent.'}]}


class Agent(Case):
    @classmethod
    def setUpClass(cls):
        if not cls.INSTALLED:
            raise unittest.SkipTest('testbed: OpenShell cannot run here')

    def model(self, key=KEY):
        model = Model(self.base + '/model', SCENARIO, key=key, host='0.0.0.0').__enter__()
        self.addCleanup(model.__exit__)
        self.write_policy(model.port, 'read-write')
        return model

    def access(self, model):
        return ['--secret', 'ANTHROPIC_API_KEY@host.openshell.internal', '--env',
                f'ANTHROPIC_BASE_URL=http://host.openshell.internal:{model.port}']

    def check_changes(self, report):
        patch = read(f'{self.base}/{report}/changes.patch')
        self.assertIn('+omega', patch)
        self.assertIn('+ANTHROPIC_API_KEY=openshell:resolve:env:', patch)
        self.assertEqual([d['host'] for d in self.record(report)['denials']], ['denied.invalid'])
        for file in pathlib.Path(self.base, report).iterdir():
            self.assertNotIn(KEY.encode(), file.read_bytes(), file)

    def test_task(self):
        model = self.model()
        self.call('run', *self.options('r'), *self.access(model), '--agent', 'claude-code', '--prompt', '-do it "now" $(false)',
                  ANTHROPIC_API_KEY=KEY)
        record = self.record('r')
        self.assertEqual(record['outcome']['kind'], 'success')
        self.assertEqual((record['usage']['turns'], record['usage']['tool_calls']), (4, 3))
        self.assertIn('All done, said the agent.', read(f'{self.base}/r/summary.md'))
        self.assertEqual({request['key'] for request in model.requests() if 'nth' in request}, {'right'})
        self.check_changes('r')

    def test_refused_by_its_model(self):
        """What it says is in the outcome, as with the other backend."""
        model = self.model('another key')
        self.call('run', *self.options('r'), *self.access(model), '--agent', 'claude-code', '--prompt', 'do it', '--env',
                  'CLAUDE_CODE_MAX_RETRIES=1', expect=78, ANTHROPIC_API_KEY=KEY)
        self.assertEqual(self.record('r')['outcome']['kind'], 'credential-refused')

    def test_lasting(self):
        model = self.model()
        self.call('setup', *self.options('r'), *self.access(model), '--agent', 'claude-code', ANTHROPIC_API_KEY=KEY)
        name = self.call('sandbox', 'list').split()[0]
        output = self.call('run', '--sandbox', name, '--agent', 'claude-code', '--prompt', 'do it')
        self.assertIn('All done, said the agent.', output)
        self.call('stop')
        self.check_changes('r')


if __name__ == '__main__':
    main(sys.argv, {'usr/local/bin/claude': PROGRAM})
