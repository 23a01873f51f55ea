#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""MCP through the gateway, with the public clients and with requests of which the header says something else than the body.

usage: mcp_gateway_test.py BINARY PYTHON_PACKAGES MODULES NODE_DIRECTORY [TEST...]
"""
import http.client
import http.server
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
BINARY, PACKAGES, MODULES, NODE = (os.path.abspath(sys.argv.pop(1)) for _ in range(4))
HOST = 'host.openshell.internal'
START_SECONDS_MAX = 60
VERSION = 'io.modelcontextprotocol/protocolVersion'
META = {VERSION: '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {}}
POLICY = '''
version: 1
filesystem_policy:
  include_workdir: true
  read_only: [/usr, /lib, /lib64, /proc, /dev/urandom, /etc, {packages}, {modules}, {node}]
  read_write: [/tmp, /dev/null]
network_policies:
  server:
    endpoints:
      - host: {host}
        port: {port}
        path: /mcp
        protocol: mcp
        enforcement: {enforcement}
        rules: [{rules}]
    binaries: [{{ path: "/**" }}]
'''
OLD_RULES = ('initialize', 'notifications/initialized', 'tools/list')
NEW_RULES = (*OLD_RULES, 'server/discover')
PYTHON_MODES = {'legacy': False, 'auto': True, '2026-07-28': True}  # Whether a session is of 2026-07-28.
NPM_MODES = {'1': False, 'legacy': False, 'auto': True, '2026-07-28': True}


class Router(http.server.ThreadingHTTPServer):
    """Sends a request on by its header alone, as balancers do: which tool is called, it does not read in the body."""

    def __init__(self, server_port):
        super().__init__(('127.0.0.1', 0), Route)
        self.upstream, self.seen = server_port, []
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Route(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def do_POST(self):
        body = self.rfile.read(int(self.headers['Content-Length']))
        method, name = self.headers.get('Mcp-Method'), self.headers.get('Mcp-Name')
        self.server.seen.append((method, name, self.headers.get('Mcp-Param-Region'), json.loads(body)))
        upstream = http.client.HTTPConnection('127.0.0.1', self.server.upstream, timeout=60)
        fields = {key: value for key, value in self.headers.items() if key.lower() not in ('host', 'connection', 'via')}
        upstream.request('POST', '/mcp', body, fields)
        answer = upstream.getresponse()
        self.respond(answer.status, answer.read(), answer.getheaders())

    def do_GET(self):
        self.respond(405, b'', [])

    do_DELETE = do_GET

    def respond(self, status, body, fields):
        self.send_response(status)
        for key, value in fields:
            if key.lower() in ('content-type', 'mcp-session-id'):
                self.send_header(key, value)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def free_port():
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(('127.0.0.1', port)) == 0


class McpGateway(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix='mcp-gateway-test-'))
        self.addCleanup(shutil.rmtree, self.directory)
        self.checkout = self.directory / 'checkout'
        self.checkout.mkdir()
        for name in ('client.py', 'client.mjs'):
            shutil.copy(HERE / name, self.checkout)
        port = free_port()
        self.calls = self.directory / 'calls'
        with open(self.calls, 'a', encoding='utf-8') as calls:  # It is emptied meanwhile.
            self.server = subprocess.Popen([sys.executable, HERE / 'server.py', str(port)], stdin=subprocess.DEVNULL,
                                           stdout=calls, env={**os.environ, 'PYTHONPATH': PACKAGES})
        self.addCleanup(self.end_server)
        deadline = time.monotonic() + START_SECONDS_MAX
        while not listens(port):
            self.assertIsNone(self.server.poll())
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)
        self.router = Router(port)
        self.addCleanup(self.router.server_close)
        self.addCleanup(self.router.shutdown)

    def end_server(self):
        self.server.kill()
        self.server.wait()

    def run_in_sandbox(self, command, methods=NEW_RULES, enforcement='enforce'):
        rules = [f'{{allow: {{method: {method}}}}}' for method in methods]
        rules.append('{allow: {method: tools/call, tool: echo}}')
        policy = self.directory / 'policy.yml'
        policy.write_text(POLICY.format(packages=PACKAGES, modules=MODULES, node=NODE, host=HOST, port=self.router.server_port,
                                        rules=', '.join(rules), enforcement=enforcement))
        report = self.directory / 'report'
        shutil.rmtree(report, ignore_errors=True)
        run = subprocess.run([BINARY, 'run', '--workdir', self.checkout, '--policy', policy, '--report-dir', report,
                              '--env', f'PYTHONPATH={PACKAGES}', '--timeout', '120s', '--', *command],
                             env={'PATH': os.environ['PATH']}, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.said = run.stdout
        self.lines = [json.loads(line) for line in (report / 'events.ocsf.jsonl').read_text().splitlines()]
        return run.stdout

    def url(self):
        return f'http://{HOST}:{self.router.server_port}/mcp'

    def python(self, mode, **options):
        said = self.run_in_sandbox([sys.executable, 'client.py', self.url(), mode], **options)
        return json.loads(next(line for line in said.splitlines() if line.startswith('{')))  # The SDK logs, too.

    def npm(self, mode, **options):
        return json.loads(self.run_in_sandbox([NODE + '/node', 'client.mjs', self.url(), mode, MODULES], **options))

    def check_session(self, said, modern):
        self.assertEqual(said.get('tools'), ['drop', 'echo'], self.said)
        self.assertEqual(said['echo'], 'grün in Größe')
        self.assertNotIn('drop', said)
        self.assertIn('refused', said)
        self.assertEqual(self.calls.read_text(), 'echo grün Größe\n')
        methods = [method for method, *_ in self.router.seen]
        self.assertEqual([bool(method) for method in methods], [modern] * len(methods), methods)
        if modern:
            self.assertIn(('tools/call', 'echo', '=?base64?R3LDtsOfZQ==?='), [one[:3] for one in self.router.seen])

    def forget(self):
        self.router.seen.clear()
        self.calls.write_text('')

    def test_python_clients_of_all_revisions_work_and_are_judged(self):
        for mode, modern in PYTHON_MODES.items():
            with self.subTest(mode):
                self.forget()
                self.check_session(self.python(mode), modern)

    def test_npm_clients_of_all_revisions_work_and_are_judged(self):
        for mode, modern in NPM_MODES.items():
            with self.subTest(mode):
                self.forget()
                self.check_session(self.npm(mode), modern)

    def test_with_a_policy_of_2025_clients_of_both_eras_fall_back_and_others_are_told(self):
        for ask in (self.python, self.npm):
            with self.subTest(ask.__name__):
                self.forget()
                self.check_session(ask('auto', methods=OLD_RULES), False)
                refused = [line['unmapped'] for line in self.lines if line['class_uid'] == 4002 and line['action'] == 'Denied']
                self.assertIn([{'method': 'server/discover'}], [one.get('operations') for one in refused])
        self.forget()
        said = self.npm('2026-07-28', methods=OLD_RULES)
        self.assertIn('failed', said)
        self.assertEqual(self.router.seen, [])

    def ask(self, requests, **options):
        """curl sends each (fields, body) in turn; gives (status, answer) of each."""
        script = ''
        for number, (fields, body) in enumerate(requests):
            (self.checkout / f'body-{number}').write_text(body if isinstance(body, str) else json.dumps(body))
            given = ' '.join(f"-H '{field}'" for field in ('content-type: application/json',
                                                          'accept: application/json, text/event-stream', *fields))
            script += f"curl -s -o answer -w '%{{http_code}}\\n' {given} --data-binary @body-{number} {self.url()}; cat answer; echo\n"
        (self.checkout / 'ask.sh').write_text(script)
        lines = self.run_in_sandbox(['/bin/sh', 'ask.sh'], **options).splitlines()
        self.assertEqual(len(lines), 2 * len(requests), lines)
        return [(int(status), answer) for status, answer in zip(lines[::2], lines[1::2])]

    @staticmethod
    def call(tool='echo', version=META, **more):
        return {'jsonrpc': '2.0', 'id': 7, 'method': 'tools/call',
                'params': {'name': tool, 'arguments': {'text': 'a', 'region': 'eu'}, **({'_meta': version} if version else {}), **more}}

    AGREEING = ('mcp-protocol-version: 2026-07-28', 'mcp-method: tools/call', 'mcp-name: echo', 'mcp-param-region: eu')

    def test_what_the_header_says_otherwise_never_reaches_the_router(self):
        version, method, name, region = self.AGREEING
        disagreeing = [
            ((version, method, 'mcp-name: drop', region), self.call()),
            ((version, 'mcp-method: tools/list', name, region), self.call()),
            ((version, method, name, 'mcp-param-region: us'), self.call()),
            ((version, method, name, region, 'mcp-name: drop'), self.call()),
            ((version, method, name, region, 'Mcp_Name: drop'), self.call()),
            ((version, method, name, region, 'MCP-PARAM-REGION: us'), self.call()),
            ((version, method, 'mcp-name: =?base64?ZHJvcA==?=', region), self.call()),
            ((version, method, 'mcp-name: =?BASE64?ZWNobw==?=', region), self.call()),
            ((version, method, region), self.call()),
            ((version, name, region), self.call()),
            ((method, name, region), self.call()),
            (('mcp-protocol-version: 2025-11-25', method, name, region), self.call()),
            ((version, method, name, region), self.call(version=None)),
            ((method, 'mcp-name: drop'), self.call(version=None)),
            ((version, method, name, region, 'mcp-session-id: x'), self.call()),
            ((version, method, name, region), [self.call()]),
        ]
        controls = [(self.AGREEING, self.call()), ((version, method, 'mcp-name: =?base64?ZWNobw==?=', region), self.call())]
        for enforcement in ('enforce', 'audit'):
            with self.subTest(enforcement):
                self.forget()
                answers = self.ask(disagreeing + controls, enforcement=enforcement)
                for (fields, body), (status, answer) in zip(disagreeing, answers):
                    self.assertEqual((status, json.loads(answer)['error']['code']), (400, -32020), (fields, answer))
                    self.assertEqual(json.loads(answer)['id'], None if isinstance(body, list) else 7)
                self.assertEqual([status for status, _ in answers[len(disagreeing):]], [200] * len(controls), answers)
                self.assertEqual(len(self.router.seen), len(controls))
                self.assertEqual(self.calls.read_text(), 'echo a eu\n' * len(controls))
                refused = [line for line in self.lines if line['class_uid'] == 4002 and line['action'] == 'Denied']
                self.assertEqual(len(refused), len(disagreeing))
                for line in refused:
                    self.assertIn('the header and the body disagree', line['unmapped']['reason'])

    def test_a_revision_that_is_not_known_is_refused_with_those_that_are(self):
        unknown = {**META, VERSION: '2031-01-01'}
        answers = self.ask([(('mcp-protocol-version: 2031-01-01', *self.AGREEING[1:]), self.call(version=unknown)),
                            (self.AGREEING, self.call())])
        error = json.loads(answers[0][1])['error']
        self.assertEqual((answers[0][0], error['code'], error['data']['requested']), (400, -32022, '2031-01-01'))
        self.assertEqual(error['data']['supported'][0], '2026-07-28')
        self.assertEqual(answers[1][0], 200)
        self.assertEqual(len(self.router.seen), 1)

    def test_the_router_alone_goes_by_the_header(self):
        """The control: what the gateway refuses is sent on by a router, and the wrong tool counts."""
        router = http.client.HTTPConnection('127.0.0.1', self.router.server_port, timeout=60)
        fields = dict(field.split(': ') for field in self.AGREEING)
        router.request('POST', '/mcp', json.dumps(self.call('drop')), {'content-type': 'application/json', **fields})
        router.getresponse().read()
        method, name, _, body = self.router.seen[0]
        self.assertEqual((method, name, body['params']['name']), ('tools/call', 'echo', 'drop'))


if __name__ == '__main__':
    unittest.main(verbosity=2)
