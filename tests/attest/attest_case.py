# SPDX-License-Identifier: Apache-2.0
"""What the tests of this folder have in common: a checkout, a run of it that a key signed, and `verify-run` over its report.

They take BINARY SOURCE SIGSTORE [TEST...]. SIGSTORE has the packages of sigstore-python.
"""
import base64
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import sigstore_service  # noqa: F401  # It puts tests/sigstore on the path.
import signing

BINARY = os.path.abspath(sys.argv.pop(1))
SOURCE = pathlib.Path(sys.argv.pop(1)).resolve()
LIBRARIES = os.path.abspath(sys.argv.pop(1))
GIT = ['git', '-c', 'user.name=t', '-c', 'user.email=t@localhost', '-c', 'init.defaultBranch=main', '-c', 'commit.gpgsign=false']
POLICY = 'endpoints: []\n'
AGENT = ['sh', '-c', 'echo "print(2)" >app.py; echo new >notes.txt; curl -s -m 20 -o /dev/null http://pkg.example.com/a; true']
RUN = 'https://github.com/acme/site/actions/runs/77'
PAYLOAD_TYPE = 'application/vnd.in-toto+json'


def plain(**more):
    """The environment of a person at a terminal."""
    return {'PATH': os.environ['PATH'], 'HOME': os.environ.get('HOME', '/'), **more}


def git(place, *words):
    return subprocess.run([*GIT, '-C', place, *words], check=True, capture_output=True, text=True).stdout.strip()


def openssl(*words):
    subprocess.run(['openssl', *words], check=True, capture_output=True)


class Base(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.top = pathlib.Path(tempfile.mkdtemp(prefix='attest-test-'))
        cls.addClassCleanup(shutil.rmtree, cls.top, ignore_errors=True)
        cls.key, cls.public = cls.top / 'attest.pem', cls.top / 'attest.pub'
        openssl('genpkey', '-algorithm', 'EC', '-pkeyopt', 'ec_paramgen_curve:P-256', '-out', cls.key)
        openssl('pkey', '-in', cls.key, '-pubout', '-out', cls.public)
        cls.work = cls.checkout('work')
        cls.report = cls.top / 'report'
        cls.attested = cls.run_in(cls.work, cls.report, '--attest-key', cls.key)
        assert cls.attested.returncode == 0, cls.attested.stderr
        cls.bundle = cls.report / 'run.sigstore.json'

    @classmethod
    def checkout(cls, name):
        work = cls.top / name
        (work / '.agentic-ci').mkdir(parents=True)
        (work / 'app.py').write_text('print(1)\n')
        (work / '.agentic-ci/openshell-policy.yml').write_text(POLICY)
        git(cls.top, 'init', '-q', work)
        git(work, 'add', '-A')
        git(work, 'commit', '-qm', 'first')
        return work

    @classmethod
    def run_in(cls, work, report, *words, command=None, environment=None):
        tail = ['--', *(AGENT if command is None else command)] if command != () else []  # Without one, a task has it.
        return subprocess.run([BINARY, 'run', '--report-dir', report, *words, *tail], cwd=work, env=environment or plain(),
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)

    def verify(self, *words, expect=0, cwd=None, environment=None, key=True):
        """What `verify-run` prints; what it says besides is in self.said."""
        signer = ['--key', self.public] if key else []
        done = subprocess.run([BINARY, 'verify-run', *words, *signer], cwd=cwd or self.top, env=environment or plain(),
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        self.said = done.stderr
        return done.stdout

    def refused(self, name, *words, **more):
        """`verify-run` refuses, and says which expectation is not met."""
        text = self.verify(*words, expect=77, **more)
        self.assertIn(name, self.said, text)
        return text

    def statement(self, bundle=None):
        envelope = json.loads((bundle or self.bundle).read_text())['dsseEnvelope']
        return json.loads(base64.b64decode(envelope['payload']))

    def signed_again(self, statement, path):
        """The statement as the holder of the key would have signed it."""
        payload = json.dumps(statement).encode()
        message = signing.pae(payload, PAYLOAD_TYPE)
        done = subprocess.run(['openssl', 'dgst', '-sha256', '-sign', self.key], input=message, capture_output=True, check=True)
        bundle = json.loads(self.bundle.read_text())
        bundle['dsseEnvelope']['payload'] = base64.b64encode(payload).decode()
        bundle['dsseEnvelope']['signatures'][0]['sig'] = base64.b64encode(done.stdout).decode()
        path.write_text(json.dumps(bundle))
        return path

    def copy_of_report(self):
        place = pathlib.Path(tempfile.mkdtemp(dir=self.top)) / 'report'
        shutil.copytree(self.report, place, symlinks=True)
        return place
