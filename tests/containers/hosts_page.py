#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The table of containers in docs/reference/isolation.md, from the list that containers_test.py is held to.

usage: hosts_page.py [--update]
"""
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from hosts import HOSTS  # noqa: E402

PAGE = HERE.parents[1] / 'docs/reference/isolation.md'
BEGIN = '<!-- Written by tests/containers/hosts_page.py --update -->\n'
END = '<!-- To here. -->\n'


def table():
    """One line for what is the same but for its options. Pods have a table of their own, written by tests/kubernetes."""
    lines = {}
    for host in (host for host in HOSTS if host.name != 'Kubernetes'):
        user = 'root' if host.user == 0 else 'ordinary'
        options = f'`{" ".join(host.options)}`' if host.options else 'default options'
        lines.setdefault((host.name, user, host.tier, host.remedy), []).append(options)
    text = '| container | user | gives | says to type for tier `namespaces` |\n|---|---|---|---|\n'
    for (name, user, tier, remedy), options in lines.items():
        text += f'| {name}, {" or ".join(options)} | {user} | tier `{tier}` | {f"`{remedy}`" if remedy else ""} |\n'
    return text


def main():
    if sys.argv[1:] not in ([], ['--update']):
        print('usage: hosts_page.py [--update]\n0 passed, 1 failed')
        sys.exit(1)
    before, rest = PAGE.read_text().split(BEGIN)
    shown, after = rest.split(END, 1)
    if sys.argv[1:]:
        PAGE.write_text(before + BEGIN + table() + END + after)
        return
    stale = shown != table()
    if stale:
        print('docs/reference/isolation.md is out of date: tests/containers/hosts_page.py --update')
    print(f'{int(not stale)} passed, {int(stale)} failed')
    sys.exit(stale)


if __name__ == '__main__':
    main()
