#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/reference/backends.md, from the lists that backends_test.py is held to.

usage: backends_page.py [--update]
"""
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / 'services')]
import written_page  # noqa: E402
from backends import CONTROLS, FEATURES, NAMES  # noqa: E402

PAGE = HERE.parents[1] / 'docs/reference/backends.md'


def tables():
    columns = list(NAMES)
    head = ' | '.join(NAMES.values())
    text = f'| | {head} | with OpenShell |\n|---|{"---|" * len(columns)}---|\n'
    for feature in FEATURES:
        cells = ' | '.join('yes' if column in feature.given else 'no' for column in columns)
        text += f'| {feature.text} | {cells} | {feature.how} |\n'
    text += f'\nWhat `run.json` says of a run without options (`isolation.controls`):\n\n| control | {head} |\n|---|{"---|" * len(columns)}\n'
    for control in dict.fromkeys(name for column in columns for name in CONTROLS[column]):
        cells = ' | '.join(CONTROLS[column].get(control, '') for column in columns)
        text += f'| {control} | {cells} |\n'
    return text


if __name__ == '__main__':
    written_page.main(PAGE, 'tests/openshell/backends_page.py', tables)
