#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`agentic-ci verify-bundle` over signatures of our own making: those that are good, and those with one
thing wrong, each refused for that thing. npm's @sigstore/verify must say the same, or the table says why
it does not.

usage: verify_test.py BINARY NODE_MODULES [WORD...]   (empty NODE_MODULES: npm is not asked; WORD: only
cases whose name has one)
"""
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import bundle_cases
import certificate_cases
import legacy_cases
import log_cases
import past_bugs
import root_cases
import sweep_cases
import time_cases
from signing import ARTIFACT

HERE = pathlib.Path(__file__).parent
FAMILIES = (bundle_cases, certificate_cases, legacy_cases, log_cases, root_cases, sweep_cases, time_cases)


def write(path, document):
    if isinstance(document, bytes):
        return path.write_bytes(document)
    text = document if isinstance(document, str) else json.dumps(document)
    return path.write_bytes(text.encode(errors='surrogateescape'))


def prepare(case, folder):
    """Writes the case's files; the arguments that read them."""
    folder.mkdir()
    write(folder / 'document.json', case.document)
    arguments = ['--legacy-layer' if case.legacy else '--bundle', folder / 'document.json', *case.options]
    if case.root is not None:
        write(folder / 'trusted_root.json', case.root)
        arguments += ['--trusted-root', folder / 'trusted_root.json']
    if case.key is not None:
        write(folder / 'key.pub', case.key)
        arguments += ['--key', folder / 'key.pub']
    else:
        arguments += ['--certificate-identity', case.identity, '--certificate-oidc-issuer', case.issuer]
    return [*arguments, folder.parent / 'artifact' if case.by_path else 'sha256:' + case.digest]


def run(binary, case, arguments):
    """What is wrong with the program's answer; None: nothing."""
    ended = subprocess.run([binary, 'verify-bundle', *arguments], stdin=subprocess.DEVNULL,
                           capture_output=True, timeout=600, text=True, close_fds=False, check=False)
    said = (ended.stdout + ended.stderr).strip()
    if case.reason is None and ended.returncode != 0:
        return f'not verified: {said}'
    if case.reason is not None and ended.returncode != case.exit:
        return f'exit {ended.returncode}, not {case.exit} and {case.reason}: {said}'
    before = r'(\S*/key\.pub: )?'  # What is wrong with a key comes after its file.
    if case.reason and not re.match(f'agentic-ci: error: {before}{case.reason}: ', ended.stderr):
        return f'not {case.reason}: {said}'
    if case.word not in said:
        return f'no word of {case.word}: {said}'
    if case.no_word and case.no_word in said:
        return f'a word of {case.no_word}: {said}'
    return None


def ask_npm(modules, cases, folder):
    """{name: why npm's answer is not as the table says}"""
    asked = [{'name': case.name, 'bundle': str(folder / case.name / 'document.json'),
              'root': str(folder / case.name / 'trusted_root.json'), 'artifact': str(folder / 'artifact'),
              'key': str(folder / case.name / 'key.pub') if case.key else None,
              'identity': case.identity, 'issuer': case.issuer}
             for case in cases if case.npm_reads]
    ended = subprocess.run(['node', HERE / 'oracle.mjs'], env=os.environ | {'MODULES': modules},
                           input=json.dumps(asked), capture_output=True, timeout=600, text=True, check=True)
    said = json.loads(ended.stdout)
    wrong = {}
    for case in cases:
        if case.name not in said:
            continue
        agrees = (said[case.name] is None) == (case.reason is None)
        if agrees == bool(case.npm_differs):
            wrong[case.name] = f'npm: {said[case.name] or "verified"}' + (
                f'; the table says that it differs: {case.npm_differs}' if agrees else '')
    return wrong


def main():
    binary, modules, *words = sys.argv[1:]
    cases = [case for family in FAMILIES for case in family.cases()
             if not words or any(word in case.name for word in words)]
    names = [case.name for case in cases]
    assert len(set(names)) == len(names), [name for name in names if names.count(name) > 1]
    unasked = [] if words else past_bugs.missing(cases)
    for text in unasked:
        print(text)
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        write(folder / 'artifact', ARTIFACT)
        arguments = [prepare(case, folder / case.name) for case in cases]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count() + 1) as pool:
            asked = pool.submit(ask_npm, modules, cases, folder) if modules else None
            ours = list(pool.map(run, [binary] * len(cases), cases, arguments))
            npm = asked.result() if asked else {}
    failed = 0
    for case, problem in zip(cases, ours):
        problems = [text for text in (problem, npm.get(case.name)) if text]
        failed += bool(problems)
        for text in problems:
            print(f'{case.name}: {text}')
    refused = sum(case.reason is not None for case in cases)
    print(f'{len(cases) - refused} to verify, {refused} to refuse' + ('' if modules else '; npm not asked'))
    print(f'{len(cases) - failed} passed, {failed} failed')
    return 1 if failed or unasked or not cases else 0


if __name__ == '__main__':
    sys.exit(main())
