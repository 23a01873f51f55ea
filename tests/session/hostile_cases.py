# SPDX-License-Identifier: Apache-2.0
"""What a sandbox does to the stream of its own shell harms its own results only, and never its supervisor."""
import re

from harness import BUSY_SECONDS, Case, read

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


class Hostile(Case):
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

    def peak(self):
        """The most memory, in KiB, that the sandbox's supervisor has had."""
        keeper = self.facts()['pid']
        supervisor = read(f'/proc/{keeper}/task/{keeper}/children').split()[0]
        return int(re.search(r'VmHWM:\s*(\d+)', read(f'/proc/{supervisor}/status'))[1])
