import { PasswordInput, TextInput } from "@mantine/core";
import { t } from "../../i18n";
import type { Repository } from "./build";

/** The fields for the Git repository of a build. */
export function GitFields({ value, onChange }: { value: Repository; onChange: (r: Repository) => void }) {
  const set = (field: keyof Repository) => (e: { currentTarget: { value: string } }) =>
    onChange({ ...value, [field]: e.currentTarget.value });
  return (
    <>
      <TextInput
        label={t("Address of the repository")}
        description={t("With https, such as https://example.org/tool.git. The build fetches it.")}
        value={value.address}
        onChange={set("address")}
      />
      <div className="row">
        <TextInput
          label={t("Branch, tag or commit")}
          placeholder={t("Default branch")}
          value={value.ref}
          onChange={set("ref")}
        />
        <TextInput
          label={t("Directory")}
          placeholder={t("All files")}
          value={value.directory}
          onChange={set("directory")}
        />
        <PasswordInput
          label={t("Access token")}
          placeholder={t("For private repositories")}
          w={220}
          autoComplete="off"
          value={value.token}
          onChange={set("token")}
        />
      </div>
    </>
  );
}
