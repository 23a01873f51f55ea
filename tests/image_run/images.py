# SPDX-License-Identifier: Apache-2.0
"""Small images of busybox, and signatures over them: cosign's tags, bundles, with keys and without."""
import io
import json
import os
import pathlib
import socket
import subprocess
import sys
import tarfile
import time
import urllib.request

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS / 'services'), str(TESTS / 'sigstore')]
import registry  # noqa: E402
import signing  # noqa: E402
from keys import key  # noqa: E402
from logs import canonical  # noqa: E402

BUSYBOX = '/bin/busybox'
APPLETS = ('cat', 'chmod', 'cut', 'echo', 'env', 'grep', 'id', 'ls', 'mkdir', 'mount', 'mv',
           'readlink', 'rm', 'sed', 'sh', 'sleep', 'stat', 'touch', 'tr', 'true', 'wget', 'whoami')
PASSWD = 'root:x:0:0:root:/root:/bin/sh\nnode:x:1234:1235:Node:/home/node:/bin/sh\n'
OURS, THEIRS = key('image key'), key('another key')


def layer(entries):
    """A tar of (name, what): text, bytes, None for a directory, ('link', to), ('fifo',)."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode='w') as tar:
        for name, what in entries:
            info = tarfile.TarInfo(name)
            info.mode = 0o755
            data = b''
            if what is None:
                info.type = tarfile.DIRTYPE
            elif isinstance(what, tuple):
                info.type = {'link': tarfile.SYMTYPE, 'fifo': tarfile.FIFOTYPE}[what[0]]
                info.linkname = what[1] if len(what) > 1 else ''
            else:
                data = what.encode() if isinstance(what, str) else what
                info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def base():
    """Busybox under /bin, as Alpine has it: /usr and /bin are not one."""
    with open(BUSYBOX, 'rb') as file:
        busybox = file.read()
    return layer([('bin', None), ('bin/busybox', busybox), ('etc', None), ('etc/passwd', PASSWD),
                  ('etc/group', 'root:x:0:\nstaff:x:1240:\n'), ('etc/ssl', None),
                  ('etc/ssl/cert.pem', 'the image\'s own\n'), ('home', None), ('home/node', None),
                  ('opt', None), ('opt/tool', '#!/bin/sh\necho tool of the image\n'),
                  ('tmp', None), ('root', None), ('gone', 'of the lower layer\n')] +
                 [('bin/' + name, ('link', 'busybox')) for name in APPLETS])


BASE = base()


class Shelf:
    """A registry with images in it."""

    def __init__(self, **options):
        self.registry = registry.Registry(**options)
        self.host = self.registry.host
        self.close = self.registry.close

    def image(self, name='agent', tag='v1', layers=(), config=None, architecture='amd64', base=BASE):
        """Pushes; gives its descriptor. `config` is what stands under `config` in it."""
        layers = [base, *(one if isinstance(one, bytes) else layer(one) for one in layers)]
        document = {'os': 'linux', 'architecture': architecture, 'config': config or {},
                    'rootfs': {'type': 'layers',
                               'diff_ids': [registry.digest_of(one) for one in layers]}}
        stored = self.registry.add_blob(json.dumps(document).encode()) | {
            'mediaType': registry.CONFIG}
        return self.registry.add_manifest(name, {
            'schemaVersion': 2, 'mediaType': registry.MANIFEST, 'config': stored,
            'layers': [self.registry.add_blob(one) for one in layers]}, tag)

    def index(self, name, tag, *manifests):
        """`manifests`: (descriptor, architecture as the index has it)."""
        return self.registry.add_manifest(name, {
            'schemaVersion': 2, 'mediaType': registry.INDEX, 'manifests': [
                one | {'platform': {'os': 'linux', 'architecture': architecture}}
                for one, architecture in manifests]}, tag, media_type=registry.INDEX)

    def cosign(self, image, name='agent', by=OURS, says=None):
        """The tag that cosign 1 and 2 write, with a key."""
        payload = canonical(signing.simple_signing(critical={
            'identity': {'docker-reference': f'{self.host}/{name}'},
            'image': {'docker-manifest-digest': says or image['digest']},
            'type': 'cosign container image signature'}))
        signed = self.registry.add_blob(payload) | {
            'mediaType': 'application/vnd.dev.cosign.simplesigning.v1+json',
            'annotations': {'dev.cosignproject.cosign/signature':
                            signing.b64(by.sign(payload, 'sha256'))}}
        config = self.registry.add_blob(b'{}') | {'mediaType': registry.CONFIG}
        self.registry.add_manifest(name, {
            'schemaVersion': 2, 'mediaType': registry.MANIFEST, 'config': config,
            'layers': [signed]}, image['digest'].replace(':', '-') + '.sig')

    def bundle(self, image, name='agent', **options):
        """What cosign 3 writes. Without `managed`: by IDENTITY, keyless."""
        self.registry.add_signature(name, image, bundle_of(image, **options))

    def reference(self, image=None, name='agent', tag='v1'):
        return f'{self.host}/{name}' + (f'@{image["digest"]}' if image else f':{tag}')


def bundle_of(image, **options):
    statement = canonical(signing.statement(
        subject=[{'name': '', 'digest': {'sha256': image['digest'][7:]}}],
        predicateType=signing.SIGN))
    return json.dumps(signing.bundle(payload=statement, **options)).encode()


class DebianRegistry:
    """Debian's docker-registry, on loopback, with its files in `top`."""
    OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def __init__(self, top):
        with socket.socket() as probe:
            probe.bind(('127.0.0.1', 0))
            self.host = '127.0.0.1:%d' % probe.getsockname()[1]
        settings = pathlib.Path(top, 'registry.yml')
        settings.write_text(
            f'version: 0.1\nlog: {{level: error, accesslog: {{disabled: true}}}}\nhttp: {{addr: "{self.host}"}}\n'
            f'storage: {{filesystem: {{rootdirectory: {top}/registry}}}}\n')
        self.process = subprocess.Popen(['docker-registry', 'serve', settings], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while self.process.poll() is None:
            try:
                return socket.create_connection(tuple(self.host.split(':'))).close()
            except OSError:
                time.sleep(0.02)
        raise AssertionError('docker-registry does not start')

    def close(self):
        self.process.kill()
        self.process.wait()

    def put(self, method, name, path, data, kind='application/octet-stream'):
        address = path if path.startswith('http') else f'http://{self.host}/v2/{name}/{path}'
        request = urllib.request.Request(address, data=data, method=method, headers={'Content-Type': kind})
        with self.OPENER.open(request) as answer:
            return answer.headers

    def sign(self, name, digest, by=OURS):
        """cosign's tag, written by the test's own services and then pushed."""
        shelf = Shelf()
        try:
            shelf.cosign({'digest': digest}, name=name, by=by)
            tag = digest.replace(':', '-') + '.sig'

            def get(path):
                return self.OPENER.open(f'http://{shelf.host}/v2/{name}/{path}').read()
            manifest = get(f'manifests/{tag}')
            parsed = json.loads(manifest)
            for blob in (parsed['config'], *parsed['layers']):
                place = self.put('POST', name, 'blobs/uploads/', b'')['Location']
                self.put('PUT', name, f'{place}&digest={blob["digest"]}', get(f'blobs/{blob["digest"]}'))
            self.put('PUT', name, f'manifests/{tag}', manifest, parsed['mediaType'])
        finally:
            shelf.close()


def unpacked(store):
    """Whatever there is of layers in a store."""
    found = []
    for folder, _, files in os.walk(store):
        found += [os.path.join(folder, name) for name in files if not name.startswith('lock')]
    return found


def mounts_of(pid='self'):
    return subprocess.run(['cat', f'/proc/{pid}/mountinfo'], capture_output=True, check=True).stdout
