import { Button, Drawer, TagsInput, TextInput } from "@mantine/core";
import type { LaunchOptions } from "../../hooks/useLaunch";
import { useViewer } from "../../hooks/useViewer";
import { t } from "../../i18n";
import { FailureNote } from "../Note";
import { Amounts } from "./Amounts";
import { Disk } from "./Disk";
import { Folders } from "./Folders";
import { Images } from "./Images";
import { OpenApp } from "./OpenApp";
import { Places } from "./Places";
import { Presets } from "./Presets";
import { Preview } from "./Preview";
import { withAmounts } from "./request";
import { SaveTemplate } from "./SaveTemplate";
import { SessionType } from "./SessionType";
import { SizeHint } from "./SizeHint";
import { Sizes } from "./Sizes";
import { useLaunchForm } from "./useLaunchForm";
import { WhenAndWhere } from "./WhenAndWhere";
import "./launch.css";

interface Props {
  draft: LaunchOptions;
  onClose: () => void;
}

/** The form that starts a session. Its fields scroll; the preview and the button stay in sight below them. */
export default function LaunchSheet({ draft: begin, onClose }: Props) {
  const viewer = useViewer();
  const { draft, set, offer, wrong, rest, busy, submit } = useLaunchForm(begin, onClose);
  const errorOf = (field: string) => wrong[field] && t(wrong[field]);
  return (
    <Drawer
      opened
      onClose={onClose}
      position="right"
      size={520}
      title={t("Launch a session")}
      closeButtonProps={{ "aria-label": t("Close") }}
      classNames={{ content: "launch-sheet", body: "launch-body" }}
    >
      <form onSubmit={submit} noValidate>
        <div className="launch-fields stack">
          <FailureNote failure={offer.failure} />
          {draft.base ? (
            <p className="dim">
              {draft.base.kind === "session"
                ? t(
                    "Everything that you do not change comes from session {{name}}, including its environment, script and apps.",
                    {
                      name: draft.base.name,
                    },
                  )
                : t("Takes over everything of template {{name}} that you do not change.", { name: draft.base.name })}
            </p>
          ) : null}
          <Images offer={offer} chosen={draft.image} onChoose={(image) => set({ image })} error={errorOf("image")} />
          <OpenApp offer={offer} draft={draft} onChange={set} />
          <Presets presets={offer.presets} draft={draft} onChange={set} />
          <Sizes draft={draft} onChoose={(size) => set(withAmounts(size))} />
          <SizeHint
            image={offer.images.find((i) => i.reference === draft.image)?.id}
            draft={draft}
            onUse={(size) => set({ ...withAmounts(size), preset: null })}
          />
          <Amounts offer={offer} draft={draft} wrong={wrong} onChange={set} />
          <Disk draft={draft} error={errorOf("diskBytes")} onChange={(disk) => set({ disk })} />
          <SessionType draft={draft} error={errorOf("command")} arrayError={errorOf("indexes")} onChange={set} />
          <Folders
            all={offer.folders}
            chosen={draft.folders}
            onChoose={(folders) => set({ folders })}
            error={wrong.mounts}
          />
          <TextInput
            label={t("Name")}
            description={t("Leave empty to generate a name.")}
            value={draft.name}
            error={errorOf("name")}
            onChange={(e) => set({ name: e.currentTarget.value })}
          />
          <TagsInput
            label={t("Tags")}
            description={t("Labels to find the session by.")}
            value={draft.tags}
            maxTags={16}
            error={errorOf("tags")}
            onChange={(tags) => set({ tags })}
          />
          <Places viewer={viewer} draft={draft} onChange={(place) => set({ ...place, preset: null })} wrong={wrong} />
          <WhenAndWhere draft={draft} agents={offer.agents} wrong={wrong} onChange={set} />
          <FailureNote failure={rest} />
        </div>
        <div className="launch-foot row">
          <Preview draft={draft} onChange={set} />
          <SaveTemplate draft={draft} projects={viewer.projects} />
          <Button type="submit" size="sm" className="push" loading={busy} disabled={!draft.image}>
            {t("Launch")}
          </Button>
        </div>
      </form>
    </Drawer>
  );
}
