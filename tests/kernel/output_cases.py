# SPDX-License-Identifier: Apache-2.0
"""What the agent writes arrives: whole and unchanged for a program, harmless for a person and for the log of a job."""
import json
import os
import pty
import subprocess

from harness import PLAIN_ENV, RUN_SECONDS, Case, read

LONG = '''python3 -c "import json; print(json.dumps({'k': 'v' * 50000}))"'''
RICH = r"printf '## a\n::b::c\r\n##[d]e\n\033[31mred\033[0m \377\n\n  no line end'"
LONGEST = 48 << 20


class OutputTest(Case):
    def log(self, run):
        with open(run.report + '/agent.log', 'rb') as file:
            return file.read()

    def test_long_lines_are_whole(self):
        expected = self.outside(LONG)
        self.assertEqual(len(json.loads(expected)['k']), 50000)  # Control.
        run = self.shell(LONG)
        self.assertEqual(run.out, expected)
        self.assertEqual(self.log(run), run.raw)

    def test_bytes_are_kept_for_a_program_and_in_the_log(self):
        expected = subprocess.run(['sh', '-c', RICH], capture_output=True).stdout
        run = self.shell(RICH)
        self.assertEqual(run.raw, expected)
        self.assertEqual(self.log(run), expected)

    def test_a_line_without_end_is_streamed(self):
        """Of more bytes than the supervisor keeps."""
        script = f'head -c {LONGEST} /dev/zero | tr "\\0" x; echo; echo end'
        run = self.shell(script, options=['--output', '100MiB'])
        self.assertEqual(len(run.raw), LONGEST + len('\nend\n'))
        self.assertEqual(self.log(run), run.raw)

    def test_each_stream_keeps_its_order_and_lines_stay_whole(self):
        script = 'i=0; while [ $i -lt 3000 ]; do echo "out $i"; echo "err $i" >&2; i=$((i+1)); done'
        run = self.shell(script)
        lines = self.log(run).decode().splitlines()
        for word in ('out', 'err'):
            self.assertEqual([line for line in lines if line.startswith(word)],
                             [f'{word} {i}' for i in range(3000)])
        self.assertEqual(len(lines), 6000)

    def test_a_terminal_shows_no_escapes_and_says_what_it_cut(self):
        line, report = self.command(['sh', '-c', RICH + '; echo; ' + LONG])
        ours, theirs = pty.openpty()
        process = subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=theirs, stderr=subprocess.PIPE,
                                   env=dict(PLAIN_ENV, HOME=self.home, TERM='dumb'), cwd=self.dir)
        os.close(theirs)
        self.supervisors.append(process.pid)
        shown = b''
        try:
            while piece := os.read(ours, 65536):
                shown += piece
        except OSError:  # EIO: the other end is closed.
            pass
        os.close(ours)
        process.communicate(timeout=RUN_SECONDS)
        self.assertEqual(process.returncode, 0)
        self.assertNotIn(b'\x1b', shown)
        text = shown.decode().replace('\r\n', '\n')
        self.assertTrue(text.startswith('## a\n::b::c\n##[d]e\nred \ufffd\n\n  no line end\n'), text[:200])
        self.assertTrue(text.endswith('\u2026 (cut; agent.log has the whole line)\n'), text[-200:])
        self.assertIn(b'v' * 50000, read(report + '/agent.log').encode())
