/** How long versions without a tag stay in the repositories whose names begin with a prefix. */
export interface Rule {
  prefix: string;
  untaggedDays: number;
  versions: number | null;
}

/** The rules as lines of PREFIX DAYS VERSIONS; all stands for every repository. */
export function showRetention(rules: readonly Rule[]): string {
  return rules.map((r) => [r.prefix || "all", r.untaggedDays, r.versions ?? ""].join(" ").trim()).join("\n");
}

/** Reads what showRetention writes. The manager refuses numbers that are out of range, and a missing one is 0. */
export function parseRetention(text: string): Rule[] {
  return text
    .split("\n")
    .map((line) => line.trim().split(/\s+/))
    .filter(([prefix]) => prefix)
    .map(([prefix = "", days, versions]) => ({
      prefix: prefix === "all" ? "" : prefix,
      untaggedDays: Math.trunc(Number(days)) || 0,
      versions: versions === undefined ? null : Math.trunc(Number(versions)) || 0,
    }));
}
