import { expect, it } from "vitest";
import { given } from "./volume";

it("describes the permissions of a grant", () => {
  expect(given([])).toEqual(["nothing"]);
  expect(given(["MOUNT", "CREATE_FOLDER"])).toEqual(["create folders", "mount folders"]);
  expect(
    given([
      "CREATE_FOLDER",
      "MODIFY_FOLDER",
      "DELETE_FOLDER",
      "MOUNT",
      "UPLOAD",
      "DOWNLOAD",
      "INVITE",
      "SET_USER_PERMISSION",
    ]),
  ).toEqual(["everything"]);
});
