import { Button } from "@mantine/core";
import { type ReactNode, useEffect, useRef } from "react";
import { t } from "../../i18n";
import { Copy } from "../Note";
import { save } from "../save";

interface Props {
  title: string;
  /** Labels and values. The last value is the secret. */
  values: { label: string; value: string }[];
  /** The name of the file that the last value can be downloaded as. */
  file?: string;
  children?: ReactNode;
  onClose: () => void;
}

/** Shows a secret that the server returns only once. */
export function Secret({ title, values, file, children, onClose }: Props) {
  const secret = values.at(-1)!.value;
  const box = useRef<HTMLElement>(null);
  // Wait until the dialog that created the secret has returned the focus.
  useEffect(() => {
    const frame = requestAnimationFrame(() => {
      box.current?.scrollIntoView({ block: "nearest" });
      box.current?.focus();
    });
    return () => cancelAnimationFrame(frame);
  }, []);
  return (
    <section ref={box} className="once stack" tabIndex={-1} role="region" aria-label={title}>
      <h2>{title}</h2>
      <p>{t("Copy it now. It is not shown again.")}</p>
      {values.map(({ label, value }) => (
        <div key={label}>
          <div className="row tight">
            <span className="dim">{label}</span>
            <Copy value={value} label={t("Copy: {{label}}", { label })} />
          </div>
          <pre className="secret" tabIndex={0} aria-label={label}>
            {value.trimEnd()}
          </pre>
        </div>
      ))}
      {children}
      <div className="row">
        {file ? <Button onClick={() => save(file, secret)}>{t("Download {{name}}", { name: file })}</Button> : null}
        <Button variant="default" className="push" onClick={onClose}>
          {t("I have saved it")}
        </Button>
      </div>
    </section>
  );
}
