import { Select, TextInput } from "@mantine/core";
import { useState } from "react";
import { t } from "../../i18n";
import { endsAt, lifetimes } from "./token";

interface NameProps {
  value: string;
  error?: string;
  onChange: (name: string) => void;
}

/** The name of a new credential. */
export function NameField({ value, error, onChange }: NameProps) {
  return (
    <TextInput
      label={t("Name")}
      description={t("What will use it?")}
      required
      data-autofocus
      maxLength={64}
      value={value}
      error={error}
      onChange={(e) => onChange(e.currentTarget.value)}
    />
  );
}

/** The choice of how long a new credential is valid: ends is null if it is valid forever, and undefined while no date is chosen. */
export function useLifetime() {
  const [lifetime, setLifetime] = useState("90");
  const [day, setDay] = useState("");
  return { lifetime, setLifetime, day, setDay, ends: endsAt(lifetime, day) };
}

interface LifetimeProps {
  of: ReturnType<typeof useLifetime>;
  error?: string;
}

/** The fields of useLifetime. */
export function LifetimeFields({ of, error }: LifetimeProps) {
  const ownDay = of.lifetime === "day";
  return (
    <>
      <Select
        label={t("Expires after")}
        value={of.lifetime}
        error={ownDay ? undefined : error}
        data={lifetimes.map((l) => ({ ...l, label: t(l.label) }))}
        onChange={(l) => l && of.setLifetime(l)}
      />
      {ownDay ? (
        <TextInput
          type="date"
          label={t("Last valid day")}
          required
          value={of.day}
          error={error}
          onChange={(e) => of.setDay(e.currentTarget.value)}
        />
      ) : null}
    </>
  );
}
