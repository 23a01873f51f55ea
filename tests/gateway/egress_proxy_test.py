#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs on a machine that reaches others only through a proxy, tinyproxy: what the policy allows leaves through it.

usage: egress_proxy_test.py BINARY [TEST...]
"""
import http.server
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import stage

BINARY = os.path.abspath(sys.argv[1])
PASSWORD = 'pass-word-of-the-proxy'
PROXY = 'http://someone:%s@proxy.example.test:3128' % PASSWORD
SERVER = '93.184.216.34'  # Beyond the proxy: no route leads there from where the runs are.
POLICY = '''
version: 1
network_policies:
  servers:
    endpoints:
      - { host: api.example.test, ports: [80, 443], protocol: rest, access: read-only }
      - { host: named.example.test, port: 443, protocol: rest, access: read-only }
      - { host: listed.example.test, port: 443, protocol: rest, access: read-only, allowed_ips: [93.184.216.0/24] }
      - { host: near.example.test, port: 443, protocol: rest, access: read-only }
      - { host: greeting.example.test, port: 22, protocol: tcp }
      - { host: "*.wild.example.test", port: 443, protocol: rest, access: read-only }
    binaries: [{ path: "/**" }]
'''
PROXY_SETTINGS = '''
Port 3128
Listen 10.77.0.2
Timeout 600
MaxClients 100
LogFile "{folder}/proxy.log"
LogLevel Connect
ConnectPort 443
ConnectPort 22
BasicAuth someone {password}
'''
GREET = '''
import socket
print(socket.create_connection(("greeting.example.test", 22), timeout=600).recv(100))
'''


class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = b'answered by %s' % self.server.server_address[0].encode()
        self.send_response(200)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def serve(folder):
    """The servers behind the proxy, and one in its network; in the network namespace that this was started in."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder + '/server.pem', folder + '/server.key')
    for address, port in ((SERVER, 443), ('10.77.0.2', 443), ('10.77.0.2', 80)):
        server = http.server.ThreadingHTTPServer((address, port), Answer)
        if port == 443:
            server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=server.serve_forever, daemon=True).start()
    listener = socket.create_server((SERVER, 22))
    print('ready', flush=True)
    while True:
        connection, _ = listener.accept()
        connection.sendall(b'SSH-2.0-test\r\n')


class EgressProxy(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix='egress-proxy-test-'))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        stage.run('mount', '--make-rprivate', '/')
        stage.run('ip', 'link', 'set', 'lo', 'up')
        holder = cls.start(['unshare', '--net', 'sleep', '3000'])
        ours = os.readlink('/proc/self/ns/net')
        while os.readlink('/proc/%d/ns/net' % holder.pid) == ours:
            time.sleep(0.02)
        stage.run('ip', 'link', 'add', 'near', 'type', 'veth', 'peer', 'name', 'far', 'netns', str(holder.pid))
        stage.run('ip', 'address', 'add', '10.77.0.1/24', 'dev', 'near')
        stage.run('ip', 'link', 'set', 'near', 'up')
        enter = ['nsenter', '--target', str(holder.pid), '--net']
        for words in ('address add 10.77.0.2/24 dev far', 'link set far up', 'link set lo up',
                      'address add %s/32 dev lo' % SERVER):
            stage.run(*enter, 'ip', *words.split())
        stage.make_certificates(str(cls.folder))
        near = '10.77.0.2 proxy.example.test near.example.test inside.wild.example.test\n'
        known = '%s api.example.test listed.example.test greeting.example.test\n' % SERVER
        cls.cover('/etc/hosts', '127.0.0.1 localhost\n' + near + known)
        cls.cover('/etc/resolv.conf', 'nameserver 10.77.0.2\n')
        servers = cls.start(enter + [stage.PYTHON, os.path.abspath(__file__), '--serve', str(cls.folder)])
        assert servers.stdout.readline() == b'ready\n'
        # The proxy knows more names than the machine that uses it.
        (cls.folder / 'all-hosts').write_text(near + known + SERVER + ' named.example.test\n')
        (cls.folder / 'proxy.conf').write_text(PROXY_SETTINGS.format(folder=cls.folder, password=PASSWORD))
        (cls.folder / 'proxy.log').touch()
        cls.start(enter + ['unshare', '--mount', 'sh', '-c', 'mount --bind %s/all-hosts "$(realpath /etc/hosts)" && exec '
                           'tinyproxy -d -c %s/proxy.conf' % (cls.folder, cls.folder)])
        for _ in range(6000):
            try:
                socket.create_connection(('10.77.0.2', 3128)).close()
                break
            except ConnectionRefusedError:
                time.sleep(0.02)
        (cls.folder / 'policy.yml').write_text(POLICY)
        (cls.folder / 'checkout').mkdir()
        (cls.folder / 'checkout' / 'greet.py').write_text(GREET)

    @classmethod
    def start(cls, command):
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        cls.addClassCleanup(child.stdout.close)
        cls.addClassCleanup(child.wait)
        cls.addClassCleanup(child.send_signal, signal.SIGKILL)
        return child

    @classmethod
    def cover(cls, path, text):
        own = cls.folder / os.path.basename(path)
        own.write_text(text)
        stage.run('mount', '--bind', own, os.path.realpath(path))

    def setUp(self):
        self.logged = len(self.proxy_log())

    def proxy_log(self):
        return (self.folder / 'proxy.log').read_text()

    def asked(self):
        """What the proxy was asked for in this test."""
        return re.findall(r'Request \(file descriptor \d+\): (.*) HTTP/', self.proxy_log()[self.logged:])

    def run_agent(self, command, proxy=PROXY, options=(), **variables):
        """Runs the command in a sandbox: its exit status. Nothing that is written tells of the password."""
        self.report = self.folder / ('report-%d' % time.monotonic_ns())
        environment = {name: value for name, value in os.environ.items() if 'proxy' not in name.lower()}
        environment.update(variables, **({'HTTPS_PROXY': proxy} if proxy else {}))
        done = subprocess.run(
            [BINARY, 'run', '--workdir', self.folder / 'checkout', '--policy', self.folder / 'policy.yml', '--ca-file',
             self.folder / 'trusted.pem', '--report-dir', self.report, '--timeout', '900s', *options, '--', *command],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment)
        self.said = done.stdout.decode()
        texts = [self.said] + [file.read_text(errors='replace') for file in self.report.rglob('*') if file.is_file()]
        for text in texts:
            self.assertNotIn(PASSWORD, text)
        return done.returncode

    def get(self, url, **more):
        """Has the agent ask for it: the status and the body that it got."""
        self.run_agent([stage.CURL, '-sS', '-m', '600', '-w', r'\n%{http_code} %{http_connect}\n', url], **more)
        text = (self.report / 'agent.log').read_text()
        status = re.search(r'^([0-9]{3}) ([0-9]{3})$', text, re.MULTILINE)
        self.assertTrue(status, text + self.said)
        return max(int(number) for number in status.groups()), text

    def events(self):
        return (self.report / 'events.ocsf.jsonl').read_text()

    def controls(self):
        record = json.loads((self.report / 'run.json').read_text())
        return {control['name']: control for control in record['isolation']['controls']}

    def test_what_is_allowed_leaves_through_it_by_the_address_that_was_checked(self):
        for tier in ('namespaces', 'landlock'):
            with self.subTest(tier):
                self.logged = len(self.proxy_log())
                status, text = self.get('https://api.example.test/', options=['--isolation', tier])
                self.assertEqual(status, 200, text + self.said)
                self.assertIn('answered by ' + SERVER, text)
                self.assertEqual(self.asked(), ['CONNECT %s:443' % SERVER])
                row = self.controls()['egress proxy']
                self.assertEqual((row['state'], row['note']),
                                 ('enforced', 'proxy.example.test:3128, for connections to other ports than 80'))
        # Without it there is no way.
        status, text = self.get('https://api.example.test/', proxy=None)
        self.assertEqual(status, 502, text)
        self.assertNotIn('egress proxy', self.controls())

    def test_the_policy_decides_first(self):
        for variables in ({}, {'AGENTIC_CI_PROXY_BY_NAME': 'true'}):
            self.assertEqual(self.get('https://other.example.test/', **variables)[0], 403)
        self.assertEqual(self.asked(), [])

    def test_a_proxy_that_refuses_is_named_in_the_record(self):
        status, text = self.get('https://api.example.test/', proxy=PROXY.replace('someone', 'anyone'))
        self.assertEqual(status, 502, text)
        self.assertIn('the proxy proxy.example.test:3128: it ', self.events())
        self.assertIn('401' if '401' in self.events() else '407', self.events())

    def test_names_that_only_the_proxy_knows_need_the_word_for_it(self):
        status, text = self.get('https://named.example.test/')
        self.assertEqual(status, 502, text)
        self.assertIn('AGENTIC_CI_PROXY_BY_NAME=true', self.events())
        self.assertEqual(self.asked(), [])
        status, text = self.get('https://named.example.test/', AGENTIC_CI_PROXY_BY_NAME='true')
        self.assertEqual(status, 200, text + self.said)
        self.assertEqual(self.asked(), ['CONNECT named.example.test:443'])
        self.assertEqual(self.controls()['egress proxy']['state'], 'emulated')

    def test_addresses_that_the_policy_lists_are_never_left_to_it(self):
        self.assertEqual(self.get('https://listed.example.test/')[0], 200)
        self.assertEqual(self.asked(), ['CONNECT %s:443' % SERVER])
        self.assertEqual(self.get('https://listed.example.test/', AGENTIC_CI_PROXY_BY_NAME='true')[0], 403)
        self.assertIn('allowed_ips cannot be checked', self.events())
        self.assertEqual(len(self.asked()), 1)

    def test_a_name_that_leads_inside_is_refused_unless_it_is_left_to_the_proxy(self):
        self.assertEqual(self.get('https://inside.wild.example.test/')[0], 403)
        self.assertIn('internal address', self.events())
        self.assertEqual(self.asked(), [])
        self.assertEqual(self.get('https://inside.wild.example.test/', AGENTIC_CI_PROXY_BY_NAME='true')[0], 200)

    def test_the_agent_has_neither_the_proxy_nor_its_password(self):
        look = ['sh', '-c', 'env; cat /proc/[0-9]*/environ | tr "\\0" "\\n"; echo looked']
        reach = [stage.PYTHON, '-c', 'import socket; socket.create_connection(("10.77.0.2", 3128), 600); print("reached")']
        outside = dict(os.environ, HTTPS_PROXY=PROXY)
        for command, wanted in ((look, PASSWORD), (reach, 'reached')):  # The control.
            self.assertIn(wanted, subprocess.run(command, env=outside, capture_output=True).stdout.decode(errors='replace'))
        self.run_agent(look)  # Which sees that nothing has the password.
        self.assertIn('looked', (self.report / 'agent.log').read_text())
        self.assertNotIn('proxy.example.test', (self.report / 'agent.log').read_text())
        self.run_agent(reach)
        self.assertNotIn('reached', (self.report / 'agent.log').read_text())

    def test_what_is_excepted_and_port_80_are_reached_directly(self):
        status, text = self.get('https://near.example.test/', NO_PROXY='near.example.test')
        self.assertEqual((status, self.asked()), (200, []), text)
        self.assertEqual(self.get('http://api.example.test/')[0], 502)  # No route.
        self.assertEqual(self.asked(), [])

    def test_a_server_that_speaks_first_is_heard(self):
        self.assertEqual(self.run_agent([stage.PYTHON, 'greet.py']), 0, self.said)
        self.assertIn('SSH-2.0-test', (self.report / 'agent.log').read_text())
        self.assertEqual(self.asked(), ['CONNECT %s:22' % SERVER])

    def test_settings_that_are_not_understood_are_refused_before_the_start(self):
        self.assertEqual(self.run_agent(['true'], AGENTIC_CI_PROXY_BY_NAME='yes'), 65, self.said)
        self.assertIn('neither true nor false', self.said)
        self.assertEqual(self.run_agent(['true'], proxy=PROXY.replace('http:', 'https:')), 69, self.said)
        self.assertIn('inside TLS', self.said)
        self.assertEqual(self.run_agent(['true'], proxy=PROXY.replace('http:', 'https:'), NO_PROXY='*'), 0, self.said)
        self.assertEqual(self.run_agent(['true'], proxy=PROXY.replace('http:', 'socks5:')), 65, self.said)


if __name__ == '__main__':
    if sys.argv[1] == '--serve':
        serve(sys.argv[2])
    stage.enter_namespaces()
    sys.argv.pop(1)
    unittest.main()
