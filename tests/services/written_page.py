# SPDX-License-Identifier: Apache-2.0
"""Parts of documents that scripts write: each is held to what its script gives.

    written_page.main(PAGE, SCRIPT, table)    as `SCRIPT [--update]`
"""
import sys

END = '<!-- To here. -->\n'


def main(page, script, render):
    """Checks, or with --update writes, the part of `page` that begins with the comment which names `script`."""
    if sys.argv[1:] not in ([], ['--update']):
        print(f'usage: {script} [--update]\n0 passed, 1 failed')
        sys.exit(1)
    begin = f'<!-- Written by {script} --update -->\n'
    before, rest = page.read_text().split(begin)
    shown, after = rest.split(END, 1)
    if sys.argv[1:]:
        page.write_text(before + begin + render() + END + after)
        return
    stale = shown != render()
    if stale:
        print(f'{page.name} is out of date: {script} --update')
    print(f'{int(not stale)} passed, {int(stale)} failed')
    sys.exit(stale)
