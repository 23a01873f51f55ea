# SPDX-License-Identifier: Apache-2.0
"""What linters write counts as it is, and the findings are at the paths of the checkout.

The logs in sarif/ are what the tools wrote (ESLint 9.39 with its formatter, ruff 0.17, bandit 1.9, semgrep 1.185, and
golangci-lint 1.64's printer), cut to what is read; that of CodeQL has the form that its documentation shows."""
import os

from harness import Case, git, read, write

SARIF = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'sarif')
PYTHON = 'src/a b.py'
FOUND = {
    'eslint': [('no-unused-vars', 'error', 'src/app.js', 1, "'unused' is assigned a value but never used."),
               ('no-undef', 'error', 'src/app.js', 2, "'x' is not defined."),
               ('eqeqeq', 'warning', 'src/app.js', 2, "Expected '===' and instead saw '=='."),
               ('no-debugger', 'warning', 'src/app.js', 2, "Unexpected 'debugger' statement.")],
    'ruff': [('F401', 'error', PYTHON, 1, '`os` imported but unused'),
             ('S602', 'error', PYTHON, 4, '`subprocess` call with `shell=True` identified, security issue')],
    'bandit': [('B404', 'note', PYTHON, 2, 'Consider possible security implications associated with the subprocess module.'),
               ('B602', 'error', PYTHON, 4, 'subprocess call with shell=True identified, security issue.')],
    'semgrep': [('no-shell', 'error', PYTHON, 4, 'A shell runs cmd.')],
    'golangci': [('errcheck', 'error', 'main.go', 6, 'Error return value of `os.Open` is not checked')],
    'codeql': [('js/sql-injection', 'error', 'src/app.js', 2, 'This query depends on a user-provided value.'),
               ('js/useless-assignment', 'warning', 'src/app.js', 1, 'The value assigned to unused here is unused.')],
}


def found(run):
    return [(finding['rule'], finding['severity'], finding['path'], finding['line'], finding['message'])
            for finding in run.record['findings']]


class Findings(Case):
    def test_what_linters_write_counts(self):
        self.assertEqual(sorted(name.removesuffix('.sarif') for name in os.listdir(SARIF)), sorted(FOUND))
        for name in FOUND:
            write(f'{self.checkout}/{name}.sarif', read(f'{SARIF}/{name}.sarif'))
        git(self.checkout, 'add', '-A')
        git(self.checkout, 'commit', '-qm', 'logs')
        for name, expected in FOUND.items():
            with self.subTest(tool=name):
                run = self.shell(f'sed "s|@CHECKOUT@|$PWD|" {name}.sarif >agentic-ci-findings.json', kind='success')
                self.assertEqual(sorted(found(run)), sorted(expected))

    def test_a_file_outside_the_checkout_is_no_finding_in_it(self):
        run = self.shell('sed "s|@CHECKOUT@|/elsewhere|" eslint.sarif >agentic-ci-findings.json'.replace(
            'eslint.sarif', '- <<"LOG"') + '\n' + read(SARIF + '/eslint.sarif') + '\nLOG\n')
        self.assertEqual({finding['rule'] for finding in run.record['findings']}, {'findings-file'})
        self.assertIn('"/elsewhere/src/app.js" is not a path relative to the checkout', run.record['findings'][0]['message'])

    def test_a_path_of_the_short_form_may_begin_with_a_dot_or_the_checkout(self):
        run = self.shell('echo "{\\"findings\\": [{\\"path\\": \\"./README.md\\", \\"line\\": 1, \\"message\\": \\"dot\\"},'
                         ' {\\"path\\": \\"$PWD/README.md\\", \\"line\\": 1, \\"message\\": \\"whole\\"}]}" >agentic-ci-findings.json')
        self.assertEqual([(finding['path'], finding['message']) for finding in run.record['findings']],
                         [('README.md', 'dot'), ('README.md', 'whole')])
