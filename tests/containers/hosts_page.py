#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The table of containers in docs/reference/isolation.md, from the list that containers_test.py is held to.

usage: hosts_page.py [--update]
"""
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / 'services')]
import written_page  # noqa: E402
from hosts import HOSTS  # noqa: E402

PAGE = HERE.parents[1] / 'docs/reference/isolation.md'


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


if __name__ == '__main__':
    written_page.main(PAGE, 'tests/containers/hosts_page.py', table)
