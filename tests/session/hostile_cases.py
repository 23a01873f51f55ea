# SPDX-License-Identifier: Apache-2.0
"""What a sandbox does to the stream of its own shell harms its own results only, and never its supervisor."""
from harness import BUSY_SECONDS, Case

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
