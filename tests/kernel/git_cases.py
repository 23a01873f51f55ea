# SPDX-License-Identifier: Apache-2.0
"""Git in the sandbox answers and writes as outside, and what a patch cannot carry is named."""
import os

from harness import ROOT, Case, git, only_as, only_in, read, write

# Plumbing that does not refresh the index, as version scripts call it.
CLEAN = ('git diff-index --quiet HEAD --; echo "index=$?"; git diff-files --quiet; echo "files=$?";'
         'git describe --always --dirty')
WRITES = '''set -e
echo more >> README.md; git add -A; git config test.key value; git commit -qm "the work"
git checkout -q -b other; echo else > else; git add -A; git commit -qm "on the side"
git checkout -q -; git tag -a v1 -m "first release"; git tag light
echo stashed >> README.md; git stash push -qm "for later"; git log -1 --format=%an:%ae
'''


class GitTest(Case):
    def setUp(self):
        super().setUp()
        os.chmod(self.dir, 0o755)  # In tier landlock root's agent is another user.

    def named(self, run):
        return sorted(f['message'] for f in run.record['findings'] if f['rule'] == 'git-ref')

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

    def writes(self, checkout):
        """Git writes in the sandbox; the host's repository stays as it is, and what is lost is named."""
        before = self.state(checkout)
        run = self.shell(WRITES, checkout=checkout)
        self.assertEqual(run.out.split('\n')[-2], 'agentic-ci:noreply@agentic-ci.invalid')
        self.assertEqual(self.state(checkout), before)
        patch = read(run.report + '/changes.patch')
        self.assertIn('+more', patch)
        self.assertNotIn('else', patch)
        self.assertNotIn('stashed', patch)
        self.assertEqual(self.named(run), [
            "the agent's branch other is not part of the patch: on the side",
            "the agent's stash stash@{0} is not part of the patch: On "
            + git(checkout, 'rev-parse', '--abbrev-ref', 'HEAD') + ': for later',
            "the agent's tag light is not part of the patch: the work",
            "the agent's tag v1 is not part of the patch: first release"])
        for message in self.named(run):
            self.assertIn(message, run.err)
        return run

    def state(self, checkout):
        common = os.path.join(checkout, git(checkout, 'rev-parse', '--git-common-dir'))
        files = {}
        for directory, _, names in os.walk(common):
            files.update({os.path.join(directory, name): read(os.path.join(directory, name)) for name in names})
        return files, git(checkout, 'rev-parse', 'HEAD')

    def test_commits_branches_tags_and_stashes_in_a_checkout(self):
        self.writes(self.checkout)
        quiet = self.shell('echo x >> README.md; git add -A; git commit -qm work')
        self.assertEqual(self.named(quiet), [])

    def test_identity_of_the_repository_takes_precedence(self):
        git(self.checkout, 'config', 'user.name', 'Somebody')
        run = self.shell('git commit -q --allow-empty -m x; git log -1 --format=%an:%ae')
        self.assertEqual(run.out, 'Somebody:noreply@agentic-ci.invalid\n')

    def test_hooks_of_the_checkout_run_wherever_git_is_told_to_find_them(self):
        commit = 'echo 1 >n; git add n; git commit -qm n; cat ran || true'
        for path, told in (('.git/hooks', None), ('.husky/_', '.husky/_'), ('.husky/_', self.checkout + '/.husky/_')):
            with self.subTest(told=told):
                write(f'{self.checkout}/{path}/pre-commit', f'#!/bin/sh\necho {path} >>ran\n', 0o755)
                if told:
                    git(self.checkout, 'config', 'core.hooksPath', told)
                self.assertEqual(self.shell(commit).out.splitlines(), [path])
        outside = self.dir + '/hooks'
        write(outside + '/pre-commit', '#!/bin/sh\necho outside >>ran\n', 0o755)
        git(self.checkout, 'config', 'core.hooksPath', outside)  # The control: what is not in the checkout is not there.
        self.assertNotIn('outside', self.shell(commit).out)

    def test_a_merge_of_the_base_branch_is_judged_by_what_the_agent_changed(self):
        base = git(self.checkout, 'rev-parse', '--abbrev-ref', 'HEAD')
        git(self.checkout, 'checkout', '-q', '-b', 'fix')
        write(self.checkout + '/README.md', 'of the branch\n')
        git(self.checkout, 'commit', '-qam', 'of the branch')
        git(self.checkout, 'checkout', '-q', base)
        write(self.checkout + '/README.md', 'of the base\n')
        write(self.checkout + '/.github/workflows/ci.yml', 'on: push\n')
        git(self.checkout, 'add', '-A')
        git(self.checkout, 'commit', '-qm', 'of the base')
        merged = git(self.checkout, 'rev-parse', 'HEAD')
        git(self.checkout, 'checkout', '-q', 'fix')
        options = ['--policy-ref', 'refs/heads/' + base]
        resolve = 'echo of both >README.md; git add -A;'
        for how in ('git commit -qm merged', 'true'):  # Also where the agent has not finished the merge.
            with self.subTest(how):
                run = self.shell(f'git merge -q {base}; {resolve} {how}', options=options)
                self.assertEqual((run.record['outcome']['kind'], run.record['changes']['merged']), ('success', merged), run.err)
        for change in ('echo "on: issues" >.github/workflows/ci.yml', 'chmod 755 .github/workflows/ci.yml'):
            with self.subTest(change):
                run = self.shell(f'git merge -q {base}; {resolve} {change}; git add -A; git commit -qm merged', options=options, code=77)
                self.assertEqual((run.record['outcome']['kind'], run.record['changes']['merged']), ('refused', merged), run.err)
        # Without a merge, the base branch's file is the agent's like any other.
        run = self.shell(f'git checkout -q {base} -- .github', options=options, code=77)
        self.assertEqual((run.record['outcome']['kind'], run.record['changes']['merged']), ('refused', ''), run.err)

    def test_git_writes_in_a_linked_worktree(self):
        git(self.checkout, 'worktree', 'add', '-q', '-b', 'tree', self.dir + '/tree')
        self.writes(self.dir + '/tree')

    def test_git_writes_in_a_submodule_and_with_a_git_directory_elsewhere(self):
        git(self.dir, 'clone', '-q', '--separate-git-dir', self.dir + '/store', self.checkout, 'apart')
        self.writes(self.dir + '/apart')
        git(self.checkout, '-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add',
            self.dir + '/apart', 'sub')
        self.writes(self.checkout + '/sub')

    @only_in('namespaces')
    def test_git_does_not_write_outside_where_the_policy_closes_the_checkout(self):
        git(self.checkout, 'worktree', 'add', '-q', '-b', 'tree', self.dir + '/tree')
        policy = self.policy('version: 1\nfilesystem_policy:\n  include_workdir: false\n'
                             f'  read_only: [/usr, "{self.dir}/tree"]\n')
        run = self.shell('git -c user.name=a tag v1 || echo refused', checkout=self.dir + '/tree',
                         options=['--policy', policy])
        self.assertIn('refused\n', run.out)
        self.assertEqual(self.named(run), [])

    @only_as('root')
    @only_in('landlock')
    def test_objects_that_the_agents_user_cannot_reach_are_named(self):
        self.feature('root', ROOT, 'an ordinary user has its own agent')
        git(self.checkout, 'worktree', 'add', '-q', '-b', 'tree', self.dir + '/tree')
        line, _ = self.command(['true'], ['--plan-only'], checkout=self.dir + '/tree')
        self.assertNotIn('git does not work', self.outside(' '.join(line)))  # Control.
        os.chmod(self.checkout, 0o700)
        self.assertIn(f"git does not work: the agent's user cannot enter {self.checkout}\n",
                      self.outside(' '.join(line)))
