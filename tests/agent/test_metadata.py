# SPDX-License-Identifier: Apache-2.0
"""An application hands its kubeconfig to 169.254.169.254, as a process of its own, and it is a Secret of the controller: up to 32 KiB."""
import base64
import subprocess

from agents import SECONDS, Place
from seth import wait_until

LIMIT = 32768
SCRIPT = f"""#!/bin/sh
trap 'exit 0' TERM
post() {{
    printf "%0$1d" 0 > /tmp/posted
    wget -O /dev/null --header 'Content-Type: application/json' --post-file /tmp/posted http://169.254.169.254/eve/v1/kubeconfig 2>&1
}}
until post {LIMIT} > /tmp/said; do sleep 1; done
echo "{LIMIT} bytes are taken"
post {LIMIT + 1} > /tmp/said && echo "{LIMIT + 1} bytes are taken" || echo "{LIMIT + 1} bytes are refused"
while :; do sleep 60 & wait $!; done
"""


def apply(place):
    """An image, a network, an application."""
    place.offer("poster", SCRIPT)
    place.post("Application", "poster", {"containers": [{"name": "poster", "image": "poster", "resources": {"limits": {"cpu": "1", "memory": "64Mi"}}}]})


def secret(place):
    items = place.server.ok("GET", f"/api/v1/namespaces/{place.site.ns}/secrets")["items"]
    return next((i for i in items if "kubeconfig" in i.get("data", {})), None)


def end_application(place):
    """Applications outlive the agent: this one is deleted, and goes."""
    uuid = place.server.ok("GET", place.site.path("applications", "poster"))["status"]["uuid"]
    place.server.ok("DELETE", place.site.path("applications", "poster"))
    state = place.agent.root / "run/apps/crun"
    wait_until(lambda: not any(state.iterdir()), SECONDS, "the application to end")
    wait_until(lambda: uuid not in subprocess.run(["ip", "netns", "list"], capture_output=True, text=True).stdout, SECONDS, "its network to go")


def test_a_kubeconfig_of_32_kib_and_one_byte_more():
    with Place() as place:
        apply(place)
        place.agent.start()
        place.uuid()
        try:
            found = wait_until(lambda: secret(place), SECONDS, "the Secret")
            assert base64.b64decode(found["data"]["kubeconfig"]) == b"0" * LIMIT
            wait_until(lambda: any(f"{LIMIT + 1} bytes are refused" in e["content"] for e in place.read("log", limit=1000)), SECONDS, "the refusal")
            text = place.server.kubectl("get", "secret", found["metadata"]["name"], "-n", place.site.ns)
            assert found["metadata"]["name"] in text
            assert base64.b64decode(secret(place)["data"]["kubeconfig"]) == b"0" * LIMIT
        finally:
            end_application(place)
