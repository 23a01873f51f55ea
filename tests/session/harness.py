# SPDX-License-Identifier: Apache-2.0
"""What the tests of lasting sandboxes share: a checkout, a sandbox in it, and a look at what is left."""
import contextlib
import glob
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

BIN = os.environ.get('SESSION_TEST_BIN', '')
GIT = ['git', '-c', 'user.name=t', '-c', 'user.email=t@localhost', '-c', 'init.defaultBranch=main']
CANARY = 'canary-1b7d90e4'
MARKER = 'session-marker-'
GROUPS = '/sys/fs/cgroup/**/agentic-ci-*'
GROUPS_BEFORE = set(glob.glob(GROUPS, recursive=True))  # Not pathlib's: containers go meanwhile.
BUSY_SECONDS = 120  # What a busy machine may add to any of this.


def only_root_in_namespaces(case):
    """For a case that only root can look at, and that is about namespaces."""
    case.only_root_in_namespaces = True
    return case


def only_root(case):
    """For a case that makes what only root can make."""
    case.only_root = True
    return case


def never_root(case):
    """For a case about what is kept from other processes of the user: root may read the memory of all."""
    case.never_root = True
    return case


def read(path):
    with open(path, errors='replace') as file:
        return file.read()


def wait_until(condition, seconds=120.0):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.01)
    return condition()


MARKER = 'session-marker-'


def processes(marker):
    """Pids, not of zombies, in whose environment `marker` is, or in whose command line the case's directory is: another user than
    root cannot read the environment of a keeper, which is closed to the user's other processes."""
    found = []
    for entry in filter(str.isdigit, os.listdir('/proc')):
        try:
            state = read(f'/proc/{entry}/stat').rsplit(')', 1)[1].split()[0]
            marked = marker.removeprefix(MARKER) in read(f'/proc/{entry}/cmdline')
            with contextlib.suppress(PermissionError):
                marked = marked or marker in read(f'/proc/{entry}/environ')
        except OSError:
            continue
        if state != 'Z' and int(entry) != os.getpid() and marked:
            found.append(int(entry))
    return found


def processes_in(group):
    """Pids in a control group; none where it is removed meanwhile."""
    try:
        return read(group + '/cgroup.procs').split()
    except OSError:
        return []


def inode_of(path):
    try:
        return os.stat(path).st_ino
    except OSError:
        return None


def message_kind(name):
    """The first byte of messages of that kind, as the header (a copy beside the binary) numbers them."""
    with open(os.path.join(os.path.dirname(BIN), 'protocol.h'), encoding='utf-8') as header:
        kinds = re.search(r'enum class MessageKind : uint8_t {(.*?)};', header.read(), re.S).group(1)
    return bytes([re.findall(r'\bk[A-Z]\w*', re.sub(r'//.*', '', kinds)).index(name)])


class Case(unittest.TestCase):
    TIER = 'namespaces'

    def setUp(self):
        self.base = tempfile.mkdtemp(prefix='session-test-')
        self.addCleanup(shutil.rmtree, self.base, ignore_errors=True)
        os.chmod(self.base, 0o755)  # In tier landlock an agent of root's walks there as an ordinary user.
        self.scratch = os.path.join(self.base, 'tmp')
        self.work = os.path.join(self.base, 'work')
        for path in (self.scratch, self.work):
            os.mkdir(path)
        self.marker = MARKER + os.path.basename(self.base)
        self.env = {'PATH': '/usr/local/bin:/usr/bin:/bin', 'HOME': self.base, 'NO_COLOR': '1', 'TMPDIR': self.scratch,
                    'XDG_RUNTIME_DIR': self.scratch, 'SESSION_MARKER': self.marker}
        files = {'a.txt': 'alpha\n', 'b.txt': 'beta\n', 'dir/c.txt': 'gamma\n', 'dir/sub/d.txt': 'delta\n'}
        for name, text in files.items():
            path = pathlib.Path(self.work, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        for arguments in (['init', '-q'], ['add', '-A'], ['commit', '-qm', 'first']):
            subprocess.run([*GIT, *arguments], cwd=self.work, env=self.env, check=True, capture_output=True)
        self.report = os.path.join(self.base, 'report')
        self.tag = f'{os.getpid()}{random.randrange(10 ** 6)}'
        self.addCleanup(self.end)

    def tearDown(self):
        for name in self.names():
            self.call('sandbox', 'delete', name, '--json')
        # Whatever was killed: the next command of any kind clears up.
        self.assertEqual(self.names(), [])
        gone = wait_until(lambda: not processes(self.marker), BUSY_SECONDS)
        self.assertTrue(gone, [read(f'/proc/{pid}/cmdline') for pid in processes(self.marker)])
        place = os.path.join(self.scratch, 'agentic-ci')
        if os.path.isdir(place):
            self.assertEqual(os.listdir(place), ['.lock'])
        self.assertEqual([n for n in os.listdir(self.scratch) if n != 'agentic-ci'], [])
        self.assertFalse([line for line in read('/proc/self/mounts').splitlines() if self.base in line])

    def end(self):
        """What a failed case has left."""
        for pid in processes(self.marker):
            os.kill(pid, signal.SIGKILL)

    def nap(self, seconds):
        """A command that sleeps as no other run of this suite does."""
        return f'sleep {seconds}.{self.tag}'

    def napping(self, *seconds):
        return [pid for number in seconds for pid in processes(f'sleep\x00{number}.{self.tag}')]

    def cgroups(self):
        """The groups of runs that have begun since this suite has."""
        return [path for path in glob.glob(GROUPS, recursive=True) if path not in GROUPS_BEFORE]

    def call(self, *arguments, stdin='', env=None, seconds=600):
        return subprocess.run([BIN, *arguments], input=stdin, capture_output=True, text=True, cwd=self.base,
                              env=env or self.env, timeout=seconds, errors='replace')

    def names(self):
        listed = self.call('sandbox', 'list', '--json')
        self.assertEqual(listed.returncode, 0, listed.stderr)
        return [entry['name'] for entry in json.loads(listed.stdout)['sandboxes']]

    def create(self, *options, name='one'):
        done = self.call('sandbox', 'create', '--name', name, '--workdir', self.work, '--report-dir',
                         self.report, '--isolation', self.TIER, *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, name + '\n')
        return name

    def start(self, script, *options, name='one'):
        process = subprocess.Popen([BIN, 'sandbox', 'exec', name, *options], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.base,
                                   env=self.env)
        process.stdin.write(script)
        process.stdin.close()
        process.stdin = None
        return process

    def start_waiting(self, script):
        """Starts a command that waits before it runs `script`; returns it, and a function that ends the wait."""
        seconds = random.randrange(10 ** 4, 10 ** 6)
        process = self.start(f'{self.nap(seconds)}; {script}')

        def release():
            for pid in self.napping(seconds):
                os.kill(pid, signal.SIGKILL)
        self.assertTrue(wait_until(lambda: self.napping(seconds)))
        return process, release

    def script(self, text, *options, name='one'):
        """The result of a script, as --json has it."""
        done = self.call('sandbox', 'exec', name, '--json', *options, stdin=text)
        self.assertTrue(done.stdout, done.stderr)
        result = json.loads(done.stdout)
        result['exit'] = done.returncode
        return result

    def says(self, text, expected, **wanted):
        result = self.script(text)
        self.assertEqual(result['stdout'], expected, result)
        for key, value in wanted.items():
            self.assertEqual(result[key], value, result)
        return result

    def facts(self, name='one'):
        listed = json.loads(self.call('sandbox', 'list', '--json').stdout)['sandboxes']
        return next(entry for entry in listed if entry['name'] == name)

    def record(self):
        return json.loads(read(os.path.join(self.report, 'run.json')))
