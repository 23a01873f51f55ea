# SPDX-License-Identifier: Apache-2.0
"""tools/check --since REV: the tests that a change can affect, by what rooms may include and by the files of suites."""
import functools
import json
import pathlib
import re
import subprocess

from suites import BUILD, ROOT

EVERY = '.'  # A suite that is given the checkout itself may read any of its files.
# A change of these can affect every test: they run the tests, or everything is built from them.
EVERYTHING = re.compile(r'(CMakeLists\.txt|CMakePresets\.json|cmake/.*|policies/.*|\.ci/.*|tools/(check|check\.py|suites\.py|install|CMakeLists\.txt))')


def changed(revision):
    """Paths that differ from `revision`, committed or not."""
    def git(*words):
        return subprocess.run(['git', *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return sorted({*git('diff', '--name-only', '--no-renames', revision, '--'), *git('ls-files', '-o', '--exclude-standard')})


def rooms():
    """{room: rooms that it may include}, all of those that its line in runner/CMakeLists.txt leads to."""
    lines = re.findall(r'^runner_folder\((.*?)\)', (ROOT / 'runner/CMakeLists.txt').read_text(), re.MULTILINE | re.DOTALL)
    listed = {}
    for words in (line.split('LIBRARIES')[0].split() for line in lines):
        below = set()
        for word in words[1:]:
            named = [room for room in listed if room == word or word not in listed and room.startswith(word + '/')]
            below.update(named, *(listed[room] for room in named))
        listed[words[0]] = below
    return listed


def commands(directory):
    """{test: its command line}."""
    listed = subprocess.run(['ctest', '--test-dir', directory, '--show-only=json-v1'], capture_output=True, check=True).stdout
    return {test['name']: test.get('command', []) for test in json.loads(listed)['tests']}


def folder_of(path):
    """The suite's folder, or what is at the top, that has `path`; nothing for the rooms of the product."""
    parts = pathlib.PurePath(path).parts
    if not parts:
        return EVERY
    if parts[0] == 'tests':
        return '/'.join(parts[:2])
    return None if parts[0] == 'runner' else parts[0]


@functools.cache
def uses():
    """{folder: folders whose files it names, and those that these name}; too many rather than too few."""
    folders = sorted(f'tests/{path.name}' for path in (ROOT / 'tests').iterdir() if path.is_dir())
    tops = {path.name for path in ROOT.iterdir()} - {'runner', 'tests', 'build', '.git'}
    named = {folder.rpartition('/')[2]: folder for folder in folders}
    # As a path, or word by word as os.path.join() and pathlib take it.
    beside = re.compile(rf"""(?:tests/|\.\./|['"](?:tests|\.\.)['"],? *(?:/ *)?['"]|parent / ['"])({"|".join(named)})\b""")
    above = re.compile(rf"""[/'"]({"|".join(map(re.escape, tops))})(?=['"/\s)])""")
    direct = {}
    for folder in folders:
        text = '\n'.join(path.read_text(errors='replace') for path in (ROOT / folder).rglob('*')
                         if path.is_file() and path.suffix in ('', '.py', '.mjs', '.txt', '.test', '.h', '.cc', '.sh'))
        direct[folder] = {folder, *(named[name] for name in beside.findall(text)), *above.findall(text)}
    closed = {}
    for folder in folders:
        found, more = set(), {folder}
        while more:
            found |= more
            more = set().union(*(direct.get(name, ()) for name in more)) - found
        closed[folder] = found
    return closed


def affected(paths, directory=BUILD / 'release'):
    """The names of tests, of all that `directory` has, that a change of `paths` can affect."""
    tests = commands(directory)
    if any(EVERYTHING.fullmatch(path) for path in paths):
        return sorted(tests)
    below, named = rooms(), uses()
    touched = {folder_of(path) for path in paths} - {None}
    product, units = set(), set()
    for path in (path for path in paths if path.startswith('runner/')):
        room = str(pathlib.PurePath(path).parent.relative_to('runner'))
        (units if path.endswith('_test.cc') else product).add(room)
    found = set()
    for test, command in tests.items():
        if test.startswith('unit_'):
            room = next((name for name in below if test == 'unit_' + name.replace('/', '_')), None)
            if room is None or room in units or product & ({room} | below[room]):
                found.add(test)
            continue
        own = {folder_of(str(pathlib.PurePath(word).relative_to(ROOT))) for word in command
               if pathlib.PurePath(word).is_relative_to(ROOT) and not pathlib.PurePath(word).is_relative_to(BUILD)}
        reached = set().union(*(named.get(folder, {folder}) for folder in own if folder))
        built = any(pathlib.PurePath(word).is_relative_to(BUILD) for word in command)
        # A suite whose files are not known from its command may be about any.
        if touched & reached or built and product or touched and EVERY in reached or not reached:
            found.add(test)
    return sorted(found)
