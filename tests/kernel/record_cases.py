# SPDX-License-Identifier: Apache-2.0
"""--record-programs: every program that the agent starts is written down, with its arguments, whatever the agent tries."""
import json
import os
import subprocess

from harness import PLAIN_ENV, ROOT, RUN_SECONDS, TIER, Case, only_as, only_in, read, write

PYTHON = '/usr/bin/python3'
RECORDED = ['--record-programs']
# Each starts /bin/echo in a way of its own. What it prints is one of its arguments.
WAYS = r'''
import ctypes, os, subprocess, sys, threading
libc = ctypes.CDLL(None, use_errno=True)
def child(run):
    pid = os.fork()
    if pid == 0:
        run()
        os._exit(1)
    os.waitpid(pid, 0)
def echo(word):
    os.execv('/bin/echo', ['echo', word])
alive, held = os.pipe()
def daemon():
    os.setsid()
    if os.fork():
        os._exit(0)
    os.set_inheritable(held, True)
    echo('daemon')
def from_thread():
    thread = threading.Thread(target=echo, args=('thread',))
    thread.start()
    thread.join()
child(lambda: echo('fork'))
child(from_thread)
child(lambda: os.execv('/bin/echo', ['another name', 'renamed']))
child(daemon)
subprocess.run(['echo', 'spawned'])
os.posix_spawn('/bin/echo', ['echo', 'posix'], {})
subprocess.run('echo shell; /bin/echo from-shell; (exec /bin/echo subshell) & wait', shell=True)
script = os.getcwd() + '/script'
with open(script, 'w') as file:
    file.write('#!/bin/sh\nexec /bin/echo script\n')
os.chmod(script, 0o755)
subprocess.run([script, 'its argument'])
# What it says of itself later does not count.
argument = b'{"pid":1,"path":"/bin/forged","arguments":["forged"]}\n'
child(lambda: os.execv('/bin/echo', [b'echo', argument + b'\xff', b'']))
libc.prctl(15, b'forged', 0, 0, 0)
while True:
    try:
        os.wait()
    except ChildProcessError:
        break
os.close(held)
os.read(alive, 1)  # The daemon has ended.
'''
UNTRACED = r'''
import ctypes, os, platform
libc = ctypes.CDLL(None, use_errno=True)
number = 56 if platform.machine() == 'x86_64' else 220
pid = libc.syscall(number, 0x00800000 | 17, 0, 0, 0, 0)  # CLONE_UNTRACED | SIGCHLD
if pid == 0:
    os.execv('/bin/echo', ['echo', 'untraced'])
print('refused', ctypes.get_errno()) if pid < 0 else os.waitpid(pid, 0)
'''
# A process that is stopped stays so, and goes on; handlers run; an end by a signal is told.
SIGNALS = r'''
import os, signal, subprocess, sys, time
child = subprocess.Popen(['sleep', '1000'])
def state():
    return open(f'/proc/{child.pid}/stat').read().rsplit(')', 1)[1].split()[0]
def wait(states):
    while state() not in states:
        time.sleep(0.01)
wait('S')
child.send_signal(signal.SIGSTOP)
assert os.waitpid(child.pid, os.WUNTRACED)[1] == 0x137f
child.send_signal(signal.SIGCONT)
assert os.WIFCONTINUED(os.waitpid(child.pid, os.WCONTINUED)[1])
wait('S')
child.terminate()
assert child.wait() == -signal.SIGTERM
caught = []
signal.signal(signal.SIGUSR1, lambda *_: caught.append(1))
os.kill(os.getpid(), signal.SIGUSR1)
assert caught
print('fine')
'''


class Records(Case):
    def entries(self, run, all_of_them=True):
        lines = [json.loads(line) for line in read(run.report + '/programs.jsonl').splitlines()]
        control = [one for one in run.record['isolation']['controls'] if one['name'] == 'program record']
        self.assertEqual([one['state'] for one in control], ['enforced' if all_of_them else 'unavailable'], control)
        self.assertEqual(lines[0], {'version': 1})
        return lines[1:]

    def test_whatever_is_started_in_whatever_way(self):
        run = self.run_agent(PYTHON, '-c', WAYS, options=RECORDED)
        entries = self.entries(run)
        echoes = [one['arguments'] for one in entries if one['path'].endswith('/echo')]
        self.assertEqual(sorted(one[1] for one in echoes if len(one) == 2), sorted(
            ['fork', 'thread', 'renamed', 'daemon', 'spawned', 'posix', 'from-shell', 'subshell', 'script']))
        self.assertIn(['another name', 'renamed'], echoes)
        forged = '{"pid":1,"path":"/bin/forged","arguments":["forged"]}\n\ufffd'
        self.assertIn(['echo', forged, ''], echoes)
        first = entries[0]
        self.assertEqual((os.path.basename(first['path'])[:6], first['arguments']), ('python', [PYTHON, '-c', WAYS]))
        script = next(one for one in entries if 'its argument' in one['arguments'])
        self.assertEqual((script['arguments'][0], os.path.basename(script['arguments'][1])), ('/bin/sh', 'script'))
        self.assertEqual({one['parent'] for one in entries if one['arguments'][1:] == ['fork']}, {first['pid']})
        # The control: the shell's own echo is no program, and nothing is recorded without the option.
        self.assertIn('shell\n', run.out)
        self.assertNotIn(['echo', 'shell'], echoes)
        plain = self.run_agent('/bin/echo', 'x')
        self.assertFalse(os.path.exists(plain.report + '/programs.jsonl'))

    def test_no_child_escapes(self):
        write(self.checkout + '/untraced.py', UNTRACED)
        self.assertEqual(self.run_agent(PYTHON, 'untraced.py', options=RECORDED).out, 'refused 1\n')
        self.assertEqual(self.outside(f'{PYTHON} untraced.py'), 'untraced\n')

    def test_signals_are_as_without(self):
        for options in (RECORDED, []):
            self.assertEqual(self.run_agent(PYTHON, '-c', SIGNALS, options=options).out, 'fine\n')
            for script, code, status in (('kill -TERM $$', 63, 143), ('exit 7', 7, 7)):
                run = self.shell(script, options=options, code=code, kind='agent-failed')
                self.assertEqual(run.outcome['agent_status'], status)

    def test_what_was_started_before_the_end_by_a_limit_is_there(self):
        run = self.shell('/bin/echo one; sleep 1000', options=[*RECORDED, '--timeout', '6s'], code=124, kind='timed-out')
        self.assertEqual([one['arguments'] for one in self.entries(run)][1:], [['/bin/echo', 'one'], ['sleep', '1000']])

    def test_a_program_that_cannot_be_started_is_told_of_as_ever(self):
        for options in (RECORDED, []):
            run = self.run_agent('no-such-program', options=options, code=66)
        self.assertFalse(os.path.exists(run.report + '/programs.jsonl'))

    def test_a_program_that_cannot_be_read_leaves_the_record_incomplete(self):
        """Its path is not to be had then; what it was started with is."""
        run = self.shell('mkdir d; cp /bin/busybox d/; chmod 111 d/busybox; d/busybox echo x', options=RECORDED)
        seen = ROOT and TIER == 'landlock'  # There the first process may look into any.
        mine = [one for one in self.entries(run, seen) if one['arguments'][:1] == ['d/busybox']]
        self.assertEqual([one['arguments'] for one in mine], [['d/busybox', 'echo', 'x']])
        self.assertEqual(os.path.basename(mine[0]['path']), 'busybox' if seen else '')

    def test_many_arguments_are_cut(self):
        run = self.shell('/bin/true $(seq 30000); /bin/echo next', options=RECORDED)
        cut = [one for one in self.entries(run, False) if 'cut' in one]
        self.assertEqual((len(cut), cut[0]['arguments'][:3]), (1, ['/bin/true', '1', '2']))

    def test_an_earlier_record_does_not_stay(self):
        report = self.dir + '/again'
        self.run_agent('/bin/echo', 'first', options=RECORDED, report=report)
        self.run_agent('/bin/echo', 'second', report=report)
        self.assertFalse(os.path.exists(report + '/programs.jsonl'))

    @only_as('root')
    @only_in('landlock')
    def test_a_host_that_lets_root_not_look_keeps_no_record(self):
        """As in a container without CAP_SYS_PTRACE: the agent runs, and the report says so."""
        line, report = self.command(['/bin/echo', 'fine'], RECORDED)
        done = subprocess.run(['setpriv', '--bounding-set=-sys_ptrace', '--inh-caps=-sys_ptrace', *line], capture_output=True,
                              text=True, env=dict(PLAIN_ENV, HOME=self.home), timeout=RUN_SECONDS)
        self.assertEqual((done.returncode, done.stdout), (0, 'fine\n'), done.stderr)
        controls = json.loads(read(report + '/run.json'))['isolation']['controls']
        self.assertEqual([one['state'] for one in controls if one['name'] == 'program record'], ['unavailable'])
        self.assertEqual(read(report + '/programs.jsonl'), '')
