import { Button, Checkbox, NativeSelect, TextInput } from "@mantine/core";
import { useEffect, useState } from "react";
import { graphql } from "../../../api/graphql";
import { useAction } from "../../../hooks/useAction";
import { useLiveQuery } from "../../../hooks/useLiveQuery";
import { t } from "../../../i18n";
import { word } from "../../../words";
import { bytes, when } from "../../format";
import { FailureNote } from "../../Note";

const CopiesQuery = graphql(`
  query ImageCopies($id: ID!) {
    node(id: $id) { id ... on Image {
      autoPull { id name }
      copies { id state doneBytes totalBytes message usedAt agent { id name } }
    } }
    resourceGroups(first: 100) { edges { node { id name } } }
  }
`);
const KeepImage = graphql(
  `mutation KeepImage($input: UpdateImageInput!) { updateImage(input: $input) { image { id autoPull { id name } } } }`,
);
const PrepullImage = graphql(
  `mutation PrepullImage($input: PrepullImageInput!) { prepullImage(input: $input) { task { id title status retryAt } } }`,
);
/** The time zone of the browser: the hours of a window are meant in it. */
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
const refreshEvery = 3000; // as agents report the progress of pulls

/** The agents that have an image or pull it, the groups that keep it, and a pull on the agents of a group. */
export function ImageCopies({ id, may }: { id: string; may: boolean }) {
  const { data, failure, refetch } = useLiveQuery({ query: CopiesQuery, variables: { id } });
  const keep = useAction(KeepImage);
  const prepull = useAction(PrepullImage);
  const [group, setGroup] = useState("");
  const [started, setStarted] = useState("");
  const [hours, setHours] = useState({ start: "", end: "" });
  useEffect(() => {
    const timer = setInterval(refetch, refreshEvery);
    return () => clearInterval(timer);
  }, [refetch]);
  const image = data?.node && "copies" in data.node ? data.node : null;
  const groups = (data?.resourceGroups.edges ?? []).flatMap((e) => (e?.node ? [e.node] : []));
  if (!image) return <FailureNote failure={failure} />;
  return (
    <section aria-label={t("Agents with this image")} className="stack">
      <h3>{t("Agents with this image")}</h3>
      <FailureNote failure={failure ?? keep.failure ?? prepull.failure} />
      {image.copies.length > 0 ? (
        <table className="grid">
          <thead>
            <tr>
              <th>{t("Agent")}</th>
              <th>{t("State")}</th>
              <th className="num">{t("Size")}</th>
              <th>{t("Last used")}</th>
            </tr>
          </thead>
          <tbody>
            {image.copies.map((c) => (
              <tr key={c.id}>
                <td>{c.agent.name}</td>
                <td>
                  {word("ImageCopyState", c.state)}
                  {c.message && c.state === "PARTIAL" ? <p className="bad">{c.message}</p> : null}
                  {c.message && c.state === "PRESENT" ? (
                    <p className="dim">{t("Pulled as a whole: {{reason}}", { reason: c.message })}</p>
                  ) : null}
                </td>
                <td className="num nowrap">
                  {c.state !== "PRESENT" && c.totalBytes > 0
                    ? t("{{done}} of {{total}}", { done: bytes(c.doneBytes), total: bytes(c.totalBytes) })
                    : bytes(c.doneBytes)}
                </td>
                <td className="dim nowrap">{c.usedAt ? when(c.usedAt) : ""}</td>
              </tr>
            ))}
          </tbody>
        </table>
      ) : (
        <p className="dim">{t("No agent has this image.")}</p>
      )}
      <fieldset className="stack">
        <legend>{t("Resource groups that keep this image on all their agents")}</legend>
        {groups.map((g) => (
          <Checkbox
            key={g.id}
            label={g.name}
            disabled={!may || keep.busy}
            checked={image.autoPull.some((k) => k.id === g.id)}
            onChange={async (e) => {
              const others = image.autoPull.filter((k) => k.id !== g.id).map((k) => k.id);
              const autoPull = e.currentTarget.checked ? [...others, g.id] : others;
              if (await keep.run({ input: { id, autoPull } })) refetch();
            }}
          />
        ))}
      </fieldset>
      <form
        className="row"
        onSubmit={async (event) => {
          event.preventDefault();
          const window = hours.start && hours.end ? { window: { ...hours, timeZone: zone } } : {};
          const done = await prepull.run({ input: { image: id, group, ...window } });
          if (!done) return;
          const { title, status, retryAt } = done.prepullImage.task;
          setStarted(
            status === "SCHEDULED" && retryAt
              ? t("Scheduled for {{at}}: {{title}}. The page Tasks shows it.", { at: when(retryAt), title })
              : t("Started: {{title}}. The page Tasks shows how far it is.", { title }),
          );
        }}
      >
        <NativeSelect
          label={t("Pull on the agents of")}
          style={{ flex: 1 }}
          disabled={!may}
          value={group}
          data={[
            { value: "", label: t("Choose a resource group") },
            ...groups.map((g) => ({ value: g.id, label: g.name })),
          ]}
          onChange={(e) => setGroup(e.currentTarget.value)}
        />
        <TextInput
          type="time"
          label={t("Only from")}
          disabled={!may}
          value={hours.start}
          onChange={(e) => setHours({ ...hours, start: e.currentTarget.value })}
        />
        <TextInput
          type="time"
          label={t("to")}
          disabled={!may}
          value={hours.end}
          onChange={(e) => setHours({ ...hours, end: e.currentTarget.value })}
        />
        <Button
          type="submit"
          variant="default"
          disabled={!may || !group || (hours.start === "") !== (hours.end === "")}
          loading={prepull.busy}
        >
          {t("Pull")}
        </Button>
      </form>
      {started ? <p role="status">{started}</p> : null}
    </section>
  );
}
