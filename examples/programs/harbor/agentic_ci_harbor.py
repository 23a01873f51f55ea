# SPDX-License-Identifier: Apache-2.0
"""Sandboxes of agentic-ci for Harbor: `harbor run --env agentic_ci_harbor:AgenticCi ...`, without root and Docker.

A task has the host's own programs, or the files of an image (`--ek image=...`), and what its Dockerfile adds after
FROM: the steps are replayed in the sandbox. What cannot be replayed or enforced is refused by the constructor.
"""
from __future__ import annotations

import asyncio
import io
import ipaddress
import json
import os
import pathlib
import posixpath
import shlex
import subprocess
import tarfile
import tempfile
import uuid
from collections.abc import Sequence
from typing import Any

import agentic_ci
from harbor.environments.base import BaseEnvironment, ExecResult, SandboxBuildFailedError, transfer_tar_filter
from harbor.environments.capabilities import EnvironmentCapabilities, EnvironmentResourceCapabilities
from harbor.environments.definition import require_agent_environment_definition
from harbor.environments.options import EnvironmentOptions
from harbor.environments.snowflake.dockerfile_replay import CopyStep, ReplayPlan, plan_from_dockerfile
from harbor.models.task.config import NetworkMode, NetworkPolicy
from harbor.models.trial.config import ResourceMode
from harbor.models.trial.paths import EnvironmentPaths
from pydantic import Field

PLACES = ('/logs', '/tests', '/solution', '/runtime', '/app')  # Harbor's own.
USERS = (None, 'root', '0', 0)  # Names of the one user that a sandbox has.
PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
SHELL = 'command -v bash >/dev/null && exec bash -c "$1"; exec sh -c "$1"'
# A root directory with the host's files and empty directories for $2, seen by this process alone; then the command.
ROOT = '''set -eu
new=$1; for place in $2; do mkdir -p "$new.places$place"; done; shift 2
mount -t tmpfs -o mode=0755 root "$new"
for path in /* /.[!.]* "$new.places"/*; do
  own=$new/${path##*/}
  if [ -L "$own" ] || [ -e "$own" ]; then continue
  elif [ -L "$path" ] || [ "${path#"$new.places/"}" != "$path" ]; then cp -PR "$path" "$own"
  elif [ -d "$path" ]; then mkdir "$own"; mount --rbind "$path" "$own"
  elif [ -e "$path" ]; then : >"$own"; mount --bind "$path" "$own"; fi
done
cd "$new"; mkdir .old; PATH=$PATH:/usr/sbin:/sbin pivot_root . .old; umount -l /.old; rmdir /.old; cd "$OLDPWD"
exec setpriv --ambient-caps=-all --inh-caps=-all -- "$@"
'''


def without(whole: str, *holes: str) -> list[str]:
    """The ranges of `whole` that are in none of `holes`."""
    ranges = [ipaddress.IPv4Network(whole)]
    for hole in map(ipaddress.IPv4Network, holes):
        ranges = [part for one in ranges for part in (one.address_exclude(hole) if hole.subnet_of(one) else [one])]
    return [str(one) for one in ranges]


def own_machine(host: str) -> bool:
    """Whether an entry of an allowlist names the machine that this runs on."""
    names = ('localhost', 'host.openshell.internal', 'host.docker.internal', 'host.containers.internal')
    try:
        address = ipaddress.ip_address(host)
        return address.is_loopback or address.is_unspecified
    except ValueError:
        return host in names or any(host.startswith('*.') and name.endswith(host[1:]) for name in names)


# What `public` opens: neither this machine nor a private network.
PUBLIC = [*without('0.0.0.0/0', '0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12',
                   '192.0.0.0/24', '192.168.0.0/16', '198.18.0.0/15', '224.0.0.0/3'), '2000::/3']


class Options(EnvironmentOptions):
    """What `--ek` takes."""
    image: str | None = Field(None, description='The image whose files the task has, as in agentic-ci run --image; '
                                                'it has the directories /logs, /tests and so on. Without: the host.')
    ports: list[int] = Field([80, 443], description='The ports that are open at the hosts that a task may reach.')
    writable: list[str] = Field([], description='More directories that a task may write.')
    create: dict[str, Any] = Field({}, description='More options of agentic-ci sandbox create, such as image-key.')
    program: str = Field('agentic-ci', description='The program agentic-ci.')


class AgenticCi(BaseEnvironment):
    options_model = Options
    options: Options
    _server: agentic_ci.Server | None = None
    _plan: ReplayPlan | None = None

    @staticmethod
    def type() -> str:
        return 'agentic-ci'

    @property
    def capabilities(self) -> EnvironmentCapabilities:
        # No ranges of addresses: each name that leads into one would be looked up, at servers of anyone's.
        return EnvironmentCapabilities(
            disable_internet=True, network_allowlist=True, network_allowlist_hostnames=True,
            network_allowlist_wildcard_hostnames=True, network_allowlist_ipv4_addresses=True,
            network_allowlist_ipv6_addresses=True, dynamic_network_policy=True)

    @classmethod
    def resource_capabilities(cls) -> EnvironmentResourceCapabilities:
        return EnvironmentResourceCapabilities(cpu_limit=True, memory_limit=True, fractional_cpus=True)

    # What is refused.

    def _validate_definition(self) -> None:
        image, dockerfile = self.task_env_config.docker_image, self.environment_dir / 'Dockerfile'
        require_agent_environment_definition(self.environment_dir, docker_image=image)
        for name in ('docker-compose.yaml', 'docker-compose.yml'):
            if (self.environment_dir / name).exists():
                raise ValueError(f'{name}: a sandbox of agentic-ci has no further services')
        if self._host_mounts:
            raise ValueError('a sandbox of agentic-ci has no mounts of the host; --ek writable=... opens directories')
        if not dockerfile.exists():
            if not self.options.image:
                raise ValueError(f'the task needs the image {image}: give it as --ek image=...')
            return
        plan = plan_from_dockerfile(dockerfile, base_env={'PATH': PATH})
        if plan.entrypoint:
            raise ValueError('ENTRYPOINT cannot be replayed: a sandbox of agentic-ci starts no service')
        for step in plan.steps:
            owner = step.chown if isinstance(step, CopyStep) else step.user
            if owner and owner.split(':')[0] not in USERS:
                raise ValueError(f'{owner}: a sandbox of agentic-ci has one user')
            if isinstance(step, CopyStep):
                self._sources(step)
        if plan.user not in USERS:
            raise ValueError(f'USER {plan.user}: a sandbox of agentic-ci has one user')
        self._plan = plan

    def validate_network_policy_support(self, network_policy: NetworkPolicy | None = None) -> None:
        super().validate_network_policy_support(network_policy)
        wanted = network_policy or self._network_policy
        for host in wanted.allowed_hosts:
            if own_machine(host):
                raise ValueError(f'{host} is this machine, which a task cannot reach')
        # The program itself says what it can enforce.
        with tempfile.NamedTemporaryFile('w', suffix='.yml') as file:
            file.write(self._policy(wanted))
            file.flush()
            done = subprocess.run([self.options.program, 'policy', 'check', file.name], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0 or 'can never be reached' in done.stdout:
            raise ValueError(f'agentic-ci cannot enforce the network policy: {done.stdout.strip()}')

    # What is enforced.

    def _policy(self, network: NetworkPolicy) -> str:
        if network.network_mode == NetworkMode.PUBLIC:
            endpoints: list[dict[str, Any]] = [{'allowed_ips': PUBLIC}]
        else:  # `*.` is one label or more, as in Harbor's own proxy; without network, there are no hosts.
            endpoints = [{'host': '*' + host if host.startswith('*.') else host} for host in network.allowed_hosts]
        opened = {'network': {'endpoints': [{**one, 'ports': self.options.ports} for one in endpoints],
                              'binaries': [{'path': '/**'}]}}
        return json.dumps({
            'version': 1,
            'filesystem_policy': {'include_workdir': True,
                                  'read_only': ['/usr', '/lib', '/etc', '/opt', '/proc', '/dev/urandom'],
                                  'read_write': ['/tmp', '/dev/null', *self._places()]},
            'network_policies': opened if endpoints else {}})

    def _places(self) -> list[str]:
        """The directories that the task may write, none of which is below another."""
        wanted = {*PLACES, *self.options.writable, self.task_env_config.workdir or '/app'}
        for step in self._plan.steps if self._plan else ():
            wanted.add((step.dest if step.dest_is_dir else posixpath.dirname(step.dest)) if isinstance(step, CopyStep)
                       else step.workdir)
        wanted.add(self._plan.workdir if self._plan else '/app')
        kept: list[str] = []
        for place in sorted(map(posixpath.normpath, wanted)):
            own = place == '/' or place.split('/')[1] in ('tmp', 'proc', 'dev', 'sys', 'run')
            if not own and not any(place.startswith(one + '/') for one in kept):
                kept.append(place)
        return kept

    # What it does.

    async def start(self, force_build: bool) -> None:
        self._place = tempfile.TemporaryDirectory(prefix='harbor-')
        place = pathlib.Path(self._place.name)
        for name in ('work', 'root'):
            (place / name).mkdir()
        self._policy_file = place / 'policy.yml'
        self._policy_file.write_text(self._policy(self._network_policy))
        limits = {'memory': self._resource_limit_value('memory', auto_mode=ResourceMode.LIMIT),
                  'disk': self._effective_storage_mb}
        cpus = self._resource_limit_value('cpu', auto_mode=ResourceMode.LIMIT)
        options = {**{key: f'{value}MiB' for key, value in limits.items() if value}, **({'cpus': str(cpus)} if cpus else {}),
                   **({'image': self.options.image} if self.options.image else {}), **self.options.create}
        self._server = agentic_ci.Server(self._command(place / 'root'), cwd=self._place.name)
        await self._server.start()
        # Harbor's own limits decide how long anything takes.
        self._box = await self._server.create(workdir=str(place / 'work'), policy=str(self._policy_file), ttl='24h',
                                              timeout='24h', output='1GiB', **options)
        paths = EnvironmentPaths.for_os(self.os)
        made = await self.ensure_dirs([*self._mount_targets(), str(paths.agent_dir), str(paths.verifier_dir),
                                       str(paths.artifacts_dir), str(paths.tests_dir), str(paths.solution_dir)])
        if made and made.return_code:
            raise SandboxBuildFailedError(f'the directories of Harbor cannot be made: {made.stderr}')
        for step in self._plan.steps if self._plan else ():
            if isinstance(step, CopyStep):
                await self._copy(step)
                continue
            await self._run(step.command, cwd=step.workdir, env=step.env)
        await self._upload_environment_dir_after_start()

    def _command(self, root: pathlib.Path) -> Sequence[str]:
        serve = (self.options.program, 'serve', '--stdio')
        missing = [place for place in self._places() if not os.path.isdir(place)]
        if self.options.image or not missing:
            return serve
        # Directories that the host does not have, without touching it.
        unshare = ['unshare', '--mount'] if os.geteuid() == 0 else [
            'unshare', '--user', '--map-current-user', '--keep-caps', '--mount']
        return (*unshare, 'sh', '-c', ROOT, 'sh', str(root), ' '.join(missing), *serve)

    async def stop(self, delete: bool) -> None:
        if not self._server:
            return
        if not delete:
            self.logger.warning('a sandbox of agentic-ci ends with Harbor: it is not kept')
        await self._server.close()  # And with it the sandbox.
        self._server = None
        self._place.cleanup()

    async def _apply_network_policy(self, network_policy: NetworkPolicy) -> None:
        self._policy_file.write_text(self._policy(network_policy))
        await self._box.reload_policy()

    async def exec(self, command: str, cwd: str | None = None, env: dict[str, str] | None = None,
                   timeout_sec: int | None = None, user: str | int | None = None) -> ExecResult:
        wanted = self._resolve_user(user)
        if wanted not in USERS:
            raise RuntimeError(f'a sandbox of agentic-ci has one user; it cannot run a command as {wanted}')
        plan = self._plan
        emit = self._output_callback()
        call = await self._box.start(
            ['sh', '-c', SHELL, 'sh', command], timeout=f'{timeout_sec}s' if timeout_sec else None, changes=False,
            directory=cwd or self.task_env_config.workdir or (plan.workdir if plan else '/'),
            env={**(plan.env if plan else {}), **(self._merge_env(env) or {})})
        pieces: dict[str, list[bytes]] = {'stdout': [], 'stderr': []}
        try:
            async for stream, data in call:
                pieces[stream].append(data)
                if emit is not None:
                    await emit(data.decode(errors='replace'), stream)
        except BaseException:
            await call.cancel()
            raise
        result = call.result()
        if result['reason'] == 'timeout':
            raise RuntimeError(f'Command timed out after {timeout_sec} seconds')
        texts = {name: b''.join(data).decode(errors='replace') for name, data in pieces.items()}
        return ExecResult(return_code=result['status'], **texts)

    async def upload_file(self, source_path: pathlib.Path | str, target_path: str) -> None:
        await self._box.upload(str(source_path), target_path)

    async def upload_dir(self, source_dir: pathlib.Path | str, target_dir: str) -> None:
        passing = f'/tmp/upload-{uuid.uuid4().hex}'
        await self._box.upload(str(source_dir), passing)
        done = await self._box.exec(['sh', '-c', 'mkdir -p -- "$2" && cp -R -p -- "$1/." "$2"; s=$?; rm -rf -- "$1"; exit $s',
                                     'sh', passing, target_dir], changes=False)
        if done.status:
            raise RuntimeError(f'uploading to {target_dir}: {done.stderr.decode(errors="replace")}')

    async def download_file(self, source_path: str, target_path: pathlib.Path | str) -> None:
        content = await self._box.get(source_path)
        pathlib.Path(target_path).parent.mkdir(parents=True, exist_ok=True)
        await asyncio.to_thread(pathlib.Path(target_path).write_bytes, content)

    async def download_dir(self, source_dir: str, target_dir: pathlib.Path | str) -> None:
        archive = await self._box.get(source_dir, archive=True)

        def inside(member: tarfile.TarInfo, target: str) -> tarfile.TarInfo | None:
            # Names are relative to `source_dir`: "./a".
            _, _, name = member.name.partition('/')
            return transfer_tar_filter(member.replace(name=name), target) if name else None

        def extract() -> None:
            with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
                tar.extractall(target_dir, filter=inside)
        pathlib.Path(target_dir).mkdir(parents=True, exist_ok=True)
        await asyncio.to_thread(extract)

    # The Dockerfile.

    def _sources(self, step: CopyStep) -> list[pathlib.Path]:
        found = []
        for source in step.sources:
            path = posixpath.normpath(source.lstrip('/'))
            matches = [self.environment_dir] if path == '.' else sorted(self.environment_dir.glob(path))
            if path.startswith('..') or not matches:
                raise ValueError(f'COPY {source}: not in {self.environment_dir}')
            found += matches
        return found

    async def _run(self, command: str, **options: Any) -> None:
        """Part of a step of the Dockerfile."""
        done = await self.exec(command, **options)
        if done.return_code:
            raise SandboxBuildFailedError(f'{command}: status {done.return_code}: {done.stderr or done.stdout}')

    async def _copy(self, step: CopyStep) -> None:
        for source in self._sources(step):
            target = step.dest
            if source.is_dir():
                await self.upload_dir(source, target)
            else:
                target = posixpath.join(target, source.name) if step.dest_is_dir else target
                await self._run(f'mkdir -p -- {shlex.quote(posixpath.dirname(target))}')
                await self.upload_file(source, target)
            if step.chmod:
                await self._run(f'chmod -R -- {shlex.quote(step.chmod)} {shlex.quote(target)}')
