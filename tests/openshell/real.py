# SPDX-License-Identifier: Apache-2.0
"""The real OpenShell for the suites beside this file: its programs, podman's images for it, a server to ask."""
import http.server
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

IMAGE = 'localhost/openshell-sandbox:dev'
PROGRAMS = ['podman', 'runc', 'ip', 'nft', 'iptables', 'ssh', 'zstd', 'tar']
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


def needs(testbed):
    """Why OpenShell cannot run here; nothing if it can."""
    if os.geteuid() != 0:
        return 'its gateway needs root here'
    missing = [name for name in PROGRAMS if not shutil.which(name)]
    if not any(os.path.exists(path) for path in NETAVARK):
        missing.append('netavark')
    if missing:
        return f'not installed: {", ".join(missing)}'
    return '' if list(pathlib.Path(testbed).glob('openshell-*.tar.zst')) else f'no build of OpenShell in {testbed}'


class Server:
    """Where the policy lets requests go: answers, and keeps what they carried."""

    def __enter__(self):
        seen, headers, bodies = self.seen, self.headers, self.bodies = [], [], {}

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                seen.append((self.path, self.headers.get('X-Token', self.headers.get('Authorization'))))
                headers.append(self.headers)
                self.send_response(200)
                self.send_header('Content-Length', '5')
                self.end_headers()
                self.wfile.write(b'hello')

            def do_POST(self):
                """A model or a collector, as far as its answer is not read; the last body of each path stays."""
                bodies[self.path] = self.rfile.read(int(self.headers['Content-Length']))
                seen.append((self.path, self.headers.get('Authorization')))
                self.send_response(200)
                self.send_header('Content-Length', '2')
                self.end_headers()
                self.wfile.write(b'{}')

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
    """OpenShell's programs, and a store of podman's own with the sandbox's image. `more`: files for it, by path."""

    def __init__(self, testbed, cache, base, more=None):
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
        if more:
            with tarfile.open(rootfs, 'a') as tar:
                for name, path in more.items():
                    tar.add(os.path.realpath(path), name)
        self.podman('import', '-c', 'USER sandbox', '-c', 'WORKDIR /sandbox', rootfs, IMAGE)
        os.unlink(rootfs)

    def podman(self, *arguments):
        return subprocess.run(['podman', *arguments], env={**os.environ, **self.variables}, check=True, capture_output=True,
                              text=True, timeout=600).stdout

    def remove(self):
        subprocess.run(['umount', '-l', self.base + '/store/overlay'], capture_output=True)
        shutil.rmtree(self.base, ignore_errors=True)


class Case(unittest.TestCase):
    """Runs of agentic-ci in a directory of its own, of which nothing may be left."""
    BIN = ''
    INSTALLED = None
    NAME = 'openshell'
    OPTIONS = ('--image', IMAGE)
    HOST_ADDRESSES = {'allowed_ips': ['10.0.0.0/8']}  # Of host.openshell.internal.

    def program(self, denied):
        """The name of the program that was refused, as far as the records of the backend have it."""
        return denied['binary'].rsplit('/', 1)[-1]

    def setUp(self):
        self.base = tempfile.mkdtemp(prefix='backend-')
        self.addCleanup(shutil.rmtree, self.base, ignore_errors=True)
        self.env = {'PATH': os.environ['PATH'], 'HOME': self.base, 'TMPDIR': self.base, 'XDG_RUNTIME_DIR': self.base,
                    'BACKEND_MARKER': self.base}
        if self.INSTALLED:
            self.env |= self.INSTALLED.variables | {'PATH': self.INSTALLED.programs + ':' + os.environ['PATH']}
        self.server = Server().__enter__()
        self.addCleanup(self.server.__exit__)
        self.policy = self.base + '/policy.json'
        self.write_policy(self.server.port)
        self.work = self.checkout('work')

    def write_policy(self, port, access='read-only'):
        pathlib.Path(self.policy).write_text(json.dumps({'version': 1, 'network_policies': {'host': {
            'endpoints': [{'host': 'host.openshell.internal', 'port': port, 'protocol': 'rest', 'access': access} | self.HOST_ADDRESSES],
            'binaries': [{'path': '/**'}]}}}))

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
        return subprocess.Popen([self.BIN, *words], cwd=cwd or self.work, env=self.env | env, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def end(self, process, expect):
        output, errors = process.communicate(timeout=600)
        self.assertEqual(process.returncode, expect, output + errors)
        return output, errors

    def call(self, *words, expect=0, **env):
        return self.end(self.start(*words, **env), expect)[0]

    def options(self, report):
        return ['--backend', self.NAME, *self.OPTIONS, '--policy', self.policy, '--report-dir', f'{self.base}/{report}']

    def record(self, report):
        return json.loads(read(f'{self.base}/{report}/run.json'))

    def controls(self, report):
        return {one['name']: one['state'] for one in self.record(report)['isolation']['controls']}

    def url(self, path):
        return f'http://host.openshell.internal:{self.server.port}{path}'

    def openshell_that(self, script):
        """A PATH whose `openshell` is the real one behind this script; `no` fails as if the gateway were not there."""
        place = pathlib.Path(self.base, 'wrapper')
        place.mkdir(exist_ok=True)
        real = self.INSTALLED.programs + '/openshell'
        (place / 'openshell').write_text("#!/bin/sh\nno() { echo 'Error: transport error' >&2; exit 1; }\n"
                                         f'real() {{ {real} "$@"; }}\n{script}\nexec {real} "$@"\n')
        (place / 'openshell').chmod(0o755)
        return f'{place}:{self.env["PATH"]}'

    def states(self):
        return list(pathlib.Path(self.base, 'agentic-ci/.openshell').glob('aci-*'))

    def state(self):
        states = self.states()
        self.assertEqual(len(states), 1)
        return states[0]

    def bridge(self, state):
        """The name of the bridge of the run with this state; empty: there is none."""
        name = state.name.replace('-', '')
        return name if os.path.exists('/sys/class/net/' + name) else ''

    def gateway(self):
        """The pid of the gateway that the case started."""
        found = [int(p.name) for p in pathlib.Path('/proc').glob('[0-9]*')
                 if self.runs(p) and read(p / 'cmdline').startswith(self.INSTALLED.programs + '/openshell-gateway')]
        self.assertEqual(len(found), 1)
        return found[0]


def main(arguments, more=None, installed=Installed):
    """Runs the suite that was started with BINARY TESTBED CACHE [unittest arguments]."""
    Case.BIN, testbed, cache = (os.path.abspath(path) for path in arguments[1:4])
    os.environ['PATH'] += ':/usr/sbin:/sbin'
    why = needs(testbed)
    loader = unittest.TestLoader()
    loader.loadTestsFromNames([name for name in arguments[4:] if not name.startswith('-')], sys.modules['__main__'])
    base = tempfile.mkdtemp(prefix='backend-openshell-')
    try:
        if why:
            print(f'# SKIP testbed: the real OpenShell: {why}')
        elif not loader.errors:  # A name that is unknown: unittest says so without it.
            Case.INSTALLED = installed(testbed, cache, base, more)
        unittest.main(argv=[arguments[0], *arguments[4:]], verbosity=2)
    finally:
        if Case.INSTALLED:
            Case.INSTALLED.remove()
        shutil.rmtree(base, ignore_errors=True)
