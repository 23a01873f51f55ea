# SPDX-License-Identifier: Apache-2.0
"""The manifests for Kubernetes: they fit its published schemas, and their commands run a whole suite in shards and merge it.

usage: tests/eval/run BUILD kubernetes_test.py AGENTIC-CI ROOT
"""
import copy
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import kubernetes_validate
import yaml

BINARY, ROOT = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
sys.path.insert(0, str(ROOT / 'tests/services/model'))
from model import Model  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
EXAMPLES = ROOT / 'examples/evaluation'
SUITE = EXAMPLES / 'document-assistant.yaml'
VERSIONS = ('1.30', '1.37')
AGENT = '--agent claude-code --provider anthropic'


def documents(name):
    return list(yaml.safe_load_all((EXAMPLES / name).read_text()))


class Kubernetes(unittest.TestCase):
    def setUp(self):
        self.top = pathlib.Path(tempfile.mkdtemp(prefix='kubernetes-test-'))
        self.addCleanup(shutil.rmtree, self.top, ignore_errors=True)
        self.top.chmod(0o755)
        for name in ('tools', 'suite', 'results', 'scratch'):
            (self.top / name).mkdir()
        (self.top / 'tools/agentic-ci').symlink_to(BINARY)
        shutil.copy(SUITE, self.top / 'suite/suite.yaml')

    def test_they_fit_the_schemas(self):
        for name in ('kubernetes.yaml', 'kubernetes-merge.yaml'):
            for version in VERSIONS:
                for document in documents(name):
                    kubernetes_validate.validate(document, version, strict=True)
        # The control: what is misspelt does not.
        job = copy.deepcopy(documents('kubernetes.yaml')[1])
        job['spec']['completionmode'] = job['spec'].pop('completionMode')
        with self.assertRaises(kubernetes_validate.ValidationError):
            kubernetes_validate.validate(job, VERSIONS[0], strict=True)

    def pods(self):
        for name in ('kubernetes.yaml', 'kubernetes-merge.yaml'):
            for job in documents(name):
                if job['kind'] == 'Job':
                    yield job['spec']['template']['spec']

    def test_no_pod_has_more_rights_than_it_needs(self):
        for pod in self.pods():
            self.assertEqual((pod['automountServiceAccountToken'], pod['securityContext']['runAsNonRoot']), (False, True))
            for container in [*pod.get('initContainers', ()), *pod['containers']]:
                self.assertEqual(container['securityContext'], {'allowPrivilegeEscalation': False, 'readOnlyRootFilesystem': True,
                                                                'capabilities': {'drop': ['ALL']}})
                self.assertIn('@sha256:', container['image'])

    def call(self, container, index, *changes):
        """Runs what a container runs, with this machine's directories for its volumes."""
        script = container['args'][0]
        for old, new in (*changes, *((f'/{name}/', f'{self.top}/{name}/') for name in ('tools', 'suite', 'results', 'scratch'))):
            self.assertTrue(old in script or old.startswith('/'), old)
            script = script.replace(old, new)
        done = subprocess.run([*container['command'], script], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=600,
                              env={'PATH': os.environ['PATH'], 'HOME': str(self.top), 'JOB_COMPLETION_INDEX': str(index),
                                   'AGENT': (HERE / 'agent.py').read_text()})
        self.said = done.stdout + done.stderr
        return done.returncode

    def test_the_shards_run_the_whole_suite_and_are_merged(self):
        evaluate, merge = (pod['containers'][0] for pod in self.pods())
        shards = documents('kubernetes.yaml')[1]['spec']['completions']
        turns = {'turns': [{'text': 'x', 'action': {'run': {'command': 'cat *'}}}, {'text': '2.4M Northwind 45'}]}
        with Model(self.top / 'model', turns) as model:
            (self.top / 'policy.yml').write_text(f"defaults: none\nendpoints: ['host.openshell.internal:{model.port}']\n")
            agent = f'--policy {self.top}/policy.yml -- python3 -c "$AGENT" http://host.openshell.internal:{model.port}'
            for index in range(shards):
                self.assertEqual(self.call(evaluate, index, (AGENT, agent)), 0, self.said)
        fetch = merge['args'][0][:merge['args'][0].index('exec ')]
        words = (fetch, ''), ('/scratch/agentic-ci', BINARY)
        self.assertEqual(self.call(merge, 0, *words), 0, self.said)
        listed = subprocess.run([BINARY, 'eval', 'list', SUITE], capture_output=True, text=True, check=True).stdout.split()
        self.assertEqual(sorted(one.name for one in (self.top / 'results/all/cells').iterdir()), sorted(listed))
        cells = json.loads((self.top / 'results/all/eval.json').read_text())['cells']
        self.assertEqual({cell['outcome'] for cell in cells if cell['injection_task']}, {'resisted'})
        self.assertTrue((self.top / 'results/all/eval.html').exists())
        # Once more, nothing changes; without a shard, its cells are missing; a cell that two parts have is refused.
        self.assertEqual(self.call(merge, 0, *words), 0, self.said)
        shutil.rmtree(self.top / 'results/all')
        lost = (self.top / 'results/shard-0').rename(self.top / 'lost')
        self.assertEqual(self.call(merge, 0, *words), 77, self.said)
        shutil.copytree(lost, self.top / 'results/shard-0')
        shutil.copytree(lost, self.top / 'results/shard-9')
        self.assertEqual(self.call(merge, 0, *words), 65, self.said)
        self.assertIn('shard-0 and in', self.said)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
