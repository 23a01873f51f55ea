#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The table of docs/reference/agents-tried.md: agent, provider and tier, as the suites ran them (agents_test.py).

usage: tried.py --update    after AGENTIC_CI_AGENTS=all ctest --test-dir build/release -R '^agents_'
       tried.py             fails if the page lacks a provider of an agent's description, or an agent installs another version
"""
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / 'docs/reference/agents-tried.md'
RESULTS = ROOT / 'build/agents-tried'
BEGIN, END = '<!-- generated: tried begin -->\n', '<!-- generated: tried end -->\n'
TIERS = ('namespaces', 'landlock')


def note(agent, version, provider, tier):
    """A task was carried out."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f'{agent}-{provider}-{tier}.json'
    path.write_text(json.dumps({'agent': agent, 'version': version, 'provider': provider, 'tier': tier}))


def rows():
    """The page's table: {(agent, provider): (version, {tier})}."""
    found = {}
    for line in PAGE.read_text().split(BEGIN)[1].split(END)[0].splitlines()[2:]:
        agent, version, provider, *tiers = (cell.strip(' `') for cell in line.strip('|').split('|'))
        found[agent, provider] = version, {tier for tier, said in zip(TIERS, tiers) if said == 'works'}
    return found


def render():
    works = {}
    for path in sorted(RESULTS.glob('*.json')):
        result = json.loads(path.read_text())
        works.setdefault((result['agent'], result['version'], result['provider']), set()).add(result['tier'])
    text = '| agent | version | `--provider` | `namespaces` | `landlock` |\n|---|---|---|---|---|\n'
    for (agent, version, provider), tiers in sorted(works.items()):
        cells = ' | '.join('works' if tier in tiers else 'not tried' for tier in TIERS)
        text += f'| `{agent}` | {version} | `{provider}` | {cells} |\n'
    return text


def main():
    before, rest = PAGE.read_text().split(BEGIN)
    if sys.argv[1:] == ['--update']:
        PAGE.write_text(before + BEGIN + render() + END + rest.split(END)[1])
        return 0
    if sys.argv[1:]:
        sys.exit(__doc__)
    problems = []
    table = rows()
    for path in sorted((ROOT / 'policies/agents').glob('*.yml')):
        text = path.read_text()
        agent, tried = re.search(r'^agent: (\S+)', text, re.MULTILINE)[1], re.search(r'^tried: "(\S+)"', text, re.MULTILINE)[1]
        if agent != path.stem or not re.search(rf'^install: npm install -g \S+@{re.escape(tried)}$', text, re.MULTILINE):
            problems.append(f'{path.name}: it describes {agent}, or its `install` is not npm\'s of version {tried}')
        for provider in re.findall(r'^  - provider: (\S+)', text, re.MULTILINE):
            version, tiers = table.pop((agent, provider), ('', set()))
            untried = f'`{agent}` with `{provider}`' in before
            if not untried and (version != tried or tiers != set(TIERS)):
                problems.append(f'{PAGE.name}: {agent} with {provider} was tried with {version or "nothing"} in {sorted(tiers)}')
    problems += [f'{PAGE.name}: {agent} has no provider {provider}' for agent, provider in table]
    print('\n'.join([f'FAILED  {problem}' for problem in problems] + [f'{int(not problems)} passed, {len(problems)} failed']))
    return 1 if problems else 0


if __name__ == '__main__':
    sys.exit(main())
