#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`agentic-ci run --image` and `agentic-ci image`, with a registry of our own.

image_run_test.py AGENTIC_CI [unittest arguments]

As root every run is made as an ordinary user, and those of Root as root too. Each refusal stands
beside a control that succeeds, and leaves a store without one byte of the image.
"""
import http.server
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
import unittest

BINARY = os.path.abspath(sys.argv[1])
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import images  # noqa: E402
import signing  # noqa: E402
from images import OURS, THEIRS, Shelf, bundle_of, unpacked  # noqa: E402

UNSUPPORTED, REFUSED, TEMPORARY, INVALID, NOT_FOUND, IO = 69, 77, 75, 65, 66, 74
USER = 1000
CONFIG = '.agentic-ci/config.yml'


def read(path):
    with open(path, errors='replace') as file:
        return file.read()


class Case(unittest.TestCase):
    uid = USER if os.geteuid() == 0 else os.geteuid()

    def setUp(self):
        self.top = tempfile.mkdtemp(prefix='image-run-')
        self.addCleanup(shutil.rmtree, self.top, ignore_errors=True)
        os.chmod(self.top, 0o755)
        shutil.copy(BINARY, self.top + '/agentic-ci')  # Where the user may go.
        self.shelf = Shelf()
        self.addCleanup(self.shelf.close)
        self.store = self.top + '/home/store'
        os.mkdir(self.top + '/home')
        self.key = self.write('key.pub', OURS.pem.decode())
        self.root = self.write('root.json', json.dumps(signing.trusted_root()))
        self.checkout = self.top + '/checkout'
        self.write('checkout/README.md', 'hello\n')
        self.commit()
        self.own()

    def write(self, name, text):
        path = os.path.join(self.top, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, 'w' if isinstance(text, str) else 'wb') as file:
            file.write(text)
        return path

    def commit(self):
        for line in (['init', '-q'], ['add', '-A'], ['commit', '-qm', 'now']):
            subprocess.run(['git', '-c', 'user.name=t', '-c', 'user.email=t@localhost',
                            '-c', 'safe.directory=*', *line], cwd=self.checkout, check=True,
                           env={'PATH': os.environ['PATH'], 'HOME': self.top})

    def own(self):
        if os.geteuid() == 0:
            subprocess.run(['chown', '-R', f'{self.uid}:{self.uid}', self.top + '/home',
                            self.checkout], check=True)

    def call(self, *arguments, **more):
        return subprocess.run(self.line(arguments), capture_output=True, text=True, errors='replace',
                              timeout=600, **self.surroundings(), **more)

    def surroundings(self):
        return {'stdin': subprocess.DEVNULL, 'cwd': self.top + '/home', 'env': {
            'PATH': '/usr/bin:/bin', 'HOME': self.top + '/home',
            'XDG_RUNTIME_DIR': self.top + '/home', 'AGENTIC_CI_STORE': self.store}}

    def line(self, arguments):
        line = [self.top + '/agentic-ci', *arguments]
        if os.geteuid() != self.uid:
            line = ['setpriv', f'--reuid={self.uid}', f'--regid={self.uid}', '--clear-groups', *line]
        return line

    def run_image(self, reference, *command, options=(), key=True, code=0):
        """Runs to the end. `self.record` is run.json."""
        self.report = self.top + '/home/report'
        shutil.rmtree(self.report, ignore_errors=True)  # A run that does not start would leave an earlier one's.
        signer = ['--image-key', self.key] if key else []
        done = self.call('run', '--workdir', self.checkout, '--report-dir', self.report,
                         '--image', reference, '--insecure-registry', self.shelf.host, *signer,
                         *options, *(['--', *command] if command else []))
        self.assertEqual(done.returncode, code, done.stderr + done.stdout[-2000:])
        path = self.report + '/run.json'
        self.record = json.loads(read(path)) if os.path.exists(path) else None
        return done

    def shell(self, image, script, **more):
        return self.run_image(self.shelf.reference(image), 'sh', '-c', script, **more).stdout

    def refused(self, reference, kind, words='', code=REFUSED, **more):
        """77 and, of the image, nothing."""
        done = self.run_image(reference, 'true', code=code, **more)
        self.assertIn(f'({kind})', done.stderr)
        self.assertIn(words, done.stderr)
        self.assertEqual(unpacked(self.store), [], 'something was unpacked')
        layers = [path for _, path, _ in self.shelf.registry.asked('/blobs/')
                  if any(path.endswith(digest) for digest in self.layers())]
        self.assertEqual(layers, [], 'a layer was asked for')
        self.assertEqual(self.record['outcome']['exit_code'], code)
        return done

    def serve(self, body):
        """A server on loopback that answers everything so: its port, and the paths it was asked for."""
        asked = []

        class Answer(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                asked.append(self.path)
                self.send_response(200)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass
        server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Answer)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        return server.server_address[1], asked

    def layers(self):
        return [images.registry.digest_of(images.BASE)]

    def signed(self, **options):
        image = self.shelf.image(**options)
        self.shelf.cosign(image, name=options.get('name', 'agent'))
        return image

    def trust(self, rules, **files):
        self.write('checkout/' + CONFIG, json.dumps({'images': rules}))
        for name, text in files.items():
            self.write('checkout/.agentic-ci/' + name, text)
        self.commit()
        self.own()


class Agent(Case):
    def test_agent_lives_in_the_image_and_works_on_the_checkout(self):
        image = self.signed(layers=[[('.wh.gone', ''), ('upper', 'of the upper layer\n')]], config={
            'User': 'node', 'Env': ['PATH=/opt:/bin', 'GREETING=hi there', 'HTTP_PROXY=http://x',
                                    'HOME=/root', '1ST=bad', 'LD_LIBRARY_PATH=/opt/lib'],
            'WorkingDir': '/proc/self/fd/7'})
        out = self.shell(image, '''
            echo id=$(id -u):$(id -g):$(whoami) pwd=$(readlink /proc/self/cwd)
            echo greeting=$GREETING proxy=$HTTP_PROXY home=$HOME lib=$LD_LIBRARY_PATH path=$PATH
            cat /upper; cat /gone; tool; ls /usr 2>&1; cat README.md
            sed -i s/hello/bye/ README.md
            touch /x /bin/x /etc/x 2>&1; touch $HOME/x /tmp/x && echo written
            grep -c BEGIN /etc/ssl/cert.pem; cut -d: -f1 /etc/passwd | tr '\\n' ' ' ''')
        self.assertIn(f'id=1234:1235:sandbox pwd={self.checkout}\n', out)
        self.assertIn('greeting=hi there proxy=http://10.200.0.1:3128 home=/sandbox '
                      'lib=/opt/lib path=/sandbox/.local/bin:/opt:/bin\n', out)
        self.assertIn('of the upper layer\n', out)
        self.assertNotIn('of the lower layer', out)
        self.assertIn('tool of the image\n', out)
        self.assertIn('ls: /usr: No such file', out)
        for path in ('/x', '/bin/x', '/etc/x'):
            self.assertIn(f'touch: {path}: Read-only file system', out)
        self.assertIn('written\n', out)
        self.assertNotIn('\n0\nroot', out)  # Certificates stand where the image had none.
        self.assertIn('root sandbox nobody', out)
        patch = read(self.report + '/changes.patch')
        self.assertIn('-hello\n+bye', patch)
        record = self.record['image']
        self.assertEqual(record['digest'], image['digest'])
        self.assertEqual(record['manifest_digest'], image['digest'])
        self.assertEqual(record['platform'], 'linux/amd64')
        self.assertTrue(record['signer'].startswith('key sha256:'), record)
        self.assertIn('.sig', record['signature'])
        self.assertIn('1ST', ' '.join(record['warnings']))
        self.assertIn(image['digest'], read(self.report + '/summary.md'))
        self.assertIn(image['digest'], read(self.report + '/report.html'))

    def test_warm_start_needs_no_network_for_a_digest(self):
        image = self.signed()
        self.shell(image, 'true')
        cold = len(self.shelf.registry.requests)
        self.shelf.close()
        self.assertIn('again', self.shell(image, 'echo again'))
        self.assertEqual(len(self.shelf.registry.requests), cold)
        # Another key is another question: nobody answers it.
        self.write('key.pub', THEIRS.pem.decode())
        self.run_image(self.shelf.reference(image), 'true', code=TEMPORARY)

    def test_sandbox_that_lasts_has_a_shell_of_the_image(self):
        image = self.signed()
        made = self.call('sandbox', 'create', '--name', 'one', '--workdir', self.checkout, '--image-key', self.key,
                         '--image', self.shelf.reference(image), '--insecure-registry', self.shelf.host)
        self.assertEqual((made.returncode, made.stdout), (0, 'one\n'), made.stderr)
        for script, status, output in (('x="a b"; f() { echo "f$1"; }; cd /tmp', 0, ''),
                                       ('f "$x"; pwd; ls /bin/busybox', 0, 'fa b\n/tmp\n/bin/busybox\n'),
                                       ('echo 1 >/usr/mine', 1, ''), ('y=2; exit 3', 3, ''),
                                       ('echo "$x$y"; pwd', 0, 'a b\n/tmp\n')):
            done = self.call('sandbox', 'exec', 'one', '--', 'eval', script)
            self.assertEqual((done.returncode, done.stdout), (status, output), done.stderr)
        self.assertEqual(self.call('sandbox', 'delete', 'one').returncode, 0)

    def test_entrypoint_runs_when_no_command_is_given(self):
        image = self.signed(config={'Entrypoint': ['/bin/echo'], 'Cmd': ['the', 'entrypoint']})
        self.assertIn('the entrypoint', self.run_image(self.shelf.reference(image)).stdout)
        self.assertIn('mine', self.run_image(self.shelf.reference(image), 'echo', 'mine').stdout)

    def test_root_of_an_image_is_nobody_in_particular(self):
        for user in ('', 'root', '0:0', 'root:staff'):
            image = self.signed(config={'User': user})
            self.assertIn('id=1000\n', self.shell(image, 'echo id=$(id -u)'))
        for user, id_ in (('1234:staff', '1234:1240'), ('77', '77:1000'), ('77:88', '77:88')):
            image = self.signed(config={'User': user})
            self.assertIn(f'id={id_}\n', self.shell(image, 'echo id=$(id -u):$(id -g)'))

    def test_user_that_there_cannot_be_is_65(self):
        for user in ('nobody-here', '4294967295', '99999999999', 'node:nogroup'):
            image = self.signed(config={'User': user})
            self.run_image(self.shelf.reference(image), 'true', code=INVALID)
        fifo = self.signed(layers=[[('etc/passwd', ('fifo',))]], config={'User': 'node'})
        self.run_image(self.shelf.reference(fifo), 'true', code=INVALID)
        # Nobody looks into it then.
        fifo = self.signed(layers=[[('etc/passwd', ('fifo',))]], config={'User': ''})
        self.shell(fifo, 'true')

    def test_image_without_a_place_for_what_the_sandbox_brings_is_65(self):
        for name, what, words in (('tmp', b'', '/tmp is not a directory'),
                                  ('tmp', ('link', '/nowhere'), '/tmp is not a directory'),
                                  ('proc', ('link', '/etc'), '/proc is not a directory'),
                                  ('dev', ('link', '/etc'), '/dev is not a directory')):
            image = self.signed(layers=[[('.wh.' + name, b'')], [(name, what)]])
            done = self.run_image(self.shelf.reference(image), 'true', code=INVALID)
            self.assertIn("the image's " + words, done.stderr)
        image = self.signed(layers=[[('.wh.etc', b'')], [('etc/passwd/file', b'')]])
        done = self.run_image(self.shelf.reference(image), 'true', code=INVALID)
        self.assertIn("the image's /etc/passwd is a directory", done.stderr)
        image = self.signed(layers=[[('.wh.tmp', b'')], [('opt/tmp', None), ('tmp', ('link', '/opt/tmp'))]])
        self.assertIn('here\n', self.shell(image, 'echo here > /tmp/a; cat /tmp/a'))

    def test_image_has_as_many_layers_as_the_kernel_stacks(self):
        for count, code in ((499, 0), (500, INVALID)):  # One more layer is the base.
            image = self.signed(layers=[[(f'f{number}', b'')] for number in range(count - 1)])
            done = self.run_image(self.shelf.reference(image), 'true', code=code)
        self.assertIn('more than 499', done.stderr)

    def test_links_in_the_image_lead_nowhere_but_into_it(self):
        canary = self.write('canary', 'the host\'s own\n')
        os.chmod(canary, 0o666)
        hostile = [(name, ('link', self.top)) for name in ('proc', 'var', 'sandbox')]
        hostile += [('tmp', None), ('etc/resolv.conf', ('link', canary)),
                    ('etc/passwd', ('link', '../../../../../../..' + canary)),
                    ('etc/hosts', ('link', canary)), ('dev', ('link', '/proc'))]
        image = self.signed(layers=[[entry for entry in hostile if entry[0] != 'tmp']])
        # Places that would lead to where nothing is: refused, or made inside.
        done = self.call('run', '--workdir', self.checkout, '--report-dir', self.top + '/home/report',
                         '--image', self.shelf.reference(image), '--insecure-registry',
                         self.shelf.host, '--image-key', self.key, '--', 'sh', '-c', 'cat /etc/hosts')
        self.assertNotIn('the host\'s own', done.stdout)
        self.assertEqual(read(canary), 'the host\'s own\n')
        self.assertEqual(sorted(os.listdir(self.top)),
                         ['agentic-ci', 'canary', 'checkout', 'home', 'key.pub', 'root.json'])
        # The control: links of files alone, replaced by ours.
        image = self.signed(layers=[[entry for entry in hostile if entry[0].startswith('etc/')]])
        self.assertIn('localhost sandbox', self.shell(image, 'cat /etc/hosts /etc/resolv.conf'))
        self.assertEqual(read(canary), 'the host\'s own\n')

    def test_volumes_of_an_image_bring_nothing_of_the_host(self):
        # CVE-2022-23648: what stood at a volume's path, "..", links and all, was copied in.
        secret = self.write('secret/canary', 'the host\'s own\n')
        os.chmod(secret, 0o644)
        folder = os.path.dirname(secret)
        script = f'cat {secret} /volume/canary /link/canary 2>&1; ls -R / 2>/dev/null | grep -c canary'
        paths = ['/../..' + folder, '/../../../../../../..' + folder, folder, '/link', '/volume']
        image = self.signed(layers=[[('link', ('link', folder))]],
                            config={'Volumes': {path: {} for path in paths}})
        out = self.shell(image, script + '; true')
        self.assertNotIn('the host\'s own', out)
        self.assertEqual(out.count('No such file or directory'), 3, out)
        self.assertIn('\n0\n', out)
        self.assertEqual((os.listdir(folder), read(secret)), (['canary'], 'the host\'s own\n'))
        # The control: one in the image is seen.
        image = self.signed(layers=[[('volume', None), ('volume/canary', 'the image\'s own\n')]],
                            config={'Volumes': {path: {} for path in paths}})
        out = self.shell(image, script)
        self.assertIn('the image\'s own\n', out)
        self.assertIn('\n1\n', out)

    def test_plan_only_shows_the_image_and_starts_nothing(self):
        image = self.signed()
        out = self.run_image(self.shelf.reference(image), 'true', options=['--plan-only']).stdout
        self.assertIn(f'is {image["digest"]}, signed by key sha256:', out)
        self.assertRegex(out, r'\nroot +the image: \d+ layers?\n')
        self.assertIn('\nread-only   /bin\n', out)
        self.assertIsNone(self.record)


class Policy(Case):
    """Where the policy comes from, and what it shows of an image."""

    IMAGE = '''version: 1
filesystem_policy: {include_workdir: true, read_only: [/bin, /etc], read_write: [/opt]}
'''

    def test_policy_of_the_image_goes_last(self):
        image = self.signed(layers=[[('etc/openshell', None), ('etc/openshell/policy.yaml', self.IMAGE)]])
        script = 'cat /root/x 2>&1; ls /home 2>&1; echo more >> /opt/tool && sh /opt/tool'
        out = self.shell(image, script)
        self.assertIn("can't open '/home'", out.replace('ls: ', ''))
        self.assertIn('tool of the image', out)
        self.assertEqual(self.record['policy']['source'], 'image')
        self.write('checkout/.agentic-ci/openshell-policy.yml', 'version: 1\nfilesystem_policy: '
                   '{include_workdir: true, read_only: [/bin, /home], read_write: []}\n')
        self.commit()
        self.own()
        out = self.shell(image, 'ls /home; touch /opt/x 2>&1; true')
        self.assertIn('node', out)
        self.assertNotIn('tool of the image', out)
        self.assertEqual(self.record['policy']['source'], 'repository')

    def test_policy_of_the_image_that_is_none_is_65(self):
        image = self.signed(layers=[[('etc/openshell', None), ('etc/openshell/policy.yaml', '- 1\n')]])
        done = self.run_image(self.shelf.reference(image), 'true', code=INVALID)
        self.assertIn('/etc/openshell/policy.yaml', done.stderr)

    def test_programs_of_the_image_are_told_apart_by_their_links(self):
        """The policy names a link of the image; what it leads to is who connects."""
        port, _ = self.serve(b'hello from upstream\n')
        with open(images.BUSYBOX, 'rb') as file:
            image = self.signed(layers=[[('opt/busybox', file.read())]])
        policy = self.write('policy.yml', f'''version: 1
filesystem_policy: {{include_workdir: true, read_only: [/opt], read_write: []}}
network_policies:
  upstream:
    endpoints: [{{host: host.openshell.internal, port: {port}, protocol: rest, access: read-only}}]
    binaries: [{{path: /bin/wget}}]
''')
        url = f'http://host.openshell.internal:{port}/'
        out = self.shell(image, f'/bin/wget -q -O - {url} 2>&1', options=['--policy', policy])
        self.assertIn('hello from upstream', out)
        # Sh is its ancestor, and the same busybox; a copy of it is another program.
        done = self.run_image(self.shelf.reference(image), '/opt/busybox', 'wget', '-q', '-O',
                              '-', url, options=['--policy', policy], code=1)
        self.assertNotIn('hello from upstream', done.stdout)


class Refusals(Case):
    """Beside each: the same image, rightly signed, runs."""

    def test_unsigned(self):
        image = self.shelf.image()
        self.refused(self.shelf.reference(image), 'no-signature', 'cosign sign')
        self.shelf.cosign(image)
        self.shell(image, 'true')

    def test_another_key(self):
        image = self.shelf.image()
        self.shelf.cosign(image, by=THEIRS)
        self.refused(self.shelf.reference(image), 'crypto-invalid', 'signature')
        self.shelf.cosign(image)
        self.shell(image, 'true')

    def test_signature_of_another_image(self):
        image = self.shelf.image()
        self.shelf.cosign(image, says='sha256:' + '0' * 64)
        self.refused(self.shelf.reference(image), 'crypto-invalid', 'digest')

    def test_tag_that_was_moved(self):
        first = self.signed()
        self.run_image(self.shelf.reference(tag='v1'), 'true')
        shutil.rmtree(self.store)
        self.shelf.registry.requests.clear()
        self.shelf.image(layers=[[('evil', '')]])  # Has the tag now.
        self.refused(self.shelf.reference(tag='v1'), 'no-signature')
        self.shelf.registry.requests.clear()
        self.run_image(self.shelf.reference(first), 'true')

    def test_index_that_was_changed(self):
        amd64 = self.shelf.image(tag='amd64')
        index = self.shelf.index('agent', 'multi', (amd64, 'amd64'))
        self.shelf.cosign(index)
        self.run_image(self.shelf.reference(tag='multi'), 'true')
        self.assertEqual(self.record['image']['digest'], index['digest'])
        self.assertEqual(self.record['image']['manifest_digest'], amd64['digest'])
        shutil.rmtree(self.store)
        self.shelf.registry.requests.clear()
        self.shelf.index('agent', 'multi', (self.shelf.image(layers=[[('evil', '')]]), 'amd64'))
        self.refused(self.shelf.reference(tag='multi'), 'no-signature')

    def test_unsigned_index_may_not_choose_another_platform(self):
        amd64, arm64 = (self.shelf.image(tag=name, architecture=name) for name in ('amd64', 'arm64'))
        for one in (amd64, arm64):
            self.shelf.cosign(one)
        self.shelf.index('agent', 'right', (arm64, 'arm64'), (amd64, 'amd64'))
        self.run_image(self.shelf.reference(tag='right'), 'true')
        shutil.rmtree(self.store)
        self.shelf.registry.requests.clear()
        self.shelf.index('agent', 'wrong', (arm64, 'amd64'), (amd64, 'arm64'))
        self.refused(self.shelf.reference(tag='wrong'), 'platform', 'linux/arm64')

    def test_places_that_cannot_be_asked_are_not_unsigned(self):
        image = self.shelf.image()
        self.shelf.registry.fault(r'/referrers/|sha256-', lambda handler: handler.reply(403))
        self.refused(self.shelf.reference(image), 'lookup-failed', '403', code=TEMPORARY)
        self.shelf.registry.faults.clear()
        self.shelf.cosign(image)
        self.shell(image, 'true')

    def test_command_line_that_contradicts_itself(self):
        for options in (['--image-identity', 'x'], ['--image-issuer', 'x'],
                        ['--image-identity', 'x', '--image-issuer', 'y']):
            self.run_image(self.shelf.reference(tag='v1'), 'true', options=options, code=64)
        done = self.call('run', '--image-key', self.key, '--', 'true')
        self.assertEqual(done.returncode, 64)


class BeforeTheRegistry(Case):
    """A run that cannot start fails before it sends a request to the registry."""

    def not_asked(self, code, words, options=(), agent='command', **variables):
        image = self.signed()
        self.shelf.registry.requests.clear()
        surroundings = self.surroundings()
        surroundings['env'].update(variables)
        shutil.rmtree(self.top + '/home/report', ignore_errors=True)
        line = ['run', '--workdir', self.checkout, '--report-dir', self.top + '/home/report',
                '--image', self.shelf.reference(image), '--insecure-registry', self.shelf.host,
                '--image-key', self.key, '--agent', agent, *options]
        done = subprocess.run(self.line(line + (['--', 'true'] if agent == 'command' else [])),
                              capture_output=True, text=True, timeout=600, **surroundings)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertIn(words, done.stderr)
        if code != 0:
            self.assertEqual(self.shelf.registry.requests, [])
            self.assertEqual(json.loads(read(self.top + '/home/report/run.json'))
                             ['outcome']['exit_code'], code)

    def test_credentials(self):
        secret = ['--secret', 'TOKEN@upstream.example']
        self.not_asked(78, 'TOKEN is not set', secret)
        self.not_asked(0, '', secret, TOKEN='t')
        self.not_asked(78, 'has no credential: OPENAI_API_KEY', ['--provider', 'openai'])
        self.not_asked(78, 'has no credential: MINE', ['--provider', 'openai=MINE'])
        self.not_asked(0, '', ['--provider', 'openai=MINE'], MINE='t')
        self.not_asked(64, 'nobodys', ['--provider', 'nobodys'])
        self.not_asked(78, 'claude-code needs a credential', ['--prompt', 'x'], agent='claude-code')
        bound = 'version: 1\nnetwork_policies:\n  a:\n    endpoints: [{host: a.example, port: 443,' \
                ' protocol: rest, access: full, credential_binding: {provider: a}}]\n' \
                '    binaries: [{path: /bin/sh}]\n'
        self.not_asked(78, "the provider 'a' is not enabled for this run",
                       ['--policy', self.write('bound.yml', bound)])

    def test_fork(self):
        event = {'pull_request': {'number': 1, 'base': {'ref': 'main', 'repo': {'id': 1}}, 'head': {
            'ref': 'x', 'repo': {'id': 2}}}, 'repository': {'id': 1}}
        said = {'GITHUB_ACTIONS': 'true', 'GITHUB_EVENT_NAME': 'pull_request', 'TOKEN': 't',
                'GITHUB_EVENT_PATH': self.write('event.json', json.dumps(event)),
                'GITHUB_REPOSITORY': 'o/r', 'GITHUB_BASE_REF': 'main', 'GITHUB_ACTOR': 'dev'}
        secret = ['--policy-ref', 'HEAD', '--secret', 'TOKEN@upstream.example']
        self.not_asked(REFUSED, 'such runs get no secrets', secret, **said)
        event['pull_request']['head']['repo']['id'] = 1
        self.write('event.json', json.dumps(event))
        self.not_asked(0, '', secret, **said)

    def test_files(self):
        for name, text, words in ((CONFIG, 'ecosystems: [pyhton]\n', "no ecosystem is called 'pyhton'"),
                                  (CONFIG, 'images: 1\n', CONFIG),
                                  ('.agentic-ci/openshell-policy.yml', 'version: 9\n', '.yml:1:')):
            path = self.write('checkout/' + name, text)
            self.commit()
            self.own()
            self.not_asked(INVALID, words)
            os.remove(path)
        self.commit()
        self.own()
        self.not_asked(INVALID, 'x.yml:1:', ['--policy', self.write('x.yml', 'version: 9\n')])
        self.not_asked(NOT_FOUND, 'no-prompt', ['--prompt-file', self.top + '/no-prompt'])
        self.not_asked(64, 'claude-code needs a task', agent='claude-code')
        keys = {'is empty': '\n', 'a private key': OURS.private_pem, 'DER': OURS.spki, 'a certificate': signing.CA.pem}
        for words, key in keys.items():
            self.write('key.pub', key)
            self.not_asked(INVALID, words)
            self.not_asked(INVALID, 'cosign public-key')
            self.write('key.pub', OURS.pem)
            self.trust({'trust': [{'repository': '**', 'key': '.agentic-ci/wrong.pub'}]}, **{'wrong.pub': key})
            self.not_asked(INVALID, words)
            os.remove(f'{self.checkout}/{CONFIG}')
            self.commit()
            self.own()
        self.not_asked(0, '')

    def test_policy_that_can_be_read_once_only(self):
        pipe = self.top + '/policy'
        os.mkfifo(pipe)
        os.chmod(pipe, 0o644)
        policy = 'version: 1\nfilesystem_policy: {include_workdir: true, read_only: [/bin]}\n'
        writer = subprocess.Popen(['sh', '-c', 'printf "$0" >"$1"', policy, pipe])
        self.addCleanup(writer.wait)
        self.addCleanup(writer.kill)
        self.assertIn('closed\n', self.shell(self.signed(), 'ls /home 2>/dev/null || echo closed',
                                             options=['--policy', pipe]))


class Interrupts(Case):
    def slow_layer(self):
        """From now on the layer comes slowly; set when some of it has come."""
        begun = threading.Event()  # Each run its own: the last one's answer may still be written.

        def slowly(handler):
            def pieces():
                for _ in range(600):
                    begun.set()
                    yield images.BASE[:1000]
                    time.sleep(0.05)
            handler.chunks(200, pieces())
        self.shelf.registry.faults.clear()
        self.shelf.registry.fault('/blobs/' + self.layers()[0], slowly)
        return begun

    def start(self, image, **variables):
        surroundings = self.surroundings()
        surroundings['env'].update(variables)
        return subprocess.Popen(self.line([
            'run', '--workdir', self.checkout, '--report-dir', self.top + '/home/report', '--image',
            self.shelf.reference(image), '--insecure-registry', self.shelf.host, '--image-key',
            self.key, '--', 'true']), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            **surroundings)

    def test_process_that_reads_layers_has_nothing_of_the_environment(self):
        secret = 'a5ecret-of-this-run'
        begun = self.slow_layer()
        process = self.start(self.signed(), CI_SECRET=secret)
        try:
            self.assertTrue(begun.wait(120))
            children = read(f'/proc/{process.pid}/task/{process.pid}/children').split()
            self.assertTrue(children)
            if os.geteuid() != 0:
                self.skipTest("root: only root may look into a process with ids of its own")

            def has(pid, text):
                return text in read(f'/proc/{pid}/environ') + read(f'/proc/{pid}/cmdline')
            # A process that waits for its turn has read nothing yet, and wipes one after the other before it reads.
            deadline = time.monotonic() + 120
            texts = (secret, '--image-key')
            while any(has(pid, text) for pid in children for text in texts) and time.monotonic() < deadline:
                time.sleep(0.05)
            for text in texts:
                self.assertTrue(has(process.pid, text))  # The control: who fetches has it.
                for pid in children:
                    self.assertFalse(has(pid, text), (pid, text))
        finally:
            process.terminate()
            process.wait(120)

    def test_signal_while_the_image_is_fetched_ends_the_run(self):
        image = self.signed()
        report = self.top + '/home/report'
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            begun = self.slow_layer()
            process = self.start(image)
            self.assertTrue(begun.wait(120))
            process.send_signal(number)
            self.assertEqual(process.wait(120), code)
            self.assertEqual(json.loads(read(report + '/run.json'))['outcome']['exit_code'], code)
        self.shelf.registry.faults.clear()
        self.shell(image, 'true')

    def stall(self, *ways):
        """From now on nothing more comes of the lowest layer; set when that has begun.

        What is then done has to end before the layer is asked for anew."""
        begun, released = threading.Event(), threading.Event()
        self.addCleanup(released.set)

        def still(handler):
            def pieces():
                yield images.BASE[:1000]
                begun.set()
                released.wait(100)
            handler.chunks(200, pieces())

        def later(handler):
            begun.set()
            handler.reply(503, b'', [('retry-after', '25')])
        for way in ways:
            self.shelf.registry.faults.clear()
            layer = '/blobs/' + self.layers()[0]
            self.shelf.registry.fault(layer, {'still': still, 'later': later}[way])
            before = len(self.shelf.registry.asked(layer))
            begun.clear()
            yield begun
            # Not at all, when the layer that ends the run was quicker.
            self.assertLessEqual(len(self.shelf.registry.asked(layer)), before + 1)

    def test_signal_while_nothing_comes_ends_the_run(self):
        image = self.signed()
        for begun in self.stall('still', 'later'):
            process = self.start(image)
            self.assertTrue(begun.wait(120))
            time.sleep(0.5)
            process.terminate()
            self.assertEqual(process.wait(60), 143)
        self.shelf.registry.faults.clear()
        self.shell(image, 'true')

    def test_layer_that_cannot_be_used_ends_those_that_stand_still(self):
        image = self.signed(layers=[b'x' * 512])
        for _ in self.stall('still', 'later'):
            done = self.run_image(self.shelf.reference(image), 'true', code=INVALID)
            self.assertIn('wrong checksum', done.stderr)


class Configured(Case):
    """What `.agentic-ci/config.yml` says of signers, at the trusted commit."""

    KEYLESS = {'identity': signing.IDENTITY, 'issuer': signing.ISSUER}

    def run_configured(self, image, name='agent', **more):
        return self.run_image(self.shelf.reference(image, name), 'echo', 'it runs', key=False, **more)

    def test_key_of_the_trusted_commit(self):
        image = self.signed()
        rule = {'repository': f'{self.shelf.host}/*', 'key': '.agentic-ci/cosign.pub'}
        self.trust({'trust': [rule]}, **{'cosign.pub': OURS.pem.decode()})
        self.assertIn('it runs', self.run_configured(image).stdout)
        # What the working tree says is the pull request's.
        shutil.rmtree(self.store)
        self.shelf.registry.requests.clear()
        other = self.shelf.image(tag='other', layers=[[('x', '')]])
        self.shelf.cosign(other, by=THEIRS)
        self.write('checkout/.agentic-ci/cosign.pub', THEIRS.pem.decode())
        self.own()
        self.refused(self.shelf.reference(other), 'crypto-invalid', key=False)

    def test_nothing_configured_is_refused_with_what_to_write(self):
        image = self.signed()
        done = self.refused(self.shelf.reference(image), 'no-match', key=False)
        self.assertIn(f'- repository: {self.shelf.host}/agent', done.stderr)

    def test_keyless_and_the_lines_that_would_accept_it(self):
        image = self.shelf.image()
        self.shelf.bundle(image)
        rule = {'repository': f'{self.shelf.host}/**', **self.KEYLESS}
        self.trust({'trust': [rule | {'identity': 'https://github.com/o/**@refs/heads/release'}],
                    'trusted_root': '.agentic-ci/root.json'},
                   **{'root.json': read(self.root)})
        done = self.refused(self.shelf.reference(image), 'identity-mismatch', key=False)
        self.assertIn('identity: ' + signing.IDENTITY, done.stderr)
        self.assertIn('issuer: ' + signing.ISSUER, done.stderr)
        self.trust({'trust': [rule], 'trusted_root': '.agentic-ci/root.json'})
        self.run_configured(image)
        record = self.record['image']
        self.assertEqual((record['signer'], record['issuer']), (signing.IDENTITY, signing.ISSUER))
        self.assertTrue(record['log_indices'])
        self.assertIn('referrer', record['signature'])

    def test_trusted_root_that_is_another_instance(self):
        image = self.shelf.image()
        self.shelf.bundle(image)
        options = ['--image-identity', signing.IDENTITY, '--image-issuer', signing.ISSUER]
        self.refused(self.shelf.reference(image), 'crypto-invalid', key=False, options=options)
        self.run_configured(image, options=[*options, '--trusted-root', self.root])

    def test_signatures_of_another_repository(self):
        image = self.shelf.image()
        self.shelf.cosign(image, name='signatures')
        rule = {'repository': f'{self.shelf.host}/agent', 'key': '.agentic-ci/cosign.pub'}
        self.trust({'trust': [rule]}, **{'cosign.pub': OURS.pem.decode()})
        self.refused(self.shelf.reference(image), 'no-signature', key=False)
        self.trust({'trust': [rule | {'signatures': [f'{self.shelf.host}/signatures']}]})
        self.run_configured(image)

    def test_target_of_the_signature(self):
        amd64 = self.shelf.image(tag='amd64')
        index = self.shelf.index('agent', 'multi', (amd64, 'amd64'))
        self.shelf.cosign(amd64)
        rule = {'repository': f'{self.shelf.host}/agent', 'key': '.agentic-ci/cosign.pub'}
        self.trust({'trust': [rule | {'sign_target': 'index'}]},
                   **{'cosign.pub': OURS.pem.decode()})
        self.refused(self.shelf.reference(index), 'no-signature', key=False)
        self.trust({'trust': [rule | {'sign_target': 'manifest'}]})
        self.run_configured(index)

    def test_bundle_that_was_brought_along(self):
        image = self.shelf.image()
        bundle = self.write('bundle.json', bundle_of(image, managed=OURS, logs=(), stamps=()))
        self.refused(self.shelf.reference(image), 'no-signature')
        self.run_image(self.shelf.reference(image), 'true', options=['--image-bundle', bundle])


class Command(Case):
    """agentic-ci image ..."""

    def image_command(self, command, *arguments, code=0):
        done = self.call('image', command, *arguments)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def common(self, reference):
        return [reference, '--workdir', self.checkout, '--insecure-registry', self.shelf.host]

    def test_what_an_unverified_image_says_is_no_command_to_ci(self):
        plain = self.shelf.image(config={'User': 'node'})
        out = self.image_command('inspect', *self.common(self.shelf.reference(plain))).stdout
        self.assertIn('user       node\n', out)
        image = self.shelf.image(config={'User': 'node\n::add-mask::x\n ##[error]y\x1b[31m'})
        done = self.image_command('inspect', *self.common(self.shelf.reference(image)))
        out = done.stdout + done.stderr
        self.assertIn('add-mask', out)
        for word in ('\n::', '##[', '\x1b'):
            self.assertNotIn(word, out)

    @unittest.skipUnless(os.geteuid() == 0, 'root: it acts as another user')
    def test_without_a_home_the_store_lies_where_no_other_user_can_move_it(self):
        uid = 400_000_000 + os.getpid()
        place = f'/var/tmp/agentic-ci-images-{uid}'
        self.addCleanup(shutil.rmtree, place, ignore_errors=True)

        def check():
            return subprocess.run([self.top + '/agentic-ci', 'image', 'check'], user=uid, group=uid, extra_groups=[], text=True,
                                  capture_output=True, stdin=subprocess.DEVNULL, cwd='/', env={'PATH': '/usr/bin:/bin'})
        self.assertEqual(check().returncode, 0)
        self.assertEqual(os.stat(place).st_uid, uid)
        self.assertTrue(os.stat(os.path.dirname(place)).st_mode & stat.S_ISVTX)
        os.chown(place, 0, 0)
        os.chmod(place, 0o755)
        refused = check()
        self.assertEqual(refused.returncode, REFUSED)
        self.assertIn('belongs to user 0', refused.stderr)

    def test_pull_verify_inspect_prune(self):
        image = self.signed(config={'User': 'node', 'Cmd': ['sh']})
        common = self.common(self.shelf.reference(image))
        key = ['--image-key', self.key]
        inspected = json.loads(self.image_command('inspect', *common, '--json').stdout)
        self.assertEqual((inspected['user'], inspected['digest']), ('node', image['digest']))
        self.assertEqual(unpacked(self.store), [])
        verified = json.loads(self.image_command('verify', *common, *key, '--json').stdout)
        self.assertTrue(verified['verified'])
        self.assertEqual(verified['signed_digest'], image['digest'])
        self.assertEqual(unpacked(self.store), [])
        pulled = self.image_command('pull', *common, *key)
        self.assertIn('signer     key sha256:', pulled.stdout)
        self.assertIn('pulled ', pulled.stderr)
        self.assertNotEqual(unpacked(self.store), [])
        self.shelf.close()
        self.shell(image, 'true')  # Nothing is left to fetch.
        pruned = json.loads(self.image_command('prune', '--json').stdout)
        self.assertEqual((pruned['layers_freed'], pruned['bytes_left']), (1, 0))
        self.assertEqual(unpacked(self.store), [])
        self.run_image(self.shelf.reference(image), 'true', code=TEMPORARY)

    def test_warnings_are_told_once_when_the_image_is_unpacked(self):
        image = self.signed(layers=[[('f', 'x')]], config={'Env': ['1ST=x'], 'User': 'root'})
        first = self.run_image(self.shelf.reference(image), 'true')
        self.assertIn('1ST', first.stderr)
        again = self.run_image(self.shelf.reference(image), 'true')
        self.assertNotIn('1ST', again.stderr)
        self.assertIn('1ST', ' '.join(self.record['image']['warnings']))

    def test_a_digest_stands_once_in_a_message(self):
        image = self.signed()
        hex_ = image['digest'].split(':')[1]
        self.shelf.registry.fault(r'/referrers/|sha256-', lambda handler: handler.reply(403))
        done = self.run_image(self.shelf.reference(image), 'true', code=TEMPORARY)
        for line in done.stderr.splitlines():
            self.assertLessEqual(line.count(hex_), 1, line)
        self.shelf.registry.faults.clear()
        done = self.run_image(self.shelf.reference(image), 'true')
        self.assertIn(hex_, done.stderr)
        for line in done.stderr.splitlines():
            self.assertLessEqual(line.count(hex_), 1, line)
        shutil.rmtree(self.store)
        layer = images.registry.digest_of(images.BASE)
        self.shelf.registry.fault(layer, lambda handler: handler.reply(404))
        done = self.run_image(self.shelf.reference(image), 'true', code=NOT_FOUND)
        self.assertIn(layer, done.stderr)
        for line in done.stderr.splitlines():
            self.assertLessEqual(line.count(layer), 1, line)

    def test_check_finds_a_damaged_layer_and_says_how_to_repair_it(self):
        image = self.signed(layers=[[('upper', 'of the upper layer\n')]])
        self.shell(image, 'true')
        self.assertEqual(self.image_command('check').stdout, 'layers     2\n')
        changed = next(path for path in unpacked(self.store) if path.endswith('/upper'))
        with open(changed, 'a') as file:
            file.write('and more\n')
        done = self.image_command('check', code=IO)
        self.assertRegex(done.stdout, r'^layers     2\ndamaged    diff-[0-9a-f]{64}: was unpacked to ')
        self.assertIn('1 of 2 layers have changed since they were unpacked', done.stderr)
        hint = done.stderr.split('hint: ')[1].split()
        self.assertEqual(hint[:2], ['agentic-ci', 'image'])
        repaired = json.loads(self.image_command(*hint[2:], '--json').stdout)
        self.assertEqual((repaired['layers'], len(repaired['damaged']), repaired['removed']), (2, 1, True))
        self.assertEqual(self.image_command('check').stdout, 'layers     1\n')
        self.assertIn('of the upper layer\n', self.shell(image, 'cat /upper'))
        self.assertNotIn('and more', self.shell(image, 'cat /upper'))
        self.assertEqual(self.image_command('check').stdout, 'layers     2\n')

    def test_verify_says_why_not_of_every_signature(self):
        image = self.shelf.image()
        self.shelf.cosign(image, by=THEIRS)
        self.shelf.bundle(image)
        common = self.common(self.shelf.reference(image))
        done = self.image_command('verify', *common, '--image-key', self.key, '--json', code=REFUSED)
        refusal = json.loads(done.stdout)
        self.assertFalse(refusal['verified'])
        self.assertEqual(refusal['kind'], 'crypto-invalid')
        self.assertEqual(sorted(one['reason'] for one in refusal['rejected']),
                         ['material', 'signature'])
        self.image_command('verify', *common, '--image-identity', signing.IDENTITY,
                           '--image-issuer', signing.ISSUER, '--trusted-root', self.root)

    def test_platform_that_an_image_does_not_have(self):
        image = self.signed()
        index = self.shelf.index('agent', 'multi', (image, 'amd64'))
        common = self.common(self.shelf.reference(index)) + ['--image-key', self.key]
        self.image_command('verify', *common, '--platform', 'linux/s390x', code=NOT_FOUND)
        self.image_command('verify', *common, '--platform', 's390x', code=64)

    def test_layout_on_disk_is_verified_all_the_same(self):
        image = self.signed()
        layout = self.top + '/home/layout'
        blobs = layout + '/blobs/sha256'
        os.makedirs(blobs)
        manifests = {data for (_, _), (_, data) in self.shelf.registry.manifests.items()}
        for data in [*self.shelf.registry.blobs.values(), *manifests]:
            self.write(f'home/layout/blobs/sha256/{images.registry.digest_of(data)[7:]}', data)
        self.write('home/layout/oci-layout', '{"imageLayoutVersion":"1.0.0"}')

        def index(*tags):
            entries = []
            for tag in tags:
                kind, data = self.shelf.registry.manifests['agent', tag]
                entries.append({'mediaType': kind, 'digest': images.registry.digest_of(data),
                                'size': len(data), 'annotations': {
                                    'org.opencontainers.image.ref.name': tag}})
            self.write('home/layout/index.json', json.dumps(
                {'schemaVersion': 2, 'manifests': entries}))
        index('v1')
        self.refused(f'oci:{layout}:v1', 'no-signature')
        index('v1', image['digest'].replace(':', '-') + '.sig')
        self.run_image(f'oci:{layout}:v1', 'true')


@unittest.skipUnless(os.geteuid() == 0, 'root: only root may')
class Root(Case):
    uid = 0

    def test_root_runs_nobody_in_particular_in_the_image(self):
        image = self.signed(layers=[[('home/node/private', 'theirs\n')]], config={'User': 'node'})
        for owner in (0, USER):
            subprocess.run(['chown', '-R', f'{owner}:{owner}', self.checkout], check=True)
            out = self.shell(image, 'id -u; cat README.md; echo more >> README.md; touch /bin/x 2>&1;'
                                    'cat /home/node/private; cat /proc/self/uid_map')
            self.assertIn('1234\nhello\n', out)
            self.assertIn('theirs', out)
            self.assertIn('Read-only', out)
            self.assertNotIn(' 0 ', out.splitlines()[-1].rsplit('1', 1)[0])
            self.assertIn('+more', read(self.report + '/changes.patch'))


def main():
    os.umask(0o022)
    if not os.path.exists(images.BUSYBOX):
        print('# SKIP busybox: no ' + images.BUSYBOX + '; apt-get install busybox-static')
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)


if __name__ == '__main__':
    main()
