# SPDX-License-Identifier: Apache-2.0
"""Asks registry_driver, and looks at what it says."""
import concurrent.futures
import io
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
                              timeout=600, check=True)
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


def run_class(case):
    """(its output, whether it passed)"""
    output = io.StringIO()
    result = unittest.TextTestRunner(output).run(unittest.defaultTestLoader.loadTestsFromTestCase(case))
    return f'{case.__name__}: {output.getvalue()}', result.wasSuccessful() and result.testsRun > 0


def main():
    """Runs what the command line names; else every class, each in a thread: they mostly wait."""
    if sys.argv[1:]:
        unittest.main()
    cases = [value for value in vars(sys.modules['__main__']).values()
             if isinstance(value, type) and issubclass(value, Case) and value is not Case]
    with concurrent.futures.ThreadPoolExecutor() as pool:
        results = list(pool.map(run_class, cases))
    print('\n'.join(output for output, _ in results))
    sys.exit(0 if results and all(passed for _, passed in results) else 1)
