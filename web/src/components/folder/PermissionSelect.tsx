import { Select } from "@mantine/core";
import { t } from "../../i18n";
import { type FolderPermission, permissions } from "./share";

interface Props {
  /** Seen above the box, or with `bare` only said. */
  label: string;
  bare?: boolean;
  value: FolderPermission;
  disabled?: boolean;
  error?: string;
  onChange: (permission: FolderPermission) => void;
}

/** What somebody may with a folder. */
export function PermissionSelect({ label, bare, value, disabled, error, onChange }: Props) {
  return (
    <Select
      {...(bare
        ? { "aria-label": label, w: 190 }
        : { label, description: t(permissions.find((p) => p.value === value)!.hint) })}
      value={value}
      disabled={disabled}
      error={error}
      allowDeselect={false}
      data={permissions.map((p) => ({ value: p.value, label: t(p.label) }))}
      onChange={(v) => {
        const next = permissions.find((p) => p.value === v);
        if (next) onChange(next.value);
      }}
    />
  );
}
