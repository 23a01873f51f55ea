#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A gateway of OpenShell 0.1 for tests: the calls that a driver makes, from the descriptors in the package `openshell` 0.1.5.

No program of 0.1 can be had for tests. What this one does is from OpenShell's documentation and from what others recorded; where both
are silent, it takes what is harder for a client. It refuses what the documentation forbids, and what no client of this generation
sends (unknown fields and values), which it also lists as violations. Sandboxes are real: processes in namespaces, files in an
overlay, requests through a proxy that asks the policy. It needs root, unshare, openssl, and the packages of `tests/programs/install
DIR openshell` on PYTHONPATH.

usage: gateway.py [--listen 127.0.0.1:0] [--tls DIR] [--token TOKEN=SUBJECT:ROLE]... [--client NAME=ROLE]... [--release 0.1.8]
         [--image REFERENCE=DIRECTORY]... [--place HOST=ADDRESS[:PORT]]... [--upstream-ca FILE] [--record FILE]
         [--load-s S] [--draft-s S] [--provision-s S] [--delete-s S] [--log-lines N]

It prints `listening at ADDRESS`, and `violation: ...` for each call that no client of its release makes; it ends with the standard
input, with status 1 if there was one.

  --listen   port 0: any that is free. Loopback only, or a network namespace of the test's own
  --tls      DIR has ca.crt, server.crt and server.key; if DIR does not exist, it is made, with client certificates user.crt and
             operator.crt and their keys. A client's certificate is asked for and not required. Without it: plaintext
  --token    `authorization: Bearer TOKEN` is SUBJECT with this role: none (a member of no workspace), user, admin (of every
             workspace) or platform-admin. expired:SUBJECT as SUBJECT stands for a token that has expired
  --client   the role of the certificate with this common name; without one it is platform-admin, as where no roles are configured
  --release  what it claims to be and follows where releases differ: 0.1.5, 0.1.8, 0.1.9, 0.1.10 (the default), or 0.0.N: then Health
             answers, and any other call is a violation
  --image    a root file system for a reference; other references have this machine's /usr. `*.invalid/...` cannot be pulled
  --place    where the proxy finds a name; such servers count as public
  --record   each call, as a line of JSON: {"method", "caller", "metadata", "messages"}
  --*-s      seconds until a policy is loaded (0.2), a refusal becomes a proposal (0.3), a sandbox is made (0.1) or gone (0.1)
  --log-lines how many events a sandbox's buffer has (2000)

In tests: `with Gateway(tls=..., tokens=...) as gateway:`; `gateway.address`, `.violations`, `.calls` (what --record writes), `.cut()`.
"""
import argparse
import collections
import json
import os
import pathlib
import shutil
import sys
import tempfile
import threading
from concurrent import futures

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import grpc  # noqa: E402
from google.protobuf import json_format, unknown_fields  # noqa: E402

from egress import Authority  # noqa: E402
from front import Front, common_name_of, make_certificates, socket_path, unit_of  # noqa: E402
from openshell._proto import openshell_pb2 as pb  # noqa: E402
from openshell._proto import options_pb2  # noqa: E402
from refusal import Refusal, invalid  # noqa: E402
from service import Service  # noqa: E402

SERVICE = pb.DESCRIPTOR.services_by_name['OpenShell']
ROLES = ('none', 'user', 'admin', 'platform-admin')
DEFAULT_WORKSPACES = ('default', 'other')
REPLAY_BYTES_MAX, ADMISSIONS_MAX, IDENTIFIER_CHARACTERS = 4 << 20, 1000, 36
# Omitted, the platform's profiles are meant.
SCOPE_OPTIONAL = ('ImportProviderProfiles', 'LintProviderProfiles', 'ListProviderProfiles', 'GetProviderProfile', 'DeleteProviderProfile')
SCOPE_ALL = ('ListSandboxes', 'ListProviders')

Caller = collections.namedtuple('Caller', 'subject role kind')
Options = collections.namedtuple('Options', 'release images places upstream_ca load_s draft_s provision_s delete_s log_lines', defaults=(
    '0.1.10', {}, {}, None, 0.2, 0.3, 0.1, 0.1, 2000))


class Call:
    """`workspace`: None for all, or where the platform's is meant. `first`: the first message of a stream of requests."""

    def __init__(self, method, caller, context):
        self.method, self.caller, self.context, self.workspace, self.first = method, caller, context, None, None


def strange_parts(message, where=''):
    """(field, what) for each part that this generation does not have."""
    for unknown in unknown_fields.UnknownFieldSet(message):
        yield where or message.DESCRIPTOR.name, f'unknown field {unknown.field_number}'
    for field, value in message.ListFields():
        place = f'{where}.{field.name}'.lstrip('.')
        is_map = field.message_type and field.message_type.GetOptions().map_entry
        if is_map:
            values = value.values() if field.message_type.fields_by_name['value'].message_type else ()
        else:
            values = value if field.is_repeated else (value,)
        for one in values:
            if field.enum_type and one not in field.enum_type.values_by_number:
                yield place, f'unknown value {one}'
            elif hasattr(one, 'ListFields'):
                yield from strange_parts(one, place)


class Gateway:
    """`tls`: a directory as for --tls. `tokens`: {token: 'SUBJECT:ROLE'}. `clients`: {common name: role}. `options`: those of Options."""

    def __init__(self, listen='127.0.0.1:0', tls=None, tokens=None, clients=None, record=None, **options):
        self.options = Options(**options)
        self.tokens, self.clients, self.tls = tokens or {}, clients or {}, tls
        self.violations, self.calls, self.replays, self.admissions = [], [], {}, collections.Counter()
        self.lock, self.recording = threading.Lock(), open(record, 'a') if record else None
        if tls and not os.path.isdir(tls):
            make_certificates(tls)
        self.directory = tempfile.mkdtemp(prefix='openshell-gateway-')
        self.service = Service(self.options, self.directory, Authority(self.directory + '/authority'))
        self.servers = [self._server('anonymous')]
        self.identities = {}
        host, _, port = listen.rpartition(':')
        self.front = Front((host.strip('[]'), int(port)), tls, self._backend)
        self.address = f'{host}:{self.front.address[1]}'
        self.url = f'{"https" if tls else "http"}://{self.address}'

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.front.close()
        self.service.close()  # What a call waits for ends with it.
        for server in self.servers:
            server.stop(None).wait()
        if self.recording:
            self.recording.close()
        shutil.rmtree(self.directory, ignore_errors=True)

    def cut(self, refuse=False):
        """Ends all connections, as where the gateway goes away. `refuse`: new ones, too; `cut()` again takes them."""
        self.front.cut(refuse)

    def lose_records(self, name, workspace='default'):
        """Drops the buffered records of a sandbox."""
        self.service.sandboxes[workspace, name].events.lose()

    def sandbox(self, name, workspace='default'):
        return self.service.sandboxes[workspace, name]

    # --- grpc ---

    def _backend(self, certificate):
        """The server for a connection with this certificate; each certificate has one of its own, since it is told from others by it."""
        if certificate is None:
            return socket_path(self.directory, 'anonymous')
        key = (common_name_of(certificate), unit_of(certificate))
        with self.lock:
            if key not in self.identities:
                name = f'certificate-{len(self.identities)}'
                self.servers.append(self._server(name, key))
                self.identities[key] = name
            return socket_path(self.directory, self.identities[key])

    def _server(self, name, certificate=None):
        server = grpc.server(futures.ThreadPoolExecutor(max_workers=64), options=[('grpc.max_receive_message_length', 4 << 20)])
        server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(
            SERVICE.full_name, {method.name: self._handler(method, certificate) for method in SERVICE.methods})])
        server.add_insecure_port('unix:' + socket_path(self.directory, name))
        server.start()
        return server

    def _handler(self, method, certificate):
        request_class = getattr(pb, method.input_type.name, None) or _class_of(method.input_type)
        streams = method.client_streaming, method.server_streaming
        make = {(False, False): grpc.unary_unary_rpc_method_handler, (False, True): grpc.unary_stream_rpc_method_handler,
                (True, True): grpc.stream_stream_rpc_method_handler, (True, False): grpc.stream_unary_rpc_method_handler}[streams]

        def call(request, context):
            try:
                result = self._call(method, request, context, certificate)
            except Refusal as refusal:
                context.abort_with_status(refusal.status())
            return result

        def stream(request, context):
            try:
                yield from self._call(method, request, context, certificate)
            except Refusal as refusal:
                context.abort_with_status(refusal.status())

        return make(stream if method.server_streaming else call, request_deserializer=request_class.FromString,
                    response_serializer=lambda message: message.SerializeToString())

    def _call(self, method, request, context, certificate):
        metadata = dict(context.invocation_metadata())
        first = request if not method.client_streaming else next(request, None)
        caller = self._caller(metadata, certificate)
        self._record(method.name, caller, metadata, first)
        if method.name != 'Health' and not self.options.release.startswith('0.1.'):
            self.violate(f'{method.name} was sent to {self.options.release}')
            raise Refusal('UNIMPLEMENTED', f'{method.name} of another generation')
        call = Call(method.name, caller if isinstance(caller, Caller) else None, context)
        rule = method.GetOptions().Extensions[options_pb2.authorization]
        if rule.auth_mode != 'unauthenticated':
            if isinstance(caller, Refusal):
                raise caller
            self._authorize(rule, caller, first)
        strange = list(strange_parts(first)) if first is not None else [(method.name, 'no request')]
        if strange:
            self.violate(f'{method.name}: {strange}')
            raise Refusal('INVALID_ARGUMENT', f'{strange[0][0]}: {strange[0][1]}', dict(strange))
        function = getattr(self.service, method.name, None)
        if function is None:
            raise Refusal('UNIMPLEMENTED', f'{method.name} is not of this gateway')
        if method.client_streaming:
            if first.WhichOneof('payload') != 'start':
                raise invalid('start', 'is the first message')
            call.first = first
        inner = first.start if method.client_streaming else first
        call.workspace = self._workspace(method.name, inner, caller)
        admitted = self._admit(method, inner, call)
        if admitted is not None:
            context.send_initial_metadata((('openshell-replayed', 'true'),))
            return admitted
        if method.client_streaming:
            return function(self._recorded(method.name, request), call)
        result = function(first, call)
        if not method.server_streaming and getattr(inner, 'request_id', ''):
            self.replays[caller.subject, method.name, inner.request_id][1] = result
        return result

    def _recorded(self, name, requests):
        for request in requests:
            self._record(name, None, {}, request)
            yield request

    def violate(self, what):
        with self.lock:
            self.violations.append(what)

    def _record(self, method, caller, metadata, message):
        entry = {'method': method, 'caller': getattr(caller, 'subject', ''),
                 'metadata': {key: value for key, value in metadata.items() if isinstance(value, str) and key != 'authorization'},
                 'message': json_format.MessageToDict(message, preserving_proto_field_name=True) if message is not None else None}
        with self.lock:
            self.calls.append(entry)
            if self.recording:
                self.recording.write(json.dumps(entry) + '\n')
                self.recording.flush()

    # --- Who calls, and where ---

    def _caller(self, metadata, certificate):
        """A Caller, or the Refusal for one who is not known."""
        words = metadata.get('authorization', '').split(' ')
        if words != ['']:
            who = self.tokens.get(words[1]) if len(words) == 2 and words[0] == 'Bearer' else None
            if who is None:
                return Refusal('UNAUTHENTICATED', 'invalid token', reason='TOKEN_INVALID')
            if who.startswith('expired:'):
                return Refusal('UNAUTHENTICATED', 'token has expired', reason='TOKEN_EXPIRED')
            subject, _, role = who.rpartition(':')
            return Caller(subject, role, 'oidc')
        if certificate:
            common, unit = certificate
            return Caller(common, 'operator' if unit == 'operator' else self.clients.get(common, 'platform-admin'), 'mtls')
        return Refusal('UNAUTHENTICATED', 'no credentials', reason='CREDENTIALS_MISSING')

    def _authorize(self, rule, caller, request):
        if rule.auth_mode == 'operator':
            if caller.role != 'operator':
                raise Refusal('PERMISSION_DENIED', 'for operators')
            return
        if rule.auth_mode in ('sandbox', 'peer') or caller.role == 'operator':
            raise Refusal('PERMISSION_DENIED', f'for a {rule.auth_mode}')
        needed = 'platform-admin' if rule.global_role else rule.workspace_role or 'none'
        if ROLES.index(caller.role) < ROLES.index(needed):
            raise Refusal('PERMISSION_DENIED', f'the role {needed} is needed', reason='ROLE_REQUIRED', metadata={'role': needed})

    def _workspace(self, method, request, caller):
        field = request.DESCRIPTOR.fields_by_name.get('workspace_scope')
        if field is None:
            return None
        scope = request.workspace_scope
        kind = scope.WhichOneof('selection') if request.HasField('workspace_scope') else None
        if kind is None:
            if method in SCOPE_OPTIONAL or (method == 'UpdateConfig' and getattr(request, 'global')):
                if caller.role != 'platform-admin' and method in ('ImportProviderProfiles', 'DeleteProviderProfile'):
                    raise Refusal('PERMISSION_DENIED', 'profiles of the platform are for platform admins')
                return None
            raise invalid('workspace_scope', 'a workspace is needed')
        if kind == 'all_workspaces':
            if method not in SCOPE_ALL:
                raise invalid('workspace_scope', 'all workspaces are for lists')
            if caller.role != 'platform-admin':
                raise Refusal('PERMISSION_DENIED', 'all workspaces are for platform admins')
            return None
        if not scope.workspace:
            raise invalid('workspace_scope.workspace', 'is empty')
        if scope.workspace not in DEFAULT_WORKSPACES:
            raise Refusal('NOT_FOUND', f'workspace {scope.workspace!r} not found')
        return scope.workspace

    # --- Repeats ---

    def _admit(self, method, request, call):
        """The answer of an earlier call with this request_id; None: it is the first, or has none."""
        identifier = getattr(request, 'request_id', '')
        if not identifier:
            return None
        if len(identifier) != IDENTIFIER_CHARACTERS or identifier.count('-') != 4:
            raise invalid('request_id', 'is a UUID')
        payload = request.SerializeToString(deterministic=True)
        if len(payload) > REPLAY_BYTES_MAX:
            raise Refusal('RESOURCE_EXHAUSTED', 'a message with a request_id has at most 4 MiB')
        key = call.caller.subject, method.name, identifier
        with self.lock:
            if key not in self.replays:
                if self.admissions[call.caller.subject] >= ADMISSIONS_MAX:
                    raise Refusal('RESOURCE_EXHAUSTED', 'too many request ids', reason='REQUEST_ADMISSION_LIMIT', retry_s=60)
                self.admissions[call.caller.subject] += 1
                self.replays[key] = [payload, None]
                return None
            before, answer = self.replays[key]
        if before != payload:
            raise Refusal('INVALID_ARGUMENT', 'the request_id was used for another request', reason='REQUEST_ID_PAYLOAD_MISMATCH')
        if method.server_streaming:
            raise Refusal('FAILED_PRECONDITION', 'a stream is not given again', reason='REQUEST_STREAM_UNAVAILABLE')
        if answer is None:
            raise Refusal('ABORTED', 'the outcome of the first request is not known', reason='REQUEST_OUTCOME_UNCERTAIN')
        return answer


def _class_of(descriptor):
    from google.protobuf import message_factory
    return message_factory.GetMessageClass(descriptor)


def pairs(words):
    return dict(word.split('=', 1) for word in words)


def place_of(text):
    address, _, port = text.rpartition(':') if text.count(':') == 1 else (text, '', '')
    return address, int(port) if port else None


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument('--listen', default='127.0.0.1:0')
    parser.add_argument('--tls')
    for name in ('token', 'client', 'image', 'place'):
        parser.add_argument('--' + name, action='append', default=[])
    parser.add_argument('--record')
    parser.add_argument('--release', default='0.1.10')
    parser.add_argument('--upstream-ca')
    for name in ('load', 'draft', 'provision', 'delete'):
        parser.add_argument(f'--{name}-s', type=float, default=Options._field_defaults[f'{name}_s'])
    parser.add_argument('--log-lines', type=int, default=2000)
    words = parser.parse_args()
    with Gateway(words.listen, words.tls, pairs(words.token), pairs(words.client), words.record, release=words.release,
                 images=pairs(words.image), places={host: place_of(text) for host, text in pairs(words.place).items()},
                 upstream_ca=words.upstream_ca, load_s=words.load_s, draft_s=words.draft_s, provision_s=words.provision_s,
                 delete_s=words.delete_s, log_lines=words.log_lines) as gateway:
        print(f'listening at {gateway.address}', flush=True)
        sys.stdin.read()
    for violation in gateway.violations:
        print(f'violation: {violation}', flush=True)
    sys.exit(bool(gateway.violations))


if __name__ == '__main__':
    main()
