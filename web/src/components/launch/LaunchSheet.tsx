import { Button, Drawer, TagsInput, TextInput } from "@mantine/core";
import type { LaunchWish } from "../../hooks/useLaunch";
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
import { byHand } from "./request";
import { SaveTemplate } from "./SaveTemplate";
import { SessionType } from "./SessionType";
import { Sizes } from "./Sizes";
import { useLaunchForm } from "./useLaunchForm";
import { WhenAndWhere } from "./WhenAndWhere";
import "./launch.css";

interface Props {
  wish: LaunchWish;
  onClose: () => void;
}

/** The form that starts a session. Its fields scroll; the preview and the button stay in sight below them. */
export default function LaunchSheet({ wish: begin, onClose }: Props) {
  const viewer = useViewer();
  const { wish, set, offer, wrong, rest, busy, submit } = useLaunchForm(begin, onClose);
  const why = (field: string) => wrong[field] && t(wrong[field]);
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
          {wish.base ? (
            <p className="dim">
              {wish.base.kind === "session"
                ? t(
                    "Everything that you do not change comes from session {{name}}, including its environment, script and apps.",
                    {
                      name: wish.base.name,
                    },
                  )
                : t("Takes over everything of template {{name}} that you do not change.", { name: wish.base.name })}
            </p>
          ) : null}
          <Images offer={offer} chosen={wish.image} onChoose={(image) => set({ image })} error={why("image")} />
          <OpenApp offer={offer} wish={wish} onChange={set} />
          <Presets presets={offer.presets} wish={wish} onChange={set} />
          <Sizes wish={wish} onChoose={(size) => set(byHand(size))} />
          <Amounts offer={offer} wish={wish} wrong={wrong} onChange={set} />
          <Disk wish={wish} error={why("diskBytes")} onChange={(disk) => set({ disk })} />
          <SessionType wish={wish} error={why("command")} arrayError={why("indexes")} onChange={set} />
          <Folders
            all={offer.folders}
            chosen={wish.folders}
            onChoose={(folders) => set({ folders })}
            error={wrong.mounts}
          />
          <TextInput
            label={t("Name")}
            description={t("Leave empty to generate a name.")}
            value={wish.name}
            error={why("name")}
            onChange={(e) => set({ name: e.currentTarget.value })}
          />
          <TagsInput
            label={t("Tags")}
            description={t("Labels to find the session by.")}
            value={wish.tags}
            maxTags={16}
            error={why("tags")}
            onChange={(tags) => set({ tags })}
          />
          <Places viewer={viewer} wish={wish} onChange={(place) => set({ ...place, preset: null })} wrong={wrong} />
          <WhenAndWhere wish={wish} agents={offer.agents} wrong={wrong} onChange={set} />
          <FailureNote failure={rest} />
        </div>
        <div className="launch-foot row">
          <Preview wish={wish} onChange={set} />
          <SaveTemplate wish={wish} projects={viewer.projects} />
          <Button type="submit" size="sm" className="push" loading={busy} disabled={!wish.image}>
            {t("Launch")}
          </Button>
        </div>
      </form>
    </Drawer>
  );
}
