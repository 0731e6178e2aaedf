import { expect, it } from "vitest";
import { expiryOf, keep, networksOf } from "./share";

it("parses networks without duplicates", () =>
  expect(networksOf("10.1.0.0/16, fd00::/8\n10.1.0.0/16 \n")).toEqual(["10.1.0.0/16", "fd00::/8"]));

it("computes the end of a share from the selected expiry", () => {
  expect(expiryOf("8", null, Date.parse("2026-01-02T03:00:00Z"))).toBe("2026-01-02T11:00:00.000Z");
  expect(expiryOf(keep, "2026-01-09T00:00:00Z")).toBe("2026-01-09T00:00:00Z");
  expect(expiryOf("", "2026-01-09T00:00:00Z")).toBeNull();
});
