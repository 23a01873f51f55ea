#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What is stated of a run: signed by `run --attest`, verified by `verify-run` and by others, and refused where anything differs.

attest_test.py BINARY SOURCE SIGSTORE [TEST...]

Identities, logs and timestamps are those of a Sigstore instance on loopback (sigstore_service.py), which checks what it is sent.
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

from attest_case import AGENT, BINARY, GIT, LIBRARIES, POLICY, RUN, SOURCE, Base, git, openssl, plain
from sigstore_service import IDENTITY, ISSUER, Instance


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


def described(schema, path=()):
    """Every field that a schema describes, by its path: '*' stands for an element of a list."""
    if 'properties' in schema:
        for name, inner in schema['properties'].items():
            yield from described(inner, (*path, name))
    elif 'items' in schema:
        yield from described(schema['items'], (*path, '*'))
    else:
        yield path


def invented(schema):
    """Any value of that schema."""
    kind = schema.get('type')
    return ({name: invented(inner) for name, inner in schema['properties'].items()} if 'properties' in schema else schema['enum'][0]
            if 'enum' in schema else {'integer': 1, 'number': 1, 'boolean': True}.get(kind, 'x'))


def claimed(document, schema, path):
    """The document with one more element in the list that is on the way to `path`."""
    document = copy.deepcopy(document)
    inner = document
    for step in path[:path.index('*')]:
        inner, schema = inner[step], schema['properties'][step]
    inner.append(invented(schema['items']))
    return document


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
        """By the signature; and where the signer of the run signs another statement, by the report. The published schema has the list."""
        schema = json.loads((SOURCE / 'docs/reference/schemas/attestation.schema.json').read_text())
        work, report = self.checkout('fields'), self.top / 'fields-report'
        (work / '.agentic-ci/config.yml').write_text(json.dumps({'gates': {'paths': {'notes.txt': 'warn'}}, 'tasks': {'fields': {
            'command': AGENT, 'checks': {'run': ['true']}}}}))
        git(work, 'add', '-A')
        git(work, 'commit', '-qm', 'a task')
        made = self.run_in(work, report, '--attest-key', self.key, '--task', 'fields', '--secret', 'TOKEN@pkg.example.com', command=(),
                           environment=plain(TOKEN='secret-0123456789'))
        self.assertEqual(made.returncode, 0, made.stderr)
        own = report / 'run.sigstore.json'
        statement, bundle, other = self.statement(own), json.loads(own.read_text()), self.top / 'other.json'
        self.verify('--report', report)
        cases = {}
        for path, _ in leaves(statement['predicate']):
            field = tuple('*' if isinstance(step, int) else step for step in path)
            field = field[:2] if field[:2] == ('isolation', 'controls') else field  # Its names are the controls'.
            cases.setdefault(field, []).append(changed(statement, ('predicate', *path)))
        self.assertLessEqual({('checks', '*', 'status'), ('gates', '*', 'rule'), ('credentials', 'names', '*')}, set(cases))
        fields = set(described(schema['properties']['predicate']))
        for field in fields - set(cases):  # A list that is empty here; anything else has no case.
            cases[field] = [claimed(statement, schema, ('predicate', *field))]
        for field in fields:
            for forged in cases[field]:
                with self.subTest(field='.'.join(field)):
                    made = copy.deepcopy(bundle)
                    made['dsseEnvelope']['payload'] = base64.b64encode(json.dumps(forged).encode()).decode()
                    other.write_text(json.dumps(made))
                    self.refused('signature: ', '--report', report, '--bundle', other)
                    if field == ('runner', 'sha256'):
                        continue  # Only the signer knows what it ran as.
                    self.signed_again(forged, other)
                    self.verify('--report', report, '--bundle', other, expect=77)
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

        def add_unsigned(place):
            (place / 'run.intoto.json').write_text('{}')

        def add_lines(place):
            (place / 'a\nsigned by: me').write_text('x')

        for fault, name in ((drop, 'is not there'), (add_unsigned, 'run.intoto.json is there and is not signed'),
                            (add_lines, 'signed by: me is there'), (change, 'events.ocsf.jsonl is not'), (add, 'more.txt is there'),
                            (forge, 'run.json is not'), (swap, 'changes.patch is not')):
            with self.subTest(fault=fault.__name__):
                place = self.copy_of_report()
                self.verify('--report', place)
                fault(place)
                self.assertIn(name, self.refused('records', '--report', place))
                self.assertNotIn('\nsigned by: me', self.said)
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

    def test_records_that_were_sent_are_stated(self):
        """OCSF's profile record_integrity: each record has the fingerprint of the one before, and the statement the last."""
        sys.path.append(LIBRARIES)  # After the system's own.
        import rfc8785
        sent, report = self.top / 'sent.jsonl', self.top / 'sent-report'
        made = self.run_in(self.work, report, '--attest-key', self.key, '--events-to', f'file:{sent}', command=[
            'sh', '-c', 'n="/tmp/\u00e4\u20ac"; cp "$(command -v curl)" "$n"; for i in 1 2 3 4; do "$n" -s -m 20 http://pkg.example.com/$i; done; true'])
        self.assertEqual(made.returncode, 0, made.stderr)
        self.verify('--report', report)
        chain = 'sha256:' + hashlib.sha256((report / 'run.json').read_bytes()).hexdigest()
        lines, before = [json.loads(line) for line in sent.read_text().splitlines()], None
        own = [json.loads(line) for line in (report / 'events.ocsf.jsonl').read_text().splitlines()]
        self.assertEqual(len(lines), len(own))
        self.assertGreater(len(lines), 3)
        self.assertIn('\u00e4\u20ac', sent.read_text())
        for number, (line, recorded) in enumerate(zip(lines, own)):
            link, = line['attestation_list']
            fingerprint = link.pop('fingerprint')
            self.assertEqual({name: value for name, value in fingerprint.items() if name != 'value'},
                             {'algorithm': 'SHA-256', 'algorithm_id': 3, 'encoding_id': 1, 'serialization_id': 2})
            self.assertEqual(fingerprint['value'], hashlib.sha256(rfc8785.dumps(line)).hexdigest())
            self.assertEqual(link, {'chain_uid': chain, **({'prev_event': before} if before else {})})
            before = {'uid': line['metadata']['uid'], 'type_uid': line['type_uid'], 'fingerprint': fingerprint}
            self.assertEqual((line['metadata'].pop('uid'), line['metadata']['profiles'].pop()), (f'{chain}/{number}', 'record_integrity'))
            del line['attestation_list']
            self.assertEqual(line, recorded)  # Nothing else was changed.
        stated = self.statement(report / 'run.sigstore.json')
        self.assertEqual(stated['predicate']['records']['events']['head'], before['fingerprint']['value'])
        # Without a signature nothing vouches for a chain.
        sent.unlink()
        made = self.run_in(self.work, report, '--attest', '--events-to', f'file:{sent}')
        self.assertEqual(made.returncode, 0, made.stderr)
        self.assertNotIn('attestation_list', sent.read_text())

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

    def job(self):
        """The variables of a job that somebody has started by hand, in the checkout."""
        event = self.top / 'event.json'
        head = git(self.work, 'rev-parse', 'HEAD')
        event.write_text(json.dumps({'repository': {'full_name': 'acme/site', 'default_branch': 'main'}, 'inputs': {}}))
        return {'GITHUB_ACTIONS': 'true', 'GITHUB_EVENT_NAME': 'workflow_dispatch', 'GITHUB_EVENT_PATH': str(event), 'GITHUB_RUN_ID': '77',
                'GITHUB_RUN_ATTEMPT': '1', 'GITHUB_REPOSITORY': 'acme/site', 'GITHUB_SERVER_URL': 'https://github.com', 'GITHUB_SHA': head,
                'GITHUB_REF': 'refs/heads/main', 'GITHUB_API_URL': self.instance.url, 'GITHUB_WORKSPACE': str(self.work)}

    def test_the_certificate_names_the_run(self):
        job = self.job()
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

    def test_no_file_of_the_checkout_signs_in_ci(self):
        """It would decide where the job's identity is sent, or whose key signs."""
        config, root, key = self.instance.signing_config(2), pathlib.Path(self.instance.trusted_root), self.key
        for option, place in (('--signing-config', pathlib.Path(config)), ('--trusted-root', root), ('--attest-key', key)):
            with self.subTest(option=option):
                inside = self.work / place.name
                shutil.copy(place, inside)
                self.addCleanup(inside.unlink)
                files = {'--signing-config': config, '--trusted-root': root, '--attest-key': key} | {option: inside}
                words = [word for pair in files.items() for word in pair]
                asked = len(self.instance.requests)
                made = self.run_in(self.work, self.top / 'inside', *words, environment=plain(**self.job()))
                self.assertEqual(made.returncode, 77, made.stderr)
                self.assertIn('is in the checkout, whose files a pull request can change: ' + str(inside), made.stderr)
                self.assertEqual(len(self.instance.requests), asked)
                # The controls: the same files elsewhere, and the same file for a person at a terminal.
                files[option] = place
                words = [word for pair in files.items() for word in pair]
                made = self.run_in(self.work, self.top / 'outside', *words, environment=plain(**self.job()))
                self.assertEqual(made.returncode, 0, made.stderr)
                words[words.index(place)] = inside
                made = self.run_in(self.work, self.top / 'person', *words)
                self.assertEqual(made.returncode, 0, made.stderr)

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


if __name__ == '__main__':
    unittest.main(verbosity=2)
