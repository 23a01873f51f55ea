#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs run inside as they run outside: the test suites of real projects, outside and in both tiers.

usage: parity.py BINARY [--update] [--quick DIRECTORY] [NAME...]

Each case must pass in a tier exactly if it passes outside. A case whose result varies outside by itself is named and left
out. A difference is either explained in differences.yml, and then has to be there, or it fails the suite. Without names, every
project is run. The results are kept in build/parity/results.json; --update writes the page docs/reference/parity.md from
them. --quick runs those that projects.yml marks so, in a directory of their own, which tools/check has filled before.
"""
import argparse
import contextlib
import fnmatch
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

import cases
import fetch
import page
import settings

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLACE = ROOT / 'build/parity'
SHOWN_MAX = 12
SKIPPED = 77  # For ctest: nothing could be had.


def compare(outside, inside):
    """The cases that pass on one side only: {name: [result outside, result inside]}."""
    return {name: [result, inside.get(name, 'absent')] for name, result in outside.items()
            if (result == cases.PASS) != (inside.get(name) == cases.PASS)}


def applies(explanation):
    return explanation.get('only', ('user' if os.geteuid() else 'root')) == ('user' if os.geteuid() else 'root')


def unexplained(differing, explanations):
    """What no explanation covers, and the explanations that cover nothing."""
    patterns = [pattern for entry in explanations if applies(entry) for pattern in entry['cases']]
    left = [name for name in differing if not any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)]
    stale = [pattern for pattern in patterns if not any(fnmatch.fnmatchcase(name, pattern) for name in differing)]
    return left, stale


class Trial:
    """One project, in every setting."""

    def __init__(self, project, place, binary):
        self.project, self.place, self.binary = project, place, binary
        self.read = cases.reader(project)
        self.seconds, self.runs = {}, 0

    def run(self, setting):
        """The results in a setting; the shortest time of it is kept."""
        self.runs += 1
        log = self.place / f'{setting}.log'
        if setting == settings.OUTSIDE:
            took, output = settings.outside(self.project, self.place, log)
        else:
            took, output = settings.inside(setting, self.binary, self.project, self.place, log)
        self.seconds[setting] = min(took, self.seconds.get(setting, took))
        return self.read(output)

    def judge(self):
        """The record of this project."""
        rounds = [self.run(settings.OUTSIDE), self.run(settings.OUTSIDE)]
        found = {}
        for tier in settings.TIERS:
            found[tier] = compare(rounds[0], self.run(tier))
            explanations = self.project['differs'].get(tier, [])
            # A second look at what is not known, on both sides.
            if unexplained(found[tier], explanations)[0]:
                rounds.append(self.run(settings.OUTSIDE))
                again = compare(rounds[0], self.run(tier))
                found[tier] = {name: results for name, results in found[tier].items() if name in again}
        varying = sorted(name for name in set().union(*rounds) if len({one.get(name) for one in rounds}) > 1)
        count = sum(result == cases.PASS for name, result in rounds[0].items() if name not in varying)
        record = {'version': self.project['version'], 'cases': count, 'varying': varying, 'seconds': self.seconds}
        for tier in settings.TIERS:
            differing = {name: results for name, results in found[tier].items() if name not in varying}
            left, stale = unexplained(differing, self.project['differs'].get(tier, []))
            record[tier] = {'differing': differing, 'unexplained': left, 'stale': stale}
        return record


def told(name, record):
    """A line for a project, and one for each thing to be mended."""
    def word(tier):
        count = len(record[tier]['differing'])
        return f'{tier} {"equal" if not count else f"{count} differ"} {record["seconds"][tier] / record["seconds"]["outside"]:.2f}x'
    text = [f'{name} {record["version"]}: {record["cases"]} cases, {record["seconds"]["outside"]:.1f}s; '
            + '; '.join(word(tier) for tier in settings.TIERS)
            + (f'; {len(record["varying"])} vary outside' if record['varying'] else '')]
    for tier in settings.TIERS:
        differing, left = record[tier]['differing'], record[tier]['unexplained']
        text += [f'  {tier}: {case}: {differing[case][0]} outside, {differing[case][1]} inside' for case in left[:SHOWN_MAX]]
        text += [f'  {tier}: ... and {len(left) - SHOWN_MAX} more'] if len(left) > SHOWN_MAX else []
        text += [f'  {tier}: differences.yml explains "{pattern}", which does not differ' for pattern in record[tier]['stale']]
    return text


def failed(record):
    return not record['cases'] or any(record[tier]['unexplained'] or record[tier]['stale'] for tier in settings.TIERS)


def kept():
    path = PLACE / f'results-{"user" if os.geteuid() else "root"}.json'
    return path, json.loads(path.read_text()) if path.exists() else {}


def explained_anew(results, listed):
    """The results by what differences.yml says now; a project that is not listed any more is left out."""
    results = {name: record for name, record in results.items() if name in listed}
    for name, record in results.items():
        for tier in settings.TIERS:
            left, stale = unexplained(record[tier]['differing'], listed[name]['differs'].get(tier, []))
            record[tier].update(unexplained=left, stale=stale)
            for line in [*left, *(f'"{pattern}" does not differ' for pattern in stale)]:
                print(f'{name}, {tier}: {line}')
    return results


def run(names, listed, place, binary, keep):
    """How many projects were as they should be, and how many were not."""
    good = bad = 0
    for name in names:
        try:
            record = Trial(listed[name], fetch.fetch(listed[name], place), binary).judge()
        except fetch.Unavailable as why:
            print(f'# SKIP {name}: {" ".join(str(why).split())}', flush=True)
            continue
        print('\n'.join(told(name, record)), flush=True)
        if failed(record):
            bad += 1
        else:
            good += 1
        if keep:
            path, results = kept()
            path.write_text(json.dumps({**results, name: record}, indent=1))
    return good, bad


@contextlib.contextmanager
def enterable(place):
    """`place`, or a copy of it where the accounts of the tests may go: root's checkouts may be closed to them, and /tmp is
    empty in each setting."""
    hidden = pathlib.Path('/tmp') in place.parents
    if not hidden and (os.geteuid() or all(path.stat().st_mode & 1 for path in (place, *place.parents))):
        yield place
        return
    with tempfile.TemporaryDirectory(prefix='parity-', dir='/var/tmp' if os.geteuid() else '/srv') as top:
        os.chmod(top, 0o755)
        subprocess.run(['cp', '-a', place, top + '/place'], check=True)
        yield pathlib.Path(top, 'place')


def main():
    parser = argparse.ArgumentParser(prog='tests/parity/run')
    parser.add_argument('binary')
    parser.add_argument('--update', action='store_true', help='write docs/reference/parity.md from the results')
    parser.add_argument('--quick', metavar='DIRECTORY', type=pathlib.Path, help='only those that projects.yml marks, from there')
    parser.add_argument('names', nargs='*')
    arguments = parser.parse_intermixed_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    listed = fetch.projects()
    chosen = [name for name, project in listed.items() if not arguments.quick or project.get('quick')]
    unknown = [name for name in arguments.names if name not in chosen]
    if unknown:
        print(f'parity.py: error: no project is called {" or ".join(unknown)}\n0 passed, 1 failed')
        return 1
    place = (arguments.quick or PLACE).resolve()
    place.mkdir(parents=True, exist_ok=True)
    with enterable(place) as open_place:
        good, bad = run(arguments.names or chosen, listed, open_place, os.path.abspath(arguments.binary), not arguments.quick)
    if arguments.update:
        if os.geteuid():
            parser.error('the page shows the results of root')
        page.write(explained_anew(kept()[1], listed), listed)
    if not good and not bad:
        return SKIPPED
    print(f'{good} passed, {bad} failed')
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
