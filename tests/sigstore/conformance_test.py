#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The part of the public conformance suite that we have, with the reason of each refusal: a verifier that
refuses everything passes most of that suite. Each case is run with the artifact's path and its digest.
Beside it, what another generator makes (FOLDER/../gen_fixtures.py).

usage: conformance_test.py BINARY FOLDER
Exit 4, loudly, where the folder is absent.
"""
import base64
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

BINARY, FOLDER = os.path.abspath(sys.argv.pop(1)), pathlib.Path(sys.argv.pop(1))
IDENTITY = ('https://github.com/sigstore-conformance/extremely-dangerous-public-oidc-beacon/.github/workflows/'
            'extremely-dangerous-oidc-beacon.yml@refs/heads/main')
ISSUER = 'https://token.actions.githubusercontent.com'

# What each must be refused for, and a word of the message.
REASONS = {
    'bundle-unknown-version_fail': ('media-type', ''),
    'bundle-with-root-cert_fail': ('root-in-bundle', ''),
    'checkpoint-wrong-roothash_fail': ('checkpoint-root', ''),
    'dsse-mismatch-sig_fail': ('tlog-mismatch', 'signature'),
    'inclusion-proof-corrupted-hash_fail': ('inclusion', ''),
    'intoto-set-outside-signing-cert-validity_fail': ('integrated-time', ''),
    'invalid-ct-key_fail': ('sct-unverified', ''),
    'managed-key-no-key_fail': ('material', ''),
    'rekor2-checkpoint-missing-size_fail': ('checkpoint-format', ''),
    'rekor2-no-timestamp_fail': ('no-timestamp', ''),
    'set-invalid-signature_fail': ('set-signature', ''),
    'signature-mismatch_fail': ('tlog-mismatch', 'signature'),
    'trust-root-tlog-missing-validity-start_fail': ('trust-root-validity', ''),
    'wrong-material_fail': ('digest', ''),
}


def arguments(folder):
    def text(name, otherwise):
        return (folder / name).read_text().strip() if (folder / name).exists() else otherwise
    yield from ['--bundle', folder / 'bundle.sigstore.json']
    if (folder / 'key.pub').exists():
        yield from ['--key', folder / 'key.pub']
    else:
        yield from ['--certificate-identity', text('identity', IDENTITY)]
        yield from ['--certificate-oidc-issuer', text('issuer', ISSUER)]
    if (folder / 'trusted_root.json').exists():
        yield from ['--trusted-root', folder / 'trusted_root.json']


def verify(*given):
    ended = subprocess.run([BINARY, 'verify-bundle', *given], stdin=subprocess.DEVNULL, capture_output=True,
                           text=True, timeout=600, check=False)
    return ended.returncode, ended.stderr


class Conformance(unittest.TestCase):
    """One test for each case and form of the artifact, made below."""

    def check(self, folder, artifact):
        status, said = verify(*arguments(folder), artifact)
        if not folder.name.endswith('_fail'):
            self.assertEqual((status, said), (0, ''))
            return
        reason, word = REASONS[folder.name]
        # A malformed root is a bad input of the user's, not a bad signature.
        self.assertEqual(status, 65 if reason.startswith('trust-root') else 77, said)
        self.assertTrue(said.startswith(f'agentic-ci: error: {reason}: '), said)
        self.assertIn(word, said)


class Generated(unittest.TestCase):
    """Signatures that another program made, of an image with this digest."""
    DIGEST = 'sha256:' + hashlib.sha256(b'an image').hexdigest()
    OTHER = 'sha256:' + hashlib.sha256(b'another image').hexdigest()
    WORKFLOW = ['--certificate-identity', 'https://github.com/o/r/.github/workflows/w.yml@refs/heads/main',
                '--certificate-oidc-issuer', ISSUER]
    MAIL = ['--certificate-identity', 'dev@example.com',
            '--certificate-oidc-issuer', 'https://accounts.example.com']

    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.temporary.cleanup)
        cls.folder = pathlib.Path(cls.temporary.name)
        subprocess.run(['/usr/bin/python3', FOLDER.resolve().parent / 'gen_fixtures.py', cls.folder, cls.DIGEST,
                        'registry.test/app:v1'], check=True, capture_output=True, timeout=600)
        cls.root = ['--trusted-root', cls.folder / 'trusted_root.json']

    def accepts(self, signer, *document):
        self.assertEqual(verify(*signer, *document, self.DIGEST), (0, ''))
        status, said = verify(*signer, *document, self.OTHER)
        self.assertEqual(status, 77, said)
        self.assertRegex(said, '^agentic-ci: error: (digest|subject): ')

    def layer(self, name):
        layers = json.loads((self.folder / 'legacy_layers.json').read_text())
        payload = base64.b64encode((self.folder / 'payload.json').read_bytes()).decode()
        file = self.folder / (name + '.json')
        file.write_text(json.dumps({'payload': payload, 'annotations': layers[name]['annotations']}))
        return '--legacy-layer', file

    def test_bundles_of_both_generations(self):
        for generation in (1, 2):
            self.accepts(self.WORKFLOW, *self.root, '--bundle', self.folder / f'bundle_rekor{generation}.json')

    def test_layers(self):
        key = ['--key', self.folder / 'cosign.pub']
        self.accepts(key, *self.layer('key'))
        self.accepts([*key, '--require-log'], *self.root, *self.layer('key_rekor'))
        self.accepts(self.MAIL, *self.root, *self.layer('keyless'))

    def test_a_layer_signed_with_a_key_is_nobody_else_s(self):
        status, said = verify(*self.MAIL, *self.root, *self.layer('key_rekor'), self.DIGEST)
        self.assertEqual(status, 77)
        self.assertIn('error: material: ', said)


def add(folder):
    artifact = folder / 'artifact' if (folder / 'artifact').exists() else FOLDER / 'a.txt'
    digest = 'sha256:' + hashlib.sha256(artifact.read_bytes()).hexdigest()
    for form, given in (('path', artifact), ('digest', digest)):
        setattr(Conformance, f'test_{folder.name}_{form}', lambda self, given=given: self.check(folder, given))


if __name__ == '__main__':
    if not FOLDER.is_dir():
        print(f'# SKIP testbed: no {FOLDER}: the public conformance cases are not run')
        sys.exit(4)
    for case in sorted(path for path in FOLDER.iterdir() if path.is_dir()):
        add(case)
    unittest.main()
