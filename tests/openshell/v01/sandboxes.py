# SPDX-License-Identifier: Apache-2.0
"""One sandbox of the gateway: its phases, policy revisions, records, proposals, and the workload behind them."""
import collections
import json
import os
import pathlib
import re
import shutil
import threading
import time
import uuid

from google.protobuf import json_format

import policy as rules
from egress import Egress
from openshell._proto import openshell_pb2 as pb
from openshell._proto import sandbox_pb2
from refusal import Refusal, invalid
from workload import CA_DIRECTORY, PROXY_PORT, Failed, Workload

RESTING = (pb.SANDBOX_PHASE_READY, pb.SANDBOX_PHASE_ERROR, pb.SANDBOX_PHASE_COMPLETED, pb.SANDBOX_PHASE_STOPPED)
BEGINNING = (pb.SANDBOX_PHASE_PROVISIONING, pb.SANDBOX_PHASE_STARTING)
SETTINGS = {'agent_policy_proposals_enabled': 'bool_value', 'proposal_approval_mode': 'string_value', 'ocsf_json_enabled': 'bool_value'}
# The paths of every policy; `/run` has the authority.
BASELINE = ('/usr', '/lib', '/lib64', '/bin', '/sbin', '/etc', '/proc', '/app', '/var/log', '/dev/urandom', '/run')
ALWAYS_WRITTEN = ('/tmp', '/var/tmp', '/dev/null', '/dev/zero', '/dev/tty', '/dev/shm')


def later(seconds, function, *arguments):
    timer = threading.Timer(seconds, function, arguments)
    timer.daemon = True
    timer.start()


class Events:
    """The last `most` events; each has a number, and a cursor that only this buffer understands."""

    def __init__(self, most):
        self.changed, self.kept, self.next, self.instance = threading.Condition(), collections.deque(maxlen=most), 0, uuid.uuid4().hex[:8]
        self.closed = False

    def add(self, event):
        with self.changed:
            event.cursor = f'{self.instance}.{self.next}'
            self.kept.append((self.next, event))
            self.next += 1
            self.changed.notify_all()

    def lose(self):
        """Drops what is kept, as a gateway under load does."""
        with self.changed:
            self.kept.clear()
            self.next += 1
            self.changed.notify_all()

    def close(self):
        with self.changed:
            self.closed = True
            self.changed.notify_all()

    def after(self, cursor):
        """The number behind a cursor."""
        instance, _, number = cursor.partition('.')
        if instance != self.instance or not number.isdigit():
            raise Refusal('OUT_OF_RANGE', 'the cursor is not of this buffer', reason='WATCH_CURSOR_EXPIRED')
        oldest = self.kept[0][0] if self.kept else self.next
        if int(number) + 1 < oldest:
            raise Refusal('OUT_OF_RANGE', 'events behind the cursor are gone', reason='WATCH_CURSOR_EXPIRED')
        return int(number) + 1

    def since(self, number, wait_s):
        """(events from `number` on, the next number, whether some were lost); waits for one."""
        with self.changed:
            if self.next <= number and not self.closed:
                self.changed.wait(wait_s)
            oldest = self.kept[0][0] if self.kept else self.next
            return [event for one, event in self.kept if one >= number], max(self.next, number), number < oldest


class Sandbox:
    """`gateway`: its options and providers (see service.Service). `message`: pb.Sandbox, with everything but the status."""

    def __init__(self, gateway, message, revision):
        self.gateway, self.message, self.lock = gateway, message, threading.RLock()
        self.directory = pathlib.Path(gateway.directory, 'sandboxes', message.metadata.id)
        self.events, self.settings, self.chunks = Events(gateway.options.log_lines), {}, {}
        self.draft_version, self.settings_revision = 0, 0
        self.workload, self.main, self.maker, self.activated = None, None, None, False
        self.revisions = [revision]
        self.set_phase(pb.SANDBOX_PHASE_PROVISIONING)

    # --- Phases ---

    def set_phase(self, phase, reason='', message='', only=()):
        with self.lock:
            if only and self.phase() not in only:
                return
            self.message.status.phase = phase
            del self.message.status.conditions[:]
            condition = self.message.status.conditions.add(type='Ready', status=str(phase == pb.SANDBOX_PHASE_READY), reason=reason,
                                                           message=message)
            condition.transition_time.GetCurrentTime()
            self.message.metadata.resource_version += 1
        self.notify()

    def notify(self):
        event = pb.SandboxStreamEvent()
        event.sandbox.CopyFrom(self.shown())
        self.events.add(event)

    def shown(self):
        with self.lock:
            copy = pb.Sandbox()
            copy.CopyFrom(self.message)
            copy.status.current_policy_version = self.active().version
            return copy

    def phase(self):
        return self.message.status.phase

    def provision(self):
        """Begins to make the workload and to start its main process; what fails is in the status."""
        self.maker = threading.Thread(target=self._provision, daemon=True)
        self.maker.start()

    def _provision(self):
        time.sleep(self.gateway.options.provision_s)
        if self.phase() not in BEGINNING:
            return
        try:
            image, host_usr = self.gateway.image(self.message.spec.template.image)
            workload = Workload(image, self.directory, host_usr, self.gateway.authority.certificate)
        except (Failed, OSError) as error:
            self.set_phase(pb.SANDBOX_PHASE_ERROR, 'SupervisorNotConnected', str(error))
            return
        except Refusal as refusal:
            self.set_phase(pb.SANDBOX_PHASE_ERROR, 'ImagePreparationTimedOut', refusal.message)
            return
        with self.lock:
            if self.phase() not in BEGINNING:
                workload.end()  # It was stopped or deleted meanwhile.
                return
            self.workload = workload
        options = self.gateway.options
        Egress(self, workload, self.gateway.authority, options.places, options.upstream_ca, options.release)
        self.load()
        self.activated = True
        try:
            main = self.main = self.run(list(self.message.spec.command) or ['sleep', 'infinity'], {}, '', False, True)
        except (Failed, Refusal):
            return  # The same.
        os.close(main.stdin)
        for descriptor in (main.stdout, main.stderr):
            threading.Thread(target=self._log_output, args=(descriptor,), daemon=True).start()
        self.message.status.main_process_instance_id = uuid.uuid4().hex
        self.message.status.main_process_started_time.GetCurrentTime()
        self.set_phase(pb.SANDBOX_PHASE_READY, 'MainProcessRunning', only=BEGINNING)
        threading.Thread(target=self._attend_main, args=(main,), daemon=True).start()

    def _log_output(self, descriptor):
        with open(descriptor, errors='replace') as file:
            for line in file:
                self.log('INFO', 'workload', line.rstrip('\n'))

    def _attend_main(self, main):
        status = main.wait()
        with self.lock:
            if main is not self.main or status is None or self.phase() != pb.SANDBOX_PHASE_READY:
                return
            self.message.status.exit_code = status
        self.set_phase(*((pb.SANDBOX_PHASE_ERROR, 'MainProcessFailed') if status else (pb.SANDBOX_PHASE_COMPLETED, 'MainProcessExited')))

    def end_workload(self):
        if self.maker:
            self.maker.join()
        workload, self.workload, self.main = self.workload, None, None
        if workload:
            workload.end()

    def stop(self):
        self.set_phase(pb.SANDBOX_PHASE_STOPPING)
        self.end_workload()
        self.set_phase(pb.SANDBOX_PHASE_STOPPED)

    def delete(self):
        self.set_phase(pb.SANDBOX_PHASE_DELETING)
        time.sleep(self.gateway.options.delete_s)
        self.end_workload()
        self.events.close()
        shutil.rmtree(self.directory, ignore_errors=True)

    # --- Commands ---

    def run(self, argv, environment, workdir, tty, no_login_shell):
        """Starts a command by the image's shell, as the supervisor does."""
        with self.lock:
            workload = self.workload
        if not workload:
            raise Refusal('FAILED_PRECONDITION', 'the sandbox is not running', reason='SANDBOX_NOT_READY')
        root = f'/proc/{workload.first_pid()}/root'
        shell = next((path for path in ('/bin/bash', '/usr/bin/bash', '/bin/sh') if os.path.exists(root + path)), '/bin/sh')
        words = ' '.join("'" + word.replace("'", "'\\''") + "'" for word in argv)
        env = {'HOME': '/sandbox', 'USER': 'sandbox', 'PATH': '/usr/local/bin:/usr/bin:/bin', 'TERM': 'xterm' if tty else 'dumb'}
        proxy = f'http://127.0.0.1:{PROXY_PORT}'
        env |= {name: proxy for name in ('HTTP_PROXY', 'HTTPS_PROXY', 'http_proxy', 'https_proxy')}
        env |= {name: 'localhost,127.0.0.1,::1' for name in ('NO_PROXY', 'no_proxy')}
        bundle = f'{CA_DIRECTORY}/ca-bundle.crt'
        env |= {name: bundle for name in ('CURL_CA_BUNDLE', 'SSL_CERT_FILE', 'REQUESTS_CA_BUNDLE', 'NODE_EXTRA_CA_CERTS')}
        env |= dict(self.message.spec.template.environment) | dict(self.message.spec.environment)
        env |= {key: f'openshell:resolve:env:{key}' for key in self.credentials() if not self._withheld(key)} | dict(environment)
        files = self.revisions[0].policy.filesystem  # What holds from the beginning.
        read_write = [*files.read_write, *ALWAYS_WRITTEN, *(['/sandbox'] if files.include_workdir else [])]
        return workload.start([shell, '-c' if no_login_shell else '-lc', words], env, workdir or '/sandbox', tty,
                              files.read_only, read_write)

    # --- Records ---

    def log(self, level, target, message, source='sandbox'):
        event = pb.SandboxStreamEvent()
        event.log.sandbox_id, event.log.level, event.log.target = self.message.metadata.id, level, target
        event.log.message, event.log.source = message, source
        event.log.event_time.GetCurrentTime()
        self.events.add(event)

    def record(self, message):
        self.log('OCSF', 'ocsf', message)

    # --- The policy ---

    def active(self):
        """The newest revision that was loaded, else the first."""
        with self.lock:
            return next((one for one in reversed(self.revisions) if one.status == pb.POLICY_STATUS_LOADED), self.revisions[0])

    def effective(self, policy):
        """`policy` with the endpoints of the profiles of attached providers."""
        result = sandbox_pb2.SandboxPolicy()
        result.CopyFrom(policy)
        for provider in self.attached():
            profile = self.gateway.profile_of(provider)
            if profile and profile.endpoints:
                rule = result.network_policies[f'_provider_{provider.metadata.name}']
                rule.name = f'_provider_{provider.metadata.name}'
                rule.endpoints.extend(profile.endpoints)
                rule.binaries.extend(profile.binaries or [sandbox_pb2.NetworkBinary(path='/**')])
        return result

    def loaded(self):
        return self.effective(self.active().policy)

    def revise(self, policy, wait_s):
        """A new revision, which the supervisor loads when it next looks."""
        rules.check(policy, self.gateway.options.release)
        with self.lock:
            revision = new_revision(policy, self.revisions[-1].version + 1)
            section = rules.static_change(self.active().policy, revision.policy) if self.activated else ''
            if section:
                raise invalid(f'policy.{section}', 'cannot be changed after activation')
            for one in self.revisions:
                if one.status == pb.POLICY_STATUS_PENDING:
                    one.status = pb.POLICY_STATUS_SUPERSEDED
            self.revisions.append(revision)
        later(wait_s, self._load, revision)
        return revision

    def load(self):
        """Loads the newest revision now."""
        self._load(self.revisions[-1])

    def _load(self, revision):
        with self.lock:
            if revision.status != pb.POLICY_STATUS_PENDING:
                return
            revision.status = pb.POLICY_STATUS_LOADED
            revision.loaded_time.GetCurrentTime()
        self.log('INFO', 'openshell_sandbox', f'Policy reloaded successfully version={revision.version}')
        self.notify()

    # --- Credentials ---

    def attached(self):
        names = list(self.message.spec.providers)
        return [one for one in (self.gateway.provider(self.message.metadata.workspace, name) for name in names) if one]

    def credentials(self):
        """{variable: (provider, the profile's credential)} of attached providers."""
        result = {}
        for provider in self.attached():
            profile = self.gateway.profile_of(provider)
            for credential in profile.credentials if profile else ():
                for variable in credential.env_vars:
                    if variable in provider.credentials:
                        result[variable] = provider, credential
        return result

    def endpoints_of(self, provider):
        """Where the provider's credentials may go: its profile's endpoints, else those of the policy that are bound to it."""
        profile, name = self.gateway.profile_of(provider), provider.metadata.name
        if profile and profile.endpoints:
            return list(profile.endpoints)
        return [endpoint for rule in self.active().policy.network_policies.values() for endpoint in rule.endpoints
                if endpoint.credential_binding.provider == name]

    def _withheld(self, variable):
        return not self.endpoints_of(self.credentials()[variable][0])

    def _is_for(self, provider, place):
        host, port = place
        return any(port in rules.ports_of(one) and rules.host_matches(one.host, host) for one in self.endpoints_of(provider))

    def bound_elsewhere(self, variable, place, rule, endpoint):
        found = self.credentials().get(variable)
        return found is None or not self._is_for(found[0], place)

    def credential(self, variable, place, rule, endpoint, position, detail):
        """The value for a placeholder at this position of a request (`detail`: the header or key); empty: it stays."""
        found = self.credentials().get(variable)
        if not found or not self._is_for(found[0], place):
            return ''
        value = found[0].credentials[variable]
        if position == 'body' or not rules.at_least(self.gateway.options.release, '0.1.8'):
            return value
        credential = found[1]
        wanted = {'': ('authorization', ''), 'bearer': ('authorization', ''), 'basic': ('authorization', ''),
                  'header': ('header', credential.header_name.lower()), 'query': ('query', credential.query_param),
                  'path': ('path', detail)}.get(credential.auth_style)
        if credential.auth_style == 'header' and credential.header_name.lower() == 'authorization':
            wanted = ('authorization', '')
        return value if wanted == (position, detail) else ''

    # --- Proposals ---

    def refused(self, host, port, program, request):
        """Something was refused: a proposal would allow it, once for each program and place."""
        later(self.gateway.options.draft_s, self._propose, host, port, program or '/**', request)

    def _propose(self, host, port, program, request):
        rule_name = f'allow_{host}_{port}'.replace('.', '_').replace(':', '_')
        rule = sandbox_pb2.NetworkPolicyRule(name=rule_name, binaries=[sandbox_pb2.NetworkBinary(path=program)])
        endpoint = rule.endpoints.add(host=host, port=port, advisor_proposed=True)
        if request:
            endpoint.protocol, endpoint.enforcement = 'rest', sandbox_pb2.NETWORK_ENFORCEMENT_MODE_ENFORCE
            endpoint.rules.add().allow.CopyFrom(sandbox_pb2.L7Allow(method=request[0], path=request[1]))
        self.propose(rule_name, rule, f'{program} was refused at {host}:{port}')

    def propose(self, rule_name, rule, rationale):
        with self.lock:
            for chunk in self.chunks.values():
                if chunk.rule_name == rule_name and chunk.proposed_rule == rule and chunk.status == 'pending':
                    chunk.hit_count += 1
                    chunk.last_seen_time.GetCurrentTime()
                    return chunk.id
            chunk = pb.PolicyChunk(id=str(uuid.uuid4()), status='pending', rule_name=rule_name, rationale=rationale, hit_count=1,
                                   confidence=0.5, binary=rule.binaries[0].path if rule.binaries else '', review_token=uuid.uuid4().hex)
            chunk.proposed_rule.CopyFrom(rule)
            for moment in (chunk.created_time, chunk.first_seen_time, chunk.last_seen_time):
                moment.GetCurrentTime()
            self.chunks[chunk.id] = chunk
            self.drafts_changed(1)
        if self.settings.get('proposal_approval_mode') and self.settings['proposal_approval_mode'].string_value == 'auto':
            self.approve(chunk)
        return chunk.id

    def drafts_changed(self, new=0):
        self.draft_version += 1
        event = pb.SandboxStreamEvent()
        pending = sum(chunk.status == 'pending' for chunk in self.chunks.values())
        event.draft_policy_update.CopyFrom(pb.DraftPolicyUpdate(draft_version=self.draft_version, new_chunks=new, total_pending=pending))
        self.events.add(event)

    def approve(self, chunk):
        with self.lock:
            policy = sandbox_pb2.SandboxPolicy()
            policy.CopyFrom(self.revisions[-1].policy)
            policy.network_policies[chunk.rule_name].MergeFrom(chunk.proposed_rule)
            revision = self.revise(policy, self.gateway.options.load_s)
            self.decide(chunk, 'approved')
        return revision

    def decide(self, chunk, status):
        chunk.status, chunk.review_token = status, ''
        chunk.decided_time.GetCurrentTime()
        self.drafts_changed()

    def policy_local(self, method, target, body):
        """(status, answer) of the API by which an agent proposes rules itself."""
        setting = self.settings.get('agent_policy_proposals_enabled')
        if not setting or not setting.bool_value:
            return 404, {'error': 'feature_disabled'}
        if (method, target) == ('GET', '/v1/policy/current'):
            return 200, {'format': 'yaml', 'policy_yaml': json_format.MessageToJson(self.loaded(), preserving_proto_field_name=True)}
        waiting = re.fullmatch('/v1/proposals/([0-9a-f-]{36})/wait', target)
        if method == 'GET' and waiting and waiting[1] in self.chunks:
            chunk = self.chunks[waiting[1]]
            while chunk.status == 'pending' and not self.events.closed:
                time.sleep(0.1)
            while self.revisions[-1].status == pb.POLICY_STATUS_PENDING and not self.events.closed:
                time.sleep(0.1)
            return 200, {'status': chunk.status}
        if (method, target) != ('POST', '/v1/proposals'):
            return 404, {'error': 'not_found'}
        accepted = []
        try:
            sent = json.loads(body)
            for operation in sent['operations']:
                one = json_format.ParseDict(with_enums(operation['addRule']), pb.AddNetworkRule())
                accepted.append(self.propose(one.rule_name, one.rule, sent.get('intent_summary', '')))
        except (ValueError, KeyError, TypeError, json_format.ParseError) as error:
            return 400, {'error': 'invalid_proposal', 'detail': str(error)}
        return 202, {'status': 'submitted', 'accepted_chunk_ids': accepted}


def with_enums(value, key=''):
    """JSON with the words of policy files as the names of the protocol's enums."""
    prefix = {'enforcement': 'NETWORK_ENFORCEMENT_MODE_', 'access': 'NETWORK_ACCESS_PRESET_', 'tls': 'NETWORK_TLS_MODE_'}.get(key)
    if isinstance(value, dict):
        return {name: with_enums(one, name) for name, one in value.items()}
    if isinstance(value, list):
        return [with_enums(one) for one in value]
    return prefix + value.upper().replace('-', '_') if prefix and isinstance(value, str) else value


def new_revision(policy, version):
    revision = pb.SandboxPolicyRevision(version=version, policy_hash=rules.hash_of(policy), status=pb.POLICY_STATUS_PENDING)
    revision.policy.CopyFrom(policy)
    files = revision.policy.filesystem
    if not policy.HasField('filesystem'):
        files.include_workdir = True
    files.read_only.extend(path for path in BASELINE if path not in files.read_only)
    revision.created_time.GetCurrentTime()
    return revision


