#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random edits through a real overlay, captured, applied with `git apply` and with ours, compared.

overlay_test.py PROBE [SEED] [ROUNDS]

Every round makes a base tree, edits it through an overlayfs in an unprivileged user namespace
(userxattr, as the sandbox mounts it), captures the upper layer, and applies the patch to two fresh
copies of the base. Both must then equal the edited tree byte for byte, modes and links included.
"""
import os
import random
import shutil
import stat
import subprocess
import sys
import tempfile

PROBE = os.path.abspath(sys.argv[1])
SEED = int(sys.argv[2]) if len(sys.argv) > 2 and sys.argv[1] != "--edit" else 20240607
ROUNDS = int(sys.argv[3]) if len(sys.argv) > 3 and sys.argv[1] != "--edit" else 80
ENV = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1",
       "GIT_CONFIG_GLOBAL": "/dev/null", "LC_ALL": "C", "GIT_CEILING_DIRECTORIES": "/",
       "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "")}

# Runs in the namespace: mounts, lets `edit` happen on the merged tree, leaves a copy of the result.
INSIDE = r"""
set -eu
mount -t overlay overlay -o "userxattr,lowerdir=$1/base,upperdir=$1/upper,workdir=$1/work" "$1/merged"
python3 "$2" --edit "$1/merged" "$3"
cp -a "$1/merged/." "$1/want/"
"""

NAMES = [b"a", b"b", b"c", b"src", b"lib", b"a b", b"tab\tname", b"new\nline", b"quo\"te", b"back\\slash",
         "ünïcode".encode(), b"\xff\xfe-bad", b"-dash", b"x.txt", b"end ", b"#hash", b"\x01ctl", b"'s", b"~t"]


def content(rng):
    kind = rng.randrange(10)
    if kind == 0:
        return b""
    if kind == 1:
        return rng.randbytes(rng.randrange(1, 5000))
    if kind == 2:
        return b"no newline at the end"
    if kind == 3:
        return b"".join(b"line %d\r\n" % rng.randrange(50) for _ in range(rng.randrange(1, 30)))
    if kind == 4:
        return b"text first\n" * 900 + b"\0 and a zero late\n"
    if kind == 5:
        return b"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n" * rng.randrange(1, 4)
    return b"".join(b"line %d\n" % rng.randrange(200) for _ in range(rng.randrange(1, 60)))


def walk(root):
    """Directories and files (also links) beneath root, without .git, as bytes, sorted."""
    directories, files = [], []
    for at, names, others in os.walk(os.fsencode(root)):
        if b".git" in names:
            names.remove(b".git")
        for name in list(names):
            path = os.path.join(at, name)
            (files if os.path.islink(path) else directories).append(path)
        files += [os.path.join(at, name) for name in others]
    return sorted(directories), sorted(files)


def place(rng, root):
    directories, _ = walk(root)
    return os.path.join(rng.choice([os.fsencode(root)] + directories), rng.choice(NAMES))


def remove(path):
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)


def create(rng, root):
    path = place(rng, root)
    if os.path.lexists(path) and rng.random() < 0.5:
        return
    remove(path)
    kind = rng.randrange(6)
    if kind == 0:
        os.mkdir(path)
        for name in rng.sample(NAMES, 3):
            with open(os.path.join(path, name), "wb") as out:
                out.write(content(rng))
    elif kind == 1:
        os.symlink(rng.choice([b"a", b"../x", b"src/lib", b"/etc/passwd", b"new\nline"]), path)
    else:
        with open(path, "wb") as out:
            out.write(content(rng))
        os.chmod(path, rng.choice([0o644, 0o755, 0o600, 0o4755]))


def change(rng, root):
    """One random edit, of the sort agents and build tools make."""
    directories, files = walk(root)
    kind = rng.randrange(12)
    regular = [f for f in files if not os.path.islink(f)]
    if kind in (0, 1) or not regular:
        create(rng, root)
    elif kind in (2, 3):
        path = rng.choice(regular)
        with open(path, "rb") as file:
            lines = file.read().splitlines(True)
        lines.insert(rng.randrange(len(lines) + 1), b"inserted %d\n" % rng.randrange(99))
        with open(path, "wb") as out:
            out.write(b"".join(lines))
    elif kind == 4:
        os.chmod(rng.choice(regular), rng.choice([0o644, 0o755, 0o700]))
    elif kind == 5:
        os.unlink(rng.choice(files))
    elif kind == 6 and directories:
        shutil.rmtree(rng.choice(directories))
    elif kind == 7:
        source, target = rng.choice(files), place(rng, root)
        if not (os.path.isdir(target) and not os.path.islink(target)):
            os.rename(source, target)
    elif kind == 8 and directories:
        # A lower directory cannot be renamed without redirect_dir: tools copy it instead.
        source, target = rng.choice(directories), place(rng, root)
        if not os.path.lexists(target) and not target.startswith(source + b"/"):
            shutil.copytree(source, target, symlinks=True)
            shutil.rmtree(source)
    elif kind == 9:
        os.utime(rng.choice(regular))
    elif kind == 10 and directories:
        # Gone and made anew: an opaque directory, in part with what it held before.
        path = rng.choice(directories)
        kept = [(os.path.basename(f), open(f, "rb").read(), os.stat(f).st_mode)
                for f in walk(path)[1] if os.path.dirname(f) == path and not os.path.islink(f)]
        shutil.rmtree(path)
        os.mkdir(path)
        for name, data, mode in kept[: len(kept) // 2 + 1]:
            with open(os.path.join(path, name), "wb") as out:
                out.write(data)
            os.chmod(os.path.join(path, name), stat.S_IMODE(mode))
    else:
        path = rng.choice(files + directories)
        remove(path)
        if rng.random() < 0.5:
            os.symlink(b"a", path)
        else:
            with open(path, "wb") as out:
                out.write(content(rng))


def snapshot(root):
    """What git sees of a tree: path to kind, executable, bytes."""
    seen = {}
    for path in walk(root)[1]:
        name = os.path.relpath(path, os.fsencode(root))
        info = os.lstat(path)
        if stat.S_ISLNK(info.st_mode):
            seen[name] = ("link", False, os.readlink(path))
        else:
            with open(path, "rb") as file:
                seen[name] = ("file", bool(info.st_mode & 0o100), file.read())
    return seen


def run(*command, **options):
    return subprocess.run(command, env=ENV, capture_output=True, **options)


def fail(where, message):
    sys.exit(f"FAIL: {message}\n  seed {SEED}, kept in {where}")


def differences(want, got):
    return [n for n in sorted(set(want) | set(got)) if want.get(n) != got.get(n)]


def one_round(number, where):
    rng = random.Random(f"{SEED}/{number}")
    for name in ("base", "upper", "work", "merged", "want"):
        os.mkdir(f"{where}/{name}")
    for _ in range(rng.randrange(5, 25)):
        create(rng, f"{where}/base")
    run("git", "init", "-q", f"{where}/base", check=True)
    done = run("unshare", "-Urm", "sh", "-c", INSIDE, "sh", where, os.path.abspath(__file__),
               f"{SEED}/{number}")
    if done.returncode != 0:
        fail(where, f"round {number}: editing: {done.stderr.decode()}")
    patch = f"{where}/changes.patch"
    done = run(PROBE, "capture", f"{where}/upper", f"{where}/base", patch)
    if done.returncode != 0:
        fail(where, f"round {number}: capture: {done.stderr.decode()}")
    want = snapshot(f"{where}/want")
    unchanged = want == snapshot(f"{where}/base")
    if unchanged != (os.path.getsize(patch) == 0):
        fail(where, f"round {number}: patch of {os.path.getsize(patch)} bytes, unchanged {unchanged}")
    if unchanged:
        return 0
    done = run(PROBE, "judge", f"{where}/upper", f"{where}/base")
    if done.returncode != 0 or b"patch" in done.stdout:
        fail(where, f"round {number}: our reader and the records disagree: {done.stdout.decode()}")
    shutil.copytree(f"{where}/base", f"{where}/theirs", symlinks=True)
    for check in (["--check"], []):
        done = run("git", "apply", *check, patch, cwd=f"{where}/theirs")
        if done.returncode != 0:
            fail(where, f"round {number}: git apply {check}: {done.stderr.decode()}")
    wrong = differences(want, snapshot(f"{where}/theirs"))
    if wrong:
        fail(where, f"round {number}: after git apply these differ: {wrong}")
    shutil.copytree(f"{where}/base", f"{where}/ours", symlinks=True)
    done = run(PROBE, "apply", f"{where}/ours", patch, "--no-repository")
    outside = any(kind == "link" and data.startswith((b"/", b"../")) for kind, _, data in want.values())
    if done.returncode != 0 and outside and b"may lead outside" in done.stderr:
        if snapshot(f"{where}/ours") != snapshot(f"{where}/base"):
            fail(where, f"round {number}: a refused patch changed the tree")
        return 1
    if done.returncode != 0:
        fail(where, f"round {number}: apply: {done.stderr.decode()}")
    wrong = differences(want, snapshot(f"{where}/ours"))
    if wrong:
        fail(where, f"round {number}: after our apply these differ: {wrong}")
    return 2


def main():
    top = tempfile.mkdtemp(prefix="change-overlay.")
    for name in ("base", "upper", "work", "merged", "want"):
        os.makedirs(f"{top}/probe/{name}")
    done = run("unshare", "-Urm", "mount", "-t", "overlay", "overlay", "-o",
               f"userxattr,lowerdir={top}/probe/base,upperdir={top}/probe/upper,"
               f"workdir={top}/probe/work", f"{top}/probe/merged")
    if done.returncode != 0:
        shutil.rmtree(top)
        print(f"# SKIP userns: no overlay in a user namespace here: {done.stderr.decode().strip()}")
        sys.exit(77)
    print(f"seed {SEED}, {ROUNDS} rounds")
    outcomes = [0, 0, 0]
    for number in range(ROUNDS):
        where = f"{top}/{number}"
        os.mkdir(where)
        outcomes[one_round(number, where)] += 1
        shutil.rmtree(where)
    shutil.rmtree(top)
    print(f"{outcomes[2]} applied by both, {outcomes[1]} refused by ours for their links, "
          f"{outcomes[0]} without a change")
    if outcomes[2] < ROUNDS // 2:
        sys.exit("FAIL: too few rounds were applied by both to mean anything")


if len(sys.argv) > 1 and sys.argv[1] == "--edit":
    edits = random.Random("edit/" + sys.argv[3])
    for _ in range(edits.randrange(1, 25)):
        change(edits, sys.argv[2])
else:
    main()
