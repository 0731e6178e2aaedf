import { expect, it } from "vitest";
import { networksOf } from "./profile";

it.each([
  ["", []],
  ["192.0.2.0/24\n2001:db8::/32", ["192.0.2.0/24", "2001:db8::/32"]],
  [" 192.0.2.1,  192.0.2.2 \n\n", ["192.0.2.1", "192.0.2.2"]],
])("networks of %j", (text, list) => expect(networksOf(text)).toEqual(list));
