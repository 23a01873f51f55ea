# SPDX-License-Identifier: Apache-2.0
"""Sandboxes of agentic-ci for LangChain's deep agents:

    with AgenticCiBackend(policy='policy.yml') as backend:
        agent = create_deep_agent(model=..., backend=backend)

The file tools need `python3` in the sandbox. Options are those of `agentic-ci sandbox create`, with `_` for `-`.
"""
from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any

import agentic_ci
from deepagents.backends.protocol import ExecuteResponse, FileDownloadResponse, FileUploadResponse
from deepagents.backends.sandbox import BaseSandbox

OUTPUT_BYTES_MAX = 512 << 10  # For a model.
# By the statuses of agentic_ci's scripts.
FAULTS = {81: 'file_not_found', 82: 'is_directory', 83: 'permission_denied'}


class AgenticCiBackend(BaseSandbox):
    """One sandbox. As a context manager it ends with the block; otherwise with `close`, or with this program."""

    def __init__(self, program: str = 'agentic-ci', **options: Any):
        # The interface is synchronous, and is called from any thread.
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self._server = agentic_ci.Server(program)
        self._wait(self._server.start())
        try:
            self._box = self._wait(self._server.create(**{'ttl': '24h', **options}))
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> AgenticCiBackend:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the sandbox."""
        self._wait(self._server.close())
        self._loop.call_soon_threadsafe(self._loop.stop)

    def _wait(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    @property
    def id(self) -> str:
        return self._box.name

    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        pieces: list[bytes] = []

        def keep(_: str, data: bytes) -> None:
            pieces.append(data[:max(0, OUTPUT_BYTES_MAX + 1 - sum(map(len, pieces)))])
        result = self._wait(self._box.exec(['sh', '-c', command], merge=True, changes=False, on_output=keep,
                                           timeout=f'{timeout}s' if timeout else None))
        output = b''.join(pieces)
        return ExecuteResponse(output[:OUTPUT_BYTES_MAX].decode(errors='replace'), result.status, len(output) > OUTPUT_BYTES_MAX)

    def _fault(self, script: str, path: str, content: bytes = b'') -> str | None:
        if not path.startswith('/'):
            return 'invalid_path'
        result = self._wait(self._box.exec(['sh', '-c', script, 'sh', path], input=content, changes=False))
        return FAULTS.get(result.status, result.stderr.decode(errors='replace')) if result.status else None

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        return [FileUploadResponse(path=path, error=self._fault(agentic_ci.WRITE_FILE, path, content)) for path, content in files]

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        answers = []
        for path in paths:
            fault = self._fault(agentic_ci.CHECK_READABLE, path)
            content = None if fault else self._wait(self._box.get(path))
            answers.append(FileDownloadResponse(path=path, content=content, error=fault))
        return answers
