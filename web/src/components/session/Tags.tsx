import { Button, TagsInput } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { useAction } from "../../hooks/useAction";
import { t } from "../../i18n";
import { FailureNote } from "../Note";
import { SetSessionTags } from "./again";

/** Shows tags as links to the sessions that have them. */
export function TagChips({ tags }: { tags: readonly string[] }) {
  return (
    <>
      {tags.map((tag) => (
        <Link key={tag} to="/sessions" search={{ tag }} className="tag" title={t("Sessions with tag {{tag}}", { tag })}>
          {tag}
        </Link>
      ))}
    </>
  );
}

interface Props {
  session: { id: string; tags: readonly string[] };
  editable: boolean;
}

/** Edits the tags of a session. */
export function Tags({ session, editable }: Props) {
  const [editing, setEditing] = useState<string[] | null>(null);
  const { run, busy, failure, clear } = useAction(SetSessionTags);
  if (!editing) {
    return (
      <div className="row tags">
        <TagChips tags={session.tags} />
        {editable ? (
          <Button variant="subtle" size="compact-xs" onClick={() => setEditing([...session.tags])}>
            {session.tags.length > 0 ? t("Edit tags") : t("Add tags")}
          </Button>
        ) : null}
      </div>
    );
  }
  return (
    <form
      className="row"
      onSubmit={async (event) => {
        event.preventDefault();
        if (await run({ input: { id: session.id, tags: editing } })) setEditing(null);
      }}
    >
      <TagsInput aria-label={t("Tags")} value={editing} onChange={setEditing} maxTags={16} autoFocus />
      <Button type="submit" variant="light" loading={busy}>
        {t("Save")}
      </Button>
      <Button
        variant="subtle"
        onClick={() => {
          clear();
          setEditing(null);
        }}
      >
        {t("Cancel")}
      </Button>
      <FailureNote failure={failure} />
    </form>
  );
}
