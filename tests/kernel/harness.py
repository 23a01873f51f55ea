# SPDX-License-Identifier: Apache-2.0
"""What every kernel test needs: a checkout, runs of the binary, and a look at what they left behind."""
import glob
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import unittest


def read(path):
    with open(path, errors='replace') as file:
        return file.read()


BASE = os.environ.get('KERNEL_TEST_BASE', '')        # Scratch space of the whole test.
BIN = os.environ.get('KERNEL_TEST_BIN', '')          # A copy of the runner under a name of its own.
PROBE = os.environ.get('KERNEL_TEST_PROBE', '')
FIXTURES = os.environ.get('KERNEL_TEST_FIXTURES') == '1'  # Root made mounts for us.
TIER = os.environ.get('KERNEL_TEST_TIER', 'namespaces')  # What runs are asked for that do not ask themselves.
ROOT = os.geteuid() == 0
USER = 12345 + (TIER != 'namespaces')  # Of no account, and of this tier alone: limits count by user.
PLACE = '/srv/kernel-test-' + ('root' if ROOT else 'user')  # Ours, outside /tmp, with FIXTURES.
# Of this run of the tests alone, and on no command line of theirs: in tier landlock those of all processes can be read.
CANARY = 'canary-' + (read(BASE + '/mark') if BASE else '')
RUN_SECONDS = 600  # What takes longer hangs. Seen: 1 s where the machine is idle, 60 s where it is very busy.
GONE_SECONDS = 120  # Until nothing of a run may be alive; seen: 0.1 s where the machine is idle.

SCRATCH = BASE + '/scratch'  # Where runs make directories of their own.
PRIVATE = ('/tmp', '/var/tmp', '/dev/shm')  # Mounted for the suite alone, with FIXTURES.
GROUPS = '/sys/fs/cgroup/**/agentic-ci-{}'
GROUPS_BEFORE = set(glob.glob(GROUPS.format('*'), recursive=True)) if ROOT else set()  # Of other runs, some left for good.
os.environ['GIT_CONFIG_NOSYSTEM'] = '1'  # What is installed on this machine does not matter, such as git-lfs.
PLAIN_ENV = {'PATH': '/usr/local/bin:/usr/bin:/bin', 'GIT_CONFIG_NOSYSTEM': '1',
             'HOME': os.environ.get('HOME', '/nonexistent'), 'TMPDIR': SCRATCH}
GIT = ['git', '-c', 'user.name=t', '-c', 'user.email=t@localhost', '-c', 'init.defaultBranch=main']


def only_as(identity):
    """A case for 'root' or for 'user'. Where the suite runs as both, the other one leaves it out."""
    def mark(case):
        case.left_out = getattr(case, 'left_out', False) or (FIXTURES and identity != ('root' if ROOT else 'user'))
        return case
    return mark


def only_in(tier):
    """A case for one tier: 'namespaces' or 'landlock'."""
    def mark(case):
        case.left_out = getattr(case, 'left_out', False) or TIER != tier
        return case
    return mark


def git(directory, *arguments):
    done = subprocess.run([*GIT, *arguments], cwd=directory, env=PLAIN_ENV, check=True,
                          capture_output=True, text=True)
    return done.stdout.strip()


def write(path, text, mode=0o644):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'w') as file:
        file.write(text)
    os.chmod(path, mode)
    return path


def read_if_there(path):
    try:
        return read(path)
    except OSError:
        return ''


def read_process(pid, name):
    """/proc/PID/NAME; nothing of a process that has ended."""
    return read_if_there(f'/proc/{pid}/{name}')


def processes(match):
    """Pids whose name is the runner copy's, or whose command line holds `match`."""
    found = []
    for entry in os.listdir('/proc'):
        if not entry.isdigit():
            continue
        try:
            name = read(f'/proc/{entry}/comm').strip()
            line = read(f'/proc/{entry}/cmdline')
            state = read(f'/proc/{entry}/stat').rsplit(')', 1)[1].split()[0]
        except OSError:
            continue
        if state != 'Z' and int(entry) != os.getpid():
            if os.path.basename(BIN) in (name, os.path.basename(line.split('\0')[0])) or (
                    match and match in line):
                found.append(int(entry))
    return found


def wait_until(condition, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.01)
    return bool(condition())


class Run:
    """One run that is over."""

    def __init__(self, code, out, err, report):
        self.code, self.err, self.report = code, err, report
        self.out = out.decode(errors='replace')
        self.raw = out
        path = os.path.join(report, 'run.json')
        self.record = json.load(open(path)) if os.path.exists(path) else None

    @property
    def outcome(self):
        return self.record['outcome'] if self.record else {}

    def values(self):
        """The agent's lines of the form name=value."""
        return dict(line.split('=', 1) for line in self.out.splitlines() if '=' in line)


class Case(unittest.TestCase):
    """A test with a checkout of its own. What a run leaves behind fails it."""

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix='case-', dir=BASE)
        self.home = os.path.join(self.dir, 'home')
        os.mkdir(self.home)
        self.marker = 'marker' + os.path.basename(self.dir)
        self.supervisors = []
        self.reports = 0
        self.checkout = self.make_checkout(os.path.join(self.dir, 'checkout'))
        self.mounts = self.mounts_of_ours()
        self.files = self.files_of_ours()

    def tearDown(self):
        wait_until(lambda: not processes(self.marker), GONE_SECONDS)
        left = processes(self.marker)
        for pid in left:  # The next case is not to suffer for it.
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        self.assertEqual(left, [], 'processes are left')
        self.assertEqual(self.mounts_of_ours() - self.mounts, set(), 'mounts are left')
        self.assertEqual(self.cgroups(), [], 'cgroups are left')
        self.assertEqual(self.files_of_ours() - self.files, set(), 'files are left')
        subprocess.run(['chmod', '-R', 'u+rwX', self.dir], stderr=subprocess.DEVNULL)
        shutil.rmtree(self.dir, ignore_errors=True)

    def mounts_of_ours(self):
        """In a mount namespace of the test's own every mount is; elsewhere other processes make some, too."""
        return {line for line in read('/proc/self/mountinfo').splitlines() if FIXTURES or BASE in line}

    def files_of_ours(self):
        """What lies where runs make directories of their own. Where others do, too, only the place that runs are told."""
        places = [SCRATCH, *(PRIVATE if FIXTURES else ())]
        return {f'{place}/{name}' for place in places for name in os.listdir(place) if 'agentic-ci' in name}

    def cgroups(self):
        """What is left of this case's runs. The number of one that has ended may be another program's by now, and name its group."""
        if not ROOT:
            return []
        names = {pid: read_if_there(f'/proc/{pid}/cmdline') for pid in self.supervisors}
        return [path for pid, name in names.items() if not name or BIN in name
                for path in glob.glob(GROUPS.format(f'*-{pid}'), recursive=True) if path not in GROUPS_BEFORE]

    def sweep(self):
        """Starts a run, which removes the groups that killed supervisors left; it would leave one that is in use."""
        # A process that ends has no command line any more while it is still in its group.
        in_use = lambda: any(read_if_there(f'{group}/cgroup.procs') for group in self.cgroups())
        self.assertTrue(wait_until(lambda: not in_use(), GONE_SECONDS), self.cgroups())
        self.run_agent('true', options=['--cpus', '1'])
        self.assertEqual(self.cgroups(), [])

    def feature(self, name, present, reason):
        """Skips the case where this machine lacks `name`."""
        if not present:
            self.skipTest(f'{name}: {reason}')

    def make_checkout(self, path):
        os.makedirs(path)
        write(os.path.join(path, 'README.md'), 'hello\n')
        git(path, 'init', '-q')
        git(path, 'add', '.')
        git(path, 'commit', '-qm', 'first')
        return path

    def policy(self, text):
        return write(os.path.join(self.dir, 'policy.yml'), text)

    def command(self, command, options=(), checkout=None, report=None):
        self.reports += 1
        report = report or os.path.join(self.dir, f'report-{self.reports}')
        tier = [] if '--isolation' in options else ['--isolation', TIER]
        line = [BIN, 'run', '--workdir', checkout or self.checkout, '--report-dir', report, *tier, *options]
        return (line + ['--', *command] if command else line), report

    def start(self, command, options=(), env=None, checkout=None, report=None, **popen):
        """A run that goes on; `finish` waits for it."""
        line, report = self.command(command, options, checkout, report)
        popen.setdefault('stdin', subprocess.DEVNULL)
        popen.setdefault('stdout', subprocess.PIPE)
        process = subprocess.Popen(line, env=dict(PLAIN_ENV, HOME=self.home, **(env or {})),
                                   cwd=popen.pop('cwd', self.dir), stderr=subprocess.PIPE, **popen)
        process.report = report
        self.supervisors.append(process.pid)
        return process

    def finish(self, process, seconds=RUN_SECONDS):
        try:
            out, err = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            self.fail(f'still running after {seconds} s: {process.args}')
        return Run(process.returncode, out or b'', err.decode(errors='replace'), process.report)

    def run_agent(self, *command, code=0, kind=None, **more):
        """Runs to the end; asserts the exit code and, where given, the recorded outcome."""
        run = self.finish(self.start(command, **more))
        self.assertEqual(run.code, code, f'{run.err}\n{run.out[-2000:]}')
        if kind is not None:
            self.assertIsNotNone(run.record, f'no run.json\n{run.err}')
            self.assertEqual(run.outcome['kind'], kind)
            self.assertEqual(run.outcome['exit_code'], code)
        return run

    def shell(self, script, **more):
        return self.run_agent('sh', '-c', script, **more)

    def outside(self, script, **more):
        """The control: the same, without the sandbox."""
        done = subprocess.run(['sh', '-c', script], cwd=self.checkout, capture_output=True,
                              env=dict(PLAIN_ENV, HOME=self.home), text=True, errors='replace',
                              timeout=RUN_SECONDS, **more)
        return done.stdout

    def started_agent(self, script, **more):
        """A run whose agent has begun (the marker is on its command line)."""
        process = self.start(['sh', '-c', script, self.marker], **more)
        if not wait_until(lambda: self.agents(), GONE_SECONDS):
            process.kill()
            self.fail('the agent did not start: ' + process.communicate()[1].decode())
        return process

    def waiting_agent(self, **more):
        """A run whose agent goes on until it is released, and then prints `end`."""
        process = self.started_agent('trap "echo end; exit 0" USR1; echo ready; while :; do sleep 0.1; done; : "$0"', **more)
        self.assertEqual(process.stdout.readline(), b'ready\n')
        return process

    def release(self):
        for pid in self.agents():
            os.kill(pid, signal.SIGUSR1)

    def agents(self):
        """Pids on the host of processes in the sandbox that carry the marker."""
        found = []
        for pid in processes(self.marker):
            try:
                # A process of the runner has no command line of its own, or for a moment none at all.
                line = read(f'/proc/{pid}/cmdline')
                if self.marker not in line or BIN in line:
                    continue
                if TIER == 'landlock':
                    found.append(pid)
                    continue
                ids = [line for line in read(f'/proc/{pid}/status').splitlines() if 'NSpid' in line]
                if len(ids[0].split()) > 2 and ids[0].split()[2] != '1':  # The first is ours.
                    found.append(pid)
            except (OSError, IndexError):
                pass
        return found
