#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each provider's own library and the gateway, as clients of one service: both send the same request, and both are refused what the
service refuses.

usage: libraries_test.py AGENTIC_CI BUILD [unittest arguments]   BUILD: where packages of registries are kept
"""
import json
import os
import subprocess
import sys
import unittest
import urllib.parse

BUILD = os.path.abspath(sys.argv.pop(2))
import identity_test  # noqa: E402: it takes the binary from the arguments.
from identity_service import AUDIENCES, BETAS, GOOGLE_SCOPES, POOL  # noqa: E402

HERE, ROOT = identity_test.HERE, os.path.dirname(os.path.dirname(identity_test.HERE))
AUDIENCE = {'bedrock': 'aws', 'vertex': 'google'}
TOKENS = ('assertion', 'subject_token', 'WebIdentityToken', 'client_assertion')


def setUpModule():
    done = subprocess.run([f'{ROOT}/tests/programs/install', f'{BUILD}/identity-libraries', 'libraries'], stdout=subprocess.PIPE, text=True)
    if done.returncode == 4:
        raise unittest.SkipTest("the providers' libraries cannot be had")
    done.check_returncode()
    Libraries.python = done.stdout.strip()


def sent(asked):
    """What of a request has to be the same, and the job's token in it."""
    kind = (asked.field('content-type') or [''])[0].split(';')[0].strip()
    if kind == 'application/json':
        fields = json.loads(asked.body)
    else:
        fields = dict(urllib.parse.parse_qsl(asked.body.decode(), keep_blank_values=True, strict_parsing=bool(asked.body)))
    token = None
    for name in TOKENS:
        if name in fields:
            token, fields[name] = fields[name], 'the token'
    betas = {beta.strip() for line in asked.field('anthropic-beta') for beta in line.split(',')}
    return {'method': asked.method, 'target': asked.target, 'kind': kind, 'fields': fields, 'betas': betas,
            'schemes': [value.split(' ')[0] for value in asked.field('authorization')], 'key': asked.field('x-api-key')}, token


class Libraries(identity_test.Runs):
    def mint(self, audience):
        """Files with a token that is right, one for another audience, and one that has expired."""
        files = {}
        for name, wanted, seconds in (('good', audience, 300), ('aud', 'https://other.example', 300), ('exp', audience, -100)):
            files[name] = self.top / name
            files[name].write_text(self.services.mint(wanted, seconds))
        return files

    def drain(self, files):
        """What was sent with the good token, or with its result; and why the services refused something, in order."""
        bad = [files[name].read_text() for name in ('aud', 'exp')]
        shapes = []
        for shape, token in map(sent, self.services.asked):
            if token not in bad:
                self.assertIn(token, (None, files['good'].read_text()))
                shapes.append(shape)
        refusals = list(dict.fromkeys(self.services.refusals))
        self.services.asked.clear()
        self.services.refusals.clear()
        return shapes, refusals

    def by_the_library(self, name, audience):
        files = self.mint(audience)
        done = subprocess.run(
            [self.python, f'{HERE}/library_client.py', name, f'{identity_test.HOST}:{self.port}', *files.values()],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300,
            env={'PATH': '/usr/bin:/bin', 'HOME': str(self.top), 'PYTHONPATH': f'{BUILD}/identity-libraries/libraries/lib', 'PYTHONDONTWRITEBYTECODE': '1',
                 **dict.fromkeys(('SSL_CERT_FILE', 'REQUESTS_CA_BUNDLE', 'AWS_CA_BUNDLE'), str(self.top / 'ca.pem'))})
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([list(answer) for answer in answers], [['token'], ['refused'], ['refused']], done.stdout + done.stderr)
        self.assertIn(answers[0]['token'], {*self.services.valid, 'session/5ecret+token=='})
        return self.drain(files)

    def by_the_gateway(self, provider, audience, values, script):
        files = self.mint(audience)
        environment = {'ANTHROPIC_BASE_URL': self.at} if provider == 'anthropic' else {}
        for name, file in files.items():
            self.configure(provider, more=f', token_file: {file}', values=values)
            out = self.go(provider, script if name == 'good' else 'echo started', environment=environment, code=0 if name == 'good' else 78)
            self.assertNotIn('started', out)
        return self.drain(files)

    def compare(self, name, provider, values=None, script='true', theirs=(), ours=()):
        """`theirs`, `ours`: what only that side has, on purpose: (number of the request, field, value)."""
        audience = AUDIENCES[AUDIENCE.get(provider, provider)]
        library, refused = self.by_the_library(name, audience)
        gateway, refused_here = self.by_the_gateway(provider, audience, values, script)
        for shapes, purposes in ((library, theirs), (gateway, ours)):
            for number, field, value in purposes:
                self.assertEqual(shapes[number]['fields'].pop(field), value)
        self.assertTrue(library)
        self.assertEqual(gateway, library)
        self.assertEqual((refused_here, refused), (['aud', 'exp'], ['aud', 'exp']))
        return library

    def test_anthropic(self):
        # With the token, too: the beta header that goes with it, and no key.
        script = (f"""curl -sS -H "Authorization: Bearer $ANTHROPIC_AUTH_TOKEN" -H 'Content-Type: application/json' {self.at}/v1/messages """
                  """-d '{"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": "x"}]}'""")
        exchange, message = self.compare('anthropic', 'anthropic', script=script)
        self.assertEqual((exchange['betas'], message['betas']), (BETAS, {'oauth-2025-04-20'}))
        self.assertEqual((message['target'], message['schemes'], message['key']), ('/v1/messages', ['Bearer'], []))

    def test_openai(self):
        self.compare('openai', 'openai')

    def test_google(self):
        self.compare('google', 'vertex', values=f'workload_provider: {POOL}')

    def test_google_with_an_account_to_impersonate(self):
        # The library also writes down that there is no chain of accounts.
        self.compare('google_account', 'vertex', theirs=[(1, 'delegates', None)])

    def test_aws(self):
        # The library's chain has no setting for it; the service's default is the same.
        self.compare('aws', 'bedrock', ours=[(0, 'DurationSeconds', '3600')])

    def test_azure(self):
        self.compare('azure', 'azure')


if __name__ == '__main__':
    unittest.main(verbosity=2)
