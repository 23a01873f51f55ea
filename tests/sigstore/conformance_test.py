#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The part of the public conformance suite that we have, with the reason of each refusal: a verifier that
refuses everything passes most of that suite. Each case is run with the artifact's path and its digest.

usage: conformance_test.py BINARY FOLDER
Exit 4, loudly, where the folder is absent.
"""
import hashlib
import os
import pathlib
import subprocess
import sys
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
    yield from ['verify-bundle', '--bundle', folder / 'bundle.sigstore.json']
    if (folder / 'key.pub').exists():
        yield from ['--key', folder / 'key.pub']
    else:
        yield from ['--certificate-identity', text('identity', IDENTITY)]
        yield from ['--certificate-oidc-issuer', text('issuer', ISSUER)]
    if (folder / 'trusted_root.json').exists():
        yield from ['--trusted-root', folder / 'trusted_root.json']


class Conformance(unittest.TestCase):
    """One test for each case and form of the artifact, made below."""

    def check(self, folder, artifact):
        ended = subprocess.run([BINARY, *arguments(folder), artifact], stdin=subprocess.DEVNULL,
                               capture_output=True, text=True, timeout=60, check=False)
        if not folder.name.endswith('_fail'):
            self.assertEqual((ended.returncode, ended.stderr), (0, ''))
            return
        reason, word = REASONS[folder.name]
        # A malformed root is a bad input of the user's, not a bad signature.
        self.assertEqual(ended.returncode, 65 if reason.startswith('trust-root') else 77, ended.stderr)
        self.assertTrue(ended.stderr.startswith(f'agentic-ci: error: {reason}: '), ended.stderr)
        self.assertIn(word, ended.stderr)


def add(folder):
    artifact = folder / 'artifact' if (folder / 'artifact').exists() else FOLDER / 'a.txt'
    digest = 'sha256:' + hashlib.sha256(artifact.read_bytes()).hexdigest()
    for form, given in (('path', artifact), ('digest', digest)):
        setattr(Conformance, f'test_{folder.name}_{form}', lambda self, given=given: self.check(folder, given))


if __name__ == '__main__':
    if not FOLDER.is_dir():
        print(f'SKIPPED: {FOLDER} is absent: the public conformance cases are not run', file=sys.stderr)
        sys.exit(4)
    for case in sorted(path for path in FOLDER.iterdir() if path.is_dir()):
        add(case)
    unittest.main()
