"""An API that is ready as soon as it listens."""

import os
from http.server import BaseHTTPRequestHandler, HTTPServer


class Ready(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/readyz" else 404)
        self.end_headers()


if __name__ == "__main__":
    HTTPServer((os.environ["ALMANAC_API_HOST"], int(os.environ["ALMANAC_API_PORT"])), Ready).serve_forever()
