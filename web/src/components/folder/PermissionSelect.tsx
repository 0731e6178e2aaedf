import { Select } from "@mantine/core";
import { t } from "../../i18n";
import { type FolderPermission, permissions } from "./share";

interface Props {
  /** The label above the box; with `bare`, only for screen readers. */
  label: string;
  bare?: boolean;
  value: FolderPermission;
  disabled?: boolean;
  error?: string;
  onChange: (permission: FolderPermission) => void;
}

/** Selects a user's permission on a folder. */
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
