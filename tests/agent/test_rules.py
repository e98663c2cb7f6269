# SPDX-License-Identifier: Apache-2.0
"""Access rules by host name, rate limits, and subnets of two agents, with real applications in network namespaces. Needs root, nftables and
crun."""
import contextlib
import http.server
import threading
import types

from netns import inside, run
from seth import wait_until
from test_apps import OUTSIDE, RUNNING, SECONDS, Agent, Device
from test_controllerconn import Dns, Net

GOOD, BAD, EVIL = ("192.0.2.51", "192.0.2.52", "192.0.2.53")
LISTENER = types.SimpleNamespace(listen=lambda *words: Net.listen(None, *words))


class Web(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"hello\n")

    def log_message(self, *_):
        pass


def rule(number, *matches, **action):
    return {"RuleID": number, "Matches": [{"Type": t, "Value": v} for t, v in matches], "Actions": [action]}


@contextlib.contextmanager
def world():
    """Beside the resolver of the device there is one that lies, and hosts behind it."""
    with Device() as d, contextlib.ExitStack() as stack:
        for address in (GOOD, BAD, EVIL):
            run("ip", "-n", d.outside, "addr", "add", f"{address}/32", "dev", "lo")
            run("ip", "-n", d.home, "route", "add", f"{address}/32", "via", OUTSIDE)
        with inside(d.outside):
            web = http.server.ThreadingHTTPServer(("0.0.0.0", 8000), Web)
        threading.Thread(target=web.serve_forever, daemon=True).start()
        stack.callback(web.shutdown)
        d.dns = stack.enter_context(contextlib.closing(Dns(LISTENER, d.outside, OUTSIDE, {"www.allowed.example": GOOD, "other.example": BAD})))
        stack.enter_context(contextlib.closing(Dns(LISTENER, d.outside, EVIL, {"www.allowed.example": BAD})))
        a = d.agent()
        d.introduce(a)
        d.publish_network(a)
        yield d, a
        a.end()


def wait_count(d, a, app, line, n):
    wait_until(lambda: d.lines(a, app).count(line) >= n, SECONDS, f"{line!r} {n} times")


def look_up(name, server):
    return f"busybox timeout 2 busybox nslookup {name} {server} >/dev/null 2>&1"


def test_rules_by_host_follow_what_the_resolver_says():
    attempts = "; ".join(f"if busybox timeout 2 busybox wget -q -O - http://{x}:8000/ >/dev/null; then echo {n} got out; else echo {n} kept in; fi"
                         for n, x in (("good", GOOD), ("bad", BAD)))
    script = f"while :; do {look_up('www.allowed.example', OUTSIDE)}; {look_up('www.allowed.example', EVIL)}; {look_up('other.example', OUTSIDE)}; {attempts}; done"
    with world() as (d, a):
        app = d.deploy(a, "hosts", script, rules=[rule(1, ("host", "Allowed.example"), ("protocol", "tcp"), ("fport", "8000"))])
        a.state(app, RUNNING)
        d.wait_line(a, app, "good got out")
        d.wait_line(a, app, "bad kept in")
        # Neither another name of the right resolver nor the right name of another resolver opens the way.
        assert "bad got out" not in d.lines(a, app)
        # Another rule is another host.
        d.publish_app(a, "hosts", rules=[rule(1, ("host", "other.example"))])
        d.wait_line(a, app, "bad got out")
        before = d.lines(a, app).count("good kept in")
        wait_count(d, a, app, "good kept in", before + 2)
        assert a.states(app).count(RUNNING) == 1


def test_limits_let_only_so_many_packets_pass():
    script = f"for i in 1 2 3 4 5 6 7 8 9 10; do {look_up('www.allowed.example', OUTSIDE)}; done; echo asked; exec sleep 1000"
    script = script.replace("timeout 2", "timeout 1")
    with world() as (d, a):
        app = d.deploy(a, "limits", script, rules=[rule(1, ("protocol", "udp"), ("fport", "53"), Limit=True, LimitRate=2, LimitUnit="d", LimitBurst=4)])
        a.state(app, RUNNING)
        d.wait_line(a, app, "asked")
        assert 1 <= len(d.dns.queries) <= 6, d.dns.queries
        # Without a limit all of them pass.
        before = len(d.dns.queries)
        d.publish_app(a, "limits", rules=[rule(1, ("protocol", "udp"))], RestartCmd={"Counter": 1})
        a.until(lambda: a.states(app).count(RUNNING) == 2, "no restart")
        wait_count(d, a, app, "asked", 2)
        assert len(d.dns.queries) - before >= 10, d.dns.queries


# ---- neighbours

def test_of_two_agents_in_one_namespace_the_second_needs_another_subnet():
    script = "echo up; exec sleep 1000"
    with Device() as first, Device() as second:
        a, second.home_of_its_own, second.home = first.agent(), second.home, first.home
        b = Agent(second)
        second.agents.append(b)
        for device, agent in ((first, a), (second, b)):
            device.introduce(agent)
        first.publish_network(a)
        a.until(lambda: (s := a.status(first.network, "NetworkInstanceStatus")) and s["Activated"], "the first network")
        second.publish_network(b)
        status = b.until(lambda: (s := b.status(second.network, "NetworkInstanceStatus")) and s["Error"] and s, "the second to be refused")
        assert "10.77.0.1" in status["Error"] and "choose another subnet" in status["Error"] and not status["Activated"], status
        assert second.links() == [], second.links()
        # With another one both have their applications.
        second.publish_network(b, Subnet={"IP": "10.78.0.0", "Mask": "////AA=="}, Gateway="10.78.0.1", DhcpRange={"Start": "10.78.0.2", "End": "10.78.0.254"})
        apps = [device.deploy(agent, f"app{n}", script) for n, (device, agent) in enumerate(((first, a), (second, b)))]
        a.state(apps[0], RUNNING)
        b.state(apps[1], RUNNING)
        a.end()
        b.end()
        second.home = second.home_of_its_own
