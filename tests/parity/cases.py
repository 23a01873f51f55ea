# SPDX-License-Identifier: Apache-2.0
"""Reads which cases passed out of what test programs print."""
import re
import xml.etree.ElementTree as ElementTree

PASS, FAIL, SKIP = 'pass', 'fail', 'skip'
SUITE = re.compile(r'^=== suite (.+)$')
GO = re.compile(r'--- (PASS|FAIL|SKIP): (\S+) \(')
RUST = re.compile(r'^test (\S.*?) \.\.\. .*?(ok|FAILED|ignored)')
TAP = re.compile(r'^( *)(not ok|ok)\b *\d* *-? *(.*?)(?: +# (?:time=|.*ms$).*)?$')
MAKE = re.compile(r'^(PASS|FAIL|SKIP|XFAIL|XPASS|ERROR): (.+?)\s*$')
WORDS = {'PASS': PASS, 'ok': PASS, 'XFAIL': PASS, 'SKIP': SKIP, 'ignored': SKIP}


class Cases(dict):
    """Results by name; a name that comes twice gets a number."""

    def add(self, name, result):
        key, number = name, 1
        while key in self:
            number += 1
            key = f'{name} #{number}'
        self[key] = result


def lines_of(output, pattern, word=0, name=1):
    cases, suite = Cases(), ''
    for line in output.splitlines():
        start = SUITE.match(line)
        if start:
            suite = start[1] + ' '
            continue
        for found in pattern.findall(line):
            cases.add(suite + found[name], WORDS.get(found[word], FAIL))
    return cases


def go(output):
    return lines_of(output, GO)


def rust(output):
    return lines_of(output, RUST, 1, 0)


def make(output):
    return lines_of(output, MAKE)


def tap(output):
    """The cases of the Test Anything Protocol; those of a subtest are named with where they are."""
    cases, comment = Cases(), ''
    for line in output.splitlines():
        if line.startswith('# ') and not line.startswith(('# time', '# tests', '# pass', '# fail', '# skip')):
            comment = line[2:] + ': '  # tape names a group so.
        found = TAP.match(line)
        if found:
            depth, word, name = found.groups()
            skipped = re.search(r'# (?:SKIP|TO' + r'DO)\b', name, re.IGNORECASE)
            name = re.sub(r' # .*$| \{$', '', name)
            name = re.sub(r'\d+(?:\.\d+)?m?s\b', '', name)
            cases.add(f'{"" if depth else comment}{name}', SKIP if skipped else WORDS.get(word, FAIL))
    return cases


def junit(output):
    """The cases of every JUnit report in the output."""
    cases = Cases()
    for text in re.findall(r'<\?xml.*?</testsuites?>(?=\s*(?:<\?xml|\Z))', output, re.DOTALL):
        try:
            tree = ElementTree.fromstring(text[text.index('?>') + 2:].strip())
        except ElementTree.ParseError:
            continue
        for case in tree.iter('testcase'):
            kinds = {child.tag for child in case}
            result = FAIL if kinds & {'failure', 'error'} else SKIP if 'skipped' in kinds else PASS
            cases.add(f'{case.get("classname") or ""}.{case.get("name")}'.strip('.'), result)
    return cases


def lines(pattern):
    """Cases by a project's own pattern, with the groups `name`, and `pass`, `fail` or `skip`."""
    compiled = re.compile(pattern, re.MULTILINE)

    def read(output):
        cases = Cases()
        for found in compiled.finditer(output):
            groups = found.groupdict()
            cases.add(groups['name'], next((word for word in (PASS, SKIP) if groups.get(word)), FAIL))
        return cases
    return read


def reader(project):
    """What reads the output of this project's tests."""
    if 'cases' in project:
        return lines(project['cases'])
    return {'go': go, 'rust': rust, 'tap': tap, 'junit': junit, 'make': make}[project.get(
        'format', {'Go': 'go', 'Rust': 'rust', 'Python': 'junit', 'Java': 'junit', 'JavaScript': 'tap', 'C': 'make'}[project['language']])]
