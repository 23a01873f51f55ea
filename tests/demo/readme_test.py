#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The blocks of the README and of the guides are run, and the examples are read, by the built binary.

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
GUIDES = sorted((ROOT / 'docs/guides').glob('*.md'))
UPDATE = '--update' in sys.argv
sys.argv = [argument for argument in sys.argv if argument != '--update']
BINARY = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 else ROOT / 'build' / 'release' / 'agentic-ci').resolve()
BLOCK = re.compile(r'```(yaml|console)\n(.*?)```\n', re.DOTALL)
SHOWN_PORT, SHOWN_HOME = '8000', '/home/ci'


def blocks(kind, document=README):
    return [match.group(2) for match in BLOCK.finditer(document.read_text()) if match.group(1) == kind]


def files(document=README):
    """{path: text} of a document's `yaml` blocks."""
    return {text.split('\n', 1)[0].removeprefix('# '): text for text in blocks('yaml', document)}


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


class Stage:
    """A repository with a document's files, a service on loopback, and a key at home."""

    def __init__(self, directory, document):
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
        for path, text in files(document).items():
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
        return re.sub(rf'([:=]){self.port}\b', rf'\g<1>{SHOWN_PORT}', run.stdout.replace(str(self.home), SHOWN_HOME))

    def replay(self, transcript):
        commands = [line for line in transcript.splitlines() if line.startswith('$ ')]
        return ''.join(f'{command}\n{self.run(command[2:])}' for command in commands)


class Documents(unittest.TestCase):
    maxDiff = None

    def replay(self, document):
        """Runs a document's transcripts in turn, in one repository; gives their number."""
        directory = tempfile.mkdtemp(prefix='readme-test-')
        self.addCleanup(shutil.rmtree, directory)
        stage = Stage(directory, document)
        self.addCleanup(stage.server.server_close)
        self.addCleanup(stage.server.shutdown)
        transcripts = blocks('console', document)
        for transcript in transcripts:
            happened = stage.replay(transcript)
            if UPDATE:
                document.write_text(document.read_text().replace(transcript, happened, 1))
            else:
                self.assertEqual(transcript, happened, 'tests/demo/readme_test.py --update writes what happens now')
        return len(transcripts)

    def test_the_readmes_transcripts_are_what_happens(self):
        self.assertEqual(self.replay(README), 2)

    def test_the_guides_transcripts_are_what_happens(self):
        self.assertGreaterEqual(len(GUIDES), 5)
        for guide in GUIDES:
            with self.subTest(guide.name):
                self.assertGreaterEqual(self.replay(guide), 1)


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
