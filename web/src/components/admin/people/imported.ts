import { harmless } from "../../csv";
/** The server's result for one row of a file. */
export interface Imported {
  row: number;
  email: string;
  status: "CREATED" | "WOULD_CREATE" | "SKIPPED" | "FAILED";
  error: string | null;
  field: string | null;
  password: string | null;
}

/** The columns that a file can have. Only the first is required. */
export const csvColumns = ["email", "username", "full_name", "role", "projects", "password", "policy"];

/** An example file. */
export const example =
  "email,full_name,projects\nada@example.org,Ada Kim,vision;speech\nbo@example.org,Bo Lind,vision\n";

/**
 * Quotes a CSV field. A field that spreadsheets would read as a formula gets an apostrophe in front, except for a
 * password, which must not change.
 */
const quoted = (text: string, exact = false) => {
  const safe = exact ? text : harmless(text);
  return /[",\r\n']/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
};

/** Returns the generated passwords as a CSV file for the administrator; empty if there are none. */
export function passwordsCsv(results: readonly Imported[]): string {
  const made = results.filter((r) => r.password !== null);
  if (made.length === 0) return "";
  return ["email,password", ...made.map((r) => `${quoted(r.email)},${quoted(r.password!, true)}`), ""].join("\n");
}

/** Returns the error of a row, with the column name. */
export const reason = (r: Pick<Imported, "error" | "field">) =>
  r.error ? (r.field && r.field !== "csv" ? `${r.field}: ${r.error}` : r.error) : "";
