# SPDX-License-Identifier: Apache-2.0
"""Sandboxes for programs: an asynchronous client of `agentic-ci serve --stdio`, with the standard library alone.

    async with agentic_ci.Server() as server:
        async with await server.create(policy='policy.yml', timeout='10m') as box:
            result = await box.exec('make test')
            print(result.status, result.stdout.decode())

The server is a child of this program and ends with it, however it ends, and so does each sandbox created here.
"""
from __future__ import annotations

import asyncio
import base64
import dataclasses
import json
import os
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, TypeVar

LINE_BYTES_MAX = 16 << 20
PIECE_BYTES = 512 << 10  # Of input, in one message.
CONTENT_BYTES_MAX = 8 << 20  # In one message; more goes through a file.
# Output of a command that may wait here to be read. None for one with input, behind which an `ack` could wait.
WINDOW_BYTES = 1 << 20
# Scripts for `sh -c SCRIPT sh FILE`. Status 81: there is no such file; 82: it is a directory; 83: permission denied.
CHECK_READABLE = '[ -d "$1" ] && exit 82; [ -e "$1" ] || exit 81; [ -r "$1" ] || exit 83'
WRITE_FILE = '''[ -d "$1" ] && exit 82; mkdir -p -- "$(dirname -- "$1")" || exit 83
[ -e "$1" ] && ! [ -w "$1" ] && exit 83; cat >"$1" || exit 83'''


class Error(Exception):
    """A request that failed. `exit_code` is what the command line would exit with (0 for an error of the protocol),
    `kind` names it in a word ('not_found', 'usage', 'temporary', ...), and `hint` is empty or something to type."""

    def __init__(self, message: str, code: int = 0, data: Mapping[str, Any] | None = None):
        super().__init__(message)
        data = data or {}
        self.code = code
        self.exit_code: int = data.get('exit_code', 0)
        self.kind: str = data.get('kind', '')
        self.hint: str = data.get('hint', '')


class ServerEnded(Error):
    """The server has ended, and its sandboxes with it."""


@dataclasses.dataclass(frozen=True)
class Result:
    """How a command ended. `raw` has every member of the answer."""
    status: int
    reason: str  # 'exit', 'signal', 'timeout', 'oom', 'output' or 'cancelled'
    stdout: bytes
    stderr: bytes
    raw: Mapping[str, Any]

    @property
    def changes(self) -> list[Mapping[str, Any]]:
        """The files of the checkout that it changed."""
        return list(self.raw.get('changes', []))

    @property
    def refused(self) -> list[Mapping[str, Any]]:
        """The requests that the policy refused meanwhile, each with the line that would `allow` it."""
        return list(self.raw.get('refused', []))


def _bytes(message: Mapping[str, Any]) -> bytes:
    return base64.b64decode(message['base64']) if 'base64' in message else message.get('text', '').encode()


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


class _Request:
    """A request that goes on: its notifications, then its answer."""

    def __init__(self, server: Server, number: int):
        self.server, self.number = server, number
        self._messages: asyncio.Queue[tuple[str, Mapping[str, Any]]] = asyncio.Queue()
        self._answer: Mapping[str, Any] | None = None

    async def note(self) -> tuple[str, Mapping[str, Any]] | None:
        """The next notification; None once the answer is there."""
        if not self._answer:
            method, message = await self._messages.get()
            if method:
                return method, message
            self._answer = message
        return None

    async def data(self) -> bytes:
        """The content of its `data` notifications, once it has succeeded. If this task is cancelled, so is the request."""
        pieces = []
        try:
            while (note := await self.note()) is not None:
                if note[0] == 'data':
                    pieces.append(_bytes(note[1]))
        except asyncio.CancelledError:
            await self.cancel()
            raise
        self.result()
        return b''.join(pieces)

    def result(self) -> dict[str, Any]:
        """The answer's result, after the last notification. Raises Error."""
        error = (self._answer or {}).get('error')
        if not error:
            result: dict[str, Any] = (self._answer or {})['result']
            return result
        kind = ServerEnded if error.get('ended') else Error
        raise kind(error['message'], error['code'], error.get('data'))

    async def cancel(self) -> None:
        """Asks the server to end the request, which is answered all the same."""
        await self.server._notify('cancel', request=self.number)


Kind = TypeVar('Kind', bound=_Request)


class Command(_Request):
    """A command that runs. Iterating gives ('stdout' or 'stderr', bytes) as it writes; `wait` collects what is left."""
    windowed = False

    async def __aiter__(self) -> AsyncIterator[tuple[str, bytes]]:
        while (note := await self.note()) is not None:
            if note[0] != 'output':
                continue
            data = _bytes(note[1])
            yield note[1]['stream'], data
            if self.windowed:
                await self.server._notify('ack', request=self.number, bytes=len(data))

    async def write(self, data: bytes, end: bool = False) -> None:
        """More standard input; waits while the command does not read it."""
        for at in range(0, len(data), PIECE_BYTES):
            await self.server._notify('input', request=self.number, base64=_base64(data[at:at + PIECE_BYTES]), end=False)
        if end:
            await self.server._notify('input', request=self.number, base64='', end=True)

    async def wait(self, on_output: Callable[[str, bytes], Any] | None = None, input: bytes | None = None) -> Result:
        """The result, with the output that was not iterated over, or that `on_output` does not take. `input` is written
        meanwhile, as the last of it. If this task is cancelled, or `on_output` fails, the command is cancelled."""
        streams: dict[str, list[bytes]] = {'stdout': [], 'stderr': []}
        writer = asyncio.ensure_future(self.write(input, end=True)) if input is not None else None
        try:
            async for stream, data in self:
                if not on_output:
                    streams[stream].append(data)
                else:
                    on_output(stream, data)
        except BaseException:
            await self.cancel()
            raise
        finally:
            if writer is not None:
                writer.cancel()
                await asyncio.gather(writer, return_exceptions=True)
        raw = self.result()
        return Result(raw['status'], raw['reason'], b''.join(streams['stdout']), b''.join(streams['stderr']), raw)


class Sandbox:
    """A sandbox, by its name. As a context manager it is deleted at the end."""

    def __init__(self, server: Server, name: str):
        self.server, self.name = server, name

    async def __aenter__(self) -> Sandbox:
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            await self.delete()
        except Error as error:
            if error.kind != 'not_found' and not isinstance(error, ServerEnded):
                raise

    async def start(self, command: str | Sequence[str], *, stdin: bool = False, directory: str | None = None,
                    env: Mapping[str, str] | None = None, timeout: str | None = None, wait: bool = True,
                    merge: bool = False, changes: bool = True) -> Command:
        """Starts a script for the sandbox's shell (text), or a program and its arguments (a list). With `stdin`, its
        input comes by `write`. `timeout` is such as '20s'. With `wait=False` it fails with the kind 'temporary' where
        another command runs; `merge` gives both streams as stdout."""
        what = {'script': command} if isinstance(command, str) else {'command': list(command)}
        given = {'directory': directory, 'env': dict(env) if env else None, 'timeout': timeout,
                 'stdin': {'text': '', 'end': False} if stdin else None, 'window': None if stdin else WINDOW_BYTES}
        call = await self.server._start('exec', Command, sandbox=self.name, wait=wait, merge=merge, changes=changes, **what,
                                        **{key: value for key, value in given.items() if value is not None})
        call.windowed = not stdin
        return call

    async def exec(self, command: str | Sequence[str], *, input: bytes | None = None,
                   on_output: Callable[[str, bytes], Any] | None = None, **options: Any) -> Result:
        """Runs a command to its end, with the options of `start`; the rest as `Command.wait`."""
        call = await self.start(command, stdin=input is not None, **options)
        return await call.wait(on_output, input)

    async def put(self, target: str, content: bytes | str, *, executable: bool = False) -> None:
        """Writes a file in the sandbox; its directories are made."""
        data = content.encode() if isinstance(content, str) else content
        if len(data) <= CONTENT_BYTES_MAX:
            await self._call('put', target=target, base64=_base64(data), executable=executable)
            return
        with tempfile.TemporaryDirectory() as folder:
            # Under its own name: a target that is a directory takes it in.
            path = os.path.join(folder, os.path.basename(target.rstrip('/')) or 'content')
            with open(path, 'wb') as file:
                file.write(data)
            os.chmod(path, 0o755 if executable else 0o644)
            await self.upload(path, target)

    async def get(self, source: str, *, archive: bool = False, max_size: int | None = None) -> bytes:
        """The content of a file; with `archive`, a tar archive: of a directory with names relative to it (`./a`), or of a
        file with its name."""
        options = {'max-size': str(max_size)} if max_size else {}
        call = await self.server._start('get', _Request, sandbox=self.name, source=source, archive=archive, **options)
        return await call.data()

    async def upload(self, source: str, target: str) -> None:
        """Copies a file or directory of the host, as `agentic-ci sandbox put` does."""
        await self._call('put', source=os.path.abspath(source), target=target)

    async def download(self, source: str, target: str) -> None:
        """Copies a file or directory to the host, as `agentic-ci sandbox get` does."""
        await self._call('get', source=source, target=os.path.abspath(target))

    async def diff(self) -> tuple[Sequence[Mapping[str, Any]], bytes]:
        """What has changed in the checkout: a list of files, and a patch."""
        call = await self.server._start('diff', _Request, sandbox=self.name)
        patch = await call.data()
        result = call.result()
        return result['changes'], patch or result.get('patch', '').encode()

    async def apply(self) -> dict[str, Any]:
        """Applies the changes to the checkout, if the gates let them pass."""
        return await self._call('apply')

    async def snapshot(self, tag: str | None = None, output: str | None = None) -> dict[str, Any]:
        """Keeps everything written in the sandbox."""
        given = {'tag': tag, 'output': output}
        return await self._call('snapshot', **{key: value for key, value in given.items() if value is not None})

    async def restore(self, snapshot: str, key: str | None = None) -> None:
        """Puts the sandbox where a snapshot was taken: a tag, a digest, or oci:DIRECTORY."""
        await self._call('restore', snapshot=snapshot, **({'key': key} if key else {}))

    async def reset(self) -> None:
        """Puts the sandbox back to its beginning."""
        await self._call('reset')

    async def reload_policy(self) -> None:
        """Has the sandbox read the file of its policy again."""
        await self._call('policy')

    async def events(self, all: bool = False) -> AsyncIterator[Mapping[str, Any]]:
        """Each request as it is judged, as a record of OCSF, until the sandbox ends or the iteration does."""
        call = await self.server._start('events', _Request, sandbox=self.name, all=all)
        try:
            while (note := await call.note()) is not None:
                yield note[1]['event']
            call.result()
        finally:
            if not call._answer:
                await call.cancel()

    async def delete(self, apply: bool = False) -> dict[str, Any]:
        """Ends the sandbox; with `apply`, applies the changes that pass the gates."""
        return await self._call('delete', apply=apply)

    async def _call(self, method: str, **params: Any) -> dict[str, Any]:
        return await self.server.call(method, sandbox=self.name, **params)


class Server:
    """`agentic-ci serve --stdio`, as a child process. `program` is its path or its name on the PATH, or a whole command
    that becomes it."""

    def __init__(self, program: str | Sequence[str] = 'agentic-ci', *, cwd: str | None = None,
                 env: Mapping[str, str] | None = None):
        self._command = [program, 'serve', '--stdio'] if isinstance(program, str) else program
        self._cwd, self._env = cwd, env
        self._process: asyncio.subprocess.Process | None = None
        self._requests: dict[int, _Request] = {}
        self._last = 0
        self._ended = False
        self._sending = asyncio.Lock()

    async def __aenter__(self) -> Server:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def start(self) -> None:
        """Starts the server."""
        self._process = await asyncio.create_subprocess_exec(
            *self._command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            cwd=self._cwd, env=self._env, limit=LINE_BYTES_MAX + 1)
        self._reader = asyncio.ensure_future(self._read())
        try:
            await self.call('initialize', protocol=1, client={'name': 'agentic-ci-client'})
        except BaseException:
            await self.close()
            raise

    async def close(self) -> int:
        """Ends the server and the sandboxes that were created here; returns its exit status."""
        if not self._process:
            return 0
        assert self._process.stdin is not None
        self._process.stdin.close()
        status = await self._process.wait()
        await self._reader
        return status

    async def create(self, **options: Any) -> Sandbox:
        """A sandbox, with the options of `agentic-ci sandbox create`: policy='p.yml', env=['A=b'], report_dir='r'."""
        made = await self.call('create', **{key.replace('_', '-'): value for key, value in options.items()})
        return Sandbox(self, made['name'])

    def sandbox(self, name: str) -> Sandbox:
        """One that is there, of this user's."""
        return Sandbox(self, name)

    async def list(self) -> Sequence[Mapping[str, Any]]:
        """All sandboxes of this user."""
        sandboxes: Sequence[Mapping[str, Any]] = (await self.call('list'))['sandboxes']
        return sandboxes

    async def call(self, method: str, **params: Any) -> dict[str, Any]:
        """The result of any method of the protocol. If this task is cancelled, so is the request."""
        call = await self._start(method, _Request, **params)
        await call.data()
        return call.result()

    async def _start(self, method: str, kind: type[Kind], **params: Any) -> Kind:
        self._last += 1
        call = self._requests[self._last] = kind(self, self._last)
        try:
            await self._send({'id': call.number, 'method': method, 'params': params})
        except BaseException:
            self._requests.pop(call.number, None)
            raise
        return call

    async def _notify(self, method: str, **params: Any) -> None:
        if params['request'] in self._requests:
            await self._send({'method': method, 'params': params})

    async def _send(self, message: Mapping[str, Any]) -> None:
        line = json.dumps({'jsonrpc': '2.0', **message}).encode() + b'\n'
        if len(line) > LINE_BYTES_MAX:
            raise Error('the request is longer than 16 MiB')
        if not self._process:
            raise ServerEnded('the server was not started')
        assert self._process.stdin is not None
        try:
            async with self._sending:
                if self._ended:
                    raise ServerEnded('the server has ended')
                self._process.stdin.write(line)
                await self._process.stdin.drain()
        except ConnectionError:
            raise ServerEnded('the server has ended') from None

    async def _read(self) -> None:
        assert self._process and self._process.stdout
        try:
            while (line := await self._process.stdout.readline()).endswith(b'\n'):
                message = json.loads(line)
                if 'method' not in message:
                    call = self._requests.pop(message['id'], None)
                    if call is not None:
                        call._messages.put_nowait(('', message))
                elif (call := self._requests.get(message['params'].get('request'))) is not None:
                    call._messages.put_nowait((message['method'], message['params']))
        finally:
            self._ended = True
            for call in self._requests.values():
                call._messages.put_nowait(('', {'error': {'code': 0, 'message': 'the server has ended', 'ended': True}}))
            self._requests.clear()
