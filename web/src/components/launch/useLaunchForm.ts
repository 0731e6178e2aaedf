import { useLocalStorage } from "@mantine/hooks";
import { useNavigate } from "@tanstack/react-router";
import { useRef, useState } from "react";
import { byField, type Failure } from "../../api/errors";
import { graphql } from "../../api/graphql";
import { useAction } from "../../hooks/useAction";
import { type LaunchOptions, launchedInThisWindow } from "../../hooks/useLaunch";
import { useViewer } from "../../hooks/useViewer";
import { useOpenApp } from "../app/useOpenApp";
import { recentImages } from "./recent";
import { check, initialDraft, inputOf, type LaunchDraft } from "./request";
import { useOffer } from "./useOffer";

const CreateSession = graphql(`
  mutation CreateSession($input: CreateSessionInput!) {
    createSession(input: $input) { session { id version name status } }
  }
`);

const CreateSessionArray = graphql(`
  mutation CreateSessionArray($input: CreateSessionArrayInput!) {
    createSessionArray(input: $input) { array { id name } sessions }
  }
`);

const fields = [
  "indexes",
  "tags",
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

/** The state of the launch sheet: the request, the available choices, errors by field, and functions that send it. */
export function useLaunchForm(begin: LaunchOptions, onClose: () => void) {
  const viewer = useViewer();
  const navigate = useNavigate();
  const { run, busy, failure } = useAction(CreateSession);
  const several = useAction(CreateSessionArray);
  const { open } = useOpenApp();
  const [recent, setRecent] = useLocalStorage(recentImages);
  const [tried, setTried] = useState(false);
  const key = useRef(crypto.randomUUID());
  const [draft, setWish] = useState<LaunchDraft>(() =>
    initialDraft(begin, viewer.projects[0]?.id ?? null, viewer.resourceGroups[0]?.id ?? null),
  );
  const set = (more: Partial<LaunchDraft>) => {
    // A changed request needs a new key: it is not a retry.
    key.current = crypto.randomUUID();
    setWish((w) => ({ ...w, ...more }));
  };
  const offer = useOffer(recent, draft);
  const full: LaunchDraft = {
    ...draft,
    image: draft.image || (offer.images[0]?.reference ?? ""),
    slot: draft.slot || (offer.slots[0] ?? ""),
  };
  const { field: refused, rest } = byField(failure ?? inArray(several.failure), fields);
  const wrong = { ...refused, ...(tried ? check(full) : {}) };

  async function submit(event: React.FormEvent) {
    event.preventDefault();
    setTried(true);
    if (Object.keys(check(full)).length > 0) return;
    if (full.mode === "BATCH" && full.array.trim()) {
      const made = await several.run({ input: { session: inputOf(full, key.current), indexes: full.array } });
      if (!made) return;
      onClose();
      await navigate({ to: "/sessions", search: {} });
      return;
    }
    const app = opened(full, offer);
    const made: { asked: boolean; session: string | null } = { asked: false, session: null };
    const create = async () => {
      made.asked = true;
      const done = await run({ input: inputOf(full, key.current) });
      made.session = done ? done.createSession.session.id : null;
      return app && made.session ? { ...app, session: made.session } : null;
    };
    if (app) await open(create);
    if (!made.asked) await create(); // without an app, or if the browser blocked the tab
    if (!made.session) return;
    setRecent([full.image, ...recent.filter((r) => r !== full.image)].slice(0, 8));
    launchedInThisWindow.add(made.session);
    onClose();
    await navigate({ to: "/sessions/$id", params: { id: made.session } });
  }
  return { draft: full, set, offer, wrong, rest, busy: busy || several.busy, submit };
}

/** Moves an error of an array to the fields of its sessions. */
function inArray(failure: Failure | null): Failure | null {
  if (!failure?.field?.startsWith("session.")) return failure;
  return { ...failure, field: failure.field.slice("session.".length) };
}

/** Returns the app to open if the image has it, with the first folder of the session. */
function opened(draft: LaunchDraft, offer: ReturnType<typeof useOffer>) {
  const image = offer.images.find((i) => i.reference === draft.image);
  const app = draft.mode === "INTERACTIVE" && image?.apps.find((a) => a.name === draft.open);
  if (!app) return null;
  const folder = offer.folders.find((f) => f.id === draft.folders[0]?.id);
  return { app: app.name, ...(folder ? { folder: `/home/work/${folder.name}` } : {}) };
}
