#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs stated, and judged, with Sigstore's own programs: Fulcio, TesseraCT, Rekor 2, the timestamp authority, cosign, sigstore-python.

programs_test.py BINARY SOURCE SIGSTORE INSTALLED [TEST...]
"""
import base64
import json
import os
import pathlib
import subprocess
import sys
import unittest

import sigstore_programs
from sigstore_programs import IDENTITY, ISSUER

sigstore_programs.enter()
INSTALLED = os.path.abspath(sys.argv.pop(4))

# pylint: disable=wrong-import-position
from attest_case import BINARY, LIBRARIES, RUN, Base, git, plain  # noqa: E402

OTHER = IDENTITY.replace('agent.yml', 'other.yml')
SLSA = 'https://slsa.dev/provenance/v1'


class Programs(Base):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.programs = sigstore_programs.Programs(INSTALLED, cls.top / 'programs')
        cls.programs.__enter__()
        cls.addClassCleanup(cls.programs.__exit__)
        cls.stated, cls.signed = cls.top / 'stated', cls.top / 'stated/run.sigstore.json'
        event = cls.top / 'event.json'
        event.write_text(json.dumps({'repository': {'full_name': 'acme/site', 'default_branch': 'main'}, 'inputs': {}}))
        cls.job = plain(GITHUB_ACTIONS='true', GITHUB_EVENT_NAME='workflow_dispatch', GITHUB_EVENT_PATH=str(event), GITHUB_RUN_ID='77',
                        GITHUB_RUN_ATTEMPT='1', GITHUB_REPOSITORY='acme/site', GITHUB_SERVER_URL='https://github.com',
                        GITHUB_SHA=git(cls.work, 'rev-parse', 'HEAD'), GITHUB_REF='refs/heads/main', GITHUB_API_URL='http://127.0.0.1:9')
        cls.attest(cls.stated, cls.programs.token())
        cls.type = json.loads(base64.b64decode(json.loads(cls.signed.read_text())['dsseEnvelope']['payload']))['predicateType']
        cls.trust = cls.top / 'trust.json'
        parts = {'trustedRoot': cls.programs.trusted_root, 'signingConfig': cls.programs.signing_config}
        cls.trust.write_text(json.dumps({'mediaType': 'application/vnd.dev.sigstore.clienttrustconfig.v0.1+json',
                                         **{name: json.loads(path.read_text()) for name, path in parts.items()}}))

    @classmethod
    def attest(cls, report, token, expect=0):
        made = cls.run_in(cls.work, report, '--attest', '--signing-config', cls.programs.signing_config, '--trusted-root',
                          cls.programs.trusted_root, environment=cls.job | {'SIGSTORE_ID_TOKEN': token})
        assert made.returncode == expect, made.stderr
        return made.stderr

    def signer(self, identity=IDENTITY, issuer=ISSUER):
        return ['--certificate-identity', identity, '--certificate-oidc-issuer', issuer, '--trusted-root', self.programs.trusted_root]

    def cosign_verifies(self, bundle, *words, identity=IDENTITY, kind=None, expect=0):
        return self.programs.cosign('verify-blob-attestation', '--bundle', bundle, '--type', kind or self.type, *self.signer(identity), *words,
                                    expect=expect)

    def sigstore_python(self, *words, expect=0):
        done = subprocess.run(['/usr/bin/python3', '-m', 'sigstore', '--trust-config', self.trust, *words], capture_output=True, text=True,
                              env=plain(PYTHONPATH=LIBRARIES, HOME=str(self.top)), check=False)
        self.assertEqual(done.returncode == 0, expect == 0, done.stdout + done.stderr)

    def python_verifies(self, bundle, file, identity=IDENTITY, expect=0):
        self.sigstore_python('verify', 'identity', '--bundle', bundle, '--cert-identity', identity, '--cert-oidc-issuer', ISSUER, file,
                             expect=expect)

    def forged(self):
        """Our bundle, with another statement about the same patch in it."""
        bundle = json.loads(self.signed.read_text())
        payload = base64.b64decode(bundle['dsseEnvelope']['payload']).replace(b'"acme/site"', b'"acme/sith"')
        self.assertIn(b'sith', payload)
        bundle['dsseEnvelope']['payload'] = base64.b64encode(payload).decode()
        (self.top / 'forged.json').write_text(json.dumps(bundle))
        return self.top / 'forged.json'

    def test_others_verify_ours(self):
        patch, other = self.stated / 'changes.patch', self.top / 'other.patch'
        other.write_text('x')
        for file in (patch, self.stated / 'run.json'):
            self.cosign_verifies(self.signed, file)
            self.python_verifies(self.signed, file)
        self.cosign_verifies(self.signed, other, expect=1)
        self.cosign_verifies(self.signed, patch, identity=OTHER, expect=1)
        self.cosign_verifies(self.signed, patch, kind=SLSA, expect=1)
        self.cosign_verifies(self.forged(), patch, expect=1)
        self.python_verifies(self.signed, other, expect=1)
        self.python_verifies(self.signed, patch, identity=OTHER, expect=1)
        self.python_verifies(self.forged(), patch, expect=1)

    def test_ours_is_verified_by_ours(self):
        """With the certificate that Fulcio makes of what GitHub says of a job."""
        self.assertIn(IDENTITY, self.verify('--report', self.stated, *self.signer(), '--repository', 'acme/site', key=False))
        self.refused('signature: identity-mismatch', '--report', self.stated, *self.signer(OTHER), key=False)
        self.refused('signature: ', '--report', self.stated, *self.signer(issuer=ISSUER + '/'), key=False)
        self.refused('signature: ', '--report', self.stated, '--bundle', self.forged(), *self.signer(), key=False)

    def test_the_certificate_is_of_this_run(self):
        for claims, unmet in (({'run_id': '78'}, 'invocation: signed in ' + RUN.replace('77', '78')),
                              ({'repository': 'acme/other'}, 'acme/other')):
            report = self.top / ('other-' + next(iter(claims)))
            self.attest(report, self.programs.token(**claims))
            self.refused(unmet, '--report', report, *self.signer(), key=False)

    def test_identities_that_fulcio_refuses(self):
        good = self.programs.token()
        for token, word in ((self.programs.token(aud='other'), '400'), (self.programs.token(exp=1), '400'), (good[:-8] + 'AAAAAAAA', '400')):
            said = self.attest(self.top / 'none', token, expect=78)
            self.assertIn('the certificate authority responded with ' + word, said)
            self.assertFalse((self.top / 'none/run.sigstore.json').exists())

    def test_ours_verifies_cosigns(self):
        statement, theirs = self.top / 'statement.json', self.top / 'cosign.json'
        statement.write_bytes(base64.b64decode(json.loads(self.signed.read_text())['dsseEnvelope']['payload']))
        self.programs.cosign('attest-blob', '--statement', statement, '--bundle', theirs, '--identity-token', self.programs.token(),
                             '--signing-config', self.programs.signing_config, '--trusted-root', self.programs.trusted_root, '--yes')
        self.assertIn(IDENTITY, self.verify('--report', self.stated, '--bundle', theirs, *self.signer(), key=False))
        self.refused('signature: identity-mismatch', '--report', self.stated, '--bundle', theirs, *self.signer(OTHER), key=False)
        self.refused('patch', '--bundle', theirs, '--patch', self.report / 'run.json', *self.signer(), key=False)
        file = self.top / 'blob'
        file.write_text('some text')
        self.programs.cosign('sign-blob', '--bundle', theirs, '--identity-token', self.programs.token(), '--signing-config',
                             self.programs.signing_config, '--trusted-root', self.programs.trusted_root, '--yes', file)
        self.bundle_verifies(theirs, file)

    def test_ours_verifies_sigstore_pythons(self):
        file, theirs, predicate = self.top / 'artifact', self.top / 'python.json', self.top / 'predicate.json'
        file.write_text('another text')
        self.sigstore_python('sign', '--identity-token', self.programs.token(), '--bundle', theirs, file)
        self.bundle_verifies(theirs, file)
        predicate.write_text(json.dumps({'buildDefinition': {'buildType': 'https://x.test', 'externalParameters': {}},
                                         'runDetails': {'builder': {'id': 'https://x.test'}}}))
        theirs.unlink()
        self.sigstore_python('attest', '--identity-token', self.programs.token(), '--predicate', predicate, '--predicate-type', SLSA, '--bundle',
                             theirs, file)
        self.bundle_verifies(theirs, file, '--predicate-type', SLSA)
        self.bundle_verifies(theirs, file, '--predicate-type', self.type, expect=77)

    def bundle_verifies(self, bundle, file, *words, expect=0):
        """The verdict of `verify-bundle`, which is the one about images, too."""
        for wanted, signed_file, identity in ((expect, file, IDENTITY), (77, self.work / 'app.py', IDENTITY), (77, file, OTHER)):
            done = subprocess.run([BINARY, 'verify-bundle', signed_file, '--bundle', bundle, *self.signer(identity), *words], env=plain(),
                                  capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, wanted, done.stdout + done.stderr)


if __name__ == '__main__':
    unittest.main(verbosity=2)
