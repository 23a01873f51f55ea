# SPDX-License-Identifier: Apache-2.0
"""Asks registry_driver, and looks at what it says."""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'services'))
from registry import Registry, digest_of  # noqa: E402

DRIVER = sys.argv.pop(1)
PASSWORD = 'hunter2'
SUBJECT = 'sha256:' + 'ab' * 32


class Case(unittest.TestCase):
    """Registries and folders of a test's own; no output of ours may hold the password."""

    def registry(self, **options):
        registry = Registry(**options)
        self.addCleanup(registry.close)
        return registry

    def folder(self):
        path = pathlib.Path(tempfile.mkdtemp(prefix='registry_test.'))
        self.addCleanup(shutil.rmtree, path)
        return path

    def ask(self, command, reference, **options):
        """The driver's answer. An option may be a list; "_" is "-"."""
        arguments = []
        for name, value in options.items():
            for one in value if isinstance(value, list) else [value]:
                arguments += [name.replace('_', '-'), str(one)]
        begin = time.monotonic()
        done = subprocess.run([DRIVER, command, reference, *arguments], capture_output=True, text=True,
                              timeout=30, check=True)
        self.seconds = time.monotonic() - begin
        self.assertNotIn(PASSWORD, done.stdout + done.stderr)
        return json.loads(done.stdout)

    def at(self, registry, command='pull', name='demo:v1', **options):
        return self.ask(command, f'{registry.host}/{name}', insecure=registry.host, **options)

    def pulls(self, registry, **options):
        answer = self.at(registry, **options)
        self.assertNotIn('error', answer)
        return answer

    def fails(self, code, words, registry, **options):
        answer = self.at(registry, **options)
        self.assertEqual(answer.get('code'), code, answer)
        self.assertIn(words, answer['error'])
        return answer
