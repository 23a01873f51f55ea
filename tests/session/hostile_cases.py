# SPDX-License-Identifier: Apache-2.0
"""What a sandbox does to the stream of its own shell harms its own results only, and never its supervisor."""
import json
import os
import pathlib
import pty
import re
import subprocess

from harness import BIN, BUSY_SECONDS, Case, read, wait_until

# The descriptor of that stream: while a command runs, its shell keeps a copy.
FIND = 'for f in /proc/$$/fd/*; do case $(readlink $f) in socket*) stream=${f##*/};; esac; done\n'
# Sends its output into the stream, over and over.
FLOOD = '''
import socket
away = socket.socket(fileno=0)
socket.send_fds(away, [b"x"], [1])
print("flooding", flush=True)
while True:
    socket.send_fds(away, [b"x" * 2000], [1])
'''


# What a terminal and the log of a job would carry out.
COMMANDS = '::error::x\n\033]0;title\007\033[2J##[add-mask]a\n'
VISIBLE = '::error::x\n##[add-mask]a\n'
HARMLESS = ': :error::x\n# #[add-mask]a\n'


class Hostile(Case):
    def test_a_log_and_a_terminal_carry_out_nothing_that_a_command_writes(self):
        self.create()
        line = ['sandbox', 'exec', 'one']
        script = "printf '::error::x\\n\\033]0;title\\007\\033[2J##[add-mask]a\\n'"
        script = f'{script}; {script} >&2'
        # GitLab's runner carries out escape sequences only.
        for variable, shown in (('GITHUB_ACTIONS', HARMLESS), ('GITLAB_CI', VISIBLE)):
            log = dict(self.env, CI='true', **{variable: 'true'})
            done = self.call(*line, stdin=script, env=log)
            self.assertEqual((done.stdout, done.stderr), (shown, shown), variable)
            done = self.call(*line, '--json', stdin=script, env=log)
            self.assertEqual(json.loads(done.stdout)['stdout'], COMMANDS)
            self.assertNotIn('##[', done.stdout)
            # A file is not the log of a job.
            with open(self.base + '/file', 'w+') as file:
                subprocess.run([BIN, *line], input=script, env=log, cwd=self.base, stdout=file, text=True,
                               stderr=subprocess.DEVNULL, check=True)
            self.assertEqual(read(self.base + '/file'), COMMANDS)
        done = self.call(*line, stdin=script)  # The control, for a program.
        self.assertEqual((done.stdout, done.stderr), (COMMANDS, COMMANDS))
        self.assertEqual(self.on_terminal(script), '::error::x\r\n##[add-mask]a\r\n')

    def test_a_difference_is_shown_without_what_a_log_or_a_terminal_carries_out(self):
        self.create()
        self.script("printf 'x\\r::error::forged\\r##[add-mask]a\\n\\033]0;title\\007\\n' >new.txt")
        log = dict(self.env, CI='true', GITHUB_ACTIONS='true')
        told = lambda env, **how: subprocess.run([BIN, 'sandbox', 'diff', 'one'], env=env, cwd=self.base, check=True, **how)
        shown = told(log, stdout=subprocess.PIPE).stdout
        self.assertIn(b'forged', shown)
        for carried_out in (b'\r', b'\033', b'\007', b'##['):
            self.assertNotIn(carried_out, shown)
        self.assertFalse([line for line in shown.splitlines() if line.startswith(b'::')], shown)
        with open(self.base + '/file', 'wb') as file:
            told(log, stdout=file)
        whole = pathlib.Path(self.base + '/file').read_bytes()
        self.assertIn(b'+x\r::error::forged\r##[add-mask]a\n+\033]0;title\007\n', whole)
        self.assertEqual(told(self.env, stdout=subprocess.PIPE).stdout, whole)  # The control: a program.

    def test_a_sandbox_whose_shell_does_not_come_back_is_no_success(self):
        self.create()
        done = self.call('sandbox', 'exec', 'one', '--timeout', '1s',
                         stdin='kill -STOP $(ps -o ppid= -p $$); kill -STOP $$\n')
        self.assertNotEqual(done.returncode, 0)
        self.assertTrue(wait_until(lambda: self.names() == [], BUSY_SECONDS))
        self.assertEqual(self.record()['outcome']['kind'], 'agent-failed')

    def test_the_name_of_a_file_is_told_as_visible_text(self):
        self.create()
        self.script("mkdir out; mkfifo $'out/x\\n::error file=a::pwned\\n##[add-mask]a\\e]0;title\\a\\e[2J'")
        done = self.call('sandbox', 'get', 'one', 'out', self.base + '/got')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('1 left out', done.stderr)
        self.assertIn('::error file=a::pwned', done.stderr)  # The control.
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        for hidden in ('\033', '\007', '##['):
            self.assertNotIn(hidden, done.stderr)

    def on_terminal(self, script):
        """What `sandbox exec` writes to a terminal as its output."""
        ours, theirs = pty.openpty()
        with open(ours, 'rb', buffering=0) as screen, open(theirs, 'wb', buffering=0) as output:
            subprocess.run([BIN, 'sandbox', 'exec', 'one'], input=script, env=self.env, cwd=self.base, stdout=output,
                           stderr=subprocess.DEVNULL, text=True, check=True)
            return os.read(screen.fileno(), 65536).decode()

    def test_a_sandbox_ends_while_its_output_lies_in_the_stream_of_its_shell(self):
        self.create()
        command = self.start(f"{FIND}cat >flood.py <<'END'\n{FLOOD}END\neval \"python3 flood.py 0<&$stream\"\n")
        self.assertEqual(command.stdout.readline(), 'flooding\n')
        deleted = self.call('sandbox', 'delete', 'one', seconds=BUSY_SECONDS)
        self.assertEqual(deleted.returncode, 0, deleted.stderr)
        command.communicate()

    def test_forged_words_of_the_shells_keeper_cost_the_supervisor_no_memory(self):
        self.create('--memory', '100MiB')
        self.script('X=$(head -c 2000000 /dev/zero | tr "\\0" a)')
        before = self.peak()
        # The key is on the keeper's command line.
        result = self.script(FIND + 'key=$(tr "\\0" "\\n" </proc/$PPID/cmdline | tail -1); echo ${#key}\n'
                             'for i in $(seq 100); do eval "printf \'\\0%s exit 1\\0\\0%s shell bash\\0\' '
                             '$key $key >&$stream"; done; sleep 1', '--timeout', '20s')
        self.assertEqual(result['stdout'], '32\n', result)
        self.assertLess(self.peak() - before, 64 << 10)
        deleted = self.call('sandbox', 'delete', 'one', seconds=BUSY_SECONDS)
        self.assertEqual(deleted.returncode, 0, deleted.stderr)

    def test_an_end_of_the_shell_that_something_else_tells_keeps_no_command_waiting(self):
        self.create()
        self.script('kept=here')
        self.script(FIND + 'key=$(tr "\\0" "\\n" </proc/$PPID/cmdline | tail -1)\n'
                    '(sleep 0.5; eval "printf \'\\0%s exit 0\\0\' $key >&$stream"; exec ' + self.nap(1031) + ') '
                    '>/dev/null 2>&1 &\n')
        self.assertTrue(wait_until(lambda: self.napping(1031), BUSY_SECONDS))
        result = self.script('echo $kept')
        self.assertEqual((result['stdout'], result['exit']), ('here\n', 0), result)

    def test_a_trap_that_ends_each_shell_at_its_beginning_is_not_kept(self):
        self.create()
        self.script("trap '[ ! -e ~/go ] || exit 7' DEBUG; kept=here")
        self.assertEqual(self.script('echo $kept')['stdout'], 'here\n')  # The control.
        self.script(': >~/go')
        self.assertEqual(self.script('echo "${kept-dropped}"')['stdout'], 'dropped\n')

    def test_a_state_that_hangs_each_shell_at_its_beginning_is_not_kept(self):
        # In the second sandbox nothing tells for three seconds that the shell has ended: the next command is begun all the same.
        stops = {'one': ('', ''), 'two': ('kill -STOP $PPID; ', self.nap(3) + '; kill -CONT $PPID; ')}
        waiting = []
        for name, (before, after) in stops.items():
            self.report = os.path.join(self.base, 'report-' + name)
            self.create(name=name)
            self.script("me=$$; trap '[ $$ = $me ] || kill -STOP $$' DEBUG; kept=here", name=name)
            self.assertEqual(self.script('echo $kept', name=name)['stdout'], 'here\n')  # The control.
            ends = f'(until [ -e go ]; do sleep 0.1; done; {before}kill -9 $me; {after}exec {self.nap(1033)}) >/dev/null 2>&1 &\n'
            self.script('echo work >file; ' + ends, name=name)
            self.call('sandbox', 'put', name, __file__, 'go')  # Not by a command, which would end with its shell.
            self.assertTrue(wait_until(lambda: self.napping(3 if before else 1033), BUSY_SECONDS))
            waiting.append(self.start('echo "${kept-dropped}"; cat file', name=name))
        for process in waiting:  # Each of its successors is killed after ten seconds.
            self.assertEqual(process.communicate(timeout=600)[0], 'dropped\nwork\n')

    def peak(self):
        """The most memory, in KiB, that the sandbox's supervisor has had."""
        keeper = self.facts()['pid']
        supervisor = read(f'/proc/{keeper}/task/{keeper}/children').split()[0]
        return int(re.search(r'VmHWM:\s*(\d+)', read(f'/proc/{supervisor}/status'))[1])
