import { Button } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { Link } from "@tanstack/react-router";
import { useAction } from "../../hooks/useAction";
import { useViewer } from "../../hooks/useViewer";
import { t } from "../../i18n";
import { Confirm } from "../Confirm";
import { when } from "../format";
import { type ArrayRowData, CancelArray, countsOf, liveOf, RetryArray } from "./arrays";
import { Members } from "./Members";

/** Shows an array as one row, which expands to its members. */
export function ArrayRow({ array, owners }: { array: ArrayRowData; owners: boolean }) {
  const [unfolded, fold] = useDisclosure(false);
  const [confirming, setConfirming] = useDisclosure(false);
  const viewer = useViewer();
  const cancel = useAction(CancelArray);
  const retry = useAction(RetryArray, true);
  const live = liveOf(array);
  const retries = array.counts.failed + array.counts.cancelled;
  return (
    <>
      <tr>
        <td className="pick">
          <button
            type="button"
            className="linkish"
            aria-expanded={unfolded}
            aria-label={t("Members of {{name}}", { name: array.name })}
            onClick={fold.toggle}
          >
            {unfolded ? "▾" : "▸"}
          </button>
        </td>
        <td className="clip">
          <Link to="/sessions" search={{ array: array.id }}>
            <b>{array.name}</b>
          </Link>{" "}
          <span className="dim">
            {t("array")} {array.indexes}
          </span>
        </td>
        <td colSpan={2}>
          <span className="row small">
            {countsOf(array).map((one) => (
              <span key={one.text} className={one.tone === "dim" ? "dim" : `tone-${one.tone}`}>
                {one.text}
              </span>
            ))}
          </span>
        </td>
        <td colSpan={2} className="dim">
          {array.maxRunning ? t("at most {{n}} at once", { n: array.maxRunning }) : null}
        </td>
        {owners ? <td className="clip">{array.owner?.email}</td> : null}
        <td className="num nowrap">
          {live > 0 ? (
            <Button variant="subtle" color="red" size="compact-xs" onClick={setConfirming.open}>
              {t("Stop all")}
            </Button>
          ) : null}
          {retries > 0 && array.owner?.id === viewer.user.id ? (
            <Button
              variant="subtle"
              size="compact-xs"
              loading={retry.busy}
              onClick={() => void retry.run({ input: { id: array.id } })}
            >
              {t("Retry {{n}}", { n: retries })}
            </Button>
          ) : null}
        </td>
        <td className="nowrap dim">{when(array.createdAt)}</td>
      </tr>
      {unfolded ? <Members array={array.id} owners={owners} /> : null}
      {confirming ? (
        <tr>
          <td colSpan={owners ? 9 : 8}>
            <Confirm
              opened
              title={t("Stop all sessions of {{name}}?", { name: array.name })}
              action={t("Stop all")}
              busy={cancel.busy}
              failure={cancel.failure}
              onConfirm={async () => {
                if (await cancel.run({ input: { id: array.id } })) setConfirming.close();
              }}
              onClose={setConfirming.close}
            >
              {t("{{n}} sessions that have not ended are ended.", { n: live })}
            </Confirm>
          </td>
        </tr>
      ) : null}
    </>
  );
}
