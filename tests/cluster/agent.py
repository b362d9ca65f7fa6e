"""An agent for tests of schedulers: answers each case at once, with a text that depends on the case alone.

Prints its port, and serves until it is ended. Usage: agent.py DELAY_SECONDS
"""

import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Agent(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        time.sleep(DELAY)
        answer = {
            "case_id": request["case_id"],
            "version": request["version"],
            "workflow_id": "cluster",
            "events": [],
            "final_output": {"content_type": "text", "content": f"answer to {request['case_id']}"},
            "proposed_actions": [],
        }
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 1024
    daemon_threads = True


DELAY = float(sys.argv[1])
server = Server(("127.0.0.1", 0), Agent)
print(server.server_port, flush=True)
server.serve_forever()
