# SPDX-License-Identifier: Apache-2.0
"""Git in the sandbox answers and writes as outside."""
import os

from harness import Case, git, read

# Plumbing that does not refresh the index, as version scripts call it.
CLEAN = ('git diff-index --quiet HEAD --; echo "index=$?"; git diff-files --quiet; echo "files=$?";'
         'git describe --always --dirty')


class GitTest(Case):
    def aged(self):
        """A checkout whose files are older than its index, so that git goes by what the index says of them."""
        os.utime(self.checkout + '/README.md', (1_500_000_000, 1_500_000_000))
        git(self.checkout, 'update-index', '--refresh')
        git(self.checkout, 'tag', 'v0')

    def test_clean_checkout_is_clean_without_a_refresh(self):
        self.aged()
        expected = self.outside(CLEAN)
        self.assertIn('index=0\nfiles=0\n', expected)  # Control.
        self.assertEqual(self.shell(CLEAN).out, expected)
        changed = self.shell('echo hellO > README.md; touch -d @1500000000 README.md;' + CLEAN)
        self.assertIn('index=0', changed.out)  # Same size and time: as with any checkStat=minimal.
        self.assertIn('+hellO', read(changed.report + '/changes.patch'))
        self.assertIn('index=1\nfiles=1\n', self.shell('echo x >> README.md;' + CLEAN).out)

    def test_identity_of_the_repository_takes_precedence(self):
        git(self.checkout, 'config', 'user.name', 'Somebody')
        run = self.shell('git commit -q --allow-empty -m x; git log -1 --format=%an:%ae')
        self.assertEqual(run.out, 'Somebody:noreply@agentic-ci.invalid\n')
