"""Prints the rows that it is given, and keeps them in received.db; ignores those that it knows."""

import http.server
import json
import sqlite3
import sys

INSERT = "INSERT OR IGNORE INTO event VALUES (?, ?, ?)"


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        batch = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with received:  # one transaction, which ends before the answer
            for row in batch["rows"]:
                values = (batch["place"], row["id"], json.dumps(row["payload"]))
                if received.execute(INSERT, values).rowcount:
                    print(*values, flush=True)
        self.send_response(200)
        self.end_headers()


received = sqlite3.connect("received.db")
received.execute("CREATE TABLE IF NOT EXISTS event (place, id, payload, PRIMARY KEY (place, id))")
server = http.server.HTTPServer(("127.0.0.1", int((sys.argv + [8080])[1])), Receiver)
print(f"http://127.0.0.1:{server.server_port}/", flush=True)
server.serve_forever()
