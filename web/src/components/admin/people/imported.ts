/** The server's result for one row of a file. */
export interface Imported {
  row: number;
  email: string;
  status: "CREATED" | "WOULD_CREATE" | "SKIPPED" | "FAILED";
  error: string | null;
  field: string | null;
  password: string | null;
}

/** The columns that a file may have; only the first must be there. */
export const csvColumns = ["email", "username", "full_name", "role", "projects", "password", "policy"];

/** An example of a file. */
export const example =
  "email,full_name,projects\nada@example.org,Ada Kim,vision;speech\nbo@example.org,Bo Lind,vision\n";

/**
 * A field as spreadsheets read it. One that they would take for a formula is
 * kept a text by a quote in front, but for a password, which must stay what it is.
 */
const quoted = (text: string, exact = false) => {
  const safe = !exact && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n']/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
};

/** The generated passwords as a file for the administrator; empty if there are none. */
export function passwordsCsv(results: readonly Imported[]): string {
  const made = results.filter((r) => r.password !== null);
  if (made.length === 0) return "";
  return ["email,password", ...made.map((r) => `${quoted(r.email)},${quoted(r.password!, true)}`), ""].join("\n");
}

/** The error of a row, with its column. */
export const reason = (r: Pick<Imported, "error" | "field">) =>
  r.error ? (r.field && r.field !== "csv" ? `${r.field}: ${r.error}` : r.error) : "";
