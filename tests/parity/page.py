# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/reference/parity.md, from the results of a run of every project by root."""
import pathlib
import sys

PAGE = pathlib.Path(__file__).resolve().parents[2] / 'docs/reference/parity.md'
BEGIN, END = '<!-- Written by tests/parity/run --update -->\n', '<!-- To here. -->\n'
TIERS = ('namespaces', 'landlock')


SECONDS_MIN = 2  # Of a suite whose own ratio says anything: the sandbox's start is a part of each run.


def ratio(records, tier):
    """The time in a tier by that outside; a suite that ends elsewhere than outside takes another time for that."""
    records = [record for record in records if not record[tier]['differing']]
    return sum(record['seconds'][tier] for record in records) / sum(record['seconds']['outside'] for record in records)


def sentences(project, tier, user):
    """Why cases differ in a tier, for a run by root; or what is added for one by an ordinary user."""
    return ' '.join(entry['because'] for entry in project['differs'].get(tier, []) if (entry.get('only') == 'user') == user)


def cell(project, record, tier):
    count, added = len(record[tier]['differing']), sentences(project, tier, True)
    text = f'{count} differ: {sentences(project, tier, False)}' if count else 'equal'
    if record[tier]['unexplained']:
        text = f'{count} differ, not explained'
    return text + (f'; if an ordinary user starts the run: {added}' if added else '')


def table(results, listed):
    rows = [(listed[name], record) for name, record in results.items() if name in listed]
    rows.sort(key=lambda row: (row[0]['language'], row[0]['name'].lower()))
    records = [record for _, record in rows]
    text = f'{len(rows)} projects, {sum(record["cases"] for record in records)} cases that pass outside.\n\n'
    text += '| | `namespaces` | `landlock` |\n|---|---|---|\n'
    text += '| projects with the same results as outside | ' + ' | '.join(
        str(sum(not record[tier]['differing'] for record in records)) for tier in TIERS) + ' |\n'
    text += '| time of these, as a multiple of that outside | ' + ' | '.join(f'{ratio(records, tier):.2f}' for tier in TIERS) + ' |\n\n'
    text += '| project | version | language | touches | cases | tier `namespaces` | tier `landlock` | time in each |\n'
    text += '|---|---|---|---|--:|---|---|---|\n'
    for project, record in rows:
        times = ', '.join(f'{record["seconds"][tier] / record["seconds"]["outside"]:.1f}' for tier in TIERS)
        times = times if record['seconds']['outside'] > SECONDS_MIN else ''
        text += (f'| {project["name"]} | {record["version"]} | {project["language"]} | {project["touches"]} | {record["cases"]} | '
                 f'{cell(project, record, "namespaces")} | {cell(project, record, "landlock")} | {times} |\n')
    text += '\nLeft out are cases whose results vary outside as well:\n'
    return text + ''.join(f'\n- {project["name"]}: {", ".join(f"`{name}`" for name in record["varying"])}'
                          for project, record in rows if record['varying']) + '\n'


def write(results, listed):
    missing = [name for name in listed if name not in results]
    if missing:
        sys.exit(f'parity.py: error: not run yet: {" ".join(missing)}')
    before, rest = PAGE.read_text().split(BEGIN)
    PAGE.write_text(before + BEGIN + table(results, listed) + END + rest.split(END)[1])
