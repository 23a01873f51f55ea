#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What holds of every backend, with a gateway of OpenShell 0.1: the tests' own (v01/), on which nothing of OpenShell's runs.

usage: v01/run DIR ../rpc_test.py BINARY [unittest arguments]
"""
import http.server
import json
import os
import pathlib
import shutil
import stat
import sys
import threading
import time
import unittest
import urllib.parse

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parent / 'v01')]
from front import make_certificates  # noqa: E402
from gateway import Gateway  # noqa: E402
from google.protobuf import json_format  # noqa: E402
from openshell import SandboxClient, TlsConfig  # noqa: E402
from openshell._proto import openshell_pb2 as pb  # noqa: E402

import backend_test  # noqa: E402
import lasting_test  # noqa: E402
from real import SECRET, Case, read, wait_until  # noqa: E402


class Rpc(Case):
    """Each case has a gateway of its own; no `openshell` is on the PATH."""
    NAME = 'openshell'
    RELEASE = '0.1.10'
    setUpClass = classmethod(lambda cls: None)
    HOST_ADDRESSES = {}  # There, it is exact.

    def setUp(self):
        super().setUp()
        self.gate = self.begin_gateway(tls=self.base + '/keys')
        keys = pathlib.Path(self.base, 'certs')
        keys.mkdir()
        for name, source in (('ca.crt', 'ca.crt'), ('tls.crt', 'user.crt'), ('tls.key', 'user.key')):
            shutil.copy(self.base + '/keys/' + source, keys / name)
        self.use(self.gate)

    def program(self, denied):
        """A record of a name that no endpoint has is of no program."""
        self.assertEqual(denied['binary'], '')
        return 'curl'

    def use(self, gate, keys=None):
        self.OPTIONS = ('--gateway', gate.url, '--gateway-tls', str(keys or pathlib.Path(self.base, 'certs')))

    def begin_gateway(self, **options):
        gate = Gateway(**{'load_s': 0.05, 'release': self.RELEASE} | options).__enter__()
        self.addCleanup(gate.__exit__)
        return gate

    def tearDown(self):
        super().tearDown()
        self.assertEqual(self.gate.violations, [])
        # Nothing is left on the gateway.
        wait_until(lambda: not self.gate.service.sandboxes)
        self.assertEqual(list(self.gate.service.sandboxes), [])


class Runs(Rpc, backend_test.Backend):
    """The suite of every backend."""


class Files(Rpc, lasting_test.Files):
    """Files in and out of a lasting sandbox, as with the real 0.0."""
    UNWRITABLE = 'Read-only file system'


class Policy(Rpc, lasting_test.Policy):
    """Another policy for a lasting sandbox, likewise."""
    RELEASE = '0.1.5'  # Before 0.1.8, a secret may be in any header.

    def test_what_the_supervisor_does_not_load_is_taken_back(self):
        self.begin()
        (box,) = self.gate.service.sandboxes.values()
        before = box.loaded()

        def refuse(revision):
            revision.status, revision.load_error = pb.POLICY_STATUS_FAILED, 'it does not like that'

        box._load, load = refuse, box._load
        restored = threading.Timer(0, lambda: wait_until(lambda: len(box.revisions) > 2) and (setattr(box, '_load', load), box.load()))
        restored.start()
        self.refused(65, 'it does not like that', 'policy', 'set', 'box', self.rules('one'))
        restored.join()
        self.assertEqual(box.loaded(), before)


class Issuer:
    """Refreshes logins, as an OpenID provider that gives each refresh token once."""

    def __init__(self):
        self.valid, self.given, self.refuses = 'refresh-0', 0, False
        issuer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def answer(self, status, body):
                data = json.dumps(body).encode()
                self.send_response(status)
                self.send_header('Content-Length', str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def do_GET(self):
                self.answer(200, {'issuer': issuer.url, 'token_endpoint': issuer.url + '/token'})

            def do_POST(self):
                form = dict(urllib.parse.parse_qsl(self.rfile.read(int(self.headers['Content-Length'])).decode()))
                if form != {'grant_type': 'refresh_token', 'refresh_token': issuer.valid, 'client_id': 'openshell-cli'} or issuer.refuses:
                    return self.answer(400, {'error': 'invalid_grant'})
                issuer.given += 1
                issuer.valid = f'refresh-{issuer.given}'
                return self.answer(200, {'access_token': 'new', 'refresh_token': issuer.valid, 'expires_in': 36000})

            def log_message(self, *arguments):
                pass

        self.server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        self.url = f'http://127.0.0.1:{self.server.server_address[1]}'
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class Gates(Rpc):
    """The gateway: who may use it, which generation it is of, and what is left when it goes away."""

    def fleet(self, gate, **login):
        """The variables of a user who registered `gate` as `fleet`; `login`: the file with the token."""
        entry = pathlib.Path(self.base, 'user/openshell/gateways/fleet')
        (entry / 'mtls').mkdir(parents=True, exist_ok=True)
        (entry / 'metadata.json').write_text(json.dumps({'name': 'fleet', 'gateway_endpoint': gate.url, 'auth_mode': 'oidc'}))
        self.login = entry / 'oidc_token.json'
        self.login.write_text(json.dumps({'client_id': 'openshell-cli'} | login))
        return {'XDG_CONFIG_HOME': self.base + '/user'}

    def refused(self, report, status, said, hint, *words, **env):
        _, errors = self.end(self.start('run', *self.options(report), *words, '--', 'echo', 'never', **env), status)
        self.assertIn(said, errors)
        self.assertIn('hint: ' + hint, errors)
        return errors

    def test_tokens_are_refreshed_where_the_user_has_them(self):
        gate = self.begin_gateway(tokens={'new': 'ann:admin', 'old': 'expired:ann'})
        issuer = Issuer()
        self.addCleanup(issuer.close)
        self.OPTIONS = ('--gateway', 'fleet')
        now = int(time.time())
        user = self.fleet(gate, access_token='new', expires_at=now + 36000, issuer=issuer.url, refresh_token='refresh-0')
        self.assertEqual(self.call('run', *self.options('r'), '--', 'echo', 'fine', **user), 'fine\n')
        self.assertEqual(issuer.given, 0)
        user = self.fleet(gate, access_token='old', expires_at=now - 5, issuer=issuer.url, refresh_token='refresh-0')
        self.assertEqual(self.call('run', *self.options('r2'), '--', 'echo', 'fine', **user), 'fine\n')
        self.assertEqual((issuer.given, json.loads(read(self.login))['refresh_token']), (1, 'refresh-1'))
        self.assertEqual(stat.S_IMODE(os.stat(self.login).st_mode), 0o600)
        # Refused by the issuer, by the gateway, or not there: the same remedy.
        issuer.refuses = True
        for name, login in (('refused', {'access_token': 'old', 'expires_at': now - 5, 'issuer': issuer.url, 'refresh_token': 'refresh-1'}),
                            ('expired', {'access_token': 'old', 'expires_at': now + 36000}), ('none', {})):
            with self.subTest(name):
                self.refused('r-' + name, 78, 'OpenShell', 'openshell gateway login', **self.fleet(gate, **login))
        # No token goes to an issuer on another machine in cleartext.
        user = self.fleet(gate, access_token='old', expires_at=now - 5, issuer='http://issuer.invalid', refresh_token='refresh-1')
        self.refused('r-clear', 78, 'is not https', 'openshell gateway login', **user)

    def test_certificates(self):
        other = pathlib.Path(self.base, 'other')
        make_certificates(str(other))
        keys = pathlib.Path(self.OPTIONS[-1])
        strange = pathlib.Path(self.base, 'strange')
        shutil.copytree(keys, strange)
        for name, ca, key in (('authority', other / 'ca.crt', keys / 'tls.key'), ('pair', keys / 'ca.crt', other / 'user.key')):
            with self.subTest(name):
                shutil.copy(ca, strange / 'ca.crt')
                shutil.copy(key, strange / 'tls.key')
                self.use(self.gate, strange)
                self.refused('r-' + name, 78, 'OpenShell', '--gateway-tls DIR')

    def test_another_generation_gets_nothing_but_one_question(self):
        for release, said in (('0.0.112', 'the gateway is of OpenShell 0.0.112: openshell is not on the PATH'),
                              ('0.2.0', 'OpenShell 0.2.0 is not supported')):
            with self.subTest(release):
                gate = self.begin_gateway(tls=self.base + '/keys', release=release)
                status = 66 if release.startswith('0.0') else 69
                self.use(gate)
                self.refused('r' + release, status, said, 'install OpenShell')
                self.assertEqual({one['method'] for one in gate.calls}, {'Health'})
                self.assertEqual(gate.violations, [])

    def test_who_may_make_no_providers_may_run_without_secrets(self):
        gate = self.begin_gateway(tls=self.base + '/keys', clients={'user': 'user'})
        self.use(gate)
        self.assertEqual(self.call('run', *self.options('r'), '--', 'echo', 'fine'), 'fine\n')
        self.refused('r2', 77, 'ImportProviderProfiles: PERMISSION_DENIED', '--gateway-tls DIR', '--secret', 'TOKEN@host.openshell.internal', TOKEN=SECRET)
        wait_until(lambda: not gate.service.sandboxes)
        self.assertEqual(list(gate.service.sandboxes), [])

    def test_lost(self):
        """A connection that ends, and a gateway that is gone: what came before is kept."""
        run = self.start('run', *self.options('r'), '--', 'sh', '-c', 'echo begun; sleep 100')
        self.assertEqual(run.stdout.readline(), 'begun\n')
        self.gate.cut(refuse=True)
        self.end(run, 75)
        self.assertEqual((self.record('r')['outcome']['kind'], self.record('r')['changes']['complete']), ('gateway-lost', False))
        self.assertIn('begun', read(f'{self.base}/r/agent.log'))
        self.gate.cut()
        address = ('--backend', 'openshell', *self.OPTIONS)
        (name,) = [one['name'] for one in json.loads(self.call('sandbox', 'list', *address, '--json'))['sandboxes']]
        self.call('sandbox', 'delete', name, *address)
        self.call('sandbox', 'delete', 'aci-000000000000', *address, expect=66)

    def test_only_the_command_is_lost_where_a_connection_ends(self):
        run = self.start('run', *self.options('r'), '--', 'sh', '-c', 'echo new >n.txt; curl -s http://one.invalid; sleep 100')
        wait_until(lambda: self.gate.service.sandboxes)
        (box,) = self.gate.service.sandboxes.values()
        wait_until(lambda: any('one.invalid' in event.log.message for event in box.events.since(0, 0)[0]))
        self.gate.cut()
        self.end(run, 75)  # The command's own connection ended, too.
        self.assertEqual([one['host'] for one in self.record('r')['denials']], ['one.invalid'])
        self.assertEqual((self.record('r')['outcome']['kind'], self.record('r')['changes']['files']), ('gateway-lost', 1))


class Credentials(Rpc):
    def test_where_a_value_goes(self):
        """A provider says in which header its value belongs, and a secret that says nothing is for `authorization`."""
        asked = f'curl -s -o /dev/null -H "x-api-key: $ANTHROPIC_API_KEY" {self.url("/t")}'
        self.call('run', *self.options('r'), '--provider', 'anthropic', '--', 'sh', '-c', asked, ANTHROPIC_API_KEY=SECRET,
                  ANTHROPIC_BASE_URL=self.url(''))
        self.assertEqual(self.server.headers[-1]['x-api-key'], SECRET)
        asked = f'curl -s -o /dev/null -H "Authorization: Bearer $TOKEN" {self.url("/t")}'
        self.call('run', *self.options('r2'), '--secret', 'TOKEN@host.openshell.internal', '--', 'sh', '-c', asked, TOKEN=SECRET)
        self.assertEqual(self.server.headers[-1]['Authorization'], 'Bearer ' + SECRET)
        self.assertEqual((self.gate.service.providers.providers, self.gate.service.providers.profiles), ({}, {}))

    def test_a_provider_that_the_gateway_holds(self):
        self.call('run', *self.options('r'), '--gateway-provider', 'nothing', '--', 'true', expect=66)


class Proposals(Rpc):
    def test_a_person_sees_what_an_approval_would_open(self):
        self.call('run', *self.options('r'), '--approval-mode', 'manual', '--', 'sh', '-c', 'curl -s http://wanted.invalid:8080/; :')
        (one,) = [one['message'] for one in self.record('r')['findings'] if one['rule'] == 'policy-proposal']
        self.assertRegex(one, r'^pending: wanted\.invalid:8080.* for .*rule approve aci-[0-9a-f]{12} --chunk-id ')


class SameAsTheSdk(Rpc):
    def test_a_sandbox_is_created_as_the_packages_own_client_does(self):
        self.call('run', *self.options('r'), '--', 'true')
        (ours,) = [one['message'] for one in self.gate.calls if one['method'] == 'CreateSandbox']
        wait_until(lambda: not self.gate.service.sandboxes)
        message = json_format.ParseDict(ours, pb.CreateSandboxRequest())
        keys = pathlib.Path(self.OPTIONS[-1])
        with SandboxClient(self.gate.address, tls=TlsConfig(keys / 'ca.crt', keys / 'tls.crt', keys / 'tls.key')) as client:
            client.create(spec=message.spec, name=message.name, labels=dict(message.labels), workspace='default')
            client.delete(message.name, workspace='default')
        theirs = [one['message'] for one in self.gate.calls if one['method'] == 'CreateSandbox'][1]
        self.assertEqual({key: value for key, value in ours.items() if key != 'request_id'},
                         {key: value for key, value in theirs.items() if key != 'request_id'})


if __name__ == '__main__':
    if os.geteuid() != 0:
        print('# SKIP gateway01: its sandboxes need root')
        sys.exit(4)
    os.environ['PATH'] += ':/usr/sbin:/sbin'
    Case.BIN = os.path.abspath(sys.argv[1])
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
