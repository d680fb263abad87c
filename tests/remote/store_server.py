"""A store on the loopback that speaks S3's language, and goes wrong as it is told. Standard library only.

    store_server.py FOLDER    prints its port; ends when its standard input does

FOLDER/objects/BUCKET/KEY are the objects. FOLDER/keys, `ID SECRET`: requests have to be signed with these. FOLDER/tls:
it speaks TLS and writes its certificate into FOLDER/certificate.pem. FOLDER/faults has a line for each fault,
`PATH KIND TIMES [VALUE]`: the next requests of PATH (`*`: of any) go wrong so. Lines of FOLDER/log are what was asked
and answered: `METHOD PATH RANGE STATUS BYTES`.
"""

from __future__ import annotations

import base64
import email.utils
import hashlib
import hmac
import os
import ssl
import subprocess
import sys
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from xml.sax.saxutils import escape

FOLDER = Path(sys.argv[1])
PAGE = 3  # keys of a listing
LOCK = threading.Lock()
TAGS: dict[tuple[str, int, int], str] = {}  # by path, time of modification and length
TIMES: dict[str, int] = {}  # how often a line of FOLDER/faults has come true


def digest(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"

    def fault(self, *kinds: str) -> str | None:
        """The value of the first fault of these kinds that is due, an empty text where it has none."""
        faults = FOLDER / "faults"
        with LOCK:
            for line in faults.read_text().splitlines() if faults.exists() else []:
                path, kind, times, *value = line.split()
                if (
                    path in (self.path.split("?")[0], "*")
                    and kind in kinds
                    and TIMES.get(line, 0) < int(times)
                ):
                    TIMES[line] = TIMES.get(line, 0) + 1
                    return value[0] if value else ""
        return None

    def note(self, status: int, num_bytes: int) -> None:
        span = self.headers.get("Range", "-").replace(" ", "")
        with LOCK, (FOLDER / "log").open("a") as log:
            log.write(f"{self.command} {self.path.split('?')[0]} {span} {status} {num_bytes}\n")

    def log_message(self, *_: object) -> None:
        """Nothing on standard error."""

    def answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.note(status, len(body))
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def refuse(self, status: int, code: str, **headers: str) -> None:
        self.answer(
            status,
            f"<Error><Code>{code}</Code><Secret>of nobody's business</Secret></Error>".encode(),
            **headers,
        )

    def is_signed(self) -> bool:
        """Whether the request has the signature that AWS's documents describe (Signature Version 4)."""
        keys = FOLDER / "keys"
        if not keys.exists():
            return True
        key_id, secret = keys.read_text().split()
        words = self.headers.get("Authorization", "").replace(",", " ").split()
        if not words or words[0] != "AWS4-HMAC-SHA256":
            return False
        fields = dict(word.split("=", 1) for word in words[1:])
        names = fields["SignedHeaders"].split(";")
        _, date, region, service, kind = fields["Credential"].split("/")
        path, _, query = self.path.partition("?")
        pairs = sorted(urllib.parse.parse_qsl(query, keep_blank_values=True))
        canonical = "&".join(
            f"{urllib.parse.quote(k, '-_.~')}={urllib.parse.quote(v, '-_.~')}" for k, v in pairs
        )
        payload = self.headers.get("x-amz-content-sha256", hashlib.sha256(b"").hexdigest())
        lines = [self.command, urllib.parse.quote(urllib.parse.unquote(path), "/-_.~"), canonical]
        lines += [f"{name}:{' '.join(self.headers.get(name, '').split())}" for name in names]
        lines += ["", ";".join(names), payload]
        request = hashlib.sha256("\n".join(lines).encode()).hexdigest()
        scope = f"{date}/{region}/{service}/{kind}"
        text = f"AWS4-HMAC-SHA256\n{self.headers['x-amz-date']}\n{scope}\n{request}"
        key = f"AWS4{secret}".encode()
        for part in (date, region, service, kind):
            key = digest(key, part)
        wanted = {"host", "x-amz-date", "x-amz-content-sha256"}
        if self.headers.get("x-amz-security-token"):
            wanted.add("x-amz-security-token")
        return (
            fields["Credential"].split("/")[0] == key_id
            and wanted <= set(names)
            and hmac.compare_digest(fields["Signature"], digest(key, text).hex())
        )

    def list_objects(self, query: dict[str, str]) -> None:
        """A page of what lies right under a prefix."""
        folder = FOLDER / "objects" / self.path.split("?")[0].strip("/")
        prefix = query.get("prefix", "")
        keys = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
        keys = [key for key in keys if key.startswith(prefix) and "/" not in key[len(prefix) :]]
        begin = int(query.get("continuation-token", "next 0").split()[1])
        more = begin + PAGE < len(keys)
        contents = "".join(
            f"<Contents><Key>{escape(urllib.parse.quote_plus(key, '/'))}</Key><Size>1</Size></Contents>"
            for key in keys[begin : begin + PAGE]
        )
        token = (
            f"<NextContinuationToken>next {begin + PAGE}</NextContinuationToken>" if more else ""
        )
        text = (
            '<?xml version="1.0" encoding="UTF-8"?>\n<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
            f"<EncodingType>url</EncodingType><IsTruncated>{str(more).lower()}</IsTruncated>{token}"
            f"{contents}</ListBucketResult>"
        )
        self.answer(200, text.encode(), Content_Type="application/xml")

    def do_HEAD(self) -> None:  # noqa: N802
        if self.fault("no-head") is not None:
            self.refuse(405, "MethodNotAllowed")
            return
        self.do_GET()

    def do_GET(self) -> None:  # noqa: N802
        status = self.fault("status" if self.command == "GET" else "head-status")
        if status is not None:
            code, *wait = status.split(":")
            self.refuse(int(code), "SlowDown", **({"Retry_After": wait[0]} if wait else {}))
        elif (region := self.fault("region")) is not None:
            self.refuse(301, "PermanentRedirect", x_amz_bucket_region=region)
        elif not self.is_signed():
            self.refuse(403, "SignatureDoesNotMatch")
        elif self.fault("hang") is not None:
            time.sleep(600)
        elif (target := self.fault("redirect")) is not None:
            self.answer(302, Location=target)
        else:
            path, _, query = self.path.partition("?")
            parts = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
            if "list-type" in parts:
                self.list_objects(parts)
            else:
                self.give(FOLDER / "objects" / urllib.parse.unquote(path).strip("/"))

    def headers_of(self, body: bytes, path: Path) -> dict[str, str]:
        state = (str(path), path.stat().st_mtime_ns, len(body))
        if state not in TAGS:
            TAGS[state] = hashlib.md5(body).hexdigest()  # noqa: S324: what S3 takes
        tag = TAGS[state]
        headers = {
            "ETag": f'"{tag}"',
            "Last-Modified": email.utils.formatdate(path.stat().st_mtime, usegmt=True),
        }
        if self.fault("weak-etag") is not None:
            headers["ETag"] = f'W/"{tag}"'
        if self.fault("no-etag") is not None:
            del headers["ETag"]
        if self.command == "GET" and (other := self.fault("etag")) is not None:
            headers["ETag"] = f'"{other}"'
        if self.fault("sha256") is not None:
            headers["x-amz-checksum-sha256"] = base64.b64encode(
                hashlib.sha256(body).digest()
            ).decode()
        if (encoding := self.fault("encoding")) is not None:
            headers["Content-Encoding"] = encoding
        return headers

    def give(self, path: Path) -> None:
        if not path.is_file():
            self.refuse(404, "NoSuchKey")
            return
        body = path.read_bytes()
        headers = self.headers_of(body, path)
        wanted = self.headers.get("If-Match")
        if wanted and wanted != headers.get("ETag") and self.fault("ignore-match") is None:
            self.refuse(412, "PreconditionFailed")
            return
        begin, end, status = 0, len(body), 200
        span = self.headers.get("Range")
        if span and self.fault("ignore-range") is None:
            first, _, last = span.removeprefix("bytes=").partition("-")
            begin, end, status = int(first), min(int(last or end), end - 1) + 1, 206
            if begin >= len(body):
                self.refuse(416, "InvalidRange")
                return
            headers["Content-Range"] = f"bytes {begin}-{end - 1}/{len(body)}"
        self.send_part(body[begin:end], status, headers, path)

    def send_part(self, part: bytes, status: int, headers: dict[str, str], path: Path) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if self.fault("no-length") is None:
            self.send_header("Content-Length", str(len(part)))
        else:
            self.close_connection = True
        if self.command == "HEAD":
            self.note(status, 0)  # first: who has the answer may look
            self.end_headers()
            return
        self.end_headers()
        if self.fault("corrupt") is not None:
            part = part[:-1] + bytes([part[-1] ^ 1])
        if self.fault("slow") is not None:
            time.sleep(0.3)
        cut, drip, change = self.fault("cut"), self.fault("drip"), self.fault("change")
        stop = int(cut or change or len(part))
        self.note(status, min(stop, len(part)))
        if drip is not None:
            for i in range(len(part)):
                self.wfile.write(part[i : i + 1])
                time.sleep(float(drip))
        self.wfile.write(part[:stop] if drip is None else b"")
        if change is not None:
            path.write_bytes(path.read_bytes()[::-1])
        if stop < len(part):
            self.wfile.flush()
            self.close_connection = True


def end_with_input() -> None:
    sys.stdin.buffer.read()
    os._exit(0)


class Server(ThreadingHTTPServer):
    """Says nothing of clients that leave."""

    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *_: object) -> None:
        """Nothing on standard error."""


def speak_tls(server: Server) -> None:
    """Ends the program where there is no openssl."""
    certificate, key = FOLDER / "certificate.pem", FOLDER / "key.pem"
    words = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
    words += (
        f" -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1 -keyout {key} -out {certificate}"
    )
    subprocess.run(words.split(), check=True, stderr=subprocess.DEVNULL)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(
        server.socket, server_side=True, do_handshake_on_connect=False
    )


if __name__ == "__main__":
    server = Server(("127.0.0.1", 0), Handler)
    if (FOLDER / "tls").exists():
        speak_tls(server)
    print(server.server_address[1], flush=True)
    threading.Thread(target=end_with_input, daemon=True).start()
    server.serve_forever()
