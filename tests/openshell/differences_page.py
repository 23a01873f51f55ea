#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/reference/openshell-differences.md, from the table that the differential test is held to.

usage: differences_page.py [--update]
"""
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from differences import DOCUMENTED, FILES, REQUESTS  # noqa: E402

PAGE = HERE.parents[1] / 'docs/reference/openshell-differences.md'
HEAD = '''# Where OpenShell judges differently

The first two tables are of OpenShell 0.0.112, and tested: generated policies and requests are judged by its own engine
and by agentic-ci in each test run. Every difference that was found is listed here; one that is not, or one that no
longer occurs, fails the test. The last table compares the generations. The reasons are in
[decisions.md](../decisions.md), under "Where OpenShell's schema is read more strictly", "OpenShell 0.1 is followed
where it is stricter", and the sections about paths and messages.

"Here" is `--backend native` and `agentic-ci policy`. With `--backend openshell`, agentic-ci reads the policy file, by
its own rules, and OpenShell judges the requests.
'''
PARTS = (('Requests', 'A request is judged by these rules:', REQUESTS), ('Policy files', 'A file is read by these rules:', FILES))


GENERATIONS = '''
## OpenShell 0.0 and 0.1

No program of 0.1 was there to be tried: its column is from the pages of OpenShell's documentation and the notes of its
releases that the last column names. "Tried" says whether what 0.0 does was seen. `agentic-ci policy check --for
openshell FILE` says which of these a file meets.

| subject | here | OpenShell 0.0 | tried | OpenShell 0.1 | from |
|---|---|---|---|---|---|
'''


def page():
    text = HEAD
    for title, lead, table in PARTS:
        text += f'\n## {title}\n\n{lead}\n\n| rule | here | OpenShell |\n|---|---|---|\n'
        for one in table:
            here, there = ('accepts', 'refuses') if one.looser else ('refuses what violates it', 'accepts it')
            text += f'| {one.reason.replace("|", chr(92) + "|")} | {here} | {there} |\n'
    text += GENERATIONS
    for one in DOCUMENTED:
        cells = (one.subject, one.here, one.in_00, 'yes' if one.tried else 'no', one.in_01, one.page)
        text += f'| {" | ".join(cell.replace("|", chr(92) + "|") for cell in cells)} |\n'
    return text


def main():
    if sys.argv[1:] == ['--update']:
        PAGE.write_text(page())
        return
    if sys.argv[1:]:
        print('usage: differences_page.py [--update]\n0 passed, 1 failed')
        sys.exit(1)
    stale = not PAGE.exists() or PAGE.read_text() != page()
    if stale:
        print('docs/reference/openshell-differences.md is out of date: tests/openshell/differences_page.py --update')
    print(f'{int(not stale)} passed, {int(stale)} failed')
    sys.exit(stale)


if __name__ == '__main__':
    main()
