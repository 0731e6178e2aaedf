import { expect, it } from "vitest";
import { csvColumns, example, type Imported, passwordsCsv, reason } from "./imported";

const row = (more: Partial<Imported>): Imported => ({
  row: 2,
  email: "ada@example.org",
  status: "CREATED",
  error: null,
  field: null,
  password: null,
  ...more,
});

it("writes only the generated passwords", () => {
  expect(passwordsCsv([row({}), row({ status: "FAILED", error: "is taken" })])).toBe("");
  expect(passwordsCsv([row({ password: "s3cret-one" }), row({ email: "bo@example.org" })])).toBe(
    "email,password\nada@example.org,s3cret-one\n",
  );
});

it("keeps passwords exact, and makes no other field a formula", () => {
  expect(passwordsCsv([row({ email: "+mal@example.org", password: '=a"b,c' })])).toBe(
    'email,password\n"\'+mal@example.org","=a""b,c"\n',
  );
});

it("names the invalid column, unless the whole row is invalid", () => {
  expect(reason(row({ error: "is already taken", field: "email" }))).toBe("email: is already taken");
  expect(reason(row({ error: "has 2 fields where the header has 3", field: "csv" }))).toBe(
    "has 2 fields where the header has 3",
  );
  expect(reason(row({}))).toBe("");
});

it("uses only valid columns in the example", () => {
  for (const column of example.split("\n")[0]!.split(",")) expect(csvColumns).toContain(column);
});
