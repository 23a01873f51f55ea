# SPDX-License-Identifier: Apache-2.0
"""The calls of `openshell.v1.OpenShell` that a driver makes. A call that is not here answers UNIMPLEMENTED."""
import base64
import os
import pathlib
import queue
import re
import select
import threading
import time
import uuid

import policy as rules
import providers as provider_store
from openshell._proto import openshell_pb2 as pb
from openshell._proto import sandbox_pb2
from refusal import Refusal, invalid, missing
from sandboxes import RESTING, SETTINGS, Sandbox, new_revision
from workload import make_image

NAME = re.compile(r'[a-z](?:[a-z0-9-]*[a-z0-9])?\Z')
NAME_CHARACTERS_MAX = 19  # As the gateway of 0.1.2 has it; pages say 63.
IMAGE = re.compile(r'(?:[a-z0-9]+(?:[.-][a-z0-9]+)*(?::[0-9]+)?/)?[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)*'
                   r'(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@sha256:[0-9a-f]{64})?\Z')
LABEL_KEY = re.compile(r'(?:[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?\Z')
LABEL_VALUE = re.compile(r'(?:[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?\Z')
PAGE_DEFAULT, PAGE_MAX, CHUNK, HELD_OUTPUT_S = 100, 1000, 1 << 15, 30
LEVELS = ('TRACE', 'DEBUG', 'INFO', 'WARN', 'ERROR')


def parse_selector(text):
    pairs = []
    for part in filter(None, text.split(',')):
        key, equals, value = part.partition('=')
        if not equals or not LABEL_KEY.match(key) or not LABEL_VALUE.match(value):
            raise invalid('label_selector', f'{part!r} is not key=value')
        pairs.append((key, value))
    return pairs


def page_of(request, key, items):
    """(the items of this page, the token of the next): a token belongs to one question."""
    size = request.page_size or PAGE_DEFAULT
    if not 0 < size <= PAGE_MAX:
        raise invalid('page_size', f'is from 1 to {PAGE_MAX}')
    start, question = 0, f'{key}#'
    if request.page_token:
        try:
            text = base64.urlsafe_b64decode(request.page_token.encode()).decode()
            start = int(text.removeprefix(question))
        except ValueError as error:
            raise invalid('page_token', 'is not of this list') from error
    end = start + size
    token = base64.urlsafe_b64encode(f'{question}{end}'.encode()).decode() if end < len(items) else ''
    return items[start:end], token


class Service:
    """`options`: see gateway.Options. `directory`: for sandboxes, images and keys."""

    def __init__(self, options, directory, authority):
        self.options, self.directory, self.authority, self.lock = options, directory, authority, threading.RLock()
        self.sandboxes, self.own_image = {}, pathlib.Path(directory, 'image')
        self.providers = provider_store.Providers(options.release, self._is_attached)
        self.global_settings, self.receipts = {}, {}
        make_image(self.own_image)

    def close(self):
        for sandbox in list(self.sandboxes.values()):
            sandbox.delete()

    # --- What a sandbox asks of the gateway ---

    def image(self, reference):
        """(a directory, whether this machine's programs go over it) for an image reference."""
        if reference in self.options.images:
            return self.options.images[reference], False
        if reference.split('/')[0].endswith('.invalid'):
            raise Refusal('UNAVAILABLE', f'{reference} cannot be pulled')
        return self.own_image, True

    def provider(self, workspace, name):
        return self.providers.get(workspace, name)

    def profile_of(self, provider):
        return self.providers.profile(provider.metadata.workspace, provider.type)

    def _is_attached(self, workspace, name):
        return any(key[0] == workspace and name in one.message.spec.providers for key, one in list(self.sandboxes.items()))

    # --- Helpers ---

    def _find(self, workspace, name, field='sandbox'):
        if not name:
            raise invalid(field, 'is empty')
        sandbox = self.sandboxes.get((workspace, name))
        if not sandbox:
            raise missing('sandbox', name)
        return sandbox

    def _running(self, workspace, name):
        sandbox = self._find(workspace, name)
        if sandbox.phase() not in (pb.SANDBOX_PHASE_READY, pb.SANDBOX_PHASE_COMPLETED, pb.SANDBOX_PHASE_ERROR) or not sandbox.workload:
            phase = pb.SandboxPhase.Name(sandbox.phase())
            raise Refusal('FAILED_PRECONDITION', f'sandbox {name!r} is not ready: {phase}', reason='SANDBOX_NOT_READY')
        return sandbox

    def _listed(self, call, request, stored):
        """The objects of a workspace, or of all, that a selector picks; in the order of their names."""
        wanted = parse_selector(request.label_selector)
        found = [one for (workspace, _), one in sorted(stored.items()) if call.workspace in (None, workspace)]
        labels = (lambda one: one.message.metadata.labels) if stored is self.sandboxes else (lambda one: one.metadata.labels)
        found = [one for one in found if all(key in labels(one) and labels(one)[key] == value for key, value in wanted)]
        return page_of(request, f'{call.method}/{call.workspace}/{request.label_selector}', found)

    # --- The gateway ---

    def Health(self, request, call):
        return pb.HealthResponse(status=pb.SERVICE_STATUS_HEALTHY, version=self.options.release)

    def GetCurrentUser(self, request, call):
        return pb.GetCurrentUserResponse(subject=call.caller.subject, display_name=call.caller.subject, roles=[call.caller.role],
                                         identity_provider=call.caller.kind)

    def GetGatewayInfo(self, request, call):
        capabilities = pb.ComputeDriverCapabilities(driver_name='tests', driver_version=self.options.release)
        return pb.GetGatewayInfoResponse(status=pb.SERVICE_STATUS_HEALTHY, gateway_version=self.options.release,
                                         compute_drivers=[pb.ComputeDriverInfo(name='tests', capabilities=capabilities)])

    # --- Sandboxes ---

    def CreateSandbox(self, request, call):
        name, spec = request.name or f'sb-{uuid.uuid4().hex[:12]}', request.spec
        if not NAME.match(name) or len(name) > NAME_CHARACTERS_MAX:
            raise invalid('name', f'a name is a-z, 0-9 and -, of at most {NAME_CHARACTERS_MAX} characters')
        if spec.template.image and not IMAGE.match(spec.template.image):
            raise invalid('spec.template.image', 'is not an image reference: files and directories are not built')
        if spec.template.HasField('driver_config'):
            raise invalid('spec.template.driver_config', 'is not allowed by this gateway')
        for key, value in request.labels.items():
            if not LABEL_KEY.match(key) or not LABEL_VALUE.match(value):
                raise invalid('labels', f'{key}={value} is not a label')
        rules.check(spec.policy, self.options.release)
        with self.lock:
            if (call.workspace, name) in self.sandboxes:
                raise Refusal('ALREADY_EXISTS', f'sandbox {name!r} already exists')
            for number, provider in enumerate(spec.providers):
                if not self.provider(call.workspace, provider):
                    raise Refusal('FAILED_PRECONDITION', f'provider {provider!r} not found',
                                  {f'spec.providers[{number}]': 'no such provider'})
            message = pb.Sandbox(spec=spec)
            metadata = message.metadata
            metadata.id, metadata.name, metadata.workspace = str(uuid.uuid4()), name, call.workspace
            metadata.labels.update(request.labels)
            metadata.annotations.update(request.annotations)
            metadata.created_time.GetCurrentTime()
            sandbox = self.sandboxes[call.workspace, name] = Sandbox(self, message, new_revision(spec.policy, 1))
        sandbox.provision()
        return pb.SandboxResponse(sandbox=sandbox.shown())

    def GetSandbox(self, request, call):
        return pb.SandboxResponse(sandbox=self._find(call.workspace, request.name, 'name').shown())

    def ListSandboxes(self, request, call):
        found, token = self._listed(call, request, self.sandboxes)
        return pb.ListSandboxesResponse(sandboxes=[one.shown() for one in found], next_page_token=token)

    def DeleteSandbox(self, request, call):
        with self.lock:
            sandbox = self.sandboxes.get((call.workspace, request.name))
            if not sandbox:
                if request.allow_missing and request.name:
                    return pb.DeleteSandboxResponse(outcome=pb.DELETION_OUTCOME_ALREADY_ABSENT)
                raise missing('sandbox', request.name)
            accepted = pb.DeleteSandboxResponse(outcome=pb.DELETION_OUTCOME_ACCEPTED, sandbox_id=sandbox.message.metadata.id)
            if sandbox.phase() == pb.SANDBOX_PHASE_DELETING:
                return accepted

        def delete():
            sandbox.delete()
            with self.lock:
                self.sandboxes.pop((call.workspace, request.name), None)

        if self.options.delete_s:
            sandbox.set_phase(pb.SANDBOX_PHASE_DELETING)
            threading.Thread(target=delete, daemon=True).start()
            return accepted
        delete()
        return pb.DeleteSandboxResponse(outcome=pb.DELETION_OUTCOME_COMPLETED, sandbox_id=accepted.sandbox_id)

    def StopSandbox(self, request, call):
        sandbox = self._find(call.workspace, request.name, 'name')
        if sandbox.phase() not in (pb.SANDBOX_PHASE_STOPPED, pb.SANDBOX_PHASE_STOPPING):
            threading.Thread(target=sandbox.stop, daemon=True).start()
        return pb.SandboxResponse(sandbox=sandbox.shown())

    def StartSandbox(self, request, call):
        sandbox = self._find(call.workspace, request.name, 'name')
        if sandbox.phase() not in (pb.SANDBOX_PHASE_STOPPED, pb.SANDBOX_PHASE_COMPLETED, pb.SANDBOX_PHASE_ERROR):
            raise Refusal('FAILED_PRECONDITION', f'sandbox {request.name!r} is not stopped', reason='SANDBOX_NOT_STOPPED')
        sandbox.end_workload()
        sandbox.set_phase(pb.SANDBOX_PHASE_STARTING)
        sandbox.provision()
        return pb.SandboxResponse(sandbox=sandbox.shown())

    # --- Commands ---

    def _start(self, request, call):
        if not request.command:
            raise invalid('command', 'is empty')
        for key in request.environment:
            if not provider_store.VARIABLE.match(key):
                raise invalid('environment', f'{key!r} is not a name')
        if request.HasField('execution_timeout') and request.execution_timeout.ToNanoseconds() <= 0:
            raise invalid('execution_timeout', 'is not positive')
        sandbox = self._running(call.workspace, request.sandbox)
        command = sandbox.run(request.command, request.environment, request.workdir, request.tty, request.no_login_shell)
        limit = request.execution_timeout.ToNanoseconds() / 1e9 if request.HasField('execution_timeout') else None
        return command, limit

    def ExecSandbox(self, request, call):
        command, limit = self._start(request, call)

        def feed():
            _write(command.stdin, request.stdin)
            _close(command.stdin)

        threading.Thread(target=feed, daemon=True).start()
        yield from _outputs(command, limit, call.context)

    def ExecSandboxInteractive(self, requests, call):
        command, limit = self._start(call.first.start, call)

        def feed():
            try:
                for one in requests:
                    kind = one.WhichOneof('payload')
                    if kind == 'stdin' and not _write(command.stdin, one.stdin):
                        return
            except Exception:  # The client has gone: grpc says so in ways of its own.
                pass
            finally:
                _close(command.stdin)

        threading.Thread(target=feed, daemon=True).start()
        yield from _outputs(command, limit, call.context)

    # --- Policy and settings ---

    def UpdateConfig(self, request, call):
        parts = [request.HasField('policy'), bool(request.setting_key), bool(request.merge_operations)]
        if sum(parts) != 1:
            raise invalid('policy', 'one of a policy, a setting and merge operations is needed')
        if request.setting_key:
            return self._set(request, call)
        if getattr(request, 'global'):
            raise Refusal('UNIMPLEMENTED', 'a policy for all sandboxes')
        sandbox = self._find(call.workspace, request.sandbox)
        if request.expected_resource_version not in (0, sandbox.message.metadata.resource_version):
            raise Refusal('ABORTED', 'the sandbox has another version', reason='RESOURCE_VERSION_MISMATCH')
        base = sandbox.revisions[-1].policy
        policy = request.policy if request.HasField('policy') else rules.merge(base, request.merge_operations)
        revision = sandbox.revise(policy, self.options.load_s)
        return pb.UpdateConfigResponse(version=revision.version, policy_hash=revision.policy_hash, annotations=request.annotations)

    def _set(self, request, call):
        kind = SETTINGS.get(request.setting_key)
        if not kind:
            raise invalid('setting_key', f'unknown {request.setting_key!r}')
        if getattr(request, 'global') and call.caller.role != 'platform-admin':
            raise Refusal('PERMISSION_DENIED', 'global settings are for platform admins')
        settings, sandbox = self.global_settings, None
        if not getattr(request, 'global'):
            sandbox = self._find(call.workspace, request.sandbox)
            settings = sandbox.settings
        if not request.delete_setting and request.setting_value.WhichOneof('value') != kind:
            raise invalid('setting_value', f'{request.setting_key} is a {kind}')
        modes = ('manual', 'auto')
        if request.setting_key == 'proposal_approval_mode' and not request.delete_setting and request.setting_value.string_value not in modes:
            raise invalid('setting_value', 'manual or auto')
        deleted = request.delete_setting and settings.pop(request.setting_key, None) is not None
        if not request.delete_setting:
            settings[request.setting_key] = request.setting_value
        if sandbox:
            sandbox.settings_revision += 1
        return pb.UpdateConfigResponse(settings_revision=sandbox.settings_revision if sandbox else 1, deleted=deleted)

    def GetSandboxConfig(self, request, call):
        sandbox = self._find(call.workspace, request.name, 'name')
        active, policy = sandbox.active(), sandbox.loaded()
        result = sandbox_pb2.GetSandboxConfigResponse(policy=policy, version=active.version, policy_hash=rules.hash_of(policy),
                                                      policy_source=sandbox_pb2.POLICY_SOURCE_SANDBOX, workspace=call.workspace,
                                                      configuration_admitted=sandbox.activated, settings_revision=sandbox.settings_revision,
                                                      policy_validation_failure_mode='fail_closed')
        for scope, settings in ((sandbox_pb2.SETTING_SCOPE_GLOBAL, self.global_settings), (sandbox_pb2.SETTING_SCOPE_SANDBOX, sandbox.settings)):
            for key, value in settings.items():
                result.settings[key].CopyFrom(sandbox_pb2.EffectiveSetting(value=value, scope=scope))
        return result

    def GetSandboxPolicyStatus(self, request, call):
        sandbox = self._find(call.workspace, request.sandbox)
        found = [one for one in sandbox.revisions if request.version in (0, one.version)]
        if not found:
            raise missing('policy revision', str(request.version))
        return pb.GetSandboxPolicyStatusResponse(revision=found[-1], active_version=sandbox.active().version)

    def ListSandboxPolicies(self, request, call):
        sandbox = self._find(call.workspace, request.sandbox)
        found, token = page_of(request, f'policies/{request.sandbox}', sandbox.revisions[::-1])
        return pb.ListSandboxPoliciesResponse(revisions=found, next_page_token=token)

    # --- Proposals ---

    def GetDraftPolicy(self, request, call):
        if request.status_filter not in ('', 'pending', 'approved', 'rejected'):
            raise invalid('status_filter', f'unknown {request.status_filter!r}')
        sandbox = self._find(call.workspace, request.sandbox)
        with sandbox.lock:
            chunks = [one for one in sandbox.chunks.values() if request.status_filter in ('', one.status)]
            return pb.GetDraftPolicyResponse(chunks=chunks, draft_version=sandbox.draft_version)

    def _chunk(self, request, call):
        sandbox = self._find(call.workspace, request.sandbox)
        chunk = sandbox.chunks.get(request.chunk_id)
        if not chunk:
            raise missing('draft chunk', request.chunk_id)
        if chunk.status != 'pending':
            raise Refusal('FAILED_PRECONDITION', f'draft chunk is {chunk.status}')
        return sandbox, chunk

    def ApproveDraftChunk(self, request, call):
        sandbox, chunk = self._chunk(request, call)
        if not request.review_token:
            raise invalid('review_token', 'is needed: what was reviewed')
        if request.review_token != chunk.review_token:
            raise Refusal('ABORTED', 'the proposal has changed since it was read', reason='REVIEW_TOKEN_MISMATCH')
        revision = sandbox.approve(chunk)
        return pb.ApproveDraftChunkResponse(policy_version=revision.version, policy_hash=revision.policy_hash)

    def RejectDraftChunk(self, request, call):
        sandbox, chunk = self._chunk(request, call)
        chunk.rejection_reason = request.reason
        sandbox.decide(chunk, 'rejected')
        return pb.RejectDraftChunkResponse()

    # --- Records ---

    def _wanted_log(self, log, sources, least, since):
        if least and least.upper() not in LEVELS:
            raise invalid('min_level', f'unknown {least!r}')
        rank = LEVELS.index(log.level) if log.level in LEVELS else LEVELS.index('INFO')
        late = since is None or log.event_time.ToNanoseconds() >= since.ToNanoseconds()
        return late and (not sources or log.source in sources) and (not least or rank >= LEVELS.index(least.upper()))

    def GetSandboxLogs(self, request, call):
        sandbox = self._find(call.workspace, request.sandbox)
        since = request.since_time if request.HasField('since_time') else None
        logs = [event.log for event in sandbox.events.since(0, 0)[0] if event.HasField('log')]
        found = [log for log in logs if self._wanted_log(log, request.sources, request.min_level, since)]
        return pb.GetSandboxLogsResponse(logs=found[-(request.lines or 200):], buffer_total=len(logs))

    def WatchSandbox(self, request, call):
        sandbox = self._find(call.workspace, request.sandbox)
        since = request.since_time if request.HasField('since_time') else None
        kinds = {'sandbox': request.follow_status, 'log': request.follow_logs, 'event': request.follow_events,
                 'draft_policy_update': request.follow_status}
        number = sandbox.events.next
        if request.resume_after_cursor:
            number = sandbox.events.after(request.resume_after_cursor)
        elif request.log_tail_lines or since is not None:
            tail = [event for event in sandbox.events.since(0, 0)[0] if event.HasField('log')
                    and self._wanted_log(event.log, request.log_sources, request.log_min_level, since)]
            yield from tail[-request.log_tail_lines:] if request.log_tail_lines else tail
        if request.follow_status and not request.resume_after_cursor:
            yield pb.SandboxStreamEvent(sandbox=sandbox.shown())
        while call.context.is_active():
            if request.stop_on_terminal and sandbox.phase() in RESTING and number >= sandbox.events.next:
                return
            events, number, lost = sandbox.events.since(number, 0.2)
            if lost:
                yield pb.SandboxStreamEvent(warning=pb.SandboxStreamWarning(message='events were skipped: the watcher is too slow'))
            for event in events:
                kind = event.WhichOneof('payload')
                if kinds.get(kind) and (kind != 'log' or self._wanted_log(event.log, request.log_sources, request.log_min_level, None)):
                    yield event
            if sandbox.events.closed and number >= sandbox.events.next:
                raise missing('sandbox', request.sandbox)

    # --- Profiles and providers ---

    def ImportProviderProfiles(self, request, call):
        return self.providers.import_profiles(call.workspace or '', request.profiles)

    def LintProviderProfiles(self, request, call):
        found = self.providers.diagnose(request.profiles)
        return pb.LintProviderProfilesResponse(diagnostics=found, valid=not found)

    def GetProviderProfile(self, request, call):
        profile = self.providers.profile(call.workspace or '', request.id)
        if not profile:
            raise missing('provider profile', request.id)
        return pb.ProviderProfileResponse(profile=profile)

    def ListProviderProfiles(self, request, call):
        found = [one for (workspace, _), one in sorted(self.providers.profiles.items()) if workspace in ('', call.workspace)]
        found, token = page_of(request, f'profiles/{call.workspace}', found)
        return pb.ListProviderProfilesResponse(profiles=found, next_page_token=token)

    def DeleteProviderProfile(self, request, call):
        return pb.DeleteProviderProfileResponse(outcome=self.providers.delete_profile(call.workspace or '', request.id, request.allow_missing))

    def CreateProvider(self, request, call):
        return pb.ProviderResponse(provider=provider_store.shown(self.providers.create(call.workspace, request.provider, str(uuid.uuid4()))))

    def GetProvider(self, request, call):
        provider = self.provider(call.workspace, request.name)
        if not provider:
            raise missing('provider', request.name)
        return pb.ProviderResponse(provider=provider_store.shown(provider))

    def ListProviders(self, request, call):
        found, token = self._listed(call, request, self.providers.providers)
        return pb.ListProvidersResponse(providers=[provider_store.shown(one) for one in found], next_page_token=token)

    def DeleteProvider(self, request, call):
        return pb.DeleteProviderResponse(outcome=self.providers.delete(call.workspace, request.name, request.allow_missing))

    def _change_provider(self, request, call, kind):
        sandbox = self._find(call.workspace, request.sandbox)
        if request.expected_resource_version not in (0, sandbox.message.metadata.resource_version):
            raise Refusal('ABORTED', 'the sandbox has another version', reason='RESOURCE_VERSION_MISMATCH')
        if kind == pb.PROVIDER_MUTATION_KIND_ATTACH and not self.provider(call.workspace, request.provider):
            raise missing('provider', request.provider)
        receipt = pb.ProviderMutationReceipt(receipt_id=uuid.uuid4().hex, mutation_id=uuid.uuid4().hex, provider=request.provider,
                                             workspace=call.workspace, kind=kind)
        receipt.persisted_time.GetCurrentTime()
        self.receipts[receipt.receipt_id] = receipt
        names, attaches = list(sandbox.message.spec.providers), kind == pb.PROVIDER_MUTATION_KIND_ATTACH
        changed = attaches == (request.provider not in names)
        with sandbox.lock:
            if changed and attaches:
                sandbox.message.spec.providers.append(request.provider)
            elif changed:
                sandbox.message.spec.providers.remove(request.provider)
            sandbox.message.metadata.resource_version += changed
        return sandbox.shown(), changed, receipt

    def AttachSandboxProvider(self, request, call):
        sandbox, changed, receipt = self._change_provider(request, call, pb.PROVIDER_MUTATION_KIND_ATTACH)
        return pb.AttachSandboxProviderResponse(sandbox=sandbox, attached=changed, receipt=receipt)

    def DetachSandboxProvider(self, request, call):
        sandbox, changed, receipt = self._change_provider(request, call, pb.PROVIDER_MUTATION_KIND_DETACH)
        return pb.DetachSandboxProviderResponse(sandbox=sandbox, detached=changed, receipt=receipt)

    def ListSandboxProviders(self, request, call):
        sandbox = self._find(call.workspace, request.sandbox)
        found, token = page_of(request, f'attached/{request.sandbox}', sandbox.attached())
        return pb.ListSandboxProvidersResponse(providers=[provider_store.shown(one) for one in found], next_page_token=token)

    def GetSandboxProviderStatus(self, request, call):
        sandbox = self._find(call.workspace, request.sandbox)
        status = pb.GetSandboxProviderStatusResponse().status
        provider = self.provider(call.workspace, request.provider)
        if request.provider not in sandbox.message.spec.providers or not provider:
            status.state = pb.PROVIDER_READINESS_STATE_REVOKED
        elif not sandbox.endpoints_of(provider):
            status.state, status.reason = pb.PROVIDER_READINESS_STATE_WITHHELD, pb.PROVIDER_READINESS_REASON_CREDENTIALS_WITHHELD
        elif not sandbox.activated:
            status.state, status.reason = pb.PROVIDER_READINESS_STATE_PENDING, pb.PROVIDER_READINESS_REASON_WAITING_FOR_SUPERVISOR
        else:
            status.state = pb.PROVIDER_READINESS_STATE_READY
        return pb.GetSandboxProviderStatusResponse(status=status)


def _close(descriptor):
    try:
        os.close(descriptor)
    except OSError:
        pass


def _write(descriptor, data):
    """False: nobody reads it any more."""
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(descriptor, view):]
    except OSError:
        return False
    return True


def _outputs(command, limit, context):
    """The events of a command: its output as it comes, and its exit status, 124 where its time was up. Where the client has gone, the
    command goes on."""
    descriptors = {command.stdout: 'stdout'} | ({command.stderr: 'stderr'} if command.stderr is not None else {})
    ended, late = queue.Queue(), False
    threading.Thread(target=lambda: ended.put(command.wait()), daemon=True).start()
    deadline = time.monotonic() + limit if limit else None
    held_until, status = None, None
    try:
        while context.is_active() and (descriptors or status is None):
            if status is None and not ended.empty():
                status, held_until = (ended.get(),), time.monotonic() + HELD_OUTPUT_S
            if status and held_until < time.monotonic():
                raise Refusal('ABORTED', 'the output is held open by another process')
            if deadline and not late and time.monotonic() > deadline:
                late = True
                command.kill()
            if late and status:
                break  # What it started may still have its output.
            readable, _, _ = select.select(list(descriptors), [], [], 0.02 if status is None or descriptors else 0)
            for descriptor in readable:
                try:
                    data = os.read(descriptor, CHUNK)
                except OSError:  # The end of a terminal.
                    data = b''
                if not data:
                    del descriptors[descriptor]
                    os.close(descriptor)
                elif command.stdout == descriptor:
                    yield pb.ExecSandboxEvent(stdout=pb.ExecSandboxStdout(data=data))
                else:
                    yield pb.ExecSandboxEvent(stderr=pb.ExecSandboxStderr(data=data))
        if status is None:
            return
        if status[0] is None and not late:
            raise Refusal('UNAVAILABLE', 'the sandbox ended before the command')
        yield pb.ExecSandboxEvent(exit=pb.ExecSandboxExit(exit_code=124 if late else status[0]))
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
