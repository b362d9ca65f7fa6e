"""A proxy in front of an S3 server that fails every tenth request: with status 500 or 503, by cutting the connection before the
request reaches the server, or by cutting it after the server has done what was asked.

Prints its port, and serves until it is ended. Usage: faulty_proxy.py SERVER_PORT MODE_FILE. The mode in the file is `faulty`, `deny`
(writes get 403), `unconditional` (the server does not see conditions), or `pass`. Requests and faults are counted in MODE_FILE.counts.
"""

import http.client
import itertools
import socket
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

DENIED = b"<?xml version='1.0'?><Error><Code>AccessDenied</Code><Message>key AKIDSECRETID</Message></Error>"


class Proxy(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def handle_any(self):
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        mode = MODE.read_text().strip()
        number = next(NUMBERS)
        if mode == "deny" and self.command in ("PUT", "POST", "DELETE"):
            return self.answer(403, DENIED)
        fault = None
        if mode == "faulty" and number % 10 == 9:
            fault = ("500", "503", "cut-before", "cut-after")[number // 10 % 4]
        with LOCK:
            COUNTS[self.command] = COUNTS.get(self.command, 0) + 1
            if fault:
                COUNTS[fault] = COUNTS.get(fault, 0) + 1
            Path(f"{MODE}.counts").write_text(str(COUNTS))
        if fault in ("500", "503"):
            return self.answer(int(fault), b"<Error><Code>InternalError</Code></Error>")
        if fault == "cut-before":
            return self.cut()
        upstream = http.client.HTTPConnection("127.0.0.1", PORT, timeout=60)
        headers = {name: value for name, value in self.headers.items() if name.lower() != "connection"}
        if mode == "unconditional":
            headers = {name: value for name, value in headers.items() if name.lower() != "if-none-match"}
        upstream.request(self.command, self.path, body, headers)
        response = upstream.getresponse()
        content = response.read()
        upstream.close()
        if fault == "cut-after":
            return self.cut()
        self.answer(response.status, content, response.getheaders())

    def answer(self, status, body, headers=()):
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() not in ("connection", "transfer-encoding", "content-length"):
                self.send_header(name, value)
        length = dict((name.lower(), value) for name, value in headers).get("content-length")
        self.send_header("content-length", length if self.command == "HEAD" and length else str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def cut(self):
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = handle_any

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 1024
    daemon_threads = True


PORT, MODE = int(sys.argv[1]), Path(sys.argv[2])
NUMBERS, COUNTS, LOCK = itertools.count(), {}, threading.Lock()
server = Server(("127.0.0.1", 0), Proxy)
print(server.server_port, flush=True)
server.serve_forever()
