import { Button, NumberInput } from "@mantine/core";
import { useState } from "react";
import { t } from "../../i18n";

interface Props {
  onOpen: (port: number) => void;
}

/** Opens a port of the session that is not listed. */
export function OpenPort({ onOpen }: Props) {
  const [port, setPort] = useState<number | string>("");
  const valid = Number.isInteger(port) && Number(port) >= 1 && Number(port) <= 65535;
  return (
    <form
      className="row open-port"
      onSubmit={(event) => {
        event.preventDefault();
        if (valid) onOpen(Number(port));
      }}
    >
      <NumberInput
        label={t("Port")}
        description={t("A port on which a program in the session listens.")}
        placeholder="8000"
        min={1}
        max={65535}
        allowDecimal={false}
        allowNegative={false}
        clampBehavior="none"
        hideControls
        value={port}
        error={port === "" || valid ? undefined : t("Enter a number from 1 to 65535.")}
        onChange={setPort}
      />
      <Button type="submit" variant="default" disabled={!valid}>
        {t("Open port")}
      </Button>
    </form>
  );
}
