"""A GnuPG key ring that gpg itself makes, in a folder with a short path, as the agent's socket needs."""

import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

HOSTILE = 'Eve\\x0aBell "<script>" <not an address>'


class KeyRing:
    """A ring; every key is called by the first word of its user id."""

    def __init__(self, folder):
        self.folder = folder
        self.fingerprints = {}

    def run(self, *arguments, text=None):
        command = ["gpg", "--homedir", str(self.folder), "--batch", "--no-tty", "--yes", "--pinentry-mode", "loopback"]
        done = subprocess.run(
            [*command, "--passphrase", "", *arguments], input=text, text=True, capture_output=True, check=False
        )
        if done.returncode:
            raise RuntimeError(f"gpg {' '.join(arguments)}: {done.stderr}")
        return done.stdout

    def make_key(self, user_id, expires="0", faked_time=None):
        faked = [] if faked_time is None else ["--faked-system-time", faked_time]
        self.run(*faked, "--quick-gen-key", user_id, "ed25519", "cert", expires)
        listed = self.run("--with-colons", "--list-keys")
        name = user_id.split()[0]
        fingerprints = [line.split(":")[9] for line in listed.splitlines() if line.startswith("fpr:")]
        [new] = set(fingerprints) - set(self.fingerprints.values())
        self.fingerprints[name] = new

    def certify(self, signer, signed, level=0, *options):
        levels = ["--default-cert-level", str(level), "--no-ask-cert-level"]
        self.run("-u", self.fingerprints[signer], *levels, *options, "--quick-sign-key", self.fingerprints[signed])

    def certify_for_a_day(self, signer, signed, day):
        options = ["--default-cert-expire", "1d", "--no-ask-cert-expire", "--faked-system-time", day]
        self.certify(signer, signed, 3, *options)

    def revoke_certification(self, signer, signed, user_id):
        self.run("--quick-revoke-sig", self.fingerprints[signed], self.fingerprints[signer], user_id)

    def trust_certify(self, signer, signed):
        """A trust signature of depth 2; gpg makes it in a dialogue only."""
        self.run(
            "--command-fd", "0", "-u", self.fingerprints[signer], "--no-ask-cert-level", "--no-ask-cert-expire",
            "--edit-key", self.fingerprints[signed], "tsign", "save", text="2\n2\n\ny\n",
        )  # fmt: skip

    def revoke_key(self, name):
        path = self.folder / "openpgp-revocs.d" / f"{self.fingerprints[name]}.rev"
        certificate = path.read_text().replace(":-----BEGIN", "-----BEGIN")
        self.run("--import", text=certificate)


@contextmanager
def open_key_ring():
    """A ring that is removed when the block ends, with its agent."""
    folder = Path(tempfile.mkdtemp(prefix="gpg"))
    folder.chmod(0o700)
    try:
        yield KeyRing(folder)
    finally:
        subprocess.run(["gpgconf", "--homedir", str(folder), "--kill", "all"], check=False, capture_output=True)
        shutil.rmtree(folder, ignore_errors=True)


def fill_key_ring(ring):
    """Make keys with certifications of all kinds; returns the edges that count."""
    for user_id in ("Ann (work) <Ann@Example.org>", "Dan <dan@example.org>"):
        ring.make_key(user_id, faked_time="20190101T000000")
    for user_id in ("Bob <bob@example.org>", "Cem <cem@other.example>", HOSTILE):
        ring.make_key(user_id)
    ring.make_key("Old <old@example.org>", "1d", "20200101T000000")
    ring.make_key("Rev <rev@example.org>")
    ring.certify("Ann", "Bob", 0)
    ring.certify("Bob", "Ann", 3)
    ring.certify("Ann", "Cem", 2)
    ring.certify("Cem", "Ann", 1)
    ring.certify("Ann", HOSTILE.split()[0], 3)
    ring.trust_certify("Dan", "Ann")
    ring.certify("Dan", "Bob", 3)
    ring.revoke_certification("Dan", "Bob", "Bob <bob@example.org>")
    ring.certify("Rev", "Ann", 3)
    ring.certify("Ann", "Rev", 3)
    ring.revoke_key("Rev")
    ring.certify("Ann", "Old", 3, "--faked-system-time", "20200101T000000")
    ring.certify_for_a_day("Ann", "Dan", "20200101T000000")
    eve = ring.fingerprints[HOSTILE.split()[0]]
    ann, bob, cem, dan = "ann@example.org", "bob@example.org", "cem@other.example", "dan@example.org"
    return {(ann, bob, 1.0), (bob, ann, 3.0), (ann, cem, 2.0), (cem, ann, 0.5), (ann, eve, 3.0), (dan, ann, 3.0)}
