import { expect, it } from "vitest";
import { given } from "./volume";

it("says what a grant gives", () => {
  expect(given([])).toEqual(["nothing"]);
  expect(given(["mount", "create_folder"])).toEqual(["create folders", "mount folders"]);
  expect(
    given([
      "create_folder",
      "modify_folder",
      "delete_folder",
      "mount",
      "upload",
      "download",
      "invite",
      "set_user_permission",
    ]),
  ).toEqual(["everything"]);
});
