#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: programs_test.py AGENTIC-CI SOURCE BUILD [unittest arguments]   BUILD: where packages of registries are kept

As an ordinary user, where this is root: that is what the programs are for.
"""
import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

USER = 12345  # Of no account.
MODULES = ('clients_cases', 'inspect_cases', 'harbor_cases', 'deepagents_cases')
# Shows the frameworks at their place, and the directories up to `--` in a home that only its owner may enter, to what is
# started here.
SHOW = '''set -eu
home=$1 frameworks=$2 place=$3; shift 3
mount --make-rprivate /
mount --bind "$frameworks" "$place/lib"
if [ "$1" != -- ]; then
  at=0; for path; do [ "$path" != -- ] || break; at=$((at + 1)); mkdir -p "$place/$at"; mount --bind "$path" "$place/$at"; done
  mount -t tmpfs -o mode=0755 shown "$home"
  at=0; while [ "$1" != -- ]; do at=$((at + 1)); mkdir -p "$1"; mount --bind "$place/$at" "$1"; umount "$place/$at"; shift; done
fi
shift
exec "$@"
'''


def hidden(python):
    """Where the files of `python` are, if only this user can reach them."""
    done = subprocess.run([python, '-c', 'import sys; print(sys.base_prefix)'], stdout=subprocess.PIPE, text=True, check=True)
    prefix = done.stdout.strip()
    home = os.path.expanduser('~')
    return prefix if prefix.startswith(home + '/') and not os.stat(home).st_mode & 0o001 else None


def prepare(base, source, build):
    """Copies what the cases need where every user may read it, installs and compiles the clients as a user would, and says
    where everything is. What cannot be had is said on standard error, and the cases about it are skipped."""
    for name in ('tests/programs', 'examples/programs', 'tests/image_run', 'tests/services', 'tests/sigstore'):
        shutil.copytree(source / name, base / name, ignore=shutil.ignore_patterns('__pycache__', 'node_modules', 'build'))
    shutil.copy(source / 'tests/session/harness.py', base / 'tests/programs')
    found = {'PROGRAMS_TEST_LIB': str(build / 'programs')}
    for name in ('inspect', 'harbor', 'deepagents'):
        add(found, name, [source / 'tests/programs/install', build / 'programs', name])
    add(found, 'typescript', [source / 'tests/sigstore/install', build / 'typescript', source / 'tests/programs/package.json'])
    programs = base / 'examples/programs'
    subprocess.run(['/usr/bin/python3', '-m', 'venv', '--without-pip', base / 'venv'], check=True)
    pip = ['/usr/bin/python3', '-m', 'pip', '--python', base / 'venv/bin/python', 'install', '-q', '--disable-pip-version-check']
    if subprocess.run([*pip, programs / 'python']).returncode == 0:
        found['PROGRAMS_TEST_PYTHON'] = str(base / 'venv/bin/python')
    elif subprocess.run([*pip, 'setuptools>=61'], stderr=subprocess.DEVNULL).returncode == 0:
        sys.exit('the client for Python cannot be installed')
    if 'PROGRAMS_TEST_TYPESCRIPT' in found:
        place = base / 'node'
        package = shutil.copytree(programs / 'typescript', place / 'node_modules/agentic-ci-client')
        modules = pathlib.Path(found['PROGRAMS_TEST_TYPESCRIPT'])
        for name in ('@types', 'undici-types'):
            shutil.copytree(modules / name, place / 'node_modules' / name)
        subprocess.run(['node', modules / 'typescript/bin/tsc'], cwd=package, check=True)
        shutil.copy(base / 'tests/programs/scenario.mjs', place)
        found['PROGRAMS_TEST_NODE'] = str(place / 'scenario.mjs')
    if shutil.which('go'):
        shutil.copytree(base / 'tests/programs/go', base / 'go/main')
        shutil.copytree(programs / 'go', base / 'go/agenticci')
        (base / 'go/go.work').write_text('go 1.21\n\nuse (\n\t./main\n\t./agenticci\n)\n')
        offline = dict(os.environ, GOTOOLCHAIN='local', GOPROXY='off', GOCACHE=str(build / 'programs/go-cache'))
        for words, place in ((['vet', '.'], 'agenticci'), (['build', '-o', base / 'go/program', '.'], 'main')):
            subprocess.run(['go', *words], cwd=base / 'go' / place, env=offline, check=True)
        found['PROGRAMS_TEST_GO'] = str(base / 'go/program')
    return found


def add(found, name, command):
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode == 0:
        found['PROGRAMS_TEST_' + name.upper()] = done.stdout.strip()


def main():
    if 'SESSION_TEST_BIN' in os.environ:
        result = unittest.TextTestRunner(verbosity=2).run(unittest.TestLoader().loadTestsFromNames(sys.argv[1:]))
        sys.exit(not (result.wasSuccessful() and result.testsRun))
    base = pathlib.Path(tempfile.mkdtemp(prefix='programs-bin-'))
    try:
        base.chmod(0o755)
        binary = shutil.copy(sys.argv[1], base / 'agentic-ci')
        env = dict(os.environ, SESSION_TEST_BIN=str(binary), PYTHONDONTWRITEBYTECODE='1', HOME=str(base / 'home'),
                   TMPDIR=str(base / 'user'))
        env.update(prepare(base, pathlib.Path(sys.argv[2]).resolve(), pathlib.Path(sys.argv[3]).resolve()))
        command = ['/usr/bin/python3', base / 'tests/programs/programs_test.py']
        as_user = os.geteuid() == 0
        for name in ('home', 'user'):
            (base / name).mkdir()
            if as_user:
                os.chown(base / name, USER, USER)
        if as_user:
            command = ['setpriv', f'--reuid={USER}', f'--regid={USER}', '--clear-groups', *command]
            shown = sorted({place for name in ('INSPECT', 'HARBOR', 'DEEPAGENTS') if (python := env.get('PROGRAMS_TEST_' + name))
                            if (place := hidden(python))})
            (base / 'shown/lib').mkdir(parents=True)
            frameworks = env['PROGRAMS_TEST_LIB']
            env['PROGRAMS_TEST_LIB'] = str(base / 'shown/lib')
            pathlib.Path(frameworks).mkdir(exist_ok=True)
            command = ['unshare', '--mount', 'sh', '-c', SHOW, 'sh', os.path.expanduser('~'), frameworks, base / 'shown', *shown,
                       '--', *command]
        # At once: most of the time, they wait.
        def run(names):
            done = subprocess.run([*command, *names], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            print(done.stdout, flush=True)
            return done.returncode
        with concurrent.futures.ThreadPoolExecutor() as pool:
            sys.exit(max(pool.map(run, [sys.argv[4:]] if sys.argv[4:] else [[module] for module in MODULES])))
    finally:
        shutil.rmtree(base, ignore_errors=True)


if __name__ == '__main__':
    main()
