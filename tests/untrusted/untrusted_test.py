#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Texts of strangers, by provenance, and what a run may still do once its model may know one.

usage: untrusted_test.py BINARY [TEST...]
"""
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

HERE = pathlib.Path(__file__).resolve().parent
BINARY = os.path.abspath(sys.argv.pop(1))
HOST = 'host.openshell.internal'
CANARY = 'canary-4f1d2e77'
ISSUE = 'The last column of the report is cut off when a name has more than forty letters, on every page but the first.'
COMMENT = 'I see this too, since the upgrade of last week, and only with the printer of the second floor.'
CODE = 'def column_width(names):\n    """The widest name decides, whatever the page has room for."""\n    return max(len(name) for name in names)\n'
CLOSES = {'closes': ['writes', 'hosted_tools']}


class Server(http.server.ThreadingHTTPServer):
    """The model, the hook, a page and an MCP server: each by its own port, with all that it was sent."""

    def __init__(self):
        super().__init__(('127.0.0.1', 0), Answer)
        self.bodies = []
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def do_GET(self):
        if self.headers.get('Upgrade') == 'websocket':
            self.send_response(101)
            for name, value in (('Connection', 'Upgrade'), ('Upgrade', 'websocket'),
                                ('Sec-WebSocket-Accept', 's3pPLMBiTxaQ9kYGzzhZRbK+xOo=')):  # Of the key in RFC 6455.
                self.send_header(name, value)
            self.end_headers()
            frame = self.rfile.read(6 + len(CANARY))
            self.server.bodies.append(bytes(byte ^ frame[2 + at % 4] for at, byte in enumerate(frame[6:])).decode())
            self.close_connection = True
            return
        self.do_POST()

    def do_POST(self):
        self.server.bodies.append(self.rfile.read(int(self.headers.get('Content-Length') or 0)).decode())
        answer = {'jsonrpc': '2.0', 'id': 1, 'result': {'content': [{'type': 'text', 'text': 'A result.'}]}, 'type': 'message',
                  'role': 'assistant', 'model': 'claude-sonnet-4-5', 'content': [{'type': 'text', 'text': 'Yes.'}],
                  'stop_reason': 'end_turn', 'usage': {'input_tokens': 1, 'output_tokens': 1}}
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header('Content-Type', 'application/json')
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Untrusted(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix='untrusted-test-'))
        self.addCleanup(shutil.rmtree, self.directory)
        self.checkout = self.directory / 'checkout'
        self.checkout.mkdir()
        self.servers = {name: Server() for name in ('model', 'hook', 'page', 'mcp')}
        for server in self.servers.values():
            self.addCleanup(server.server_close)
            self.addCleanup(server.shutdown)
        shutil.copy(HERE / 'agent.py', self.checkout)
        (self.checkout / 'base.txt').write_text('A text of the repository itself, which is long enough to be looked for, and is not.\n')
        self.git('init', '-q', '-b', 'main')
        self.base = self.commit()
        self.git('update-ref', 'refs/agentic-ci/base', self.base)
        (self.checkout / 'column.py').write_text(CODE)
        self.head = self.commit()

    def git(self, *words):
        return subprocess.run(['git', '-c', 'user.name=a', '-c', 'user.email=a@example.com', *words], cwd=self.checkout,
                              check=True, capture_output=True, text=True).stdout.strip()

    def commit(self):
        self.git('add', '.')
        self.git('commit', '-q', '-m', 'A commit')
        return self.git('rev-parse', 'HEAD')

    def url(self, name, path=''):
        return f'http://{HOST}:{self.servers[name].server_port}{path}'

    def event(self, name, **event):
        """The variables of an event of GitHub's."""
        repository = {'id': 1, 'full_name': 'o/r', 'default_branch': 'main'}
        path = self.directory / 'event.json'
        path.write_text(json.dumps({'action': 'opened', 'repository': repository, 'sender': {'login': 'a'}, **event}))
        return {'GITHUB_ACTIONS': 'true', 'CI': 'true', 'GITHUB_EVENT_NAME': name, 'GITHUB_EVENT_PATH': str(path),
                'GITHUB_REPOSITORY': 'o/r', 'GITHUB_SHA': self.base, 'GITHUB_REF': 'refs/heads/main',
                'GITHUB_SERVER_URL': 'https://github.example', 'GITHUB_ACTOR': 'a'}

    def fork(self):
        base = {'ref': 'main', 'sha': self.base, 'repo': {'id': 1, 'full_name': 'o/r'}}
        head = {'ref': 'x', 'sha': self.head, 'repo': {'id': 2, 'full_name': 'evil/r', 'fork': True}}
        variables = self.event('pull_request', number=7, pull_request={
            'number': 7, 'title': 'Widths', 'body': None, 'user': {'login': 'a'}, 'base': base, 'head': head})
        return {**variables, 'GITHUB_BASE_REF': 'main', 'GITHUB_REF': 'refs/pull/7/merge'}

    def run_agent(self, steps, rules=None, event=None, hosted=()):
        """Returns (what each step and each sending of the canary got, whether the canary arrived)."""
        for server in self.servers.values():
            server.bodies.clear()
        endpoints = [{'host': HOST, 'port': self.servers[name].server_port, 'protocol': 'rest', 'access': access}
                     for name, access in (('model', 'full'), ('hook', 'full'), ('page', 'read-only'))]
        endpoints.append({'host': HOST, 'port': self.servers['mcp'].server_port, 'protocol': 'mcp', 'path': '/mcp',
                          'rules': [{'allow': {'method': 'tools/call', 'tool': 'read'}}]})
        endpoints.append({'host': HOST, 'port': self.servers['page'].server_port, 'protocol': 'websocket', 'path': '/socket', 'access': 'full'})
        policy = {'version': 1, 'network_policies': {'all': {'endpoints': endpoints, 'binaries': [{'path': '/**'}]}}}
        short = {'defaults': 'none', 'endpoints': [f'{HOST}:{self.servers[name].server_port}:{access}:rest' for name, access in (
            ('model', 'full'), ('hook', 'full'), ('page', 'read-only'))]}
        if event is None:  # In its own form, with a configuration.
            config = {'hosted_tools': list(hosted)} if hosted else {}
            if rules:
                config['after_untrusted'] = rules
            (self.checkout / '.agentic-ci').mkdir(exist_ok=True)
            (self.checkout / '.agentic-ci/config.yml').write_text(json.dumps(config or {'hosted_tools': 'none'}))
            options = ['--policy-ref', 'worktree']
        else:
            policy, options = short, []
            if rules:
                policy['after_untrusted'] = rules
        (self.directory / 'policy.yml').write_text(json.dumps(policy))
        report = self.directory / 'report'
        shutil.rmtree(report, ignore_errors=True)
        run = subprocess.run(
            [BINARY, 'run', '--workdir', self.checkout, '--policy', self.directory / 'policy.yml', *options, '--report-dir', report,
             '--model-host', f'{HOST}:{self.servers["model"].server_port}', '--timeout', '120s', '--', '/usr/bin/python3', 'agent.py',
             self.url('model'), self.url('hook'), CANARY, *steps],
            env={'PATH': os.environ['PATH'], **(event or {})}, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.said = run.stderr
        self.record = json.loads((report / 'run.json').read_text())
        self.lines = [json.loads(line) for line in (report / 'events.ocsf.jsonl').read_text().splitlines()]
        self.page = html.unescape((report / 'report.html').read_text())
        self.assertEqual(self.record['changes']['files'], 1)  # done.txt
        lines = [line for line in run.stdout.splitlines() if line and line.replace(' ', '').isdigit()]
        self.assertEqual(lines[-1], '200', run.stdout)  # The model is asked to the end.
        return [tuple(int(status) for status in line.split()) for line in lines[:-1]], CANARY in self.servers['hook'].bodies

    def narrowed(self):
        return [line for line in self.lines if line.get('finding_info', {}).get('uid') == 'untrusted.closed']

    def check(self, text, steps, event=None, **options):
        """The canary leaves without the rule, and not with it; `text` is how the record names what closed."""
        got, left = self.run_agent(steps, event=event, **options)
        self.assertTrue(left)
        self.assertEqual([hook for _, hook in got], [200] * len(steps))
        self.assertEqual(self.narrowed(), [])
        self.assertNotIn('after-untrusted', self.page)

        got, left = self.run_agent(steps, rules=CLOSES, event=event, **options)
        self.assertFalse(left)
        self.assertEqual([hook for _, hook in got], [403] * len(steps), self.said)
        self.assertEqual([step for step, _ in got], [200] * len(steps), self.said)
        closed, = self.narrowed()
        self.assertIn(json.dumps(text)[1:-1], json.dumps(closed))
        self.assertIn('the run was narrowed: its model may know ' + text, self.page)
        refused = [line['unmapped'] for line in self.lines if line['class_uid'] == 4002 and line['action'] == 'Denied']
        self.assertTrue(refused)
        for one in refused:
            self.assertIn('after_untrusted narrowed this run: ' + text, one['reason'])
        self.assertIn('after_untrusted narrowed this run', self.said)  # The agent is told as well.
        self.assertEqual({denial['allow_line'] for denial in self.record['denials']}, {''})

    def test_an_issue(self):
        event = self.event('issues', issue={'number': 3, 'title': 'A column', 'body': ISSUE, 'user': {'login': 'a'}})
        self.check('the text of the issue', ['say:Please solve this:\n> ' + ISSUE[:60] + '\n> ' + ISSUE[60:]], event)

    def test_a_comment(self):
        event = self.event('issue_comment', issue={'number': 3, 'title': 'A column', 'body': '', 'user': {'login': 'a'}},
                           comment={'id': 1, 'body': COMMENT, 'user': {'login': 'b'}})
        self.check('a comment of the issue', ['say:' + COMMENT], event)

    def test_the_difference_of_a_fork(self):
        self.check('column.py of the pull request', ['diff:' + self.base], self.fork())

    def test_a_file_that_the_base_lacks(self):
        self.check('column.py of the pull request', ['number:column.py'], self.fork())

    def test_files_whose_lines_or_names_look_like_others(self):
        note = 'Dear agent\nplease read\nthis line\nand all\nthat come\nbehind it\nwith some\ncare for\nthe rest\n'
        for name, shown, text in (('n\u00f6tes.txt', 'n\\303\\266tes.txt', note), ('"notes".txt', '\\"notes\\".txt', note),
                                  ('heads.txt', 'heads.txt', note.replace('\n', '\n++ b/\n'))):
            with self.subTest(name):
                self.git('reset', '-q', '--hard', self.base)
                (self.checkout / name).write_text(text)
                self.head = self.commit()
                self.check(shown + ' of the pull request', ['read:' + name], self.fork())

    def test_a_discussion_and_other_events(self):
        text = 'Could the last column of the report have a width of its own, which nobody has to measure?'
        for name, path, event in (
                ('discussion', 'discussion.body', {'discussion': {'number': 3, 'title': 'A column', 'body': text, 'user': {'login': 'a'}}}),
                ('issues', 'changes.body.from', {'action': 'edited', 'issue': {'number': 3, 'title': 'A', 'body': '', 'user': {'login': 'a'}},
                            'changes': {'body': {'from': text}}}),
                ('repository_dispatch', 'client_payload.url', {'client_payload': {'url': text}}),
                ('gollum', 'pages.summary', {'pages': [{'title': 'A page', 'summary': text}]})):
            with self.subTest(name):
                self.git('reset', '-q', '--hard', self.base)
                self.check(f"'{path}' of the event", ['say:' + text], self.event(name, **event))

    def test_a_page(self):
        self.check('an answer of ' + HOST, ['get:' + self.url('page', '/page')])

    def test_the_result_of_a_tool_of_mcp(self):
        self.check('a result of the MCP server ' + HOST, ['call:' + self.url('mcp', '/mcp')])

    def test_a_websocket_of_a_stranger_is_not_opened_where_it_could_write(self):
        steps = ['ws:' + self.url('page', '/socket')]
        got, left = self.run_agent(steps)
        self.assertEqual((got, left), ([(101, 200)], True))
        self.assertIn(CANARY, self.servers['page'].bodies)
        got, left = self.run_agent(steps, rules=CLOSES)
        self.assertEqual((got, left), ([(0, 403)], False), self.said)
        self.assertNotIn(CANARY, self.servers['page'].bodies)
        self.assertIn('an answer of ' + HOST, json.dumps(self.narrowed()))

    def test_what_is_no_strangers_text_closes_nothing(self):
        event = self.event('issues', issue={'number': 3, 'title': 'A column', 'body': ISSUE, 'user': {'login': 'a'}})
        got, left = self.run_agent(['read:base.txt', 'say:' + COMMENT], rules=CLOSES, event=event)
        self.assertTrue(left)
        # The hook's own answer is one of a stranger: its second request is refused.
        self.assertEqual([hook for _, hook in got], [200, 403])
        trusts = {**CLOSES, 'trusts': [f'{HOST}:{self.servers["hook"].server_port}']}
        got, _ = self.run_agent(['read:base.txt', 'say:' + COMMENT], rules=trusts, event=event)
        self.assertEqual([hook for _, hook in got], [200, 200])
        self.assertEqual(self.narrowed(), [])
        got, _ = self.run_agent(['read:base.txt', 'say:' + ISSUE], rules=trusts, event=event)
        self.assertEqual([hook for _, hook in got], [200, 403])

    def test_what_stays_is_open_and_what_is_read_may_be_read(self):
        stays = {**CLOSES, 'stays': [f'{HOST}:{self.servers["hook"].server_port}']}
        got, left = self.run_agent(['get:' + self.url('page', '/a'), 'get:' + self.url('page', '/b')], rules=stays)
        self.assertTrue(left)
        self.assertEqual(got, [(200, 200), (200, 200)])
        self.assertEqual(len(self.narrowed()), 1)
        got, left = self.run_agent(['get:' + self.url('page', '/a'), 'get:' + self.url('page', '/b')], rules={'closes': ['all']})
        self.assertFalse(left)
        self.assertEqual(got, [(200, 403), (403, 403)])

    def test_hosted_tools_close_too(self):
        steps = ['tools', 'get:' + self.url('page', '/a'), 'tools']
        trusts = [f'{HOST}:{self.servers["hook"].server_port}']
        got, _ = self.run_agent(steps, hosted=['web_search'])
        self.assertEqual([step for step, _ in got], [200, 200, 200], self.said)
        got, _ = self.run_agent(steps, hosted=['web_search'], rules={**CLOSES, 'trusts': trusts})
        self.assertEqual([step for step, _ in got], [200, 200, 403], self.said)
        tool, = [line['unmapped'] for line in self.lines if line['class_uid'] == 4002 and line['action'] == 'Denied' and
                 line['unmapped']['engine'] == 'hosted-tools']
        self.assertIn('after_untrusted narrowed this run: an answer of', tool['reason'])
        got, _ = self.run_agent(steps, hosted=['web_search'], rules={**CLOSES, 'trusts': trusts, 'stays': ['web_search']})
        self.assertEqual([step for step, _ in got], [200, 200, 200], self.said)


if __name__ == '__main__':
    unittest.main(verbosity=2)
