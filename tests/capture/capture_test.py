#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Connections of programs that know no proxy: judged by name, refused at once, recorded.

capture_test.py AGENTIC_CI

As root the cases run twice: as root, and as a user of no account. All traffic stays on loopback.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from upstream import Upstream, make_certificates  # noqa: E402

USER = 12345  # Of no account.
PYTHON = '/usr/bin/python3' if os.path.exists('/usr/bin/python3') else sys.executable
NAME = 'host.openshell.internal'
SECONDS_MAX = 8.0  # How long a refusal may take: less than any patience of inside.py.

POLICY = '''version: 1
network_policies:
  web:
    endpoints:
      - {{host: host.openshell.internal, port: {http}, protocol: rest, enforcement: enforce, access: read-only}}
      - {{host: host.openshell.internal, port: {https}, protocol: rest, enforcement: enforce, access: read-only}}
      - {{host: host.openshell.internal, port: {raw}, protocol: tcp}}
      - {{host: host.docker.internal, port: {https}, tls: skip}}
      - {{host: named.example.org, port: 443}}
      - {{host: "*.wild.example.com", port: 443}}
      - {{host: 192.0.2.30, port: 6443}}  # A control plane's port: let in, and never dialled.
    binaries: [{{path: "/**"}}]
'''
# A kernel without nf_tables: socket(AF_NETLINK, ..., NETLINK_NETFILTER) fails.
WITHOUT_NF_TABLES = '''
import ctypes, os, struct, sys
def step(code, yes, no, value):
    return struct.pack('HBBI', code, yes, no, value)
program = (step(0x20, 0, 0, 0) + step(0x15, 0, 5, 41) +      # The call is socket(2)
           step(0x20, 0, 0, 16) + step(0x15, 0, 3, 16) +     # of AF_NETLINK
           step(0x20, 0, 0, 32) + step(0x15, 0, 1, 12) +     # for netfilter.
           step(0x06, 0, 0, 0x50000 | 93) + step(0x06, 0, 0, 0x7fff0000))
buffer = ctypes.create_string_buffer(program)
head = struct.pack('HxxxxxxP', len(program) // 8, ctypes.addressof(buffer))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, head, 0, 0) == 0
os.execv(sys.argv[1], sys.argv[1:])
'''


class Run:
    """One run of inside.py: what it was answered, and what was recorded."""

    def __init__(self, base, name, before=(), words=(), policy=POLICY):
        self.folder = os.path.join(base, name)
        checkout, report = self.folder + '/checkout', self.folder + '/report'
        os.makedirs(checkout)
        for file in ('inside.py', 'Client.java'):
            shutil.copy(os.path.join(HERE, file), checkout)
        if os.path.exists(base + '/client'):
            shutil.copy(base + '/client', checkout)
        os.mkdir(self.folder + '/certificates')
        ca, leaf, key = make_certificates(self.folder + '/certificates', NAME)
        self.upstream = Upstream(leaf, key)
        ports = {name: getattr(self.upstream, name) for name in ('http', 'https', 'raw')}
        with open(self.folder + '/policy.yml', 'w') as file:
            file.write(policy.format(**ports))
        done = subprocess.run(
            [*before, os.environ['CAPTURE_TEST_BIN'], 'run', '--workdir', checkout, '--report-dir', report,
             '--policy', self.folder + '/policy.yml', '--ca-file', ca, '--', PYTHON, 'inside.py',
             *(str(port) for port in ports.values()), *words],
            cwd=self.folder, capture_output=True, text=True, errors='replace', timeout=600,
            env={'PATH': os.environ['PATH'], 'HOME': self.folder})
        assert done.returncode == 0, done.stderr + done.stdout
        self.results = dict(json.loads(line) for line in done.stdout.splitlines() if line[:1] == '[')
        with open(report + '/run.json') as file:
            self.record = json.load(file)
        with open(report + '/events.log') as file:
            self.log = file.read()
        with open(report + '/events.ocsf.jsonl') as file:
            self.events = [json.loads(line) for line in file]

    def controls(self):
        return {control['name']: control for control in self.record['isolation']['controls']}


class Capture(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.run_inside = Run(os.environ['CAPTURE_TEST_BASE'], f'run-{os.geteuid()}')

    def answer(self, name):
        if name not in self.run_inside.results:
            self.skipTest(f'{name.split()[0]}: this program is not installed')
        return self.run_inside.results[name]['answer']

    def heard(self, name):
        self.assertIn('heard', str(self.answer(name)), name)

    def refused(self, name, answer, record):
        self.assertEqual(self.answer(name), answer, name)
        self.quick(name)
        self.recorded(name, record)

    def quick(self, name):
        self.assertLess(self.run_inside.results[name]['seconds'], SECONDS_MAX, name)

    def recorded(self, name, *parts):
        for line in self.run_inside.log.splitlines():
            if ' DENIED ' in line and all(part in line for part in parts):
                return
        self.fail(f'{name}: no record of {parts} in\n{self.run_inside.log}')

    def test_everything_is_captured_on_this_host(self):
        self.assertEqual(self.run_inside.controls()['capture']['state'], 'enforced')

    def test_plain_sockets_and_tls_reach_an_allowed_name(self):
        for name in ('plain socket', 'tls', 'tls without a name', 'tls that is not inspected',
                     'tls through the proxy'):
            self.heard(name)
        self.assertIn('welcome\nyou said hello', self.answer('raw protocol'))
        port = self.run_inside.upstream.raw
        self.assertIn(f'-> {NAME}:{port} [policy:web engine:opa] [msg:TCP allowed {NAME}:{port}]',
                      self.run_inside.log)

    def test_loopback_inside_is_not_captured(self):
        self.heard('own loopback')

    def test_names_the_policy_covers_have_synthetic_addresses(self):
        for name in ('resolve', 'resolve wildcard'):
            self.assertRegex(self.answer(name), r'^198\.1[89]\.', name)
        address = self.answer('resolve')
        for name in ('another resolver', 'another resolver over tcp', 'another resolver over v6'):
            self.assertEqual(self.answer(name), [0, 1, address], name)
        self.assertEqual(self.answer('aaaa'), [0, 0, ''])
        self.assertEqual(self.answer('txt'), [0, 0, ''])
        self.assertEqual(self.answer('srv'), [3, 0, ''])

    def test_other_names_do_not_exist(self):
        for name, asked in (('name of nobody', 'example.com:53/udp'), ('doh', 'dns.google:53/udp')):
            self.refused(name, 'no such name', asked)
        self.assertEqual(self.answer('tunnel in names'), [3, 0, ''])
        self.recorded('tunnel in names', 'c2vjcmv0.tunnel.example.net', 'engine:dns')

    def test_odd_questions_are_answered_with_no_address_and_no_surprise(self):
        answers = self.answer('odd questions')
        self.assertIsInstance(answers, dict)
        for name in ('an answer', 'half a header', 'nine kilobytes'):
            self.assertIsNone(answers.pop(name), name)
        for name, (code, count, size) in answers.items():
            self.assertEqual(count, 0, name)
            self.assertLess(size, 300, name)
            wanted = (0, 3, 4, 5) if name.startswith(('type', 'another class', 'a dot', 'a zero')) else (1, 4)
            self.assertIn(code, wanted, name)
        self.assertGreater(len(answers), 25)
        self.assertEqual(self.answer('pipelined questions'), [2, 0, 0, 0])

    def test_requests_are_judged_as_through_the_proxy(self):
        self.assertIn('403', self.answer('denied method'))
        self.recorded('denied method', 'HTTP:DELETE', NAME)
        self.assertFalse([line for line in self.run_inside.upstream.requests if 'DELETE' in line])

    def test_a_declared_name_on_another_port_is_refused(self):
        self.refused('wrong port', 'ECONNRESET', 'transparent_tcp_port_mismatch')

    def test_addresses_are_judged_as_addresses(self):
        for name, address in (('raw address of a declared name', '192.0.2.10:443'),
                              ('address of nobody', '203.0.113.7:80'),
                              ('metadata', '169.254.169.254:80'), ('private address', '10.0.0.1:443'),
                              ('v6 address', '[2001:db8::1]:443'),
                              ('v4 inside v6', '203.0.113.8:443'),
                              ('from an address of its own', '203.0.113.9:443')):
            self.refused(name, 'ECONNREFUSED', address)

    def test_an_address_of_no_endpoint_is_refused_at_connect_and_recorded_once(self):
        program = os.path.realpath(PYTHON)
        for name, host in (('connect', '203.0.113.21'), ('connect over v6', '2001:db8::21'),
                           ('connect to v4 inside v6', '203.0.113.22'),
                           ('connect without waiting', '203.0.113.23')):
            self.refused(name, 'ECONNREFUSED', f'{program}(')
            records = [event for event in self.run_inside.events
                       if event['class_uid'] == 4001 and event['unmapped']['host'] == host]
            self.assertEqual([(event['action'], event['actor']['process']['name'], event['dst_endpoint']['port'],
                               event['firewall_rule']['type'], event['message'][:10]) for event in records],
                             [('Denied', program, 443, 'opa', 'TCP denied')], name)
            denials = [(line['binary'], line['port'], line['count'])
                       for line in self.run_inside.record['denials'] if line['host'] == host]
            self.assertEqual(denials, [(program, 443, 1)], name)

    def test_what_may_be_let_through_or_is_answered_connects(self):
        for name in ('connect to an endpoint', 'connect to a name server', 'connect a datagram socket'):
            self.assertEqual(self.answer(name), 'connected', name)
        self.recorded('connect to an endpoint', '192.0.2.30:6443')

    def test_an_address_that_changes_during_the_call_is_refused_in_either_place(self):
        self.assertLessEqual(set(self.answer('changed address')), {'ECONNREFUSED', 'ECONNRESET'})

    def test_addresses_that_stand_for_no_name_are_refused(self):
        self.refused('synthetic address of no name', 'ECONNRESET', '198.19.200.200:443')
        self.refused('v6 synthetic address', 'ECONNRESET', '[fd23:6f70:656e::1]:443')
        self.refused('the listener itself', 'ECONNRESET', '127.0.0.1:15001')

    def test_tls_for_another_name_is_refused(self):
        asks = 'TLS server name example.com on a connection to '
        self.refused('other name in tls', 'ECONNRESET', asks + NAME)
        self.refused('other name in tls that is not inspected', 'ECONNRESET',
                     asks + 'host.docker.internal')
        self.refused('other name in tls through the proxy', 'ssl error', asks + NAME)

    def test_a_flood_of_names_does_not_fill_the_records(self):
        self.assertEqual(self.answer('flood of names'), 'asked')
        recorded = self.run_inside.log.count('DENIED flood')
        self.assertGreater(recorded, 0)
        self.assertLess(recorded, 60)

    def test_nothing_but_tcp_leaves(self):
        for name, record in (('udp', '203.0.113.10:443/udp'), ('udp unconnected', '203.0.113.11:443/udp'),
                             ('udp v6', '[2001:db8::2]:443/udp'),
                             ('udp multicast', '224.0.0.251:5353/udp')):
            self.refused(name, 'EPERM', record)
        self.recorded('udp', 'policy:bypass-detect')
        self.assertEqual(self.answer('raw socket'), 'EPERM')

    def test_multipath_tcp_is_tcp(self):
        if self.answer('mptcp') not in ('EPROTONOSUPPORT', 'ENOPROTOOPT'):  # Not in every kernel.
            self.refused('mptcp', 'ECONNREFUSED', '203.0.113.20:443')

    def test_loopback_of_the_host_is_not_reached(self):
        self.assertEqual(self.answer('host loopback'), 'ECONNREFUSED')
        self.quick('host loopback')

    def test_curl_without_proxy(self):
        self.heard('curl')
        self.heard('curl over tls')
        for name in ('curl to nobody', 'curl to an address', 'curl -6', 'curl through a direct proxy'):
            self.assertNotEqual(self.answer(name)[0], 0, name)
            self.quick(name)
        self.recorded('curl to an address', '203.0.113.12:443')
        self.recorded('curl through a direct proxy', '203.0.113.13:8080')

    def test_bash(self):
        self.assertIn('Connection refused', self.answer('bash')[1])
        self.recorded('bash', '203.0.113.26:443', 'bash(')

    def test_dig(self):
        for name in ('dig', 'dig another server'):
            self.assertRegex(self.answer(name)[1], r'^198\.1[89]\.', name)
        self.assertIn('NXDOMAIN', self.answer('dig nobody')[1])

    def test_getent(self):
        self.assertIn('198.18.', self.answer('getent')[1])
        self.assertNotEqual(self.answer('getent nobody')[0], 0)
        self.quick('getent nobody')

    def test_other_programs_fail_at_once(self):
        for name in ('wget to nobody', 'ssh nobody', 'nc'):
            if name in self.run_inside.results:
                self.assertNotEqual(self.answer(name)[0], 0, name)
                self.quick(name)

    def test_ping_fails_at_once(self):
        self.assertNotEqual(self.answer('ping')[0], 0)
        self.quick('ping')
        self.recorded('ping', '203.0.113.14', '/icmp')

    def nothing_heard(self, name):
        self.assertNotIn('heard', str(self.answer(name)), name)
        self.assertNotEqual(self.answer(name)[0], 0, name)
        self.quick(name)

    def test_node_fetch(self):
        self.heard('node')
        self.nothing_heard('node to nobody')

    def test_go(self):
        self.heard('go')
        self.nothing_heard('go to nobody')

    def test_java(self):
        self.heard('java')
        self.assertRegex(self.answer('java')[1], 'failed: ConnectException')

    def test_without_a_network_everything_fails_at_once(self):
        """N37."""
        run = Run(os.environ['CAPTURE_TEST_BASE'], f'off-{os.geteuid()}', words=['off'], policy='version: 1\n')
        self.assertEqual(run.results.pop('true')['answer'][0], 0)
        self.assertIn('heard', run.results.pop('own loopback')['answer'])
        self.assertGreaterEqual(len(run.results), 3)
        for name, result in run.results.items():
            self.assertNotEqual(result['answer'][0], 0, name)
            self.assertLess(result['seconds'], SECONDS_MAX, name)

    def test_a_kernel_without_nf_tables_captures_the_ports_of_the_policy(self):
        run = Run(os.environ['CAPTURE_TEST_BASE'], f'ports-{os.geteuid()}',
                  before=[PYTHON, '-c', WITHOUT_NF_TABLES], words=['few'])
        capture = run.controls()['capture']
        self.assertEqual(capture['state'], 'emulated')
        self.assertIn('nf_tables', capture['note'])
        for name in ('plain socket', 'tls', 'own loopback'):
            self.assertIn('heard', run.results[name]['answer'], name)
        self.assertIn('you said hello', run.results['raw protocol']['answer'])
        self.assertEqual(run.results['raw address of a declared name']['answer'], 'ECONNREFUSED')
        self.assertIn('192.0.2.10:443', run.log)
        for name in ('wrong port', 'udp'):  # Nobody listens there.
            self.assertEqual(run.results[name]['answer'], 'ECONNREFUSED', name)
            self.assertLess(run.results[name]['seconds'], SECONDS_MAX)


class Silence(unittest.TestCase):
    def test_the_gateway_and_the_kernel_leave_no_records_of_their_own(self):
        base = os.path.join(os.environ['CAPTURE_TEST_BASE'], 'silence')
        os.makedirs(base + '/checkout')
        with open(base + '/policy.yml', 'w') as file:
            file.write(POLICY.format(http=8080, https=8443, raw=5432))
        done = subprocess.run(
            [os.environ['CAPTURE_TEST_BIN'], 'run', '--workdir', base + '/checkout', '--report-dir', base + '/report',
             '--policy', base + '/policy.yml', '--', '/bin/sh', '-c', 'sleep 2'],
            capture_output=True, text=True, timeout=600, env={'PATH': os.environ['PATH'], 'HOME': base})
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(base + '/report/events.ocsf.jsonl') as file:
            self.assertEqual(file.read(), '')


def build_client(base):
    """The Go program, where there is a compiler for it."""
    compiler = shutil.which('go')
    if compiler is None:
        return None
    environment = dict(os.environ, CGO_ENABLED='0', GOFLAGS='-mod=mod', GOPROXY='off', GOTOOLCHAIN='local')
    return subprocess.Popen([compiler, 'build', '-o', base + '/client', HERE + '/client.go'],
                            env=environment, cwd=base, stdout=subprocess.DEVNULL)


def main():
    base = tempfile.mkdtemp(prefix='capture-test-')
    try:
        os.chmod(base, 0o755)
        for name in ('bin', 'root', 'user', 'tests'):
            os.mkdir(f'{base}/{name}')
        # The repository may lie where an ordinary user cannot go.
        shutil.copy(sys.argv[1], base + '/bin/agentic-ci')
        for name in os.listdir(HERE):
            if os.path.isfile(os.path.join(HERE, name)):
                shutil.copy(os.path.join(HERE, name), base + '/tests')
        os.chown(base + '/user', USER, USER) if os.geteuid() == 0 else None
        compiling = build_client(base)
        if compiling:
            compiling.wait()
        failed = 0
        if os.geteuid() != 0:
            print('# SKIP root: the cases run as this user only')
        for identity in ('root', 'user') if os.geteuid() == 0 else ('user',):
            print(f'-- as {identity}', flush=True)
            place = f'{base}/{identity}'
            if os.path.exists(base + '/client'):
                shutil.copy(base + '/client', place)
            line = [PYTHON, base + '/tests/capture_test.py', '--cases', *sys.argv[2:]]
            if identity == 'user' and os.geteuid() == 0:
                line = ['setpriv', f'--reuid={USER}', f'--regid={USER}', '--clear-groups', *line]
            environment = dict(os.environ, CAPTURE_TEST_BASE=place, PYTHONDONTWRITEBYTECODE='1',
                               CAPTURE_TEST_BIN=base + '/bin/agentic-ci')
            failed += subprocess.run(line, env=environment, cwd=place).returncode != 0
        return 1 if failed else 0
    finally:
        subprocess.run(['rm', '-rf', base])


if __name__ == '__main__':
    if sys.argv[1] == '--cases':
        unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
    sys.exit(main())
