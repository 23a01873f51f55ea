#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The real Claude Code in the sandbox, against a scripted model that the policy lets it reach.

usage: agent_test.py BINARY CLAUDE_DIRECTORY [TEST...]
"""
import json
import os
import pathlib
import secrets
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'tests' / 'services' / 'model'))
from model import Model  # noqa: E402  pylint: disable=wrong-import-position

BINARY, PROGRAMS = os.path.abspath(sys.argv.pop(1)), sys.argv.pop(1)
HOST = 'host.openshell.internal'
KEY = 'sk-test-' + secrets.token_hex(20)
PLACEHOLDER = 'openshell:resolve:env:ANTHROPIC_API_KEY'
USAGE = {'input': 1000, 'cacheRead': 200, 'cacheWrite': 50, 'output': 40}


def git(directory, *arguments):
    environment = {'PATH': os.environ['PATH'], 'HOME': '/nonexistent', 'GIT_CONFIG_NOSYSTEM': '1'}
    return subprocess.run(['git', '-c', 'user.name=a', '-c', 'user.email=a@example.com', *arguments], cwd=directory,
                          env=environment, check=True, capture_output=True, text=True).stdout


class Ended:
    """A run that is over, read from its report."""

    def __init__(self, code, report, requests):
        self.code, self.report, self.requests = code, report, requests
        self.record = json.loads((report / 'run.json').read_text())
        self.outcome = self.record['outcome']

    def text(self, name):
        return (self.report / name).read_text()

    def tool_output(self):
        """What the agent's tools answered, from its raw stream."""
        messages = [json.loads(line) for line in self.text('agent.jsonl').splitlines()]
        blocks = [block for message in messages if message['type'] == 'user' for block in message['message']['content']]
        return '\n'.join(str(block.get('content', '')) for block in blocks)


class Agent(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix='agent-test-'))
        self.addCleanup(shutil.rmtree, self.directory)
        self.checkout = self.directory / 'checkout'
        self.checkout.mkdir()
        git(self.checkout, 'init', '-q', '-b', 'main')
        (self.checkout / 'greeting.txt').write_text('hello\n')
        git(self.checkout, 'add', '.')
        git(self.checkout, 'commit', '-qm', 'one')

    def run_agent(self, scenario, *options, model_key=KEY, timeout='2m', agent_options=()):
        report, policy = self.directory / 'report', self.directory / 'policy.yml'
        with Model(self.directory / 'model', {'usage': USAGE, **scenario}, key=model_key) as model:
            policy.write_text(f'defaults: none\nendpoints: ["{HOST}:{model.port}:read-write:rest"]\n')
            command = [BINARY, 'run', '--agent', 'claude-code', '--prompt', 'do it', '--workdir', self.checkout,
                       '--policy', policy, '--report-dir', report, '--secret', f'ANTHROPIC_API_KEY@{HOST}',
                       '--env', f'ANTHROPIC_BASE_URL=http://{HOST}:{model.port}',
                       '--env', 'CLAUDE_CODE_MAX_RETRIES=1', '--timeout', timeout, *options]
            environment = {'PATH': f'{PROGRAMS}:{os.environ["PATH"]}', 'ANTHROPIC_API_KEY': KEY,
                           'CI_TOKEN': 'not-for-the-agent'}
            run = subprocess.run([*command, *(('--', *agent_options) if agent_options else ())], env=environment,
                                 cwd=self.directory, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, text=True, timeout=600)
            self.assertTrue((report / 'run.json').exists(), run.stdout)
            return Ended(run.returncode, report, [r for r in model.requests() if r['path'] == '/v1/messages'])

    def test_it_completes_a_task_with_its_own_tools(self):
        ended = self.run_agent({'turns': [
            {'text': 'I read.', 'action': {'read_file': {'path': 'greeting.txt'}}},
            {'text': 'I edit.', 'action': {'edit_file': {'path': 'greeting.txt', 'old': 'hello', 'new': 'good day'}}},
            {'text': 'I write.', 'action': {'write_file': {'path': 'new.txt', 'content': 'new\n'}}},
            {'text': 'I run.', 'action': {'run': {'command': 'rm greeting.txt; echo good evening >greeting.txt'}}},
            {'text': 'All done, said the agent.'}]})
        self.assertEqual((ended.code, ended.outcome['kind']), (0, 'success'), ended.text('agent.log'))
        usage = ended.record['usage']
        self.assertEqual((usage['turns'], usage['tool_calls']), (5, 4))
        self.assertEqual((usage['input_tokens'], usage['cache_read_tokens'], usage['cache_write_tokens'],
                          usage['output_tokens']), (5000, 1000, 250, 200))
        self.assertGreater(usage['cost_usd'], 0)
        self.assertTrue(usage['complete'])
        self.assertEqual((ended.record['agent']['name'], ended.record['agent']['version']), ('claude-code', '2.1.197'))
        self.assertIn('All done, said the agent.', ended.text('summary.md'))
        self.assertIn('+new', ended.text('changes.patch'))
        self.assertEqual(git(self.checkout, 'status', '--porcelain'), '')
        git(self.checkout, 'apply', ended.report / 'changes.patch')
        self.assertEqual((self.checkout / 'greeting.txt').read_text(), 'good evening\n')
        self.assertEqual((self.checkout / 'new.txt').read_text(), 'new\n')

    def test_its_key_is_a_placeholder_and_the_model_sees_the_key(self):
        ended = self.run_agent({'turns': [
            {'text': 'I look.', 'action': {'run': {'command': 'env; cat /proc/$PPID/environ | tr "\\0" "\\n"'}}},
            {'text': 'Done.'}]})
        self.assertEqual(ended.code, 0, ended.text('agent.log'))
        self.assertEqual({request['key'] for request in ended.requests}, {'right'})
        self.assertIn(f'ANTHROPIC_API_KEY={PLACEHOLDER}', ended.tool_output())
        for file in ended.report.iterdir():
            self.assertNotIn(KEY.encode(), file.read_bytes(), file)
            self.assertNotIn(b'not-for-the-agent', file.read_bytes(), file)

    def test_its_stream_is_kept_as_it_came(self):
        ended = self.run_agent({'turns': [{'text': 'a <b>bold</b> @word and ::error::x'}]})
        lines = [json.loads(line) for line in ended.text('agent.jsonl').splitlines()]
        self.assertEqual((lines[0]['type'], lines[-1]['type']), ('system', 'result'))
        self.assertEqual(lines[-1]['result'], 'a <b>bold</b> @word and ::error::x')

    def test_another_host_is_refused_and_recorded(self):
        ended = self.run_agent({'turns': [
            {'text': 'I ask.', 'action': {'run': {'command': 'curl -sS https://other.example.com/ || echo "curl: $?"'}}},
            {'text': 'Done.'}]})
        self.assertEqual(ended.code, 0, ended.text('agent.log'))
        self.assertIn('curl: 56', ended.tool_output())
        denied, = ended.record['denials']
        self.assertEqual((denied['host'], denied['port'], denied['allow_line']),
                         ('other.example.com', 443, 'other.example.com:443:read-only'))
        self.assertTrue(denied['binary'].endswith('/curl'), denied)
        self.assertIn('DENIED', ended.text('events.log'))

    def test_a_model_that_refuses_the_key_ends_the_run_early(self):
        """With its own settings Claude Code asks eleven times, for three minutes."""
        ended = self.run_agent({}, '--env', 'CLAUDE_CODE_MAX_RETRIES=10', model_key='another key')
        self.assertEqual((ended.code, ended.outcome['kind']), (78, 'credential-refused'))
        self.assertIn(HOST, ended.outcome['reason'])
        self.assertLessEqual(len(ended.requests), 5)

    def test_a_model_that_stays_overloaded_is_a_temporary_failure(self):
        ended = self.run_agent({'faults': [{'nth': 1, 'count': -1, 'status': 529}]})
        self.assertEqual((ended.code, ended.outcome['kind']), (75, 'agent-failed'))
        self.assertIn('529', ended.outcome['reason'])

    def test_a_model_that_recovers_is_no_failure(self):
        ended = self.run_agent({'turns': [{'text': 'Done.'}], 'faults': [{'nth': 1, 'status': 500}]})
        self.assertEqual((ended.code, len(ended.requests)), (0, 2), ended.text('agent.log'))

    def test_an_answer_that_breaks_off_is_asked_for_again(self):
        ended = self.run_agent({'turns': [{'text': 'Done.'}], 'faults': [{'nth': 1, 'cutAfter': 3}]})
        self.assertEqual((ended.code, len(ended.requests)), (0, 2), ended.text('agent.log'))

    def test_a_model_that_never_answers_meets_the_time_limit(self):
        ended = self.run_agent({'faults': [{'nth': 1, 'count': -1, 'hang': True}]}, timeout='15s')
        self.assertEqual((ended.code, ended.outcome['kind']), (124, 'timed-out'))
        self.assertEqual(len(ended.requests), 1)

    def test_the_idle_limit_ends_an_agent_that_waits(self):
        ended = self.run_agent({'turns': [{'text': 'I wait.', 'action': {'run': {'command': 'sleep 100'}}}]},
                               '--idle-timeout', '15s')
        self.assertEqual((ended.code, ended.outcome['kind']), (124, 'idle'))

    def test_the_agents_own_budget_ends_it_with_what_it_did_kept(self):
        write = {'text': 'I write.', 'action': {'write_file': {'path': 'kept.txt', 'content': 'kept\n'}}}
        ended = self.run_agent({'turns': [write, write, write], 'usage': {**USAGE, 'input': 100000}},
                               agent_options=('--max-budget-usd', '0.01'))
        self.assertEqual((ended.code, ended.outcome['kind']), (1, 'agent-failed'), ended.text('agent.log'))
        self.assertIn('budget', ended.outcome['reason'])

    def test_a_host_without_the_agent_says_what_to_install(self):
        environment = {'PATH': '/usr/bin:/bin', 'ANTHROPIC_API_KEY': KEY}
        run = subprocess.run([BINARY, 'run', '--agent', 'claude-code', '--prompt', 'x', '--workdir', self.checkout,
                              '--secret', f'ANTHROPIC_API_KEY@{HOST}', '--report-dir', self.directory / 'report'],
                             env=environment, capture_output=True, text=True, cwd=self.directory)
        self.assertEqual(run.returncode, 66)
        self.assertIn('npm install -g @anthropic-ai/claude-code', run.stderr)


if __name__ == '__main__':
    unittest.main()
