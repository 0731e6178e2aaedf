import { expect, it } from "vitest";
import { address, decode } from "./terminal";

it("removes the stream byte from output", () => {
  expect(decode(new Uint8Array([1, 104, 105]).buffer)).toEqual({ type: "output", data: new Uint8Array([104, 105]) });
});

it.each([
  ['{"type":"exit","code":3}', { type: "exit", code: 3 }],
  ['{"type":"started"}', { type: "started" }],
  ['{"type":"surprise"}', { type: "unknown" }],
  ["not json", { type: "unknown" }],
])("reads %s", (text, want) => expect(decode(text)).toEqual(want));

it("uses the scheme and host of the page", () => {
  expect(address({ protocol: "https:", host: "b.example" }, "s/1", 80, 24)).toBe(
    "wss://b.example/sessions/s%2F1/terminal?tty=1&cols=80&rows=24",
  );
});
