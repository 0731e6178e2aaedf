import { Button, Drawer, NumberInput, SegmentedControl, TextInput } from "@mantine/core";
import { useNavigate } from "@tanstack/react-router";
import { useRef, useState } from "react";
import { byField } from "../../api/errors";
import { graphql } from "../../api/graphql";
import { useAction } from "../../hooks/useAction";
import { type LaunchWish, launchedHere } from "../../hooks/useLaunch";
import { useLiveQuery } from "../../hooks/useLiveQuery";
import { useStored } from "../../hooks/useStored";
import { useViewer } from "../../hooks/useViewer";
import { t } from "../../i18n";
import { largest } from "../device/largest";
import { bytes, slotsLine } from "../format";
import { FailureNote } from "../Note";
import { Disk } from "./Disk";
import { Folders } from "./Folders";
import { NoImage } from "./NoImage";
import { Places } from "./Places";
import { PresetFit } from "./PresetFit";
import { Preview } from "./Preview";
import { acceleratorSlots, byHand, byPreset, byRecent, check, inputOf, sizeOf, usual, type Wish } from "./request";
import { Share } from "./Share";
import { Sizes } from "./Sizes";
import { Tiles } from "./Tiles";
import { WhenAndWhere } from "./WhenAndWhere";
import "./launch.css";

const LaunchQuery = graphql(`
  query Launch {
    images(first: 100, where: { status: alive }, orderBy: [{ field: NAME, direction: ASC }]) {
      edges { node { id name reference sizeBytes minimumSlots } }
    }
    vfolders(first: 100, where: { status: ready }) {
      edges { node { id name permissions owner { id email } myShare { id status inviterEmail } } }
    }
    slotTypes { id name quantum allowedCounts }
    agents(first: 50) {
      edges { node { id name status schedulable devices { id allocatable health capacity occupied } } }
    }
  }
`);

const PresetsQuery = graphql(`
  query LaunchPresets($project: ID, $group: ID) {
    resourcePresets(resourceGroup: $group) {
      id name description slots shmBytes fit(project: $project, resourceGroup: $group) { state reason }
    }
  }
`);

const CreateSession = graphql(`
  mutation CreateSession($input: CreateSessionInput!) {
    createSession(input: $input) { session { id version name status } }
  }
`);

const fields = [
  "image",
  "command",
  "name",
  "slots.cpu",
  "slots.mem",
  "slots",
  "diskBytes",
  "mounts",
  "project",
  "resourceGroup",
  "startsAt",
  "dependsOn",
  "lifetime",
  "priority",
  "preemptible",
  "agents",
  "strictAgents",
  "sessionGroup",
];

/** The least that an image asks for, if it asks for anything. */
const needs = (minimum: Record<string, string>) =>
  Object.keys(minimum).length > 0 ? t("needs {{slots}}", { slots: slotsLine(minimum) }) : "";

export default function LaunchSheet({ wish: begin, onClose }: { wish: LaunchWish; onClose: () => void }) {
  const viewer = useViewer();
  const navigate = useNavigate();
  const { data, failure: unread } = useLiveQuery({ query: LaunchQuery });
  const { run, busy, failure } = useAction(CreateSession);
  const [recent, setRecent] = useStored<string[]>("images", []);
  const [tried, setTried] = useState(false);
  const key = useRef(crypto.randomUUID());
  const [wish, setWish] = useState<Wish>({
    image: begin.image ?? "",
    mode: begin.command ? "batch" : "interactive",
    command: begin.command ?? "",
    name: "",
    ...sizeOf(begin.slots),
    preset: null,
    disk: "",
    folders: begin.folder ? [{ id: begin.folder, readOnly: begin.readOnly ?? false }] : [],
    project: viewer.projects[0]?.id ?? null,
    group: viewer.resourceGroups[0]?.id ?? null,
    ...usual,
  });
  const set = (more: Partial<Wish>) => {
    // A changed request is another request, not a repetition.
    key.current = crypto.randomUUID();
    setWish((w) => ({ ...w, ...more }));
  };

  const images = byRecent(
    (data?.images.edges ?? []).flatMap((e) => (e?.node ? [e.node] : [])),
    recent,
  );
  const agents = (data?.agents.edges ?? []).flatMap((e) => (e?.node ? [e.node] : []));
  const slots = acceleratorSlots(agents);
  const full: Wish = {
    ...wish,
    image: wish.image || (images[0]?.reference ?? ""),
    slot: wish.slot || (slots[0] ?? ""),
  };
  const most = largest(agents, full.slot);
  const type = data?.slotTypes.find((s) => s.name === full.slot);
  const offered = useLiveQuery({ query: PresetsQuery, variables: { project: wish.project, group: wish.group } });
  const presets = offered.data?.resourcePresets ?? [];

  const { field: refused, rest } = byField(failure, fields);
  const wrong = { ...refused, ...(tried ? check(full) : {}) };

  async function submit(event: React.FormEvent) {
    event.preventDefault();
    setTried(true);
    if (Object.keys(check(full)).length > 0) return;
    const done = await run({ input: inputOf(full, key.current) });
    if (!done) return;
    setRecent([full.image, ...recent.filter((r) => r !== full.image)].slice(0, 8));
    launchedHere.add(done.createSession.session.id);
    onClose();
    await navigate({ to: "/sessions/$id", params: { id: done.createSession.session.id } });
  }

  return (
    <Drawer
      opened
      onClose={onClose}
      position="right"
      size={520}
      title={t("Launch a session")}
      closeButtonProps={{ "aria-label": t("Close") }}
    >
      <form className="stack" style={{ gap: 18 }} onSubmit={submit} noValidate>
        <FailureNote failure={unread} />
        {data && images.length === 0 ? (
          <NoImage />
        ) : (
          <Tiles
            first
            label={t("Image")}
            chosen={full.image}
            onChoose={(image) => set({ image })}
            error={wrong.image && t(wrong.image)}
            tiles={images.slice(0, 12).map((i) => ({
              key: i.reference,
              title: i.name,
              note: (
                <span className="dim">
                  {[i.sizeBytes > 0 ? bytes(i.sizeBytes) : "", needs(i.minimumSlots)].filter(Boolean).join(", ")}
                </span>
              ),
            }))}
          />
        )}
        {presets.length > 0 ? (
          <Tiles
            wide
            label={t("Preset")}
            chosen={full.preset?.id ?? null}
            onChoose={(id) => set(byPreset(presets.find((p) => p.id === id)!))}
            tiles={presets.map((p) => ({
              key: p.id,
              title: p.name,
              off: p.fit.state === "never",
              note: (
                <>
                  <span className="dim" title={p.description || undefined}>
                    {slotsLine(p.slots)}
                  </span>
                  <PresetFit fit={p.fit} />
                </>
              ),
            }))}
          />
        ) : null}
        <Sizes wish={full} onChoose={(size) => set(byHand(size))} />
        <div className="row" style={{ alignItems: "flex-start" }}>
          <NumberInput
            label={t("CPU")}
            w={110}
            min={0}
            step={1}
            decimalScale={3}
            value={full.cpu}
            error={wrong["slots.cpu"] && t(wrong["slots.cpu"])}
            onChange={(v) => set(byHand({ cpu: Number(v) || 0 }))}
          />
          <NumberInput
            label={t("Memory, GiB")}
            w={130}
            min={0}
            step={1}
            decimalScale={3}
            value={full.mem}
            error={wrong["slots.mem"] && t(wrong["slots.mem"])}
            onChange={(v) => set(byHand({ mem: Number(v) || 0 }))}
          />
        </div>
        {slots.length > 0 ? (
          <Share
            slots={slots}
            slot={full.slot}
            share={full.share}
            most={most}
            quantum={Number(type?.quantum ?? 1)}
            counts={type?.allowedCounts ?? []}
            error={wrong.slots && t(wrong.slots)}
            onSlot={(slot) => set(byHand({ slot, share: 0 }))}
            onShare={(share) => set(byHand({ share }))}
          />
        ) : wrong.slots ? (
          <p className="bad">{wrong.slots}</p>
        ) : null}
        <Disk wish={full} error={wrong.diskBytes && t(wrong.diskBytes)} onChange={(disk) => set({ disk })} />
        <fieldset className="legendless">
          <legend>{t("Session type")}</legend>
          <SegmentedControl
            aria-label={t("Session type")}
            value={full.mode}
            onChange={(mode) => set({ mode: mode as Wish["mode"] })}
            data={[
              { value: "interactive", label: t("Interactive") },
              { value: "batch", label: t("Batch command") },
            ]}
          />
          {full.mode === "batch" ? (
            <TextInput
              mt={8}
              label={t("Command")}
              className="mono"
              placeholder="python3 train.py"
              value={full.command}
              error={wrong.command && t(wrong.command)}
              onChange={(e) => set({ command: e.currentTarget.value })}
            />
          ) : null}
        </fieldset>
        <Folders
          all={(data?.vfolders.edges ?? []).flatMap((e) => (e?.node ? [e.node] : []))}
          chosen={full.folders}
          onChoose={(folders) => set({ folders })}
          error={wrong.mounts}
        />
        <TextInput
          label={t("Name")}
          description={t("Leave empty to generate a name.")}
          value={full.name}
          error={wrong.name && t(wrong.name)}
          onChange={(e) => set({ name: e.currentTarget.value })}
        />
        <Places viewer={viewer} wish={full} onChange={(place) => set({ ...place, preset: null })} wrong={wrong} />
        <WhenAndWhere wish={full} agents={agents} wrong={wrong} onChange={set} />
        <FailureNote failure={rest} />
        <div className="sheet-foot row">
          <Preview wish={full} onChange={set} />
          <Button type="submit" size="sm" className="push" loading={busy} disabled={!full.image}>
            {t("Launch")}
          </Button>
        </div>
      </form>
    </Drawer>
  );
}
