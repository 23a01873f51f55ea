#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Both backends hold what the interface promises: agentic-ci's own sandbox and the real OpenShell.

usage: backend_test.py BINARY TESTBED CACHE [unittest arguments]
"""
import http.server
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

BIN = ''
IMAGE = 'localhost/openshell-sandbox:dev'
PROGRAMS = ('podman', 'runc', 'ip', 'nft', 'iptables', 'ssh', 'zstd', 'tar')
NETAVARK = ('/usr/lib/podman/netavark', '/usr/libexec/podman/netavark')
GIT = ['git', '-c', 'user.name=t', '-c', 'user.email=t@localhost', '-c', 'init.defaultBranch=main']
SECRET = 'sekret-2f7fb65591ee'
# Until nothing of a case may be alive. Podman's own cleanup of a container that was killed takes a second on an idle machine.
GONE_SECONDS = 120


def read(path):
    with open(path, errors='replace') as file:
        return file.read()


def wait_until(condition, seconds=120.0):
    end = time.monotonic() + seconds
    while time.monotonic() < end and not condition():
        time.sleep(0.02)
    return condition()


def needs():
    """Why OpenShell cannot run here; nothing if it can."""
    if os.geteuid() != 0:
        return 'its gateway needs root here'
    missing = [name for name in PROGRAMS if not shutil.which(name)]
    if not any(os.path.exists(path) for path in NETAVARK):
        missing.append('netavark')
    return f'not installed: {", ".join(missing)}' if missing else ''


class Server:
    """Where the policy lets requests go: answers, and keeps what they carried."""

    def __enter__(self):
        seen = self.seen = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                seen.append((self.path, self.headers.get('X-Token')))
                self.send_response(200)
                self.send_header('Content-Length', '5')
                self.end_headers()
                self.wfile.write(b'hello')

            def log_message(self, *arguments):
                pass

        self.server = http.server.ThreadingHTTPServer(('0.0.0.0', 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *unused):
        self.server.shutdown()
        self.server.server_close()


class Installed:
    """OpenShell's programs, and a store of podman's own with the sandbox's image."""

    def __init__(self, testbed, cache, base):
        from differential_test import harness
        self.programs = str(harness(testbed, cache).parent)
        self.base = base
        self.variables = {'CONTAINERS_CONF': base + '/containers.conf', 'CONTAINERS_STORAGE_CONF': base + '/storage.conf'}
        pathlib.Path(base, 'storage.conf').write_text(
            f'[storage]\ndriver = "overlay"\ngraphroot = "{base}/store"\nrunroot = "{base}/runroot"\n')
        # The supervisor sets its own filters; no timers, no journal.
        pathlib.Path(base, 'containers.conf').write_text(
            '[containers]\ndefault_ulimits = ["nproc=1000:1000", "nofile=1000:1000"]\nseccomp_profile = "unconfined"\n'
            'apparmor_profile = "unconfined"\nlog_driver = "k8s-file"\n[engine]\nruntime = "runc"\n'
            f'cgroup_manager = "cgroupfs"\nevents_logger = "file"\ntmp_dir = "{base}/tmp"\n')
        rootfs = base + '/rootfs.tar'
        subprocess.run([sys.executable, testbed + '/mkrootfs.py', rootfs], check=True, capture_output=True)
        self.podman('import', '-c', 'USER sandbox', '-c', 'WORKDIR /sandbox', rootfs, IMAGE)
        os.unlink(rootfs)

    def podman(self, *arguments):
        return subprocess.run(['podman', *arguments], env={**os.environ, **self.variables}, check=True, capture_output=True,
                              text=True, timeout=600).stdout

    def remove(self):
        subprocess.run(['umount', '-l', self.base + '/store/overlay'], capture_output=True)
        shutil.rmtree(self.base, ignore_errors=True)


INSTALLED = None


class Backend(unittest.TestCase):
    """What holds of every backend. Those that cannot are not here but in a class of their own."""
    NAME = 'native'
    OPTIONS = ()

    def setUp(self):
        self.base = tempfile.mkdtemp(prefix='backend-')
        self.addCleanup(shutil.rmtree, self.base, ignore_errors=True)
        self.env = {'PATH': os.environ['PATH'], 'HOME': self.base, 'TMPDIR': self.base, 'XDG_RUNTIME_DIR': self.base,
                    'BACKEND_MARKER': self.base}
        if INSTALLED:
            self.env |= INSTALLED.variables | {'PATH': INSTALLED.programs + ':' + os.environ['PATH']}
        self.server = Server().__enter__()
        self.addCleanup(self.server.__exit__)
        self.policy = self.base + '/policy.json'
        pathlib.Path(self.policy).write_text(json.dumps({'version': 1, 'network_policies': {'host': {
            'endpoints': [{'host': 'host.openshell.internal', 'port': self.server.port, 'protocol': 'rest', 'access': 'read-only',
                           'allowed_ips': ['10.0.0.0/8']}],
            'binaries': [{'path': '/**'}]}}}))
        self.work = self.checkout('work')

    def tearDown(self):
        # Nothing is left of what the case started.
        left = [path for path in pathlib.Path('/proc').glob('[0-9]*') if self.runs(path)]
        wait_until(lambda: not any(self.runs(path) for path in left), GONE_SECONDS)
        self.assertEqual([self.command_line(path) for path in left if self.runs(path)], [])
        place = pathlib.Path(self.base, 'agentic-ci')
        self.assertEqual([p for p in place.rglob('*') if p.name not in ('.lock', '.openshell')], [])

    def runs(self, process):
        try:
            return self.base in read(process / 'environ') and int(process.name) != os.getpid()
        except OSError:
            return False

    def command_line(self, process):
        try:
            return read(process / 'cmdline')
        except OSError:
            return 'ended meanwhile'

    def checkout(self, name):
        work = pathlib.Path(self.base, name)
        (work / 'd').mkdir(parents=True)
        (work / 'a.txt').write_text('alpha\n')
        (work / 'd/b.txt').write_text('beta\n')
        for words in (['init', '-q'], ['add', '-A'], ['commit', '-qm', 'first'],
                      ['config', 'http.https://forge.invalid/.extraheader', 'AUTHORIZATION: basic ' + SECRET]):
            subprocess.run([*GIT, *words], cwd=work, check=True, capture_output=True)
        return work

    def start(self, *words, cwd=None, **env):
        return subprocess.Popen([BIN, *words], cwd=cwd or self.work, env=self.env | env, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def call(self, *words, expect=0, **env):
        process = self.start(*words, **env)
        output, errors = process.communicate(timeout=600)
        self.assertEqual(process.returncode, expect, output + errors)
        return output

    def options(self, report):
        return ['--backend', self.NAME, *self.OPTIONS, '--policy', self.policy, '--report-dir', f'{self.base}/{report}']

    def record(self, report):
        return json.loads(read(f'{self.base}/{report}/run.json'))

    def controls(self, report):
        return {one['name']: one['state'] for one in self.record(report)['isolation']['controls']}

    def url(self, path):
        return f'http://host.openshell.internal:{self.server.port}{path}'

    def test_run(self):
        """Output, status, policy, denials, credentials and changes of one run."""
        script = (f'curl -sS -m 20 {self.url("/allowed")}; echo; curl -sS -m 20 http://denied.invalid/x; cat .git/config; '
                  'echo new >n.txt; rm d/b.txt; mv a.txt z.txt; echo $TOKEN; exit 3')
        out = self.call('run', *self.options('r'), '--env', 'GREETING=two words', '--', 'sh', '-c', script, expect=3)
        self.assertIn('hello', out)
        self.assertNotIn(SECRET, out)
        record = self.record('r')
        self.assertEqual([(d['host'], d['binary'].rsplit('/', 1)[-1]) for d in record['denials']], [('denied.invalid', 'curl')])
        self.assertEqual([path for path, _ in self.server.seen], ['/allowed'])
        changes = json.loads(read(f'{self.base}/r/changes.json'))
        self.assertEqual({(c['state'], c['path']) for c in changes['files']},
                         {('created', 'n.txt'), ('deleted', 'd/b.txt'), ('renamed', 'z.txt')})
        self.assertEqual(read(self.work / 'a.txt'), 'alpha\n')

    def test_lasting(self):
        """The Python tool's way of working: setup, three commands in processes of their own, stop."""
        self.call('setup', *self.options('r'))
        self.call('exec', '--', 'sh', '-c', 'echo one >made.txt')
        self.assertEqual(self.call('exec', '--', 'cat', 'made.txt'), 'one\n')
        self.call('exec', '--', 'sh', '-c', 'exit 9', expect=9)
        self.call('exec', '--timeout', '1s', '--', 'sleep', '100', expect=124)
        listed = json.loads(self.call('sandbox', 'list', '--json'))['sandboxes']
        self.assertEqual([one['backend'] for one in listed], [self.NAME])
        name = listed[0]['name']
        self.call('run', '--sandbox', name, '--', 'sh', '-c', 'cat made.txt; echo two >>made.txt; curl -sS http://denied.invalid/')
        self.assertIn('+two', self.call('sandbox', 'diff', name))
        self.assertFalse((self.work / 'made.txt').exists())
        self.call('setup', *self.options('r2'), expect=64)  # The name is taken.
        self.call('stop', '--apply')
        self.assertEqual(read(self.work / 'made.txt'), 'one\ntwo\n')
        self.assertEqual([d['host'] for d in self.record('r')['denials']], ['denied.invalid'])
        self.call('exec', '--', 'true', expect=66)

    def test_two_at_once(self):
        runs = [self.start('run', *self.options(f'r{n}'), '--', 'sh', '-c', f'echo {n} >n.txt; sleep 1; cat n.txt',
                           cwd=self.checkout(f'work{n}')) for n in (1, 2)]
        for n, run in enumerate(runs, 1):
            output, errors = run.communicate(timeout=600)
            self.assertEqual((run.returncode, output), (0, f'{n}\n'), errors)

    def test_limits(self):
        self.call('run', *self.options('r'), '--timeout', '2s', '--', 'sh', '-c', 'echo kept >k.txt; sleep 100', expect=124)
        self.assertEqual(self.record('r')['changes']['files'], 1)


class OpenShell(Backend):
    NAME = 'openshell'
    OPTIONS = ('--image', IMAGE)

    @classmethod
    def setUpClass(cls):
        if not INSTALLED:
            raise unittest.SkipTest('testbed: OpenShell cannot run here')

    def state(self):
        states = list(pathlib.Path(self.base, 'agentic-ci/.openshell').glob('aci-*'))
        self.assertEqual(len(states), 1)
        return states[0]

    def gateway(self):
        """The pid of the gateway that the case started."""
        found = [int(p.name) for p in pathlib.Path('/proc').glob('[0-9]*')
                 if self.runs(p) and read(p / 'cmdline').startswith(INSTALLED.programs + '/openshell-gateway')]
        self.assertEqual(len(found), 1)
        return found[0]

    def test_credential(self):
        """The sandbox has a placeholder; the server gets the value. It is in no argument."""
        out = self.call('run', *self.options('r'), '--secret', 'TOKEN@host.openshell.internal', '--', 'sh', '-c',
                        f'echo $TOKEN; curl -sS -m 20 -H "X-Token: $TOKEN" {self.url("/t")}', TOKEN=SECRET)
        self.assertIn('openshell:resolve:env:', out)
        self.assertNotIn(SECRET, out)
        self.assertEqual(self.server.seen, [('/t', SECRET)])

    def test_port_taken_on_the_bridge(self):
        """Where the gateway can listen on loopback but not on its bridge, it gets another port."""
        for attempt in range(5):  # On a busy machine the gateway may have the port first.
            run = self.start('run', *self.options(f'r{attempt}'), '--', 'echo', 'fine')
            asked = pathlib.Path(self.base, 'agentic-ci/.openshell')
            self.assertTrue(wait_until(lambda: any('bind_address' in read(toml) for toml in asked.glob('aci-*/gateway.toml'))))
            state = self.state()
            port = int(re.search(r'bind_address = "127\.0\.0\.1:(\d+)"', read(state / 'gateway.toml'))[1])
            shown = json.loads(subprocess.run(['ip', '-j', 'addr', 'show', read(state / 'bridge')], check=True,
                                              capture_output=True).stdout)
            with socket.socket() as taken:
                try:
                    taken.bind((shown[0]['addr_info'][0]['local'], port))
                    taken.listen()
                except OSError:
                    taken = None
                output, errors = run.communicate(timeout=600)
            self.assertEqual((run.returncode, output), (0, 'fine\n'), errors)
            if taken:
                return
        self.fail('the port was never taken before the gateway had it')

    def test_gateway_lost(self):
        """Of a gateway that others run: its loss is 75, and the report has what came before."""
        self.call('setup', *self.options('own'))
        config = next(self.state().glob('config/openshell/gateways/*/metadata.json'))
        url = json.loads(read(config))['gateway_endpoint']
        remote = ['--gateway', url, '--gateway-tls', str(self.state() / 'pki')]
        work = self.checkout('remote')
        # The control: with the gateway there, the same ends well, and stops nothing that is not its own.
        self.call('run', *self.options('control'), *remote, '--workdir', str(work), '--secret', 'TOKEN@host.openshell.internal',
                  '--', 'echo', 'fine', TOKEN=SECRET)
        self.assertNotIn('removal', self.controls('control'))
        self.call('exec', '--', 'true')
        run = self.start('run', *self.options('r'), *remote, '--workdir', str(work), '--', 'sh', '-c', 'echo begun; sleep 100')
        self.assertEqual(run.stdout.readline(), 'begun\n')
        os.kill(self.gateway(), signal.SIGKILL)
        _, errors = run.communicate(timeout=600)
        self.assertEqual(run.returncode, 75, errors)
        self.assertEqual(self.record('r')['outcome']['kind'], 'gateway-lost')
        self.assertIn('begun', read(f'{self.base}/r/agent.log'))
        self.assertEqual(self.controls('r')['removal'], 'unavailable')
        # The one whose gateway it was has ended by itself.
        self.assertTrue(wait_until(lambda: os.path.exists(f'{self.base}/own/run.json')))
        self.assertEqual(self.record('own')['outcome']['exit_code'], 75)
        self.assertTrue(wait_until(lambda: not list(pathlib.Path(self.base, 'agentic-ci').glob('setup-*'))))

    def test_killed(self):
        """What a killed keeper leaves is gone after the next command."""
        self.call('setup', *self.options('r'))
        bridge = read(self.state() / 'bridge')
        self.assertTrue(os.path.exists('/sys/class/net/' + bridge))
        keeper = json.loads(self.call('sandbox', 'list', '--json'))['sandboxes'][0]['pid']
        os.kill(keeper, signal.SIGKILL)
        self.assertTrue(wait_until(lambda: not os.path.exists(f'/proc/{keeper}')))
        self.assertEqual(self.call('sandbox', 'list'), '')
        self.assertFalse(os.path.exists('/sys/class/net/' + bridge))
        self.assertEqual(INSTALLED.podman('ps', '-aq'), '')

    def test_refused(self):
        """What cannot be had is refused with the remedy, before anything starts."""
        for words, said in ((['--pids', '5'], 'cannot be enforced'), (['--max-tokens', '5'], 'cannot be enforced')):
            run = self.start('run', *self.options('r'), *words, '--', 'true')
            _, errors = run.communicate(timeout=600)
            self.assertEqual(run.returncode, 69, errors)
            self.assertIn(said, errors)
        other = pathlib.Path(self.base, 'bin')
        other.mkdir()
        (other / 'openshell').write_text('#!/bin/sh\necho openshell 0.1.2\n')
        (other / 'openshell').chmod(0o755)
        run = self.start('run', *self.options('r'), '--', 'true', PATH=f'{other}:{self.env["PATH"]}')
        _, errors = run.communicate(timeout=600)
        self.assertEqual(run.returncode, 69, errors)
        self.assertIn('OpenShell 0.1.2 is not supported', errors)
        self.assertIn('install OpenShell 0.0.112', errors)
        # Nor is what the configuration of the trusted commit demands left out in silence.
        config = pathlib.Path(self.work, '.agentic-ci/config.yml')
        config.parent.mkdir()
        config.write_text('images:\n  trust:\n    - repository: registry.invalid/**\n      key: key.pub\ntasks:\n'
                          '  checked:\n    command: ["true"]\n    checks: {run: ["true"]}\n'
                          '  limited:\n    command: ["true"]\n    limits: {pids: 5}\n')
        pathlib.Path(self.work, 'key.pub').write_bytes(subprocess.run(
            'openssl ecparam -genkey -name prime256v1 -noout | openssl ec -pubout', shell=True, check=True,
            capture_output=True).stdout)
        for words in (['add', '-A'], ['commit', '-qm', 'configuration']):
            subprocess.run([*GIT, *words], cwd=self.work, check=True, capture_output=True)
        for words, said in ((['--task', 'checked'], 'checks run in'), (['--task', 'limited'], '--pids cannot be enforced'),
                            (['--', 'true'], 'verifies none')):
            run = self.start('run', *self.options('r'), *words)
            _, errors = run.communicate(timeout=600)
            self.assertEqual(run.returncode, 69, errors)
            self.assertIn(said, errors)


def main():
    global BIN, INSTALLED
    BIN, testbed, cache = (os.path.abspath(path) for path in sys.argv[1:4])
    os.environ['PATH'] += ':/usr/sbin:/sbin'
    why = needs()
    if not why and not list(pathlib.Path(testbed).glob('openshell-*.tar.zst')):
        why = f'no build of OpenShell in {testbed}'
    base = tempfile.mkdtemp(prefix='backend-openshell-')
    try:
        if why:
            print(f'# SKIP testbed: the real OpenShell: {why}')
        else:
            INSTALLED = Installed(testbed, cache, base)
        unittest.main(argv=[sys.argv[0], *sys.argv[4:]], verbosity=2)
    finally:
        if INSTALLED:
            INSTALLED.remove()
        shutil.rmtree(base, ignore_errors=True)


if __name__ == '__main__':
    main()
