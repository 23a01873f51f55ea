# SPDX-License-Identifier: Apache-2.0
"""Sandboxes of agentic-ci for Inspect: `sandbox="agentic_ci"`, or `sandbox=("agentic_ci", "policy.yml")`.

Each sample has a sandbox, with an empty checkout as its directory. Without a policy file nothing can be connected to.
More options of `agentic-ci sandbox create` go in a configuration: `SandboxEnvironmentSpec("agentic_ci",
AgenticCiConfig(policy="policy.yml", memory="4GiB"))`. AGENTIC_CI names the program where it is not on the PATH.
"""
from __future__ import annotations

import os
import pathlib
import posixpath
import tempfile
from typing import Any, Literal, overload

import agentic_ci
from inspect_ai.util import (ExecResult, OutputLimitExceededError, SandboxConnection, SandboxEnvironment,
                             SandboxEnvironmentConfigType, SandboxEnvironmentLimits, SandboxUnavailableError,
                             SandboxUserUnsupportedError, sandboxenv)
from pydantic import BaseModel, ConfigDict

POLICY = '''version: 1
filesystem_policy:
  include_workdir: true
  read_only: [/usr, /lib, /etc, /proc, /dev/urandom]
  read_write: [/tmp, /dev/null]
network_policies: {}
'''
# By the statuses of agentic_ci's scripts.
FAULTS = {81: (FileNotFoundError, 'no such file'), 82: (IsADirectoryError, 'is a directory'), 83: (PermissionError, 'permission denied')}
LIMIT = 84
# To the script, the file is $1, and $2 how many bytes may be read.
READ = agentic_ci.CHECK_READABLE + '; [ "$(wc -c <"$1")" -le "$2" ] || exit 84'


class AgenticCiConfig(BaseModel):
    """Options of `agentic-ci sandbox create`, with `_` for `-`."""
    model_config = ConfigDict(extra='allow', frozen=True)
    policy: str | None = None


@sandboxenv(name='agentic_ci')
class AgenticCiSandbox(SandboxEnvironment):
    @classmethod
    def config_files(cls) -> list[str]:
        return ['agentic-ci-policy.yml']

    @classmethod
    def config_deserialize(cls, config: dict[str, Any]) -> BaseModel:
        return AgenticCiConfig(**config)

    @classmethod
    async def sample_init(cls, task_name: str, config: SandboxEnvironmentConfigType | None,
                          metadata: dict[str, str]) -> dict[str, SandboxEnvironment]:
        if isinstance(config, str):
            options: dict[str, Any] = {'policy': config}
        else:
            options = config.model_dump(exclude_none=True) if config else {}
        sandbox = cls()
        try:
            await sandbox._create(options)
        except BaseException:
            await sandbox._close()
            raise
        return {'default': sandbox}

    @classmethod
    async def sample_cleanup(cls, task_name: str, config: SandboxEnvironmentConfigType | None,
                             environments: dict[str, SandboxEnvironment], interrupted: bool) -> None:
        for environment in environments.values():
            await environment.as_type(AgenticCiSandbox)._close()

    def __init__(self) -> None:
        super().__init__()
        self._place = tempfile.TemporaryDirectory(prefix='inspect-', ignore_cleanup_errors=True)
        self._program = os.environ.get('AGENTIC_CI', 'agentic-ci')
        self._server = agentic_ci.Server(self._program, cwd=self._place.name)

    async def _create(self, options: dict[str, Any]) -> None:
        place = pathlib.Path(self._place.name)
        checkout = place / 'work'
        checkout.mkdir()
        if 'policy' not in options and 'image' not in options:
            (place / 'policy.yml').write_text(POLICY)
            options = {**options, 'policy': str(place / 'policy.yml')}
        elif 'policy' in options:
            options = {**options, 'policy': os.path.abspath(options['policy'])}
        await self._server.start()
        # A task's own limits decide how long anything takes.
        self._box = await self._server.create(**{'workdir': str(checkout), 'ttl': '24h', 'timeout': '24h', **options})
        said = await self._box.exec('pwd; id -u; id -un', changes=False)
        self._directory, *self._users = said.stdout.decode().split()

    async def _close(self) -> None:
        await self._server.close()  # And with it the sandbox.
        self._place.cleanup()

    async def exec(self, cmd: list[str], input: str | bytes | None = None, cwd: str | None = None,
                   env: dict[str, str] | None = None, user: str | None = None, timeout: int | None = None,
                   timeout_retry: bool = True, concurrency: bool = True) -> ExecResult[str]:
        """As the interface says. A time limit is the command's own, and it is not tried again. Commands of one sample
        run one after another."""
        if user is not None and user not in self._users:
            raise SandboxUserUnsupportedError(
                f'a sandbox of agentic-ci has one user, {" or ".join(self._users)}; it cannot run a command as {user}')
        streams: dict[str, list[bytes]] = {'stdout': [], 'stderr': []}
        try:
            command = await self._box.start(
                cmd, stdin=input is not None, directory=posixpath.join(self._directory, cwd or ''), env=env,
                timeout=f'{timeout}s' if timeout else None, changes=False)
            result = await command.wait(lambda stream, data: self._keep(streams, stream, data),
                                        input.encode() if isinstance(input, str) else input)
        except agentic_ci.Error as error:
            raise SandboxUnavailableError(str(error)) from error
        if result.reason == 'timeout':
            raise TimeoutError(f'the command did not end within {timeout} seconds')
        stdout, stderr = (b''.join(streams[name]).decode(errors='replace') for name in ('stdout', 'stderr'))
        if result.status == 126 and 'ermission denied' in stderr:
            raise PermissionError(stderr.strip())
        return ExecResult(result.status == 0, result.status, stdout, stderr)

    @staticmethod
    def _keep(streams: dict[str, list[bytes]], stream: str, data: bytes) -> None:
        streams[stream].append(data)
        if sum(map(len, streams[stream])) > SandboxEnvironmentLimits.MAX_EXEC_OUTPUT_SIZE:
            kept = b''.join(streams[stream])[:SandboxEnvironmentLimits.MAX_EXEC_OUTPUT_SIZE]
            raise OutputLimitExceededError(SandboxEnvironmentLimits.MAX_EXEC_OUTPUT_SIZE_STR, kept.decode(errors='replace'))

    async def _file(self, script: str, file: str, content: bytes = b'') -> None:
        limit = SandboxEnvironmentLimits.MAX_READ_FILE_SIZE
        result = await self.exec(['sh', '-c', script, 'sh', file, str(limit)], input=content)
        if result.returncode == LIMIT:
            raise OutputLimitExceededError(SandboxEnvironmentLimits.MAX_READ_FILE_SIZE_STR, None)
        if result.returncode in FAULTS:
            fault, words = FAULTS[result.returncode]
            raise fault(f'{file}: {words} {result.stderr}'.strip())
        if not result.success:
            raise OSError(f'{file}: {result.stderr.strip()}')

    async def write_file(self, file: str, contents: str | bytes) -> None:
        await self._file(agentic_ci.WRITE_FILE, file, contents.encode() if isinstance(contents, str) else contents)

    @overload
    async def read_file(self, file: str, text: Literal[True] = True) -> str: ...

    @overload
    async def read_file(self, file: str, text: Literal[False]) -> bytes: ...

    async def read_file(self, file: str, text: bool = True) -> str | bytes:
        await self._file(READ, file)
        try:
            content = await self._box.get(posixpath.join(self._directory, file),
                                          max_size=SandboxEnvironmentLimits.MAX_READ_FILE_SIZE)
        except agentic_ci.Error as error:
            raise SandboxUnavailableError(str(error)) from error
        return content.decode() if text else content

    async def connection(self, *, user: str | None = None) -> SandboxConnection:
        return SandboxConnection(type='agentic_ci', command=f'{self._program} sandbox shell {self._box.name}')
