import { expect, it } from "vitest";
import { afterLogin } from "./login";

it.each([
  ["a wrong password", { code: "UNAUTHENTICATED" }, false, { step: "who", show: true }],
  ["a code is needed", { code: "UNAUTHENTICATED", field: "code" }, false, { step: "code", show: false }],
  ["a wrong code", { code: "UNAUTHENTICATED", field: "code" }, true, { step: "code", show: true }],
  ["too many logins", { code: "FAILED_PRECONDITION", field: "force", limit: "2" }, true, { step: "room", show: true }],
  ["no logins at all", { code: "FAILED_PRECONDITION", field: "logins" }, false, { step: "who", show: true }],
  ["too many tries", { code: "RESOURCE_EXHAUSTED", retryAfter: 60 }, true, { show: true }],
])("%s", (_, why, coded, next) => expect(afterLogin({ message: "", ...why }, coded)).toEqual(next));
