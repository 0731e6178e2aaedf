import { cleanup, configure } from "@testing-library/react";
import { afterEach, beforeAll } from "vitest";
import { start } from "../i18n";

// Only a failure takes this long: a busy machine must not decide.
configure({ asyncUtilTimeout: 60_000 });

beforeAll(start);
afterEach(() => {
  cleanup();
  localStorage.clear();
});
