#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Budgets, through the whole runner: curl asks a server that answers as each model API does.

usage: budget_test.py BINARY SOURCE_DIRECTORY [TEST...]
"""
import base64
import hashlib
import html
import http.server
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

import jsonschema

BINARY, SOURCE = os.path.abspath(sys.argv.pop(1)), pathlib.Path(sys.argv.pop(1))
HOST = 'host.openshell.internal'
ANTHROPIC = {'model': 'claude-sonnet-4-5', 'usage': {'input_tokens': 60, 'output_tokens': 40}}
EVENTS = 'text/event-stream'


def events(*values):
    return ''.join(f'data: {json.dumps(value)}\n\n' for value in values)


# Path: content type and body. Each answer used 100 tokens, 40 of them of output.
ANSWERS = {
    '/v1/messages': ('application/json', json.dumps(ANTHROPIC)),
    '/stream/v1/messages': (EVENTS, events(
        {'type': 'message_start', 'message': {'model': 'claude-sonnet-4-5', 'usage': {'input_tokens': 60, 'output_tokens': 1}}},
        {'type': 'content_block_delta', 'delta': {'text': 'x'}}, {'type': 'message_delta', 'usage': {'output_tokens': 40}})),
    '/v1/chat/completions': ('application/json', json.dumps(
        {'model': 'gpt-5', 'usage': {'prompt_tokens': 60, 'completion_tokens': 40}})),
    '/v1/responses': (EVENTS, events({'type': 'response.completed', 'response': {
        'model': 'gpt-5', 'usage': {'input_tokens': 60, 'output_tokens': 40}}})),
    '/v1beta/models/gemini-2.5-pro:generateContent': ('application/json', json.dumps(
        {'modelVersion': 'gemini-2.5-pro', 'usageMetadata': {'promptTokenCount': 60, 'candidatesTokenCount': 10,
                                                            'thoughtsTokenCount': 30}})),
    '/model/anthropic.claude-sonnet-4-5-20250929-v1:0/invoke': ('application/json', json.dumps(
        {'usage': {'input_tokens': 60, 'output_tokens': 40}})),
}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def log_message(self, *_):
        pass

    def do_POST(self):
        self.server.bodies.append(self.rfile.read(int(self.headers.get('content-length', 0))).decode())
        self.server.seen.append((self.path, self.headers.get('accept-encoding')))
        if self.path.startswith('/never/'):
            self.server.over.wait()
            self.close_connection = True
            return
        statuses = self.server.statuses
        status = statuses.pop(0) if len(statuses) > 1 else statuses[0]
        kind, body = ANSWERS.get(self.path.replace('%3A', ':'), ('text/plain', self.server.say(self)))
        self.send_response(status)
        self.send_header('content-type', kind)
        self.send_header('content-length', str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def do_GET(self):
        """A WebSocket, which opens and ends."""
        self.server.seen.append((self.path, self.headers.get('upgrade')))
        accept = hashlib.sha1((self.headers['sec-websocket-key'] + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11').encode())
        self.send_response(101)
        for name, value in (('connection', 'Upgrade'), ('upgrade', 'websocket'),
                            ('sec-websocket-accept', base64.b64encode(accept.digest()).decode())):
            self.send_header(name, value)
        self.end_headers()
        self.close_connection = True


class Runs(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix='budget-test-'))
        self.addCleanup(shutil.rmtree, self.directory)
        self.checkout = self.directory / 'checkout'
        (self.checkout / '.agentic-ci').mkdir(parents=True)
        self.server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        self.server.seen, self.server.bodies = [], []
        self.server.statuses = [200]  # Of the answers; the last stays.
        self.server.say = lambda _: 'else'
        self.server.over = threading.Event()
        self.addCleanup(self.server.over.set)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)

    def run_agent(self, paths, *options, body='{"model":"claude-sonnet-4-5"}', after='', printed=None, socket=''):
        """curl asks for each path in turn; gives (status, answer) of each, the exit code and the record. `printed`: the
        number of lines, or a range of it where the run ends the agent. `socket`: a path at which WebSockets may open."""
        port = self.server.server_address[1]
        policy = self.directory / 'policy.yml'
        policy.write_text(f'defaults: none\nendpoints: ["{HOST}:{port}:full:rest"]\n')
        if socket:
            place = {'host': HOST, 'port': port, 'access': 'full'}
            policy.write_text(json.dumps({'version': 1, 'network_policies': {'all': {'binaries': [{'path': '/**'}], 'endpoints': [
                {**place, 'protocol': 'rest'}, {**place, 'protocol': 'websocket', 'path': socket}]}}}))
        script = self.checkout / 'ask.sh'
        script.write_text(''.join(
            f"curl -s --compressed -o body -w '%{{http_code}}' -d '{body}' 'http://{HOST}:{port}{path}'; echo; tr '\\n' ' ' <body; echo\n" for path in paths) + after + '\ntrue\n')
        report = self.directory / 'report'
        # The shell of the endpoints: form: what it starts may connect.
        run = subprocess.run([BINARY, 'run', '--workdir', self.checkout, '--policy', policy, '--report-dir', report,
                              *options, '--', '/bin/sh', 'ask.sh'],
                             stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600)
        self.record = json.loads((report / 'run.json').read_text())
        self.lines = [json.loads(line) for line in (report / 'events.ocsf.jsonl').read_text().splitlines()]
        self.log = (report / 'events.log').read_text()
        self.code, self.said = run.returncode, run.stderr
        lines = run.stdout.splitlines()
        self.assertIn(len(lines), printed if isinstance(printed, range) else [printed or 2 * len(paths)], run.stdout + run.stderr)
        self.after = lines[2 * len(paths):]
        lines = lines[:2 * len(paths)]
        return [(int(status), answer) for status, answer in zip(lines[::2], lines[1::2])]

    def limit(self, name):
        return next(limit for limit in self.record['limits'] if limit['name'] == name)


class Budget(Runs):
    def test_every_api_is_counted_and_recorded(self):
        answers = self.run_agent(list(ANSWERS))
        self.assertEqual({status for status, _ in answers}, {200})
        self.assertEqual(self.code, 0)
        self.assertEqual(self.limit('tokens')['used'], 100 * len(ANSWERS))
        self.assertEqual(self.limit('requests')['used'], len(ANSWERS))
        self.assertEqual(self.record['usage']['input_tokens'], 60 * len(ANSWERS))
        self.assertEqual(self.record['usage']['output_tokens'], 40 * len(ANSWERS))
        self.assertEqual({coding for _, coding in self.server.seen}, {'identity'})
        self.assertRegex(self.log, r'API:INFERENCE \[INFO\] Success claude-sonnet-4-5 via https://host\.openshell\.internal:\d+ '
                                   r'\d+ms \[POST /v1/messages\]')

    def test_every_record_fits_its_schema(self):
        self.run_agent(['/v1/messages', '/v1/messages'], '--max-requests', '1', after='curl -s https://other.example.com/')
        schema = json.loads((SOURCE / 'docs/reference/schemas/events.schema.json').read_text())
        validator = jsonschema.Draft202012Validator(schema)
        for line in self.lines:
            self.assertEqual([error.message for error in validator.iter_errors(line)], [], line)
        self.assertLessEqual({4001, 4002, 6003, 2004}, {line['class_uid'] for line in self.lines})
        request = next(line for line in self.lines if line['class_uid'] == 4002)
        broken = {**request, 'class_uid': 2004}
        self.assertTrue(list(validator.iter_errors(broken)))

    def test_requests_over_the_limit_are_refused_in_the_apis_own_words(self):
        answers = self.run_agent(['/v1/messages'] * 3, '--max-requests', '2')
        self.assertEqual([status for status, _ in answers], [200, 200, 403])
        self.assertEqual(len(self.server.seen), 2)
        refusal = json.loads(answers[2][1])
        self.assertEqual((refusal['type'], refusal['error']['type']), ('error', 'permission_error'))
        self.assertEqual(self.code, 125)
        self.assertEqual(self.record['outcome']['kind'], 'limit')
        self.assertEqual(self.record['outcome']['limit'], 'requests')
        self.assertTrue(self.limit('requests')['fired'])
        self.assertIn('warn: limit reached limit=requests used=2 of 2 requests\n', self.said)
        # The run's own end: neither an endpoint that the policy lacks nor data on its way out.
        self.assertNotIn('warn: refused', self.said)
        self.assertEqual(self.record['denials'], [])

    def ask_and_leave_open(self, path):
        """Shell commands that ask, and go on once the server has the question (of 40,000 bytes, for 500 tokens)."""
        asked = '{"model":"claude-sonnet-4-5","max_tokens":500,"x":"%s"}' % ('x' * 40000)
        address = f'http://{HOST}:{self.server.server_address[1]}'

        def seen(handler):
            path = handler.path.removeprefix('/seen?')
            return 'yes' if any(known == path for known, _ in handler.server.seen) else 'no'

        self.server.say = seen  # Of requests that are no model's.
        return len(asked) // 2, (f"echo '{asked}' >asked; curl -s -d @asked {address}{path} >/dev/null & "
                                 f"until curl -s -d x '{address}/seen?{path}' | grep -q yes; do sleep 0.1; done\n")

    def test_a_question_that_is_open_when_the_run_ends_is_counted(self):
        """The server has it, and goes on working on it."""
        size, ask = self.ask_and_leave_open('/never/v1/messages')
        self.run_agent([], '--max-tokens', '100000', after=ask, printed=0)
        self.assertEqual(self.code, 0, self.said)
        self.assertEqual(self.limit('tokens')['used'], size + 500)
        self.assertEqual((self.record['usage']['input_tokens'], self.record['usage']['output_tokens']), (size, 500))
        # The control: one that is no model's.
        self.run_agent([], '--max-tokens', '100000', after=self.ask_and_leave_open('/never/else')[1], printed=0)
        self.assertEqual(self.limit('tokens')['used'], 0)

    def test_a_question_waits_while_an_open_one_may_use_up_the_rest(self):
        _, ask = self.ask_and_leave_open('/never/v1/messages')
        address = f'http://{HOST}:{self.server.server_address[1]}'
        more = f"curl -s -o body -D head -w '%{{http_code}}\\n' -d '{{\"max_tokens\":9}}' {address}/v1/messages; grep -ic retry-after head"
        for tokens, expected in (('20000', ['429', '1']), ('100000', ['200', '0'])):
            self.server.seen.clear()
            self.run_agent([], '--max-tokens', tokens, after=ask + more, printed=2)
            self.assertEqual((self.after, self.code), (expected, 0), self.said)

    def test_tokens_warn_and_then_refuse(self):
        answers = self.run_agent(['/v1/messages'] * 4, '--max-tokens', '250')
        self.assertEqual([status for status, _ in answers], [200, 200, 200, 403])
        self.assertEqual(self.record['outcome']['limit'], 'tokens')
        warnings = [line['message'] for line in self.lines if line['class_uid'] == 2004 and line['status_id'] == 1]
        self.assertEqual([warning[:4] for warning in warnings], ['80 %', '90 %', '95 %', '99 %'])

    def test_an_answer_that_does_not_say_what_it_used_costs_what_the_question_allowed(self):
        ANSWERS['/unsaid/v1/messages'] = (EVENTS, events(
            {'type': 'message_start', 'message': {'model': 'claude-sonnet-4-5', 'usage': {'input_tokens': 60, 'output_tokens': 1}}},
            {'type': 'content_block_delta', 'delta': {'text': 'x'}}))
        self.addCleanup(ANSWERS.pop, '/unsaid/v1/messages')
        body = '{"model":"claude-sonnet-4-5","max_tokens":700}'
        for path, output in (('/unsaid/v1/messages', 700), ('/stream/v1/messages', 40)):
            answers = self.run_agent([path], '--max-tokens', '100000', body=body)
            self.assertEqual([status for status, _ in answers], [200])
            self.assertEqual((self.record['usage']['input_tokens'], self.record['usage']['output_tokens']), (60, output), path)
        answers = self.run_agent(['/unsaid/v1/messages'] * 2, '--max-tokens', '700', body=body)
        self.assertEqual([status for status, _ in answers], [200, 403])

    def test_a_websocket_to_a_model_opens_only_where_nothing_is_counted(self):
        """C5: a client of both (Codex) falls back to HTTP on 426; at 100 % it is told why it must stop."""
        upgrade = ("rm body; curl -s -m 10 -o body -w '%%{http_code}' -H 'Connection: Upgrade' -H 'Upgrade: websocket' -H 'Sec-WebSocket-Version: 13' "
                   "-H 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==' 'http://%s:%d/v1/responses'; test -f body && printf ' ' && cat body; echo\n" %
                   (HOST, self.server.server_address[1]))
        self.run_agent(['/v1/messages'], after=upgrade, printed=3)
        self.assertRegex(self.after[0], '^426 .*"policy_denied"')
        opens = {'after': upgrade, 'printed': 3, 'socket': '/v1/responses'}
        self.run_agent(['/v1/messages'], **opens)
        self.assertEqual((self.after, self.server.seen[-1]), (['101'], ('/v1/responses', 'websocket')))
        self.run_agent(['/v1/messages'], '--max-tokens', '200', **opens)
        self.assertRegex(self.after[0], '^426 .*"a run with a budget must use models over HTTP')
        self.run_agent(['/v1/messages'], '--max-tokens', '100', **opens)
        self.assertRegex(self.after[0], '^403 .*"budget_exceeded"')
        self.assertEqual(self.server.seen[-1][0], '/v1/messages')

    def test_cost_is_counted_and_unpriced_models_are_refused(self):
        # 60 tokens at $3 and 40 at $15 for a million: $0.00078 a request.
        answers = self.run_agent(['/v1/messages'] * 3, '--max-cost', '0.001')
        self.assertEqual([status for status, _ in answers], [200, 200, 403])
        self.assertAlmostEqual(self.record['usage']['cost_usd'], 0.00156)
        self.server.seen.clear()
        answers = self.run_agent(['/v1/messages'], '--max-cost', '1', body='{"model":"unheard-of"}')
        self.assertEqual([status for status, _ in answers], [403])
        self.assertEqual(self.server.seen, [])
        self.assertIn('prices: [{model: \\"unheard-of\\"', answers[0][1])
        self.assertIn('unheard-of', self.record['denials'][0]['reason'])

    def test_a_total_with_an_unpriced_model_is_unknown_and_never_nothing(self):
        """One figure everywhere: run.json, the limits, the page, the summary."""
        ANSWERS['/unpriced/v1/messages'] = ('application/json', json.dumps({**ANTHROPIC, 'model': 'claude-opus-4-99'}))
        self.run_agent(['/v1/messages', '/unpriced/v1/messages'], body='{"model":"claude-opus-4-99"}')
        usage, report = self.record['usage'], self.directory / 'report'
        self.assertIsNone(usage['cost_usd'])
        self.assertEqual((usage['cost_source'], usage['unpriced_models']), ('gateway', ['claude-opus-4-99']))
        self.assertAlmostEqual(usage['priced_cost_usd'], 0.00078)
        self.assertIsNone(self.limit('cost')['used'])
        for name in ('summary.md', 'report.html'):
            text = html.unescape((report / name).read_text()).replace('\u200b', '')
            self.assertIn('cost unknown: no price for claude-opus-4-99, $0.0008 for the rest', text, name)
            self.assertNotIn('$0.00,', text, name)
        # The control: with every price known, the same figure in all of them.
        self.run_agent(['/v1/messages'])
        self.assertAlmostEqual(self.record['usage']['cost_usd'], 0.00078)
        self.assertAlmostEqual(self.limit('cost')['used'], 0.00078)
        for name in ('summary.md', 'report.html'):
            text = html.unescape((report / name).read_text()).replace('\u200b', '')
            self.assertIn('$0.0008', text, name)
            self.assertNotIn('unknown', text, name)

    def refused(self, *options, policy, config=''):
        """A run that is refused before it starts: its exit code and what it said."""
        (self.directory / 'policy.yml').write_text(policy)
        git = ['git', '-c', 'user.name=a', '-c', 'user.email=a@example.com', '-C', self.checkout]
        if config:
            (self.checkout / '.agentic-ci/config.yml').write_text(config)
        for arguments in (['init', '-q'], ['add', '-A'], ['commit', '-qm', 'one', '--allow-empty']):
            subprocess.run([*git, *arguments], check=True)
        run = subprocess.run([BINARY, 'run', '--workdir', self.checkout, '--policy', self.directory / 'policy.yml',
                              '--report-dir', self.directory / 'report', *options, '--', '/bin/true'],
                             stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600)
        return run.returncode, run.stderr

    def test_a_named_model_without_a_price_is_refused_before_the_run(self):
        none = 'version: 1\n'
        code, said = self.refused('--max-cost', '1', '--model', 'claude-opus-4-99', policy=none)
        self.assertEqual(code, 78, said)
        self.assertIn('prices: [{model: "claude-opus-4-99", input: DOLLARS, output: DOLLARS}]', said)
        code, said = self.refused('--max-cost', '1', policy=none, config='models: [gpt-5, ours]\n')
        self.assertEqual(code, 78, said)
        self.assertIn("'ours'", said)
        priced = 'models: [gpt-5, ours]\nprices: [{model: "ours", input: 1, output: 2}]\n'
        self.assertEqual(self.refused('--max-cost', '1', policy=none, config=priced)[0], 0)
        self.assertEqual(self.refused('--model', 'claude-opus-4-99', policy=none)[0], 0)

    def test_an_endpoint_that_nothing_can_count_is_refused_under_a_budget(self):
        policy = ('version: 1\nnetwork_policies:\n  model:\n    endpoints:\n'
                  '      - {host: api.example.com, port: 443, tls: skip}\n    binaries: [{path: "/**"}]\n')
        for limit in (('--max-cost', '1'), ('--max-tokens', '10'), ('--max-requests', '1')):
            code, said = self.refused(*limit, policy=policy)
            self.assertEqual(code, 65, said)
            self.assertRegex(said, r"policy\.yml:5:9: error: .*'tls: skip'")
        self.assertEqual(self.refused(policy=policy)[0], 0)
        self.assertEqual(self.refused('--max-cost', '1', policy=policy.replace(', tls: skip', ''))[0], 0)

    def test_a_model_that_refuses_the_credential_ends_the_run(self):
        self.server.statuses = [401]
        self.run_agent(['/v1/messages'] * 3, after='sleep 60; echo still here', printed=range(4, 7))
        self.assertEqual(len(self.server.seen), 3)
        self.assertEqual((self.code, self.record['outcome']['kind']), (78, 'credential-refused'))
        self.assertIn(HOST, self.record['outcome']['reason'])
        self.assertRegex(self.log, 'FINDING:BLOCKED .*rejected the credential 3 times in a row')
        self.assertLess(self.record['finished_at_ms'] - self.record['started_at_ms'], 30000)

    def test_an_agent_that_hides_a_refused_credential_did_not_succeed(self):
        """Some end with 0 whatever their model says."""
        self.server.statuses = [403]
        self.run_agent(['/v1/messages'])
        self.assertEqual((self.code, self.record['outcome']['kind']), (78, 'credential-refused'))

    def test_a_credential_that_is_accepted_in_between_ends_nothing(self):
        self.server.statuses = [401, 401, 200, 403, 403, 200]
        answers = self.run_agent(['/v1/messages'] * 6)
        self.assertEqual([status for status, _ in answers], [401, 401, 200, 403, 403, 200])
        self.assertEqual((self.code, self.record['outcome']['kind']), (0, 'success'))

    def test_a_rate_limit_comes_from_the_repositorys_configuration(self):
        git = ['git', '-c', 'user.name=a', '-c', 'user.email=a@example.com', '-C', self.checkout]
        (self.checkout / '.agentic-ci/config.yml').write_text('limits:\n  requests_per_minute: 2\n')
        for arguments in (['init', '-q'], ['add', '-A'], ['commit', '-qm', 'one']):
            subprocess.run([*git, *arguments], check=True)
        # What a pull request makes of it does not count.
        (self.checkout / '.agentic-ci/config.yml').write_text('limits:\n  requests_per_minute: 1000\n')
        answers = self.run_agent(['/v1/messages'] * 3)
        self.assertEqual([status for status, _ in answers], [200, 200, 429])
        self.assertEqual(json.loads(answers[2][1])['error']['type'], 'rate_limit_error')
        self.assertEqual(self.code, 0)  # Asking more slowly would have helped: no budget is used up.

    # What an agent of each family sends: the path, the body, and where the note is then.
    CONVERSATIONS = [
        ('/v1/messages', {'model': 'claude-sonnet-4-5', 'temperature': 0.7, 'messages': [{'role': 'user', 'content': 'hello'}]},
         lambda body: body['messages'][-1]['content']),
        ('/v1/messages', {'model': 'claude-sonnet-4-5', 'messages': [{'role': 'user', 'content': [
            {'type': 'tool_result', 'tool_use_id': 't', 'content': 'x', 'cache_control': {'type': 'ephemeral'}}]}]},
         lambda body: body['messages'][-1]['content'][1]['text']),
        ('/v1/chat/completions', {'model': 'gpt-5', 'messages': [{'role': 'tool', 'tool_call_id': 't', 'content': 'x'}]},
         lambda body: body['messages'][1]['content']),
        ('/v1/responses', {'model': 'gpt-5', 'input': [{'type': 'function_call_output', 'call_id': 'c', 'output': 'x'}]},
         lambda body: body['input'][1]['content'][0]['text']),
        ('/v1/responses', {'model': 'gpt-5', 'input': 'hello'}, lambda body: body['input']),
        ('/v1beta/models/gemini-2.5-pro:generateContent', {'contents': [{'role': 'user', 'parts': [
            {'functionResponse': {'name': 'f', 'response': {}}}]}]}, lambda body: body['contents'][-1]['parts'][1]['text']),
    ]

    def test_at_90_per_cent_the_model_is_told_to_finish(self):
        for path, asked, noted in self.CONVERSATIONS:
            for limit, told in (('105', True), ('120', False)):  # The first answer uses 100.
                self.server.bodies.clear()
                answers = self.run_agent([path, path], '--max-tokens', limit, body=json.dumps(asked))
                self.assertEqual([status for status, _ in answers], [200, 200], self.said)
                first, second = map(json.loads, self.server.bodies)
                self.assertEqual(first, asked)
                if not told:
                    self.assertEqual(second, asked)
                    continue
                self.assertIn('90 % of the budget for it is used', noted(second), path)
                self.assertIn('the model is asked to finish: 90 %', self.log)
                # Nothing else is another.
                self.assertEqual(set(second), set(asked))
                self.assertEqual(second.get('temperature'), asked.get('temperature'))
        # Of dollars likewise; and where a signature covers the body, it stays.
        asked = json.dumps(self.CONVERSATIONS[0][1])
        self.server.bodies.clear()
        self.run_agent(['/v1/messages'] * 2, '--max-cost', '0.0008', body=asked)
        self.assertIn('90 % of the budget', self.server.bodies[1])
        self.server.bodies.clear()
        self.run_agent(['/model/anthropic.claude-sonnet-4-5-20250929-v1:0/invoke'] * 2, '--max-cost', '0.0008', body=asked)
        self.assertEqual([json.loads(body) for body in self.server.bodies], [json.loads(asked)] * 2)

    def test_what_is_there_at_the_limit_is_in_the_report(self):
        self.run_agent(['/v1/messages'] * 2, '--max-requests', '1', after='echo half >half.txt')
        self.assertEqual((self.code, self.record['outcome']['limit']), (125, 'requests'))
        self.assertIn('+half', (self.directory / 'report/changes.patch').read_text())
        self.assertIn('half.txt', (self.directory / 'report/changes.json').read_text())


# With these prices, each answer costs a dollar.
DOLLAR = 'prices: [{model: "claude-sonnet-4-5", input: 10000, output: 10000}]\n'


class AcrossRuns(Runs):
    """Budgets of a day, with the file of one host."""

    def setUp(self):
        super().setUp()
        self.ledger = self.directory / 'ledger.json'
        self.options = ['--budget-file', self.ledger]

    def configure(self, budget, more=DOLLAR):
        git = ['git', '-c', 'user.name=a', '-c', 'user.email=a@example.com', '-C', self.checkout]
        (self.checkout / '.agentic-ci/config.yml').write_text(f'budget: {budget}\n{more}')
        for arguments in (['init', '-q'], ['add', '-A'], ['commit', '-qm', 'one', '--allow-empty']):
            subprocess.run([*git, *arguments], check=True)

    def ask(self, count, *options, **more):
        return [status for status, _ in self.run_agent(['/v1/messages'] * count, *self.options, *options, **more)]

    def not_started(self, code, why):
        """A run that does not start: nothing is asked, the report says why."""
        self.server.seen.clear()
        shutil.rmtree(self.directory / 'report', ignore_errors=True)  # Outside of CI an earlier one would stay.
        self.run_agent([], *self.options, printed=0)
        self.assertEqual((self.code, self.record['outcome']['kind']), (code, 'budget'), self.said)
        self.assertRegex(self.record['outcome']['reason'], why)
        self.assertIsNone(self.record['outcome']['agent_status'])
        summary = (self.directory / 'report/summary.md').read_text()
        self.assertRegex(summary, 'Not started: ' + ('The budget of the' if code == 77 else 'What earlier runs have spent is not known'))

    def spent(self):
        return [(run['usd'], run['open']) for run in json.loads(self.ledger.read_text())['runs']]

    def test_the_runs_of_a_day_share_what_it_may_cost(self):
        self.configure('{per_day: 2.5}')
        self.assertEqual(self.ask(1), [200])
        self.assertEqual(self.spent(), [(1, False)])
        budget = self.record['budget']
        self.assertEqual((budget['place'], budget['left_usd'], budget['spent_usd'], budget['counted']), ('file', 2.5, 1, True))
        # $1.50 is left: the second answer goes beyond it, and the third question is not sent.
        self.assertEqual(self.ask(3), [200, 200, 403])
        self.assertEqual((self.code, self.record['outcome']['limit'], self.limit('cost')['limit']), (125, 'cost', 1.5))
        self.assertEqual(self.spent(), [(1, False), (2, False)])
        self.assertTrue(any(finding['rule'] == 'budget' and '$1.50' in finding['message'] for finding in self.record['findings']))
        self.not_started(77, r'the budget of the day is used up: \$3\.00 of \$2\.50 are spent')
        self.assertIn('error: the budget of the day is used up', self.said)
        self.assertEqual(len(self.spent()), 2)
        # The next day.
        ledger = json.loads(self.ledger.read_text())
        for run in ledger['runs']:
            run['day'] = '2020-01-01'
        self.ledger.write_text(json.dumps(ledger))
        self.assertEqual(self.ask(1), [200])
        self.assertEqual(self.spent(), [(1, False)])  # What is older than a day is summed up.

    def test_a_runs_own_limit_stays_where_more_is_left(self):
        self.configure('{per_day: 20}', DOLLAR + 'limits: {max_cost: 0.5}\n')
        self.assertEqual(self.ask(2), [200, 403])
        self.assertEqual((self.limit('cost')['limit'], self.record['budget']['lowered']), (0.5, False))
        self.assertEqual(self.ask(2, '--max-cost', '1.5'), [200, 200])
        # What is no model's work costs nothing, and leaves an entry.
        self.run_agent([], *self.options, printed=0)
        self.assertEqual(self.spent(), [(1, False), (2, False), (0, False)])

    def begin(self, report, *options):
        """The process of a run that stays until `self.server.over` is set."""
        port = self.server.server_address[1]
        if not (self.checkout / 'hold.sh').exists():  # Another run may be reading them.
            (self.directory / 'policy.yml').write_text(f'defaults: none\nendpoints: ["{HOST}:{port}:full:rest"]\n')
            (self.checkout / 'hold.sh').write_text(f'curl -s -d x http://{HOST}:{port}/never/x\ntrue\n')
        run = subprocess.Popen([BINARY, 'run', '--workdir', self.checkout, '--policy', self.directory / 'policy.yml',
                                '--report-dir', self.directory / report, *self.options, *options, '--', '/bin/sh', 'hold.sh'],
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(run.wait)
        self.addCleanup(run.kill)
        return run

    def hold(self, *options):
        """Such a run once its agent has started."""
        self.server.over.clear()
        self.server.seen.clear()
        run = self.begin('held', *options)
        while not self.server.seen:
            self.assertIsNone(run.poll())
            threading.Event().wait(0.05)
        return run

    def test_a_run_reserves_what_it_may_spend(self):
        self.configure('{per_day: 2}')
        run = self.hold('--max-cost', '1.5')
        self.assertEqual(self.spent(), [(1.5, True)])
        self.assertEqual(self.ask(2), [200, 403])  # With what is left, half a dollar.
        self.not_started(77, r'\$1\.00 of \$2\.00 are spent, and \$1\.50 are reserved for runs that go on')
        self.server.over.set()
        self.assertEqual(run.wait(60), 0)
        self.assertEqual(self.spent(), [(0, False), (1, False)])
        self.assertEqual(self.ask(1), [200])

    def test_what_a_killed_run_has_reserved_stays_so(self):
        self.configure('{per_day: 2}')
        run = self.hold()
        run.kill()
        run.wait()
        self.assertEqual(self.spent(), [(2, True)])
        self.not_started(77, r'\$0\.00 of \$2\.00 are spent, and \$2\.00 are reserved')

    def test_runs_that_start_at_once_never_get_more_than_there_is(self):
        self.configure('{per_day: 3}')
        runs = [self.begin(f'at-once-{number}', '--max-cost', '1') for number in range(6)]
        while len(self.server.seen) < 3 or sum(run.poll() is not None for run in runs) < 3:
            threading.Event().wait(0.05)
        self.assertEqual(sorted(run.returncode for run in runs if run.poll() is not None), [77, 77, 77])
        self.assertEqual(self.spent(), [(1, True)] * 3)
        self.server.over.set()
        self.assertEqual(sorted(run.wait() for run in runs), [0, 0, 0, 77, 77, 77])
        self.assertEqual(self.spent(), [(0, False)] * 3)

    def test_what_is_not_known_is_refused_unless_the_configuration_says_otherwise(self):
        garbage = ['', 'x', '{}', '{"version": 2, "runs": [], "pull_requests": {}}', '{"version": 1, "runs": [], "pull_requests": {"x": 1}}',
                   '{"version": 1, "runs": [{"id": "x", "day": "2026-01-01", "number": 0, "usd": 1, "open": false}], "pull_requests": {}}',
                   '{"version": 1, "runs": [{"id": "%s", "day": "2026-01-01", "number": 0, "usd": -1, "open": false}], "pull_requests": {}}' % ('a' * 32)]
        self.configure('{per_day: 2}')
        for text in garbage:
            self.ledger.write_text(text)
            self.not_started(65, 'what earlier runs have spent is not known: .*ledger.json')
            self.assertEqual(self.ledger.read_text(), text)
        self.configure('{per_day: 2, unknown: warn}')
        self.assertEqual(self.ask(3), [200, 200, 403])  # No more than a whole day's.
        finding = next(finding for finding in self.record['findings'] if finding['rule'] == 'budget')
        self.assertEqual(finding['severity'], 'warning')
        self.assertIn('what earlier runs have spent is not known', finding['message'])
        self.assertFalse(self.record['budget']['counted'])
        # A file that cannot be, and no place at all.
        self.configure('{per_day: 2}')
        self.options = ['--budget-file', self.directory / 'none/ledger.json']
        self.not_started(66, 'none/ledger.json')
        self.options = []
        self.not_started(78, 'no forge keeps what runs have spent .--budget-file FILE.')
        # The control: without the key, none of it is asked for.
        (self.checkout / '.agentic-ci/config.yml').unlink()
        self.configure('{per_day: 2}'.replace('2', '3'), DOLLAR)
        self.options = ['--budget-file', self.directory / 'fresh.json']
        self.assertEqual(self.ask(1), [200])

    def test_a_budget_that_limits_nothing_is_no_configuration(self):
        for budget, place in (('{}', '1:9'), ('{unknown: warn}', '1:9'), ('{per_day: 0}', '1:19'), ('{per_day: -1}', '1:19'), ('{per_week: 1}', '1:10'),
                              ('{per_day: 1, unknown: ignore}', '1:31'), ('20', '1:9')):
            self.configure(budget)
            run = subprocess.run([BINARY, 'run', '--workdir', self.checkout, '--report-dir', self.directory / 'report', *self.options, '--',
                                  '/bin/true'], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600)
            self.assertEqual(run.returncode, 65, budget + run.stderr)
            self.assertIn(f'.agentic-ci/config.yml:{place}: error: ', run.stderr, budget)

    def test_an_unpriced_model_is_refused_under_a_budget_across_runs(self):
        self.configure('{per_day: 2}')
        code, said = self.refused('--model', 'claude-opus-4-99')
        self.assertEqual(code, 78, said)

    def refused(self, *options):
        run = subprocess.run([BINARY, 'run', '--workdir', self.checkout, '--report-dir', self.directory / 'report', *self.options, *options,
                              '--', '/bin/true'], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600)
        return run.returncode, run.stderr



if __name__ == '__main__':
    unittest.main()
