"""A small HTTP server that speaks Mastodon's documented shapes: accounts, their follows in pages, and limits."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

TOKEN = "let-me-in"


class Mastodon:
    """What the server knows, and what it was asked."""

    def __init__(self, accounts, follows, domain="home.example", page=2):
        self.accounts = accounts
        """id: (username, domain or None)"""
        self.follows = follows
        """pairs of ids: who follows whom"""
        self.domain, self.page = domain, page
        self.asked = []
        self.answers = []
        """answers that come first, each (status, headers, body), before those that are right"""
        self.before_answer = lambda path: None
        self.url = ""

    def describe(self, number):
        name, domain = self.accounts[number]
        acct = name if domain is None else f"{name}@{domain}"
        return {"id": number, "username": name, "acct": acct, "url": f"https://{domain or self.domain}/@{name}"}

    def answer(self, path, query):
        """Status, headers and what is sent as JSON."""
        parts = path.strip("/").split("/")
        if path == "/api/v2/instance":
            return 200, {}, {"domain": self.domain, "title": "Home", "version": "4.3.0"}
        if path == "/api/v1/accounts/verify_credentials":
            return 200, {}, self.describe("1")
        if path == "/api/v2/admin/accounts":
            own = sorted(number for number, (_, domain) in self.accounts.items() if domain is None)
            return self.cut(path, query, own, lambda number: {
                "id": number, "username": self.accounts[number][0], "domain": None, "account": self.describe(number)
            })  # fmt: skip
        if parts[:3] == ["api", "v1", "accounts"] and len(parts) == 5:
            number, kind = parts[3], parts[4]
            if kind == "following":
                found = [other for one, other in self.follows if one == number]
            else:
                found = [one for one, other in self.follows if other == number]
            return self.cut(path, query, found, self.describe)
        return 404, {}, {"error": "Record not found"}

    def cut(self, path, query, found, describe):
        first = int(query.get("max_id", ["0"])[0])
        headers = {}
        if first + self.page < len(found):
            headers["Link"] = (
                f'<{self.url}{path}?limit=80&max_id={first + self.page}>; rel="next", '
                f'<{self.url}{path}?limit=80&min_id=0>; rel="prev"'
            )
        return 200, headers, [describe(number) for number in found[first : first + self.page]]


@contextmanager
def serve_mastodon(mastodon, port=0):
    """Answer on a port of this machine, a free one by default, until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            parts = urlsplit(self.path)
            mastodon.asked.append(self.path)
            mastodon.before_answer(self.path)
            if mastodon.answers:
                status, headers, data = mastodon.answers.pop(0)
            elif self.headers.get("Authorization") != f"Bearer {TOKEN}":
                status, headers, data = 401, {}, {"error": "The access token is invalid"}
            else:
                status, headers, data = mastodon.answer(parts.path, parse_qs(parts.query))
            body = data if isinstance(data, bytes) else json.dumps(data).encode()
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    mastodon.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield mastodon
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
