import { Button, CopyButton } from "@mantine/core";
import { t } from "../../i18n";

/** Copies a link. The label says to what it leads. */
export function CopyLink({ value, label }: { value: string; label: string }) {
  return (
    <CopyButton value={value} timeout={1500}>
      {({ copied, copy }) => (
        <Button variant="subtle" onClick={copy} aria-label={copied ? undefined : label} title={label}>
          {copied ? t("Copied") : t("Copy link")}
        </Button>
      )}
    </CopyButton>
  );
}
