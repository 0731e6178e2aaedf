import { describe, expect, it } from "vitest";
import { money, share, sumMoney } from "./money";

describe("amounts of money", () => {
  it("are added exactly", () => {
    expect(sumMoney(["0.1", "0.2"])).toBe("0.3");
    expect(sumMoney(["9007199254740993", "0.000001"])).toBe("9007199254740993.000001");
    expect(sumMoney([])).toBe("0");
    expect(sumMoney(["10", "90"])).toBe("100");
  });
  it("are rounded for people, but never to nothing", () => {
    expect(money("12.345")).toBe("12.35");
    expect(money("0")).toBe("0");
    expect(money("0.000125")).toBe("0.000125");
    expect(money("0.995")).toBe("1.00");
  });
  it("are compared with limits", () => {
    expect(share("2.5", "10")).toBe(0.25);
    expect(share("1", "0")).toBe(1);
  });
});
