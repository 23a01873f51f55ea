#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Recorded standard outputs of the real agents: the log and the summary that are made of each.

usage: streams_test.py AGENT_REPLAY [--update] [NAME...]

recordings/NAME.jsonl is a stream; recordings/NAME.golden has the agent and its exit status in its first line, then what
agent_replay says.
"""
import pathlib
import subprocess
import sys

RECORDINGS = pathlib.Path(__file__).resolve().parent / 'recordings'
AGENTS = [path.stem for path in (RECORDINGS.parents[2] / 'policies/agents').glob('*.yml')]


def replay(program, stream, arguments):
    return subprocess.run([program, *arguments], input=stream.read_bytes(), check=True, capture_output=True).stdout.decode()


def main():
    program, *names = sys.argv[1:]
    update = '--update' in names
    names = [name for name in names if name != '--update']
    streams = [stream for stream in sorted(RECORDINGS.glob('*.jsonl'))
               if not names or any(name in stream.name for name in names)]
    failures = 0
    for stream in streams:
        golden = stream.with_suffix('.golden')
        head, _, expected = golden.read_text().partition('\n')
        arguments = head.removeprefix('$ agent_replay ').split()
        said = replay(program, stream, arguments)
        if update:
            golden.write_text(f'{head}\n{said}')
        elif said != expected:
            failures += 1
            print(f'{golden}:\n--- expected\n{expected}--- said\n{said}')
    print(f'{len(streams) - failures} passed, {failures} failed')
    covered = streams if names else AGENTS and all(any(stream.name.startswith(agent) for stream in streams) for agent in AGENTS)
    return 1 if failures or not covered else 0


if __name__ == '__main__':
    sys.exit(main())
