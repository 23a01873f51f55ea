#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The table of pods in docs/reference/isolation.md, from the list that pods_test.py is held to.

usage: pods_page.py [--update]
"""
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / 'services')]
import written_page  # noqa: E402
from pods import PODS, RANDOM, remedy  # noqa: E402

PAGE = HERE.parents[1] / 'docs/reference/isolation.md'


def user(one):
    return 'root' if one.user == 0 else 'a random id, group 0' if one.context['runAsGroup'] == 0 else 'ordinary'


def table():
    text = '| Pod Security level | the container\'s `securityContext` | user | gives |\n|---|---|---|---|\n'
    for one in PODS:
        text += f'| `{one.level}` | {one.words} | {user(one)} | tier `{one.tier}` |\n'
    return text + f'''
Where a pod gives tier `landlock`, `agentic-ci doctor` says to type, for tier `namespaces`:

```text
{remedy(0)}
```

and to a user with an id that such a pod does not have:

```text
{remedy(RANDOM)}
```
'''


if __name__ == '__main__':
    written_page.main(PAGE, 'tests/kubernetes/pods_page.py', table)
