#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The real Claude Code in a signed image, as an ordinary user, cold and warm.

usage: image_test.py BINARY CLAUDE_DIRECTORY [TEST...]
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

TESTS = pathlib.Path(__file__).resolve().parents[1]
BINARY, PROGRAMS = os.path.abspath(sys.argv.pop(1)), sys.argv.pop(1)
sys.path[:0] = [str(TESTS / 'services' / 'model'), str(TESTS / 'image_run')]
import images  # noqa: E402  pylint: disable=wrong-import-position
from model import Model  # noqa: E402  pylint: disable=wrong-import-position

HOST = 'host.openshell.internal'
KEY = 'sk-test-of-an-image'
USER = 1000 if os.geteuid() == 0 else os.geteuid()
# What Claude Code's own tools start.
TOOLS = ('bash', 'cat', 'cp', 'dirname', 'env', 'head', 'ls', 'mkdir', 'mv', 'pwd', 'readlink', 'rm', 'sed', 'sh')


def libraries(program):
    """The shared objects that a program of this machine is loaded with, by the names it asks for."""
    listed = subprocess.run(['ldd', program], capture_output=True, text=True, check=True).stdout
    return re.findall(r'(/\S+) \(0x', listed)


def claude_layer():
    """One layer: the agent, a shell, and what both are linked with."""
    programs = {'opt/claude': os.path.join(PROGRAMS, 'claude')}
    programs.update({'bin/' + name: shutil.which(name, path='/bin:/usr/bin') for name in TOOLS})
    files = dict(programs)
    for program in programs.values():
        files.update({path.lstrip('/'): path for path in libraries(program)})
    entries = [(name, None) for name in ('etc', 'tmp', 'home')]
    for name, path in sorted(files.items()):
        with open(path, 'rb') as file:
            entries.append((name, file.read()))
    return images.layer(entries)


class ImageAgent(unittest.TestCase):
    def setUp(self):
        self.top = pathlib.Path(tempfile.mkdtemp(prefix='agent-image-'))
        self.addCleanup(shutil.rmtree, self.top, ignore_errors=True)
        self.top.chmod(0o755)
        shutil.copy(BINARY, self.top / 'agentic-ci')  # Where the user may go.
        self.shelf = images.Shelf()
        self.addCleanup(self.shelf.close)
        (self.top / 'key.pub').write_bytes(images.OURS.pem)
        self.home = self.top / 'home'
        (self.home / 'checkout').mkdir(parents=True)
        (self.home / 'checkout' / 'greeting.txt').write_text('hello\n')
        git = ['git', '-c', 'user.name=a', '-c', 'user.email=a@example.com']
        for line in (['init', '-q'], ['add', '.'], ['commit', '-qm', 'one']):
            subprocess.run([*git, *line], cwd=self.home / 'checkout', check=True)
        if os.geteuid() == 0:
            subprocess.run(['chown', '-R', f'{USER}:{USER}', self.home], check=True)

    def run_agent(self, image, name):
        """Has the agent edit a file; gives the ended process and run.json."""
        scenario = {'turns': [
            {'text': 'I read.', 'action': {'read_file': {'path': 'greeting.txt'}}},
            {'text': 'I edit.', 'action': {'edit_file': {'path': 'greeting.txt', 'old': 'hello', 'new': 'good day'}}},
            {'text': 'I run.', 'action': {'run': {'command': 'echo new >new.txt; ls /opt; ls /usr/bin/curl'}}},
            {'text': 'Done.'}]}
        policy, report = self.top / 'policy.yml', self.home / name
        with Model(self.top / ('model-' + name), scenario, key=KEY) as model:
            policy.write_text(f'defaults: none\nendpoints: ["{HOST}:{model.port}:read-write:rest"]\n')
            line = [self.top / 'agentic-ci', 'run', '--agent', 'claude-code', '--prompt', 'do it', '--workdir',
                    self.home / 'checkout', '--policy', policy, '--report-dir', report, '--image', image,
                    '--image-key', self.top / 'key.pub', '--insecure-registry', self.shelf.host,
                    '--secret', f'ANTHROPIC_API_KEY@{HOST}', '--env', f'ANTHROPIC_BASE_URL=http://{HOST}:{model.port}',
                    '--timeout', '2m']
            if os.geteuid() != USER:
                line = ['setpriv', f'--reuid={USER}', f'--regid={USER}', '--clear-groups', *line]
            done = subprocess.run(line, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600, env={
                'PATH': '/usr/bin:/bin', 'HOME': str(self.home), 'ANTHROPIC_API_KEY': KEY,
                'AGENTIC_CI_STORE': str(self.home / 'store')})
        return done, json.loads((report / 'run.json').read_text())

    def test_it_works_with_the_tools_of_a_signed_image_cold_and_warm(self):
        image = self.shelf.image(base=claude_layer(), config={'Env': ['PATH=/opt:/bin']})
        reference = self.shelf.reference(image)
        done, record = self.run_agent(reference, 'unsigned')
        self.assertEqual((done.returncode, images.unpacked(self.home / 'store')), (77, []), done.stderr)
        self.shelf.cosign(image)
        for name in ('cold', 'warm'):
            asked = len(self.shelf.registry.requests)
            done, record = self.run_agent(reference, name)
            self.assertEqual(done.returncode, 0, done.stderr + done.stdout[-3000:])
            self.assertEqual((record['usage']['turns'], record['usage']['tool_calls']), (4, 3))
            self.assertEqual(record['image']['digest'], image['digest'])
            patch = (self.home / name / 'changes.patch').read_text()
            self.assertIn('+good day', patch)
            self.assertIn('+new', patch)
            stream = (self.home / name / 'agent.jsonl').read_text()
            self.assertIn('claude', stream)
            self.assertIn("'/usr/bin/curl'", stream)  # No file of the host's.
        self.assertEqual(len(self.shelf.registry.requests), asked)


if __name__ == '__main__':
    unittest.main()
