# SPDX-License-Identifier: Apache-2.0
"""The programs of bench/ and nginx, as the parts of bench/run use them."""
import contextlib
import json
import os
import pathlib
import re
import socket
import subprocess
import sys

from seth import wait_until

TOP = pathlib.Path(__file__).resolve().parents[1]
PROGRAMS = pathlib.Path(os.environ.get("BENCH_BUILD", TOP / "build/bench")) / "bench"
NGINX = """
daemon off; pid {dir}/nginx.pid; error_log {dir}/nginx.log; worker_processes 1;
events {{ worker_connections 1024; }}
http {{
  access_log off; sendfile on; tcp_nopush on; tcp_nodelay on; default_type application/json;
  open_file_cache max=64 inactive=1h; open_file_cache_valid 1h; open_file_cache_min_uses 1;
  keepalive_timeout 1h; keepalive_requests 100000000; http2_max_concurrent_streams 128;
  client_body_temp_path {dir}/body; proxy_temp_path {dir}/proxy; fastcgi_temp_path {dir}/fastcgi; uwsgi_temp_path {dir}/uwsgi;
  scgi_temp_path {dir}/scgi;
  server {{
    listen 127.0.0.1:{port} ssl http2; root {dir};
    ssl_protocols TLSv1.3; ssl_certificate {cert}; ssl_certificate_key {key};
    {rules}
  }}
}}
"""


def run_json(program, *arguments):
    done = subprocess.run([str(PROGRAMS / program), *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{program} {' '.join(map(str, arguments))}: {done.returncode}\n{done.stderr}")
    return json.loads(done.stdout)


def load(server, *arguments, port=None, pid=None, files=None):
    """files: certificate and key to show instead of the administrator's; () for none."""
    files = (server.dir / "admin.pem", server.dir / "admin-key.pem") if files is None else files
    certificate = ["--cert", files[0], "--key", files[1]] if files else []
    return run_json("load", "--port", port or server.port, *certificate, "--server-pid", pid or server.process.pid, *arguments)


def raw_rate(directory, n_rows, row_bytes):
    """Rows per second that SQLite commits 64 at a time."""
    done = subprocess.run([str(PROGRAMS / "store_bench"), str(directory), str(n_rows), str(row_bytes)], capture_output=True, text=True, check=True)
    return float(re.search(r"raw\s+(\d+) rows/s", done.stdout).group(1))


def rss_mb(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+) kB", status).group(1)) / 1000


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@contextlib.contextmanager
def nginx(server, rules, files=(), identity=None):
    """nginx with one worker and these lines for its server; files: (name, bytes) beneath its root; identity: certificate and key.
    Yields (port, the worker's pid)."""
    directory, port = server.dir / "nginx", free_port()
    directory.mkdir()
    directory.chmod(0o755)
    server.dir.chmod(0o755)
    for name, body in files:
        (directory / name).write_bytes(body)
    cert, key = identity or (directory / "cert.pem", directory / "key.pem")
    if not identity:
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                        "-subj", "/CN=localhost", "-keyout", key, "-out", cert], check=True, capture_output=True)
    (directory / "conf").write_text(NGINX.format(dir=directory, port=port, key=key, cert=cert, rules=rules))
    process = subprocess.Popen(["/usr/sbin/nginx", "-c", str(directory / "conf")])
    children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
    try:
        yield port, int(wait_until(lambda: children.read_text().split(), what="nginx to start")[0])
    finally:
        process.terminate()
        process.wait()
