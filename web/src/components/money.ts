const decimals = 6;

/** Returns an amount of money in millionths. Amounts have at most six decimals, so that sums are exact. */
function micros(text: string): bigint {
  const [whole = "0", part = ""] = text.split(".");
  return BigInt(whole + part.padEnd(decimals, "0").slice(0, decimals));
}

function decimal(n: bigint): string {
  const digits = String(n).padStart(decimals + 1, "0");
  return `${digits.slice(0, -decimals)}.${digits.slice(-decimals)}`.replace(/\.?0+$/, "");
}

/** Adds amounts exactly. */
export const sumMoney = (list: readonly string[]): string =>
  decimal(list.reduce((sum, text) => sum + micros(text), 0n));

/** Shows an amount with two decimals, rounded half up, and an amount below 0.01 exactly. */
export function money(text: string): string {
  const n = micros(text);
  if (n < 10_000n) return decimal(n);
  const cents = (n + 5_000n) / 10_000n;
  return `${(cents / 100n).toLocaleString()}.${String(cents % 100n).padStart(2, "0")}`;
}

/** Reports how much of a limit an amount is, from 0. */
export const share = (amount: string, limit: string): number =>
  micros(limit) === 0n ? 1 : Number((micros(amount) * 10_000n) / micros(limit)) / 10_000;
