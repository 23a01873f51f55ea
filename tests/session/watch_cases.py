# SPDX-License-Identifier: Apache-2.0
"""What `watch` says of a sandbox and of a run while they go on."""
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time

import pyte

from harness import BIN, BUSY_SECONDS, Case, only_root_in_namespaces, read, wait_until

REQUEST = 'python3 -c "import urllib.request as r; r.urlopen(\'http://example.com/x\')"'
REFUSED = 'refused  GET example.com:80/x by '


class Watches(Case):
    def watch(self, what):
        with open(self.base + '/watched', 'w') as file:
            process = subprocess.Popen([BIN, 'watch', what], stdout=file, stderr=subprocess.STDOUT, cwd=self.base,
                                       env=self.env)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def sees(self, text):
        seen = wait_until(lambda: text in read(self.base + '/watched'), BUSY_SECONDS)
        self.assertTrue(seen, f'no {text!r} in {read(self.base + "/watched")!r}')

    def test_a_sandbox_is_followed_to_its_end(self):
        self.create('--disk', '16MiB')
        watch = self.watch('one')
        self.script(REQUEST)
        self.sees(REFUSED)
        self.sees('would be allowed by  example.com:80')
        self.assertIsNone(watch.poll())
        self.script('head -c 10000000 /dev/zero >big; mkdir d; mv b.txt d/; rm a.txt')
        self.sees('\nlimit    disk: ')
        for change in ('created big', 'created d/', 'renamed b.txt to d/b.txt', 'deleted a.txt'):
            self.sees(f'\nfile     {change}\n')
        self.script(REQUEST)
        self.assertEqual(self.call('sandbox', 'delete', 'one').returncode, 0)
        self.assertEqual(watch.wait(BUSY_SECONDS), 0, read(self.base + '/watched'))
        text = read(self.base + '/watched')
        self.assertIn('Done', ''.join(text.splitlines()[-3:]))
        self.assertEqual(text.count(REFUSED), 1)
        self.assertNotIn('\x1b', text)

    def test_another_sandbox_of_the_same_name_is_not_followed(self):
        self.create()
        watch = self.watch('one')
        self.script(REQUEST)
        self.sees(REFUSED)
        watch.send_signal(signal.SIGSTOP)
        self.assertEqual(self.call('sandbox', 'delete', 'one').returncode, 0)
        self.create()
        watch.send_signal(signal.SIGCONT)
        self.assertEqual(watch.wait(BUSY_SECONDS), 74)  # The other one has taken the place of its report.

    def run_until(self, name):
        """A run that makes a request, and goes on until there is a file."""
        command = [BIN, 'run', '--workdir', self.work, '--report-dir', self.report, '--isolation', self.TIER, '--',
                   'sh', '-c', f'{REQUEST}; until [ -e {name} ]; do sleep 0.1; done']
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self.base, env=self.env)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        events = self.report + '/events.ocsf.jsonl'
        self.assertTrue(wait_until(lambda: os.path.exists(events), BUSY_SECONDS))
        return process

    def test_a_run_is_followed_by_its_report_directory(self):
        run = self.run_until('/proc/no-such-file')
        watch = self.watch(self.report)
        self.sees(REFUSED)
        time.sleep(1)
        self.assertIsNone(watch.poll())
        run.terminate()
        run.wait(BUSY_SECONDS)
        self.assertEqual(watch.wait(BUSY_SECONDS), 0, read(self.base + '/watched'))
        self.assertIn('Terminated', read(self.base + '/watched'))
        again = self.call('watch', self.report)  # It has ended: all of it at once.
        self.assertEqual((again.returncode, again.stdout), (0, read(self.base + '/watched')), again.stderr)

    def test_a_run_that_is_killed_has_no_report(self):
        run = self.run_until('/proc/no-such-file')
        watch = self.watch(self.report)
        self.sees(REFUSED)
        run.kill()
        run.wait()
        self.assertEqual(watch.wait(BUSY_SECONDS), 74)
        self.assertIn('it ended without a report', read(self.base + '/watched'))
        self.create()  # Which removes what was left.

    def test_what_is_not_there_is_not_watched(self):
        refused = self.call('watch', 'none')
        self.assertEqual(refused.returncode, 66, refused.stderr)


class Screen:
    """A terminal with `agentic-ci watch` on it, as pyte shows it."""
    HIDDEN = 'for place in /etc/terminfo /lib/terminfo /usr/share/terminfo; do mount -t tmpfs none $place; done; exec "$@"'

    def __init__(self, case, what, rows=24, columns=100, hides_terminals=False, **env):
        self.case = case
        self.ours, self.theirs = pty.openpty()
        self.screen = pyte.Screen(columns, rows)
        self.stream = pyte.ByteStream(self.screen)
        self.resize(rows, columns)
        self.before = termios.tcgetattr(self.theirs)
        command = ['unshare', '-m', 'sh', '-c', self.HIDDEN, '-'] if hides_terminals else []
        self.process = subprocess.Popen(
            [*command, BIN, 'watch', what], stdin=self.theirs, stdout=self.theirs, stderr=self.theirs, cwd=case.base,
            env={**case.env, 'NO_COLOR': '', 'TERM': 'xterm', 'LANG': 'C.UTF-8', **env}, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        case.addCleanup(self.close)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.ours)
        os.close(self.theirs)

    def resize(self, rows, columns):
        self.screen.resize(rows, columns)
        fcntl.ioctl(self.ours, termios.TIOCSWINSZ, struct.pack('HHHH', rows, columns, 0, 0))

    def type(self, keys):
        os.write(self.ours, keys.encode())

    def rows(self):
        return [line.rstrip() for line in self.screen.display]

    def update(self):
        while select.select([self.ours], [], [], 0.02)[0]:
            self.stream.feed(os.read(self.ours, 65536))

    def shows(self, condition):
        def met():
            self.update()
            return condition(self.rows())
        self.case.assertTrue(wait_until(met, BUSY_SECONDS), '\n'.join(self.rows()))

    def row(self, text):
        """There is a row with this text."""
        self.shows(lambda rows: any(text in row for row in rows))

    def ends(self, status=0):
        """So, and the terminal is as it was."""
        def ended():
            self.update()
            return self.process.poll() is not None
        self.case.assertTrue(wait_until(ended, BUSY_SECONDS), self.rows())
        self.update()
        self.case.assertEqual(self.process.returncode, status, self.rows())
        self.case.assertEqual(termios.tcgetattr(self.theirs), self.before)


class Screens(Case):
    def test_a_screen_shows_requests_files_and_limits_as_they_come(self):
        self.create('--disk', '16MiB')
        screen = Screen(self, 'one')
        screen.row('disk: ')
        self.script(REQUEST + "; printf x >'n\x1b]0;title\x07\u202eé'")
        screen.row('> ' + REFUSED)
        screen.row('would be allowed by  example.com:80')
        screen.row('Files: 1')
        self.script(REQUEST.replace('example.com', 'example.org') + ';' + REQUEST)
        screen.row('  refused  GET example.org:80/x')
        screen.row('2 times')
        screen.row('Requests: 2 refused, 0 allowed, 0 failed')
        self.script('head -c 10000000 /dev/zero >big')
        screen.shows(lambda rows: any(row.startswith(' ##########') and 'disk: ' in row for row in rows))
        screen.type('\x1bOB')  # Down.
        screen.row('would be allowed by  example.org:80')
        screen.type('\t')
        screen.row('> created n\\u{202e}é')
        screen.row('  created big')
        screen.resize(12, 40)
        screen.shows(lambda rows: rows[0].startswith(' agentic-ci watch  one   idle') and '  created big' in rows)
        screen.resize(2, 3)
        screen.shows(lambda rows: rows[0] == ' ag')
        screen.resize(24, 100)
        screen.row('> created n')
        screen.type('q')
        screen.ends()
        self.assertEqual(self.script('echo on')['stdout'], 'on\n')  # What was watched goes on.

    def test_a_screen_ends_with_what_it_watches_and_says_how(self):
        self.create()
        screen = Screen(self, 'one', NO_COLOR='1')
        screen.row('agentic-ci watch  one')
        self.assertEqual(self.call('sandbox', 'delete', 'one').returncode, 0)
        screen.ends()
        screen.row('Done')

    def test_a_screen_that_loses_its_terminal_or_is_asked_to_end_leaves_it_in_order(self):
        self.create()
        screen = Screen(self, 'one')
        screen.row('agentic-ci watch  one')
        screen.type('\x03')
        screen.ends()
        screen = Screen(self, 'one')
        screen.row('agentic-ci watch  one')
        screen.process.terminate()
        screen.ends(128 + signal.SIGTERM)

    def test_a_terminal_that_is_not_known_gets_lines(self):
        self.create()
        for kind in ('dumb', 'no-such-terminal'):
            screen = Screen(self, 'one', TERM=kind)
            self.script(REQUEST.replace('example.com', f'{kind}.example'))
            screen.row(f'refused  GET {kind}.example:80/x')
            self.assertEqual(termios.tcgetattr(screen.theirs), screen.before)

    @only_root_in_namespaces
    def test_usual_terminals_are_known_without_the_hosts_files(self):
        self.create()
        for kind in ('xterm', 'xterm-256color', 'screen', 'tmux-256color', 'linux', 'vt100'):
            screen = Screen(self, 'one', hides_terminals=True, TERM=kind)
            screen.row('agentic-ci watch  one')
            screen.type('q')
            screen.ends()
        screen = Screen(self, 'one', hides_terminals=True, TERM='sun')  # The control: known to the host.
        self.script(REQUEST)
        screen.row(REFUSED)
        self.assertEqual(termios.tcgetattr(screen.theirs), screen.before)

    def test_characters_of_a_terminal_without_utf8_are_told_apart_from_text(self):
        self.create()
        screen = Screen(self, 'one', LANG='POSIX')
        self.script("printf x >'né'")
        screen.row('Files: 1')
        screen.type('\t')
        screen.row('> created n??')
        screen.type('q')
        screen.ends()
