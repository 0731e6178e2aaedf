import { Modal } from "@mantine/core";
import { toast } from "../../hooks/useToasts";
import { t } from "../../i18n";
import { minLength, PasswordForm } from "./PasswordForm";

export { minLength };

export function PasswordDialog({
  opened,
  onClose,
  onChanged,
}: {
  opened: boolean;
  onClose: () => void;
  onChanged: () => void;
}) {
  return (
    <Modal
      opened={opened}
      onClose={onClose}
      title={<h2>{t("Change password")}</h2>}
      closeButtonProps={{ "aria-label": t("Close") }}
    >
      <PasswordForm
        onChanged={() => {
          toast({ text: t("Password changed. All your other logins were revoked.") });
          onChanged();
          onClose();
        }}
      />
    </Modal>
  );
}
