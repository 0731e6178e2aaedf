import { Modal, Select, TextInput } from "@mantine/core";
import { useState } from "react";
import { graphql } from "../../../api/graphql";
import { useAction } from "../../../hooks/useAction";
import { useFocusBack } from "../../../hooks/useFocusBack";
import { useViewer } from "../../../hooks/useViewer";
import { t } from "../../../i18n";
import type { Option } from "../Filter";
import { Form } from "../Form";
import { hasPermission, isSuper } from "../nav";
import { DomainPick, ProjectPick } from "../Pickers";
import { ShownOnce } from "./ShownOnce";

const Invite = graphql(`
  mutation Invite($input: CreateInvitationInput!) { createInvitation(input: $input) { link invitation { id email } } }
`);

const spans = [
  { value: "24", label: "One day" },
  { value: "72", label: "Three days" },
  { value: "168", label: "One week" },
  { value: "720", label: "30 days" },
];

/** Creates an invitation. Its link is shown once; the administrator sends it. */
export function NewInvitation({ onClose, onDone }: { onClose: () => void; onDone: () => void }) {
  useFocusBack();
  const viewer = useViewer();
  const { run, busy, failure } = useAction(Invite);
  const [email, setEmail] = useState("");
  const [domain, setDomain] = useState<Option>({ value: viewer.user.domain.id, label: viewer.user.domain.name });
  const [project, setProject] = useState<string | null>(null);
  const [hours, setHours] = useState("72");
  const [link, setLink] = useState<string | null>(null);
  return (
    <Modal
      opened
      onClose={onClose}
      closeOnClickOutside={!link}
      size={520}
      title={t("New invitation")}
      closeButtonProps={{ "aria-label": t("Close") }}
    >
      {link ? (
        <ShownOnce
          text={t("Send this link to {{email}}. It is shown only now, and only this person can use it.", {
            email: email.trim(),
          })}
          secret={link}
          onClose={onClose}
        />
      ) : (
        <Form
          failure={failure}
          fields={["email", "domain", "project", "expiresInHours"]}
          submit={t("Invite")}
          busy={busy}
          disabled={!email.trim()}
          onCancel={onClose}
          onSubmit={async () => {
            const done = await run({ input: { email, domain: domain.value, project, expiresInHours: Number(hours) } });
            if (!done) return;
            setLink(new URL(done.createInvitation.link ?? "/signup", location.origin).href);
            onDone();
          }}
        >
          {(wrong) => (
            <>
              <TextInput
                label={t("E-mail")}
                type="email"
                required
                data-autofocus
                value={email}
                error={wrong.email}
                onChange={(e) => setEmail(e.currentTarget.value)}
              />
              {isSuper(viewer) || hasPermission(viewer, "CREATE", "INVITATION") ? (
                <DomainPick
                  label={t("Domain")}
                  required
                  value={domain.value}
                  chosen={domain}
                  error={wrong.domain}
                  onChange={(value, label) => {
                    if (value) {
                      setDomain({ value, label });
                      setProject(null);
                    }
                  }}
                />
              ) : wrong.domain ? (
                <p className="bad" role="alert">
                  {wrong.domain}
                </p>
              ) : null}
              <ProjectPick
                key={domain.value}
                label={t("Project to join")}
                placeholder={t("none")}
                domain={domain.value}
                value={project}
                error={wrong.project}
                onChange={setProject}
              />
              <Select
                label={t("Valid for")}
                value={hours}
                error={wrong.expiresInHours}
                data={spans.map((s) => ({ value: s.value, label: t(s.label) }))}
                onChange={(v) => v && setHours(v)}
              />
            </>
          )}
        </Form>
      )}
    </Modal>
  );
}
