import { expect, test } from "vitest";
import { mirrorInputs, showMirrors } from "./mirror";

test("a mirror without a new user keeps its login", () => {
  const shown = showMirrors([{ host: "mirror.example", plainHttp: false, login: true }]);
  expect(mirrorInputs(shown)).toEqual([{ host: "mirror.example", plainHttp: false }]);
});

test("a mirror with a user sends its password", () => {
  const [one] = showMirrors([{ host: "mirror.example", plainHttp: true, login: false }]);
  if (!one) throw new Error("no mirror");
  expect(mirrorInputs([{ ...one, host: " mirror.example:5000 ", username: "robot", password: "x" }])).toEqual([
    { host: "mirror.example:5000", plainHttp: true, username: "robot", password: "x" },
  ]);
});
