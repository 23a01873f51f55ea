#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hosted tools, through the whole runner: curl asks the scripted model for what its provider would do.

usage: hosted_tools_test.py BINARY [TEST...]
"""
import gzip
import html
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

BINARY = os.path.abspath(sys.argv.pop(1))
HOST = 'host.openshell.internal'
MESSAGES, CHAT, RESPONSES = '/v1/messages', '/v1/chat/completions', '/v1/responses'
GEMINI = '/v1beta/models/gemini-2.5-pro:generateContent'
STREAMED_GEMINI = '/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse'
ASKED = {'role': 'user', 'content': 'hello'}
# By path: a question with a tool of the client's, and the part of it that asks the provider for one.
QUESTIONS = {
    MESSAGES: ({'model': 'claude-sonnet-4-5', 'max_tokens': 9, 'messages': [ASKED],
                'tools': [{'name': 'x', 'input_schema': {'type': 'object'}}]},
               {'tools': [{'type': 'web_search_20250305', 'name': 'web_search'}]}),
    CHAT: ({'model': 'gpt-5.1', 'messages': [ASKED],
            'tools': [{'type': 'function', 'function': {'name': 'x', 'parameters': {'type': 'object'}}}]},
           {'web_search_options': {}}),
    RESPONSES: ({'model': 'gpt-5.1', 'input': [ASKED], 'store': False,
                 'tools': [{'type': 'function', 'name': 'x', 'parameters': {'type': 'object'}}]},
                {'tools': [{'type': 'web_search'}]}),
    GEMINI: ({'contents': [{'role': 'user', 'parts': [{'text': 'hello'}]}],
              'tools': [{'functionDeclarations': [{'name': 'x', 'parameters': {'type': 'OBJECT'}}]}]},
             {'tools': [{'googleSearch': {}}]}),
}
QUESTIONS[STREAMED_GEMINI] = QUESTIONS[GEMINI]


def streamed(path):
    """The plain question, with the switch that asks for a stream."""
    plain, _ = QUESTIONS[path]
    return {**plain, 'stream': True} if path in (MESSAGES, CHAT, RESPONSES) else plain


class HostedTools(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix='hosted-test-'))
        self.addCleanup(shutil.rmtree, self.directory)
        self.checkout = self.directory / 'checkout'
        (self.checkout / '.agentic-ci').mkdir(parents=True)

    def run_agent(self, requests, hosted_tools=None, config=None, fields=(), full_form=False):
        """curl sends each (path, body) in turn; gives (status, answer) of each."""
        with Model(self.directory / 'model', {'turns': [{'text': 'An answer.'}]}) as model:
            if full_form:
                policy = {'version': 1, 'network_policies': {'m': {
                    'endpoints': [{'host': HOST, 'port': model.port, 'protocol': 'rest', 'access': 'full',
                                   'enforcement': 'enforce'}], 'binaries': [{'path': '/**'}]}}}
            else:
                policy = {'defaults': 'none', 'endpoints': [f'{HOST}:{model.port}:full:rest']}
            if hosted_tools:
                policy['hosted_tools'] = hosted_tools
            (self.directory / 'policy.yml').write_text(json.dumps(policy))
            arguments = []
            if config:
                (self.checkout / '.agentic-ci/config.yml').write_text(json.dumps(config))
                arguments = ['--policy-ref', 'worktree']
            script = ''
            for number, (path, body) in enumerate(requests):
                data = body if isinstance(body, bytes) else json.dumps(body).encode()
                (self.checkout / f'body-{number}').write_bytes(data)
                script += (f"curl -s -o answer -w '%{{http_code}}\\n' {' '.join(fields)} -H 'content-type: application/json' "
                           f"-H 'x-api-key: '\"$ANTHROPIC_API_KEY\" --data-binary @body-{number} "
                           f"\"$ANTHROPIC_BASE_URL{path}\"; tr '\\n' ' ' <answer; echo\n")
            (self.checkout / 'ask.sh').write_text(script)
            environment = {'PATH': os.environ['PATH'], 'ANTHROPIC_API_KEY': 'sk-test-1234567890',
                           'ANTHROPIC_BASE_URL': f'http://{HOST}:{model.port}'}
            report = self.directory / 'report'
            shutil.rmtree(report, ignore_errors=True)
            run = subprocess.run([BINARY, 'run', '--workdir', self.checkout, '--policy', self.directory / 'policy.yml',
                                  '--provider', 'anthropic', '--report-dir', report, *arguments, '--', '/bin/sh', 'ask.sh'],
                                 env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)
            self.assertTrue((report / 'run.json').exists(), run.stderr)
            self.record = json.loads((report / 'run.json').read_text())
            self.lines = [json.loads(line) for line in (report / 'events.ocsf.jsonl').read_text().splitlines()]
            self.page = html.unescape((report / 'report.html').read_text())
            lines = run.stdout.splitlines()
            self.assertEqual(len(lines), 2 * len(requests), run.stdout + run.stderr)
            self.reached = [one['path'] for one in model.requests()]
            return [(int(status), answer) for status, answer in zip(lines[::2], lines[1::2])]

    def requests_recorded(self):
        return [line['unmapped'] for line in self.lines if line['class_uid'] == 4002]

    def test_tools_of_the_client_pass_in_every_api(self):
        requests = [(path, plain) for path, (plain, _) in QUESTIONS.items()]
        requests += [(path, streamed(path)) for path in QUESTIONS]
        answers = self.run_agent(requests)
        self.assertEqual([status for status, _ in answers], [200] * len(requests), answers)
        self.assertEqual(len(self.reached), len(requests))
        self.assertFalse([one for one in self.requests_recorded() if 'operations' in one])

    def test_tools_of_the_provider_are_refused_in_every_api_and_pass_where_allowed(self):
        requests = [(path, {**plain, **asks}) for path, (plain, asks) in QUESTIONS.items()]
        answers = self.run_agent(requests)
        self.assertEqual([status for status, _ in answers], [403] * len(requests), answers)
        self.assertEqual(self.reached, [])
        for _, answer in answers:
            self.assertIn('hosted_tools: [web_search]', json.dumps(json.loads(answer)))
        recorded = self.requests_recorded()
        self.assertEqual(len(recorded), len(requests))
        for one in recorded:
            self.assertEqual((one['decision'], one['engine'], one['protocol']), ('denied', 'hosted-tools', 'hosted-tools'))
            self.assertEqual(one['operations'], [{'method': 'hosted_tools', 'tool': 'web_search'}])
        self.assertEqual({one['allow_line'] for one in self.record['denials']},
                         {'hosted_tools: [web_search]'})
        self.assertIn('hosted_tools: [web_search]', self.page)

        allowed = self.run_agent(requests, hosted_tools=['web_search'])
        self.assertEqual([status for status, _ in allowed], [200] * len(requests), allowed)
        self.assertEqual(len(self.reached), len(requests))
        for one in self.requests_recorded():
            self.assertEqual((one['decision'], one['operations']), ('allowed', [{'method': 'hosted_tools', 'tool': 'web_search'}]))
        self.assertIn('hosted_tools web_search', self.page)

    def test_over_http2_it_is_the_same(self):
        """The scripted model knows HTTP/1 alone: what passes gets 502."""
        requests = [(MESSAGES, {**QUESTIONS[MESSAGES][0], **QUESTIONS[MESSAGES][1]}), (MESSAGES, QUESTIONS[MESSAGES][0])]
        over = ['--proxytunnel', '--http2-prior-knowledge']
        for allowed, statuses in ((None, [403, 502]), (['web_search'], [502, 502])):
            answers = self.run_agent(requests, hosted_tools=allowed, fields=over)
            self.assertEqual([status for status, _ in answers], statuses, answers)
            decisions = [one['decision'] for one in self.requests_recorded() if one.get('decision')]
            self.assertEqual(decisions.count('denied'), statuses.count(403), decisions)
            self.assertEqual(decisions.count('allowed'), statuses.count(502), decisions)
        versions = self.run_agent(requests, fields=[*over, '-w', "'%{http_version}\\n'"])
        self.assertEqual([version for version, _ in versions], [2, 2])

    def test_domains_are_those_of_the_request(self):
        plain, _ = QUESTIONS[MESSAGES]

        def searching(**restriction):
            return MESSAGES, {**plain, 'tools': [{'type': 'web_search_20250305', 'name': 'web_search', **restriction}]}

        answers = self.run_agent([searching(allowed_domains=['docs.example.com']), searching(),
                                  searching(allowed_domains=['docs.example.com', 'other.example'])],
                                 hosted_tools=[{'web_search': {'domains': ['example.com']}}])
        self.assertEqual([status for status, _ in answers], [200, 403, 403], answers)

    def test_the_configuration_is_for_a_policy_that_does_not_say(self):
        plain, asks = QUESTIONS[MESSAGES]
        request = [(MESSAGES, {**plain, **asks})]
        allows = {'hosted_tools': ['web_search']}
        self.assertEqual(self.run_agent(request, config=allows)[0][0], 200)
        self.assertEqual(self.run_agent(request, config=allows, full_form=True)[0][0], 200)
        self.assertEqual(self.run_agent(request, full_form=True)[0][0], 403)
        self.assertEqual(self.run_agent(request, hosted_tools='none', config=allows)[0][0], 403)

    def test_what_cannot_be_read_is_refused(self):
        plain, _ = QUESTIONS[MESSAGES]
        compressed = gzip.compress(json.dumps(plain).encode())
        self.assertEqual(self.run_agent([(MESSAGES, compressed)], fields=['-H', "'content-encoding: gzip'"])[0][0], 403)
        self.assertEqual(self.run_agent([(MESSAGES, compressed)], hosted_tools=['unread'],
                                        fields=['-H', "'content-encoding: gzip'"])[0][0], 200)
        odd = b'{"model":"m","messages":[],"tools":[],"tools":[{"type":"web_search_20250305"}]}'
        answers = self.run_agent([(MESSAGES, plain), (MESSAGES, odd), (MESSAGES, b'not JSON'),
                                  (MESSAGES, b'{"a":"' + b'x' * (33 << 20) + b'"}'), ('/v1/agents', plain),
                                  ('/v1/batches', {'input_file_id': 'file-1'}),
                                  ('/v1/messages/count_tokens', {**plain, 'mcp_servers': [{'url': 'https://a.example'}]})])
        self.assertEqual([status for status, _ in answers], [200, 403, 403, 413, 403, 403, 403], answers)
        self.assertEqual(len(self.reached), 1)


if __name__ == '__main__':
    unittest.main()
