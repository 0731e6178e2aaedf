import { Drawer } from "@mantine/core";
import type { ReactNode } from "react";
import { useFocusBack } from "../../hooks/useFocusBack";
import { t } from "../../i18n";

interface Props {
  title: ReactNode;
  onClose: () => void;
  children: ReactNode;
}

/** One object beside its list; Esc closes it, but not together with a dialog above it. */
export function SidePanel({ title, onClose, children }: Props) {
  useFocusBack();
  const close = () => (document.querySelectorAll('[role="dialog"]').length > 1 ? undefined : onClose());
  return (
    <Drawer
      opened
      onClose={close}
      position="right"
      size={680}
      title={title}
      closeButtonProps={{ "aria-label": t("Close") }}
      overlayProps={{ backgroundOpacity: 0.35 }}
    >
      <div className="stack side">{children}</div>
    </Drawer>
  );
}

/** A part of a side panel, under its own heading. */
export function Part({ title, aside, children }: { title: string; aside?: ReactNode; children: ReactNode }) {
  return (
    <section className="part stack small" aria-label={title}>
      <div className="row">
        <h3>{title}</h3>
        {aside ? <div className="push row">{aside}</div> : null}
      </div>
      {children}
    </section>
  );
}
