# SPDX-License-Identifier: Apache-2.0
"""The action in runners of GitHub's Actions Runner Controller: pods with the very specification of examples/kubernetes/arc-values.yaml,
in the namespace of the guide, which is `restricted`. In them act runs the workflow of examples/github-review with the guide's changes,
against the GitHub service of the tests. Stand-ins are the runner's program, the actions of GitHub's own, and the agent's program.

usage: arc_test.py AGENTIC-CI TESTBED CACHE ROOT [CASE...]
"""
import base64
import copy
import glob
import io
import json
import os
import pathlib
import re
import secrets
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

import yaml

from cluster import SKIPPED, Cluster, Refused, make_root, require
from digest import name_by_digest

BINARY, TESTBED, CACHE, ROOT = (os.path.abspath(one) for one in sys.argv[1:5])
ROOT = pathlib.Path(ROOT)
sys.path.insert(0, str(ROOT / 'tests/action'))
from stand_ins import CHECKOUT, SHA, UPLOAD, write  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
NAMESPACE, RUNNER = 'agents', 1001
IMAGE = 'registry.example.com/agents/runner'
NODE_ADDRESS = '10.201.0.1'
COMMIT = '0123456789abcdef0123456789abcdef01234567'
KEY = 'sk-test-0123456789'
VALUES = yaml.safe_load((ROOT / 'examples/kubernetes/arc-values.yaml').read_text())
GUIDE = (ROOT / 'docs/guides/kubernetes.md').read_text()
EXAMPLE = (ROOT / 'examples/github-review/.github/workflows/review.yml').read_text()
MARKER = 'arc-' + secrets.token_hex(4)
# As most agents, a program of node. With the variable HANG it goes on until it is ended.
AGENT = r'''#!/usr/bin/env node
const { spawnSync } = require('child_process');
const fs = require('fs');
if (process.argv[2] === '--version') {
  console.log('0.0.0 (stand-in)');
  process.exit();
}
if (process.env.HANG) spawnSync('sh', ['-c', `echo begun; sleep 600; : ${process.env.HANG}`], { stdio: 'inherit' });
const ask = (url) => spawnSync('curl', ['-fsS', '--max-time', '10', url]).stdout.toString().trim();
const asked = `allowed=${ask('http://host.openshell.internal:8000/hello')}\nrefused=${ask('http://elsewhere.example.com/hello')}\n`;
fs.writeFileSync('seen', `${asked}user=${process.getuid()}\n${JSON.stringify(process.env)}\n`);
const finding = { rule: 'typo', severity: 'warning', message: 'A typo.', path: 'notes.txt', line: 2, suggestion: 'right' };
fs.writeFileSync('agentic-ci-findings.json', JSON.stringify({ findings: [finding] }));
console.log(JSON.stringify({ type: 'result', subtype: 'success', is_error: false, result: 'Found a typo.', num_turns: 1, session_id: 's',
  total_cost_usd: 0.5, usage: { input_tokens: 3, output_tokens: 4 } }));
'''
FORWARD = '''const net = require('net');
const [host, port] = process.argv[2].split(':');
net.createServer((client) => {
  const server = net.connect(port, host);
  client.on('error', () => server.destroy()).pipe(server).on('error', () => client.destroy()).pipe(client);
}).listen(process.argv[3], '127.0.0.1');
'''


def tool(*command):
    """What an install script of the tests prints; where it cannot, this suite is skipped as well."""
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.returncode)
    return done.stdout.strip()


def git(*words, cwd):
    return subprocess.run(['git', '-c', 'user.name=t', '-c', 'user.email=t@localhost', '-c', 'init.defaultBranch=main', *words], cwd=cwd,
                          check=True, capture_output=True, text=True).stdout.strip()


def workflow(**inputs):
    """The example's, with what the guide changes for runners of the controller, and these inputs."""
    changed = yaml.safe_load(re.search(r'```yaml\n# job.yaml\n(.*?)```', GUIDE, re.DOTALL)[1])
    one = yaml.safe_load(EXAMPLE.replace('@COMMIT', '@' + COMMIT))
    (job,), (step,) = one['jobs'].values(), changed.pop('steps')
    job.update(changed)
    job['steps'] = [known for known in job['steps'] if 'npm install' not in known.get('run', '')]  # The image has the agent.
    (ours,) = (known for known in job['steps'] if known.get('uses', '').startswith('OWNER/'))
    ours['with'].update(step['with'], **inputs)
    return json.dumps({('on' if name is True else name): part for name, part in one.items()})


class Arc(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.top = pathlib.Path(tempfile.mkdtemp(prefix='arc-test-'))
        cls.addClassCleanup(shutil.rmtree, cls.top, ignore_errors=True)
        cls.make_site()
        cls.cluster = cls.enterClassContext(Cluster(TESTBED, CACHE))
        cls.cluster.load(IMAGE + ':1', cls.make_image())
        cls.image = name_by_digest(cls.cluster, IMAGE)
        cls.cluster.kubectl('apply', '--server-side', '-f', str(ROOT / 'examples/kubernetes/namespace.yaml'))
        cls.cluster.kubectl('wait', '--for=create', 'serviceaccount/default', '-n', NAMESPACE, '--timeout=60s')
        service = subprocess.Popen(
            [*cls.cluster.inside, 'node', ROOT / 'tests/action/github.mjs', MODULES, cls.head, json.dumps(
                [{'filename': 'notes.txt', 'patch': '@@ -1 +1,2 @@\n first\n+wrong '}]), '1', cls.remote, NODE_ADDRESS],
            stdout=subprocess.PIPE, text=True)
        cls.addClassCleanup(service.stdout.close)
        cls.addClassCleanup(service.wait)
        cls.addClassCleanup(service.terminate)
        cls.url = service.stdout.readline().strip()

    @classmethod
    def make_site(cls):
        """The repository, whose pull request 7 changes notes.txt."""
        cls.site, cls.remote = cls.top / 'site', cls.top / 'remotes/acme/site'
        shutil.copytree(ROOT / 'examples/github-review/.agentic-ci', cls.site / '.agentic-ci')
        shutil.copy(ROOT / 'examples/policies/service-container.yml', cls.site / '.agentic-ci/openshell-policy.yml')
        write(cls.site / '.github/workflows/review.yml', workflow())
        write(cls.site / '.github/workflows/hangs.yml', workflow(env=f'HANG={MARKER}'))
        write(cls.site / 'notes.txt', 'first\n')
        git('init', '-q', cwd=cls.site)
        git('add', '-A', cwd=cls.site)
        git('commit', '-qm', 'base', cwd=cls.site)
        cls.base = git('rev-parse', 'HEAD', cwd=cls.site)
        git('checkout', '-qb', 'fix', cwd=cls.site)
        write(cls.site / 'notes.txt', 'first\nwrong \n')
        git('commit', '-qam', 'change', cwd=cls.site)
        cls.head = git('rev-parse', 'HEAD', cwd=cls.site)
        for name in ('merge', 'head'):
            git('update-ref', f'refs/pull/7/{name}', cls.head, cwd=cls.site)
        git('clone', '-q', '--mirror', cls.site, cls.remote, cwd=cls.top)
        git('checkout', '-q', 'main', cwd=cls.site)
        git('remote', 'add', 'origin', 'https://github.com/acme/site', cwd=cls.site)

    @classmethod
    def make_image(cls):
        """The runner's image: what GitHub's has that is needed here, and the agent and agentic-ci, as the guide says."""
        actions, home = cls.top / 'actions', cls.top / 'home'
        for name, text in (('checkout', CHECKOUT), ('upload-artifact', UPLOAD)):
            write(actions / name / 'action.yml', text)
        uses = dict(SHA.findall(EXAMPLE))
        for name, commit in {**uses, 'OWNER/agentic-ci': COMMIT}.items():
            write(actions / name.split('/')[1] / '.name', f'{name}@{commit}')
        for name in ('action', 'action.yml'):
            copy_into = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
            copy_into(ROOT / name, actions / 'agentic-ci' / name)
        write(home / '.gitconfig', '[safe]\ndirectory = *\n[url "file:///srv/remotes/"]\ninsteadOf = https://github.com/\n'
              '[uploadpack]\nallowAnySHA1InWant = true\n')
        write(home / 'run.sh', (HERE / 'runner.sh').read_text(), 0o755)
        write(cls.top / 'claude', AGENT, 0o755)
        write(cls.top / 'forward.js', FORWARD)
        write(cls.top / 'hello', 'heard\n')
        root = make_root(cls.top / 'root', programs=['/usr/bin/bash', '/usr/bin/git', '/usr/bin/curl', shutil.which('node')], files={
            '/usr/local/bin/agentic-ci': BINARY, '/usr/local/bin/claude': cls.top / 'claude', '/usr/bin/act': ACT, '/home/runner': home,
            '/srv/actions': actions, '/srv/site': cls.site, '/srv/remotes': cls.top / 'remotes', '/srv/forward.js': cls.top / 'forward.js',
            '/srv/www/hello': cls.top / 'hello', '/usr/share/git-core': '/usr/share/git-core',
            '/etc/ssl/certs/ca-certificates.crt': '/etc/ssl/certs/ca-certificates.crt'}, links={'/usr/bin/git-upload-pack': 'git'})
        with (root / 'etc/passwd').open('a') as users:
            users.write(f'runner:x:{RUNNER}:{RUNNER}:runner:/home/runner:/bin/bash\n')
        for path in [root / 'home/runner', *(root / 'home/runner').rglob('*')]:
            os.chown(path, RUNNER, RUNNER)
        return root

    def state(self):
        """What GitHub has been asked, and has."""
        done = subprocess.run([*self.cluster.inside, 'curl', '-qsS', '--noproxy', '*', self.url + '/_test/state'], check=True,
                              capture_output=True)
        state = json.loads(done.stdout)
        self.assertEqual(state['violations'], [])
        return state

    def runner(self, name, file='review.yml', **changes):
        """Makes a runner's pod, of which the chart and its controller add what is here; the job is in variables, where the real one
        has the address of its job."""
        repository = {'id': 1, 'full_name': 'acme/site', 'default_branch': 'main'}
        event = {'action': 'synchronize', 'repository': repository, 'pull_request': {
            'number': 7, 'draft': False, 'base': {'ref': 'main', 'sha': self.base, 'repo': repository},
            'head': {'ref': 'fix', 'sha': self.head, 'repo': repository}}}
        variables = {'WORKFLOW': file, 'EVENT': json.dumps(event), 'SERVICE': self.url.removeprefix('http://')}
        spec = copy.deepcopy(VALUES['template']['spec'])
        (container,) = spec['containers']
        self.assertEqual((container['name'], container['image'].split('@')[0]), ('runner', IMAGE))
        container.update(image=self.image, env=container.get('env', []) + [
            {'name': key, 'value': value} for key, value in variables.items()])
        # There is no DNS service in the testbed.
        made = {'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': name, 'namespace': NAMESPACE}, 'spec': {
            **spec, 'restartPolicy': 'Never', 'dnsPolicy': 'Default', **changes}}
        self.cluster.api('POST', self.cluster.path('Pod', NAMESPACE) + '?fieldValidation=Strict', made)
        return self.cluster.get('Pod', NAMESPACE, name)['metadata']['uid']

    def job(self, name):
        """Runs the review in a runner of its own, which then goes. Returns the outputs of all steps, and the artifacts by path."""
        self.runner(name)
        try:
            ended = self.cluster.ended(NAMESPACE, name)
            self.log = re.sub(r'\x1b\[[0-9;]*m', '', self.cluster.log(NAMESPACE, name))
            self.assertEqual(ended['exitCode'], 0, self.log)
        finally:
            self.cluster.delete('Pod', NAMESPACE, name)
        archive = base64.b64decode(self.log.partition('@artifacts\n')[2])
        with tarfile.open(fileobj=io.BytesIO(archive)) as files:
            artifacts = {os.path.normpath(one.name): files.extractfile(one).read().decode(errors='replace') for one in files if one.isfile()}
        return dict(re.findall(r'::set-output:: ([a-z-]+)=(.*)', self.log)), artifacts

    def test_a_pull_request_is_reviewed_and_a_second_runner_repeats_nothing(self):
        for name in ('agents-first', 'agents-second'):
            outputs, artifacts = self.job(name)
            state = self.state()
            self.assertEqual(len(state['comments']), 1, self.log)
            suggestions = [one['body'] for thread in state['threads'] for one in thread['comments'] if '```suggestion\nright' in one['body']]
            self.assertEqual(len(suggestions), 1, state['threads'])
            expected = {'conclusion': 'success', 'exit-code': '0', 'enforced': 'true', 'findings-count': '1', 'blocked-count': '1',
                        'tokens': '7', 'report-dir': 'agentic-ci-report'}
            self.assertEqual({key: outputs.get(key) for key in expected}, expected, self.log)
        record = json.loads(artifacts['agentic-ci-report/run.json'])
        self.assertEqual((record['outcome']['kind'], record['isolation']['tier']), ('success', 'landlock'))
        self.assertEqual((record['policy']['commit'], record['event']['head_sha']), (self.base, self.head))
        patch = artifacts['agentic-ci-report/changes.patch']
        for line in ('allowed=heard', 'refused=', f'user={RUNNER}'):
            self.assertIn(f'+{line}\n', patch)
        for kept in (KEY, 'token-actions'):
            self.assertNotIn(kept, ''.join(artifacts.values()) + self.log)
        (comment,) = state['comments']
        self.assertIn('isolation `landlock`', comment['body'])
        for text in (comment['body'], artifacts['agentic-ci-report/policy-suggestion.yml']):
            self.assertIn('  - "elsewhere.example.com:80:read-only"\n', text)  # The line that would allow it.

    def test_a_pod_that_is_privileged_is_refused(self):
        """As the containers of `containerMode: dind` are."""
        image = VALUES['template']['spec']['containers'][0]['image']
        with self.assertRaisesRegex(Refused, 'violates PodSecurity "restricted:latest": privileged'):
            self.runner('privileged', initContainers=[{'name': 'dind', 'image': image, 'securityContext': {'privileged': True}}])
        self.assertNotIn('containerMode', VALUES)

    def alive(self):
        """Processes of the agent, wherever they are on this machine."""
        found = []
        for file in glob.glob('/proc/[0-9]*/cmdline'):
            try:
                if f'sleep 600; : {MARKER}' in pathlib.Path(file).read_text(errors='replace'):
                    found.append(file)
            except OSError:
                pass  # It has ended.
        return found

    def on_the_node(self, uid):
        places = (f'/sys/fs/cgroup/**/*{uid}*', f'{self.cluster.directory}/kubelet/pods/{uid}')
        return [path for place in places for path in glob.glob(place, recursive=True)]

    def begin(self, name):
        """A job whose agent has begun, and ends by itself after ten minutes."""
        self.comments = self.state()['comments']
        uid = self.runner(name, 'hangs.yml')

        def begun():
            if 'terminated' in self.cluster.container(NAMESPACE, name).get('state', {}):
                self.fail(self.cluster.log(NAMESPACE, name))
            return self.alive()
        self.cluster.until(begun, 120)
        self.assertNotEqual(self.on_the_node(uid), [])
        return uid

    def nothing_is_left(self, uid):
        self.assertEqual(self.alive(), [])
        self.cluster.until(lambda: not self.on_the_node(uid), 60)
        self.assertEqual(self.state()['comments'], self.comments)

    def test_a_pod_that_is_deleted_leaves_nothing(self):
        uid = self.begin('deleted')
        self.cluster.delete('Pod', NAMESPACE, 'deleted', grace=60)
        self.nothing_is_left(uid)

    def test_a_job_that_is_cancelled_leaves_nothing(self):
        uid = self.begin('cancelled')
        self.cluster.execute(NAMESPACE, 'cancelled', 'sh', '-c', 'kill -INT $(pidof act)')
        ended = self.cluster.ended(NAMESPACE, 'cancelled')
        self.assertNotEqual(ended['exitCode'], 0)
        self.assertEqual(self.alive(), [])
        self.cluster.delete('Pod', NAMESPACE, 'cancelled')
        self.nothing_is_left(uid)


if __name__ == '__main__':
    require(TESTBED)
    if not shutil.which('node') or not shutil.which('curl'):
        print('# SKIP node: no node or no curl here; runners of GitHub are not tried')
        sys.exit(SKIPPED)
    ACT = tool(ROOT / 'tests/action/install', ROOT / 'build/actions', 'act')
    MODULES = tool(ROOT / 'tests/services/github/install', ROOT / 'build/github-service')
    unittest.main(argv=sys.argv[:1] + sys.argv[5:], verbosity=2)
