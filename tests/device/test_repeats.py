# SPDX-License-Identifier: Apache-2.0
"""Uploads of logs that a device sends again because it never heard that they were kept: kept once, answered as the first time."""
import re
import threading
import uuid

from eve import entry, gzip_member, log_lines
from fleet import shared_site as site
from seth import Server, wait_until


def posted(d, payload, app=None):
    """A busy controller asks to wait, and a device does."""
    path = d.app_log_paths(app, "newlogs")["pillar"] if app else None

    def accepted():
        answer = d.post("newlogs", payload, path=path) if path else d.post("newlogs", payload)
        assert answer.status in (201, 503), answer
        return answer.status == 201

    wait_until(accepted, what="the controller to have time")


def upload(*contents):
    return gzip_member(log_lines([entry(c, when=1000) for c in contents]))


def contents(s, d, **query):
    return [line["content"] for line in site(s).read(d, "log", **query)]


def repeats(s):
    text = s.request("GET", "/metrics", raw=True)[1].decode()
    return int(float(re.search(r"^seth_telemetry_repeats_total (\S+)$", text, re.M).group(1)))


def test_a_repeat_is_kept_once(s):
    d, app, before = site(s).onboarded(), str(uuid.uuid4()), repeats(s)
    for _ in range(3):
        posted(d, upload("one", "two"))
    posted(d, upload("three"))
    posted(d, upload("three"))
    assert contents(s, d) == ["one", "two", "three"]
    posted(d, upload("three"), app)
    posted(d, upload("three"), app)
    assert contents(s, d, app=app) == ["three"]
    posted(d, upload("one", "two"))
    assert contents(s, d, app="none") == ["one", "two", "three", "one", "two"]
    assert repeats(s) - before >= 4


def test_another_device_is_no_repeat(s):
    a, b = site(s).onboarded(), site(s).onboarded()
    posted(a, upload("same"))
    posted(b, upload("same"))
    assert contents(s, a) == contents(s, b) == ["same"]


def test_repeats_at_the_same_time(s):
    d = site(s).onboarded()
    for turn in range(5):
        threads = [threading.Thread(target=posted, args=(d, upload(f"turn {turn}"))) for _ in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert contents(s, d) == [f"turn {turn}" for turn in range(5)]


def test_a_repeat_after_the_server_died():
    with Server() as s:
        d, app = site(s).onboarded(), str(uuid.uuid4())
        posted(d, upload("first"))
        posted(d, upload("of the app"), app)
        posted(d, upload("of another"), str(uuid.uuid4()))
        s.kill()
        s.start()
        posted(d, upload("of the app"), app)
        posted(d, upload("first"))
        assert sorted(contents(s, d)) == ["first", "of another", "of the app"]
        posted(d, upload("second"))
        assert contents(s, d, app="none") == ["first", "second"]
