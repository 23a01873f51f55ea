# SPDX-License-Identifier: Apache-2.0
"""Credentials and where they come from, mirrors, layouts, archives, and Debian's docker-registry
with images that skopeo and umoci made (tools/check installs them).

usage: sources_test.py DRIVER
"""
import base64
import gzip
import io
import json
import os
import shutil
import socket
import subprocess
import tarfile
import time

from harness import PASSWORD, Case, digest_of, main
from registry import INDEX, MANIFEST

BLOB = bytes(range(256)) * 4000


def auths(key, user='robot', password=PASSWORD):
    return json.dumps({'auths': {key: {'auth': base64.b64encode(f'{user}:{password}'.encode()).decode()}}})


class Credentials(Case):
    def setUp(self):
        self.reg = self.registry(auth='bearer')
        self.reg.add_image('demo', 'v1')

    def test_each_place_is_looked_at(self):
        home = self.folder()
        text = auths(self.reg.host)
        for path in ('.docker/config.json', '.config/containers/auth.json', 'run/containers/auth.json', 'x.json'):
            (home / path).parent.mkdir(parents=True, exist_ok=True)
            (home / path).write_text(text)
        host = self.reg.host
        for env in (['DOCKER_AUTH_CONFIG=' + text], [f'REGISTRY_AUTH_FILE={home}/x.json'],
                    [f'XDG_RUNTIME_DIR={home}/run'], [f'XDG_CONFIG_HOME={home}/.config'],
                    [f'DOCKER_CONFIG={home}/.docker'], [f'HOME={home}'],
                    [f'CI_REGISTRY={host}', 'CI_REGISTRY_USER=robot', 'CI_REGISTRY_PASSWORD=' + PASSWORD],
                    [f'CI_REGISTRY={host}', 'CI_DEPLOY_USER=robot', 'CI_DEPLOY_PASSWORD=' + PASSWORD],
                    [f'CI_DEPENDENCY_PROXY_SERVER={host}', 'CI_DEPENDENCY_PROXY_USER=robot',
                     'CI_DEPENDENCY_PROXY_PASSWORD=' + PASSWORD]):
            with self.subTest(env[0].split('=')[0]):
                self.pulls(self.reg, env=env)
        self.reg.user = 'gitlab-ci-token'
        self.pulls(self.reg, env=[f'CI_REGISTRY={host}', 'CI_JOB_TOKEN=' + PASSWORD])

    def test_no_other_host_gets_them(self):
        for env in ([f'DOCKER_AUTH_CONFIG={auths("127.0.0.1")}'], [f'DOCKER_AUTH_CONFIG={auths(self.reg.host + "0")}'],
                    [f'DOCKER_AUTH_CONFIG={auths(self.reg.host + "/other")}'],
                    ['CI_REGISTRY=127.0.0.1', 'CI_JOB_TOKEN=' + PASSWORD], ['GITHUB_TOKEN=' + PASSWORD],
                    [f'CI_REGISTRY=x.{self.reg.host}', 'CI_REGISTRY_USER=robot', 'CI_REGISTRY_PASSWORD=' + PASSWORD]):
            with self.subTest(env[0]):
                self.fails('setup', 'no credentials', self.reg, env=env)
        self.fails('setup', 'no credentials', self.reg, username='robot', password=PASSWORD, password_host='ghcr.io')
        for _, _, headers in self.reg.requests:
            self.assertNotIn('authorization', headers)

    def test_the_most_specific_place_counts(self):
        wrong = auths(self.reg.host, password='wrong')
        self.pulls(self.reg, username='robot', password=PASSWORD, env='DOCKER_AUTH_CONFIG=' + wrong)
        answer = self.fails('refused', '$DOCKER_AUTH_CONFIG', self.reg, env=[
            'DOCKER_AUTH_CONFIG=' + wrong, f'CI_REGISTRY={self.reg.host}', 'CI_REGISTRY_USER=robot',
            'CI_REGISTRY_PASSWORD=' + PASSWORD])
        self.assertIn('the credentials are from', answer['error'])
        both = json.loads(wrong)
        both['auths'] |= json.loads(auths(self.reg.host + '/demo'))['auths']
        self.pulls(self.reg, env='DOCKER_AUTH_CONFIG=' + json.dumps(both))

    def test_what_cannot_be_read_is_told_when_it_matters(self):
        home = self.folder()
        (home / 'bad.json').write_text('{"auths": {"a": {"auth": "!' + PASSWORD + '"}}}')
        answer = self.fails('setup', 'base64', self.reg, env=f'REGISTRY_AUTH_FILE={home}/bad.json')
        self.assertIn('bad.json', answer['error'])
        self.reg.anonymous = True
        self.pulls(self.reg, env=f'REGISTRY_AUTH_FILE={home}/bad.json')

    def helper(self, script, name='test', config=None):
        home = self.folder()
        path = home / ('docker-credential-' + name)
        path.write_text('#!/bin/sh\n' + script)
        path.chmod(0o755)
        (home / 'config.json').write_text(json.dumps(config or {'credHelpers': {self.reg.host: name}}))
        return home, [f'DOCKER_CONFIG={home}', f'PATH={home}:/usr/bin:/bin', 'GITHUB_TOKEN=' + PASSWORD]

    def test_a_helper_is_asked_about_the_host_and_sees_nothing_it_does_not_need(self):
        answer = json.dumps({'ServerURL': 'x', 'Username': 'robot', 'Secret': PASSWORD})
        home, env = self.helper(f'cat > "${{0%/*}}/input"; env > "${{0%/*}}/env"; echo "$@" > "${{0%/*}}/arguments"\n'
                                f"echo noise >&2; echo '{answer}'\n")
        self.pulls(self.reg, env=env)
        self.assertEqual((home / 'input').read_text(), self.reg.host)
        self.assertEqual((home / 'arguments').read_text(), 'get\n')
        self.assertNotIn('GITHUB_TOKEN', (home / 'env').read_text())
        self.assertIn('PATH=', (home / 'env').read_text())
        (home / 'config.json').write_text('{"credsStore": "test"}')
        self.pulls(self.reg, env=env)

    def test_a_helper_may_hold_an_identity_token(self):
        answer = json.dumps({'Username': '<token>', 'Secret': PASSWORD})
        _, env = self.helper(f"echo '{answer}'")
        self.pulls(self.reg, env=env)
        self.assertEqual(self.reg.asked('^/token')[0][0], 'POST')

    def test_a_helper_that_fails_is_told_and_anonymous_pulls_still_work(self):
        for script, words in ((f'echo "error: {PASSWORD}"; exit 1', 'did not print a credential'), ('exit 3', 'did not'),
                              ('echo "credentials not found in native keychain"; exit 1', 'no credentials')):
            with self.subTest(script):
                self.reg.anonymous = False
                _, env = self.helper(script)
                self.fails('setup', words, self.reg, env=env)
                self.reg.anonymous = True
                self.pulls(self.reg, env=env)
        _, env = self.helper('true', config={'credsStore': 'absent'})
        self.reg.anonymous = False
        self.fails('setup', 'docker-credential-absent is not on the PATH', self.reg, env=env)

    def test_a_helper_in_the_checkout_is_not_run_also_through_a_link(self):
        checkout, linked = self.folder(), self.folder()
        theirs = checkout / 'docker-credential-test'
        theirs.write_text('#!/bin/sh\ntouch "${0%/*}/canary"\n')
        theirs.chmod(0o755)
        (linked / theirs.name).symlink_to(theirs)
        home, env = self.helper("echo '" + json.dumps({'Username': 'robot', 'Secret': PASSWORD}) + "'")
        for place in (checkout, linked):
            with self.subTest(place):
                before = [one.replace('PATH=', f'PATH={place}:') for one in env]
                self.pulls(self.reg, env=before, checkout=checkout)
                (home / theirs.name).rename(home / 'gone')
                self.fails('setup', 'docker-credential-test is not on the PATH', self.reg, env=before, checkout=checkout)
                (home / 'gone').rename(home / theirs.name)
                self.assertFalse((place / 'canary').exists())

    def test_a_helper_whose_name_is_a_path_or_a_command_is_not_run(self):
        for name in ('../../../tmp/x', 'x;touch canary', 'a b', '.x', '-x', '$(id)'):
            with self.subTest(name):
                home, env = self.helper('touch "${0%/*}/canary"', config={'credsStore': name})
                self.fails('setup', 'with an invalid name', self.reg, env=env)
                self.assertFalse((home / 'canary').exists())


class Mirrors(Case):
    def setUp(self):
        self.origin, self.mirror = self.registry(auth='bearer'), self.registry()
        for registry in (self.origin, self.mirror):
            registry.add_image('demo', 'v1', [BLOB])
        self.options = {'username': 'robot', 'password': PASSWORD,
                        'insecure': [self.origin.host, self.mirror.host],
                        'mirror': f'{self.origin.host}={self.mirror.host}'}

    def pull(self, command='pull', name='demo:v1'):
        return self.ask(command, f'{self.origin.host}/{name}', **self.options)

    def test_a_mirror_is_asked_first_and_never_gets_the_credentials(self):
        self.mirror.auth = 'bearer'
        self.mirror.anonymous = True
        self.assertNotIn('error', self.pull())
        self.assertEqual(self.origin.requests, [])
        for _, path, headers in self.mirror.requests:
            self.assertFalse(headers.get('authorization', '').startswith('Basic'), path)

    def test_what_a_mirror_lacks_or_falsifies_comes_from_the_registry(self):
        good = self.pull()
        for pattern, answer in (('/v2/', lambda h: h.reply(404)), ('/v2/', lambda h: h.reply(403)),
                                ('/v2/', lambda h: h.reply(500)), ('/blobs/', lambda h: h.reply(200, b'x')),
                                ('/blobs/', lambda h: h.reply(200, BLOB[:500000], length=len(BLOB))),
                                ('/manifests/', lambda h: h.reply(200, b'x' * 5_000_000, {'content-type': MANIFEST}))):
            self.mirror.faults.clear()
            self.mirror.fault(pattern, answer)
            self.assertEqual(self.pull(), good)
        before = len(self.mirror.asked('/blobs/'))
        self.mirror.faults.clear()
        self.mirror.fault('/manifests/', lambda h: h.reply(503))
        self.pull()
        self.assertEqual(len(self.mirror.asked('/blobs/')), before)  # It had its chance.

    def test_a_mirror_that_knows_no_signatures_does_not_hide_them(self):
        subject = self.origin.add_image('demo', 'v1', [BLOB])
        self.origin.add_signature('demo', subject, b'bundle')
        found = self.pull('signatures', 'demo@' + subject['digest'])
        self.assertEqual((len(found['candidates']), found['failures']), (1, []))
        self.origin.fault('/referrers/', lambda h: h.reply(500))
        found = self.pull('signatures', 'demo@' + subject['digest'])
        self.assertEqual((len(found['candidates']), len(found['failures'])), (0, 1))

    def test_a_mirror_with_a_prefix_is_asked_below_it(self):
        self.mirror.add_image('proxy/demo', 'v1', [BLOB])
        self.options['mirror'] += '/proxy'
        self.assertNotIn('error', self.pull())
        self.assertTrue(self.mirror.requests[0][1].startswith('/v2/proxy/demo/manifests/'))

    def test_options_that_say_nothing_are_refused(self):
        for mirror in ('x', 'docker.io=', '=y', 'docker.io=a b', 'docker.io=https://x'):
            self.options['mirror'] = mirror
            self.assertEqual(self.pull()['code'], 'usage', mirror)
        self.options['mirror'] = []
        answer = self.ask('pull', f'{self.mirror.host}/demo:v1')
        self.assertEqual((answer['code'], answer['hint']), ('setup', '--insecure-registry ' + self.mirror.host))
        for insecure, code in ((['10.0.0.1:5000'], 'usage'), (['a.example'], 'usage'), (['a b'], 'usage'),
                               (['10.0.0.1:5000'] * 2, None), (['localhost', '127.0.0.2:5', '[::1]:5000'], None)):
            self.options['insecure'] = [self.origin.host, *insecure]
            self.assertEqual(self.pull().get('code'), code, insecure)


class RealTools(Case):
    """An image of two layers that umoci made, in whatever forms skopeo gives it."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.work = cls.enterClassContext(Folder())
        layout, bundle = f'{cls.work}/layout', f'{cls.work}/bundle'
        cls.run_tool('umoci', 'init', '--layout', layout)
        cls.run_tool('umoci', 'new', '--image', layout + ':v1')
        for number in range(2):
            cls.run_tool('umoci', 'unpack', '--rootless', '--image', layout + ':v1', bundle)
            with open(f'{bundle}/rootfs/file{number}', 'wb') as file:
                file.write(os.urandom(200_000))
            cls.run_tool('umoci', 'repack', '--image', layout + ':v1', bundle)
            shutil.rmtree(bundle)
        cls.run_tool('umoci', 'config', '--image', layout + ':v1', '--config.cmd', '/bin/sh')
        with open(f'{layout}/index.json') as file:
            cls.digest = json.load(file)['manifests'][0]['digest']

    @staticmethod
    def run_tool(*command):
        subprocess.run(command, check=True, capture_output=True, timeout=600)

    def serve(self, **users):
        """Debian's docker-registry on a free port, until the test ends."""
        folder = self.folder()
        with socket.socket() as probe:
            probe.bind(('127.0.0.1', 0))
            host = '127.0.0.1:%d' % probe.getsockname()[1]
        auth = ''
        if users:
            made = [subprocess.run(['htpasswd', '-Bbn', *pair], capture_output=True, check=True).stdout.decode()
                    for pair in users.items()]
            (folder / 'htpasswd').write_text(''.join(made))
            auth = f'auth: {{htpasswd: {{realm: tests, path: {folder}/htpasswd}}}}\n'
        (folder / 'config.yml').write_text(
            'version: 0.1\nlog: {level: error, accesslog: {disabled: true}}\n'
            f'storage: {{filesystem: {{rootdirectory: {folder}/data}}}}\nhttp: {{addr: "{host}"}}\n' + auth)
        process = subprocess.Popen(['docker-registry', 'serve', str(folder / 'config.yml')],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        for _ in range(6000):
            try:
                socket.create_connection(tuple(host.split(':'))).close()
                return host
            except OSError:
                time.sleep(0.02)
        self.fail('docker-registry does not start')

    def test_an_image_in_docker_registry_is_the_one_that_was_pushed(self):
        host = self.serve()
        self.run_tool('skopeo', 'copy', '--dest-tls-verify=false', f'oci:{self.work}/layout:v1', f'docker://{host}/a/b:v1')
        answer = self.ask('pull', f'{host}/a/b:v1', insecure=host)
        self.assertEqual((answer['digest'], len(answer['layers'])), (self.digest, 2))
        self.assertEqual(self.ask('pull', f'{host}/a/b@{self.digest}', insecure=host), answer)
        self.assertEqual(self.ask('pull', f'{host}/a/b:v2', insecure=host)['code'], 'not-found')
        found = self.ask('signatures', f'{host}/a/b@{self.digest}', insecure=host)
        self.assertEqual(found, {'candidates': [], 'failures': []})
        self.run_tool('skopeo', 'copy', '--dest-tls-verify=false', '--format', 'v2s2', f'oci:{self.work}/layout:v1',
                      f'docker://{host}/a/docker:v1')
        self.assertEqual(self.ask('pull', f'{host}/a/docker:v1', insecure=host)['diff_ids'], 2)

    def test_docker_registry_wants_the_password_of_its_htpasswd(self):
        host = self.serve(robot=PASSWORD)
        self.run_tool('skopeo', 'copy', '--dest-tls-verify=false', '--dest-creds', 'robot:' + PASSWORD,
                      f'oci:{self.work}/layout:v1', f'docker://{host}/a:v1')
        self.assertEqual(self.ask('pull', f'{host}/a:v1', insecure=host, env='DOCKER_AUTH_CONFIG=' + auths(host))
                         ['digest'], self.digest)
        self.assertEqual(self.ask('pull', f'{host}/a:v1', insecure=host)['code'], 'setup')
        self.assertEqual(self.ask('pull', f'{host}/a:v1', insecure=host, username='robot', password='no')['code'],
                         'refused')

    def test_a_layout_gives_the_same(self):
        layout = f'{self.work}/layout'
        for name in (f'oci:{layout}:v1', f'oci:{layout}', f'oci:{layout}@{self.digest}'):
            self.assertEqual(self.ask('pull', name)['digest'], self.digest)
        for name, code in ((f'oci:{layout}:v2', 'not-found'), (f'oci:{self.work}', 'invalid'),
                           (f'oci:{self.work}/none', 'not-found'), (f'oci:{layout}@sha256:{"0" * 64}', 'not-found')):
            self.assertEqual(self.ask('pull', name)['code'], code, name)

    def test_a_layout_that_was_changed_is_refused(self):
        layout = str(self.folder() / 'layout')
        shutil.copytree(f'{self.work}/layout', layout)
        layer = f'{layout}/blobs/sha256/{self.ask("pull", "oci:" + layout)["layers"][1][7:]}'
        with open(layer, 'r+b') as file:
            file.write(b'x')
        self.assertEqual(self.ask('pull', 'oci:' + layout)['code'], 'refused')
        os.unlink(layer)
        os.symlink('/etc/hostname', layer)
        self.assertEqual(self.ask('pull', 'oci:' + layout)['code'], 'io')
        os.unlink(layer)
        os.mkfifo(layer)
        self.assertEqual(self.ask('pull', 'oci:' + layout)['code'], 'invalid')

    def test_signatures_in_a_layout_are_found(self):
        layout = self.folder() / 'layout'
        shutil.copytree(f'{self.work}/layout', layout)
        registry = self.registry()
        subject = {'mediaType': MANIFEST, 'digest': self.digest, 'size': 1}
        listed = [registry.add_signature('demo', subject, b'one')]
        tagged = registry.add_signature('demo', subject, b'two')
        fallback = json.dumps({'schemaVersion': 2, 'mediaType': INDEX, 'manifests': [tagged]}).encode()
        listed.append({'mediaType': INDEX, 'digest': digest_of(fallback), 'size': len(fallback),
                       'annotations': {'org.opencontainers.image.ref.name': 'sha256-' + self.digest[7:]}})
        for data in [fallback, *registry.blobs.values(), *(data for _, data in registry.manifests.values())]:
            (layout / 'blobs/sha256' / digest_of(data)[7:]).write_bytes(data)
        index = json.loads((layout / 'index.json').read_text())
        index['manifests'] += listed
        (layout / 'index.json').write_text(json.dumps(index))
        found = self.ask('signatures', f'oci:{layout}@{self.digest}')
        self.assertEqual((len(found['candidates']), found['failures']), (2, []))
        self.assertEqual(self.ask('pull', f'oci:{layout}')['digest'], self.digest)

    def test_an_archive_gives_the_same_layers_whole_or_compressed(self):
        archive = f'{self.work}/archive.tar'
        if not os.path.exists(archive):
            self.run_tool('skopeo', 'copy', f'oci:{self.work}/layout:v1', f'docker-archive:{archive}:demo:v1')
        answer = self.ask('pull', 'docker-archive:' + archive)
        self.assertEqual((len(answer['layers']), answer['command']), (2, ['/bin/sh']))
        self.assertEqual(self.ask('pull', f'docker-archive:{archive}:demo:v1'), answer)
        self.assertEqual(self.ask('pull', f'docker-archive:{archive}:docker.io/library/demo:v1'), answer)
        self.assertEqual(self.ask('pull', f'docker-archive:{archive}:demo:v2')['code'], 'not-found')
        packed = str(self.folder() / 'packed.tar')
        with tarfile.open(archive) as old, tarfile.open(packed, 'w') as new:
            for member in old:
                data = old.extractfile(member).read() if member.isfile() else b''
                if member.name.endswith('.tar') and member.isfile():
                    data = gzip.compress(data)
                member.size = len(data)
                new.addfile(member, io.BytesIO(data))
        self.assertEqual(self.ask('pull', 'docker-archive:' + packed)['diff_ids'], 2)
        self.assertNotEqual(self.ask('pull', 'docker-archive:' + packed)['layers'], answer['layers'])

    def test_an_archive_that_was_changed_or_cut_is_refused(self):
        archive = f'{self.folder()}/archive.tar'
        self.run_tool('skopeo', 'copy', f'oci:{self.work}/layout:v1', f'docker-archive:{archive}')
        with tarfile.open(archive) as tar:
            layer = next(member for member in tar if member.size > 100_000)
        with open(archive, 'r+b') as file:
            file.seek(layer.offset_data + 100_000)
            file.write(b'changed')
        self.assertEqual(self.ask('pull', 'docker-archive:' + archive)['code'], 'refused')
        with open(archive, 'r+b') as file:
            file.truncate(layer.offset_data + 1000)
        self.assertEqual(self.ask('pull', 'docker-archive:' + archive)['code'], 'invalid')
        self.assertEqual(self.ask('pull', 'docker-archive:/dev/null')['code'], 'invalid')


class Folder:
    def __enter__(self):
        self.path = subprocess.run(['mktemp', '-d', '/tmp/registry_test.XXXXXX'], capture_output=True, check=True,
                                   text=True).stdout.strip()
        return self.path

    def __exit__(self, *_):
        shutil.rmtree(self.path)


if __name__ == '__main__':
    main()
