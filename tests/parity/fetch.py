#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fetches the projects of projects.yml by the client of their registry, and builds what their tests need.

usage: fetch.py DIRECTORY NAME...|--quick    DIRECTORY/NAME/checkout, and beside it what is installed for it

Everything is made outside the sandbox, once; `test` beside the checkout is the script that runs the tests and prints
their results, with @TEST@ and @ARGUMENTS@ for those of the project's entry, and @PLACE@ for its directory, which may be
copied from another checkout.
"""
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

import yaml

HERE = pathlib.Path(__file__).resolve().parent
PYTHON = '/usr/bin/python3'  # Not one below a home directory: the agent cannot enter it.
BUILD_SECONDS = 1800
RESULTS = 'parity-results'


class Unavailable(Exception):
    """Why a project is not there."""


def projects():
    """The list, by name."""
    listed = {entry['name']: entry for entry in yaml.safe_load((HERE / 'projects.yml').read_text())}
    differences = yaml.safe_load((HERE / 'differences.yml').read_text())
    unknown = set(differences) - set(listed)
    if unknown:
        sys.exit(f'differences.yml: no project is called {" or ".join(sorted(unknown))}')
    for name, entry in listed.items():
        entry['version'] = str(entry['version'])
        entry['differs'] = differences.get(name, {})
    return listed


def call(*command, cwd=None, **environment):
    """Runs a client, and answers what it printed."""
    done = subprocess.run([str(word) for word in command], cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          env={**os.environ, **{name: str(value) for name, value in environment.items()}}, timeout=BUILD_SECONDS)
    if done.returncode:
        lines = (done.stderr.strip() or done.stdout.strip()).splitlines()[-12:]
        raise Unavailable(f'{" ".join(str(word) for word in command[:4])}: ' + '\n'.join(lines))
    return done.stdout


def program(name):
    """The whole path of a program that the agent can reach; a program below a home directory does not count."""
    path = shutil.which(name, path='/usr/local/go/bin:/usr/local/bin:/usr/bin:/bin') or shutil.which(name)
    if path is None:
        raise Unavailable(f'{name} is not installed')
    return path


def unpack(archive, target):
    """The one directory in an archive becomes `target`."""
    fresh = target.parent / 'unpacked'
    fresh.mkdir(parents=True, exist_ok=True)
    shutil.unpack_archive(archive, fresh, **({'filter': 'tar'} if not str(archive).endswith('.zip') else {}))
    entries = list(fresh.iterdir())
    (entries[0] if len(entries) == 1 else fresh).rename(target)
    shutil.rmtree(fresh, ignore_errors=True)


def go(project, place, checkout):
    """Test programs of the module, one for each package, run in the package's directory."""
    tool = program('go')
    module = f'{project["package"]}@{project["version"]}'
    found = json.loads(call(tool, 'mod', 'download', '-json', module, cwd=place, GO111MODULE='on'))
    shutil.copytree(found['Dir'], checkout)
    call('chmod', '-R', 'u+w', checkout)
    if not (checkout / 'go.mod').exists():
        call(tool, 'mod', 'init', project['package'], cwd=checkout)
    environment = {'GOFLAGS': '-mod=mod', 'GOTOOLCHAIN': 'local', 'CGO_ENABLED': '1'}
    programs = place / 'tests'
    programs.mkdir()
    lines = []
    for package in project.get('packages', ['./...']):
        listed = call(tool, 'list', '-f', '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}} {{.Dir}}{{end}}', package,
                      cwd=checkout, **environment)
        for line in filter(None, listed.splitlines()):
            path, directory = line.split(' ', 1)
            name = path.replace('/', '_') + '.test'
            call(tool, 'test', '-c', '-vet=off', '-o', programs / name, path, cwd=checkout, **environment)
            lines.append(f'echo "=== suite {path}"; (cd "./{os.path.relpath(directory, checkout)}" && '
                         f'{programs / name} -test.v -test.timeout=110s @ARGUMENTS@ 2>&1)')
    return '\n'.join(lines)


def python(project, place, checkout):
    """The source distribution, installed into a virtual environment beside it."""
    archive = place / 'archive'
    call(PYTHON, '-m', 'pip', 'download', '-q', '--no-deps', '--no-binary', project['package'], '-d', archive,
         f'{project["package"]}=={project["version"]}')
    unpack(next(archive.glob('*.*')), checkout)
    call(PYTHON, '-m', 'venv', '--without-pip', place / 'venv')
    pip = [PYTHON, '-m', 'pip', '--python', place / 'venv/bin/python', 'install', '-q']
    call(*pip, 'pytest<9', 'pytest-timeout', *project.get('needs', []), cwd=place)
    call(*pip, project.get('install', '.'), cwd=checkout)
    interpreter = place / 'venv/bin/python'
    return (f'export PYTHONDONTWRITEBYTECODE=1 PATH={place}/venv/bin:$PATH\n{interpreter} -m pytest -q -p no:cacheprovider '
            f'--timeout=60 -o junit_family=xunit1 --junitxml="$TMPDIR/{RESULTS}.xml" @ARGUMENTS@ 2>&1\ncat "$TMPDIR/{RESULTS}.xml"')


def rust(project, place, checkout):
    """The crate as it was published, its test programs built outside, run in its directory."""
    tool = program('cargo')
    fetcher = place / 'fetcher'
    (fetcher / 'src').mkdir(parents=True)
    (fetcher / 'src/lib.rs').write_text('')
    (fetcher / 'Cargo.toml').write_text(f'[package]\nname = "fetcher"\nversion = "0.0.0"\nedition = "2021"\n'
                                        f'[dependencies]\n{project["package"]} = "={project["version"]}"\n')
    call(tool, 'vendor', '-q', '--versioned-dirs', place / 'vendor', cwd=fetcher)
    shutil.copytree(place / f'vendor/{project["package"]}-{project["version"]}', checkout)
    shutil.rmtree(place / 'vendor')
    (checkout / '.cargo-checksum.json').unlink()
    built = call(tool, 'test', '--no-run', '-q', '--message-format=json', *shlex.split(project.get('features', '')), cwd=checkout,
                 CARGO_TARGET_DIR=place / 'target', RUSTFLAGS='--cap-lints=allow')
    lines = []
    for line in built.splitlines():
        message = json.loads(line)
        if message.get('executable') and message.get('profile', {}).get('test'):
            target = message['target']
            lines.append(f'echo "=== suite {target["kind"][0]} {target["name"]}"; '
                         f'CARGO_MANIFEST_DIR=$PWD {message["executable"]} @ARGUMENTS@ 2>&1')
    for waste in (place / 'target/debug/incremental', place / 'target/debug/build', place / 'target/debug/.fingerprint'):
        if not project.get('keep'):
            shutil.rmtree(waste, ignore_errors=True)
    return '\n'.join(sorted(lines))


def javascript(project, place, checkout):
    """The package as it was published, with what it depends on."""
    node, npm = program('node'), program('npm')
    named = call(npm, 'pack', '--silent', f'{project["package"]}@{project["version"]}', cwd=place).strip()
    unpack(place / named, checkout)
    call(npm, 'pkg', 'delete', 'devDependencies', cwd=checkout)  # Only `needs` of them: the others lint and publish.
    call(npm, 'install', '--no-save', '--ignore-scripts', '--no-audit', '--no-fund', '--silent', *project.get('needs', []),
         cwd=checkout)
    return f'export PATH=$PWD/node_modules/.bin:{os.path.dirname(node)}:$PATH\n(@TEST@) 2>&1'


def java(project, place, checkout):
    """The published classes of the tests, run by JUnit's own launcher."""
    mvn, jars = program('mvn'), place / 'jars'
    group, artifact = project['package'].split(':')
    coordinates = f'{group}:{artifact}:{project["version"]}'

    def copy(what):
        call(mvn, '-B', '-q', 'dependency:copy', f'-Dartifact={what}', f'-DoutputDirectory={jars}', cwd=place)

    copy(f'{coordinates}:pom')
    (place / 'pom.xml').write_bytes((jars / f'{artifact}-{project["version"]}.pom').read_bytes())
    call(mvn, '-B', '-q', 'dependency:copy-dependencies', '-DincludeScope=test', f'-DoutputDirectory={jars}', cwd=place)
    for what in (f'{coordinates}:jar', f'{coordinates}:jar:{project.get("classifier", "tests")}', *project.get('needs', [])):
        copy(what)
    copy('org.junit.platform:junit-platform-console-standalone:1.10.2')
    checkout.mkdir()
    tests = jars / f'{artifact}-{project["version"]}-{project.get("classifier", "tests")}.jar'
    shutil.unpack_archive(tests, checkout / 'src/test/resources', 'zip')
    console = jars / 'junit-platform-console-standalone-1.10.2.jar'
    others = ':'.join(str(jar) for jar in sorted(jars.glob('*.jar')) if not jar.name.startswith(('junit-platform', 'junit-jupiter')))
    return (f'{program("java")} -jar {console} execute -cp $PWD/src/test/resources:{others} @ARGUMENTS@ '
            f'--disable-banner --details=none --reports-dir "$TMPDIR/{RESULTS}" 2>&1\ncat "$TMPDIR/{RESULTS}"/*.xml')


def c(project, place, checkout):
    """Debian's source package, with a source index of its own beside it, so that nothing on the machine changes."""
    apt = place.parent / 'apt'
    options = ['-o', 'Dir::Etc::sourcelist=/dev/null', '-o', f'Dir::Etc::sourceparts={apt}/sources.d',
               '-o', f'Dir::State::Lists={apt}/lists', '-o', 'Dir::Cache::pkgcache=', '-o', 'Dir::Cache::srcpkgcache=',
               '-o', 'APT::Sandbox::User=']
    if not (apt / 'ready').exists():
        (apt / 'sources.d').mkdir(parents=True, exist_ok=True)
        (apt / 'lists/partial').mkdir(parents=True, exist_ok=True)
        lines = call(HERE.parents[1] / 'tools/debian-sources')
        (apt / 'sources.d/debian.list').write_text(re.sub(r'^deb ', 'deb-src ', lines, flags=re.MULTILINE))
        call('apt-get', *options, 'update', '-qq')
        (apt / 'ready').touch()
    work = place / 'work'
    work.mkdir()
    call('apt-get', *options, 'source', '-qq', project['package'], cwd=work)
    found = next(path for path in work.iterdir() if path.is_dir())
    if not found.name.endswith(f'-{project["version"]}'):
        raise Unavailable(f'the archive has {found.name}, not {project["version"]}')
    found.rename(checkout)
    # Debian's patches are newer than what the archive has generated; nothing is to be generated again.
    for names in (['aclocal.m4'], ['configure', '*.in', '*.hin']):
        matches = [word for name in names for word in ('-o', '-name', name)][1:]
        call('find', '.', '(', *matches, ')', '-exec', 'touch', '{}', '+', cwd=checkout)
    call('/bin/sh', '-ec', project['build'], cwd=checkout, CC='gcc', CFLAGS='-O1 -w', MAKEINFO='true', HELP2MAN='true')
    return '(@TEST@) 2>&1'


# What the directory of a project depends on; the rest of its entry is read when its tests run.
MADE_FROM = ('package', 'version', 'needs', 'packages', 'features', 'build', 'removes', 'classifier')
LANGUAGES = {'Go': go, 'Python': python, 'Rust': rust, 'JavaScript': javascript, 'Java': java, 'C': c}


def fetch(project, directory):
    """Makes DIRECTORY/NAME of a project, once; answers the path."""
    place = directory / project['name']
    wanted = json.dumps({key: project.get(key) for key in MADE_FROM})
    if (place / 'test').exists() and (place / 'made-from').read_text() == wanted:
        return place
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    script = LANGUAGES[project['language']](project, place, place / 'checkout')
    for word in project.get('removes', []):
        call('rm', '-r', place / 'checkout' / word)
    call('chown', '-R', f'{os.geteuid()}:{os.getegid()}', place / 'checkout')  # Archives have owners of their own.
    call('chmod', '-R', 'a+rX,u+w', place)
    (place / 'made-from').write_text(wanted)
    (place / 'test').write_text(script.replace(str(place), '@PLACE@') + '\n')
    return place


def main():
    directory, *names = sys.argv[1:]
    listed = projects()
    if names == ['--quick']:
        names = [name for name, project in listed.items() if project.get('quick')]
    failed = 0
    for name in names:
        try:
            fetch(listed[name], pathlib.Path(directory).resolve())
        except (Unavailable, OSError, StopIteration, subprocess.TimeoutExpired) as why:
            failed += 1
            print(f'{name}: {why}', file=sys.stderr)
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
