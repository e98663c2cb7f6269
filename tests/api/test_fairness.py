# SPDX-License-Identifier: Apache-2.0
"""What one user may have of the server, and what failed logins cost, while another client is served as ever."""
import http.client
import json
import time

from bystander import bystander, context_of, grant, mint
from expect import configmap, configmaps
from h2 import DATA, END_STREAM, HEADERS, Http2
from seth import Server, unique


def test_one_user_does_not_take_all_the_writes():
    """Few places and a user who wants them all: some of its writes get 429, and others write on."""
    with Server("--max-mutating-requests-inflight", "4") as s:
        grant(s, "writers", "writers", "edit")
        greedy, modest = mint(s, "greedy", "writers"), mint(s, "modest", "writers")
        connection = Http2(s, context=context_of(s, greedy))
        with bystander(s):
            streams = [connection.request("POST", configmaps("default"), json.dumps(configmap(unique(), {"k": "x" * 20_000})).encode()) for _ in range(200)]
            other = http.client.HTTPSConnection("127.0.0.1", s.port, context=context_of(s, modest), timeout=30)
            other.request("POST", configmaps("default"), json.dumps(configmap(unique())), {"Content-Type": "application/json"})
            assert other.getresponse().status == 201
            bodies, ended = {}, 0
            while ended < len(streams):
                frame = connection.read()
                assert frame and frame.type in (HEADERS, DATA), frame
                if frame.type == DATA:
                    bodies[frame.stream] = bodies.get(frame.stream, b"") + frame.payload
                ended += bool(frame.flags & END_STREAM)
        answers = [json.loads(b) for b in bodies.values()]
        refusals = [a for a in answers if a["kind"] == "Status"]
        assert 0 < len(refusals) < len(streams), len(refusals)
        for a in refusals:
            assert (a["code"], a["reason"], a["message"], a["details"]["retryAfterSeconds"]) == (429, "TooManyRequests", "Too many requests, please try again later.", 1), a


def test_watches_of_a_user_are_limited():
    with Server("--max-watches-per-user", "5") as s:
        grant(s, "viewers", "viewers")
        connection = Http2(s, context=context_of(s, mint(s, "viewer", "viewers")))
        for _ in range(5):
            connection.request("GET", f"{configmaps('default')}?watch=1&timeoutSeconds=600")
        body, _ = connection.answer(connection.request("GET", f"{configmaps('default')}?watch=1"))
        assert json.loads(body)["code"] == 429
        assert json.loads(connection.answer(connection.request("GET", configmaps("default")))[0])["kind"] == "ConfigMapList"
        connection.close()


def test_guessing_is_slow():
    """Each failure of an address waits longer; who knows its way from the same address does not."""
    with Server() as s, bystander(s):
        seconds = []
        connection = http.client.HTTPSConnection("127.0.0.1", s.port, context=context_of(s), timeout=30)
        for i in range(6):
            begin = time.monotonic()
            connection.request("GET", "/api/v1/namespaces", headers={"Authorization": f"Bearer guess-{i}"})
            answer = connection.getresponse()
            assert answer.status == 401, answer.status
            answer.read()
            seconds.append(time.monotonic() - begin)
        for i, least in enumerate((0, 0.1, 0.2, 0.4, 0.8, 1.6)):
            assert seconds[i] >= least * 0.95, (i, seconds)
