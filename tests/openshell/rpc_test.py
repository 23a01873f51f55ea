#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What holds of every backend, with a gateway of OpenShell 0.1: the tests' own (v01/), on which nothing of OpenShell's runs.

usage: v01/run DIR ../rpc_test.py BINARY [unittest arguments]
"""
import json
import os
import pathlib
import shutil
import stat
import sys
import threading
import time
import unittest

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parent / 'v01')]
from front import make_certificates  # noqa: E402
from gateway import Gateway  # noqa: E402
from google.protobuf import json_format  # noqa: E402
from issuer import Issuer  # noqa: E402
from openshell import ClientCredentialsAuth, SandboxClient, TlsConfig  # noqa: E402
from openshell._proto import datamodel_pb2, openshell_pb2 as pb  # noqa: E402

import backend_test  # noqa: E402
import lasting_test  # noqa: E402
import seed_cases  # noqa: E402
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


class Seed(Rpc, seed_cases.Seed):
    """What users of the Python agentic-ci count on, likewise."""

    def begin_gateway(self, **options):
        return super().begin_gateway(places={seed_cases.ELSEWHERE: ('127.0.0.1', None)}, **options)

    def in_force(self):
        (box,) = self.gate.service.sandboxes.values()
        return [(one.host, *one.ports, ('', 'read-only', 'read-write', 'full')[one.access])
                for policy in box.loaded().network_policies.values() for one in policy.endpoints]


class Files(Rpc, lasting_test.Files):
    """Files in and out of a lasting sandbox, as with the real 0.0."""
    UNWRITABLE = 'Read-only file system'


class Stopped(Rpc, lasting_test.Stopped):
    """A lasting sandbox that was stopped, likewise."""

    def stop_it(self):
        (box,) = self.gate.service.sandboxes.values()
        box.stop()


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
        issuer = Issuer({SECRET: 'new'})
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

    def test_a_job_of_ci_is_a_client(self):
        """It has a registered gateway that cannot be written, as in a volume of Kubernetes, and a secret; no `openshell gateway login`."""
        gate = self.begin_gateway(tokens={'new': 'client-ci:user'})
        issuer = Issuer({SECRET: 'new'})
        self.addCleanup(issuer.close)
        self.OPTIONS = ('--gateway', 'fleet')
        named = {'name': 'fleet', 'gateway_endpoint': gate.url, 'auth_mode': 'oidc', 'oidc_issuer': issuer.url, 'oidc_client_id': 'ci',
                 'oidc_audience': 'openshell', 'oidc_scopes': 'sandbox:read sandbox:write'}
        fleet = pathlib.Path(self.base, 'user/openshell/gateways/fleet')
        (fleet / '..now').mkdir(parents=True)
        (fleet / '..now/metadata.json').write_text(json.dumps(named))
        (fleet / '..data').symlink_to('..now')
        (fleet / 'metadata.json').symlink_to('..data/metadata.json')
        user = {'XDG_CONFIG_HOME': self.base + '/user'}
        secret = {'OPENSHELL_OIDC_CLIENT_SECRET': SECRET}
        self.assertEqual(self.call('run', *self.options('r'), '--', 'sh', '-c', 'env | grep OIDC; echo fine', **user, **secret), 'fine\n')
        self.assertEqual([one['caller'] for one in gate.calls if one['method'] == 'CreateSandbox'], ['client-ci'])
        # As OpenShell's own package asks, and once for a run.
        credentials = ClientCredentialsAuth(client_secret=SECRET)
        credentials._apply_gateway_metadata(named)
        self.assertEqual(credentials(), 'new')
        self.assertEqual(issuer.forms[0], issuer.forms[1])
        self.assertEqual(len(issuer.forms), 2)
        # A sandbox that lasts keeps the token, and neither it nor the report the secret.
        self.call('setup', '--name', 'box', *self.options('r2'), **user, **secret)
        self.assertEqual(self.call('exec', '--name', 'box', '--', 'echo', 'again', **user), 'again\n')
        kept = [file for file in pathlib.Path(self.base).rglob('*') if file.is_file() and 'work' not in file.parts]
        self.assertTrue([file for file in kept if file.name == 'client_token.json'])
        self.assertEqual([file for file in kept if SECRET.encode() in file.read_bytes()], [])
        self.call('stop', '--name', 'box', **user)
        self.assertEqual(sorted(os.listdir(fleet)), ['..data', '..now', 'metadata.json'])
        wrong = {'OPENSHELL_OIDC_CLIENT_SECRET': 'wrong'}
        self.refused('r3', 78, 'OPENSHELL_OIDC_CLIENT_SECRET: the token for OpenShell\'s gateway cannot be fetched: {"error": "invalid_grant"}',
                     "OPENSHELL_OIDC_CLIENT_SECRET=SECRET, of the client 'ci'", **user, **wrong)
        # A member who is no admin brings no secrets.
        self.refused('r6', 77, 'PERMISSION_DENIED', 'openshell workspace member add --subject SUB', '--secret', 'TOKEN@host.openshell.internal',
                     TOKEN='t', **user, **secret)
        self.refused('r4', 78, 'OPENSHELL_OIDC_CLIENT_SECRET is not set', 'openshell gateway login fleet', **user)
        del named['oidc_issuer']
        (fleet / '..now/metadata.json').write_text(json.dumps(named))
        self.refused('r5', 78, "the gateway's entry has no oidc_issuer", '"oidc_issuer" in the gateway\'s metadata.json', **user, **secret)

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
        for release, said, hint in (('0.0.112', 'the gateway is of OpenShell 0.0.112: openshell is not on the PATH', 'install OpenShell 0.0.112'),
                                    ('0.2.0', 'OpenShell 0.2.0 is not supported', 'install OpenShell 0.1 where the gateway runs')):
            with self.subTest(release):
                gate = self.begin_gateway(tls=self.base + '/keys', release=release)
                status = 66 if release.startswith('0.0') else 69
                self.use(gate)
                self.refused('r' + release, status, said, hint)
                self.assertEqual({one['method'] for one in gate.calls}, {'Health'})
                self.assertEqual(gate.violations, [])

    def test_who_may_make_no_providers_may_run_without_secrets(self):
        gate = self.begin_gateway(tls=self.base + '/keys', clients={'user': 'user'})
        self.use(gate)
        self.assertEqual(self.call('run', *self.options('r'), '--', 'echo', 'fine'), 'fine\n')
        self.refused('r2', 77, 'ImportProviderProfiles: PERMISSION_DENIED', '--gateway-tls DIR', '--secret', 'TOKEN@host.openshell.internal', TOKEN=SECRET)
        wait_until(lambda: not gate.service.sandboxes)
        self.assertEqual(list(gate.service.sandboxes), [])

    def test_a_workspace_that_is_not_there(self):
        _, errors = self.end(self.start('run', *self.options('r'), '--', 'true', OPENSHELL_WORKSPACE='nowhere'), 66)
        self.assertIn("workspace 'nowhere' not found", errors)
        self.assertNotIn('could not be deleted', errors + self.end(self.start('run', *self.options('r2'), '--', 'true'), 0)[1])

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
        """It is looked for first, stays when the run has ended, and what the gateway refreshes goes to a sandbox that runs."""
        held = self.gate.service.providers
        held.import_profiles('default', [pb.ProviderProfileImportItem(profile=pb.ProviderProfile(id='held', display_name='held', credentials=[
            pb.ProviderProfileCredential(name='value', env_vars=['HELD'], required=True, auth_style='bearer')]))])
        provider = held.create('default', datamodel_pb2.Provider(metadata=datamodel_pb2.ObjectMeta(name='held'), type='held',
                                                                 credentials={'HELD': 'minted-1'}), 'one')
        policy = json.loads(read(self.policy))
        policy['network_policies']['host']['endpoints'][0]['credential_binding'] = {'provider': 'held'}
        pathlib.Path(self.policy).write_text(json.dumps(policy))
        self.call('run', *self.options('r'), '--gateway-provider', 'held', '--gateway-provider', 'hled', '--', 'true', expect=66)
        run = self.start('run', *self.options('r'), '--gateway-provider', 'held', '--', 'sh', '-c', 'echo $HELD; while :; do '
                         f'curl -s -H "Authorization: Bearer $HELD" {self.url("/v")}; sleep 0.2; done')
        self.assertTrue(wait_until(lambda: ('/v', 'Bearer minted-1') in self.server.seen), self.server.seen)
        provider.credentials['HELD'] = 'minted-2'
        self.assertTrue(wait_until(lambda: ('/v', 'Bearer minted-2') in self.server.seen), self.server.seen)
        run.terminate()
        output, _ = self.end(run, 143)
        self.assertIn('openshell:resolve:env:HELD', output)
        self.assertNotIn('minted', output)
        self.assertEqual((self.record('r')['credentials'], list(held.providers)), (['held@gateway'], [('default', 'held')]))


class Images(Rpc):
    def test_the_image_is_the_one_that_was_named(self):
        self.call('run', *self.options('r'), '--image', 'registry.example/agent:1', '--', 'true')
        (made,) = [one['message'] for one in self.gate.calls if one['method'] == 'CreateSandbox']
        self.assertEqual(made['spec']['template']['image'], 'registry.example/agent:1')
        _, errors = self.end(self.start('run', *self.options('r2'), '--image', 'registry.invalid/agent:1', '--', 'true'), 74)
        self.assertIn('registry.invalid/agent:1 cannot be pulled', errors)


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
