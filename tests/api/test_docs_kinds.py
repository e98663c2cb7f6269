# SPDX-License-Identifier: Apache-2.0
"""The pages of docs/kinds: what the generator writes, complete, with examples that the server takes."""
import re
import subprocess

import yaml

from seth import TOP

PAGES = TOP / "docs/kinds"
# What others refer to comes first.
ORDER = ["networkconfigs", "devicenetworks", "images", "devices", "onboardcertificates", "onboardcertificateauthorities", "devicecertificateauthorities",
         "enrollmentrequests", "applications", "applicationdeployments", "applicationdaemonsets", "applicationstatefulsets", "volumes", "deviceconfigs"]


def manifests():
    return {path.stem: yaml.safe_load(path.read_text()) for path in (TOP / "kinds/eve.lfedge.org").glob("*.yaml")}


def test_the_pages_are_what_the_generator_writes():
    done = subprocess.run([str(TOP / "tools/kind-pages"), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_every_kind_has_a_page_with_its_fields_and_columns():
    for plural, crd in manifests().items():
        text = (PAGES / f"{plural}.md").read_text()
        version = crd["spec"]["versions"][0]
        for part, schema in version["schema"]["openAPIV3Schema"]["properties"].items():
            for field in schema.get("properties", {}):
                assert re.search(rf"^\| `{re.escape(field)}` \|", text, re.M), (plural, part, field)
        for column in version["additionalPrinterColumns"]:
            assert f"| {column['name']} | `{column['jsonPath']}` |" in text, (plural, column)
        assert f"]({plural}.md)" in (PAGES / "README.md").read_text(), plural
        without = [line for line in text.splitlines() if re.match(r"\| `[^`]+` \|.*\|  \|$", line)]
        assert not without, f"{plural}: no description in {without}"


def test_links_lead_somewhere():
    for page in PAGES.glob("*.md"):
        for link in re.findall(r"\]\(([^)#]+)", page.read_text()):
            assert link.startswith("https://") or (page.parent / link).exists(), (page.name, link)


def test_the_examples_are_taken_as_they_stand(s):
    assert sorted(ORDER) == sorted(manifests())
    ns = s.namespace()
    for plural in ORDER:
        text = re.search(r"```yaml\n(.*?)```", (PAGES / f"{plural}.md").read_text(), re.S).group(1)
        answer = s.kubectl("apply", "-n", ns, "--validate=strict", "-f", "-", input=text)
        # A Device has its DeviceConfig without anybody's doing.
        words = "(created|configured)" if plural == "deviceconfigs" else "created"
        assert re.fullmatch(rf"\S+\.eve\.lfedge\.org/{yaml.safe_load(text)['metadata']['name']} {words}\n", answer), (plural, answer)
