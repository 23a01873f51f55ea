#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A run reads its policy again when it is sent SIGUSR1, and its agent cannot bring that about.

usage: reload_test.py BINARY [TEST...]
"""
import errno
import http.server
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

BINARY = os.path.abspath(sys.argv.pop(1))
POLICY = '''
version: 1
network_policies:
  api:
    endpoints:
      - host: host.openshell.internal
        port: {port}
        protocol: rest
        rules:
          - allow: {{ method: GET, path: "{path}" }}
    binaries: [{{ path: "/**" }}]
'''
# Asks for one path again and again, and says what it got whenever that changes. Signals whom it can.
AGENT = '''
import os, signal, sys, time, urllib.error, urllib.request
def ask():
    try:
        return urllib.request.urlopen(sys.argv[1] + "/later", timeout=120).status
    except urllib.error.HTTPError as refused:
        return refused.code
last = None
while True:
    for target in (1, os.getppid(), -1):
        try:
            os.kill(target, signal.SIGUSR1)
        except OSError:
            pass
    now = ask()
    if now != last:
        print(now, flush=True)
    last = now
    time.sleep(0.02)
'''

# The port of a control plane: let in, and never dialled.
ADDRESS_POLICY = '''
version: 1
network_policies:
  address:
    endpoints: [{{ host: {host}, port: 6443 }}]
    binaries: [{{ path: "/**" }}]
'''
CONNECTING_AGENT = '''
import socket, time
last = None
while True:
    with socket.socket() as out:
        now = out.connect_ex(("192.0.2.40", 6443))
    if now != last:
        print(now, flush=True)
    last = now
    time.sleep(0.02)
'''


class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def do_GET(self):
        self.send_response(200)
        self.send_header('Content-Length', '0')
        self.end_headers()

    def log_message(self, *_):
        pass


class Reload(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix='reload-test-'))
        self.addCleanup(shutil.rmtree, self.directory)
        self.server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Answer)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.policy = self.directory / 'policy.yml'
        self.report = self.directory / 'report'
        self.checkout = self.directory / 'checkout'
        self.checkout.mkdir()
        (self.checkout / 'agent.py').write_text(AGENT)

    def write(self, path):
        self.policy.write_text(POLICY.format(port=self.server.server_port, path=path))

    def start(self, *options):
        url = 'http://host.openshell.internal:%d' % self.server.server_port
        self.run_ = subprocess.Popen(
            [BINARY, 'run', '--workdir', self.checkout, *options, '--report-dir', self.report, '--timeout', '600s', '--',
             os.path.realpath('/usr/bin/python3'), '-u', 'agent.py', url],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=open(self.directory / 'said', 'w'))
        self.addCleanup(self.end)

    def end(self):
        if self.run_.poll() is None:
            self.run_.terminate()
        self.run_.wait(600)
        return (self.directory / 'said').read_text()

    def signal(self):
        self.run_.send_signal(signal.SIGUSR1)

    def expect(self, *statuses):
        """The agent has been answered so, in this order, and nothing else."""
        wanted = [str(status) for status in statuses]
        for _ in range(2400):
            log = self.report / 'agent.log'
            got = [line for line in log.read_text().split() if line.isdigit()] if log.exists() else []
            if got == wanted:
                return
            time.sleep(0.05)
        self.fail('expected %s, got %s; %s' % (wanted, got, self.end()))

    def await_log(self, text, count):
        self.await_in(self.report / 'events.log', text, count)

    def await_said(self, text):
        self.await_in(self.directory / 'said', text, 1)

    def await_in(self, file, text, count):
        for _ in range(2400):
            if file.read_text().count(text) == count:
                return
            time.sleep(0.05)
        self.fail('%s: %s' % (text, file.read_text()))

    def test_a_changed_file_holds_after_the_signal_and_not_before(self):
        self.write('/first')
        self.start('--policy', self.policy)
        self.expect(403)
        self.signal()  # The same text is no other version.
        self.await_said('the policy is unchanged')
        self.write('/later')
        time.sleep(0.5)  # The agent goes on asking, and signals each time.
        self.expect(403)
        self.signal()
        self.expect(403, 200)
        self.write('/first')
        self.signal()
        self.expect(403, 200, 403)
        log = (self.report / 'events.log').read_text()
        self.assertIn('policy reloaded [version:v2 hash:sha256:', log)
        self.assertIn('policy reloaded [version:v3 hash:sha256:', log)
        self.assertNotIn('version:v4', log)

    def test_a_link_that_a_later_policy_names_is_followed_as_the_host_has_it(self):
        link = self.directory / 'link'  # Not in the sandbox, where the agent could lay another.
        link.symlink_to(os.path.realpath('/usr/bin/python3'))

        def write(program):
            text = POLICY.format(port=self.server.server_port, path='/later')
            self.policy.write_text(text.replace('path: "/**"', 'path: %s' % program))
        write(self.directory / 'nothing')
        self.start('--policy', self.policy)
        self.expect(403)
        write(link)
        self.signal()
        self.expect(403, 200)
        write('/usr/bin/nothing')
        self.signal()
        self.expect(403, 200, 403)

    def test_an_address_is_refused_at_connect_until_a_policy_names_it(self):
        (self.checkout / 'agent.py').write_text(CONNECTING_AGENT)

        def write(host):
            self.policy.write_text(ADDRESS_POLICY.format(host=host))
        write('192.0.2.41')
        self.start('--policy', self.policy)
        self.expect(errno.ECONNREFUSED)
        write('192.0.2.40')
        self.signal()
        self.expect(errno.ECONNREFUSED, 0)
        write('192.0.2.41')
        self.signal()
        self.expect(errno.ECONNREFUSED, 0, errno.ECONNREFUSED)

    def test_an_invalid_file_lets_nothing_pass_until_one_is_valid(self):
        self.write('/later')
        self.start('--policy', self.policy)
        self.expect(200)
        self.policy.write_text('version: 1\nnonsense: true\n')
        self.signal()
        self.expect(200, 403)
        self.write('/later')
        self.signal()
        self.expect(200, 403, 200)

    def test_an_invalid_file_changes_nothing_where_the_policy_is_to_be_kept(self):
        self.write('/later')
        self.start('--policy', self.policy, '--keep-policy')
        self.expect(200)
        refused = 0
        for text in ('version: 1\nnonsense: true\n',
                     self.policy.read_text() + 'landlock: {compatibility: hard_requirement}\n'):
            self.policy.write_text(text)
            self.signal()
            refused += 1
            self.await_log('the last valid policy stays in force', refused)
            self.expect(200)
        self.write('/first')
        self.signal()
        self.expect(200, 403)

    def test_without_a_file_there_is_nothing_to_read_again(self):
        self.write('/later')
        (self.checkout / '.agentic-ci').mkdir()
        shutil.copy(self.policy, self.checkout / '.agentic-ci/openshell-policy.yml')
        self.start('--policy-ref', 'worktree')
        self.expect(200)
        self.signal()
        self.await_said('the policy is not reloaded')
        self.expect(200)


if __name__ == '__main__':
    unittest.main()
