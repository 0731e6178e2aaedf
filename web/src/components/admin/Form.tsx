import { Button, Modal } from "@mantine/core";
import { type FormEvent, type ReactNode, useEffect, useRef } from "react";
import { byField, type Failure } from "../../api/errors";
import { useFocusBack } from "../../hooks/useFocusBack";
import { t } from "../../i18n";
import { FailureNote } from "../Note";

interface FormProps {
  /** The failure of the last request. */
  failure: Failure | null;
  /** The fields that the form contains, by their names in the API. */
  fields: readonly string[];
  submit: string;
  busy: boolean;
  disabled?: boolean;
  /** The action cannot be undone. */
  danger?: boolean;
  /** The form's button is not the main action of the page. */
  plain?: boolean;
  onSubmit: () => void;
  onCancel?: () => void;
  /** Renders the fields; `wrong` has the error messages by field name. */
  children: (wrong: Record<string, string>) => ReactNode;
}

/** A form that shows a failure at the field that it is about, and focuses that field. */
export function Form({
  failure,
  fields,
  submit,
  busy,
  disabled,
  danger,
  plain,
  onSubmit,
  onCancel,
  children,
}: FormProps) {
  const form = useRef<HTMLFormElement>(null);
  const { field, rest } = byField(failure, fields);
  useEffect(() => {
    if (failure) form.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus();
  }, [failure]);

  function send(event: FormEvent) {
    event.preventDefault();
    event.stopPropagation();
    onSubmit();
  }
  return (
    <form ref={form} className="stack" onSubmit={send}>
      {children(field)}
      <FailureNote failure={rest} />
      <div className="row" style={{ justifyContent: "flex-end" }}>
        {onCancel ? (
          <Button variant="default" onClick={onCancel}>
            {t("Cancel")}
          </Button>
        ) : null}
        <Button
          type="submit"
          color={danger ? "red" : undefined}
          variant={plain ? "default" : undefined}
          loading={busy}
          disabled={disabled}
        >
          {submit}
        </Button>
      </div>
    </form>
  );
}

interface DialogProps extends Omit<FormProps, "onCancel"> {
  title: string;
  size?: string | number;
  onClose: () => void;
}

/** A form in a dialog of its own. */
export function FormDialog({ title, size, onClose, ...form }: DialogProps) {
  useFocusBack();
  return (
    <Modal opened onClose={onClose} size={size} title={title} closeButtonProps={{ "aria-label": t("Close") }}>
      <Form {...form} onCancel={onClose} />
    </Modal>
  );
}
