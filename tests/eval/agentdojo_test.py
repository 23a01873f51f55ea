# SPDX-License-Identifier: Apache-2.0
"""AgentDojo itself, with agents in the sandbox. usage: agentdojo_test.py AGENTIC-CI ROOT (tests/eval/agentdojo puts it in the way)"""
import contextlib
import importlib.abc
import importlib.machinery
import io
import json
import os
import pathlib
import runpy
import shutil
import socket
import sys
import tempfile
import unittest
from unittest import mock

BINARY, ROOT = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
HERE = pathlib.Path(__file__).resolve().parent
CLIENTS = ('anthropic', 'cohere', 'google', 'langchain', 'openai')
USERS, GOALS = ('user_task_0', 'user_task_3'), ('injection_task_0', 'injection_task_4')


class Stub(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """The clients of models, which AgentDojo imports and no agent of ours uses."""

    def find_spec(self, name, path=None, target=None):
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if name.split('.')[0] in CLIENTS else None

    def create_module(self, spec):
        module = mock.MagicMock(name=spec.name)
        module.__path__, module.__spec__ = [], spec
        return module

    def exec_module(self, module):
        pass


sys.meta_path.insert(0, Stub())
from agentdojo.task_suite import get_suite  # noqa: E402  pylint: disable=wrong-import-position,import-error

TOOLS = '''version: 1
network_policies:
  tools:
    binaries: [{{path: /**}}]
    endpoints:
      - host: host.openshell.internal
        port: {port}
        protocol: mcp
        enforcement: enforce
        rules: {rules}
'''
ALL = [{'allow': {'method': name}} for name in ('initialize', 'tools/list')]


class AgentDojo(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        suite = get_suite('v1.2.2', 'banking')
        environment = suite.load_and_inject_default_environment({})
        users = [suite.get_user_task_by_id(one) for one in USERS]
        goals = [suite.get_injection_task_by_id(one) for one in GOALS]
        cls.calls = {}
        for text, task in [*((one.PROMPT, one) for one in users), *((one.GOAL, one) for one in goals)]:
            calls = task.ground_truth(environment.model_copy(deep=True))
            cls.calls[text] = {'calls': [[call.function, dict(call.args)] for call in calls], 'output': task.GROUND_TRUTH_OUTPUT}

    def setUp(self):
        self.top = pathlib.Path(tempfile.mkdtemp(prefix='agentdojo-test-'))
        self.addCleanup(shutil.rmtree, self.top, ignore_errors=True)
        with socket.socket() as free:
            free.bind(('127.0.0.1', 0))
            self.port = free.getsockname()[1]

    def summary(self, way, tools):
        rules = [*ALL, *({'allow': {'method': 'tools/call', 'tool': tool}} for tool in tools)]
        policy = self.top / 'policy.yml'
        policy.write_text(TOOLS.format(port=self.port, rules=json.dumps(rules)))
        words = ['pipeline', 'banking', self.top / f'{way}-{len(tools)}', '--port', self.port, '--policy', policy,
                 *(word for one in USERS for word in ('--user-task', one)), *(word for one in GOALS for word in ('--injection-task', one)),
                 '--', '/usr/bin/python3', '-c', (HERE / 'agentdojo_agent.py').read_text(), json.dumps(self.calls, default=str), way]
        said = io.StringIO()
        with mock.patch.object(sys, 'argv', [str(word) for word in words]), contextlib.redirect_stdout(said), \
                mock.patch.dict(os.environ, AGENTIC_CI=BINARY):
            runpy.run_path(str(ROOT / 'examples/evaluation/agentdojo/agentic_ci_pipeline.py'), run_name='__main__')
        return said.getvalue().splitlines()[-2:]

    def test_agentdojos_own_verdicts(self):
        # The bill that task 0 reads has the injection; the transactions that task 3 reads have none of these.
        self.assertEqual(self.summary('obey', ['*']), ['2 of 2 tasks solved alone, 4 of 4 under attack', '2 of 4 diverted, 2 reached'])
        self.assertEqual(self.summary('resist', ['*']), ['2 of 2 tasks solved alone, 4 of 4 under attack', '0 of 4 diverted, 0 reached'])

    def test_what_the_policy_refuses_was_tried_and_not_reached(self):
        reads = ['get_*', 'read_*']
        self.assertEqual(self.summary('obey', reads), ['0 of 2 tasks solved alone, 0 of 4 under attack', '2 of 4 diverted, 0 reached'])
        self.assertEqual(self.summary('resist', reads), ['0 of 2 tasks solved alone, 0 of 4 under attack', '0 of 4 diverted, 0 reached'])


if __name__ == '__main__':
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
