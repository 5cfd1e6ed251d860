"""`evenhand` as a file on the PATH of a shell, answered by the process that loaded the package."""

import contextlib
import json
import socketserver
import stat
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from tests.cli.warm import Warm

_ASKS = """#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as line:
    line.connect({socket!r})
    order = [sys.argv[1:], os.getcwd(), dict(os.environ)]
    line.sendall(json.dumps(order).encode() + b"\\n")
    code, said, told = json.loads(line.makefile().readline())
sys.stdout.write(said)
sys.stderr.write(told)
sys.exit(code)
"""


@contextlib.contextmanager
def as_command(warm: Warm, folder: Path) -> Iterator[Path]:
    """Put the command into a folder for a PATH. It does not read its input."""

    class Answer(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            arguments, place, environment = json.loads(self.rfile.readline())
            ran = warm.run(tuple(arguments), Path(place), environment)
            self.wfile.write(json.dumps([ran.returncode, ran.stdout, ran.stderr]).encode() + b"\n")

    folder.mkdir()
    address = str(folder / "line")
    command = folder / "evenhand"
    command.write_text(_ASKS.format(python=sys.executable, socket=address))
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    with socketserver.UnixStreamServer(address, Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield folder
        server.shutdown()
