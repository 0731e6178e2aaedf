import { graphql, type ResultOf } from "../../../api/graphql";
import { t } from "../../../i18n";
import { parseCount, parseSize, printSize } from "./amounts";

export const ScopeFields = graphql(`
  fragment ScopeFields on QuotaScope {
    id kind limitBytes effectiveLimitBytes usedBytes limitInodes usedInodes enforcement measuredAt
    holderUser { id email } holderProject { id name } volume { id }
  }
`);
export type Scope = ResultOf<typeof ScopeFields>;

export const holderName = (s: Pick<Scope, "kind" | "holderUser" | "holderProject">) =>
  s.holderUser?.email ??
  (s.holderProject
    ? t("project {{name}}", { name: s.holderProject.name })
    : s.kind === "PROJECT"
      ? t("a project that you cannot see")
      : t("a user that you cannot see"));

/** A limit of a quota scope, as the dialog shows it. */
export interface Limit {
  field: "limitBytes" | "limitInodes";
  /** The capability that a volume needs for this limit. */
  capability: string;
  label: string;
  hint: string;
  none: string;
  cannot: string;
  wrong: string;
  parse: (text: string) => number | null;
  print: (n: number) => string;
}

export const limits: readonly Limit[] = [
  {
    field: "limitBytes",
    capability: "quota-bytes",
    label: "Storage limit",
    none: "limit from policies",
    hint: "A size such as 500g or 2t. Leave empty for the limit from policies. 0 allows nothing.",
    cannot: "This volume cannot limit single scopes. Limits from policies are enforced for uploads.",
    wrong: "Enter a size such as 500g or 2t.",
    parse: parseSize,
    print: printSize,
  },
  {
    field: "limitInodes",
    capability: "quota-inodes",
    label: "File limit",
    none: "no limit",
    hint: "Counts files, directories and links. Leave empty for no limit. 0 allows none.",
    cannot: "This volume cannot limit the number of files.",
    wrong: "Enter a whole number, or leave empty.",
    parse: parseCount,
    print: String,
  },
];

/** Returns the text of a limit for its input field. */
export const textOf = (limit: Limit, scope: Pick<Scope, Limit["field"]> | null) =>
  scope?.[limit.field] == null ? "" : limit.print(scope[limit.field]!);

/** Parses a limit: null for no limit, undefined for an invalid text. */
export function limitOf(limit: Limit, text: string): number | null | undefined {
  if (text.trim() === "") return null;
  return limit.parse(text) ?? undefined;
}

/**
 * Reports whether a volume can enforce a limit. For a volume that has not reported its capabilities yet, it returns
 * true, and the server decides.
 */
export const canEnforce = (volume: { capabilities: readonly string[] }, limit: Limit) =>
  volume.capabilities.length === 0 || volume.capabilities.includes(limit.capability);
