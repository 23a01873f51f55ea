#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each rule of tools/tidy finds what it is for, and says where."""
import os
import pathlib
import subprocess
import tempfile
import unittest

TIDY = pathlib.Path(__file__).resolve().parents[2] / 'tools' / 'tidy'
HEAD = '// SPDX-License-Identifier: Apache-2.0\n'


class Tidy(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)
        self.root = pathlib.Path(self.dir.name)

    def tidy(self, files):
        for name, content in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        run = subprocess.run([TIDY, self.root], capture_output=True, text=True, check=False)
        self.assertEqual(run.stderr, '')
        self.assertEqual(run.returncode, 1 if run.stdout else 0)
        return run.stdout

    def test_a_clean_tree_has_nothing_to_say(self):
        self.assertEqual(self.tidy({'runner/a/a.cc': HEAD + 'int a;\n', 'README.md': '# One\n'}), '')

    def test_a_limit_is_named_in_one_place(self):
        line = HEAD + 'const char* kName = "agent-cpu";\n'
        self.assertEqual(self.tidy({'runner/sandbox/limit/limit.cc': line}), '')
        self.assertIn('runner/a/a.cc:2: error: "agent-cpu": take it from runner/sandbox/limit/', self.tidy({'runner/a/a.cc': line}))

    def test_a_key_of_ocsf_is_written_where_records_are(self):
        line = HEAD + 'const char* kKey = "unmapped";\nconst char* kText = R"({"class_uid":4001})";\n'
        self.assertEqual(self.tidy({'runner/record/ocsf.cc': line, 'runner/a/a_test.cc': line}), '')
        said = self.tidy({'runner/a/a.cc': line})
        self.assertIn('runner/a/a.cc:2: error: unmapped": take it from runner/record/', said)
        self.assertIn('runner/a/a.cc:3: error: class_uid": take it from runner/record/', said)

    def test_no_decision_hangs_on_the_text_of_an_error(self):
        said = self.tidy({'runner/a/a.cc': HEAD + 'bool A(Error error) { return error.what.starts_with("x"); }\n'
                                                  'bool B(Status s) { return s.error().what == "x" || s.error().what.empty(); }\n'
                                                  'bool C(Error error) { return error.kind == ErrorKind::kOther; }\n'})
        for line in (2, 3):
            self.assertIn(f'runner/a/a.cc:{line}: error: no decision hangs on the text of an error', said)
        self.assertEqual(len(said.splitlines()), 2)

    def test_a_document_names_files_that_exist(self):
        files = {'runner/a/b/c.cc': HEAD, 'docs/x.md': '# X\n`a/b/c.cc`, `runner/a/b/c.cc`, [y](reference/y.md), `my/own.py`\n',
                 'docs/reference/y.md': '# Y\n'}
        self.assertEqual(self.tidy(files), '')
        self.assertIn('docs/x.md:2: error: a/b/d.cc does not exist', self.tidy({'docs/x.md': '# X\n`a/b/d.cc`\n'}))

    def test_what_makes_a_reader_stumble_is_found_in_documents_messages_and_comments(self):
        said = self.tidy({'docs/x.md': '# X\nA size that\nis none.\n', 'policies/p.yml': '# Whoever reads.\n',
                          'runner/a/a.cc': HEAD + 'auto a = "it is "\n         "no number";\nint b;  // For\n        // nobody.\n',
                          'tests/a/b.cc': HEAD + '// A file\n// of ours.\n'})
        for line in ('docs/x.md:3: error: "is none"', 'policies/p.yml:1: error: "Whoever"', 'runner/a/a.cc:2: error: "is no"',
                     'runner/a/a.cc:5: error: "nobody"', 'tests/a/b.cc:2: error: "file of ours"'):
            self.assertIn(line, said)
        self.assertEqual(self.tidy({'docs/x.md': '# X\nThere is no limit, and it is no longer used.\n', 'policies/p.yml': '# You.\n',
                                    'tests/a/b.cc': HEAD + '// Our file.\n',
                                    'runner/a/a.cc': HEAD + '// This is not a string.\nauto a = "nobody:x:1";\n',
                                    'runner/a/a_test.cc': HEAD + 'auto b = "this is no size";\n'}), '')

    def test_what_users_read_names_things(self):
        said = self.tidy({'docs/x.md': '# X\nThe policy, by\nthen that of main.\n', 'docs/reference/schemas/x.json': '{"a": "It stands."}\n',
                          'runner/a/a.cc': HEAD + 'auto a = "it is "\n         "told";\n'})
        for line in ('docs/x.md:2: error: "by then"', 'docs/x.md:3: error: "that of"', 'docs/reference/schemas/x.json:1: error: "stands"',
                     'runner/a/a.cc:2: error: "told"'):
            self.assertIn(line, said)
        # The controls: comments and decisions are not what users read.
        self.assertEqual(self.tidy({'docs/x.md': '# X\n', 'docs/reference/schemas/x.json': '{}\n',
                                    'docs/decisions.md': '# D\nBeside that of main, as told.\n',
                                    'runner/a/a.cc': HEAD + '// Beside it, as told.\nint a;\n'}), '')

    def test_a_long_header_opens_with_what_it_is_for(self):
        text = HEAD + '{}#pragma once\n' + 'int a;\n' * 40
        include = {'runner/a/a.cc': HEAD + '#include "a/b.h"\n'}
        self.assertIn('runner/a/b.h:2: error: a header of more than 40 lines', self.tidy({'runner/a/b.h': text.format(''), **include}))
        self.assertEqual(self.tidy({'runner/a/b.h': text.format('// What it is for.\n'), **include}), '')

    def test_banned_calls_are_named_with_their_replacement(self):
        output = self.tidy({'runner/a/a.cc': HEAD + 'void F() {\n  ::open("x", 0);\n  std::getenv("X");\n}\n'})
        self.assertIn('runner/a/a.cc:3: error: open() is not for here: sys::Open', output)
        self.assertIn('runner/a/a.cc:4: error: getenv() is not for here: sys::Environment', output)

    def test_calls_of_ours_comments_and_strings_are_no_banned_calls(self):
        self.assertEqual(self.tidy({'runner/a/a.cc': HEAD + '// open(x)\nauto s = "fork(";\nint y = a.open(1);\n'
                                    'int z = sys::pipe(1);\nint w = reopen(1);\nFd socket(7);\n'}), '')
        self.assertIn('socket() is not', self.tidy({'runner/a/a.cc': HEAD + 'int F() {\n  return socket(1);\n}\n'}))

    def test_base_may_call_the_kernel(self):
        self.assertEqual(self.tidy({'runner/base/sys.cc': HEAD + 'int f = ::open("x", 0);\n'}), '')

    def test_exceptions_are_not_thrown(self):
        self.assertIn('throw', self.tidy({'runner/a/a.cc': HEAD + 'void F() { throw 1; }\n'}))

    def test_long_files_and_functions_are_found(self):
        self.assertIn('501 lines, at most 500', self.tidy({'runner/a/a.cc': HEAD + 'int a;\n' * 500}))
        self.assertIn('runner/a/b.cc:2: error: a function of 71 lines',
                      self.tidy({'runner/a/b.cc': HEAD + 'void F() {\n' + '  f;\n' * 69 + '}\n'}))
        self.assertNotIn('b.cc', self.tidy({'runner/a/b.cc': HEAD + 'void F() {\n' + '  f;\n' * 68 + '}\n'}))

    def test_tests_may_be_longer(self):
        self.assertEqual(self.tidy({'runner/a/a_test.cc': HEAD + 'int a;\n' * 799}), '')

    def test_a_missing_licence_line_is_found(self):
        self.assertIn('a.cc:1: error: the first line is', self.tidy({'runner/a/a.cc': 'int a;\n'}))

    def test_leftovers_are_found(self):
        self.assertIn('README.md:2', self.tidy({'README.md': '# One\n' + 'TO' + 'DO: more\n'}))

    def test_registries_are_found_and_other_hosts_are_not(self):
        self.assertIn('a.yml:1', self.tidy({'a.yml': 'host: registry.' + 'npm' + 'js.org\n'}))
        self.assertNotIn('b.yml', self.tidy({'b.yml': 'host: my-registry.' + 'npm' + 'js.organic.example\n'}))

    def test_tabs_are_found(self):
        self.assertIn('a.py:1: error: a tab', self.tidy({'a.py': 'if 1:\tpass\n'}))

    def test_a_document_has_one_first_level_heading(self):
        self.assertIn('2 first-level', self.tidy({'a.md': '# One\n\n# Two\n'}))
        self.assertIn('0 first-level', self.tidy({'b.md': 'text\n'}))
        self.assertNotIn('c.md', self.tidy({'c.md': '# One\n```\n# a comment\n```\n'}))

    def test_large_files_are_found(self):
        self.assertIn('big.bin', self.tidy({'big.bin': b'\xff' * (256 * 1024 + 1)}))

    def test_executable_bits_follow_the_first_line(self):
        self.assertIn('run.py:1: error: the executable bit', self.tidy({'run.py': '#!/usr/bin/env python3\n'}))
        os.chmod(self.root / 'run.py', 0o755)
        self.assertEqual(self.tidy({}), '')

    def test_headers_that_nobody_includes_are_found(self):
        header = {'runner/a/a.h': HEAD + '#pragma once\n', 'runner/a/a.cc': HEAD + '#include "a/a.h"\n'}
        self.assertIn('runner/a/a.h:1: error: no other file includes', self.tidy(header))
        self.assertEqual(self.tidy({'runner/b/b.cc': HEAD + '#include "a/a.h"\n'}), '')

    def test_scripts_that_nobody_names_are_found(self):
        self.tidy({'tests/a/stray.py': '#!/usr/bin/env python3\n'})
        os.chmod(self.root / 'tests/a/stray.py', 0o755)
        self.assertIn('stray.py:1: error: no other file names', self.tidy({}))
        self.assertEqual(self.tidy({'tests/CMakeLists.txt': 'add_test(stray.py)\n'}), '')

    def test_files_of_a_folder_share_no_name_of_their_own(self):
        def file(*lines):
            return HEAD + '#include "a/a.h"\nnamespace a {\nnamespace {\n' + '\n'.join(lines) + '\n}  // namespace\n}  // namespace a\n'

        self.tidy({'runner/a/a.h': HEAD + '#pragma once\n',
                   'runner/a/one.cc': file('constexpr int kMany = 1;', 'struct Both {};', 'int Get(int a,', '        char b) {', '}')})
        for line, name in (('constexpr long kMany = 2;', 'kMany'), ('class Both {', 'Both'), ('int Get(int x, char y) {', 'Get(int, char)')):
            self.assertIn(f'runner/a/two.cc:5: error: {name} is in runner/a/one.cc too', self.tidy({'runner/a/two.cc': file(line, '}')}))
        self.assertEqual(self.tidy({'runner/a/two.cc': file('int Get(long a, char b) {', '}', 'struct Both;', '// kMany = 3')}), '')
        self.assertEqual(self.tidy({'runner/b/b.cc': file('struct Both {', '};')}), '')

    def test_versions_agree(self):
        self.assertIn('says 0.2.0', self.tidy({'CMakeLists.txt': 'project(agentic-ci VERSION 0.1.0)\n',
                                               'runner/base/version.h': HEAD + '#pragma once\nkVersion = "0.2.0";\n',
                                               'runner/a/a.cc': HEAD + '#include "base/version.h"\n'}))


if __name__ == '__main__':
    unittest.main()
