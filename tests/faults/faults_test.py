#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails the system calls of a launch, one in each run: the agent is contained or it does not start.

faults_test.py RUNNER [SYSTEM-CALL...]

strace injects the failures, so what is tested is the binary that is shipped. `when=N` counts in each
process by itself: the Nth call of the supervisor, of the gateway, of the sandbox's first process and of
the agent before and after its execve fail in the same run. After each: the run has ended, an agent
that ran had no rights and no way out, a run that did not start said so, and nothing is left.

Calls that build the walls are failed at every place where they occur, the others at a few of them;
AGENTIC_CI_FAULTS=all fails each everywhere.
"""
import collections
import concurrent.futures
import glob
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

AT_ONCE = 3
RUN_SECONDS = 600
GONE_SECONDS = 120
ERROR = 'ENOMEM'
# What makes the sandbox: a launch that loses one of these must not go on without it.
WALLS = {'capset', 'chdir', 'clone', 'clone3', 'close_range', 'dup2', 'execve', 'fsetxattr', 'landlock_add_rule',
         'landlock_create_ruleset', 'landlock_restrict_self', 'mount', 'mount_setattr', 'move_mount', 'open_tree',
         'pidfd_open', 'pivot_root', 'prctl', 'seccomp', 'sendmsg', 'recvmsg', 'setgroups', 'sethostname', 'setresgid',
         'setresuid', 'setsid', 'socket', 'socketpair', 'bind', 'listen', 'umount2', 'unshare', 'symlinkat', 'prlimit64'}
# Loops over what may not exist: sixty capabilities, twenty files.
MANY = 24
SAMPLES = 4
# They end the process, return nothing, come from libc's start before main, or never fail like this: a close(2) that
# fails has closed, brk(2) says where the break is, and futex(2) takes no memory.
LEFT_OUT = {'exit', 'exit_group', 'rt_sigreturn', 'arch_prctl', 'set_tid_address', 'set_robust_list', 'rseq', 'vfork',
            'close', 'brk', 'futex'}
GROUPS = '/sys/fs/cgroup/**/agentic-ci-{}'
SECRET = 'canary-of-the-host-51b7'

AGENT = '''
echo started
grep -E '^(CapEff|CapBnd|NoNewPrivs|Seccomp|Uid):' /proc/self/status
cat {secret} 2>/dev/null && echo leak: secret
(echo x >{outside}) 2>/dev/null  # The sandbox has a place of its own there: nothing may be outside.
(echo x >/usr/x-{mark}) 2>/dev/null && echo leak: usr
grep -aos {mark}-of-the-host /proc/[0-9]*/environ
python3 -c 'import socket
socket.create_connection(("127.0.0.1", {port}), 2)
print("leak: connected")' 2>/dev/null
echo changed >README.md
'''


class Place:
    """A checkout, a secret beside it and a service of the host's, for one worker."""

    def __init__(self, base, runner, port):
        self.dir = tempfile.mkdtemp(dir=base)
        os.chmod(self.dir, 0o755)
        self.runner = os.path.join(self.dir, 'aci' + os.path.basename(self.dir)[3:])
        shutil.copy(runner, self.runner)
        self.checkout = self.dir + '/checkout'
        os.mkdir(self.checkout)
        git = ['git', '-c', 'user.name=t', '-c', 'user.email=t@localhost']
        with open(self.checkout + '/README.md', 'w') as file:
            file.write('hello\n')
        for words in (['init', '-q'], ['add', '.'], ['commit', '-qm', 'first']):
            subprocess.run([*git, *words], cwd=self.checkout, check=True)
        with open(self.dir + '/secret', 'w') as file:
            file.write(SECRET + '\n')
        self.script = AGENT.format(secret=self.dir + '/secret', outside=self.dir + '/outside',
                                   mark=os.path.basename(self.dir), port=port)
        self.report = self.dir + '/report'

    def command(self):
        return [self.runner, 'run', '--workdir', self.checkout, '--report-dir', self.report, '--timeout', '20s',
                '--', '/bin/sh', '-c', self.script]

    def run(self, strace):
        shutil.rmtree(self.report, ignore_errors=True)
        env = {'PATH': '/usr/bin:/bin', 'HOME': self.dir, 'MARK': os.path.basename(self.dir) + '-of-the-host'}
        process = subprocess.Popen([*strace, *self.command()], env=env, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors='replace')
        try:
            out, err = process.communicate(timeout=RUN_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            return None, '', ''
        return process.returncode, out, err

    def left(self):
        """What is there of runs that have ended."""
        name = os.path.basename(self.runner)
        deadline = time.monotonic() + GONE_SECONDS
        while True:
            found = [f'process {pid}' for pid in processes(self.dir, name)]
            if not found or time.monotonic() > deadline:
                break
            time.sleep(0.02)
        with open('/proc/self/mountinfo', errors='replace') as file:
            found += ['mount ' + line for line in file if self.dir in line]
        found += glob.glob(self.dir + '/outside') + glob.glob(f'/usr/x-{os.path.basename(self.dir)}')
        with open(self.checkout + '/README.md') as file:
            found += [] if file.read() == 'hello\n' else ['a change of the checkout']
        return found


def processes(directory, name):
    for entry in os.listdir('/proc'):
        if entry.isdigit():
            try:
                with open(f'/proc/{entry}/cmdline', errors='replace') as file:
                    line = file.read()
                with open(f'/proc/{entry}/comm', errors='replace') as file:
                    comm = file.read().strip()
            except OSError:
                continue
            if directory in line or comm == name[:15]:
                yield entry


def problems(code, out, err):
    if code is None:
        return ['did not end']
    found = [line for line in out.splitlines() if line.startswith('leak')]
    if '-of-the-host' in out:
        found.append('the environment was read')
    if SECRET in out:
        found.append('the secret was read')
    if 'started' in out:
        values = dict(re.findall(r'^(\w+):\s*(.*)', out, re.MULTILINE))
        if values:  # grep is a process of the agent's: its own calls fail too.
            wanted = {'CapEff': '0' * 16, 'CapBnd': '0' * 16, 'NoNewPrivs': '1', 'Seccomp': '2'}
            found += [f'{name} is {values.get(name)}' for name in wanted
                      if name in values and values[name] != wanted[name]]
            if values.get('Uid', '1').split()[0] == '0':
                found.append('the agent is root')
    elif code == 0:
        found.append('status 0 and no agent')
    elif 'agentic-ci: error: ' not in err and 'run ended' not in err and code not in (70, 127):
        found.append(f'status {code} and no word why: {err[-300:]}')
    if code < 0:
        found.append(f'killed by signal {-code}')
    return found


def count_calls(place):
    """{system call: how often the process makes it that makes it most}"""
    log = place.dir + '/calls'
    code, out, err = place.run(['strace', '-f', '-qq', '-o', log])
    if code != 0 or 'started' not in out:
        sys.exit(f'the control failed: {code}\n{out}\n{err}')
    counts = collections.Counter()
    with open(log, errors='replace') as file:
        for line in file:
            match = re.match(r'(\d+) +(\w+)\(', line)
            if match:
                counts[match.group(1, 2)] += 1
    most = collections.Counter()
    for (_, call), number in counts.items():
        most[call] = max(most[call], number)
    return {call: number for call, number in most.items() if call not in LEFT_OUT}


def occurrences(call, number, every):
    if every or (call in WALLS and number <= MANY):
        return list(range(1, number + 1))
    samples = MANY if call in WALLS else SAMPLES
    return sorted({1 + round(i * (number - 1) / max(1, min(samples, number) - 1)) for i in range(min(samples, number))})


class Group:
    """A control group of a run that has ended. Its name may come again, in another suite: its inode does not."""

    def __init__(self, path, fault):
        self.path, self.fault = path, fault
        self.inode = self.inode_now()

    def inode_now(self):
        try:
            return os.stat(self.path).st_ino
        except OSError:
            return None

    def exists(self):
        return self.inode is not None and self.inode_now() == self.inode

    def is_of_another(self):
        """Whether a process has the supervisor's number by now: whose group it is then, no run can tell."""
        return os.path.exists('/proc/' + self.path.rpartition('-')[2])

    def is_in_use(self):
        try:
            with open(self.path + '/cgroup.procs') as file:
                return self.exists() and file.read() != ''
        except OSError:
            return False


def main():
    runner, *names = sys.argv[1:]
    if shutil.which('strace') is None:
        print('# SKIP strace: it is not installed')
        return 4
    listener = socket.create_server(('127.0.0.1', 0))
    port = listener.getsockname()[1]
    before = set(glob.glob(GROUPS.format('*'), recursive=True))  # What earlier runs left elsewhere stays there.
    with tempfile.TemporaryDirectory(prefix='fault-') as base:
        os.chmod(base, 0o755)
        counts = count_calls(Place(base, runner, port))
        unknown = [name for name in names if name not in counts]
        if unknown:
            print(f'FAILED  a launch makes no call {unknown[0]}\n0 passed, 1 failed')
            return 1
        every = os.environ.get('AGENTIC_CI_FAULTS') == 'all'
        tries = [(call, number) for call in sorted(names or counts)
                 for number in occurrences(call, counts[call], every)]
        local, passed, failed = threading.local(), 0, 0
        groups = []  # Those that runs left when they ended.

        def attempt(what):
            if not hasattr(local, 'place'):
                local.place = Place(base, runner, port)
            call, number = what
            log = local.place.dir + '/calls'
            code, out, err = local.place.run(
                ['strace', '-f', '-qq', '-o', log, '-e', f'inject={call}:error={ERROR}:when={number}'])
            with open(log, errors='replace') as file:
                supervisor = file.readline().partition(' ')[0]
            groups.extend(Group(path, f'{call} {number}, status {code}')
                          for path in glob.glob(GROUPS.format('*-' + supervisor), recursive=True) if path not in before)
            return what, code, problems(code, out, err) + local.place.left()

        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            codes = collections.Counter()
            for (call, number), code, found in pool.map(attempt, tries):
                codes[code] += 1
                passed, failed = passed + (not found), failed + bool(found)
                if found:
                    print(f'FAILED  {call} {number}: ' + '; '.join(found), flush=True)
        # Of an aborted run (70), as of a killed one, the next run removes what is left; and what could not be removed.
        left = [group for group in groups if group.exists() and not re.search('^rmdir| 70$', group.fault)]
        # A process that ends has no command line any more while it is still in its group.
        deadline = time.monotonic() + GONE_SECONDS
        while any(group.is_in_use() for group in groups) and time.monotonic() < deadline:
            time.sleep(0.02)
        Place(base, runner, port).run([])
        left += [group for group in groups if group.exists() and not group.is_of_another()]
        for group in left:
            failed += 1
            print(f'FAILED  {group.fault}: left {group.path}')
    print('exit statuses: ' + ', '.join(f'{code}: {number}' for code, number in sorted(codes.items(), key=str)))
    print(f'{passed} passed, {failed} failed')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
