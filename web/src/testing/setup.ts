import { cleanup, configure } from "@testing-library/react";
import { afterEach, beforeAll } from "vitest";
import { start } from "../i18n";

// Only a failing test waits this long. The limit is high so that a busy machine does not fail a test.
configure({ asyncUtilTimeout: 60_000 });

beforeAll(start);
afterEach(() => {
  cleanup();
  localStorage.clear();
});
