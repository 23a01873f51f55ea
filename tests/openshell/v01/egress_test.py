#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What sandboxes of the tests' gateway reach: the policy's decisions, credentials in their places, records, and proposals.

usage: egress_test.py [unittest arguments]
"""
import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from front import make_certificates  # noqa: E402
from gateway_test import PATIENCE_S, SCOPE, SECRET, Case, Server, policy, rest, wait_until  # noqa: E402
from openshell._proto import datamodel_pb2, openshell_pb2 as pb, sandbox_pb2  # noqa: E402

HOST = 'host.openshell.internal'
API = 'api.example.test'


def profile(name='p', endpoints=(), **placement):
    credential = pb.ProviderProfileCredential(name='value', env_vars=['KEY'], required=True, **placement)
    return pb.ProviderProfile(id=name, display_name=name, credentials=[credential],
                              endpoints=[sandbox_pb2.NetworkEndpoint(**one) for one in endpoints])


class Case01(Case):
    def server(self, tls=None):
        server = Server(tls)
        self.addCleanup(server.close)
        return server

    def provide(self, stub, made, name='mine'):
        imported = stub.ImportProviderProfiles(pb.ImportProviderProfilesRequest(
            profiles=[pb.ProviderProfileImportItem(profile=made)], workspace_scope=SCOPE))
        self.assertTrue(imported.imported, imported)
        provider = datamodel_pb2.Provider(metadata=datamodel_pb2.ObjectMeta(name=name), type=made.id, credentials={'KEY': SECRET})
        return stub.CreateProvider(pb.CreateProviderRequest(provider=provider, workspace_scope=SCOPE)).provider


class DecisionsTest(Case01):
    def test_a_request_of_the_rules_goes_and_others_do_not(self):
        server = self.server()
        url = f'http://{HOST}:{server.port}'
        rule = sandbox_pb2.L7Rule(allow=sandbox_pb2.L7Allow(method='POST', path='/v1/*'))
        deny = sandbox_pb2.L7DenyRule(method='*', path='/v1/secret')
        client = self.sandbox(policy=policy(rest(HOST, server.port, access=0, rules=[rule], deny_rules=[deny])))
        self.assertEqual(self.run_in(client, f'curl -sS -d x {url}/v1/a').stdout, 'hello')
        for words in (f'{url}/v1/a', f'-d x {url}/v1/secret', f'-d x {url}/v1/a/b', f'-d x {url}/v2'):
            self.assertIn('"policy_denied"', self.run_in(client, f'curl -sS {words}').stdout)
        self.assertEqual([(one[0], one[1], one[3]) for one in server.seen], [('POST', '/v1/a', 'x')])
        self.assertEqual([one for one in self.records() if one.startswith('HTTP:')][:2], [
            f'HTTP:POST [INFO] ALLOWED POST {url}/v1/a [policy:net engine:l7]',
            f'HTTP:GET [MED] DENIED GET {url}/v1/a [policy:net engine:l7]'])

    def test_tls_is_ended_by_an_authority_that_the_sandbox_trusts(self):
        tls = self.base + '/tls'
        make_certificates(tls, hosts=[API])
        server = self.server(tls)
        gateway = self.start(places={API: ('127.0.0.1', server.port)}, upstream_ca=tls + '/ca.crt')
        client = self.sandbox(gateway=gateway, policy=policy(rest(API, 443), rest('other.test', 443)))
        self.assertEqual(self.run_in(client, f'curl -sS https://{API}/x').stdout, 'hello')
        self.assertIn('policy_denied', self.run_in(client, f'curl -sS -d x https://{API}/x').stdout)
        self.assertEqual([one[:2] for one in server.seen], [('GET', '/x')])
        self.assertIn(f'NET:OPEN [INFO] ALLOWED /usr/bin/curl(0) -> {API}:443 [policy:net engine:opa]', self.records(gateway=gateway))

    def test_forms_of_records_about_refused_connections(self):
        client = self.sandbox(policy=policy(rest('a.test', 443), binaries=['/usr/bin/wget']))
        for words in ('https://unlisted.test/', 'https://a.test/', 'https://[2606:4700:4700::1111]/', 'https://1.1.1.1/'):
            self.assertNotEqual(self.run_in(client, f'curl -sS {words}').exit_code, 0)
        end = '[reason:transparent_tcp_policy_denied]'
        self.assertEqual(self.records(), [
            'NET:REFUSE [MED] DENIED unlisted.test [reason:policy_dns_ineligible]',
            f'NET:OPEN [MED] DENIED /usr/bin/curl(0) -> a.test:443 {end}',
            f'NET:OPEN [MED] DENIED /usr/bin/curl(0) -> 2606:4700:4700::1111:443 {end}',
            f'NET:OPEN [MED] DENIED /usr/bin/curl(0) -> 1.1.1.1:443 {end}'])

    def test_names_have_placeholder_addresses_and_lead_nowhere(self):
        client = self.sandbox(policy=policy(rest('a.test', 443)))
        self.assertTrue(self.run_in(client, 'getent ahosts a.test').stdout.startswith('198.18.'))
        self.assertEqual(self.records(), [])
        self.run_in(client, 'getent ahosts unlisted.test')
        self.assertIn('NET:REFUSE [MED] DENIED unlisted.test [reason:policy_dns_ineligible]', self.records())
        self.assertNotEqual(self.run_in(client, 'curl -sS --noproxy "*" -m 5 https://a.test/').exit_code, 0)

    def test_private_literals_need_an_exact_endpoint_since_0_1_9(self):
        wide = sandbox_pb2.NetworkEndpoint(host='*.0.0.1', port=443)
        from policy import address_reason
        self.assertEqual(address_reason(wide, '10.0.0.1', '10.0.0.1', '0.1.8'), '')
        self.assertEqual(address_reason(wide, '10.0.0.1', '10.0.0.1', '0.1.9'), 'private_address')
        self.assertEqual(address_reason(sandbox_pb2.NetworkEndpoint(host='10.0.0.1'), '10.0.0.1', '10.0.0.1', '0.1.9'), '')
        wide.allowed_ips.append('10.0.0.0/8')
        self.assertEqual(address_reason(wide, '10.0.0.1', '10.0.0.1', '0.1.9'), '')
        self.assertEqual(address_reason(sandbox_pb2.NetworkEndpoint(host='a.test'), 'a.test', '127.0.0.1', '0.1.9'), 'address_always_blocked')

    def test_upgrades_on_rest_are_refused_since_0_1_8(self):
        server = self.server()
        words = f'curl -sS -m 5 -H "Connection: Upgrade" -H "Upgrade: websocket" http://{HOST}:{server.port}/'
        for audits in (False, True):
            mode = sandbox_pb2.NETWORK_ENFORCEMENT_MODE_AUDIT if audits else sandbox_pb2.NETWORK_ENFORCEMENT_MODE_ENFORCE
            client = self.sandbox(f'n{audits}'.lower(), policy=policy(rest(HOST, server.port, enforcement=mode)))
            self.assertIn('unsupported_l7_protocol', self.run_in(client, words, f'n{audits}'.lower()).stdout)
        client = self.sandbox('socket', policy=policy(rest(HOST, server.port, protocol='websocket')))
        self.assertEqual(self.run_in(client, words, 'socket').stdout, 'hello')
        older = self.start(release='0.1.5')
        client = self.sandbox(gateway=older, policy=policy(rest(HOST, server.port)))
        self.assertEqual(self.run_in(client, words).stdout, 'hello')

    def test_audit_records_and_lets_pass(self):
        server = self.server()
        client = self.sandbox(policy=policy(rest(HOST, server.port, enforcement=0)))
        self.assertEqual(self.run_in(client, f'curl -sS -d x http://{HOST}:{server.port}/').stdout, 'hello')


class CredentialsTest(Case01):
    # Where a client puts the key, and how its server gets it.
    PLACES = {'bearer': ('-H "Authorization: Bearer $KEY"', '/'), 'basic': ('-u "x:$KEY"', '/'), 'header': ('-H "X-Api-Key: $KEY"', '/'),
              'query': ('', '/?key=$KEY'), 'path': ('', '/at/$KEY')}

    def arrived(self, release, placement):
        """The places in which a server finds the secret, of a sandbox whose profile has this placement."""
        server = self.server()
        gateway = self.start(release=release)
        stub = self.stub(gateway=gateway)
        self.provide(stub, profile(**placement))
        bound = sandbox_pb2.NetworkCredentialBinding(provider='mine')
        client = self.sandbox(gateway=gateway, providers=['mine'], policy=policy(rest(HOST, server.port, credential_binding=bound)))
        self.assertEqual(self.run_in(client, 'echo $KEY').stdout, 'openshell:resolve:env:KEY\n')
        found = []
        for place, (words, path) in self.PLACES.items():
            del server.seen[:]
            self.run_in(client, f'curl -sS {words} "http://{HOST}:{server.port}{path}"')
            method, target, headers, _ = server.seen[0]
            import base64
            basic = headers.get('Authorization', '')
            plain = base64.b64decode(basic[6:]).decode() if basic.startswith('Basic ') else ''
            if SECRET in f'{target} {headers} {plain}':
                found.append(place)
        return found

    def test_until_0_1_7_any_place_works(self):
        self.assertEqual(self.arrived('0.1.5', {}), list(self.PLACES))

    def test_without_placement_the_authorization_alone_has_it_since_0_1_8(self):
        self.assertEqual(self.arrived('0.1.8', {}), ['bearer', 'basic'])

    def test_a_placement_is_the_only_place(self):
        self.assertEqual(self.arrived('0.1.8', {'auth_style': 'header', 'header_name': 'x-api-key'}), ['header'])
        self.assertEqual(self.arrived('0.1.10', {'auth_style': 'query', 'query_param': 'key'}), ['query'])

    def test_a_credential_goes_to_its_endpoints_alone(self):
        bound, other = self.server(), self.server()
        stub = self.stub()
        self.provide(stub, profile())
        client = self.sandbox(providers=['mine'], policy=policy(
            rest(HOST, bound.port, credential_binding=sandbox_pb2.NetworkCredentialBinding(provider='mine')), rest(HOST, other.port)))
        words = 'curl -sS -H "Authorization: Bearer $KEY" http://' + HOST
        self.assertEqual(self.run_in(client, f'{words}:{bound.port}/').stdout, 'hello')
        self.assertIn('credential_endpoint_mismatch', self.run_in(client, f'{words}:{other.port}/').stdout)
        self.assertEqual(other.seen, [])

    def test_without_a_binding_it_is_withheld(self):
        stub = self.stub()
        self.provide(stub, profile())
        client = self.sandbox(providers=['mine'])
        self.assertEqual(self.run_in(client, 'echo "[$KEY]"').stdout, '[]\n')
        status = stub.GetSandboxProviderStatus(pb.GetSandboxProviderStatusRequest(sandbox='one', provider='mine', workspace_scope=SCOPE)).status
        self.assertEqual(status.state, pb.PROVIDER_READINESS_STATE_WITHHELD)

    def test_endpoints_of_a_profile_are_in_the_policy_while_it_is_attached(self):
        server = self.server()
        stub = self.stub()
        self.provide(stub, profile(endpoints=[rest(HOST, server.port)]))
        client = self.sandbox()
        words = f'curl -sS -H "Authorization: Bearer $KEY" http://{HOST}:{server.port}/'
        self.assertIn('policy_denied', self.run_in(client, words).stdout)
        attached = stub.AttachSandboxProvider(pb.AttachSandboxProviderRequest(sandbox='one', provider='mine', workspace_scope=SCOPE))
        self.assertTrue(attached.attached and attached.receipt.receipt_id)
        self.assertEqual(self.run_in(client, words).stdout, 'hello')
        self.assertEqual(server.seen[0][2]['Authorization'], f'Bearer {SECRET}')
        self.assertIn(f'HTTP:GET [INFO] ALLOWED GET http://{HOST}:{server.port}/ [policy:_provider_mine engine:l7]', self.records())
        stub.DetachSandboxProvider(pb.DetachSandboxProviderRequest(sandbox='one', provider='mine', workspace_scope=SCOPE))
        self.assertIn('policy_denied', self.run_in(client, words).stdout)

    def test_profiles_and_providers_that_are_refused(self):
        stub = self.stub()

        def lint(**fields):
            item = pb.ProviderProfileImportItem(profile=pb.ProviderProfile(**({'id': 'p', 'display_name': 'p'} | fields)), source='f')
            answer = stub.ImportProviderProfiles(pb.ImportProviderProfilesRequest(profiles=[item], workspace_scope=SCOPE))
            checked = stub.LintProviderProfiles(pb.LintProviderProfilesRequest(profiles=[item], workspace_scope=SCOPE))
            self.assertEqual((checked.valid, list(checked.diagnostics)), (answer.imported, list(answer.diagnostics)))
            return [one.field for one in answer.diagnostics]

        credential = pb.ProviderProfileCredential
        self.assertEqual(lint(id='P_1'), ['id'])
        self.assertEqual(lint(credentials=[credential(name='a', auth_style='cookie')]), ['credentials[0].auth_style'])
        self.assertEqual(lint(credentials=[credential(name='a', auth_style='header')]), ['credentials[0].header_name'])
        self.assertEqual(lint(credentials=[credential(name='a', auth_style='path', path_template='/x')]), ['credentials[0].path_template'])
        self.assertEqual(lint(credentials=[credential(name='a', env_vars=['v1_X'])]), ['credentials[0].env_vars'])
        made = self.provide(stub, profile())
        self.assertEqual(made.credentials['KEY'], 'REDACTED')
        item = pb.ProviderProfileImportItem(profile=profile())
        again = stub.ImportProviderProfiles(pb.ImportProviderProfilesRequest(profiles=[item], workspace_scope=SCOPE))
        self.assertEqual((again.imported, again.diagnostics[0].message), (False, 'already exists'))

        def provider(**fields):
            one = datamodel_pb2.Provider(metadata=datamodel_pb2.ObjectMeta(name='b'), **({'type': 'p', 'credentials': {'KEY': 'x'}} | fields))
            return pb.CreateProviderRequest(provider=one, workspace_scope=SCOPE)

        for wrong in ({'type': 'claude-code'}, {'credentials': {}}, {'credentials': {'KEY': 'x', 'OTHER': 'y'}}, {'credentials': {'KEY': 'a\nb'}}):
            self.refused('INVALID_ARGUMENT', stub.CreateProvider, provider(**wrong))

    def test_what_is_used_is_not_deleted(self):
        stub = self.stub()
        self.provide(stub, profile())
        client = self.sandbox(providers=['mine'])
        gone = pb.DeleteProviderProfileRequest(id='p', workspace_scope=SCOPE)
        self.assertEqual(self.refused('FAILED_PRECONDITION', stub.DeleteProviderProfile, gone).error_info.reason, 'PROFILE_IN_USE')
        delete = pb.DeleteProviderRequest(name='mine', workspace_scope=SCOPE)
        self.assertEqual(self.refused('FAILED_PRECONDITION', stub.DeleteProvider, delete).error_info.reason, 'PROVIDER_IN_USE')
        client.delete('one', workspace='default')
        client.wait_deleted('one', workspace='default', timeout_seconds=PATIENCE_S)
        self.assertEqual(stub.DeleteProvider(delete).outcome, pb.DELETION_OUTCOME_COMPLETED)
        self.assertEqual(stub.DeleteProviderProfile(gone).outcome, pb.DELETION_OUTCOME_COMPLETED)
        self.refused('NOT_FOUND', stub.DeleteProvider, delete)
        delete.allow_missing = gone.allow_missing = True
        self.assertEqual(stub.DeleteProvider(delete).outcome, pb.DELETION_OUTCOME_ALREADY_ABSENT)
        self.assertEqual(stub.DeleteProviderProfile(gone).outcome, pb.DELETION_OUTCOME_ALREADY_ABSENT)


class ProposalsTest(Case01):
    def drafts(self, stub, status=''):
        return list(stub.GetDraftPolicy(pb.GetDraftPolicyRequest(sandbox='one', status_filter=status, workspace_scope=SCOPE)).chunks)

    def approve(self, stub, chunk, token):
        return stub.ApproveDraftChunk(pb.ApproveDraftChunkRequest(sandbox='one', chunk_id=chunk.id, review_token=token, workspace_scope=SCOPE))

    def test_a_refusal_becomes_a_proposal_that_is_approved_by_what_was_read(self):
        server = self.server()
        words = f'curl -sS http://{HOST}:{server.port}/x'
        client = self.sandbox()
        stub = client._stub
        self.run_in(client, words)
        chunk = wait_until(lambda: self.drafts(stub, 'pending'))[0]
        endpoint = chunk.proposed_rule.endpoints[0]
        self.assertEqual((endpoint.host, endpoint.port, endpoint.rules[0].allow.path, chunk.binary), (HOST, server.port, '/x', '/usr/bin/curl'))
        self.refused('ABORTED', lambda: self.approve(stub, chunk, 'another'))
        self.refused('INVALID_ARGUMENT', lambda: self.approve(stub, chunk, ''))
        self.assertEqual(self.approve(stub, chunk, chunk.review_token).policy_version, 2)
        # What is asked before the policy is in force is refused, and proposed again.
        asked = pb.GetSandboxPolicyStatusRequest(sandbox='one', version=2, workspace_scope=SCOPE)
        self.assertTrue(wait_until(lambda: stub.GetSandboxPolicyStatus(asked).revision.status == pb.POLICY_STATUS_LOADED))
        self.assertEqual(self.run_in(client, words).stdout, 'hello')
        self.assertEqual([one.status for one in self.drafts(stub)], ['approved'])
        self.refused('FAILED_PRECONDITION', lambda: self.approve(stub, chunk, chunk.review_token))

    def test_a_proposal_is_rejected(self):
        client = self.sandbox()
        stub = client._stub
        self.run_in(client, 'curl -sS https://a.test/')
        chunk = wait_until(lambda: self.drafts(stub))[0]
        stub.RejectDraftChunk(pb.RejectDraftChunkRequest(sandbox='one', chunk_id=chunk.id, reason='no', workspace_scope=SCOPE))
        self.assertEqual([(one.status, one.rejection_reason) for one in self.drafts(stub)], [('rejected', 'no')])

    def test_the_agents_own_proposals_and_automatic_approval(self):
        client = self.sandbox()
        stub = client._stub
        words = ('curl -sS -d \'{"operations": [{"addRule": {"ruleName": "mine", "rule": {"name": "mine", "endpoints": [{"host": "a.test", '
                 '"port": 80, "protocol": "rest", "enforcement": "enforce", "access": "read-only"}]}}}]}\' http://policy.local/v1/proposals')
        self.assertIn('feature_disabled', self.run_in(client, words).stdout)
        value = sandbox_pb2.SettingValue
        for key, wanted in (('agent_policy_proposals_enabled', value(bool_value=True)), ('proposal_approval_mode', value(string_value='auto'))):
            stub.UpdateConfig(pb.UpdateConfigRequest(sandbox='one', setting_key=key, setting_value=wanted, workspace_scope=SCOPE))
        self.assertIn('submitted', self.run_in(client, words).stdout)
        chunk = self.drafts(stub)[0]
        self.assertEqual((chunk.status, chunk.proposed_rule.endpoints[0].access), ('approved', sandbox_pb2.NETWORK_ACCESS_PRESET_READ_ONLY))
        waited = self.run_in(client, f'curl -sS "http://policy.local/v1/proposals/{chunk.id}/wait?timeout=300"').stdout
        self.assertIn('approved', waited)


if __name__ == '__main__':
    if os.geteuid() != 0:
        print('# SKIP gateway01: its sandboxes need root')
        sys.exit(4)
    unittest.main(verbosity=2)
