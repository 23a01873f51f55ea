"""One row of the tables: a document, who is believed, and what must come of it."""
import copy
import dataclasses
import json

from signing import DIGEST, IDENTITY, ISSUER, trusted_root


@dataclasses.dataclass
class Case:
    name: str
    reason: str | None  # The code of the refusal, empty for any; None: verified.
    document: dict | str  # A bundle; a legacy layer where `legacy`.
    root: dict | str | None = dataclasses.field(default_factory=trusted_root)
    exit: int = 77  # With `reason`.
    word: str = ''  # The refusal's detail has it, or what is said of who signed.
    no_word: str = ''  # ... has not.
    digest: str = DIGEST
    by_path: bool = False  # The artifact is given as a file, of which every digest is known.
    identity: str = IDENTITY
    issuer: str = ISSUER
    key: bytes | None = None  # PEM, instead of an identity.
    options: tuple = ()  # More arguments.
    legacy: bool = False
    # Why npm's verifier says the opposite; empty: it must agree.
    npm_differs: str = ''
    npm_reads: bool = True  # False: not an artifact and a root that it can be given.


def verified(name, document, **rest):
    return Case(name, None, document, **rest)


def refused(name, reason, document, **rest):
    return Case(name, reason, document, **rest)


def _steps(path):
    return [int(step) if step.isdigit() else step for step in path.split('.')]


def put(path, value):
    """A change of one field, `a.0.b`; `value` may be a function of the old one."""
    def change(document):
        document = copy.deepcopy(document)
        *parents, last = _steps(path)
        inner = document
        for step in parents:
            inner = inner[step]
        inner[last] = value(inner[last]) if callable(value) else value
        return document
    return change


def drop(path):
    """A change that leaves one field out."""
    def change(document):
        document = copy.deepcopy(document)
        *parents, last = _steps(path)
        inner = document
        for step in parents:
            inner = inner[step]
        del inner[last]
        return document
    return change


def text(document, old, new):
    """The document's JSON with its first `old` replaced."""
    whole = json.dumps(document)
    assert old in whole, old
    return whole.replace(old, new, 1)
