# SPDX-License-Identifier: Apache-2.0
"""Reads which cases passed out of what test programs print."""
import re
import xml.etree.ElementTree as ElementTree

PASS, FAIL, SKIP = 'pass', 'fail', 'skip'
SUITE = re.compile(r'^=== suite (.+)$')
GO = re.compile(r'--- (PASS|FAIL|SKIP): (\S+) \(')
RUST = re.compile(r'^test (\S.*?) \.\.\. .*?(ok|FAILED|ignored)')
TAP = re.compile(r'^( *)(not ok|ok)\b *\d* *-? *(.*)$')
MAKE = re.compile(r'^(PASS|FAIL|SKIP|XFAIL|XPASS|ERROR): (.+?)\s*$')
SKIPPED = re.compile(r'# (?:SKIP|TO' + r'DO)\b', re.IGNORECASE)
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
    """The tests of the Test Anything Protocol: what a "Subtest" announces, or the group that a comment begins, or else each
    line. Assertions within a test are not cases: their number may depend on time."""
    if re.search(r'^ *# Subtest: ', output, re.MULTILINE):
        return subtests(output)
    cases, group, results = Cases(), '', {}
    for line in output.splitlines():
        found = TAP.match(line)
        if line.startswith('# ') and not line.startswith(('# time', '# tests', '# pass', '# fail', '# skip', '# ok')):
            group = line[2:]
        elif found and not group:
            cases.add(plain(found[3]), SKIP if SKIPPED.search(line) else WORDS.get(found[2], FAIL))
        elif found:
            results.setdefault(group, set()).add(WORDS.get(found[2], FAIL))
    cases.update({name: FAIL if FAIL in seen else PASS for name, seen in results.items()})
    return cases


def subtests(output):
    cases, open_names = Cases(), {}
    for line in output.splitlines():
        begun, found = re.match(r'( *)# Subtest: (.*)', line), TAP.match(line)
        if begun:
            depth = len(begun[1])
            open_names = {at: name for at, name in open_names.items() if at < depth} | {depth: plain(begun[2])}
        elif found and open_names.get(len(found[1])) == plain(found[3]):
            depth = len(found[1])
            name = ' > '.join(name for at, name in sorted(open_names.items()) if at <= depth)
            cases.add(name, SKIP if SKIPPED.search(line) else WORDS.get(found[2], FAIL))
            del open_names[depth]
    return cases


def plain(name):
    return re.sub(r'\d+(?:\.\d+)?m?s\b', '', re.sub(r' # .*$| \{$', '', name)).strip()


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
            cases.add(groups['name'], next((word for word in (SKIP, PASS) if groups.get(word)), FAIL))
        return cases
    return read


def reader(project):
    """What reads the output of this project's tests."""
    if 'cases' in project:
        return lines(project['cases'])
    return {'go': go, 'rust': rust, 'tap': tap, 'junit': junit, 'make': make}[project.get(
        'format', {'Go': 'go', 'Rust': 'rust', 'Python': 'junit', 'Java': 'junit', 'JavaScript': 'tap', 'C': 'make'}[project['language']])]
