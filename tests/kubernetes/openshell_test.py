# SPDX-License-Identifier: Apache-2.0
"""docs/guides/openshell.md: its commands, typed on a real Kubernetes with the manifests of examples/openshell, whose runs are on a gateway
of OpenShell 0.1 that is the tests' own (tests/openshell/v01), with an issuer of tokens beside it.

A checkout is an empty directory, and an agent writes a word, since there is no forge and no model here.

usage: tests/openshell/v01/run DIR ../../kubernetes/openshell_test.py AGENTIC-CI TESTBED CACHE ROOT [CASE...]
"""
import contextlib
import ctypes
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import yaml

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / 'openshell/v01')]
from front import make_certificates  # noqa: E402
from gateway import Gateway  # noqa: E402
from issuer import Issuer  # noqa: E402
from openshell import SandboxClient, TlsConfig  # noqa: E402
from openshell._proto import datamodel_pb2, openshell_pb2 as pb, sandbox_pb2  # noqa: E402

from cluster import Cluster, make_root, require  # noqa: E402
from digest import name_by_digest  # noqa: E402
from guide import BLOCK, make_volume, type_line  # noqa: E402

BINARY, TESTBED, CACHE, ROOT = (os.path.abspath(one) for one in sys.argv[1:5])
GUIDE = pathlib.Path(ROOT, 'docs/guides/openshell.md').read_text()
NODE, IMAGE, WORKSPACE = '10.201.0.1', 'registry.example.com/agents/runner', 'other'
TOKENS = {'token-of-ci': 'ci:user', 'token-of-a-stranger': 'stranger:none', 'token-of-ann': 'ann:admin'}
SECRETS = {'openshell-client': 'token-of-ci', 'stranger': 'token-of-a-stranger', 'audience': 'for-another'}
CLONE_NEWNET = 0x40000000
AGENT = '            - --\n            - sh\n            - -c\n            - test -n "$ANTHROPIC_API_KEY" && echo fixed >file{more}\n'
INSTEAD = (
    ('[git, clone, --depth=1, "https://git.example.com/OWNER/REPO", /work/repo]', '[mkdir, /work/repo]'),
    ('            - --agent=claude-code\n', ''), ('            - --prompt=Fix the failing test.\n', AGENT.format(more='')),
    ('requests: {cpu: 250m', 'requests: {cpu: 50m'), ('value: ci}', f'value: {WORKSPACE}}}'))
# What each job has in place of what the guide's has, and which row of the guide's table that is.
CONFIG, CLIENT, PROVIDER = '- configMap: {name: fleet,', 'secretKeyRef: {name: openshell-client,', '--gateway-provider=anthropic'
FAILURES = {
    'unregistered': (66, 'no gateway is registered', 'value: /config}', 'value: /work}'),
    'provider': (66, 'holds no provider', PROVIDER, '--gateway-provider=openai'),
    'release': (69, 'is not supported', CONFIG, '- configMap: {name: later,'),
    'port': (75, "OpenShell's gateway: ", CONFIG, '- configMap: {name: elsewhere,'),
    'issuer': (75, 'OPENSHELL_OIDC_CLIENT_SECRET: GET ', CONFIG, '- configMap: {name: unissued,'),
    'stranger': (77, 'PERMISSION_DENIED', CLIENT, 'secretKeyRef: {name: stranger,'),
    'role': (77, 'PERMISSION_DENIED', PROVIDER, '--approval-mode=manual'),
    'secret': (78, 'invalid_grant', CLIENT, 'secretKeyRef: {name: old,'),
    'unset': (78, 'is not set', 'OPENSHELL_OIDC_CLIENT_SECRET,', 'OPENSHELL_OIDC,'),
    'audience': (78, 'UNAUTHENTICATED', CLIENT, 'secretKeyRef: {name: audience,'),
    'authority': (78, 'SSL certificate problem', 'name: openshell-ca,', 'name: other-ca,')}


@contextlib.contextmanager
def in_network(path):
    """This thread, and those that it starts, are in the network namespace `path`."""
    libc = ctypes.CDLL(None, use_errno=True)

    def enter(namespace):
        if libc.setns(namespace.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), 'setns')
    with open('/proc/thread-self/ns/net', 'rb') as own, open(path, 'rb') as other:
        enter(other)
        try:
            yield
        finally:
            enter(own)


def section(title):
    return re.search(rf'(?ms)^## {title}\n(.*?)(?=^## |\Z)', GUIDE)[1]


def lines(text):
    return [line for kind, block in BLOCK.findall(text) if kind == 'sh' for line in block.splitlines()]


class Fleet(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.top = pathlib.Path(tempfile.mkdtemp(prefix='openshell-fleet-'))
        cls.addClassCleanup(shutil.rmtree, cls.top, ignore_errors=True)
        cls.cluster = cls.enterClassContext(Cluster(TESTBED, CACHE))
        cls.enterClassContext(in_network('/run/netns/' + cls.cluster.inside[1].rpartition('/')[2]))
        keys = cls.top / 'keys'
        make_certificates(keys, hosts=[NODE])
        options = {'listen': NODE + ':0', 'tls': str(keys), 'tokens': TOKENS, 'load_s': 0.05}
        cls.gate, cls.later = (cls.enterClassContext(Gateway(**options, release=release)) for release in ('0.1.10', '0.2.0'))
        cls.issuer = Issuer({f'secret-of-{name}': token for name, token in SECRETS.items()}, NODE, keys)
        cls.addClassCleanup(cls.issuer.close)
        cls.hold_provider(keys / 'ca.crt')
        cls.cluster.load(IMAGE + ':1', make_root(cls.top / 'root', files={'/usr/bin/agentic-ci': BINARY}))
        cls.digest = name_by_digest(cls.cluster, IMAGE).rsplit(':', 1)[1]
        cls.set_stage(keys / 'ca.crt')
        cls.typed = [cls.type(line) for line in lines(section('A run as a Job'))]

    @classmethod
    def hold_provider(cls, ca):
        """As an admin of the workspace does: the gateway holds the model's key."""
        scope = datamodel_pb2.WorkspaceSelector(workspace=WORKSPACE)
        key = pb.ProviderProfileCredential(name='key', env_vars=['ANTHROPIC_API_KEY'], auth_style='header', header_name='x-api-key')
        endpoint = sandbox_pb2.NetworkEndpoint(host='api.anthropic.com', port=443, protocol='rest',
                                               enforcement=sandbox_pb2.NETWORK_ENFORCEMENT_MODE_ENFORCE,
                                               access=sandbox_pb2.NETWORK_ACCESS_PRESET_READ_WRITE)
        profile = pb.ProviderProfile(id='anthropic', display_name='anthropic', credentials=[key], endpoints=[endpoint])
        item = pb.ProviderProfileImportItem(profile=profile)
        provider = datamodel_pb2.Provider(type='anthropic', credentials={'ANTHROPIC_API_KEY': 'a key'})
        provider.metadata.name = 'anthropic'
        with SandboxClient(cls.gate.address, tls=TlsConfig(ca), bearer_token='token-of-ann') as client:
            client._stub.ImportProviderProfiles(pb.ImportProviderProfilesRequest(profiles=[item], workspace_scope=scope))
            client._stub.CreateProvider(pb.CreateProviderRequest(provider=provider, workspace_scope=scope))

    @classmethod
    def adapt(cls, text):
        for old, new in (*INSTEAD, ('openshell.openshell.svc.cluster.local:8080', cls.gate.address),
                         ('https://login.example.com/realms/ci', cls.issuer.url),
                         ('runner@sha256:' + 64 * '0', 'runner@sha256:' + cls.digest)):
            text = text.replace(old, new)
        return text

    @classmethod
    def set_stage(cls, ca):
        """What the guide supposes: a checkout of the project, the authority, and the client's secret."""
        cls.files = cls.top / 'project'
        for path in ('kubernetes/namespace.yaml', 'openshell/fleet.yaml', 'openshell/run.yaml'):
            target = cls.files / 'examples' / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(cls.adapt(pathlib.Path(ROOT, 'examples', path).read_text()))
        shutil.copy(ca, cls.files / 'ca.crt')
        (cls.files / 'client-secret').write_text('secret-of-openshell-client')
        (cls.top / 'bin').mkdir()
        (cls.top / 'bin/agentic-ci').symlink_to(BINARY)
        make_volume(cls.cluster, cls.top / 'reports', '100Gi')

    @classmethod
    def type(cls, line, **variables):
        path = {'PATH': f'{cls.top}/bin:{cls.cluster.environment["PATH"]}'}
        return type_line(cls.cluster, line, cls.files, {**path, **variables})

    def tearDown(self):
        self.assertEqual(self.gate.violations + self.later.violations, [])

    def begin(self, name, *instead):
        """Creates the guide's Job as `name`, with something else in place of something."""
        text = (self.files / 'examples/openshell/run.yaml').read_text().replace('generateName: run-', 'name: ' + name)
        for old, new in instead:
            self.assertIn(old, text)
            text = text.replace(old, new)
        self.cluster.kubectl('create', '-f', '-', stdin=text)

    def pod(self, job):
        found = self.cluster.api('GET', self.cluster.path('Pod', 'agents') + f'?labelSelector=job-name={job}')['items']
        return found[0]['metadata']['name'] if found else None

    def end_of(self, job):
        """(exit status, log) of the pod of a Job."""
        pod = self.cluster.until(lambda: self.pod(job), 60)
        return self.cluster.ended('agents', pod, 'run')['exitCode'], self.cluster.log('agents', pod, 'run')

    def creations(self):
        return [one for one in self.gate.calls if one['method'] == 'CreateSandbox']

    def register(self, snippet, **variables):
        """Types what a job of the guide's does to register the gateway, and gives the variables that it then has."""
        (block,) = [text for kind, text in BLOCK.findall(GUIDE) if kind == 'yaml' and text.startswith(f'# {snippet}\n')]
        place = str(self.top / 'config')
        script = yaml.safe_load(block)
        script = script[0]['run'] if snippet.startswith('github') else '\n'.join(script['agentic-ci']['before_script'])
        done = self.type('set -e\n' + script.replace('/tmp/config', place), RUNNER_TEMP=str(self.top), **variables)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.addCleanup(shutil.rmtree, place)
        return {'XDG_CONFIG_HOME': place, 'OPENSHELL_WORKSPACE': WORKSPACE, 'SSL_CERT_FILE': str(self.files / 'ca.crt'),
                'OPENSHELL_OIDC_CLIENT_SECRET': 'secret-of-openshell-client'}

    def metadata(self):
        return yaml.safe_load((self.files / 'examples/openshell/fleet.yaml').read_text().split('---')[0])['data']['metadata.json']

    def test_the_guides_run_has_the_agents_change(self):
        self.assertGreater(len(self.typed), 5)
        for done in self.typed:
            self.assertEqual(done.returncode, 0, f'{done.args[-1]}: {done.stdout}')
        (report,) = (one for one in (self.top / 'reports').iterdir() if one.name.startswith('run-'))
        self.assertIn('+fixed\n', (report / 'changes.patch').read_text())
        created = self.creations()[0]
        self.assertEqual(created['caller'], 'ci')
        self.assertEqual(created['message']['workspace_scope'], {'workspace': WORKSPACE})
        labels = created['message']['labels']
        self.assertEqual((labels['managed-by'], labels['agentic-ci-run']), ('agentic-ci', created['message']['name']))
        self.assertEqual(created['message']['spec']['providers'], ['anthropic'])
        self.assertEqual(self.issuer.forms[0], {'grant_type': 'client_credentials', 'client_id': 'agentic-ci', 'audience': 'openshell-cli',
                                                'client_secret': 'secret-of-openshell-client'})
        self.assertIn((WORKSPACE, 'anthropic'), self.gate.service.providers.providers)

    def test_the_api_takes_each_manifest(self):
        for name, version in (('run', 'create'), ('fleet', 'apply')):
            self.cluster.kubectl(version, '--dry-run=server', '-f', str(self.files / f'examples/openshell/{name}.yaml'))

    def test_each_failure_is_as_the_table_has_it(self):
        rows = re.findall(r'(?m)^\| (\d+) \| `([^`]+)` \|', section('When it fails'))
        fleet = (self.files / 'examples/openshell/fleet.yaml').read_text().split('---')[0]
        there, nowhere = self.gate.address, NODE + ':9'
        for name, what, instead in (('later', there, self.later.address), ('elsewhere', there, nowhere),
                                    ('unissued', self.issuer.url, 'https://' + nowhere)):
            text = fleet.replace('name: fleet', 'name: ' + name).replace(what, instead)
            self.cluster.kubectl('apply', '-f', '-', stdin=text)
        subprocess.run(['openssl', 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', '/dev/null', '-subj', '/CN=another',
                        '-out', str(self.top / 'other.crt')], check=True, capture_output=True)
        self.cluster.kubectl('create', 'configmap', 'other-ca', '-n', 'agents', f'--from-file=ca.crt={self.top}/other.crt')
        for name in ('stranger', 'audience', 'old'):
            self.cluster.kubectl('create', 'secret', 'generic', name, '-n', 'agents', f'--from-literal=secret=secret-of-{name}')
        for name, (_, _, *instead) in FAILURES.items():
            self.begin(name, instead)
        unseen = set(rows)
        for name, (status, said, *_) in FAILURES.items():
            with self.subTest(name):
                ended, log = self.end_of(name)
                print(f'{name}: {ended}\n{log}', flush=True)
                self.assertEqual(ended, status, log)
                self.assertIn(said, log)
                shown = {row for row in rows if int(row[0]) == status and all(part in log for part in row[1].split('...'))}
                self.assertTrue(shown, log)
                unseen -= shown
        self.assertEqual(unseen, set())

    def test_a_job_leaves_nothing_but_if_it_is_killed(self):
        metadata = self.files / 'metadata.json'
        metadata.write_text(self.metadata())
        variables = self.register('gitlab-ci.yaml', OPENSHELL_METADATA=str(metadata), OPENSHELL_CA=str(self.files / 'ca.crt'))
        show, delete = lines(section('What a killed job leaves'))
        for job in ('cancelled', 'killed'):
            self.begin(job, ('>file', '>file; sleep 300'))
        for job in ('cancelled', 'killed'):
            pod = self.cluster.until(lambda job=job: self.pod(job), 60)
            self.cluster.running('agents', pod)
            self.cluster.until(lambda pod=pod: 'agent started' in self.cluster.log('agents', pod, 'run'), 60)
        container = self.cluster.container('agents', pod, 'run')['containerID'].removeprefix('containerd://')
        self.cluster.containerd('tasks', 'kill', '--signal', 'SIGKILL', container)
        self.assertEqual(self.end_of('killed')[0], 137)
        self.cluster.kubectl('delete', 'job', 'cancelled', '-n', 'agents')
        self.cluster.until(lambda: len(self.gate.service.sandboxes) == 1, 60)
        ((_, name),) = self.gate.service.sandboxes
        self.assertEqual(self.type(show, **variables).stdout.split()[0], name)
        self.assertEqual(self.type(delete, NAME=name, **variables).returncode, 0)
        self.cluster.until(lambda: self.type(show, **variables).stdout == '', 60)

    def test_a_workflow_registers_the_gateway(self):
        variables = self.register('github-steps.yaml', METADATA=self.metadata(), CA=(self.files / 'ca.crt').read_text())
        done = self.type(lines(section('What a killed job leaves'))[0], **variables)
        self.assertEqual(done.returncode, 0, done.stdout)


if __name__ == '__main__':
    require(TESTBED)
    unittest.main(argv=sys.argv[:1] + sys.argv[5:], verbosity=2)
