# SPDX-License-Identifier: Apache-2.0
"""A person's shell in a sandbox, typed at a real terminal."""
import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import socket
import struct
import subprocess
import termios
import time

from harness import BIN, BUSY_SECONDS, Case, message_kind, read, wait_until

PROMPT = '<> '  # Never in the echo of what sets it.
MARKS = re.compile('\x1b\\[\\?2004(?:h|l\r)')  # With them, bash asks for pastes to be marked.


class Terminal:
    """A terminal with `agentic-ci sandbox shell` on it."""

    def __init__(self, case, name='one', rows=24, columns=80):
        self.ours, self.theirs = pty.openpty()
        self.resize(rows, columns)
        self.before = termios.tcgetattr(self.theirs)
        self.process = subprocess.Popen(
            [BIN, 'sandbox', 'shell', name], stdin=self.theirs, stdout=self.theirs, stderr=self.theirs,
            cwd=case.base, env=dict(case.env, TERM='xterm'), start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        self.case = case
        self.text = ''  # That no expect() has passed yet.
        self.all = ''

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for fd in (self.ours, self.theirs):
            with contextlib.suppress(OSError):
                os.close(fd)

    def resize(self, rows, columns):
        fcntl.ioctl(self.ours, termios.TIOCSWINSZ, struct.pack('HHHH', rows, columns, 0, 0))

    def type(self, keys):
        os.write(self.ours, keys.encode())

    def read(self, seconds):
        if select.select([self.ours], [], [], seconds)[0]:
            text = os.read(self.ours, 65536).decode(errors='replace')
            self.text = MARKS.sub('', self.text + text)
            self.all += text

    def expect(self, pattern, seconds=BUSY_SECONDS):
        """The match; what comes behind it is looked at next."""
        end = time.monotonic() + seconds
        while True:
            found = re.search(pattern, self.text)
            if found:
                self.text = self.text[found.end():]
                return found
            self.case.assertLess(time.monotonic(), end, f'no {pattern!r} in {self.all!r}')
            self.read(0.1)

    def begin(self):
        self.expect(r'[$#] ')
        self.type('PS1="<""> "\r')
        self.expect(PROMPT)
        return self

    def run(self, line, pattern):
        """What the shell says to a line, which ends with a prompt."""
        self.type(line + '\r')
        found = self.expect(pattern)
        self.expect(PROMPT)
        return found

    def wait(self, status):
        """It ended so, and the terminal is as it was."""
        end = time.monotonic() + BUSY_SECONDS
        while self.process.poll() is None:
            self.case.assertLess(time.monotonic(), end, self.all)
            self.read(0.05)
        while select.select([self.ours], [], [], 0)[0]:
            self.read(0)
        self.case.assertEqual(self.process.returncode, status, self.all)
        self.case.assertEqual(termios.tcgetattr(self.theirs), self.before)


class Terminals(Case):
    def open(self, *options, **size):
        terminal = Terminal(self, *options, **size)
        self.addCleanup(terminal.close)
        return terminal

    def in_foreground(self, number):
        """Whether the sleeper's group has its terminal, so that keys are signals for it."""
        for pid in self.napping(number):
            with contextlib.suppress(OSError):
                group, terminal = read(f'/proc/{pid}/stat').rsplit(')', 1)[1].split()[2:6:3]
                if group == terminal:
                    return True
        return False

    def applies(self):
        return self.TIER != 'landlock' or os.geteuid() == 0

    def test_a_shell_answers_and_its_status_is_the_commands(self):
        self.create()
        self.script('cd dir; export given=here; plain=not')
        terminal = self.open()
        terminal.begin()
        terminal.run('echo "$given-$plain-$TERM-$((6 * 7))"', r'\nhere--xterm-42\r')
        terminal.run('basename "$PWD"; tty', r'\ndir\r\n/dev/pts/\d+\r')
        terminal.run('false; echo "=$?"', r'\n=1\r')
        terminal.run(f'echo made >made; {self.nap(2009)} &', r'\[1\] \d+')
        terminal.type('exit 7\r')
        terminal.wait(7)
        self.assertTrue(wait_until(lambda: self.napping(2009)))  # As a server would be, once it has begun.
        self.assertNotIn('cannot set terminal process group', terminal.all)
        self.assertNotIn('no job control', terminal.all)
        self.says('cat made; echo "$plain"; basename "$PWD"', 'made\nnot\ndir\n')

    def test_keys_are_signals_for_the_job_in_the_foreground_only(self):
        self.create()
        terminal = self.open().begin()
        terminal.run(self.nap(2001) + ' & echo "job $!"', r'\njob \d+\r')
        terminal.type(self.nap(2002) + '; echo "=$?"\r')
        self.assertTrue(wait_until(lambda: self.in_foreground(2002)))
        terminal.type('\x03')
        terminal.expect(PROMPT)
        terminal.run('jobs', r'Running +sleep 2001')
        self.assertTrue(wait_until(lambda: not self.napping(2002)))
        terminal.type(self.nap(2003) + '\r')
        self.assertTrue(wait_until(lambda: self.in_foreground(2003)))
        terminal.type('\x1a')
        terminal.expect(r'Stopped +sleep 2003')
        terminal.expect(PROMPT)
        terminal.run('jobs | grep -c .', r'\n2\r')
        terminal.run('bg', r'sleep 2003\.\d+ &')
        terminal.run('jobs', r'Running +sleep 2003')
        terminal.type('fg\r')
        terminal.expect(r'sleep 2003\.\d+\r')
        self.assertTrue(wait_until(lambda: self.in_foreground(2003)))
        terminal.type('\x03')
        terminal.expect(PROMPT)
        terminal.type('%1\r')  # The shell's, although it begins with a '%'.
        terminal.expect(r'\nsleep 2001\.\d+\r')
        self.assertTrue(wait_until(lambda: self.in_foreground(2001)))
        terminal.type('\x03')
        terminal.expect(PROMPT)
        terminal.run('jobs | grep -c .', r'\n0\r')
        terminal.type('\x04')
        terminal.wait(1)  # Of `grep`.

    def test_a_window_has_its_size_from_the_beginning_and_when_it_changes(self):
        self.create()
        terminal = self.open(rows=31, columns=97).begin()
        terminal.run('stty size', r'\n31 97\r')
        terminal.run("trap 'echo changed' WINCH", '')
        terminal.resize(40, 120)
        terminal.run('while [ "$(stty size)" != "40 120" ]; do sleep 0.05; done; stty size', r'\n40 120\r')
        terminal.type('exit 0\r')
        terminal.wait(0)

    def test_lines_that_begin_with_a_percent_sign_are_commands_to_agentic_ci(self):
        self.create()
        terminal = self.open().begin()
        terminal.run("printf 'al\\033[31mpha\\n' >a.txt", '')
        terminal.type('%diff\r')
        terminal.expect(r'\n-alpha\r\n\+al[^\x1b]*pha\r')
        terminal.expect(PROMPT)
        terminal.type('%limits\r')
        terminal.expect(r'\nmemory: .*\r\ndisk: .* of .*\r\nprocesses: \d+ of \d+\r\nprocessor time: .*\r\ntime left: \d+ s\r')
        terminal.expect(PROMPT)
        terminal.type('%help\r')
        terminal.expect(r'\n%restore NAME ')
        terminal.expect(PROMPT)
        terminal.type('python3 -c "import sys, tty; tty.setcbreak(0); print(0 + 1); sys.stdin.read(1)"; stty sane\r')
        terminal.expect(r'\n1\r')
        terminal.type('q')  # As one leaves a pager.
        terminal.expect(PROMPT)
        terminal.type('%diff now\r')
        terminal.expect(r"error: unexpected 'now'")
        terminal.expect(PROMPT)
        terminal.type('%restore no-such-snapshot\r')
        terminal.expect(r'error: .*no-such-snapshot')
        terminal.expect(PROMPT)
        terminal.run('PYTHONWARNINGS= python3 -c "import urllib.request as r; r.urlopen(\'http://example.com/x\')"',
                     'Error')
        terminal.type('%net\r')
        terminal.expect(r'\nrefused .*example\.com:80')
        terminal.expect(r'would be allowed by .*example\.com:80')
        terminal.expect(PROMPT)
        terminal.run('echo still "$?"', r'\nstill \d+\r')
        terminal.type('%reset\r')
        terminal.begin()
        terminal.run('cat a.txt', r'\nalpha\r')
        terminal.type('exit 3\r')
        terminal.wait(3)

    def test_a_snapshot_is_taken_and_restored_from_inside(self):
        self.create()
        if self.TIER == 'landlock':
            terminal = self.open().begin()
            terminal.type('%snapshot now\r')
            terminal.expect('error: snapshots need a sandbox of tier namespaces')
            terminal.expect(PROMPT)
            terminal.type('exit 0\r')
            return terminal.wait(0)
        terminal = self.open().begin()
        terminal.run(self.nap(2004) + ' & echo one >made', '')
        terminal.type('%snapshot now\r')
        terminal.expect(r'\nsha256:[0-9a-f]{64}\r')
        terminal.expect(PROMPT)
        terminal.run('jobs', r'Running +sleep 2004')  # It did not see that it was stopped meanwhile.
        terminal.run('echo two >made', '')
        terminal.type('%restore now\r')
        terminal.begin()
        terminal.run('cat made', r'\none\r')
        self.assertFalse(self.napping(2004))
        terminal.type('exit 0\r')
        terminal.wait(0)

    def test_nothing_inside_can_give_a_command(self):
        self.create()
        terminal = self.open().begin()
        # What is printed is not typed, also where a program has the terminal and looks like a prompt.
        terminal.run("printf '%%reset\\r\\n%%reset\\n'; echo x >a.txt", '%reset')
        terminal.type('python3 -c "\nprint(\'ready\', input(\'<\' + \'> \'))"\r')
        terminal.expect(PROMPT)
        terminal.type('%reset\r')
        terminal.expect(r'\nready %reset\r')
        terminal.expect(PROMPT)
        terminal.run('python3 -c "import fcntl, termios; fcntl.ioctl(0, termios.TIOCSTI, b\'%\')"', 'PermissionError')
        # Pasted text is the shell's until it says otherwise.
        terminal.type('\x1b[200~true\r%reset\r%reset\r\x1b[201~\x15')
        terminal.run('', '')
        terminal.run('cat a.txt', r'\nx\r')
        terminal.type('exit 0\r')
        terminal.wait(0)

    def test_a_client_that_is_killed_takes_its_shell_with_it(self):
        self.create()
        for number in (signal.SIGKILL, signal.SIGHUP, signal.SIGTERM):
            with self.subTest(number):
                terminal = self.open().begin()
                shell = terminal.run('echo "=$$="', r'=(\d+)=').group(1)
                terminal.run(f'{self.nap(2005)} & setsid {self.nap(2006)} & trap "" HUP; echo', '')
                terminal.type(self.nap(2007) + '\r')
                self.assertTrue(wait_until(lambda: all(map(self.napping, (2005, 2006, 2007)))))
                terminal.process.send_signal(number)
                if number == signal.SIGKILL:
                    terminal.process.wait()
                else:
                    terminal.wait(128 + number)
                self.assertTrue(wait_until(lambda: not self.napping(2005, 2006, 2007)))
                self.says(f'kill -0 {shell} 2>/dev/null; echo "$?"', '1\n')
        terminal = self.open().begin()
        terminal.run('echo "$((1 + 1))"', r'\n2\r')
        terminal.type('exit 0\r')
        terminal.wait(0)

    def test_the_end_of_the_sandbox_ends_the_shell_with_a_message(self):
        self.create()
        terminal = self.open().begin()
        self.assertEqual(self.call('sandbox', 'delete', 'one').returncode, 0)
        terminal.wait(74)
        self.assertIn('error: the sandbox ended', terminal.all)
        self.create()
        terminal = self.open().begin()
        os.kill(self.facts()['pid'], signal.SIGTERM)
        terminal.wait(74)
        self.assertIn('error: the sandbox ended', terminal.all)

    def test_others_are_busy_or_wait_and_files_need_not(self):
        self.create()
        terminal = self.open().begin()
        second = self.open()
        second.expect('error: busy')
        second.wait(75)
        busy = self.call('sandbox', 'exec', 'one', '--no-wait', '--', 'true')
        self.assertEqual(busy.returncode, 75, busy.stderr)
        waiting = self.start('echo waited')
        terminal.run('echo mine >mine', '')
        got = self.call('sandbox', 'get', 'one', 'mine', self.base + '/got')
        self.assertEqual((got.returncode, read(self.base + '/got')), (0, 'mine\n'), got.stderr)
        self.assertIn('+mine', self.call('sandbox', 'diff', 'one').stdout)
        self.assertIsNone(waiting.poll())
        terminal.type('exit 0\r')
        terminal.wait(0)
        self.assertEqual(waiting.communicate(timeout=BUSY_SECONDS), ('waited\n', ''))

    def test_the_shell_is_within_the_same_walls(self):
        self.create('--memory', '64MiB')
        inside = 'grep -E "^(Seccomp|NoNewPrivs|CapEff|CapBnd|Uid):" /proc/self/status | cksum; ulimit -a | cksum'
        outside = self.script(inside)['stdout'].replace('\n', '\r\n')
        terminal = self.open().begin()
        terminal.run(inside, re.escape('\n' + outside))
        terminal.run('python3 -c "import socket; socket.create_connection((\'192.0.2.1\', 80), 9)"', 'Error')
        terminal.run(f'cat {self.base}/secret {BIN} >/dev/null; ls {self.scratch}', 'No such|denied')
        terminal.type('python3 -c "b = bytearray(200 << 20); import time; time.sleep(99)"\r')
        terminal.wait(125)
        self.assertIn('more than the memory limit', terminal.all)
        self.says('echo on', 'on\n')

    def test_without_a_shells_terminal_there_is_none(self):
        self.create()
        refused = self.call('sandbox', 'shell', 'one')
        self.assertEqual(refused.returncode, 64, refused.stderr)
        self.assertIn('hint: agentic-ci sandbox exec NAME', refused.stderr)
        self.assertEqual(self.call('sandbox', 'shell', 'two').returncode, 66)

    def test_sh_serves_where_there_is_no_bash_and_setsid_is_needed(self):
        place = os.path.join(self.work, 'tools')
        os.mkdir(place)
        for name in ('sh', 'basename', 'cat'):
            os.symlink('/usr/bin/' + name, os.path.join(place, name))
        self.create('--env', 'PATH=' + place)
        terminal = self.open()
        terminal.expect('needs the program setsid')
        terminal.wait(127)
        self.says('echo on', 'on\n')
        self.script('PATH=$PATH:/usr/bin')
        terminal = self.open().begin()
        terminal.run(self.nap(2008) + ' & echo "$((2 + 2))"', r'\n4\r')
        terminal.run('jobs', r'Running')
        terminal.type('exit 5\r')
        terminal.wait(5)


    def test_a_client_that_asks_for_a_terminal_and_does_not_take_it_harms_nothing(self):
        self.create()
        ask = message_kind('kTerminal') + struct.pack('<I5sHH', 5, b'xterm', 80, 24)
        # A descriptor that is not a socket, and one whose other side is never read.
        null = os.open('/dev/null', os.O_RDWR)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for given, answer in ((null, message_kind('kFault')), (theirs.fileno(), message_kind('kDone'))):
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
                client.settimeout(BUSY_SECONDS)
                client.connect(os.path.join(self.scratch, 'agentic-ci/one/socket'))
                socket.send_fds(client, [ask], [given])
                self.assertEqual(client.recv(65536)[:1], answer)
            self.says('echo on', 'on\n')
        os.close(null)
        ours.close()
        theirs.close()
        if self.TIER == 'namespaces':  # Elsewhere, other sandboxes' shells are seen.
            self.says('ps -e -o args= | grep -c "bas[h] -i"', '0\n')


class WithoutTerminals(Case):
    TIER = 'landlock'

    def applies(self):
        return os.geteuid() != 0

    def test_an_ordinary_user_is_refused_a_terminal_by_name(self):
        self.create()
        terminal = Terminal(self)
        self.addCleanup(terminal.close)
        terminal.expect('error: no terminal can be opened in this sandbox')
        terminal.expect('hint: agentic-ci sandbox exec')
        terminal.wait(69)
        self.says('echo on', 'on\n')
