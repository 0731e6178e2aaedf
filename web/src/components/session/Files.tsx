import { Button, Select } from "@mantine/core";
import { useCallback, useEffect, useMemo, useState } from "react";
import type { Failure } from "../../api/errors";
import type { Found } from "../../api/incoming";
import { homeOf } from "../../api/sessionFiles";
import { asFailure } from "../../hooks/useCall";
import { t } from "../../i18n";
import { Browser } from "../folder/Browser";
import { DropZone } from "../folder/DropZone";
import { sendFiles } from "../folder/sendFiles";
import { Empty, FailureNote } from "../Note";
import { sessionStore } from "./sessionStore";
import "../folder/folder.css";

interface Props {
  session: { id: string; name: string };
  /** The session runs. */
  live: boolean;
  /** The session has ended. */
  over: boolean;
  /** The viewer can connect to the session. */
  canConnect: boolean;
  kernels: readonly { id: string; hostname: string; role: string }[];
  /** Undefined for the home directory. */
  path: string | undefined;
  onOpen: (path: string) => void;
}

/** The files in the containers of a session. */
export function Files(props: Props) {
  if (!props.canConnect)
    return (
      <div className="panel">
        <Empty title={t("No access to the files")}>
          {t("You do not have the permission to connect to this session.")}
        </Empty>
      </div>
    );
  if (props.live) return <Container {...props} />;
  return (
    <div className="panel">
      <Empty title={t("No files")}>
        {props.over
          ? t("The files of the containers were removed with the session. Files in folders are kept.")
          : t("Files are available when the session runs.")}
      </Empty>
    </div>
  );
}

function Container({ session: { id, name }, kernels, path, onOpen }: Props) {
  const main = kernels.find((k) => k.role === "main")?.id ?? null;
  const [kernel, setKernel] = useState(main);
  const store = useMemo(() => sessionStore({ id, name }, kernel === main ? null : kernel), [id, name, kernel, main]);
  const { home, failure, again } = useHome(store.id);
  const at = path ?? home;
  const send = (files: Found[]) => void sendFiles(store, at ?? "", files);
  return (
    <>
      <div className="row tool-bar" style={{ paddingBottom: 8 }}>
        <span className="dim">{t("Only files in folders are kept when the session ends.")}</span>
        {kernels.length > 1 ? (
          <Select
            className="push"
            aria-label={t("Container")}
            size="xs"
            allowDeselect={false}
            value={kernel}
            onChange={setKernel}
            data={kernels.map((k) => ({ value: k.id, label: k.hostname }))}
          />
        ) : null}
      </div>
      {failure ? (
        <div className="panel pad">
          <FailureNote failure={failure} what={t("The files could not be loaded")} />
          <Button mt="xs" variant="default" size="compact-sm" onClick={again}>
            {t("Retry")}
          </Button>
        </div>
      ) : null}
      {at === null ? (
        failure ? null : (
          <p className="panel empty dim" role="status">
            {t("Loading…")}
          </p>
        )
      ) : (
        <DropZone enabled onFiles={send}>
          <Browser
            key={`${store.id} ${at}`}
            store={store}
            path={at}
            home={home ?? undefined}
            writable
            onFiles={send}
            onOpen={onOpen}
          />
        </DropZone>
      )}
    </>
  );
}

/** Returns the home directory of a container; null until it is known. */
function useHome(id: string) {
  const [home, setHome] = useState<string | null>(null);
  const [failure, setFailure] = useState<Failure | null>(null);
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    let current = true;
    setHome(null);
    setFailure(null);
    homeOf(id).then(
      (found) => current && setHome(found),
      (error) => current && setFailure(asFailure(error)),
    );
    return () => {
      current = false;
    };
  }, [id, turn]);
  return { home, failure, again: useCallback(() => setTurn((n) => n + 1), []) };
}
