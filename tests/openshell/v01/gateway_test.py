#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The gateway of the tests, by the client of the package `openshell` (its SDK) and by the protocol itself.

usage: gateway_test.py [unittest arguments]
"""
import http.server
import json
import os
import pathlib
import shutil
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import uuid

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import grpc  # noqa: E402

from front import make_certificates  # noqa: E402
from gateway import Gateway  # noqa: E402
from openshell import SandboxClient, TlsConfig, from_grpc_error  # noqa: E402
from openshell._proto import datamodel_pb2, openshell_pb2 as pb, openshell_pb2_grpc, sandbox_pb2  # noqa: E402

SCOPE = datamodel_pb2.WorkspaceSelector(workspace='default')
ADMIN = 'admin-token'
TOKENS = {ADMIN: 'root:platform-admin', 'manager-token': 'ann:admin', 'user-token': 'bob:user', 'old-token': 'expired:bob'}
SECRET = 'sekret-2f7fb65591ee'
HERE = pathlib.Path(__file__).resolve().parent


PATIENCE_S = 300  # Until something has happened on a machine that does much else.


def wait_until(condition, seconds=PATIENCE_S):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        result = condition()
        if result:
            return result
        time.sleep(0.02)
    return condition()


class Server:
    """Where the policy lets requests go; keeps what came. `tls`: a directory with a certificate, or None."""

    def __init__(self, tls=None):
        seen = self.seen = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                length = int(self.headers.get('Content-Length') or 0)
                seen.append((self.command, self.path, dict(self.headers), self.rfile.read(length).decode()))
                self.send_response(200)
                self.send_header('Content-Length', '5')
                self.end_headers()
                self.wfile.write(b'hello')

            do_POST = do_PUT = do_DELETE = do_GET

            def log_message(self, *arguments):
                pass

        self.server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        self.port = self.server.server_address[1]
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(f'{tls}/server.crt', f'{tls}/server.key')
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def policy(*endpoints, binaries=('/**',)):
    result = sandbox_pb2.SandboxPolicy(version=1)
    rule = result.network_policies['net']
    rule.name = 'net'
    rule.endpoints.extend(sandbox_pb2.NetworkEndpoint(**one) for one in endpoints)
    rule.binaries.extend(sandbox_pb2.NetworkBinary(path=path) for path in binaries)
    return result


def rest(host, port, **more):
    return {'host': host, 'port': port, 'protocol': 'rest', 'enforcement': sandbox_pb2.NETWORK_ENFORCEMENT_MODE_ENFORCE,
            'access': sandbox_pb2.NETWORK_ACCESS_PRESET_READ_ONLY} | more


class Case(unittest.TestCase):
    OPTIONS = {}

    def setUp(self):
        self.base = tempfile.mkdtemp(prefix='gateway01-')
        self.addCleanup(shutil.rmtree, self.base)
        self.gateway = self.start(**self.OPTIONS)

    def start(self, **options):
        gateway = Gateway(tokens=TOKENS, **options)
        self.addCleanup(gateway.__exit__)
        return gateway

    def client(self, token=ADMIN, gateway=None):
        client = SandboxClient((gateway or self.gateway).address, bearer_token=token, timeout=PATIENCE_S)
        self.addCleanup(client.close)
        return client

    def stub(self, token=ADMIN, gateway=None):
        return self.client(token, gateway)._stub

    def sandbox(self, name='one', gateway=None, **spec):
        client = self.client(gateway=gateway)
        client.create(workspace='default', name=name, spec=pb.SandboxSpec(**spec))
        client.wait_ready(name, workspace='default', timeout_seconds=PATIENCE_S)
        return client

    def run_in(self, client, script, name='one', **options):
        return client.exec(name, ['sh', '-c', script], workspace='default', **options)

    def records(self, name='one', gateway=None):
        answer = self.stub(gateway=gateway).GetSandboxLogs(pb.GetSandboxLogsRequest(sandbox=name, workspace_scope=SCOPE, lines=1000))
        return [log.message for log in answer.logs if log.level == 'OCSF']

    def refused(self, code, call, *arguments):
        with self.assertRaises(grpc.RpcError) as caught:
            result = call(*arguments)
            if hasattr(result, '__next__'):
                list(result)
        error = from_grpc_error(caught.exception)
        self.assertEqual(error.code(), grpc.StatusCode[code], error.details())
        return error


class SandboxesTest(Case):
    def test_a_sandbox_from_beginning_to_end(self):
        client = self.sandbox()
        found = client.get('one', workspace='default')
        self.assertEqual((found.name, found.workspace, found.phase), ('one', 'default', pb.SANDBOX_PHASE_READY))
        result = self.run_in(client, 'id -u; echo "$HERE"; pwd; cat; echo e >&2; exit 7', stdin=b'in', env={'HERE': 'x y'}, workdir='/tmp')
        self.assertEqual((result.exit_code, result.stdout, result.stderr), (7, '998\nx y\n/tmp\nin', 'e\n'))
        # Two namespaces of its own: no process and no network of the machine.
        self.assertEqual(self.run_in(client, 'cat /proc/net/dev | grep -c :; ls -d /proc/[0-9]* | wc -l').stdout.split()[0], '1')
        self.assertEqual(self.run_in(client, 'touch /usr/x 2>/dev/null; kill -0 1 2>/dev/null; echo $?').stdout, '1\n')
        deleted = client.delete('one', workspace='default')
        self.assertEqual((deleted.outcome, deleted.sandbox_id), (pb.DELETION_OUTCOME_ACCEPTED, found.id))
        client.wait_deleted('one', workspace='default', timeout_seconds=PATIENCE_S)
        self.assertEqual(client.delete('one', workspace='default', allow_missing=True).outcome, pb.DELETION_OUTCOME_ALREADY_ABSENT)
        self.refused('NOT_FOUND', lambda: client.delete('one', workspace='default'))
        self.assertEqual(self.gateway.violations, [])

    def test_output_streams_while_the_command_runs(self):
        client = self.sandbox()
        stream = client.exec_stream('one', ['sh', '-c', 'echo first; until [ -e /tmp/go ]; do sleep 0.05; done'], workspace='default')
        self.assertEqual(next(stream).data, b'first\n')
        self.run_in(client, 'touch /tmp/go')
        self.assertEqual(list(stream)[-1].exit_code, 0)

    def test_interactive_input_ends_with_the_half_close(self):
        client = self.sandbox()
        size, piece = 9 << 20, b'0123456789abcdef' * 4096

        def requests():
            start = pb.ExecSandboxRequest(sandbox='one', command=['sh', '-c', 'tee /tmp/all | cksum; cat /tmp/all'], no_login_shell=True,
                                          workspace_scope=SCOPE)
            yield pb.ExecSandboxInput(start=start)
            for _ in range(size // len(piece)):
                yield pb.ExecSandboxInput(stdin=piece)

        output, status = b'', None
        for event in client._stub.ExecSandboxInteractive(requests(), timeout=PATIENCE_S):
            output += event.stdout.data
            status = event.exit.exit_code if event.HasField('exit') else status
        self.assertEqual(status, 0)
        line, _, copy = output.partition(b'\n')
        self.assertEqual((int(line.split()[1]), copy), (size, piece * (size // len(piece))))

    def test_a_terminal(self):
        client = self.sandbox()
        start = pb.ExecSandboxRequest(sandbox='one', command=['sh', '-c', 'test -t 0 && test -t 1 && echo yes'], tty=True, workspace_scope=SCOPE)
        events = list(client._stub.ExecSandboxInteractive(iter([pb.ExecSandboxInput(start=start)]), timeout=PATIENCE_S))
        self.assertIn(b'yes', b''.join(event.stdout.data for event in events))

    def test_a_command_whose_time_is_up_gives_124(self):
        client = self.sandbox()
        self.assertEqual(self.run_in(client, 'echo a; sleep 600', timeout_seconds=1).exit_code, 124)

    def test_a_login_shell_reads_the_profile_and_the_other_does_not(self):
        client = self.sandbox()
        self.run_in(client, 'echo "echo from the profile" >/sandbox/.profile')
        self.assertIn('from the profile', self.run_in(client, 'true').stdout)
        self.assertEqual(self.run_in(client, 'true', no_login_shell=True).stdout, '')

    def test_files_are_those_of_the_policy(self):
        spec = sandbox_pb2.SandboxPolicy(version=1, filesystem=sandbox_pb2.FilesystemPolicy(read_only=['/home']))
        client = self.sandbox(policy=spec)
        script = 'ls /home >/dev/null && echo home; touch /tmp/x && echo tmp; for d in /home/sandbox /sandbox /srv; do touch $d/x || ls $d; done'
        self.assertEqual(self.run_in(client, script, workdir='/tmp', no_login_shell=True).stdout, 'home\ntmp\n')
        client = self.sandbox('two', policy=sandbox_pb2.SandboxPolicy(version=1, filesystem=sandbox_pb2.FilesystemPolicy(include_workdir=True)))
        self.assertEqual(self.run_in(client, 'touch /sandbox/x && echo yes; ls /home', 'two').stdout, 'yes\n')

    def test_files_last_over_stop_and_start_and_processes_do_not(self):
        client = self.sandbox()
        self.run_in(client, 'echo kept >/sandbox/file; sleep 987 >/dev/null 2>&1 &')
        client.stop('one', workspace='default')
        client.wait_stopped('one', workspace='default')
        self.refused('FAILED_PRECONDITION', lambda: self.run_in(client, 'true'))
        client.start('one', workspace='default')
        client.wait_ready('one', workspace='default')
        self.assertEqual(self.run_in(client, 'cat /sandbox/file; pgrep -c sleep').stdout, 'kept\n1\n')

    def test_the_main_process_decides_the_phase(self):
        client = self.client()
        for name, command, phase in (('done', ['true'], pb.SANDBOX_PHASE_COMPLETED), ('failed', ['false'], pb.SANDBOX_PHASE_ERROR)):
            client.create(workspace='default', name=name, spec=pb.SandboxSpec(command=command))
            self.assertTrue(wait_until(lambda: client.get(name, workspace='default').phase == phase))
        found = client.get('failed', workspace='default')
        self.assertEqual((found.status.exit_code, found.status.conditions[0].reason), (1, 'MainProcessFailed'))

    def test_an_image_that_cannot_be_had(self):
        client = self.client()
        client.create(workspace='default', name='one', spec=pb.SandboxSpec(template=pb.SandboxTemplate(image='registry.invalid/x:1')))
        self.assertTrue(wait_until(lambda: client.get('one', workspace='default').phase == pb.SANDBOX_PHASE_ERROR))

    def test_lists_have_pages_and_selectors(self):
        client = self.client()
        for number in range(5):
            client.create(workspace='default', name=f'n{number}', labels={'even': str(number % 2 == 0)})
        client.create(workspace='other', name='n9', labels={'even': 'False'})
        pager = client.list(workspace='default', page_size=2)
        self.assertEqual([[one.name for one in page.items] for page in pager], [['n0', 'n1'], ['n2', 'n3'], ['n4']])
        chosen = client.list_all(workspace='default', label_selector='even=True')
        self.assertEqual([one.name for one in chosen], ['n0', 'n2', 'n4'])
        self.assertEqual(len(client.list_all_for_all_workspaces()), 6)
        stub = self.stub()
        first = stub.ListSandboxes(pb.ListSandboxesRequest(page_size=2, workspace_scope=SCOPE))
        self.refused('INVALID_ARGUMENT', stub.ListSandboxes, pb.ListSandboxesRequest(
            page_token=first.next_page_token, label_selector='a=b', workspace_scope=SCOPE))
        self.refused('INVALID_ARGUMENT', stub.ListSandboxes, pb.ListSandboxesRequest(label_selector='even', workspace_scope=SCOPE))


class RefusalsTest(Case):
    def test_what_creation_refuses(self):
        stub = self.stub()

        def create(name='one', **spec):
            return pb.CreateSandboxRequest(name=name, workspace_scope=SCOPE, spec=pb.SandboxSpec(**spec))

        def with_policy(**endpoint):
            return create(policy=policy(rest('a.test', 443) | endpoint))

        modes = sandbox_pb2
        for field, request in (
                ('name', create('a' * 20)), ('name', create('A')), ('name', create('-a')),
                ('spec.template.image', create(template=pb.SandboxTemplate(image='./Dockerfile'))),
                ('spec.template.image', create(template=pb.SandboxTemplate(image='/tmp/rootfs.tar'))),
                ('policy.network_policies.net.endpoints[0].tls', with_policy(tls=modes.NETWORK_TLS_MODE_TERMINATE)),
                ('policy.network_policies.net.endpoints[0].tls', with_policy(tls=modes.NETWORK_TLS_MODE_PASSTHROUGH)),
                ('policy.network_policies.endpoints.enforcement', with_policy(enforcement=9)),
                ('policy.network_policies.net.endpoints[0].protocol', with_policy(protocol='sql')),
                ('policy.network_policies.net.endpoints[0].allowed_ips', with_policy(allowed_ips=['127.0.0.1'])),
                ('policy.network_policies.net.endpoints[0].allowed_ips', with_policy(allowed_ips=['0.0.0.0/0'])),
                ('policy.network_policies.net.endpoints[0].websocket_credential_rewrite', with_policy(websocket_credential_rewrite=True)),
                ('policy.network_policies.net.endpoints[0].host', with_policy(host='a.*.test')),
                ('policy.filesystem.read_write', create(policy=modes.SandboxPolicy(filesystem=modes.FilesystemPolicy(read_write=['/'])))),
                ('policy.process.run_as_user', create(policy=modes.SandboxPolicy(process=modes.ProcessPolicy(run_as_user='root'))))):
            with self.subTest(field=field):
                error = self.refused('INVALID_ARGUMENT', stub.CreateSandbox, request)
                self.assertEqual([one.field.removeprefix('spec.') for one in error.field_violations], [field.removeprefix('spec.')])
        # The same is taken without what is wrong.
        stub.CreateSandbox(with_policy(allowed_ips=['10.0.0.0/8']))
        self.refused('ALREADY_EXISTS', stub.CreateSandbox, create())
        self.assertEqual(len(self.gateway.violations), 1)  # The unknown value of an enum.

    def test_middleware_selectors_have_ports_until_0_1_8(self):
        spec = policy(rest('a.test', 443))
        spec.network_middlewares['m'].endpoints.include.append('*.a.test:443')
        request = pb.CreateSandboxRequest(name='one', workspace_scope=SCOPE, spec=pb.SandboxSpec(policy=spec))
        self.refused('INVALID_ARGUMENT', self.stub().CreateSandbox, request)
        older = self.start(release='0.1.8')
        self.stub(gateway=older).CreateSandbox(request)

    def test_no_workspace_and_fields_of_the_other_generation(self):
        stub = self.stub()
        error = self.refused('INVALID_ARGUMENT', stub.GetSandbox, pb.GetSandboxRequest(name='one'))
        self.assertEqual(error.field_violations[0].field, 'workspace_scope')
        self.refused('NOT_FOUND', stub.GetSandbox, pb.GetSandboxRequest(
            name='one', workspace_scope=datamodel_pb2.WorkspaceSelector(workspace='elsewhere')))
        self.assertEqual(self.gateway.violations, [])
        # `timeout_seconds = 5` of 0.0.
        old = pb.ExecSandboxRequest.FromString(pb.ExecSandboxRequest(sandbox='one', command=['true'], workspace_scope=SCOPE).SerializeToString()
                                               + b'\x28\x05')
        self.refused('INVALID_ARGUMENT', stub.ExecSandbox, old)
        self.assertIn('unknown field 5', self.gateway.violations[0])

    def test_messages_have_four_mebibytes(self):
        client = self.sandbox()
        self.assertEqual(self.run_in(client, 'wc -c', stdin=bytes(4_000_000)).stdout.strip(), '4000000')
        self.refused('RESOURCE_EXHAUSTED', lambda: self.run_in(client, 'wc -c', stdin=bytes(5 << 20)))

    def test_a_gateway_of_the_other_generation_takes_health_alone(self):
        older = self.start(release='0.0.112')
        client = self.client(gateway=older)
        self.assertEqual(client.health().version, '0.0.112')
        self.assertEqual(older.violations, [])
        self.refused('UNIMPLEMENTED', lambda: client.get('one', workspace='default'))
        self.assertEqual(older.violations, ['GetSandbox was sent to 0.0.112'])


class AuthenticationTest(Case):
    def test_tokens_and_roles(self):
        health = pb.HealthRequest()
        with grpc.insecure_channel(self.gateway.address) as channel:
            nobody = openshell_pb2_grpc.OpenShellStub(channel)
            self.assertEqual(nobody.Health(health).version, '0.1.10')
            error = self.refused('UNAUTHENTICATED', nobody.GetCurrentUser, pb.GetCurrentUserRequest())
            self.assertEqual(error.error_info.reason, 'CREDENTIALS_MISSING')
        for token in ('unknown', 'old-token'):
            self.refused('UNAUTHENTICATED', self.stub(token).GetCurrentUser, pb.GetCurrentUserRequest())
        user = self.stub('user-token')
        self.assertEqual(user.GetCurrentUser(pb.GetCurrentUserRequest()).subject, 'bob')
        user.CreateSandbox(pb.CreateSandboxRequest(name='one', workspace_scope=SCOPE))
        for call, request in (
                (user.GetGatewayInfo, pb.GetGatewayInfoRequest()),
                (user.CreateProvider, pb.CreateProviderRequest(workspace_scope=SCOPE)),
                (user.UpdateConfig, pb.UpdateConfigRequest(sandbox='one', policy=policy(), workspace_scope=SCOPE)),
                (user.ApproveDraftChunk, pb.ApproveDraftChunkRequest(sandbox='one', workspace_scope=SCOPE))):
            self.refused('PERMISSION_DENIED', call, request)
        profile = pb.ProviderProfileImportItem(profile=pb.ProviderProfile(id='p', display_name='p'))
        manager = self.stub('manager-token')
        self.refused('PERMISSION_DENIED', manager.ImportProviderProfiles, pb.ImportProviderProfilesRequest(profiles=[profile]))
        self.assertTrue(manager.ImportProviderProfiles(pb.ImportProviderProfilesRequest(profiles=[profile], workspace_scope=SCOPE)).imported)

    def test_certificates(self):
        directory = pathlib.Path(self.base, 'tls')
        make_certificates(directory, clients={'user': '', 'weak': '', 'op': 'operator'})
        gateway = self.start(tls=str(directory), clients={'weak': 'user'})

        def client(name, ca=directory):
            one = SandboxClient(gateway.address, tls=TlsConfig(ca / 'ca.crt', *(
                (directory / f'{name}.crt', directory / f'{name}.key') if name else (None, None))))
            self.addCleanup(one.close)
            return one

        def who(one):
            return one._stub.GetCurrentUser(pb.GetCurrentUserRequest(), timeout=PATIENCE_S).subject

        self.assertEqual(who(client('user')), 'user')
        self.assertEqual(client('').health().version, '0.1.10')  # A certificate is not required.
        self.refused('UNAUTHENTICATED', who, client(''))
        self.assertEqual(who(client('weak')), 'weak')
        self.refused('PERMISSION_DENIED', client('weak')._stub.GetGatewayInfo, pb.GetGatewayInfoRequest())
        self.refused('PERMISSION_DENIED', who, client('op'))
        other = pathlib.Path(self.base, 'other')
        make_certificates(other)
        self.refused('UNAVAILABLE', who, client('user', other))
        stranger = SandboxClient(gateway.address, tls=TlsConfig(directory / 'ca.crt', other / 'user.crt', other / 'user.key'))
        self.addCleanup(stranger.close)
        self.refused('UNAVAILABLE', who, stranger)

    def test_connections_can_be_cut(self):
        client = self.sandbox()
        stream = client.exec_stream('one', ['sh', '-c', 'echo a; sleep 600'], workspace='default')
        next(stream)
        self.gateway.cut(refuse=True)
        self.refused('UNAVAILABLE', lambda: stream)
        self.gateway.cut()
        self.assertTrue(wait_until(lambda: client.get('one', workspace='default').name == 'one'))


class RepeatsTest(Case):
    def test_the_same_request_is_answered_once_more(self):
        stub = self.stub()
        request = pb.CreateSandboxRequest(name='one', workspace_scope=SCOPE, request_id=str(uuid.uuid4()))
        with grpc.insecure_channel(self.gateway.address) as channel:
            raw = openshell_pb2_grpc.OpenShellStub(channel)
            token = (('authorization', f'Bearer {ADMIN}'),)
            first, call = raw.CreateSandbox.with_call(request, metadata=token)
            self.assertNotIn('openshell-replayed', dict(call.initial_metadata()))
            again, call = raw.CreateSandbox.with_call(request, metadata=token)
            self.assertEqual((again, dict(call.initial_metadata())['openshell-replayed']), (first, 'true'))
        request.name = 'two'
        self.assertEqual(self.refused('INVALID_ARGUMENT', stub.CreateSandbox, request).error_info.reason, 'REQUEST_ID_PAYLOAD_MISMATCH')
        request.request_id = 'short'
        self.refused('INVALID_ARGUMENT', stub.CreateSandbox, request)

    def test_a_command_is_not_run_again(self):
        client = self.sandbox()
        request = pb.ExecSandboxRequest(sandbox='one', command=['sh', '-c', 'echo x >>/tmp/n'], workspace_scope=SCOPE,
                                        request_id=str(uuid.uuid4()))
        list(client._stub.ExecSandbox(request))
        self.assertEqual(self.refused('FAILED_PRECONDITION', client._stub.ExecSandbox, request).error_info.reason,
                         'REQUEST_STREAM_UNAVAILABLE')
        self.assertEqual(self.run_in(client, 'cat /tmp/n').stdout, 'x\n')


class PolicyTest(Case):
    OPTIONS = {'load_s': 3600}  # The cases say when.

    def update(self, stub, **fields):
        return stub.UpdateConfig(pb.UpdateConfigRequest(sandbox='one', workspace_scope=SCOPE, **fields))

    def status(self, stub, version=0):
        return stub.GetSandboxPolicyStatus(pb.GetSandboxPolicyStatusRequest(sandbox='one', version=version, workspace_scope=SCOPE))

    def test_revisions(self):
        stub = self.sandbox(policy=policy(rest('a.test', 443)))._stub
        self.assertEqual(self.status(stub).revision.status, pb.POLICY_STATUS_LOADED)
        second = self.update(stub, policy=policy(rest('b.test', 443))).version
        third = self.update(stub, policy=policy(rest('c.test', 443))).version
        self.assertEqual((second, third), (2, 3))
        self.assertEqual(self.status(stub, 2).revision.status, pb.POLICY_STATUS_SUPERSEDED)
        self.assertEqual((self.status(stub).revision.status, self.status(stub).active_version), (pb.POLICY_STATUS_PENDING, 1))
        self.gateway.sandbox('one').load()
        self.assertEqual(self.status(stub).active_version, 3)
        config = stub.GetSandboxConfig(sandbox_pb2.GetSandboxConfigRequest(name='one', workspace_scope=SCOPE))
        self.assertEqual(config.policy.network_policies['net'].endpoints[0].host, 'c.test')
        listed = stub.ListSandboxPolicies(pb.ListSandboxPoliciesRequest(sandbox='one', workspace_scope=SCOPE))
        self.assertEqual([one.version for one in listed.revisions], [3, 2, 1])

    def test_static_sections_stay(self):
        before = policy(rest('a.test', 443))
        before.filesystem.read_only.append('/opt')
        before.landlock.compatibility = 'hard_requirement'
        stub = self.sandbox(policy=before)._stub
        for change, section in ((lambda p: p.filesystem.ClearField('read_only'), 'filesystem'),
                                (lambda p: p.ClearField('landlock'), 'landlock'),
                                (lambda p: p.process.MergeFrom(sandbox_pb2.ProcessPolicy(run_as_user='x')), 'process')):
            after = sandbox_pb2.SandboxPolicy()
            after.CopyFrom(before)
            change(after)
            error = self.refused('INVALID_ARGUMENT', lambda: self.update(stub, policy=after))
            self.assertEqual(error.field_violations[0].field, f'policy.{section}')
        before.filesystem.read_only.append('/srv')
        self.assertEqual(self.update(stub, policy=before).version, 2)

    def test_settings(self):
        stub = self.sandbox()._stub
        value = sandbox_pb2.SettingValue
        self.update(stub, setting_key='proposal_approval_mode', setting_value=value(string_value='auto'))
        config = stub.GetSandboxConfig(sandbox_pb2.GetSandboxConfigRequest(name='one', workspace_scope=SCOPE))
        self.assertEqual(config.settings['proposal_approval_mode'].value.string_value, 'auto')
        for key, wrong in (('unknown', value(bool_value=True)), ('proposal_approval_mode', value(bool_value=True)),
                           ('proposal_approval_mode', value(string_value='never'))):
            self.refused('INVALID_ARGUMENT', lambda: self.update(stub, setting_key=key, setting_value=wrong))
        self.assertTrue(self.update(stub, setting_key='proposal_approval_mode', delete_setting=True).deleted)


class RecordsTest(Case):
    def watch(self, stub, **fields):
        return stub.WatchSandbox(pb.WatchSandboxRequest(sandbox='one', workspace_scope=SCOPE, **fields), timeout=PATIENCE_S)

    def test_a_watch_goes_on_at_its_cursor(self):
        client = self.sandbox()
        stub, sandbox = client._stub, self.gateway.sandbox('one')
        for number in range(3):
            sandbox.record(f'NET:OPEN [INFO] {number}')
        events = self.watch(stub, follow_logs=True, log_tail_lines=2)
        seen = [next(events) for _ in range(2)]
        self.assertEqual([event.log.message[-1] for event in seen], ['1', '2'])
        sandbox.record('NET:OPEN [INFO] 3')
        self.assertEqual(next(events).log.message[-1], '3')
        events.cancel()
        sandbox.record('NET:OPEN [INFO] 4')
        events = self.watch(stub, follow_logs=True, resume_after_cursor=seen[-1].cursor)
        self.assertEqual([next(events).log.message[-1] for _ in range(2)], ['3', '4'])
        self.gateway.lose_records('one')
        sandbox.record('NET:OPEN [INFO] 5')
        self.assertEqual([next(events).WhichOneof('payload') for _ in range(2)], ['warning', 'log'])
        self.refused('OUT_OF_RANGE', lambda: self.watch(stub, follow_logs=True, resume_after_cursor=seen[-1].cursor))
        events.cancel()

    def test_status_is_seen_until_it_rests(self):
        client = self.client()
        client.create(workspace='default', name='one')
        phases = [event.sandbox.status.phase for event in self.watch(client._stub, follow_status=True, stop_on_terminal=True)
                  if event.HasField('sandbox')]
        self.assertEqual(phases[-1], pb.SANDBOX_PHASE_READY)

    def test_logs_are_filtered(self):
        client = self.sandbox(command=['sh', '-c', 'echo from main; sleep infinity'])
        stub = client._stub

        def logs(**fields):
            return [log.message for log in stub.GetSandboxLogs(pb.GetSandboxLogsRequest(sandbox='one', workspace_scope=SCOPE, **fields)).logs]

        self.assertTrue(wait_until(lambda: 'from main' in logs()))
        self.assertEqual(logs(min_level='ERROR'), [])
        self.assertEqual(logs(sources=['gateway']), [])
        self.refused('INVALID_ARGUMENT', lambda: logs(min_level='LOUD'))

    def test_calls_are_recorded(self):
        path = self.base + '/calls'
        gateway = self.start(record=path)
        self.sandbox(gateway=gateway, environment={'A': 'b'})
        calls = [json.loads(line) for line in pathlib.Path(path).read_text().splitlines()]
        self.assertEqual(calls[0]['method'], 'CreateSandbox')
        self.assertEqual(calls[0]['message']['spec'], {'environment': {'A': 'b'}})
        self.assertNotIn(ADMIN, pathlib.Path(path).read_text())

    def test_as_a_program(self):
        process = subprocess.Popen([sys.executable, str(HERE / 'gateway.py'), '--token', 't=me:user', '--release', '0.0.112'],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        address = process.stdout.readline().split()[-1]
        with SandboxClient(address, bearer_token='t') as client:
            self.assertEqual(client.health().version, '0.0.112')
            self.refused('UNIMPLEMENTED', lambda: client.get('one', workspace='default'))
        output, _ = process.communicate()
        self.assertEqual((output, process.returncode), ('violation: GetSandbox was sent to 0.0.112\n', 1))


if __name__ == '__main__':
    if os.geteuid() != 0:
        print('# SKIP gateway01: its sandboxes need root')
        sys.exit(4)
    unittest.main(verbosity=2)
