# SPDX-License-Identifier: Apache-2.0
"""Tar archives byte by byte, as no library would write them, and image layouts around them."""
import gzip
import hashlib
import json
import os
import subprocess

END = bytes(1024)


def octal(value, width):
    if value < 0 or value >= 8 ** (width - 1):  # GNU's base 256.
        return (value & (256 ** width - 1) | 128 << (8 * (width - 1))).to_bytes(width, 'big')
    return b'%0*o\0' % (width - 1, value)


def as_bytes(text):
    return text if isinstance(text, bytes) else text.encode()


def header(name, kind=b'0', size=0, mode=0o644, uid=0, gid=0, mtime=1000, link=b'', magic=b'ustar\x0000',
           tail=b''):
    block = bytearray(512)
    block[0:100] = as_bytes(name)[:100].ljust(100, b'\0')
    block[100:108] = octal(mode, 8)
    block[108:116] = octal(uid, 8)
    block[116:124] = octal(gid, 8)
    block[124:136] = octal(size, 12)
    block[136:148] = octal(mtime, 12)
    block[156:157] = kind
    block[157:257] = as_bytes(link)[:100].ljust(100, b'\0')
    block[257:265] = magic
    block[345:345 + len(tail)] = tail
    block[148:156] = b' ' * 8
    block[148:156] = b'%06o\0 ' % sum(block)
    return bytes(block)


def padded(data):
    return data + bytes(-len(data) % 512)


def pax(**records):
    return pax_records([(key.replace('__', '.'), value) for key, value in records.items()])


def pax_records(records, kind=b'x'):
    body = b''
    for key, value in records:
        rest = b' ' + as_bytes(key) + b'=' + as_bytes(value) + b'\n'
        length = len(rest)
        while len(str(length)) + len(rest) != length:
            length = len(str(length)) + len(rest)
        body += str(length).encode() + rest
    return header('pax', kind, len(body)) + padded(body)


def long_name(name, kind=b'L'):
    data = as_bytes(name) + b'\0'
    return header('././@LongLink', kind, len(data), magic=b'ustar  \0') + padded(data)


def file(name, data=b'', **more):
    data = as_bytes(data)
    return header(name, b'0', len(data), **more) + padded(data)


def directory(name, mode=0o755, **more):
    return header(name, b'5', mode=mode, **more)


def symlink(name, target, **more):
    return header(name, b'2', link=target, mode=0o777, **more)


def hardlink(name, target, **more):
    return header(name, b'1', link=target, **more)


def pack(tar, how):
    if how == 'gzip':
        return gzip.compress(tar, 1, mtime=0)
    if how == 'zstd':
        return subprocess.run(['zstd', '-q', '-1', '-c'], input=tar, stdout=subprocess.PIPE, check=True).stdout
    return tar


class Layout:
    """An image layout on disk. Layers are (tar bytes, blob bytes); the lowest first."""

    def __init__(self, path):
        self.path = path
        os.makedirs(f'{path}/blobs/sha256', exist_ok=True)

    def put(self, data):
        digest = hashlib.sha256(data).hexdigest()
        with open(f'{self.path}/blobs/sha256/{digest}', 'wb') as out:
            out.write(data)
        return {'digest': 'sha256:' + digest, 'size': len(data)}

    def write(self, layers, diff_ids=None):
        diff_ids = diff_ids or ['sha256:' + hashlib.sha256(tar).hexdigest() for tar, _ in layers]
        config = self.put(json.dumps({
            'architecture': 'arm64' if os.uname().machine == 'aarch64' else 'amd64', 'os': 'linux',
            'config': {}, 'rootfs': {'type': 'layers', 'diff_ids': diff_ids}}).encode())
        config['mediaType'] = 'application/vnd.oci.image.config.v1+json'
        manifest = self.put(json.dumps({
            'schemaVersion': 2, 'mediaType': 'application/vnd.oci.image.manifest.v1+json', 'config': config,
            'layers': [dict(self.put(blob), mediaType='application/vnd.oci.image.layer.v1.tar+gzip')
                       for _, blob in layers]}).encode())
        manifest['mediaType'] = 'application/vnd.oci.image.manifest.v1+json'
        manifest['annotations'] = {'org.opencontainers.image.ref.name': 't'}
        with open(f'{self.path}/index.json', 'w', encoding='utf-8') as out:
            json.dump({'schemaVersion': 2, 'manifests': [manifest]}, out)
        with open(f'{self.path}/oci-layout', 'w', encoding='utf-8') as out:
            out.write('{"imageLayoutVersion":"1.0.0"}')
        return f'oci:{self.path}:t'
