"""A tiny status page in a thread."""
import http.server
import threading


class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"alive\n")

    def log_message(self, *args):
        pass


class Monitor:
    def __init__(self, name, port):
        self.name, self.port = name, port
        self.server = http.server.HTTPServer(("", port), Page)
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
