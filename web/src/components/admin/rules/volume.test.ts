import { expect, it } from "vitest";
import { permissionPhrases } from "./volume";

it("describes the permissions of a grant", () => {
  expect(permissionPhrases([])).toEqual(["nothing"]);
  expect(permissionPhrases(["MOUNT", "CREATE_FOLDER"])).toEqual(["create folders", "mount folders"]);
  expect(
    permissionPhrases([
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
