"""A server that keeps what it gets: each body in a file of its own in the directory that is the argument. Prints its port."""

import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import count
from pathlib import Path

directory, numbers = Path(sys.argv[1]), count()


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        (directory / f"{next(numbers)}").write_bytes(body)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *arguments):
        pass


server = HTTPServer(("127.0.0.1", 0), Receiver)
print(server.server_port, flush=True)
server.serve_forever()
