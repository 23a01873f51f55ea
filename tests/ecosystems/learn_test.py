#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A policy learned from use: what real programs are refused is remembered, suggested, and, once a person has added it,
passes. Hosts that a run's credentials are sent to are never suggested.

usage: learn_test.py BINARY [TEST...]
"""
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

BINARY = os.path.abspath(sys.argv.pop(1))
HOST = 'host.openshell.internal'
POLICY = '''version: 1
filesystem_policy:
  include_workdir: true
  read_only: [/usr, /lib, /lib64, /bin, /proc, /dev/urandom, /etc, {tools}]
  read_write: [/tmp, /dev/null]
'''
SECONDS = 180


class Answers(http.server.BaseHTTPRequestHandler):
    def answer(self):
        self.server.seen.append((self.command, self.path, self.headers.get('authorization')))
        self.rfile.read(int(self.headers.get('content-length') or 0))
        self.send_response(200)
        self.send_header('content-length', '3')
        self.end_headers()
        self.wfile.write(b'ok\n')

    do_GET = do_POST = answer

    def log_message(self, *_):
        pass


class Learn(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix='learn-test-', dir='/var/tmp'))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        self.directory.chmod(0o755)
        self.checkout = self.directory / 'checkout'
        self.checkout.mkdir()
        self.tools = self.directory / 'tools'
        self.tools.mkdir()
        self.policy = self.directory / 'policy.yml'
        self.policy.write_text(POLICY.format(tools=self.tools))
        self.learned = self.directory / 'learned.jsonl'
        self.server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Answers)
        self.server.seen = []
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.url = f'http://{HOST}:{self.server.server_port}'

    def command(self, script, *options, report='report'):
        return [BINARY, 'run', '--workdir', self.checkout, '--policy', self.policy, '--report-dir', self.directory / report,
                '--learn', self.learned, '--timeout', f'{SECONDS}s', *options, '--', '/bin/sh', '-c', script]

    def run_agent(self, script, *options, environment=None):
        return subprocess.run(self.command(script, *options), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=SECONDS + 60, env={**os.environ, **(environment or {})}, cwd=self.directory)

    def suggest(self, *arguments):
        run = subprocess.run([BINARY, 'policy', 'suggest', *arguments], capture_output=True, text=True, cwd=self.directory)
        self.assertEqual(run.returncode, 0, run.stderr)
        return run.stdout

    def add_what_is_suggested(self):
        whole = self.suggest(self.learned, '--policy', self.policy, '--whole')
        check = subprocess.run([BINARY, 'policy', 'check', '/dev/stdin'], input=whole, capture_output=True, text=True)
        self.assertEqual(check.returncode, 0, check.stdout + check.stderr)
        patch = self.suggest(self.learned, '--policy', 'policy.yml')
        subprocess.run(['git', 'apply', '-'], input=patch, text=True, check=True, cwd=self.directory)
        self.assertEqual(self.policy.read_text(), whole[whole.index('version: 1'):])

    def learn_until_it_passes(self, script, *options, rounds=5):
        """As a person would, and nothing more is suggested in the end."""
        for _ in range(rounds):
            run = self.run_agent(script, *options)
            if run.returncode == 0:
                break
            self.add_what_is_suggested()
        self.assertEqual(run.returncode, 0, run.stdout[-3000:] + run.stderr[-3000:])
        self.assertIn('No refused request', self.suggest(self.learned, '--policy', self.policy))

    def test_what_curl_is_refused_passes_once_it_is_added(self):
        script = f'curl -fsS {self.url}/a && curl -fsS -d x {self.url}/b'
        refused = self.run_agent(script)
        self.assertNotEqual(refused.returncode, 0)
        self.assertEqual(self.server.seen, [])  # Learning lets nothing pass.
        self.learn_until_it_passes(script)
        self.assertEqual([seen[:2] for seen in self.server.seen][-2:], [('GET', '/a'), ('POST', '/b')])
        text = self.policy.read_text()
        # The first run ended at the first refusal: the POST was learned in a later one.
        self.assertIn("{method: 'GET', path: '/a'}", text)
        self.assertIn("{method: 'POST', path: '/b'}", text)
        self.assertRegex(text, r'# It was refused 2 times in 2 runs: /usr/bin/curl \(from /usr/bin/\w+\)\.')
        # Nothing else is open: not another path, and not to another program.
        closed = self.run_agent(f'curl -fsS {self.url}/c')
        self.assertNotEqual(closed.returncode, 0)

    def outside(self, command, environment=None):
        run = subprocess.run(['/bin/sh', '-c', command], cwd=self.checkout, capture_output=True, text=True,
                             timeout=SECONDS, env={**os.environ, **(environment or {})})
        if run.returncode != 0:
            self.skipTest(f'network: outside the sandbox it fails as well: {run.stderr.strip().splitlines()[-1:]}')

    def test_npm_is_refused_its_registry_then_learned_then_it_passes(self):
        if shutil.which('npm') is None:
            self.skipTest('npm: not installed')
        install = 'npm install --no-audit --no-fund --fetch-retries 0 --prefix {0}/out --cache {0}/cache is-number@7.0.0'
        self.outside(install.format(self.directory / 'outside'))
        self.learn_until_it_passes(install.format('/tmp'))

    def test_pip_is_refused_its_index_then_learned_then_it_passes(self):
        import pip
        shutil.copytree(os.path.dirname(pip.__file__), self.tools / 'lib/pip', ignore=shutil.ignore_patterns('__pycache__'))
        variables = {'PYTHONPATH': str(self.tools / 'lib')}
        download = '/usr/bin/python3 -m pip download --no-deps --no-cache-dir --retries 0 -q -d {0}/out six==1.16.0'
        self.outside(download.format(self.directory / 'outside'), variables)
        self.learn_until_it_passes(download.format('/tmp'), '--env', f'PYTHONPATH={variables["PYTHONPATH"]}')

    def test_a_hostile_request_is_proposed_with_its_origin_and_nothing_is_applied(self):
        before = self.policy.read_bytes()
        name = 'x\n  evil: {}'
        self.run_agent(f'curl -s https://evil.example.com/; curl -s http://evil.example.com/"$(printf "{name}")";'
                       " curl -s http://169.254.169.254/latest; curl -s http://127.0.0.1/;"
                       ' mkdir -p /tmp/d; cp /usr/bin/curl "/tmp/d/a\n# b"; "/tmp/d/a\n# b" -s http://forged.example.com/')
        self.assertEqual(self.policy.read_bytes(), before)
        text = self.suggest(self.learned, '--policy', self.policy, '--whole')
        self.assertIn("host: 'evil.example.com'", text)
        self.assertRegex(text, r'# It was refused .*: /usr/bin/curl \(from ')
        self.assertNotIn("host: '169.254.169.254'", text)
        self.assertNotIn("host: '127.0.0.1'", text)
        self.assertNotIn('\n# b', text)
        self.assertNotIn('\n  evil:', text)

    def test_a_host_that_a_credential_goes_to_is_never_suggested(self):
        self.policy.write_text(self.policy.read_text() + f'''network_policies:
  api:
    endpoints:
      - {{host: {HOST}, port: {self.server.server_port}, protocol: rest, access: read-only}}
    binaries: [{{path: /usr/bin/curl}}]
''')
        options = ('--secret', f'TOKEN@{HOST}')
        script = (f'curl -fsS -H "authorization: Bearer $TOKEN" {self.url}/a &&'
                  f' curl -sS -d x {self.url}/b; curl -s http://other.example.com/')
        self.run_agent(script, *options, environment={'TOKEN': 'the-value-of-the-token'})
        self.assertEqual(self.server.seen, [('GET', '/a', 'Bearer the-value-of-the-token')])
        self.assertNotIn('the-value', self.learned.read_text())
        for text in (self.suggest(self.learned), self.suggest(self.learned, '--policy', self.policy)):
            self.assertRegex(text, rf'# POST .*{HOST}.*Not suggested, since TOKEN is sent to this host')
            self.assertNotIn("method: 'POST'", text)
            self.assertIn("host: 'other.example.com'", text)
        # Without the note's reason, that is for a run without the credential, it would have been.
        self.assertIn("method: 'POST'", self.suggest(self.directory / 'report', '--policy', self.policy))

    def test_runs_at_the_same_time_share_one_file(self):
        runs = [subprocess.Popen(self.command(f'curl -s {self.url}/{i}', report=f'report-{i}'), stdin=subprocess.DEVNULL,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self.directory) for i in range(4)]
        for run in runs:
            run.wait(timeout=SECONDS)
        lines = [json.loads(line) for line in self.learned.read_text().splitlines()]
        self.assertEqual(sorted(line['unmapped']['path'] for line in lines if 'unmapped' in line), ['/0', '/1', '/2', '/3'])

    def test_a_file_that_could_be_anybodys_is_refused(self):
        other = self.directory / 'other'
        for path, make, code, why in (
                (self.checkout / 'l.jsonl', lambda path: None, 77, 'in the checkout'),
                (other, lambda path: path.write_text('version: 1\n'), 65, 'not one that --learn wrote'),
                (other, lambda path: path.chmod(0o666), 77, 'other users'),
                (self.directory / 'link', lambda path: path.symlink_to(self.policy), None, 'openat')):
            with self.subTest(why):
                make(path)
                self.learned = path
                run = self.run_agent('true')
                self.assertNotEqual(run.returncode, 0)
                if code is not None:
                    self.assertEqual(run.returncode, code, run.stderr)
                self.assertIn(why, run.stderr)


if __name__ == '__main__':
    unittest.main(verbosity=2)
