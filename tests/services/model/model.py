# SPDX-License-Identifier: Apache-2.0
"""Starts and ends the scripted model of model.mjs."""
import json
import pathlib
import subprocess
import time

HERE = pathlib.Path(__file__).resolve().parent
START_SECONDS_MAX = 20


class Model:
    """`with Model(directory, scenario, key=...) as model:` serves on model.port, of the loopback unless told otherwise."""

    def __init__(self, directory, scenario, key=None, port=0, host='127.0.0.1'):
        self._directory = pathlib.Path(directory)
        self._scenario = scenario
        self._key = key
        self.port = port  # 0: any.
        self._host = host
        self._log = self._directory / 'model.jsonl'

    def __enter__(self):
        self._directory.mkdir(parents=True, exist_ok=True)
        scenario, port_file = self._directory / 'scenario.json', self._directory / 'port'
        scenario.write_text(json.dumps(self._scenario))
        for stale in (port_file, self._log):
            stale.unlink(missing_ok=True)
        key = ['--require-key', self._key] if self._key else []
        self._process = subprocess.Popen(
            ['node', HERE / 'model.mjs', '--scenario', scenario, '--log', self._log, '--port-file', port_file,
             '--port', str(self.port), '--host', self._host, *key],
            stdin=subprocess.DEVNULL)
        deadline = time.monotonic() + START_SECONDS_MAX
        while not port_file.exists():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.__exit__()
                raise RuntimeError('the scripted model did not start')
            time.sleep(0.02)
        self.port = int(port_file.read_text())
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.wait()

    def requests(self):
        """What was asked so far: {method, path, key: right | other | absent, nth, status, tools: their names}."""
        if not self._log.exists():
            return []
        return [json.loads(line) for line in self._log.read_text().splitlines()]
