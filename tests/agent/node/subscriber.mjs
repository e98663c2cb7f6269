// SPDX-License-Identifier: Apache-2.0
// A subscriber in another language. Node has no SEQPACKET sockets of its own, so it is given one that is connected already, as
// file descriptor 0; one read of it is one packet. Everything else of the protocol is done here: the request, the words, base64,
// large fields. Each event is a line of JSON on standard output.
//
//     node subscriber.mjs <topic> <last event to wait for, such as restarted 1>
import fs from "node:fs";

const [topic, last] = process.argv.slice(2);
const MAX_PACKET = 65535;
const say = event => fs.writeSync(1, JSON.stringify(event) + "\n");
const decode = text => Buffer.from(text, "base64").toString("utf8");

function withLargeFields(value) {
  if (Array.isArray(value)) return value.map(withLargeFields);
  if (value === null || typeof value !== "object") return value;
  const result = {};
  for (const [key, member] of Object.entries(value)) {
    if (!key.startsWith("pubsub-file-")) {
      result[key] = withLargeFields(member);
      continue;
    }
    const path = JSON.parse(member), large = key.replace("pubsub-file-", "pubsub-large-");
    result[large] = JSON.parse(fs.readFileSync(path, "utf8"))[large];
    fs.unlinkSync(path);
  }
  return result;
}

function understand(packet) {
  const words = packet.split(" ");
  if (words[1] !== topic) throw new Error(`topic ${words[1]}`);
  switch (words[0]) {
    case "hello": return { event: "hello", persistent: words[2] === "true", words: words.length };
    case "update":
      if (words.length !== 4) throw new Error(`update of ${words.length} words`);
      return { event: "update", key: decode(words[2]), value: withLargeFields(JSON.parse(decode(words[3]))), text: decode(words[3]) };
    case "delete": return { event: "delete", key: decode(words[2]) };
    case "complete": return { event: "complete" };
    case "restarted": return { event: `restarted ${Number.parseInt(words[2], 10)}` };
    default: throw new Error(`unknown word ${words[0]}`);
  }
}

fs.writeSync(0, `request ${topic}`);
const buffer = Buffer.alloc(MAX_PACKET + 1);
for (;;) {
  const n = fs.readSync(0, buffer, 0, buffer.length, null);
  if (n === 0) {
    say({ event: "closed" });
    break;
  }
  const event = understand(buffer.toString("latin1", 0, n));
  say(event);
  if (event.event === last) break;
}
