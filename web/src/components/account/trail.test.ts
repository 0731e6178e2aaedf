import { expect, it } from "vitest";
import { actionName } from "./trail";

it.each([
  ["createSession", "Create session"],
  ["createSshKey", "Create SSH key"],
  ["startTotp", "Start TOTP"],
  ["authenticate", "Authenticate"],
])("%s reads %s", (action, text) => expect(actionName(action)).toBe(text));
