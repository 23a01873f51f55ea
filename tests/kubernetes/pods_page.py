#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The table of pods in docs/reference/isolation.md, from the list that pods_test.py is held to.

usage: pods_page.py [--update]
"""
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from pods import PODS  # noqa: E402

PAGE = HERE.parents[1] / 'docs/reference/isolation.md'
BEGIN = '<!-- Written by tests/kubernetes/pods_page.py --update -->\n'
END = '<!-- To here. -->\n'


def user(one):
    return 'root' if one.user == 0 else 'a random id, group 0' if one.context['runAsGroup'] == 0 else 'ordinary'


def table():
    text = '| Pod Security level | the container\'s `securityContext` | user | gives |\n|---|---|---|---|\n'
    for one in PODS:
        text += f'| `{one.level}` | {one.words} | {user(one)} | tier `{one.tier}` |\n'
    return text


def main():
    if sys.argv[1:] not in ([], ['--update']):
        print('usage: pods_page.py [--update]\n0 passed, 1 failed')
        sys.exit(1)
    before, rest = PAGE.read_text().split(BEGIN)
    shown, after = rest.split(END, 1)
    if sys.argv[1:]:
        PAGE.write_text(before + BEGIN + table() + END + after)
        return
    stale = shown != table()
    if stale:
        print('docs/reference/isolation.md is out of date: tests/kubernetes/pods_page.py --update')
    print(f'{int(not stale)} passed, {int(stale)} failed')
    sys.exit(stale)


if __name__ == '__main__':
    main()
