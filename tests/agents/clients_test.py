#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""curl, git, Node and Python in the sandbox: what the policy allows arrives over TLS, the rest does not.

usage: clients_test.py BINARY NODE_DIRECTORY [TEST...]
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest

from upstream import NAME, Upstream

BINARY, NODE = os.path.abspath(sys.argv.pop(1)), sys.argv.pop(1)
POLICY = '''
version: 1
filesystem_policy:
  include_workdir: true
  read_only: [/usr, /lib, /proc, /dev/urandom, /etc, {node}]
  read_write: [/tmp, /dev/null]
network_policies:
  page:
    endpoints:
      - host: {host}
        port: {port}
        protocol: rest
        rules:
          - allow: {{ method: GET, path: "/page" }}
    binaries: [{{ path: /usr/bin/curl }}, {{ path: "{node}/node" }}, {{ path: /usr/bin/python3 }}]
  git:
    endpoints:
      - host: {host}
        port: {port}
        protocol: rest
        rules:
          - allow: {{ method: GET, path: "/**/info/refs", query: {{ service: git-upload-pack }} }}
          - allow: {{ method: POST, path: "/**/git-upload-pack" }}
    binaries: [{{ path: /usr/bin/git }}, {{ path: "/usr/lib/git-core/**" }}]
'''
# Each asks for the page, then for what no rule allows, then for another host, and prints three words.
PYTHON = '''
import sys, urllib.error, urllib.request
def ask(url, data=None):
    try:
        with urllib.request.urlopen(url, data, timeout=120) as answer: return answer.read().decode().strip()
    except urllib.error.HTTPError as error: return str(error.code)
    except OSError as error: return "refused" if "403" in str(error) else repr(error)
base = sys.argv[1]
print(ask(base + "/page"), ask(base + "/page", b"x"), ask("https://other.example.com/"), sep="|")
'''
REQUESTS = '''
import requests, sys
def ask(url, **options):
    try:
        answer = requests.request("POST" if options else "GET", url, timeout=120, **options)
        return answer.text.strip() if answer.ok else str(answer.status_code)
    except OSError as error: return "refused" if "403" in str(error) else repr(error)
base = sys.argv[1]
print(ask(base + "/page"), ask(base + "/page", data="x"), ask("https://other.example.com/"), sep="|")
'''
JAVASCRIPT = '''
const ask = async (url, options) => {
  try {
    const answer = await fetch(url, options);
    return answer.ok ? (await answer.text()).trim() : String(answer.status);
  } catch (error) { return /cancelled/.test(error.cause) ? 'refused' : String(error.cause); }
};
const base = process.argv[2];
console.log([await ask(`${base}/page`), await ask(`${base}/page`, { method: 'POST', body: 'x' }),
             await ask('https://other.example.com/')].join('|'));
'''
CURL = '''
ask() { curl -sS --max-time 120 -o body -w '%{http_code}' "$@" 2>error >code && case $(cat code) in
  200) tr -d '\\n' <body ;; *) cat code ;; esac || { grep -q 'response 403' error && printf refused || cat error; }; }
ask "$1/page"; printf '|'; ask -d x "$1/page"; printf '|'; ask https://other.example.com/; echo
'''
GIT = '''
for turn in 1 2 3; do git ls-remote "$1/open.git" HEAD | grep -o HEAD; done
git clone -q "$1/open.git" clone && cat clone/file
cd clone && git -c user.name=a -c user.email=a@example.com commit -q --allow-empty -m two
git push -q origin HEAD:main 2>&1 | grep -o 'error: 403'
git ls-remote https://other.example.com/x.git 2>&1 | grep -o 'response 403'
'''


class Clients(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix='clients-test-'))
        self.addCleanup(shutil.rmtree, self.directory)
        self.checkout = self.directory / 'checkout'
        self.checkout.mkdir()
        self.upstream = Upstream(self.directory)
        self.addCleanup(self.upstream.server_close)
        self.addCleanup(self.upstream.shutdown)
        self.policy = self.directory / 'policy.yml'
        self.policy.write_text(POLICY.format(host=NAME, port=self.upstream.port, node=NODE))

    def run_in_sandbox(self, program, text, name):
        (self.checkout / name).write_text(text)
        report = self.directory / 'report'
        run = subprocess.run([BINARY, 'run', '--workdir', self.checkout, '--policy', self.policy, '--report-dir', report,
                              '--ca-file', self.upstream.ca_file, '--timeout', '60s', '--',
                              program, name, self.upstream.url],
                             env={'PATH': os.environ['PATH']}, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        denials = json.loads((report / 'run.json').read_text())['denials']
        return run.stdout, {(denial['host'], denial['method']) for denial in denials}

    def check_three_answers(self, program, text, name):
        answers, denials = self.run_in_sandbox(program, textwrap.dedent(text), name)
        self.assertEqual(answers, 'a page|403|refused\n')
        self.assertEqual(self.upstream.requests, ['GET /page'])
        self.assertEqual(denials, {(NAME, 'POST'), ('other.example.com', '')})

    def test_curl(self):
        self.check_three_answers('/bin/sh', CURL, 'ask.sh')

    def test_python(self):
        self.check_three_answers('/usr/bin/python3', PYTHON, 'ask.py')

    def test_python_requests(self):
        self.check_three_answers('/usr/bin/python3', REQUESTS, 'ask.py')

    @unittest.skipUnless(NODE, 'npm: no Node whose fetch knows a proxy')
    def test_node_fetch(self):
        self.check_three_answers(f'{NODE}/node', JAVASCRIPT, 'ask.mjs')

    def test_git(self):
        source, repository = self.directory / 'source', self.upstream.repositories / 'open.git'

        def git(*arguments):
            subprocess.run(['git', '-c', 'user.name=a', '-c', 'user.email=a@example.com', *arguments], check=True,
                           env={'PATH': os.environ['PATH'], 'HOME': '/nonexistent'}, capture_output=True)

        git('init', '-q', '-b', 'main', source)
        (source / 'file').write_text('cloned\n')
        git('-C', source, 'add', '.')
        git('-C', source, 'commit', '-qm', 'one')
        git('clone', '-q', '--bare', source, repository)
        git('-C', repository, 'config', 'http.receivepack', 'true')
        answers, denials = self.run_in_sandbox('/bin/sh', GIT, 'ask.sh')
        self.assertEqual(answers, 'HEAD\n' * 3 + 'cloned\nerror: 403\nresponse 403\n')
        self.assertEqual(denials, {(NAME, 'GET'), ('other.example.com', '')})
        self.assertEqual({request.split()[0] for request in self.upstream.requests if 'upload-pack' in request},
                         {'GET', 'POST'})
        self.assertFalse([request for request in self.upstream.requests if 'receive-pack' in request])


if __name__ == '__main__':
    unittest.main(verbosity=2)
