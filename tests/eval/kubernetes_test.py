# SPDX-License-Identifier: Apache-2.0
"""What `eval run --kubernetes` prints: it fits Kubernetes' published schemas, and its commands run a whole suite in shards and merge it.

usage: tests/eval/run BUILD kubernetes_test.py AGENTIC-CI ROOT
"""
import base64
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
SUITE = 'examples/evaluation/document-assistant.yaml'
EXAMPLE = ROOT / 'examples/evaluation/kubernetes.yaml'
IMAGE = 'registry.example.com/agents/evaluation@sha256:' + 64 * '0'
EXAMPLE_OPTIONS = ('--shards', '8', '--jobs', '2', '--trials', '10', '--agent', 'claude-code', '--provider', 'anthropic')
VERSIONS = ('1.30', '1.37')
ODD = b'# \x01\r\n# \xc2\x85\xe2\x80\xa8\n  endpoints: []'


def printed(suite, *words):
    done = subprocess.run([BINARY, 'eval', 'run', suite, '--kubernetes', IMAGE, *map(str, words)], cwd=ROOT, capture_output=True,
                          text=True, stdin=subprocess.DEVNULL)
    return done.stdout if done.returncode == 0 else done.stderr


def pods(documents):
    return [one['spec']['template']['spec'] for one in documents if one['kind'] == 'Job']


class Kubernetes(unittest.TestCase):
    def setUp(self):
        self.top = pathlib.Path(tempfile.mkdtemp(prefix='kubernetes-test-'))
        self.addCleanup(shutil.rmtree, self.top, ignore_errors=True)
        self.top.chmod(0o755)
        for name in ('bin', 'evaluation', 'results', 'scratch'):
            (self.top / name).mkdir()
        (self.top / 'bin/agentic-ci').symlink_to(BINARY)

    def test_the_example_is_what_is_printed(self):
        self.maxDiff = None
        command = ' '.join(['agentic-ci eval run', SUITE, '--kubernetes', IMAGE, *EXAMPLE_OPTIONS])
        self.assertEqual(EXAMPLE.read_text(), printed(SUITE, *EXAMPLE_OPTIONS), f'write it anew: {command} >{EXAMPLE}')

    def test_it_fits_the_schemas(self):
        documents = list(yaml.safe_load_all(EXAMPLE.read_text()))
        self.assertEqual([one['kind'] for one in documents], ['ConfigMap', 'PersistentVolumeClaim', 'Job', 'Job'])
        more = [one for file in sorted((ROOT / 'examples/kubernetes').glob('*.yaml')) for one in yaml.safe_load_all(file.read_text())]
        runner = next(one for one in more if 'template' in one)  # Values of a chart.
        more[more.index(runner)] = {'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': 'runner'}, **runner['template']}
        own = [one for one in more if '.' not in one['apiVersion'] or '.k8s.io/' in one['apiVersion']]
        self.assertGreaterEqual(len(own), 9)
        for version in VERSIONS:
            for document in documents + own:
                kubernetes_validate.validate(document, version, strict=True)
        # The control: what is misspelt does not.
        job = copy.deepcopy(documents[2])
        job['spec']['completionmode'] = job['spec'].pop('completionMode')
        with self.assertRaises(kubernetes_validate.ValidationError):
            kubernetes_validate.validate(job, VERSIONS[0], strict=True)

    def test_no_pod_has_more_rights_than_it_needs_and_each_says_how_much_it_uses(self):
        for pod in pods(yaml.safe_load_all(EXAMPLE.read_text())):
            self.assertEqual((pod['automountServiceAccountToken'], pod['securityContext']['runAsNonRoot']), (False, True))
            self.assertEqual(pod['securityContext']['seccompProfile'], {'type': 'RuntimeDefault'})
            for container in [*pod.get('initContainers', ()), *pod['containers']]:
                self.assertEqual(container['securityContext'], {'allowPrivilegeEscalation': False, 'readOnlyRootFilesystem': True,
                                                                'capabilities': {'drop': ['ALL']}})
                self.assertEqual(container['image'], IMAGE)
                self.assertEqual(container['resources']['requests'], container['resources']['limits'])
                self.assertEqual(set(container['resources']['limits']), {'cpu', 'memory'})

    def test_a_token_file_is_a_projected_token_and_needs_no_secret(self):
        provider = 'anthropic:federation_rule=fdrl_x,organization=00000000-0000-0000-0000-000000000000,token_file=%s'
        agent = ('--agent', 'claude-code')
        for more, audience in (('', 'https://api.anthropic.com'), (',audience=own', 'own')):
            given = provider % '/var/run/secrets/agents/token' + more
            documents = list(yaml.safe_load_all(printed(SUITE, *agent, '--provider', given)))
            for version in VERSIONS:
                for document in documents:
                    kubernetes_validate.validate(document, version, strict=True)
            pod = pods(documents)[0]
            (container,) = pod['containers']
            self.assertIn(f'--provider={given}', container['args'])
            self.assertNotIn('envFrom', container)
            self.assertIn({'name': 'token-0', 'mountPath': '/var/run/secrets/agents', 'readOnly': True}, container['volumeMounts'])
            self.assertIn({'name': 'token-0', 'projected': {'sources': [{'serviceAccountToken': {
                'audience': audience, 'expirationSeconds': 3600, 'path': 'token'}}]}}, pod['volumes'])
        # The controls: a key is in a Secret; a token goes where nothing else is.
        self.assertIn('envFrom', pods(yaml.safe_load_all(printed(SUITE, *agent, '--provider', 'anthropic')))[0]['containers'][0])
        for path in ('/token', '/results/token', '/evaluation/a/token', '/a/../token', '/a//token', '/a:b/token', '/etc/token'):
            self.assertIn(f"error: --kubernetes: token_file: '{path}' ", printed(SUITE, *agent, '--provider', provider % path))
        both = ('--provider', provider % '/a/one', '--provider', 'openai:identity_provider=idp_x,service_account=svcacct_x,token_file=/a/two')
        self.assertIn('the directory of another token', printed(SUITE, *agent, *both))

    def unpack(self, documents):
        """The files of the ConfigMap as the pods have them."""
        config = documents[0]
        for item in pods(documents)[0]['volumes'][0]['configMap']['items']:
            file = self.top / 'evaluation' / item['path']
            file.parent.mkdir(parents=True, exist_ok=True)
            text = config.get('data', {}).get(item['key'])
            file.write_bytes(base64.b64decode(config['binaryData'][item['key']]) if text is None else text.encode())

    def test_files_come_along_byte_for_byte(self):
        suite = self.top / 'suite/suite.yaml'
        (suite.parent / 'sets').mkdir(parents=True)
        text = (ROOT / SUITE).read_text()
        probe = text.index('payload: >-')
        suite.write_text(text[:probe] + 'source: "file:sets/one.json"\n' + text[text.index('  - id: stage_data'):])
        (suite.parent / 'sets/one.json').write_text('{"id": "one", "payloads": ["x"]}')
        (self.top / 'policy.yml').write_bytes(ODD)
        documents = list(yaml.safe_load_all(printed(suite, '--policy', self.top / 'policy.yml', '--', 'true')))
        self.unpack(documents)
        for have, given in (('suite/suite.yaml', suite), ('suite/sets/one.json', suite.parent / 'sets/one.json'),
                            ('options/2-policy.yml', self.top / 'policy.yml')):
            self.assertEqual((self.top / 'evaluation' / have).read_bytes(), given.read_bytes())
        self.assertIn('--policy=/evaluation/options/2-policy.yml', pods(documents)[0]['containers'][0]['args'])
        # A ConfigMap has no more than 1 MiB.
        (suite.parent / 'sets/one.json').write_text(json.dumps({'id': 'one', 'payloads': [(600 << 10) * 'x']}))
        (self.top / 'policy.yml').write_bytes((600 << 10) * b'#')
        self.assertIn('and a ConfigMap at most 1048576', printed(suite, '--policy', self.top / 'policy.yml', '--', 'true'))

    def start(self, container, index):
        """Starts what a container runs, with this machine's directories for its volumes."""
        words = [*container['command'], *(one.replace('$$', '$') for one in container['args'])]
        for name in ('evaluation', 'results', 'scratch'):
            words = [word.replace(f'/{name}/', f'{self.top}/{name}/') for word in words]
        environment = {'PATH': f'{self.top}/bin:{os.environ["PATH"]}', 'JOB_COMPLETION_INDEX': str(index)}
        environment |= {one['name']: str(self.top / one['value'][1:]) for one in container.get('env', ())}
        return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                env=environment)

    def call(self, container, index=0):
        process = self.start(container, index)
        self.said = process.communicate(timeout=600)[0]
        return process.returncode

    def test_the_shards_run_the_whole_suite_and_are_merged(self):
        turns = {'turns': [{'text': 'x', 'action': {'run': {'command': 'cat *'}}}, {'text': '2.4M Northwind 45 $HOME'}]}
        with Model(self.top / 'model', turns) as model:
            (self.top / 'policy.yml').write_text(f"defaults: none\nendpoints: ['host.openshell.internal:{model.port}']\n")
            documents = list(yaml.safe_load_all(printed(
                SUITE, '--shards', 3, '--policy', self.top / 'policy.yml', '--', 'python3', '-c', (HERE / 'agent.py').read_text(),
                f'http://host.openshell.internal:{model.port}')))
            self.unpack(documents)
            evaluate, merge = (pod['containers'][0] for pod in pods(documents))
            # An index may run twice at the same time: the second waits, or gives up for Kubernetes to try again.
            twins = [self.start(evaluate, 0) for _ in range(2)]
            ends = []
            for twin in twins:
                self.said = twin.communicate(timeout=600)[0]
                ends.append(twin.returncode)
            self.assertIn(sorted(ends), ([0, 0], [0, 75]), self.said)
            for index in (0, 1, 2):
                self.assertEqual(self.call(evaluate, index), 0, self.said)
        self.assertEqual(self.call(merge), 0, self.said)
        listed = subprocess.run([BINARY, 'eval', 'list', ROOT / SUITE], capture_output=True, text=True, check=True).stdout.split()
        self.assertEqual(sorted(one.name for one in (self.top / 'results/all/cells').iterdir()), sorted(listed))
        cells = json.loads((self.top / 'results/all/eval.json').read_text())['cells']
        self.assertEqual({cell['outcome'] for cell in cells if cell['injection_task']}, {'resisted'})
        self.assertTrue((self.top / 'results/all/eval.html').exists())
        # Once more, nothing changes; without a shard, its cells are missing; a cell that two parts have is refused.
        self.assertEqual(self.call(merge), 0, self.said)
        shutil.rmtree(self.top / 'results/all')
        lost = (self.top / 'results/shard-0').rename(self.top / 'lost')
        self.assertEqual(self.call(merge), 77, self.said)
        shutil.copytree(lost, self.top / 'results/shard-0')
        shutil.copytree(lost, self.top / 'results/shard-9')
        self.assertEqual(self.call(merge), 65, self.said)
        self.assertIn('shard-0 and in', self.said)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
