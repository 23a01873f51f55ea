#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The real Claude Code, outside of any sandbox, with the tools of `agentic-ci mcp` and none of its own, as docs/reference/mcp.md
says, against a scripted model.

usage: mcp_test.py BINARY CLAUDE_DIRECTORY [TEST...]
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'tests' / 'services' / 'model'))
from model import Model  # noqa: E402  pylint: disable=wrong-import-position

BINARY, PROGRAMS = os.path.abspath(sys.argv.pop(1)), sys.argv.pop(1)
KEY = 'sk-test-mcp'
TOOLS = [f'mcp__sandbox__{name}' for name in ('run_command', 'read_file', 'write_file', 'diff', 'reset', 'snapshot')]


def tool(name, **given):
    return {'tool': {'name': 'mcp__sandbox__' + name, 'input': given}}


class Agent(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix='mcp-test-'))
        self.addCleanup(shutil.rmtree, self.directory)
        self.checkout = self.directory / 'checkout'
        for path in (self.checkout, self.directory / 'home', self.directory / 'run'):
            path.mkdir(mode=0o700)
        (self.checkout / 'greeting.txt').write_text('hello\n')
        for words in (['init', '-q'], ['add', '.'], ['-c', 'user.name=a', '-c', 'user.email=a@example.com', 'commit', '-qm', 'one']):
            subprocess.run(['git', *words], cwd=self.checkout, check=True)

    def run_agent(self, turns, *options):
        servers = {'mcpServers': {'sandbox': {'command': BINARY, 'args': ['mcp', *options]}}}
        with Model(self.directory / 'model', {'turns': turns}, key=KEY) as model:
            environment = {'PATH': f'{PROGRAMS}:{os.environ["PATH"]}', 'HOME': str(self.directory / 'home'),
                           'XDG_RUNTIME_DIR': str(self.directory / 'run'), 'TMPDIR': str(self.directory),
                           'ANTHROPIC_API_KEY': KEY, 'ANTHROPIC_BASE_URL': f'http://127.0.0.1:{model.port}',
                           'CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC': '1', 'DISABLE_AUTOUPDATER': '1', 'DISABLE_TELEMETRY': '1',
                           'DISABLE_ERROR_REPORTING': '1', 'CLAUDE_CODE_MAX_RETRIES': '1'}
            run = subprocess.run(
                ['claude', '-p', 'do it', '--output-format', 'json', '--model', 'claude-sonnet-4-5', '--tools', '',
                 '--strict-mcp-config', '--mcp-config', json.dumps(servers), '--allowedTools', 'mcp__sandbox'],
                env=environment, cwd=self.checkout, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                text=True, timeout=300)
            self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
            return json.loads(run.stdout), [request for request in model.requests() if request.get('tools')]

    def test_it_completes_a_task_with_these_tools_alone(self):
        ended, requests = self.run_agent([
            {'text': 'I read.', 'action': tool('read_file', path='greeting.txt')},
            {'text': 'I write.', 'action': tool('write_file', path='new.txt', text='new\n')},
            {'text': 'I run.', 'action': tool('run_command', command='cat new.txt >again.txt; rm greeting.txt')},
            {'text': 'All done, said the agent.'}], '--apply')
        self.assertEqual(ended['result'], 'All done, said the agent.')
        self.assertEqual(len(requests), 4)
        for request in requests:
            self.assertEqual(sorted(request['tools']), sorted(TOOLS))
        self.assertEqual({path.name for path in self.checkout.iterdir()}, {'.git', 'again.txt', 'new.txt'})
        self.assertEqual((self.checkout / 'again.txt').read_text(), 'new\n')
        self.assertEqual(os.listdir(self.directory / 'run/agentic-ci'), ['.lock'])

    def test_its_commands_are_in_the_sandbox(self):
        outside = self.directory / 'outside'
        _, requests = self.run_agent([
            {'text': 'I run.', 'action': tool('run_command', command=f'echo here >greeting.txt; echo out >{outside}')},
            {'text': 'Done.'}])
        self.assertEqual(len(requests), 2)
        self.assertEqual((self.checkout / 'greeting.txt').read_text(), 'hello\n')
        self.assertFalse(outside.exists())


if __name__ == '__main__':
    unittest.main(verbosity=2)
