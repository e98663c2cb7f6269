# SPDX-License-Identifier: Apache-2.0
"""`seth import-adam`: devices of Adam go on as if nothing had happened."""
import base64
import json
import os
import pathlib
import re
import subprocess
import tempfile
import uuid

import eve
import wire
from adam_store import AdamStore, Redis
from seth import KUBECTLS, TOP, Server, binary

API = "/apis/eve.lfedge.org/v1beta1/namespaces"


def run(*arguments, code=0):
    done = subprocess.run([binary(), "import-adam", *map(str, arguments)], capture_output=True, text=True, timeout=120)
    assert done.returncode == code and "Sanitizer" not in done.stderr, (done.returncode, done.stdout, done.stderr)
    return done.stdout + done.stderr


def directory():
    return tempfile.TemporaryDirectory(prefix="adam-test-")


def at(device, server):
    device.port = server.device_port
    return device


def polls(device, **config):
    """As after any boot: the certificates, then the configuration, with the token it has."""
    assert device.certs().status == 200
    answer, response = device.config(known="")
    assert answer.status == 200, answer
    assert response["config"]["id"]["uuid"] == device.uuid
    for key, value in config.items():
        assert response["config"][key] == value, response["config"]
    return response["config"]


def test_devices_go_on_with_what_they_had():
    with directory() as top:
        top = pathlib.Path(top)
        store = AdamStore(top)
        store.options = {"enforceTemplateAttestation": True, "PCRTemplates": []}
        one, two = store.add_device(), store.add_device({"networks": [{"id": "n", "type": 4}]}, is_binary=False)
        bare = store.add_device(DEVICE_CONFIGS=None, DEVICE_ATTEST_CERTS=None, DEVICE_STORAGE_KEYS=None, DEVICE_ONBOARD_CERTS=None, DEVICE_SERIALS=None)
        adam, certs, data = store.write_directory(), store.write_certs(), top / "data"
        said = run(adam, "--data-dir", data, "--namespace", "plant", "--certs", certs, "--dry-run")
        assert "devices: 3 can be taken over" in said and not data.exists(), said
        said = run(adam, "--data-dir", data, "--namespace", "plant", "--certs", certs)
        assert "devices: 3 taken over, 0 there already, 0 left out" in said and "onboarding certificates: 1 taken over" in said, said
        options = re.findall(r"^(--device-\S+) (\S+)$", said, re.M)
        assert len(options) == 6, said
        with Server(*[w for o in options for w in o], "--adam-namespace", "plant", data_dir=data) as s:
            for d in (one, two, bare):
                at(d, s)
            assert polls(one, maintenance_mode=True, device_name="old")["id"]["version"] == "17"
            assert polls(two)["networks"][0]["type"] == 4
            assert polls(bare)["id"]["version"] == "4" and "systemAdapterList" not in polls(bare)
            assert one.config(known="", token=b"another")[0].status == 403  # Adam enforced, so do we
            assert one.info({"ztype": "ZiDevice", "dinfo": {}}).status == 201
            objects = {o["status"]["uuid"]: o for o in s.ok("GET", f"{API}/plant/devices")["items"]}
            assert set(objects) == {one.uuid, two.uuid, bare.uuid}
            assert objects[one.uuid]["spec"]["serial"] == one.serial and "eve.lfedge.org/import" not in objects[one.uuid]["metadata"]["annotations"]
            assert s.request("GET", f"/admin/device/{one.uuid}/certs")[1]["certs"][0]["cert"]
            assert s.request("GET", "/admin/options")[1]["enforceTemplateAttestation"] is True
            one.nonce()
            _, result = one.quote()
            assert result["response"] == eve.SUCCESS, result  # it has no TPM: no keys come back, but a token
            fresh = at(eve.Device("127.0.0.1", 0, store.authority.pem, store.onboarding), s).onboard()
            assert fresh.uuid in s.request("GET", "/admin/device")[1]
            assert s.request("GET", "/api/v1/namespaces")[0] == 200  # users meet our own certificate


def test_keys_and_tokens_are_kept():
    with directory() as top:
        top = pathlib.Path(top)
        store = AdamStore(top)
        d = store.add_device()
        run(store.write_directory(), "--data-dir", top / "data")
        with Server(data_dir=top / "data") as s:
            name = f"eve-{d.identity.der_hash.hex()[:8]}"
            state = {k: base64.b64decode(v) for k, v in s.ok("GET", f"/api/v1/namespaces/default/secrets/{name}.eve-device")["data"].items()}
            assert state["integrity-token"] == d.token
            assert wire.decode("attest.AttestStorageKeys", state["storage-keys"]) == {"keys": [{"key_type": 1, "key": b"sealed"}]}
            assert [c["cert"] for c in wire.decode("attest.ZAttestReq", state["certificates"])["certs"]] == [d.ecdh_identity.pem, d.quote_identity.pem]


def test_encrypted_parts_can_still_be_read():
    """Adam names its certificate by a hash without the newline at its end, and by no other does the device find the key."""
    with directory() as top:
        top = pathlib.Path(top)
        store = AdamStore(top)
        d = store.add_device()
        encrypt, iv, plain = store.pairs["encrypt"], os.urandom(16), b"user data"
        key = eve.shared_key(d.ecdh_identity.key, encrypt.key.public_key())
        sealed = subprocess.run(["openssl", "enc", "-aes-256-cfb", "-K", key.hex(), "-iv", iv.hex()], input=plain, capture_output=True, check=True).stdout
        config = {"id": {"uuid": d.uuid, "version": "5"},
                  "cipherContexts": [{"contextId": "c", "hashScheme": 1, "keyExchangeScheme": 1, "encryptionScheme": 1,
                                      "deviceCertHash": d.ecdh_identity.pem_hash[:16], "controllerCertHash": eve.sha256(encrypt.pem.strip())[:16]}],
                  "datastores": [{"id": str(uuid.uuid4()), "cipherData": {"cipherContextId": "c", "initialValue": iv, "cipherData": sealed, "clearTextSha256": eve.sha256(plain)}}]}
        store.devices[d.uuid]["DEVICE_CONFIGS"] = wire.encode("config.EdgeDevConfig", config)
        adam = store.write_directory()
        assert "the device cannot read them" in run(adam, "--data-dir", top / "data", "--dry-run")
        said = run(adam, "--data-dir", top / "data", "--certs", store.write_certs())
        assert "cannot read" not in said, said
        with Server(*[w for o in re.findall(r"^(--device-\S+) (\S+)$", said, re.M) for w in o], data_dir=top / "data") as s:
            got = polls(at(d, s))
            assert d.decrypt(got, got["datastores"][0]["cipherData"]) == plain


def test_done_again_it_changes_nothing():
    with directory() as top:
        top = pathlib.Path(top)
        store = AdamStore(top)
        d = store.add_device()
        adam, data = store.write_directory(), top / "data"
        run(adam, "--data-dir", data)
        with Server(data_dir=data) as s:
            name = f"eve-{d.identity.der_hash.hex()[:8]}"
            s.ok("PATCH", f"{API}/default/deviceconfigs/{name}", {"spec": {"config": {"deviceName": "new"}}}, {"Content-Type": "application/merge-patch+json"})
            said = run(adam, "--data-dir", data, code=1)
            assert "stop it first" in said, said
        late = store.add_device()
        said = run(store.write_directory(), "--data-dir", data)
        assert "devices: 1 taken over, 1 there already, 0 left out" in said and "onboarding certificates: 0 taken over, 1 there already" in said, said
        with Server(data_dir=data) as s:
            assert s.ok("GET", f"{API}/default/deviceconfigs/{name}")["spec"]["config"]["deviceName"] == "new"
            assert {o["status"]["uuid"] for o in s.ok("GET", f"{API}/default/devices")["items"]} == {d.uuid, late.uuid}


def test_a_device_that_was_half_taken_over_is_finished():
    with directory() as top:
        top = pathlib.Path(top)
        store = AdamStore(top)
        d = store.add_device()
        adam, data = store.write_directory(), top / "data"
        run(adam, "--data-dir", data)
        name = f"eve-{d.identity.der_hash.hex()[:8]}"
        with Server(data_dir=data) as s:
            s.ok("DELETE", f"{API}/default/deviceconfigs/{name}")
            s.ok("PATCH", f"{API}/default/devices/{name}", {"metadata": {"annotations": {"eve.lfedge.org/import": "incomplete", "eve.lfedge.org/activate": "false"}}},
                 {"Content-Type": "application/merge-patch+json"})
        said = run(adam, "--data-dir", data)
        assert "devices: 1 taken over" in said, said
        with Server(data_dir=data) as s:
            assert s.ok("GET", f"{API}/default/deviceconfigs/{name}")["spec"]["config"]["deviceName"] == "old"
            assert s.ok("GET", f"{API}/default/devices/{name}")["metadata"]["annotations"]["eve.lfedge.org/activate"] == "true"


def test_what_cannot_be_read_is_named_and_left_out():
    with directory() as top:
        top = pathlib.Path(top)
        store = AdamStore(top)
        good = store.add_device()
        bad = {"its configuration cannot be read": store.add_device(DEVICE_CONFIGS=b"\xff\xff"), "its certificate": store.add_device(DEVICE_CERTS=b"nonsense"),
               "it has no certificate": store.add_device(DEVICE_CERTS=None), "of another device": store.add_device({"id": {"uuid": str(uuid.uuid4())}}),
               "unknown field": store.add_device(DEVICE_CONFIGS=b'{"nothing": 1}'), "its storage keys": store.add_device(DEVICE_STORAGE_KEYS=b"{"),
               "its attestation certificates": store.add_device(DEVICE_ATTEST_CERTS=b'{"certs": 7}'), "its options": store.add_device(DEVICE_OPTIONS=b"[]")}
        store.devices["no-uuid"] = store.devices[good.uuid]
        store.add_onboard(eve.onboarding_identity(), [])
        store.onboards["broken"] = (b"x", ["*"])
        store.options = {"PCRTemplates": 7}
        adam, data = store.write_directory(), top / "data"
        (adam / "device" / good.uuid / "extra.txt").write_text("nobody minds")
        for more in (("--dry-run",), ()):
            said = run(adam, "--data-dir", data, *more, code=1)
            for reason, d in bad.items():
                assert any(d.uuid in line and reason in line for line in said.splitlines()), (reason, said)
            assert "'no-uuid' is no UUID" in said and "so nobody could register" in said and "onboard/broken" in said and "the global options: PCRTemplates" in said, said
            assert re.search(r"devices: 1 \D+, 0 there already, 9 left out", said) and re.search(r"certificates: 1 \D+, 0 there already, 2 left out", said), said
        with Server(data_dir=data) as s:
            assert [o["status"]["uuid"] for o in s.ok("GET", f"{API}/default/devices")["items"]] == [good.uuid]


def test_what_is_no_store_of_adam():
    with directory() as top:
        top = pathlib.Path(top)
        assert "is it the directory of Adam" in run(top, "--data-dir", top / "data", code=1)
        assert "name where" in run("--data-dir", top / "data", code=1)
        store = AdamStore(top)
        adam, certs = store.write_directory(), store.write_certs()
        (certs / "signing-key.pem").write_bytes(store.pairs["encrypt"].key_pem())
        assert "is not the key of" in run(adam, "--data-dir", top / "data", "--certs", certs, code=1)
        (certs / "signing-key.pem").write_bytes(store.pairs["signing"].key_pem())
        (certs / "root-certificate.pem").write_bytes(eve.issue("other", is_ca=True).pem)
        assert "devices do not trust signing.pem" in run(adam, "--data-dir", top / "data", "--certs", certs, code=1)
        (certs / "encrypt.pem").unlink()
        assert "encrypt.pem" in run(adam, "--data-dir", top / "data", "--certs", certs, code=1)
        assert not (top / "data").exists()


def test_from_redis():
    with directory() as top, Redis() as redis:
        top = pathlib.Path(top)
        store = AdamStore(top)
        store.options = {"enforceTemplateAttestation": False, "PCRTemplates": [{"eveVersion": "13.4.0", "firmwareVersion": "", "PCRValues": []}]}
        store.add_onboard(eve.issue("a long name of some onboarding certificate: 7", None), ["s1", "s" * 40])
        devices = [store.add_device(is_binary=i % 2 == 0) for i in range(5)]
        store.add_device(DEVICE_CERTS=None)
        store.write_redis(redis)
        said = run(f"redis://127.0.0.1:{redis.port}", "--data-dir", top / "data", "--dry-run", code=1)
        said = run(f"redis://127.0.0.1:{redis.port}/0", "--data-dir", top / "data", "--certs", store.write_certs(), code=1)
        assert "devices: 5 taken over, 0 there already, 1 left out" in said and "certificates: 2 taken over" in said and "global options: taken over" in said, said
        options = [w for o in re.findall(r"^(--device-\S+) (\S+)$", said, re.M) for w in o]
        with Server(*options, data_dir=top / "data") as s:
            for d in devices:
                polls(at(d, s), device_name="old")
            onboard, = [o for o in s.ok("GET", f"{API}/default/onboardcertificates")["items"] if len(o["spec"]["serials"]) == 2]
            assert onboard["spec"]["serials"] == ["s1", "s" * 40]
            assert json.loads(s.ok("GET", "/api/v1/namespaces/eve-system/configmaps/pcr-templates")["data"]["templates.json"]) == store.options["PCRTemplates"]


def test_redis_that_refuses():
    with directory() as top, Redis() as redis:
        data = pathlib.Path(top) / "data"
        redis.command("SET", "DEVICE_CERTS", "text")
        assert "refuses HGETALL" in run(f"redis://127.0.0.1:{redis.port}", "--data-dir", data, code=1)
        redis.command("CONFIG", "SET", "requirepass", "secret")
        assert "refuses SELECT" in run(f"redis://127.0.0.1:{redis.port}", "--data-dir", data, code=1)
        said = run(f"redis://wrong@127.0.0.1:{redis.port}", "--data-dir", data, code=1)
        assert "refuses AUTH" in said and "wrong" not in said, said
        assert "refuses HGETALL" in run(f"redis://secret@127.0.0.1:{redis.port}", "--data-dir", data, code=1)
        assert "refuses SELECT" in run(f"redis://secret@127.0.0.1:{redis.port}/99", "--data-dir", data, code=1)
    assert "cannot connect" in run(f"redis://127.0.0.1:{redis.port}", "--data-dir", data, code=1)


# ---- the manual

def test_page_as_written():
    text = (TOP / "docs/ADAM.md").read_text()
    helps = "".join(subprocess.run([binary(), c, "--help"], capture_output=True, text=True, check=True).stdout for c in ("server", "import-adam"))
    for option in set(re.findall(r"(--[a-z][a-z-]+)", re.sub(r"```sh\n.*?```", "", text, flags=re.S))) - {"--db-url"}:
        assert option in helps, option
    take, redis_take, start, tools = re.findall(r"```sh\n(.*?)```", text, re.S)
    with directory() as top, Redis() as redis:
        top = pathlib.Path(top)
        store = AdamStore(top)
        d = store.add_device()
        (top / "run").mkdir()
        store.write_directory().rename(top / "run/adam")
        for file in store.write_certs().iterdir():
            file.rename(top / "run/adam" / file.name)
        late = store.add_device()
        store.write_redis(redis)

        def shell(script, **environment):
            script = script.replace("/var/lib/seth", str(top / "data")).replace("localhost:6379", f"127.0.0.1:{redis.port}")
            done = subprocess.run(["bash", "-euo", "pipefail", "-c", f'seth() {{ {binary()} "$@"; }}\n{script}'], cwd=top, capture_output=True, text=True, timeout=120,
                                  env={**os.environ, "PATH": f"{KUBECTLS['new'].parent}:{os.environ['PATH']}", "HOME": str(top), **environment})
            assert done.returncode == 0, (script, done.stdout, done.stderr)
            return done.stdout

        said = shell(take)
        assert "devices: 1 can be taken over" in said and "devices: 1 taken over" in said, said
        printed = re.findall(r"^(--device-\S+ \S+)$", said, re.M)
        words = start.replace("/var/lib/seth", str(top / "data")).replace("\\\n", " ").split()
        assert all(p in " ".join(words) for p in printed) and len(printed) == 6, (printed, words)
        assert "devices: 1 taken over, 1 there already, 0 left out" in shell(redis_take)
        with Server(*words[words.index("--device-tls-cert-file"):], data_dir=top / "data") as s:
            polls(at(d, s))
            polls(at(late, s))
            listed = shell(tools.replace("https://127.0.0.1:6443", f"https://127.0.0.1:{s.port}"), KUBECONFIG=s.kubeconfig)
            assert d.uuid in listed and late.uuid in listed, listed
