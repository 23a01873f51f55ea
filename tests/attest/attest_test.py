#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What is stated of a run: signed by `run --attest`, verified by `verify-run` and by others, and refused where anything differs.

attest_test.py BINARY SOURCE SIGSTORE [TEST...]

SIGSTORE has the packages of sigstore-python. Identities, logs and timestamps are those of a Sigstore instance on loopback
(sigstore_service.py), which checks what it is sent.
"""
import base64
import copy
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import unittest

from sigstore_service import IDENTITY, ISSUER, Instance

import signing  # Of tests/sigstore, which sigstore_service puts on the path.

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


def leaves(value, path=()):
    """Every value of a document that holds no other, with its path."""
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from leaves(inner, (*path, name))
    elif isinstance(value, list) and value:
        for place, inner in enumerate(value):
            yield from leaves(inner, (*path, place))
    else:
        yield path, value


def changed(document, path):
    """The document with another value at `path`."""
    document = copy.deepcopy(document)
    inner = document
    for step in path[:-1]:
        inner = inner[step]
    value = inner[path[-1]]
    inner[path[-1]] = (not value if isinstance(value, bool) else value + 1 if isinstance(value, (int, float)) else
                       ('0' * len(value) if re.fullmatch('[0-9a-f]{40,}', value) else value + 'x') if isinstance(value, str) else
                       ['x'] if value == [] else {'x': 'y'} if value == {} else 'x')
    return document


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
        return subprocess.run([BINARY, 'run', '--report-dir', report, *words, '--', *(command or AGENT)], cwd=work,
                              env=environment or plain(), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)

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


class Statement(Base):
    def test_a_run_is_stated_and_verified(self):
        text = self.verify('--report', self.report)
        self.assertIn('signed by: key sha256:', text)
        statement = self.statement()
        predicate = statement['predicate']
        head = git(self.work, 'rev-parse', 'HEAD')
        self.assertEqual(predicate['run']['outcome']['kind'], 'success')
        self.assertEqual(predicate['policy']['sha256'], hashlib.sha256(POLICY.encode()).hexdigest())
        self.assertEqual(predicate['policy']['commit'], head)
        host, = (one for one in predicate['network']['hosts'] if one['host'] == 'pkg.example.com' and one['port'] == 80)
        self.assertEqual((host['allowed'], host['refused'] > 0), (0, True))
        self.assertEqual(predicate['runner']['sha256'], hashlib.sha256(pathlib.Path(BINARY).read_bytes()).hexdigest())
        self.assertTrue(predicate['complete'])
        subjects = {one['name']: one['digest'] for one in statement['subject']}
        patch = (self.report / 'changes.patch').read_bytes()
        self.assertEqual(subjects['changes.patch'], {'sha256': hashlib.sha256(patch).hexdigest()})
        # git itself makes the same tree of that patch.
        other = self.top / 'applied'
        git(self.top, 'clone', '-q', self.work, other)
        subprocess.run([*GIT, '-C', other, 'apply', '--index', '-'], input=patch, check=True)
        self.assertEqual(predicate['changes']['tree'], git(other, 'write-tree'))
        self.assertEqual(subjects['tree'], {'sha256': hashlib.sha256(git(other, 'write-tree').encode()).hexdigest()})
        # Everything in the report is stated, and nothing else.
        found = {str(path.relative_to(self.report)) for path in self.report.rglob('*') if path.is_file()} - {'run.sigstore.json'}
        self.assertEqual({one['name'] for one in predicate['records']['files']}, found)

    def test_trees_are_those_that_git_makes(self):
        work = self.checkout('trees')
        for name, text in (('only/one.txt', 'a\n'), ('only/deep/two.txt', 'b\n'), ('run.sh', '#!/bin/sh\n'), ('sub/app.py', 'print(1)\n'),
                           ('place', 'a file\n')):
            (work / name).parent.mkdir(parents=True, exist_ok=True)
            (work / name).write_text(text)
        git(work, 'add', '-A')
        git(work, 'commit', '-qm', 'more')
        for script, workdir in (('rm -r only/deep', '.'), ('rm -r only', '.'), ('git mv run.sh go.sh 2>/dev/null || mv run.sh go.sh', '.'),
                                ('chmod +x run.sh', '.'), ('ln -s run.sh link', '.'), ('rm place; mkdir place; echo x >place/inner', '.'),
                                ('rm -r only; echo x >only', '.'), ('printf "\\0\\1" >blob', '.'), ('echo "print(2)" >app.py; mkdir n; echo x >n/x', 'sub'),
                                ('true', '.')):
            with self.subTest(script=script):
                report = pathlib.Path(tempfile.mkdtemp(dir=self.top)) / 'r'
                made = self.run_in(work, report, '--attest-key', self.key, '--workdir', workdir, command=['sh', '-c', script])
                self.assertEqual(made.returncode, 0, made.stderr)
                self.verify('--report', report)
                clone = report.parent / 'clone'
                git(self.top, 'clone', '-q', work, clone)
                patch = report / 'changes.patch'
                if patch.exists() and patch.stat().st_size:
                    git(clone / workdir, 'apply', '--index', *(['--directory', workdir] if workdir != '.' else []), patch)
                statement = self.statement(report / 'run.sigstore.json')
                self.assertEqual(statement['predicate']['changes']['tree'], git(clone, 'write-tree'))
                self.assertEqual('changes.patch' in {one['name'] for one in statement['subject']}, script != 'true')
                git(clone, 'commit', '-q', '--allow-empty', '-m', 'x')
                self.verify('--report', report, '--commit', 'HEAD', cwd=clone)
                git(clone, 'commit', '-q', '--allow-empty', '-m', 'y')
                (clone / 'more').write_text('x')
                git(clone, 'add', '-A')
                git(clone, 'commit', '-q', '--amend', '-m', 'z')
                self.refused('commit', '--report', report, '--commit', 'HEAD', cwd=clone)

    def test_the_schema_has_every_member(self):
        import jsonschema
        schema = json.loads((SOURCE / 'docs/reference/schemas/attestation.schema.json').read_text())
        statement = self.statement()
        jsonschema.Draft202012Validator(schema).validate(statement)

        def compare(found, described, path):
            if isinstance(found, dict) and 'properties' in described and path[-1:] != ('digest',):
                self.assertEqual(set(found), set(described['properties']), path)
                for name, value in found.items():
                    compare(value, described['properties'][name], (*path, name))
            for value in found if isinstance(found, list) else []:
                compare(value, described['items'], path)

        compare(statement, schema, ())

    def test_each_field_that_is_changed_is_caught(self):
        """By the signature; and where the signer of the run signs another statement, by the report."""
        statement = self.statement()
        other = self.top / 'other.json'
        bundle = json.loads(self.bundle.read_text())
        paths = [('predicate', *path) for path, _ in leaves(statement['predicate'])]
        self.assertGreater(len(paths), 100)
        for path in paths:
            with self.subTest(path='.'.join(map(str, path))):
                forged = changed(statement, path)
                made = copy.deepcopy(bundle)
                made['dsseEnvelope']['payload'] = base64.b64encode(json.dumps(forged).encode()).decode()
                other.write_text(json.dumps(made))
                self.refused('signature: ', '--report', self.report, '--bundle', other)
                if path[1:] == ('runner', 'sha256'):
                    continue  # Only the signer knows what it ran as.
                self.signed_again(forged, other)
                self.verify('--report', self.report, '--bundle', other, expect=77)
                self.assertRegex(self.said, 'report|records')

    def test_reports_that_are_not_the_stated_one(self):
        def drop(place):
            (place / 'events.log').unlink()

        def change(place):
            with open(place / 'events.ocsf.jsonl', 'a') as file:
                file.write('{}\n')

        def add(place):
            (place / 'more.txt').write_text('x')

        def forge(place):
            record = json.loads((place / 'run.json').read_text())
            record['isolation']['controls'][0]['state'] = 'unavailable'
            (place / 'run.json').write_text(json.dumps(record))

        def swap(place):
            (place / 'changes.patch').write_text('')

        for fault, name in ((drop, 'is not there'), (change, 'events.ocsf.jsonl is not'), (add, 'more.txt is there'),
                            (forge, 'run.json is not'), (swap, 'changes.patch is not')):
            with self.subTest(fault=fault.__name__):
                place = self.copy_of_report()
                self.verify('--report', place)
                fault(place)
                self.assertIn(name, self.refused('records', '--report', place))
        place = self.copy_of_report()
        (place / 'events.log').unlink()
        (place / 'events.log').symlink_to('/etc/passwd')
        self.verify('--report', place, expect=65)
        self.assertIn('events.log', self.said)
        (place / 'events.log').unlink()
        os.mkfifo(place / 'events.log')
        self.verify('--report', place, expect=65)

    def test_statements_of_other_runs(self):
        other = self.top / 'other-report'
        made = self.run_in(self.work, other, '--attest-key', self.key, command=['sh', '-c', 'echo "print(3)" >app.py'])
        self.assertEqual(made.returncode, 0, made.stderr)
        self.verify('--report', other)
        self.refused('records', '--report', self.report, '--bundle', other / 'run.sigstore.json')
        self.refused('patch', '--bundle', self.bundle, '--patch', other / 'changes.patch')
        self.verify('--bundle', self.bundle, '--patch', self.report / 'changes.patch')
        stranger, half = self.top / 'stranger.pem', self.top / 'stranger.pub'
        openssl('genpkey', '-algorithm', 'ED25519', '-out', stranger)
        openssl('pkey', '-in', stranger, '-pubout', '-out', half)
        self.refused('signature: ', '--report', self.report, '--key', half, key=False)

    def test_what_is_expected(self):
        control = 'seccomp'
        sha256 = hashlib.sha256(POLICY.encode()).hexdigest()
        own = hashlib.sha256(pathlib.Path(BINARY).read_bytes()).hexdigest()
        head = git(self.work, 'rev-parse', 'HEAD')
        self.verify('--report', self.report, '--tier', 'landlock', '--control', control, '--policy-digest', sha256, '--agent', 'command',
                    '--agent', 'claude-code', '--no-refused-credentials', '--runner-digest', own, '--head', head)
        for words in (['--tier', 'namespaces'] if self.statement()['predicate']['isolation']['tier'] == 'landlock' else
                      ['--outcome', 'findings'], ['--control', 'egress proxy'], ['--policy-digest', '0' * 64], ['--checks-passed'],
                      ['--max-cost', '1'], ['--agent', 'codex'], ['--model', 'claude-*'], ['--image', 'sha256:' + '0' * 64],
                      ['--runner-digest', '0' * 64], ['--head', '0' * 40], ['--repository', 'acme/site']):
            with self.subTest(words=words):
                self.refused(words[0][2:], '--report', self.report, *words)
        for words in (['--tier', 'vm'], ['--control', 'all'], ['--policy-digest', 'x'], ['--max-cost', 'much'], ['--outcome', 'good']):
            with self.subTest(words=words):
                self.verify('--report', self.report, *words, expect=64)
                self.assertIn(words[0], self.said)
        found = json.loads(self.verify('--report', self.report, '--json', '--agent', 'codex', expect=77))
        self.assertEqual(([one['name'] for one in found['unmet']], found['met']), (['agent'], False))

    def test_a_file_of_expectations(self):
        file = self.top / 'merge.yml'
        file.write_text(f'key: {self.public}\ntier: landlock\nagent: [command, codex]\ncontrol: seccomp\nno_refused_credentials: true\n')
        self.verify('--report', self.report, '--policy', file, key=False)
        self.refused('agent', '--report', self.report, '--policy', file, '--agent', 'codex', key=False)
        for text, place in (('teir: landlock\n', "1:1: error: unknown key 'teir'"), ('tier: vm\n', '1:7: error: '),
                            ('agent: []\n', '1:8: error: '), ('- x\n', '1:1: error: ')):
            with self.subTest(text=text):
                file.write_text(text)
                self.verify('--report', self.report, '--policy', file, expect=65)
                self.assertIn(place, self.said)

    def test_values_that_a_script_did_not_set(self):
        for words in (['--report', ''], ['--report', self.report, '--patch', ''], ['--report', self.report, '--tier', '']):
            with self.subTest(words=words):
                self.verify(*words, expect=64)
        place = self.copy_of_report()
        (place / 'run.sigstore.json').unlink()
        os.mkfifo(place / 'run.sigstore.json')
        self.refused('signature: ', '--report', place)
        (place / 'run.sigstore.json').unlink()
        (place / 'run.sigstore.json').symlink_to(self.bundle)
        self.verify('--report', place, expect=74)

    def test_a_policy_that_was_replaced(self):
        policy, report = self.top / 'replaced.yml', self.top / 'replaced-report'
        policy.write_text(POLICY)
        process = subprocess.Popen([BINARY, 'run', '--report-dir', report, '--attest-key', self.key, '--policy', policy, '--', 'sh', '-c',
                                    'echo ready; while [ ! -e go ]; do curl -s -m 5 -o /dev/null http://pkg.example.com/; sleep 0.2; '
                                    '[ $((n = n + 1)) -lt 20 ] || break; done'], cwd=self.work, env=plain(), stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        while 'ready' not in process.stdout.readline():
            pass
        policy.write_text('endpoints: [pkg.example.com:80:read-only]\n')
        process.send_signal(signal.SIGUSR1)
        process.communicate()
        self.assertEqual(process.returncode, 0)
        sha256 = hashlib.sha256(POLICY.encode()).hexdigest()
        self.assertGreater(self.statement(report / 'run.sigstore.json')['predicate']['policy']['replaced'], 0)
        self.assertIn('replaced', self.refused('policy-digest', '--report', report, '--policy-digest', sha256))

    def test_one_record_is_shown(self):
        count = self.statement()['predicate']['records']['events']['count']
        self.assertGreater(count, 0)
        for number in {0, count - 1}:
            shown = self.top / 'shown.json'
            shown.write_text(self.verify('--report', self.report, '--show', str(number)))
            self.verify('--bundle', self.bundle, '--record', shown)
            record = json.loads(shown.read_text())
            self.assertEqual(record['record'], (self.report / 'events.ocsf.jsonl').read_text().splitlines()[number])
            shown.write_text(json.dumps(record | {'record': record['record'].replace('"', "'", 1)}))
            self.refused('record', '--bundle', self.bundle, '--record', shown)
            shown.write_text(json.dumps(record | {'count': count + 1}))
            self.refused('record', '--bundle', self.bundle, '--record', shown)
        self.verify('--report', self.report, '--show', str(count), expect=66)

    def test_the_key_is_hidden_and_a_bad_one_starts_nothing(self):
        report, work = self.top / 'hidden', self.checkout('hidden-work')
        for name in ('signing.dat', 'other.dat'):
            shutil.copy(self.key, work / name)
        (work / '.gitignore').write_text('*.dat\n')
        looks = ['sh', '-c', 'for name in signing other; do head -c 60 $name.dat 2>/dev/null | tr A-Z a-z >$name.txt; done; true']
        for tier in ('namespaces', 'landlock'):
            made = self.run_in(work, report, '--attest-key', work / 'signing.dat', '--isolation', tier, command=looks)
            self.assertEqual(made.returncode, 0, made.stderr)
            patch = (report / 'changes.patch').read_text()
            self.assertEqual(patch.count('begin private key'), 1, patch)  # The control: of the other file.
            self.assertLess(patch.index('other.txt'), patch.index('begin private key'))
            self.assertLess(patch.index('begin private key'), patch.index('signing.txt'))
            self.verify('--report', report)
        bad = self.top / 'bad.pem'
        bad.write_text('x')
        made = self.run_in(self.work, self.top / 'none', '--attest-key', bad)
        self.assertEqual(made.returncode, 65, made.stderr)
        self.assertIn('openssl genpkey', made.stderr)
        self.assertFalse((self.top / 'none/run.json').exists())

    def test_a_command_signs(self):
        def signs(script, expect=0):
            report = pathlib.Path(tempfile.mkdtemp(dir=self.top)) / 'r'
            made = self.run_in(self.work, report, '--attest-command', script, '--attest-public-key', self.public)
            self.assertEqual(made.returncode, expect, made.stderr)
            if expect == 0:
                self.verify('--report', report)
            else:
                # The run's own report is not lost.
                self.assertEqual(json.loads((report / 'run.json').read_text())['outcome']['kind'], 'success')
                self.assertFalse((report / 'run.sigstore.json').exists())
            return made.stderr

        der = f'openssl dgst -sha256 -sign {self.key}'
        signs(der)
        signs(f'echo "vault:v1:$({der} | base64 -w0)"')
        # A service that is given the digest, and answers with the two numbers.
        numbers = ("import base64, sys; from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature as d; "
                   "sys.stdout.write(base64.b64encode(b''.join(n.to_bytes(32, 'big') for n in d(sys.stdin.buffer.read()))).decode())")
        signs(f'printf %s "$AGENTIC_CI_SHA256" | base64 -d >{self.top}/digest && openssl pkeyutl -sign -inkey {self.key} '
              f'-in {self.top}/digest | /usr/bin/python3 -c "{numbers}"')
        self.assertIn('is not a signature', signs('echo aGVsbG8=', expect=78))
        self.assertIn('ended with 3: no key', signs('echo no key >&2; exit 3', expect=78))
        made = self.run_in(self.work, self.top / 'none', '--attest-command', 'true')
        self.assertEqual(made.returncode, 64)

    def test_without_anything_to_sign_with(self):
        report = self.top / 'unsigned'
        made = self.run_in(self.work, report, '--attest')
        self.assertEqual(made.returncode, 0, made.stderr)
        self.assertIn('is not signed', made.stderr)
        statement = json.loads((report / 'run.intoto.json').read_text())
        self.assertEqual(statement['predicate']['run']['outcome']['kind'], 'success')
        self.refused('is not signed', '--report', report)
        # The next run leaves nothing of it.
        made = self.run_in(self.work, report)
        self.assertEqual(sorted(path.name for path in report.glob('run*')), ['run.json'])
        self.assertEqual(stat.S_IMODE((self.report / 'run.sigstore.json').stat().st_mode) & 0o022, 0)


class Keyless(Base):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.instance = Instance(cls.top / 'instance')
        cls.instance.__enter__()
        cls.addClassCleanup(cls.instance.__exit__)

    def attest(self, name, config, token=None, expect=0, **variables):
        report = self.top / name
        environment = plain(SIGSTORE_ID_TOKEN=token or self.instance.token(), **variables)
        made = self.run_in(self.work, report, '--attest', '--signing-config', config, '--trusted-root', self.instance.trusted_root,
                           environment=environment)
        self.assertEqual(made.returncode, expect, made.stderr)
        self.log = made.stderr
        return report

    def signer(self, identity=IDENTITY):
        return ['--certificate-identity', identity, '--certificate-oidc-issuer', ISSUER, '--trusted-root', self.instance.trusted_root]

    def sigstore_python(self, report, log, identity=IDENTITY, expect=0, patch=None):
        """The verdict of another implementation, over the patch."""
        trust = self.top / f'trust-{log}.json'
        trust.write_text(json.dumps({'mediaType': 'application/vnd.dev.sigstore.clienttrustconfig.v0.1+json',
                                     'trustedRoot': self.instance.describe_root(), 'signingConfig': self.instance.describe_config(log)}))
        done = subprocess.run(['/usr/bin/python3', '-m', 'sigstore', '--trust-config', trust, 'verify', 'identity', '--bundle',
                               report / 'run.sigstore.json', '--cert-identity', identity, '--cert-oidc-issuer', ISSUER, '--offline',
                               patch or report / 'changes.patch'], env=plain(PYTHONPATH=LIBRARIES), capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode == 0, expect == 0, done.stdout + done.stderr)

    def test_both_generations_of_logs(self):
        for log in (1, 2):
            with self.subTest(log=log):
                report = self.attest(f'log-{log}', self.instance.signing_config(log))
                self.assertIn(IDENTITY, self.verify('--report', report, *self.signer(), key=False))
                self.refused('signature: identity-mismatch', '--report', report, *self.signer(IDENTITY + 'x'), key=False)
                self.sigstore_python(report, log)
                other = self.top / 'other.patch'
                other.write_text('x')
                self.sigstore_python(report, log, patch=other, expect=1)
                self.sigstore_python(report, log, identity=IDENTITY + 'x', expect=1)

    def test_a_timestamp_alone(self):
        report = self.attest('stamped', self.instance.signing_config(log=0))
        self.refused('signature: tlog-none', '--report', report, *self.signer(), key=False)
        self.verify('--report', report, *self.signer(), '--no-log', key=False)

    def test_the_certificate_names_the_run(self):
        event = self.top / 'event.json'
        head = git(self.work, 'rev-parse', 'HEAD')
        event.write_text(json.dumps({'repository': {'full_name': 'acme/site', 'default_branch': 'main'}, 'inputs': {}}))
        job = {'GITHUB_ACTIONS': 'true', 'GITHUB_EVENT_NAME': 'workflow_dispatch', 'GITHUB_EVENT_PATH': str(event), 'GITHUB_RUN_ID': '77',
               'GITHUB_RUN_ATTEMPT': '1', 'GITHUB_REPOSITORY': 'acme/site', 'GITHUB_SERVER_URL': 'https://github.com', 'GITHUB_SHA': head,
               'GITHUB_REF': 'refs/heads/main', 'GITHUB_API_URL': self.instance.url, 'GITHUB_WORKSPACE': str(self.work)}
        claims = {'12': 'https://github.com/acme/site', '21': RUN + '/attempts/1'}
        for name, fulcio, unmet in (('right', claims, ''), ('run', claims | {'21': RUN.replace('77', '78') + '/attempts/1'}, 'invocation'),
                                    ('repository', claims | {'12': 'https://github.com/acme/other'}, 'repository')):
            with self.subTest(name=name):
                token = self.instance.token(fulcio=fulcio)
                report = self.attest('named-' + name, self.instance.signing_config(2), token=token, **job)
                if unmet:
                    self.refused(unmet, '--report', report, *self.signer(), key=False)
                else:
                    self.verify('--report', report, *self.signer(), '--repository', 'acme/site', key=False)

    def test_the_job_asks_for_its_identity(self):
        report = self.top / 'asked'
        environment = plain(ACTIONS_ID_TOKEN_REQUEST_URL=self.instance.url + '/token?x=1', ACTIONS_ID_TOKEN_REQUEST_TOKEN='right')
        looks = ['sh', '-c', 'env >seen.txt; cat /proc/*/environ 2>/dev/null | tr "\\0" "\\n" >>seen.txt; true']
        made = self.run_in(self.work, report, '--attest', '--signing-config', self.instance.signing_config(2), '--trusted-root',
                           self.instance.trusted_root, environment=environment, command=looks)
        self.assertEqual(made.returncode, 0, made.stderr)
        self.verify('--report', report, *self.signer(), key=False)
        path, headers, _ = next(one for one in self.instance.requests if one[0].startswith('/token'))
        self.assertEqual((path, headers['authorization']), ('/token?x=1&audience=sigstore', 'Bearer right'))
        for place in report.iterdir():
            text = place.read_bytes()
            self.assertNotIn(b'REQUEST_TOKEN', text, place)
        self.assertIn('PATH=', (report / 'changes.patch').read_text())

    def test_services_that_refuse_or_are_away(self):
        for path, fault, expect, word in (
                ('/api/v2/signingCert', (403, 'application/json', b'{"message": "no"}'), 78, 'the certificate authority responded with 403'),
                ('/api/v2/log/entries', (200, 'application/json', b'{}'), 77, 'does not verify'),
                ('/api/v1/timestamp', (400, 'text/plain', b'bad'), 78, 'the timestamp authority responded with 400')):
            with self.subTest(path=path):
                self.instance.faults[path] = fault
                report = self.attest('faulty', self.instance.signing_config(2), expect=expect)
                self.instance.faults.clear()
                self.assertIn(word, self.log)
                self.assertFalse((report / 'run.sigstore.json').exists())
                self.assertEqual(json.loads((report / 'run.json').read_text())['outcome']['kind'], 'success')
        self.attest('faulty', self.instance.signing_config(2, stamps=False), expect=78)
        self.assertIn('no timestamp authority', self.log)

    def test_keys_with_a_log(self):
        report = self.top / 'key-log'
        for log in (1, 2):
            made = self.run_in(self.work, report, '--attest-key', self.key, '--signing-config', self.instance.signing_config(log),
                               '--trusted-root', self.instance.trusted_root)
            self.assertEqual(made.returncode, 0, made.stderr)
            self.verify('--report', report, '--require-log', '--trusted-root', self.instance.trusted_root)
        self.refused('signature: tlog-none', '--report', self.report, '--require-log', '--trusted-root', self.instance.trusted_root)

    def test_signing_configurations_that_are_none(self):
        config = self.top / 'config.json'
        good = self.instance.describe_config(2)
        late = copy.deepcopy(good)
        late['rekorTlogUrls'][0]['validFor'] = {'start': '2999-01-01T00:00:00Z'}
        late['rekorTlogConfig'] = {'selector': 'EXACT', 'count': 1}
        for name, text, word in (('type', json.dumps(good | {'mediaType': 'x'}), 'media type'), ('json', '{', 'JSON'),
                                 ('selector', json.dumps(good | {'tsaConfig': {'selector': 'SOME'}}), 'selector'),
                                 ('late', json.dumps(late), 'more services')):
            with self.subTest(name=name):
                config.write_text(text)
                made = self.run_in(self.work, self.top / 'none', '--attest-key', self.key, '--signing-config', config)
                self.assertEqual(made.returncode, 65, made.stderr)
                self.assertIn(word, made.stderr)


class Post(Base):
    """`post --require-run`, up to the forge, which is not there."""

    def post(self, report, word, *words, expect=77, run='77'):
        event = self.top / 'push.json'
        event.write_text(json.dumps({'repository': {'full_name': 'acme/site', 'default_branch': 'main'}, 'inputs': {}}))
        job = plain(GITHUB_ACTIONS='true', GITHUB_EVENT_NAME='workflow_dispatch', GITHUB_EVENT_PATH=str(event), GITHUB_RUN_ID=run,
                    GITHUB_RUN_ATTEMPT='2', GITHUB_REPOSITORY='acme/site', GITHUB_SERVER_URL='https://github.com',
                    GITHUB_SHA=git(self.work, 'rev-parse', 'HEAD'), GITHUB_REF='refs/heads/main', GITHUB_TOKEN='t',
                    GITHUB_API_URL='http://127.0.0.1:9')
        self.job = job | {'GITHUB_RUN_ATTEMPT': '1'}
        if word is None:
            return
        done = subprocess.run([BINARY, 'post', report, '--number', '7', '--timeout', '1s', *words], env=job, cwd=self.top,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, expect, done.stderr)
        self.assertIn(word, done.stderr)

    def test_only_a_stated_report_of_this_run_is_posted(self):
        self.post(None, None)
        report = self.top / 'posted'
        made = self.run_in(self.work, report, '--attest-key', self.key, environment=self.job)
        self.assertEqual(made.returncode, 0, made.stderr)
        asked = ['--require-run', '--key', self.public]
        self.post(report, '127.0.0.1', *asked, expect=75)  # The control: it gets as far as the forge.
        self.post(report, 'another run: https://github.com/acme/site/actions/runs/77', *asked, run='78')
        self.post(self.report, 'one outside of CI', *asked)
        self.post(report, 'needs a signer', '--require-run', expect=64)
        other = self.top / 'posted-other'
        shutil.copytree(report, other)
        (other / 'changes.patch').write_text((other / 'changes.patch').read_text().replace('print(2)', 'print(6)'))
        self.post(other, 'changes.patch is not the one that is stated', *asked)
        (other / 'run.sigstore.json').unlink()
        self.post(other, 'reading the statement', *asked, expect=66)


class PullRequest(Base):
    """Merge only what was proven."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.report = cls.top / 'job-report'
        made = cls.run_in(cls.work, cls.report, '--attest-key', cls.key)
        assert made.returncode == 0, made.stderr
        cls.runs = cls.top / 'runs'
        cls.runs.mkdir()
        shutil.copytree(cls.report, cls.runs / 'first/agentic-ci-report')

    @classmethod
    def run_in(cls, work, report, *words, command=None, environment=None):
        """In a job of the repository, which somebody has started by hand."""
        event = cls.top / 'dispatch.json'
        event.write_text(json.dumps({'repository': {'full_name': 'acme/site', 'default_branch': 'main'}, 'inputs': {}}))
        job = plain(GITHUB_ACTIONS='true', GITHUB_EVENT_NAME='workflow_dispatch', GITHUB_EVENT_PATH=str(event), GITHUB_RUN_ID='77',
                    GITHUB_REPOSITORY='acme/site', GITHUB_SERVER_URL='https://github.com', GITHUB_API_URL='http://127.0.0.1:9',
                    GITHUB_SHA=git(work, 'rev-parse', 'HEAD'), GITHUB_REF='refs/heads/main')
        return super().run_in(work, report, *words, command=command, environment=environment or job)

    def commit(self, work, report=None, message='Changes by the agent', statement=None):
        """A commit as `agentic-ci post` makes it of a report."""
        if report:
            subprocess.run([*GIT, '-C', work, 'apply', '--index', report / 'changes.patch'], check=True)
        lines = ['', 'Agentic-CI: 0123/4567/' + git(work, 'rev-parse', 'HEAD')]
        if statement is not False:
            bundle = (statement or (report or self.report) / 'run.sigstore.json').read_bytes()
            lines.append('Agentic-CI-Statement: ' + hashlib.sha256(bundle).hexdigest())
        git(work, 'commit', '-q', '--allow-empty', '-m', message + '\n' + '\n'.join(lines))

    def proposal(self):
        """A branch for a pull request, in a clone of its own."""
        work = pathlib.Path(tempfile.mkdtemp(dir=self.top)) / 'clone'
        git(self.top, 'clone', '-q', self.work, work)
        git(work, 'checkout', '-q', '-b', 'topic')
        return work

    def judge(self, work, *words, expect=0, policy=None):
        event = work.parent / 'event.json'
        base, head = git(work, 'rev-parse', 'origin/main'), git(work, 'rev-parse', 'HEAD')
        repository = {'full_name': 'acme/site'}
        event.write_text(json.dumps({'number': 7, 'repository': repository | {'default_branch': 'main'}, 'pull_request': {
            'number': 7, 'base': {'ref': 'main', 'sha': base, 'repo': repository},
            'head': {'ref': 'topic', 'sha': head, 'repo': repository}}}))
        job = plain(GITHUB_ACTIONS='true', GITHUB_EVENT_NAME='pull_request_target', GITHUB_EVENT_PATH=str(event), GITHUB_REPOSITORY='acme/site',
                    GITHUB_SERVER_URL='https://github.com', GITHUB_API_URL='https://api.github.com', GITHUB_RUN_ID='9',
                    GITHUB_REF='refs/heads/main', GITHUB_SHA=base)
        text = self.verify('--pull-request', '--bundles', self.runs, *(['--policy', policy] if policy else []), *words, expect=expect,
                           cwd=work, environment=job, key=policy is None)
        return text

    def test_a_commit_with_a_statement_passes(self):
        work = self.proposal()
        self.commit(work, self.report)
        self.assertIn('proven, signed by key', self.judge(work))
        self.assertIn('proven', self.judge(work, '--tier', 'landlock', '--every-commit'))

    def test_a_commit_without_one_does_not(self):
        work = self.proposal()
        self.commit(work, self.report, statement=False)
        self.assertIn('names no statement', self.judge(work, expect=77))
        work = self.proposal()
        missing = self.top / 'missing.json'
        missing.write_text('{}')
        self.commit(work, self.report, statement=missing)
        self.assertIn('was not found', self.judge(work, expect=77))

    def test_a_person_commits(self):
        work = self.proposal()
        (work / 'person.txt').write_text('x')
        git(work, 'add', '-A')
        git(work, 'commit', '-qm', 'By a person')
        self.assertIn("not an agent's", self.judge(work))
        self.assertIn('names no statement', self.judge(work, '--every-commit', expect=77))

    def test_amended_by_hand(self):
        work = self.proposal()
        self.commit(work, self.report)
        (work / 'app.py').write_text('print(2)\nimport os\n')
        git(work, 'commit', '-q', '-a', '--amend', '--no-edit')
        self.assertIn('unmet: commit', self.judge(work, expect=77))

    def test_a_weaker_tier(self):
        report = self.runs / 'weak/agentic-ci-report'
        made = self.run_in(self.work, report, '--attest-key', self.key, '--isolation', 'landlock')
        self.assertEqual(made.returncode, 0, made.stderr)
        work = self.proposal()
        self.commit(work, report)
        self.judge(work)
        self.assertIn('unmet: tier', self.judge(work, '--tier', 'namespaces', expect=77))

    def test_another_policy(self):
        other = self.top / 'other-policy.yml'
        other.write_text('endpoints: [pkg.example.com:80:read-only]\n')
        report = self.runs / 'policy/agentic-ci-report'
        made = self.run_in(self.work, report, '--attest-key', self.key, '--policy', other)
        self.assertEqual(made.returncode, 0, made.stderr)
        work = self.proposal()
        self.commit(work, report)
        self.assertIn('unmet: base-policy', self.judge(work, expect=77))

    def test_the_branch_had_moved(self):
        """The patch is the run's, on another parent."""
        work = self.proposal()
        (work / 'person.txt').write_text('x')
        git(work, 'add', '-A')
        git(work, 'commit', '-qm', 'By a person')
        self.commit(work, self.report)
        self.assertIn('proven', self.judge(work))
        # Without the patch nothing says what that run made of this parent.
        alone = self.top / 'alone'
        shutil.copytree(self.report, alone)
        (alone / 'changes.patch').unlink()
        self.judge(work, '--bundles', alone, expect=64)
        runs, self.runs = self.runs, alone
        self.addCleanup(setattr, self, 'runs', runs)
        self.assertIn('unmet: commit', self.judge(work, expect=77))

    def test_a_persons_work_in_the_same_commit(self):
        """The tree is the one that the run made, on another parent: what is between would be merged unseen."""
        work = self.proposal()
        (work / 'backdoor.py').write_text('x')
        git(work, 'add', '-A')
        git(work, 'commit', '-qm', 'By a person')
        report = self.runs / 'squashed/agentic-ci-report'
        made = self.run_in(work, report, '--attest-key', self.key, '--policy-ref', 'origin/main')
        self.assertEqual(made.returncode, 0, made.stderr)
        subprocess.run([*GIT, '-C', work, 'apply', '--index', report / 'changes.patch'], check=True)
        git(work, 'reset', '-q', '--soft', 'origin/main')
        self.commit(work, statement=report / 'run.sigstore.json')
        for words in ((), ('--every-commit',)):
            self.assertIn('unmet: commit', self.judge(work, *words, expect=77))
        # As a merge that drops one side, too.
        tree = git(work, 'rev-parse', 'HEAD^{tree}')
        message = git(work, 'log', '-1', '--format=%B')
        merge = git(work, 'commit-tree', tree, '-p', 'origin/main', '-p', git(work, 'rev-parse', 'HEAD'), '-m', message)
        git(work, 'reset', '-q', '--hard', merge)
        self.assertIn('other parents', self.judge(work, expect=77))

    def test_a_directorys_patch_elsewhere(self):
        work = self.checkout('below')
        (work / 'docs').mkdir()
        (work / 'docs/a.md').write_text('x\n')
        git(work, 'add', '-A')
        git(work, 'commit', '-qm', 'docs')
        report = self.runs / 'below/agentic-ci-report'
        made = self.run_in(work, report, '--attest-key', self.key, '--workdir', 'docs',
                           command=['sh', '-c', 'mkdir -p .github/workflows && echo "on: push" >.github/workflows/x.yml'])
        self.assertEqual(made.returncode, 0, made.stderr)
        for below, expect in (('.', 77), ('docs', 0)):
            clone = pathlib.Path(tempfile.mkdtemp(dir=self.top)) / 'clone'
            git(self.top, 'clone', '-q', work, clone)
            git(clone, 'checkout', '-q', '-b', 'topic')
            git(clone, 'commit', '-q', '--allow-empty', '-m', 'the branch has moved')
            git(clone, 'apply', '--index', *(['--directory', below] if below != '.' else []), report / 'changes.patch')
            self.commit(clone, statement=report / 'run.sigstore.json')
            self.judge(clone, expect=expect)

    def test_a_checkout_with_other_files(self):
        work = self.checkout('dirty')
        (work / 'generated.py').write_text('x')
        report = self.runs / 'dirty/agentic-ci-report'
        made = self.run_in(work, report, '--attest-key', self.key)
        self.assertEqual(made.returncode, 0, made.stderr)
        self.assertEqual(self.statement(report / 'run.sigstore.json')['predicate']['changes']['tree'], '')

    def test_another_configuration_and_another_repository(self):
        work = self.checkout('weaker')
        (work / '.agentic-ci/config.yml').write_text('limits: {max_requests: 5}\n')
        git(work, 'add', '-A')
        git(work, 'commit', '-qm', 'configuration')
        report = self.runs / 'configured/agentic-ci-report'
        made = self.run_in(work, report, '--attest-key', self.key)
        self.assertEqual(made.returncode, 0, made.stderr)
        clone = self.proposal()
        self.commit(clone, report)
        self.assertIn('the configuration was not', self.judge(clone, expect=77))
        plain_report = self.runs / 'plain/agentic-ci-report'
        made = Base.run_in(self.work, plain_report, '--attest-key', self.key)
        self.assertEqual(made.returncode, 0, made.stderr)
        clone = self.proposal()
        self.commit(clone, plain_report)
        self.assertIn('unmet: repository', self.judge(clone, expect=77))

    def test_what_strangers_put_beside_the_statements(self):
        work = self.proposal()
        self.commit(work, self.report)
        copy_ = self.runs / 'zz/agentic-ci-report'
        shutil.copytree(self.report, copy_)
        (copy_ / 'changes.patch').write_text('x')
        (self.runs / 'aa').mkdir()
        os.mkfifo(self.runs / 'aa/run.sigstore.json')
        (self.runs / 'bb/run.sigstore.json').mkdir(parents=True)
        (self.runs / 'cc').mkdir()
        (self.runs / 'cc/run.sigstore.json').symlink_to('/dev/zero')
        git(work, 'commit', '-q', '--allow-empty', '-m', 'x')  # The next one is on another parent, so that the patch is needed.
        self.judge(work)
        for name in ('zz', 'aa', 'bb', 'cc'):
            shutil.rmtree(self.runs / name)

    def test_trailers_in_other_forms(self):
        for trailer in ('agentic-ci:x/y/z', 'AGENTIC-CI-STATEMENT:', 'Agentic-CI:'):
            work = self.proposal()
            git(work, 'commit', '-q', '--allow-empty', '-m', f'x\n\n{trailer}')
            self.assertIn('names no statement', self.judge(work, expect=77))

    def test_what_the_pull_request_says_does_not_count(self):
        """Expectations and keys in the checkout are those of the base."""
        work = self.checkout('with-rules')
        shutil.copy(self.public, work / '.agentic-ci/attest.pub')
        (work / '.agentic-ci/merge.yml').write_text('key: .agentic-ci/attest.pub\nagent: codex\n')
        git(work, 'add', '-A')
        git(work, 'commit', '-qm', 'rules')
        clone = self.top / 'with-rules-clone'
        git(self.top, 'clone', '-q', work, clone)
        git(clone, 'checkout', '-q', '-b', 'topic')
        self.commit(clone, self.report)
        self.assertIn('unmet: agent', self.judge(clone, policy='.agentic-ci/merge.yml', expect=77))
        (clone / '.agentic-ci/merge.yml').write_text('key: .agentic-ci/attest.pub\nagent: command\n')
        git(clone, 'commit', '-q', '-a', '-m', 'a wider rule')
        self.assertIn('unmet: agent', self.judge(clone, policy='.agentic-ci/merge.yml', expect=77))


if __name__ == '__main__':
    unittest.main(verbosity=2)
