#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The README's blocks are run, and the examples are read, by the built binary.

usage: readme_test.py [--update] BINARY

A `yaml` block whose first line is a comment with a path is that file, in a repository of the test's own; in a `console`
block, what follows a `$ ` is run there, and what follows that is what it prints. --update writes what it prints now.
"""
import http.server
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

try:
    import yaml
except ImportError:
    yaml = None

ROOT = pathlib.Path(__file__).resolve().parents[2]
README = ROOT / 'README.md'
UPDATE = '--update' in sys.argv
sys.argv = [argument for argument in sys.argv if argument != '--update']
BINARY = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 else ROOT / 'build' / 'release' / 'agentic-ci').resolve()
BLOCK = re.compile(r'```(yaml|console)\n(.*?)```\n', re.DOTALL)
SHOWN_PORT, SHOWN_HOME = '8000', '/home/ci'


def blocks(kind):
    return [match.group(2) for match in BLOCK.finditer(README.read_text()) if match.group(1) == kind]


def files():
    """{path: text} of the README's `yaml` blocks."""
    return {text.split('\n', 1)[0].removeprefix('# '): text for text in blocks('yaml')}


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


class Stage:
    """A repository with the README's policy, a service on loopback, and a key at home."""

    def __init__(self, directory):
        self.home = pathlib.Path(directory)
        self.checkout = self.home / 'shop'
        self.checkout.mkdir()
        (self.home / '.ssh').mkdir()
        (self.home / '.ssh' / 'id_ed25519').write_text('a key\n')
        (self.home / 'bin').mkdir()
        (self.home / 'bin' / 'agentic-ci').symlink_to(BINARY)
        self.server = http.server.ThreadingHTTPServer(
            ('127.0.0.1', 0), lambda *arguments: Quiet(*arguments, directory=str(self.checkout)))
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.port = str(self.server.server_address[1])
        (self.checkout / 'notes.txt').write_text('the answer is 42\n')
        for path, text in files().items():
            (self.checkout / path).parent.mkdir(parents=True, exist_ok=True)
            (self.checkout / path).write_text(text.replace(f':{SHOWN_PORT}:', f':{self.port}:'))
        self.status = 0
        self.run('git init -q && git add . && git -c user.name=a -c user.email=a@example.com commit -qm one')

    def run(self, command):
        command = command.replace('$?', str(self.status)).replace(f':{SHOWN_PORT}/', f':{self.port}/')
        run = subprocess.run(['sh', '-c', command], cwd=self.checkout, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True,
                             env={'PATH': f'{self.home}/bin:{os.environ["PATH"]}', 'HOME': str(self.home)})
        self.status = run.returncode
        return run.stdout.replace(str(self.home), SHOWN_HOME).replace(f':{self.port}', f':{SHOWN_PORT}')

    def replay(self, transcript):
        commands = [line for line in transcript.splitlines() if line.startswith('$ ')]
        return ''.join(f'{command}\n{self.run(command[2:])}' for command in commands)


class Readme(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        directory = tempfile.mkdtemp(prefix='readme-test-')
        self.addCleanup(shutil.rmtree, directory)
        self.stage = Stage(directory)
        self.addCleanup(self.stage.server.server_close)
        self.addCleanup(self.stage.server.shutdown)

    def test_transcripts_are_what_happens(self):
        transcripts = blocks('console')
        self.assertEqual(len(transcripts), 2)
        for transcript in transcripts:
            happened = self.stage.replay(transcript)
            if UPDATE:
                README.write_text(README.read_text().replace(transcript, happened))
            else:
                self.assertEqual(transcript, happened, 'tests/demo/readme_test.py --update writes what happens now')


class Policies(unittest.TestCase):
    def check(self, *paths):
        run = subprocess.run([BINARY, 'policy', 'check', *paths], capture_output=True, text=True)
        self.assertEqual((run.returncode, run.stderr), (0, ''))

    def test_the_readmes_policy_is_one(self):
        with tempfile.NamedTemporaryFile('w', suffix='.yml') as policy:
            policy.write(files()['.agentic-ci/openshell-policy.yml'])
            policy.flush()
            self.check(policy.name)

    def test_the_examples_are_policies(self):
        paths = sorted((ROOT / 'examples' / 'policies').glob('*.yml'))
        self.assertGreaterEqual(len(paths), 3)
        for path in paths:
            self.check(path)


@unittest.skipUnless(yaml, 'yaml: no python3-yaml')
class Workflows(unittest.TestCase):
    def check(self, text):
        workflow = yaml.safe_load(text)
        ours = 0
        for step in (step for job in workflow['jobs'].values() for step in job['steps']):
            action = re.fullmatch(r'(?:https://github\.com/)?OWNER/agentic-ci(/post)?@COMMIT', step.get('uses', ''))
            if not action:
                continue
            ours += 1
            path = ROOT / (action[1] or '').lstrip('/') / 'action.yml'
            self.assertEqual(set(step.get('with', {})) - set(yaml.safe_load(path.read_text())['inputs']), set())
            if 'secret' in step.get('with', {}):
                name, host = step['with']['secret'].split('@')
                self.assertIn(name, step['env'])
                self.assertEqual(host, 'api.anthropic.com')
        return ours

    def test_the_readmes_workflow_uses_inputs_that_exist(self):
        self.assertEqual(self.check(files()['.github/workflows/agent.yml']), 1)

    def test_the_examples_use_inputs_that_exist(self):
        workflows = [*ROOT.glob('examples/*/.github/workflows/*.yml'), *ROOT.glob('examples/*/.gitea/workflows/*.yml')]
        self.assertGreaterEqual(sum(self.check(workflow.read_text()) for workflow in workflows), 8)


class Links(unittest.TestCase):
    def test_every_link_leads_somewhere(self):
        for document in [*ROOT.glob('*.md'), *ROOT.glob('docs/**/*.md'), *ROOT.glob('examples/*.md')]:
            for target in re.findall(r'\]\(([^)#:]+)(?:#[^)]*)?\)', document.read_text()):
                self.assertTrue((document.parent / target).exists(), f'{document.name}: {target}')


if __name__ == '__main__':
    unittest.main(verbosity=2)
