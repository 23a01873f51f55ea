# SPDX-License-Identifier: Apache-2.0
"""The commands of docs/guides/kubernetes.md, typed on a real Kubernetes with the manifests of examples/kubernetes.

A line of a `sh` block with `# refused: TEXT` fails, and says TEXT; every other one succeeds. There is no model and no forge here, so an
agent prints a word instead of asking one, and a checkout is an empty directory.

usage: guide_test.py AGENTIC-CI TESTBED CACHE ROOT [CASE...]
"""
import json
import os
import pathlib
import re
import shutil
import sys
import tempfile
import time
import unittest

from cluster import Cluster, make_root, require
from digest import name_by_digest
from guide import BLOCK, make_volume, type_line

BINARY, TESTBED, CACHE, ROOT = (os.path.abspath(one) for one in sys.argv[1:5])
POLICY_SECONDS = 60
GUIDE = pathlib.Path(ROOT, 'docs/guides/kubernetes.md').read_text()
IMAGE = 'registry.example.com/agents/evaluation'
INSTEAD = (
    ('[git, clone, --depth=1, "https://git.example.com/OWNER/REPO", /work/repo]', '[mkdir, /work/repo]'),
    ('--jobs 2 --memory 2GiB --agent claude-code --provider anthropic', "--memory 2GiB --cpus 0.5 -- sh -c 'echo May'"),
    ('            - --agent=claude-code\n', ''), ('            - --prompt=Fix the failing test.\n', ''),
    ('cpu: "1", memory: 2560Mi', 'cpu: 500m, memory: 2560Mi'))
PROVIDER = re.compile(r' {12}- --provider=anthropic.*\n')
RUN = '            - --\n            - sh\n            - -c\n            - if cat /identity/token; then exit 1; fi; echo fixed >file\n'


class Guide(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.top = pathlib.Path(tempfile.mkdtemp(prefix='guide-test-'))
        cls.addClassCleanup(shutil.rmtree, cls.top, ignore_errors=True)
        cls.cluster = cls.enterClassContext(Cluster(TESTBED, CACHE))
        cls.cluster.load(IMAGE + ':1', make_root(cls.top / 'root', files={'/usr/bin/agentic-ci': BINARY}))
        cls.digest = name_by_digest(cls.cluster, IMAGE).rsplit(':', 1)[1]
        cls.files = cls.top / 'project'
        shutil.copytree(pathlib.Path(ROOT, 'examples/kubernetes'), cls.files / 'examples/kubernetes')
        for file in cls.files.glob('examples/kubernetes/*.yaml'):
            file.write_text(cls.adapt(file.read_text()))

    @classmethod
    def adapt(cls, text):
        for old, new in (*INSTEAD, (64 * '0', cls.digest)):
            text = text.replace(old, new)
        return PROVIDER.sub(RUN, text)

    def type(self, line):
        return type_line(self.cluster, line, self.files, {'REPORTS': str(self.top / 'reports'),
                                                          'PATH': f'{self.top}/bin:{self.cluster.environment["PATH"]}'})

    def test_every_command_does_what_it_says(self):
        (self.top / 'bin').mkdir()
        (self.top / 'bin/agentic-ci').symlink_to(BINARY)
        for claim, size in (('reports', '100Gi'), ('agentic-ci-eval', '5Gi')):
            make_volume(self.cluster, self.top / claim, size)
        typed = 0
        for kind, text in BLOCK.findall(GUIDE):
            text = self.adapt(text)
            if kind == 'yaml':
                (self.files / text.split('\n', 1)[0].removeprefix('# ')).write_text(text)
                continue
            lines = text.splitlines() if kind == 'sh' else [line[2:] for line in text.splitlines() if line.startswith('$ ')]
            for line in lines:
                refusal = line.partition('# refused: ')[2]
                done = self.type(line)
                end = time.monotonic() + POLICY_SECONDS
                while refusal and done.returncode == 0 and time.monotonic() < end:  # A new policy is not in force at once.
                    time.sleep(1)
                    done = self.type(line)
                typed += 1
                self.assertEqual(done.returncode != 0, bool(refusal), f'{line}: {done.stdout}')
                self.assertIn(refusal, done.stdout)
        self.assertGreater(typed, 20)
        records = [json.loads(file.read_text()) for file in (self.top / 'reports').glob('*/run.json')]
        self.assertEqual([record['outcome']['kind'] for record in records], ['success'])
        self.assertTrue((self.top / 'agentic-ci-eval/all/eval.html').exists())


if __name__ == '__main__':
    require(TESTBED)
    unittest.main(argv=sys.argv[:1] + sys.argv[5:], verbosity=2)
